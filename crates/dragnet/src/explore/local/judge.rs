//! What properties say of local states, alone and in pairs.

use std::collections::HashMap;
use std::sync::Arc;

use super::graph::Graph;
use super::super::walk::Space;
use crate::panics;
use crate::property::{Claim, LocalPredicate, Pairs, Scope};
use crate::system::System;

/// The properties of a check, as a search of parts sees them.
pub(super) struct Judge<'a, S: System> {
    space: &'a Space<'a, S>,
    /// What bounds each node by itself.
    bounds: Vec<&'a LocalPredicate<S>>,
    /// Whether every bound is one on single nodes.
    pub(super) bounds_are_local: bool,
    pub(super) pairs: Vec<&'a Arc<dyn Pairs<S>>>,
}

impl<'a, S: System> Judge<'a, S> {
    pub(super) fn new(space: &'a Space<'a, S>) -> Self {
        let bounds: Vec<_> = space
            .within
            .iter()
            .filter_map(|bound| bound.local.as_ref())
            .collect();
        let pairs = space.properties.iter().filter_map(|property| {
            let Claim::Always(_, Scope::Pairs(pairs)) = &property.claim else {
                return None;
            };
            Some(pairs)
        });
        Self {
            bounds_are_local: bounds.len() == space.within.len(),
            bounds,
            pairs: pairs.collect(),
            space,
        }
    }

    /// Whether a local state is part of the space, as far as can be said of it alone. A bound that fails lets it through:
    /// who takes the step meets the failure.
    pub(super) fn is_inside(&self, local: u32) -> bool {
        let mut bounds = self.bounds.iter();
        bounds.all(|inside| panics::catch(|| inside(self.space.system, local)).unwrap_or(true))
    }

    /// Whether an invariant of single nodes does not hold of a local state.
    pub(super) fn is_wrong(&self, local: u32) -> bool {
        let system = self.space.system;
        let mut properties = self.space.properties.iter();
        let bound_fails = |inside: &&LocalPredicate<S>| panics::catch(|| inside(system, local)).is_err();
        properties.any(|property| match &property.claim {
            Claim::Always(_, Scope::Each(holds)) => {
                panics::catch(|| !holds(system, local)).unwrap_or(true)
            }
            _ => false,
        }) || self.bounds.iter().any(bound_fails)
    }

    /// Whether a local state is one that must be reachable, and none such has been reached so far.
    pub(super) fn is_wanted(&self, local: u32) -> bool {
        let mut properties = self.space.properties.iter();
        properties.any(|property| match &property.claim {
            Claim::Reachable(_, reached, Scope::Each(reaches)) => {
                !reached.is()
                    && panics::catch(|| reaches(self.space.system, local)).unwrap_or(true)
            }
            _ => false,
        })
    }

    /// Whether all that must be reachable has been reached.
    pub(super) fn is_content(&self) -> bool {
        self.space.properties.unreached().is_none()
    }

    /// Whether a property looks at all nodes at once.
    pub(super) fn looks_at_whole(&self) -> bool {
        let mut properties = self.space.properties.iter();
        properties.any(|property| match &property.claim {
            Claim::Always(_, Scope::Nodes) => true,
            Claim::Reachable(_, reached, Scope::Nodes) => !reached.is(),
            _ => false,
        })
    }

    /// What the properties that look at all nodes say of a state: whether one is violated, or one is satisfied that must
    /// be reachable.
    pub(super) fn of_whole(&self, state: &S::State) -> (bool, bool) {
        let system = self.space.system;
        let (mut wrong, mut wanted) = (false, false);
        for property in self.space.properties.iter() {
            match &property.claim {
                Claim::Always(holds, Scope::Nodes) => {
                    wrong |= panics::catch(|| !holds(system, state)).unwrap_or(true);
                }
                Claim::Reachable(reaches, reached, Scope::Nodes) if !reached.is() => {
                    wanted |= panics::catch(|| reaches(system, state)).unwrap_or(true);
                }
                _ => {}
            }
        }
        (wrong, wanted)
    }

    /// The class of a local state under each invariant of pairs. A projection that panics puts it into a class of its
    /// own, which clashes with everything.
    pub(super) fn classes(&self, local: u32) -> impl Iterator<Item = Option<u32>> + '_ {
        self.pairs.iter().map(move |pairs| {
            panics::catch(|| pairs.class(self.space.system, local)).unwrap_or(Some(PANICS))
        })
    }

    /// Whether two classes under an invariant of pairs clash, that of the node with the smaller id first.
    pub(super) fn clash(&self, invariant: usize, one: u32, two: u32) -> bool {
        one == PANICS
            || two == PANICS
            || panics::catch(|| self.pairs[invariant].clash(one, two)).unwrap_or(true)
    }

    /// Every two local states of different nodes that clash under some invariant.
    pub(super) fn clashes(&self, graph: &Graph) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        for invariant in 0..self.pairs.len() {
            let by_class: Vec<HashMap<u32, Vec<u32>>> = graph
                .locals()
                .iter()
                .map(|locals| {
                    let mut by_class: HashMap<u32, Vec<u32>> = HashMap::new();
                    for &local in locals {
                        if let Some(class) = self.classes(local).nth(invariant).flatten() {
                            by_class.entry(class).or_default().push(local);
                        }
                    }
                    by_class
                })
                .collect();
            for (node, ones) in by_class.iter().enumerate() {
                for twos in &by_class[node + 1..] {
                    for (&one, one_locals) in ones {
                        for (&two, two_locals) in twos {
                            if self.clash(invariant, one, two) {
                                let pairs = one_locals
                                    .iter()
                                    .flat_map(|&one| two_locals.iter().map(move |&two| (one, two)));
                                found.extend(pairs);
                            }
                        }
                    }
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The class of local states whose projection panics.
const PANICS: u32 = u32::MAX;
