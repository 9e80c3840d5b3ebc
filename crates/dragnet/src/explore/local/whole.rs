//! The whole system, as a search of parts sees it: what properties say, and searches through some of it.
//!
//! Everything that knows the types of the program under test is here, behind [`Whole`]; the engine itself knows numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::graph::{Cone, Graph};
use crate::explore::breadth;
use crate::explore::draw::Walks;
use crate::explore::limits::Gauge;
use crate::explore::random;
use crate::explore::visited::Fingerprints;
use crate::explore::walk::{Explored, Space};
use crate::panics;
use crate::property::{Claim, LocalPredicate, Pairs, Scope};
use crate::quantity::Seed;
use crate::step_guard;
use crate::system::{Failure, System};
use crate::tables::{Domain, Pair};
use crate::target::nodes::{Nodes, Row};
use crate::trace::{Fingerprint, Key};

/// What a search of parts asks of the whole system.
pub(crate) trait Whole: Sync {
    /// Whether a local state is part of the space, as far as can be said of it alone.
    fn is_inside(&self, local: u32) -> bool;

    /// Whether every bound is one on single nodes.
    fn bounds_are_local(&self) -> bool;

    /// Whether no unequal local states or messages with one hash were met: a [search](Whole::search) takes states that
    /// differ in them for one.
    fn tells_states_apart(&self) -> bool;

    /// Whether an invariant of single nodes does not hold of a local state.
    fn is_wrong(&self, local: u32) -> bool;

    /// Whether a local state is one that must be reachable, and none such has been reached so far.
    fn is_wanted(&self, local: u32) -> bool;

    /// Whether all that must be reachable has been reached.
    fn is_content(&self) -> bool;

    /// Whether a property looks at all nodes at once.
    fn looks_at_whole(&self) -> bool;

    /// What the properties that look at all nodes say of these local states together: whether one is violated, or one is
    /// satisfied that must be reachable.
    fn of_whole(&self, locals: &[u32]) -> (bool, bool);

    /// How many invariants of pairs there are.
    fn pairs(&self) -> usize;

    /// The class of a local state under an invariant of pairs.
    fn class(&self, invariant: usize, local: u32) -> Option<u32>;

    /// Whether two classes under an invariant of pairs clash, that of the node with the smaller id first.
    fn clash(&self, invariant: usize, one: u32, two: u32) -> bool;

    /// Searches the whole system, but only through the local states of a cone, for anything that is wrong.
    /// Executions of more than `longest` steps are not looked at.
    fn search(
        &self,
        cone: &Cone,
        aim: Aim,
        longest: Option<u64>,
        gauge: &Gauge,
        workers: usize,
    ) -> Explored;
}

/// What a search of the whole system is to find.
#[derive(Clone, Copy)]
pub(crate) enum Aim {
    /// A shortest execution to something wrong.
    Wrong,
    /// Executions to what must be reachable: it ends when everything of that has been reached.
    Wanted,
    /// The same by so many random walks of so many steps: a protocol that comes to its end tends to have done what it is
    /// for. Walks are short, since in a system without an end more and more is in flight on them.
    WantedByChance { walks: u64, steps: u64 },
}

/// A system with its properties, taken apart.
pub(crate) struct Taken<'a> {
    space: &'a Space<'a, Nodes>,
    domain: &'a Arc<Domain>,
    /// What bounds each node by itself.
    bounds: Vec<&'a LocalPredicate<Nodes>>,
    pairs: Vec<&'a Arc<dyn Pairs<Nodes>>>,
}

impl<'a> Taken<'a> {
    pub(crate) fn new(space: &'a Space<'a, Nodes>, domain: &'a Arc<Domain>) -> Self {
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
            bounds,
            pairs: pairs.collect(),
            space,
            domain,
        }
    }

    /// What code of a property comes to on local states, or how it fails.
    fn judged<R>(
        &self,
        property: &str,
        locals: &[u32],
        code: impl FnOnce() -> R,
    ) -> Result<R, Failure> {
        let step = JudgedLocals { property, locals };
        panics::catch(|| step_guard::run(&step, code))
    }

    /// Whether a local state keeps a bound, or how that fails.
    fn keeps(&self, bound: &LocalPredicate<Nodes>, local: u32) -> Result<bool, Failure> {
        self.judged("a bound", &[local], || bound(self.space.system, local))
    }
}

/// What an invariant of pairs is called where its name is not at hand.
const PAIRS: &str = "an invariant of pairs";

/// A property that is judged on local states, by their numbers.
struct JudgedLocals<'a> {
    property: &'a str,
    locals: &'a [u32],
}

impl step_guard::Step for JudgedLocals<'_> {
    fn key(&self) -> u64 {
        Fingerprint::of(&(self.property, self.locals), Key::default()).0
    }

    fn describe(&self) -> String {
        format!("{}, judged on local states", self.property)
    }

    fn owner(&self) -> &str {
        self.property
    }
}

