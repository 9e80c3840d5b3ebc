//! The states that have been visited.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::sample::Sample;
use crate::panics;
use crate::system::{Failure, System};
use crate::tables::{Domain, FlatTable, Interner, Slot, Upsert};
use crate::trace::Fingerprint;

/// A set of visited states, each with a number that the explorer gives it and can lower by merging.
pub(crate) trait Store<S: System>: Sync {
    /// Whether it compares whole states, and never takes two with one fingerprint for the same.
    const IS_EXACT: bool;

    /// Prepares for a visit to `fingerprint` that follows shortly.
    fn prefetch(&self, fingerprint: Fingerprint);

    /// Compares a state by equality with another of its fingerprint, where the store samples its states. To be called before
    /// the state is visited.
    ///
    /// # Panics
    /// Where the state's `Eq` or `Clone` does.
    fn examine(&self, state: &S::State, fingerprint: Fingerprint);

    /// Whether [`examine`](Store::examine) does anything for a state with one of these fingerprints.
    fn examines_any(&self, fingerprints: &[Fingerprint]) -> bool;

    /// Adds a state with `value`, or merges `value` into the one that it has. Fails where the state cannot be compared,
    /// because its `Eq` panics.
    fn visit(
        &self,
        state: &S::State,
        fingerprint: Fingerprint,
        value: u64,
        merge: impl Fn(u64, u64) -> u64,
    ) -> Result<Upsert, Failure>;

    /// A visit that does not wait for other threads: `None` when it would have to, and nothing has happened.
    #[inline]
    fn try_visit(
        &self,
        state: &S::State,
        fingerprint: Fingerprint,
        value: u64,
        merge: impl Fn(u64, u64) -> u64,
    ) -> Result<Option<Upsert>, Failure> {
        self.visit(state, fingerprint, value, merge).map(Some)
    }

    /// Whether a state has been visited; one that cannot be compared has not.
    fn contains(&self, state: &S::State, fingerprint: Fingerprint) -> bool;

    /// Every visited fingerprint with these top bits (at least 40), with its value.
    fn with_prefix(&self, prefix: u64, bits: u32) -> Vec<(Fingerprint, u64)>;
}

/// Keeps 64 bits of each state. Two states with the same fingerprint count as one.
///
/// In slots of [`Pair`]s each has the number that the explorer gives it; in those of [`Single`]s, half as large, all have
/// [`PRESENT`](crate::tables::PRESENT).
///
/// States of a direct system are examined by a [`Sample`] too, where there is one.
pub(crate) struct Fingerprints<'a, S: System, L> {
    table: FlatTable<L>,
    sample: Option<&'a Sample<S::State>>,
}

impl<'a, S: System, L: Slot> Fingerprints<'a, S, L> {
    pub(crate) fn new(domain: &Arc<Domain>, sample: Option<&'a Sample<S::State>>) -> Self {
        Self {
            table: FlatTable::large(domain),
            sample,
        }
    }
}

impl<S: System, L: Slot> Store<S> for Fingerprints<'_, S, L> {
    const IS_EXACT: bool = false;

    #[inline]
    fn prefetch(&self, fingerprint: Fingerprint) {
        self.table.prefetch(fingerprint.0);
    }

    #[inline]
    fn examine(&self, state: &S::State, fingerprint: Fingerprint) {
        if let Some(sample) = self.sample {
            sample.examine(state, fingerprint);
        }
    }

    #[inline]
    fn examines_any(&self, fingerprints: &[Fingerprint]) -> bool {
        self.sample
            .is_some_and(|sample| sample.examines_any(fingerprints))
    }

    #[inline]
    fn visit(
        &self,
        _state: &S::State,
        fingerprint: Fingerprint,
        value: u64,
        merge: impl Fn(u64, u64) -> u64,
    ) -> Result<Upsert, Failure> {
        Ok(self.table.upsert(fingerprint.0, value, merge))
    }

    #[inline]
    fn try_visit(
        &self,
        _state: &S::State,
        fingerprint: Fingerprint,
        value: u64,
        merge: impl Fn(u64, u64) -> u64,
    ) -> Result<Option<Upsert>, Failure> {
        Ok(self.table.try_upsert(fingerprint.0, value, merge))
    }

    fn contains(&self, _state: &S::State, fingerprint: Fingerprint) -> bool {
        self.table.get(fingerprint.0).is_some()
    }

    fn with_prefix(&self, prefix: u64, bits: u32) -> Vec<(Fingerprint, u64)> {
        let found = self.table.with_prefix(prefix, bits);
        found
            .into_iter()
            .map(|(key, value)| (Fingerprint(key), value))
            .collect()
    }
}

/// Keeps whole states and compares them.
pub(crate) struct Exact<S: System> {
    states: Interner<Kept<S::State>>,
}

struct Kept<T> {
    state: T,
    value: AtomicU64,
}

impl<T: PartialEq> PartialEq for Kept<T> {
    fn eq(&self, other: &Self) -> bool {
        self.state == other.state
    }
}

impl<T: Eq> Eq for Kept<T> {}

impl<S: System> Exact<S> {
    pub(crate) fn new(domain: &Arc<Domain>) -> Self {
        Self {
            states: Interner::new(domain),
        }
    }

    fn find(&self, state: &S::State, fingerprint: Fingerprint) -> Result<Option<u32>, Failure> {
        panics::catch_in::<S::State, _>("Eq", || {
            self.states.find(fingerprint.0, |kept| kept.state == *state)
        })
    }
}

impl<S: System> Store<S> for Exact<S> {
    const IS_EXACT: bool = true;

    fn prefetch(&self, _fingerprint: Fingerprint) {}

    /// Every visit compares states.
    fn examine(&self, _state: &S::State, _fingerprint: Fingerprint) {}

    fn examines_any(&self, _fingerprints: &[Fingerprint]) -> bool {
        false
    }

    fn visit(
        &self,
        state: &S::State,
        fingerprint: Fingerprint,
        value: u64,
        merge: impl Fn(u64, u64) -> u64,
    ) -> Result<Upsert, Failure> {
        let (id, new) = match self.find(state, fingerprint)? {
            Some(id) => (id, false),
            None => {
                let kept = Kept {
                    state: state.clone(),
                    value: AtomicU64::new(value),
                };
                panics::catch_in::<S::State, _>("Eq", || self.states.intern(kept, fingerprint.0))?
            }
        };
        if new {
            return Ok(Upsert::New);
        }
        let known = &self.states.get(id).value;
        let old = known
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| {
                Some(merge(old, value))
            })
            .expect("the update never declines");
        Ok(Upsert::Old(Some(old)))
    }

    fn contains(&self, state: &S::State, fingerprint: Fingerprint) -> bool {
        matches!(self.find(state, fingerprint), Ok(Some(_)))
    }

    fn with_prefix(&self, prefix: u64, bits: u32) -> Vec<(Fingerprint, u64)> {
        let shift = 64 - bits;
        self.states
            .near(prefix)
            .filter(|(hash, _)| hash >> shift == prefix >> shift)
            .map(|(hash, kept)| (Fingerprint(hash), kept.value.load(Ordering::Acquire)))
            .collect()
    }
}
