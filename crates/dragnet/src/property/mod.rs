//! What must be true: invariants, reachability, freedom from deadlock.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::panics;
use crate::system::System;

/// A condition on states. It may capture, and is judged once on each new state.
pub(crate) type Predicate<S> = Box<dyn Fn(&S, &<S as System>::State) -> bool + Send + Sync>;

/// A property of a system, under the name that verdicts give it.
pub(crate) struct Property<S: System> {
    pub(crate) name: String,
    pub(crate) claim: Claim<S>,
}

pub(crate) enum Claim<S: System> {
    /// Every reachable state satisfies it.
    Always(Predicate<S>),
    /// Some reachable state satisfies it: a guard against models in which nothing happens.
    Reachable(Predicate<S>, Reached),
    /// No reachable state leaves somebody waiting with nothing to come.
    DeadlockFree,
}

/// Whether a state that satisfies the property has been seen.
#[derive(Default)]
pub(crate) struct Reached(AtomicBool);

impl Reached {
    pub(crate) fn is(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// All that a check demands of its states.
pub(crate) struct Properties<S: System> {
    list: Vec<Property<S>>,
}

impl<S: System> Properties<S> {
    pub(crate) fn new(list: Vec<Property<S>>) -> Self {
        Self { list }
    }

    /// The first invariant that `state` violates, as its place in the list. Also notes what it reaches.
    #[inline]
    pub(crate) fn judge(&self, system: &S, state: &S::State) -> Option<usize> {
        let mut violated = None;
        for (index, property) in self.list.iter().enumerate() {
            match &property.claim {
                Claim::Always(holds) => {
                    if violated.is_none() && !holds(system, state) {
                        violated = Some(index);
                    }
                }
                Claim::Reachable(reaches, reached) => {
                    if !reached.is() && reaches(system, state) {
                        reached.0.store(true, Ordering::Relaxed);
                    }
                }
                Claim::DeadlockFree => {}
            }
        }
        violated
    }

    /// The first property that panics on `state`.
    pub(crate) fn panicking(&self, system: &S, state: &S::State) -> usize {
        let panics = |property: &Property<S>| match &property.claim {
            Claim::Always(condition) | Claim::Reachable(condition, _) => {
                panics::catch(|| condition(system, state)).is_err()
            }
            Claim::DeadlockFree => false,
        };
        self.list.iter().position(panics).unwrap_or(0)
    }

    /// The property that forbids deadlock, if there is one.
    pub(crate) fn deadlock(&self) -> Option<usize> {
        self.list
            .iter()
            .position(|property| matches!(property.claim, Claim::DeadlockFree))
    }

    /// The first property that nothing has reached.
    pub(crate) fn unreached(&self) -> Option<usize> {
        self.list.iter().position(
            |property| matches!(&property.claim, Claim::Reachable(_, reached) if !reached.is()),
        )
    }

    pub(crate) fn name(&self, index: usize) -> &str {
        &self.list[index].name
    }
}