impl Whole for Taken<'_> {
    fn bounds_are_local(&self) -> bool {
        self.bounds.len() == self.space.within.len()
    }

    fn tells_states_apart(&self) -> bool {
        self.space.system.coarse_hash().is_none()
    }

    fn is_inside(&self, local: u32) -> bool {
        // A bound that fails lets it through: who takes the step meets the failure.
        let mut bounds = self.bounds.iter();
        bounds.all(|inside| self.keeps(inside, local).unwrap_or(true))
    }

    fn is_wrong(&self, local: u32) -> bool {
        let system = self.space.system;
        let mut properties = self.space.properties.iter();
        let bound_fails = |inside: &&LocalPredicate<Nodes>| self.keeps(inside, local).is_err();
        let mut pairs = 0..self.pairs.len();
        properties.any(|property| match &property.claim {
            Claim::Always(_, Scope::Each(holds)) => {
                let judged = self.judged(&property.name, &[local], || holds(system, local));
                !judged.unwrap_or(false)
            }
            _ => false,
        }) || pairs.any(|invariant| self.class(invariant, local) == Some(PANICS))
            || self.bounds.iter().any(bound_fails)
    }

    fn is_wanted(&self, local: u32) -> bool {
        let mut properties = self.space.properties.iter();
        properties.any(|property| match &property.claim {
            Claim::Reachable(_, reached, Scope::Each(reaches)) => {
                let reaches = || reaches(self.space.system, local);
                !reached.is()
                    && self
                        .judged(&property.name, &[local], reaches)
                        .unwrap_or(true)
            }
            _ => false,
        })
    }

    fn is_content(&self) -> bool {
        self.space.properties.unreached().is_none()
    }

    fn looks_at_whole(&self) -> bool {
        let mut properties = self.space.properties.iter();
        properties.any(|property| match &property.claim {
            Claim::Always(_, Scope::Nodes) => true,
            Claim::Reachable(_, reached, Scope::Nodes) => !reached.is(),
            _ => false,
        })
    }

    fn of_whole(&self, locals: &[u32]) -> (bool, bool) {
        let system = self.space.system;
        let state = &system.assemble(locals);
        let (mut wrong, mut wanted) = (false, false);
        for property in self.space.properties.iter() {
            match &property.claim {
                Claim::Always(holds, Scope::Nodes) => {
                    let judged = self.judged(&property.name, locals, || holds(system, state));
                    wrong |= !judged.unwrap_or(false);
                }
                Claim::Reachable(reaches, reached, Scope::Nodes) if !reached.is() => {
                    let judged = self.judged(&property.name, locals, || reaches(system, state));
                    wanted |= judged.unwrap_or(true);
                }
                _ => {}
            }
        }
        (wrong, wanted)
    }

    fn pairs(&self) -> usize {
        self.pairs.len()
    }

    fn class(&self, invariant: usize, local: u32) -> Option<u32> {
        // A projection that panics puts a local state into a class of its own, which clashes with everything.
        let class = || self.pairs[invariant].class(self.space.system, local);
        self.judged(PAIRS, &[local], class).unwrap_or(Some(PANICS))
    }

    fn clash(&self, invariant: usize, one: u32, two: u32) -> bool {
        one == PANICS || two == PANICS || {
            let clash = || self.pairs[invariant].clash(one, two);
            // Told apart from local states by the invariant's number.
            let classes = [one, two, u32::try_from(invariant).unwrap_or(u32::MAX)];
            self.judged(PAIRS, &classes, clash).unwrap_or(true)
        }
    }

    fn search(
        &self,
        cone: &Cone,
        aim: Aim,
        longest: Option<u64>,
        gauge: &Gauge,
        workers: usize,
    ) -> Explored {
        let system = self.space.system;
        let nodes = 0..system.parts().nodes();
        let only_wanted = !matches!(aim, Aim::Wrong);
        // It ends when everything wanted is reached: with several workers it would depend on their timing which violations
        // are met before that.
        let workers = if only_wanted { 1 } else { workers };
        let looks_at = |state: &Row| {
            let mut locals = nodes.clone().map(|node| system.local_in(state, node));
            !(only_wanted && self.is_content()) && locals.all(|local| cone.holds(local))
        };
        let space = Space {
            restriction: Some(&looks_at),
            ..*self.space
        };
        if let Aim::WantedByChance { walks, steps } = aim {
            let walks = Walks {
                seed: Seed(0),
                count: walks,
                longest: Some(longest.map_or(steps, |longest| longest.min(steps))),
                priority_changes: None,
            };
            return random::explore(&space, None, gauge, workers, &walks).explored;
        }
        let store = Fingerprints::<Nodes, Pair>::new(self.domain, None);
        breadth::explore(&space, &store, gauge, workers, longest)
    }
}

/// Shows every two local states of different nodes that clash under some invariant, for as long as `goes_on` wants more.
///
/// There can be very many of them, so they are not gathered.
pub(super) fn clashes(whole: &dyn Whole, graph: &Graph, mut goes_on: impl FnMut(u32, u32) -> bool) {
    for invariant in 0..whole.pairs() {
        let by_class: Vec<BTreeMap<u32, Vec<u32>>> = graph
            .locals()
            .iter()
            .map(|locals| {
                let mut by_class: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
                for &local in locals {
                    if let Some(class) = whole.class(invariant, local) {
                        by_class.entry(class).or_default().push(local);
                    }
                }
                by_class
            })
            .collect();
        let nodes = by_class.iter().enumerate();
        let of_nodes = nodes.flat_map(|(node, ones)| {
            let others = by_class[node + 1..].iter();
            others.flat_map(move |twos| {
                ones.iter()
                    .flat_map(|one| twos.iter().map(move |two| (one, two)))
            })
        });
        for ((&one, ones), (&two, twos)) in of_nodes {
            if !whole.clash(invariant, one, two) {
                continue;
            }
            let mut pairs = ones
                .iter()
                .flat_map(|one| twos.iter().map(move |two| (*one, *two)));
            if !pairs.all(|(one, two)| goes_on(one, two)) {
                return;
            }
        }
    }
}

/// The class of local states whose projection panics.
const PANICS: u32 = u32::MAX;
