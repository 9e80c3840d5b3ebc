//! Random numbers, which are the same in every execution under a check.
//!
//! Under a check of [`Threads`](crate::Threads) they follow from the [seed](crate::Threads::seed), from the thread that
//! draws, and from how many it has drawn: they are not tried out, as what is [chosen](crate::choose) is, and a verdict says
//! which seed it speaks of. Everywhere else they are different each time.
//!
//! They are good enough to spread work and to wait for a random time, and not meant for secrets.
//!
//! ```
//! use dragnet::rand;
//!
//! let mut cards: Vec<u32> = (0..52).collect();
//! rand::rng().shuffle(&mut cards);
//! let coin: bool = rand::random();
//! let die = rand::rng().range(1..=6);
//! assert!((1..=6).contains(&die), "{coin} {cards:?}");
//! ```
//!
//! With the feature `rand_core` [`Rng`] is a generator for the crate `rand` too, by the traits of `rand_core` 0.10.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::ops::{Bound, RangeBounds};

/// A random value of a type: any integer, either `bool`, or a float from 0 up to but not including 1.
///
/// ```
/// let share: f64 = dragnet::rand::random();
/// assert!((0.0..1.0).contains(&share));
/// ```
pub fn random<T: Random>() -> T {
    T::random(&mut rng())
}

/// The generator of the thread that draws.
///
/// ```
/// let mut rng = dragnet::rand::rng();
/// let mut key = [0; 16];
/// rng.fill_bytes(&mut key);
/// assert!(rng.below(10) < 10);
/// ```
pub fn rng() -> Rng {
    Rng { _private: () }
}

/// The generator of the thread that draws: what [`rng`] gives. It holds nothing itself, so it may go from thread to thread.
#[derive(Clone, Copy, Debug)]
pub struct Rng {
    _private: (),
}

impl Rng {
    /// Any number.
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// Any number.
    pub fn next_u64(&mut self) -> u64 {
        #[cfg(feature = "threads")]
        if let Some(world) = crate::target::threads::world::current() {
            return world.draw();
        }
        draw()
    }

    /// Fills a slice with random bytes.
    pub fn fill_bytes(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }

    /// A number below another, each as likely.
    ///
    /// # Panics
    /// When there is none.
    pub fn below(&mut self, count: u64) -> u64 {
        assert!(count > 0, "no number is below 0");
        // Above the last multiple of `count` some remainders would be more likely than others.
        let excess = (u64::MAX % count + 1) % count;
        loop {
            let drawn = self.next_u64();
            if drawn <= u64::MAX - excess {
                return drawn % count;
            }
        }
    }

    /// An integer in a range, each as likely.
    ///
    /// ```
    /// let degrees = dragnet::rand::rng().range(-10_i32..30);
    /// assert!((-10..30).contains(&degrees));
    /// ```
    ///
    /// # Panics
    /// When there is none.
    pub fn range<T: Integer>(&mut self, range: impl RangeBounds<T>) -> T {
        let first = match range.start_bound() {
            Bound::Included(&first) => Some(first.rank()),
            Bound::Excluded(&before) => before.rank().checked_add(1),
            Bound::Unbounded => Some(T::MIN.rank()),
        };
        let last = match range.end_bound() {
            Bound::Included(&last) => Some(last.rank()),
            Bound::Excluded(&after) => after.rank().checked_sub(1),
            Bound::Unbounded => Some(T::MAX.rank()),
        };
        let (first, last) = first
            .zip(last)
            .filter(|(first, last)| first <= last)
            .expect("there is a number in the range");
        let above_first = match (last - first).checked_add(1) {
            Some(count) => self.below(count),
            None => self.next_u64(),
        };
        T::of_rank(first + above_first)
    }

    /// Puts a slice into a random order, each as likely.
    pub fn shuffle<T>(&mut self, slice: &mut [T]) {
        for count in (2..=slice.len()).rev() {
            let chosen = self.below(count as u64) as usize;
            slice.swap(count - 1, chosen);
        }
    }
}

/// A random number of this thread, outside of any check: what `std` keys its hash maps with, of a number that is different
/// each time.
fn draw() -> u64 {
    thread_local! {
        static SOURCE: (RandomState, Cell<u64>) = (RandomState::new(), Cell::new(0));
    }
    SOURCE.with(|(keys, drawn)| {
        drawn.set(drawn.get().wrapping_add(1));
        keys.hash_one(drawn.get())
    })
}

