//! A sample of the visited states of a direct system, compared by equality with other states of their fingerprints.
//!
//! The visited set recognises a state by its fingerprint alone. That is right as long as unequal states have unequal
//! fingerprints, which a `Hash` that leaves out fields breaks. So every state is kept and compared until there are
//! [`FIRST`] distinct ones, and from then on those whose fingerprint is a multiple of [`EVERY`]; the others are freed.
//!
//! A state is kept before it is entered into the visited set, by whoever comes first under the lock of its shard; everybody
//! else compares. So among the first states no unequal pair is missed, with any number of workers.

use std::collections::hash_map::Entry;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::coarse_hash::CoarseHash;
use crate::panics;
use crate::tables::FingerprintMap;
use crate::trace::Fingerprint;

/// How many distinct states there are before only some are kept. In tests so few that small systems have more.
const FIRST: u64 = if cfg!(test) { 100 } else { 100_000 };

/// One fingerprint in so many is kept from then on.
const EVERY: u64 = 1024;

/// Enough for workers to seldom meet.
const SHARDS: usize = 64;

pub(crate) struct Sample<T> {
    /// Which fingerprints are examined: those that have none of these bits. All at first.
    passed_over: AtomicU64,
    shards: [Shard<T>; SHARDS],
    /// How many states have been kept so far, freed ones included.
    kept: AtomicU64,
    /// The first two states that are unequal and have the same fingerprint.
    unequal: OnceLock<CoarseHash>,
}

/// Has a cache line to itself.
#[repr(align(64))]
struct Shard<T>(Mutex<Kept<T>>);

type Kept<T> = FingerprintMap<T>;

impl<T: Clone + Eq + Debug> Sample<T> {
    pub(crate) fn new() -> Self {
        Self {
            passed_over: AtomicU64::new(0),
            shards: [(); SHARDS].map(|()| Shard(Mutex::default())),
            kept: AtomicU64::new(0),
            unequal: OnceLock::new(),
        }
    }

    /// Compares `state` with the one that is kept for its fingerprint, or keeps it if there is none; unless its fingerprint
    /// is not part of the sample.
    ///
    /// # Panics
    /// Where the state's `Eq` or `Clone` does.
    #[inline]
    pub(crate) fn examine(&self, state: &T, fingerprint: Fingerprint) {
        if fingerprint.0 & self.passed_over.load(Ordering::Relaxed) == 0 {
            self.compare_or_keep(state, fingerprint);
        }
    }

    /// Whether any of these fingerprints is examined.
    #[inline]
    pub(crate) fn examines_any(&self, fingerprints: &[Fingerprint]) -> bool {
        let passed_over = self.passed_over.load(Ordering::Relaxed);
        // All of them, without a branch: mostly it is none.
        let is_examined = |fingerprint: &Fingerprint| fingerprint.0 & passed_over == 0;
        fingerprints
            .iter()
            .fold(false, |any, fingerprint| any | is_examined(fingerprint))
    }

    /// How many states have been kept and compared with others.
    pub(crate) fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Two states that are unequal and have the same fingerprint, if any were met.
    pub(crate) fn unequal(&self) -> Option<&CoarseHash> {
        self.unequal.get()
    }

    #[inline(never)]
    fn compare_or_keep(&self, state: &T, fingerprint: Fingerprint) {
        // The lowest bits are all zero in the end.
        let shard = (fingerprint.0 >> 16) as usize % SHARDS;
        match self.lock(shard).entry(fingerprint) {
            Entry::Occupied(kept) => {
                if kept.get() != state {
                    self.note(kept.get(), state);
                }
                return;
            }
            Entry::Vacant(place) => {
                let cloned = panics::catch_in::<T, _>("Clone", || state.clone());
                place.insert(cloned.unwrap_or_else(|failure| panics::raise(failure)));
            }
        }
        if self.kept.fetch_add(1, Ordering::Relaxed) + 1 == FIRST {
            self.pass_over();
        }
    }

    /// Keeps only the fingerprints that will be examined from now on.
    #[cold]
    fn pass_over(&self) {
        self.passed_over.store(EVERY - 1, Ordering::Relaxed);
        for shard in 0..SHARDS {
            let mut kept = self.lock(shard);
            kept.retain(|fingerprint, _| fingerprint.0.is_multiple_of(EVERY));
            kept.shrink_to_fit();
        }
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, Kept<T>> {
        let lock = self.shards[shard].0.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn note(&self, one: &T, other: &T) {
        // A float that is no number makes a state of a foreign model unequal to itself, which says nothing about its hash.
        #[expect(clippy::eq_op, reason = "that is the question")]
        let is_reflexive = one == one && other == other;
        if is_reflexive {
            self.unequal.get_or_init(|| CoarseHash::of(one, other));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::scatter;

    fn examine(sample: &Sample<u64>, state: u64, fingerprint: u64) {
        sample.examine(&state, Fingerprint(fingerprint));
    }

    #[test]
    fn the_first_states_are_all_kept_and_of_the_others_some() {
        let sample = Sample::new();
        for _ in 0..2 {
            for state in 0..100 * EVERY {
                examine(&sample, state, scatter(state));
            }
            let others = sample.kept() - FIRST;
            assert!((50..200).contains(&others), "{others}");
            assert_eq!(sample.unequal(), None);
        }
        let held: usize = (0..SHARDS).map(|shard| sample.lock(shard).len()).sum();
        assert!(held < 200, "{held} states are still held");
    }

    #[test]
    fn an_unequal_state_is_noticed_among_the_first_and_wherever_one_is_kept() {
        let late = (2 * FIRST..).find(|state| scatter(*state).is_multiple_of(EVERY));
        for (states, kept) in [(1, 0), (FIRST - 1, 7), (10 * FIRST, late.expect("one"))] {
            let sample = Sample::new();
            for state in 0..states.max(kept + 1) {
                examine(&sample, state, scatter(state));
            }
            assert_eq!(sample.unequal(), None);
            examine(&sample, u64::MAX, scatter(kept));
            let unequal = sample.unequal().expect("they are unequal").to_string();
            assert!(unequal.contains(&u64::MAX.to_string()), "{unequal}");
        }
    }

    #[test]
    fn several_workers_miss_no_unequal_pair_among_the_first_states() {
        for round in 0..200 {
            let sample = Sample::new();
            std::thread::scope(|scope| {
                for worker in 0..2 {
                    let sample = &sample;
                    scope.spawn(move || examine(sample, worker, scatter(round)));
                }
            });
            assert!(sample.unequal().is_some());
            assert_eq!(sample.kept(), 1);
        }
    }

    #[test]
    fn a_state_that_is_unequal_to_itself_says_nothing_about_its_hash() {
        /// What a foreign model with a float in it may be.
        #[derive(Clone, Debug)]
        struct Unequal;

        impl PartialEq for Unequal {
            fn eq(&self, _: &Self) -> bool {
                false
            }
        }

        impl Eq for Unequal {}

        let sample = Sample::new();
        for _ in 0..2 {
            sample.examine(&Unequal, Fingerprint(1));
        }
        assert_eq!(sample.unequal(), None);
    }
}
