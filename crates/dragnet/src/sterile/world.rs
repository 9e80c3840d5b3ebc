//! The clock and the random numbers that one run of a handler sees.
//!
//! They begin anew with each run, because a handler must not know what ran before it.
//!
//! - *Time* begins at the same moment in every run and moves by a [tick](TICK) whenever somebody looks, so that a loop
//!   which waits for time to pass ends. Sleeping moves it by as much as was asked for, and takes no time.
//! - *Random numbers* follow from the situation that the handler is run on, so that two nodes, or one node in two
//!   states, do not draw the same identifiers.
//! - *Keys of hash maps* are the same in every run: equal maps that were built alike are iterated alike, whichever
//!   handler built them, and the order of a map does not multiply the states.

use std::cell::Cell;
use std::time::Duration;

use crate::trace::{GOLDEN, scatter};

/// Midnight of the first of January 2026 in UTC: in the past, so that no deadline reckoned from it is waited for.
const WALL_START: Duration = Duration::from_secs(1_767_225_600);

/// What the clocks that are not the wall clock begin with: not zero, which may mean "never", and in the past too.
const MONOTONIC_START: Duration = Duration::from_secs(1);

/// How far the time moves on when somebody looks at it.
const TICK: Duration = Duration::from_micros(1);

/// "Dragnet!": any number will do, as long as it stays the same.
const HASH_KEYS_SEED: u64 = u64::from_be_bytes(*b"Dragnet!");

thread_local! {
    /// Neither lazy nor dropped, so that it can be read at any moment in the life of a thread.
    static WORLD: Cell<Option<World>> = const { Cell::new(None) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct World {
    elapsed: Duration,
    numbers: Stream,
    hash_keys: Stream,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    Wall,
    Monotonic,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Numbers,
    HashKeys,
}

/// From now on, and until it ends, this thread sees a world of its own.
pub(super) fn enter(seed: u64) {
    WORLD.set(Some(World {
        elapsed: Duration::ZERO,
        numbers: Stream(seed),
        hash_keys: Stream(HASH_KEYS_SEED),
    }));
}

/// What `ask` finds in the world of this thread; `None` on a thread that runs no handler.
pub(super) fn ask<R>(ask: impl FnOnce(&mut World) -> R) -> Option<R> {
    let mut world = WORLD.get()?;
    let answer = ask(&mut world);
    WORLD.set(Some(world));
    Some(answer)
}

impl World {
    pub(super) fn look_at(&mut self, clock: Clock) -> Duration {
        self.pass(TICK);
        clock.start().saturating_add(self.elapsed)
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.elapsed = self.elapsed.saturating_add(time);
    }

    pub(super) fn pass_until(&mut self, clock: Clock, moment: Duration) {
        self.elapsed = self.elapsed.max(moment.saturating_sub(clock.start()));
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8], purpose: Purpose) {
        let stream = match purpose {
            Purpose::Numbers => &mut self.numbers,
            Purpose::HashKeys => &mut self.hash_keys,
        };
        for chunk in bytes.chunks_mut(size_of::<u64>()) {
            chunk.copy_from_slice(&stream.next().to_le_bytes()[..chunk.len()]);
        }
    }
}

impl Clock {
    fn start(self) -> Duration {
        match self {
            Clock::Wall => WALL_START,
            Clock::Monotonic => MONOTONIC_START,
        }
    }
}

/// Numbers that look random: a counter, each value of it mixed (SplitMix64).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stream(u64);

impl Stream {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        scatter(self.0)
    }
}
