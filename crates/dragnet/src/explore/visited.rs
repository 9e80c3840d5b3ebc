//! The states that a search has visited.
//!
//! What a depth-first search or a walk needs is [`Visited`]. The [links to parents](super::parent_links) are a matter of
//! breadth first alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::parent_links::ParentLinks;
use super::sample::Sample;
use crate::panics;
use crate::system::{Failure, System};
use crate::tables::{Domain, FlatTable, Interner, PRESENT, Pair, Slot, Upsert};
use crate::trace::Fingerprint;

/// A set of visited states. A bounded search is told apart how far from the start each was, at least: other searches visit
/// every state at depth 0.
pub(crate) trait Visited<S: System> {
    /// Whether it compares whole states, and never takes two with one fingerprint for the same.
    const IS_EXACT: bool;

    /// Whether it may forget states, all but those between [`visit`](Visited::visit) and [`release`](Visited::release).
    const EVICTS: bool = false;

    /// Prepares for a visit to `fingerprint` that follows shortly.
    fn prefetch(&self, fingerprint: Fingerprint);

    /// Compares a state by equality with another of its fingerprint, where the set samples its states. To be called before
    /// the state is visited.
    ///
    /// # Panics
    /// Where the state's `Eq` or `Clone` does.
    fn examine(&self, state: &S::State, fingerprint: Fingerprint);

    /// Whether [`examine`](Visited::examine) does anything for a state with one of these fingerprints.
    fn examines_any(&self, fingerprints: &[Fingerprint]) -> bool;

    /// Adds a state. Fails where it cannot be compared, because its `Eq` panics.
    fn visit(
        &self,
        state: &S::State,
        fingerprint: Fingerprint,
        depth: u64,
    ) -> Result<Visit, Failure>;

    /// Whether a state has been visited at this depth or a smaller one; one that cannot be compared has not.
    fn contains(&self, state: &S::State, fingerprint: Fingerprint, depth: u64) -> bool;

    /// Whether a state with this fingerprint has been visited.
    fn contains_fingerprint(&self, fingerprint: Fingerprint) -> bool;

    /// A state that was new has left the stack: from now on it may be evicted.
    #[inline]
    fn release(&self, _state: &S::State, _fingerprint: Fingerprint) {}
}

/// Stands for every depth, where it does not matter.
pub(crate) const ANY_DEPTH: u64 = u64::MAX - 1;

/// What a visit finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visit {
    New,
    /// The state is known, but only at a greater depth.
    Nearer,
    Known,
}

impl Visit {
    /// What it means that the value of a state, its depth counted from one, was merged with `value`.
    #[inline]
    fn of(upsert: Upsert, value: u64) -> Self {
        match upsert {
            Upsert::New => Self::New,
            Upsert::Old(Some(known)) if known <= value => Self::Known,
            Upsert::Old(_) => Self::Nearer,
        }
    }
}

/// Keeps 64 bits of each state. Two states with the same fingerprint count as one.
///
/// In slots of [`Pair`]s each has a depth, or a [link to its parent](ParentLinks); in those of [`Single`](crate::tables::Single)s,
/// half as large, all have depth 0.
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

impl<S: System, L: Slot> Visited<S> for Fingerprints<'_, S, L> {
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
        depth: u64,
    ) -> Result<Visit, Failure> {
        let value = depth + PRESENT;
        let upsert = self.table.upsert(fingerprint.0, value, u64::min);
        Ok(Visit::of(upsert, value))
    }

    #[inline]
    fn contains(&self, _state: &S::State, fingerprint: Fingerprint, depth: u64) -> bool {
        let known = self.table.get(fingerprint.0);
        known.is_some_and(|known| known <= depth + PRESENT)
    }

    fn contains_fingerprint(&self, fingerprint: Fingerprint) -> bool {
        self.table.get(fingerprint.0).is_some()
    }
}

impl<S: System> ParentLinks<S> for Fingerprints<'_, S, Pair> {
    #[inline]
    fn link(
        &self,
        _state: &S::State,
        fingerprint: Fingerprint,
        link: u64,
        merge: impl Fn(u64, u64) -> u64,
    ) -> Result<Upsert, Failure> {
        Ok(self.table.upsert(fingerprint.0, link, merge))
    }

    #[inline]
    fn try_link(
        &self,
        _state: &S::State,
        fingerprint: Fingerprint,
        link: u64,
        merge: impl Fn(u64, u64) -> u64,
    ) -> Result<Option<Upsert>, Failure> {
        Ok(self.table.try_upsert(fingerprint.0, link, merge))
    }

    fn with_prefix(&self, prefix: u64, bits: u32) -> Vec<(Fingerprint, u64)> {
        let found = self.table.with_prefix(prefix, bits);
        found
            .into_iter()
            .map(|(key, link)| (Fingerprint(key), link))
            .collect()
    }
}

/// Keeps whole states and compares them.
pub(crate) struct Exact<S: System> {
    states: Interner<Kept<S::State>>,
}

struct Kept<T> {
    state: T,
    /// Its depth or its link.
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

impl<S: System> Visited<S> for Exact<S> {
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
        depth: u64,
    ) -> Result<Visit, Failure> {
        let value = depth + PRESENT;
        let upsert = self.link(state, fingerprint, value, u64::min)?;
        Ok(Visit::of(upsert, value))
    }

    fn contains(&self, state: &S::State, fingerprint: Fingerprint, depth: u64) -> bool {
        let found = self.find(state, fingerprint).ok().flatten();
        found.is_some_and(|id| self.states.get(id).value.load(Ordering::Acquire) <= depth + PRESENT)
    }

    fn contains_fingerprint(&self, fingerprint: Fingerprint) -> bool {
        let mut near = self.states.near(fingerprint.0);
        near.any(|(hash, _)| hash == fingerprint.0)
    }
}

impl<S: System> ParentLinks<S> for Exact<S> {
    fn link(
        &self,
        state: &S::State,
        fingerprint: Fingerprint,
        link: u64,
        merge: impl Fn(u64, u64) -> u64,
    ) -> Result<Upsert, Failure> {
        let (id, new) = match self.find(state, fingerprint)? {
            Some(id) => (id, false),
            None => {
                let kept = Kept {
                    state: state.clone(),
                    value: AtomicU64::new(link),
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
                Some(merge(old, link))
            })
            .expect("the update never declines");
        Ok(Upsert::Old(Some(old)))
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
