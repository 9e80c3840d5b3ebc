//! The states that have been visited.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::system::System;
use crate::tables::{Domain, FlatTable, Interner, Slot, Upsert};
use crate::trace::Fingerprint;

/// A set of visited states, each with a number that the explorer gives it and can lower by merging.
pub(crate) trait Store<S: System>: Sync {
    /// Prepares for a visit to `fingerprint` that follows shortly.
    fn prefetch(&self, fingerprint: Fingerprint);

    /// Adds a state with `value`, or merges `value` into the one that it has.
    fn visit(
        &self,
        state: &S::State,
        fingerprint: Fingerprint,
        value: u64,
        merge: impl Fn(u64, u64) -> u64,
    ) -> Upsert;

    /// A visit that does not wait for other threads: `None` when it would have to, and nothing has happened.
    #[inline]
    fn try_visit(
        &self,
        state: &S::State,
        fingerprint: Fingerprint,
        value: u64,
        merge: impl Fn(u64, u64) -> u64,
    ) -> Option<Upsert> {
        Some(self.visit(state, fingerprint, value, merge))
    }

    /// Whether a state has been visited.
    fn contains(&self, state: &S::State, fingerprint: Fingerprint) -> bool;

    /// Every visited fingerprint with these top bits (at least 40), with its value.
    fn with_prefix(&self, prefix: u64, bits: u32) -> Vec<(Fingerprint, u64)>;
}

/// Keeps 64 bits of each state. Two states with the same fingerprint count as one.
///
/// In slots of [`Pair`]s each has the number that the explorer gives it; in those of [`Single`]s, half as large, all have
/// [`PRESENT`](crate::tables::PRESENT).
pub(crate) struct Fingerprints<L> {
    table: FlatTable<L>,
}

impl<L: Slot> Fingerprints<L> {
    pub(crate) fn new(domain: &Arc<Domain>) -> Self {
        Self {
            table: FlatTable::large(domain),
        }
    }
}

impl<S: System, L: Slot> Store<S> for Fingerprints<L> {
    #[inline]
    fn prefetch(&self, fingerprint: Fingerprint) {
        self.table.prefetch(fingerprint.0);
    }

    #[inline]
    fn visit(
        &self,
        _state: &S::State,
        fingerprint: Fingerprint,
        value: u64,
        merge: impl Fn(u64, u64) -> u64,
    ) -> Upsert {
        self.table.upsert(fingerprint.0, value, merge)
    }

    #[inline]
    fn try_visit(
        &self,
        _state: &S::State,
        fingerprint: Fingerprint,
        value: u64,
        merge: impl Fn(u64, u64) -> u64,
    ) -> Option<Upsert> {
        self.table.try_upsert(fingerprint.0, value, merge)
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

    fn find(&self, state: &S::State, fingerprint: Fingerprint) -> Option<u32> {
        self.states.find(fingerprint.0, |kept| kept.state == *state)
    }
}

impl<S: System> Store<S> for Exact<S> {
    fn prefetch(&self, _fingerprint: Fingerprint) {}

    fn visit(
        &self,
        state: &S::State,
        fingerprint: Fingerprint,
        value: u64,
        merge: impl Fn(u64, u64) -> u64,
    ) -> Upsert {
        let (id, new) = match self.find(state, fingerprint) {
            Some(id) => (id, false),
            None => {
                let kept = Kept {
                    state: state.clone(),
                    value: AtomicU64::new(value),
                };
                self.states.intern(kept, fingerprint.0)
            }
        };
        if new {
            return Upsert::New;
        }
        let known = &self.states.get(id).value;
        let old = known
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| {
                Some(merge(old, value))
            })
            .expect("the update never declines");
        Upsert::Old(Some(old))
    }

    fn contains(&self, state: &S::State, fingerprint: Fingerprint) -> bool {
        self.find(state, fingerprint).is_some()
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
