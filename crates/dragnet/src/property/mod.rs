//! What must be true: invariants, reachability, freedom from deadlock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::system::System;

/// A condition on states. It may capture, and is judged once on each new state.
pub(crate) type Predicate<S> = Box<dyn Fn(&S, &<S as System>::State) -> bool + Send + Sync>;

/// What bounds a space: states that are not `inside` are no part of it.
pub(crate) struct Bound<S: System> {
    /// How verdicts name it.
    pub(crate) name: String,
    pub(crate) inside: Predicate<S>,
    /// The same for each node by itself, where it is a condition on single nodes.
    pub(crate) local: Option<LocalPredicate<S>>,
}

/// A property of a system, under the name that verdicts give it.
pub(crate) struct Property<S: System> {
    pub(crate) name: String,
    pub(crate) claim: Claim<S>,
}

impl<S: System> Property<S> {
    /// Evaluates its condition on a state, for what that does besides.
    pub(crate) fn evaluate(&self, system: &S, state: &S::State) {
        if let Claim::Always(condition, _) | Claim::Reachable(condition, ..) = &self.claim {
            condition(system, state);
        }
    }

    /// Whether it looks at more than the states of nodes.
    pub(crate) fn looks_at_the_network(&self) -> bool {
        match &self.claim {
            Claim::Always(_, scope) | Claim::Reachable(_, _, scope) => {
                matches!(scope, Scope::Network)
            }
            Claim::DeadlockFree => true,
        }
    }
}

pub(crate) enum Claim<S: System> {
    /// Every reachable state satisfies it.
    Always(Predicate<S>, Scope<S>),
    /// Some reachable state satisfies it: a guard against models in which nothing happens.
    Reachable(Predicate<S>, Reached, Scope<S>),
    /// No reachable state leaves somebody waiting with nothing to come.
    DeadlockFree,
}

/// What of a state a property looks at: what a search of parts can put together for it.
pub(crate) enum Scope<S: System> {
    /// Also what is in flight: no search of parts can judge it.
    Network,
    /// The states of all nodes together.
    Nodes,
    /// Each node by itself: it is true of a state when it is true of each of its nodes, or, where it must be reachable,
    /// of one of them.
    Each(LocalPredicate<S>),
    /// Every two nodes by themselves.
    Pairs(Arc<dyn Pairs<S>>),
}

/// A condition on the local state of one node, by its number.
pub(crate) type LocalPredicate<S> = Box<dyn Fn(&S, u32) -> bool + Send + Sync>;

/// An invariant on pairs of nodes: a projection of each local state to a class, and which classes do not go together.
pub(crate) trait Pairs<S>: Send + Sync {
    /// The class of a local state; `None` when it can be part of no violation.
    fn class(&self, system: &S, local: u32) -> Option<u32>;

    /// Whether a node of class `one` and another, with a greater id, of class `two` violate the invariant.
    fn clash(&self, one: u32, two: u32) -> bool;
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
                Claim::Always(holds, _) => {
                    if violated.is_none() && !holds(system, state) {
                        violated = Some(index);
                    }
                }
                Claim::Reachable(reaches, reached, _) => {
                    if !reached.is() && reaches(system, state) {
                        reached.0.store(true, Ordering::Relaxed);
                    }
                }
                Claim::DeadlockFree => {}
            }
        }
        violated
    }

    /// Whether none of them looks at states.
    pub(crate) fn are_about_the_end(&self) -> bool {
        let mut list = self.list.iter();
        list.all(|property| matches!(property.claim, Claim::DeadlockFree))
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
            |property| matches!(&property.claim, Claim::Reachable(_, reached, _) if !reached.is()),
        )
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Property<S>> {
        self.list.iter()
    }

    pub(crate) fn name(&self, index: usize) -> &str {
        &self.list[index].name
    }
}
