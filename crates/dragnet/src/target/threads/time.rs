//! Time, with the names and signatures of `std::time`.
//!
//! Under a check time is virtual. It passes for a thread when it sleeps, or when something that it waits for does not come
//! in time, and for whoever hears from it: so nobody sees a time that somebody who came before has not seen.

use std::ops::{Add, AddAssign, Sub, SubAssign};

pub use std::time::{Duration, TryFromFloatSecsError};
/// The time of day is the real one under a check too, and what is done with it differs from one execution to the next.
pub use std::time::{SystemTime, SystemTimeError, UNIX_EPOCH};

use super::world;

/// A moment, like [`std::time::Instant`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Clock);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Clock {
    Real(std::time::Instant),
    /// Since the execution began.
    Virtual(Duration),
}

impl Instant {
    /// The present moment.
    pub fn now() -> Self {
        Self(match world::current() {
            None => Clock::Real(std::time::Instant::now()),
            Some(world) => Clock::Virtual(world.time()),
        })
    }

    /// How long ago this was.
    pub fn elapsed(&self) -> Duration {
        Self::now().duration_since(*self)
    }

    /// How much later this is than `earlier`; nothing if it is not.
    pub fn duration_since(&self, earlier: Self) -> Duration {
        self.checked_duration_since(earlier).unwrap_or_default()
    }

    /// The same.
    pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }

    /// How much later this is than `earlier`, if it is.
    pub fn checked_duration_since(&self, earlier: Self) -> Option<Duration> {
        match (self.0, earlier.0) {
            (Clock::Real(this), Clock::Real(earlier)) => this.checked_duration_since(earlier),
            (Clock::Virtual(this), Clock::Virtual(earlier)) => this.checked_sub(earlier),
            // One of them is not of this execution.
            _ => None,
        }
    }

    /// So much later.
    pub fn checked_add(&self, time: Duration) -> Option<Self> {
        Some(Self(match self.0 {
            Clock::Real(real) => Clock::Real(real.checked_add(time)?),
            Clock::Virtual(since) => Clock::Virtual(since.checked_add(time)?),
        }))
    }

    /// So much earlier.
    pub fn checked_sub(&self, time: Duration) -> Option<Self> {
        Some(Self(match self.0 {
            Clock::Real(real) => Clock::Real(real.checked_sub(time)?),
            Clock::Virtual(since) => Clock::Virtual(since.checked_sub(time)?),
        }))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        self.checked_add(time)
            .expect("overflow when adding duration to instant")
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, time: Duration) {
        *self = *self + time;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, time: Duration) -> Self {
        self.checked_sub(time)
            .expect("overflow when subtracting duration from instant")
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, time: Duration) {
        *self = *self - time;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}