/// What [`random`] makes.
pub trait Random: private::Sealed {
    #[doc(hidden)]
    fn random(rng: &mut Rng) -> Self;
}

/// What [`Rng::range`] draws from: the integers of up to 64 bits.
pub trait Integer: Copy + private::Sealed {
    #[doc(hidden)]
    const MIN: Self;
    #[doc(hidden)]
    const MAX: Self;
    /// How many are below it.
    #[doc(hidden)]
    fn rank(self) -> u64;
    #[doc(hidden)]
    fn of_rank(rank: u64) -> Self;
}

mod private {
    pub trait Sealed {}
}

macro_rules! integers {
    ($($type:ty),*) => {
        $(
            impl private::Sealed for $type {}

            impl Random for $type {
                fn random(rng: &mut Rng) -> Self {
                    let mut bytes = [0; size_of::<Self>()];
                    rng.fill_bytes(&mut bytes);
                    Self::from_le_bytes(bytes)
                }
            }
        )*
    };
}

integers!(
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize
);

macro_rules! ranks {
    ($($type:ty),*) => {
        $(
            impl Integer for $type {
                const MIN: Self = <$type>::MIN;
                const MAX: Self = <$type>::MAX;

                fn rank(self) -> u64 {
                    self.wrapping_sub(Self::MIN) as u64 & (u64::MAX >> (64 - Self::BITS))
                }

                fn of_rank(rank: u64) -> Self {
                    (rank as Self).wrapping_add(Self::MIN)
                }
            }
        )*
    };
}

ranks!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

impl private::Sealed for bool {}
impl private::Sealed for f32 {}
impl private::Sealed for f64 {}

impl Random for bool {
    fn random(rng: &mut Rng) -> Self {
        rng.next_u64() >> 63 == 1
    }
}

impl Random for f32 {
    fn random(rng: &mut Rng) -> Self {
        // As many bits as fit behind the point.
        (rng.next_u64() >> 40) as f32 / (1_u64 << 24) as f32
    }
}

impl Random for f64 {
    fn random(rng: &mut Rng) -> Self {
        (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(feature = "rand_core")]
impl rand_core::TryRng for Rng {
    type Error = rand_core::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(self.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(self.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_of_a_range_are_in_it_and_all_come() {
        let mut rng = rng();
        let mut seen = |range: std::ops::RangeInclusive<i8>| -> BTreeSet<i8> {
            (0..1_000).map(|_| rng.range(range.clone())).collect()
        };
        assert_eq!(seen(-2..=2), BTreeSet::from([-2, -1, 0, 1, 2]));
        assert_eq!(seen(127..=127), BTreeSet::from([127]));
        assert!(seen(i8::MIN..=i8::MAX).len() > 200);
        assert_eq!(rng.range(u64::MAX..), u64::MAX);
        assert_eq!(rng.range(..=i64::MIN), i64::MIN);
        let [one, other]: [u64; 2] = [rng.range(..), rng.range(..)];
        assert_ne!(one, other, "the same number twice in a row");
    }

    #[test]
    #[should_panic(expected = "there is a number in the range")]
    fn there_is_no_number_in_an_empty_range() {
        rng().range(3..3);
    }

    #[test]
    fn numbers_below_another_are_spread_evenly() {
        let mut rng = rng();
        let mut counts = [0; 3];
        for _ in 0..30_000 {
            counts[rng.below(3) as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (9_000..11_000).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn a_shuffled_slice_has_what_it_had() {
        let mut slice: Vec<u32> = (0..50).collect();
        rng().shuffle(&mut slice);
        assert_ne!(slice, (0..50).collect::<Vec<_>>(), "as likely as 1 of 50!");
        slice.sort_unstable();
        assert_eq!(slice, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn threads_outside_of_a_check_draw_different_numbers() {
        let here: u128 = random();
        let there: u128 = std::thread::spawn(random).join().unwrap();
        assert_ne!(here, there);
    }

    #[test]
    fn bytes_fill_a_slice_of_any_length() {
        let mut bytes = [0; 13];
        rng().fill_bytes(&mut bytes);
        assert!(bytes[8..].iter().any(|&byte| byte != 0), "{bytes:?}");
    }
}
