//! Local model checking: nodes are explored one by one, without the network between them.
//!
//! The idea is that of *Model Checking a Networked System Without the Network* (Guerraoui and Yabandeh, NSDI 2011). What
//! a handler does depends on one local state and one input, so local states are explored as such, each message meets
//! each local state of its receiver, and states of the whole system are put together only to be judged. What is then
//! found need not be able to happen, so it is verified before anybody is told.
//!
//! There are three [levels](Pruning) of how much of a message's past is looked at before it meets a local state. Plain
//! and coarse are a [closure](closure) over local states; refined is an [unfolding](unfolding) of histories. All of them
//! are complete: they only leave out what cannot happen. Unless told otherwise a search begins coarse; what it finds is
//! verified by unfolding what could have led there, and when it breeds it starts anew, refined.

mod closure;
mod combine;
mod epochs;
mod graph;
mod labels;
mod spread;
mod unfolding;
mod verify;
mod whole;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::limits::Gauge;
use super::walk::{Explored, LeftOut};
use crate::engine::Pruning;
use crate::tables::Domain;
use crate::target::parts::{Beginning, Parts};
use crate::verdict::LocalWork;
use closure::Closure;
use combine::Combinations;
use graph::Graph;
use spread::Workers;
use unfolding::Unfolding;
use verify::{Confirmed, Verifier};
pub(crate) use whole::Taken;
use whole::Whole;

/// With more local states than this, a coarse search breeds.
const MANY: usize = 20_000;
/// And with more steps than this.
const MANY_STEPS: u64 = 400_000;

/// Where more is let through than can happen there may be no end of histories. After so many, and again after four times
/// as many, a search of the whole system is tried, with so many states for each history.
const FIRST_HISTORIES: usize = 2_000;
const STATES_A_HISTORY: u64 = 10;

/// A search of the whole system that tells whether anything lies beyond the depth bound may have so many states, besides
/// four for each step of the local search.
const FIRST_STATES: u64 = 20_000;

/// An exploration of parts.
pub(crate) struct Local<'a> {
    pub(crate) parts: &'a dyn Parts,
    pub(crate) whole: &'a dyn Whole,
    pub(crate) gauge: &'a Gauge,
    pub(crate) domain: &'a Arc<Domain>,
    /// How many threads there are for now.
    pub(crate) workers: &'a AtomicUsize,
    /// The number of the first.
    pub(crate) first_worker: usize,
    pub(crate) pruning: Pruning,
    pub(crate) longest: Option<u64>,
}

/// How the exploration at one level ended.
enum End {
    /// Something wrong that really happens, or whatever else a search of the whole system came to.
    Found(Explored),
    /// Everything has been looked at.
    Exhausted,
    /// Histories longer than allowed were not followed.
    Deeper,
    /// A limit cut it short.
    Cut,
    /// There is more and more of what cannot happen: another level does better.
    Breeds,
}

impl Local<'_> {
    /// Explores at the given level, or begins coarse and refines.
    pub(crate) fn explore(&self, work: &mut LocalWork) -> Explored {
        let beginnings: Vec<Vec<Beginning>> = (0..self.parts.nodes())
            .map(|node| {
                let mut starts = self.parts.starts(node);
                let mut known = HashSet::new();
                starts.retain(|start| {
                    let is_new = known.insert((start.local, Arc::clone(&start.sent)));
                    is_new && self.whole.is_inside(start.local)
                });
                starts
            })
            .collect();
        let mut exploration = Exploration {
            local: self,
            beginnings,
            work,
            has_walked: false,
        };
        let end = match self.pruning {
            Pruning::Plain => exploration.close(false, false),
            Pruning::Coarse => exploration.close(true, false),
            Pruning::Refined => exploration.refine(),
            Pruning::Adaptive => match exploration.close(true, true) {
                End::Breeds => {
                    self.gauge.restart();
                    exploration.refine()
                }
                end => end,
            },
        };
        match end {
            End::Found(explored) => explored,
            End::Exhausted | End::Breeds | End::Cut => Explored::to_the_end(self.gauge),
            End::Deeper => Explored {
                found: None,
                left_out: Some(LeftOut::Deeper),
            },
        }
    }

    fn workers(&self) -> Workers<'_> {
        Workers {
            count: self.workers,
            first: self.first_worker,
            domain: self.domain,
            gauge: self.gauge,
        }
    }
}

struct Exploration<'a> {
    local: &'a Local<'a>,
    beginnings: Vec<Vec<Beginning>>,
    work: &'a mut LocalWork,
    /// Whether random walks have been made.
    has_walked: bool,
}

/// Local states that something wrong, or something wanted, was met with, and that no execution is known to.
#[derive(Default)]
struct Suspects {
    /// Whether something wrong is among them, and not only something wanted.
    wrong: bool,
    /// By one or two local states.
    locals: BTreeSet<u32>,
    /// By a message that a handler fails on.
    envelopes: BTreeSet<u32>,
    /// By states of the whole system.
    whole: BTreeSet<u32>,
}

impl Suspects {
    fn len(&self) -> usize {
        self.locals.len() + self.envelopes.len() + self.whole.len()
    }

    /// Once everything has been reached that must be reachable, only what is wrong is suspect.
    fn forget_what_is_reached(&mut self, whole: &dyn Whole) {
        if !self.wrong && whole.is_content() {
            *self = Self::default();
        }
    }
}

impl Exploration<'_> {
    fn verifier(&mut self) -> Verifier<'_> {
        Verifier {
            local: self.local,
            beginnings: &self.beginnings,
            work: self.work,
        }
    }

    /// The plain and the coarse level.
    fn close(&mut self, labelled: bool, may_give_up: bool) -> End {
        let Local { parts, whole, .. } = *self.local;
        let local = self.local;
        let inside = |state| whole.is_inside(state);
        let mut graph = Graph::new(parts.nodes());
        let mut closure = Closure::new(parts, local.workers(), &inside, labelled, local.longest);
        let mut combinations = Combinations::new(parts.nodes());
        let mut suspects = Suspects::default();
        let mut looked_at = vec![0; parts.nodes()];
        let mut paired = 0;
        let mut verified = Attempts::default();
        closure.begin(&self.beginnings, &mut graph);
        let mut counted = (0, 0);
        let verification_was_cut = loop {
            let round = closure.round(&mut graph);
            let now = (closure.len() as u64, closure.steps);
            local.gauge.add(now.0 - counted.0, now.1 - counted.1);
            local.gauge.reach(closure.depth);
            counted = now;
            self.work.local_states = graph.len() as u64;
            self.work.messages = graph.messages() as u64;
            if local.gauge.must_end() {
                return End::Cut;
            }
            let last = round.is_none();
            let failing = round.unwrap_or_default().failing;
            self.work.preliminary_violations += failing.len() as u64;
            suspects.wrong |= !failing.is_empty();
            for (state, envelope) in failing {
                suspects.locals.insert(state);
                suspects.envelopes.extend(envelope);
            }
            self.suspect_locals(&graph, &mut looked_at, &mut suspects);
            self.suspect_pairs(&graph, &closure, &mut paired, last, &mut suspects);
            if local.gauge.must_end() {
                return End::Cut;
            }
            if let Some(found) = self.walk(&suspects) {
                return End::Found(found);
            }
            if !self.combine(&graph, &mut combinations, &mut suspects) {
                return End::Cut;
            }
            let breeds = closure.len() > MANY || closure.steps > MANY_STEPS;
            if may_give_up && breeds {
                return End::Breeds;
            }
            suspects.forget_what_is_reached(whole);
            if last || verified.is_worthwhile(&suspects, &graph, closure.steps) {
                let most = (!last || may_give_up).then(|| 1_000 + 4 * closure.steps);
                let confirmed = self.verifier().verify(&graph, &suspects, most);
                match confirmed {
                    Confirmed::Found(found) => return End::Found(found),
                    Confirmed::Cut if local.gauge.must_end() => return End::Cut,
                    Confirmed::Cut if last => return End::Breeds,
                    // The last attempt knows every suspect and every step.
                    _ if last => break matches!(confirmed, Confirmed::Deeper),
                    _ => {}
                }
                verified.remember(&suspects, &graph, closure.steps);
            }
        };
        self.conclude(verification_was_cut || closure.cut_deeper(), closure.steps)
    }

    /// Judges new local states by themselves.
    fn suspect_locals(&mut self, graph: &Graph, looked_at: &mut [usize], suspects: &mut Suspects) {
        for (locals, looked_at) in graph.locals().iter().zip(looked_at) {
            for &local in &locals[*looked_at..] {
                if self.local.whole.is_wrong(local) {
                    self.work.preliminary_violations += 1;
                    suspects.wrong = true;
                    suspects.locals.insert(local);
                }
                if self.local.whole.is_wanted(local) {
                    suspects.locals.insert(local);
                }
            }
            *looked_at = locals.len();
        }
    }

    /// Judges pairs of local states whose classes clash.
    fn suspect_pairs(
        &mut self,
        graph: &Graph,
        closure: &Closure<'_>,
        looked_at: &mut usize,
        last: bool,
        suspects: &mut Suspects,
    ) {
        // What two labels do not allow, later ones may: only the last look is complete.
        if !last && closure.len() < 2 * *looked_at {
            return;
        }
        *looked_at = closure.len();
        let gauge = self.local.gauge;
        let mut looks = 0_u32;
        whole::clashes(self.local.whole, graph, |one, two| {
            let known = suspects.locals.contains(&one) && suspects.locals.contains(&two);
            if !known && closure.meet(one, two) {
                self.work.preliminary_violations += 1;
                self.work.system_states += 1;
                suspects.wrong = true;
                suspects.locals.extend([one, two]);
            }
            looks = looks.wrapping_add(1);
            !looks.is_multiple_of(1024) || !gauge.must_end()
        });
    }

    /// Once something is wanted and looks as if it could be reached, tries whether random walks reach it: as a rule they
    /// do, and nothing needs to be put together or verified for it.
    fn walk(&mut self, suspects: &Suspects) -> Option<Explored> {
        let whole = self.local.whole;
        let is_wanted = suspects.len() > 0 || whole.looks_at_whole();
        if self.has_walked || !is_wanted || whole.is_content() {
            return None;
        }
        self.has_walked = true;
        self.verifier().walk()
    }

    /// Judges states of the whole system that new local states make possible; false when there is no time for it.
    fn combine(
        &mut self,
        graph: &Graph,
        combinations: &mut Combinations,
        suspects: &mut Suspects,
    ) -> bool {
        if !self.local.whole.looks_at_whole() {
            return true;
        }
        let found = combinations.judge(graph, self.local.whole, &self.local.workers());
        self.work.system_states += found.judged;
        self.work.preliminary_violations += found.wrong;
        suspects.wrong |= found.wrong > 0;
        suspects.whole.extend(found.locals);
        !self.local.gauge.must_end()
    }

    /// How an exploration of so many steps ends that has found nothing wrong.
    fn conclude(&mut self, cut_deeper: bool, steps: u64) -> End {
        if cut_deeper {
            // Perhaps only what cannot happen lies beyond the depth bound. A search of the whole system up to the bound
            // tells, where it takes no more than its share of the time.
            let most = FIRST_STATES + 4 * steps;
            return match self.try_everything(most) {
                Some(end) => end,
                None if self.local.gauge.must_end() => End::Cut,
                None => End::Deeper,
            };
        }
        if !self.local.whole.bounds_are_local() {
            // Whether a bound on all nodes at once can be judged at all is not seen node by node.
            return self.search_everything();
        }
        End::Exhausted
    }

    fn search_everything(&mut self) -> End {
        self.local.gauge.restart();
        let explored = self.verifier().search_everything();
        match explored {
            Explored {
                found: None,
                left_out: None,
            } => End::Exhausted,
            _ => End::Found(explored),
        }
    }

    /// Searches the whole system, but gives up after so many states.
    fn try_everything(&mut self, most: u64) -> Option<End> {
        match self.verifier().try_everything(most) {
            Confirmed::Found(found) => Some(End::Found(found)),
            Confirmed::Deeper => Some(End::Deeper),
            Confirmed::Rejected => Some(End::Exhausted),
            Confirmed::Cut => None,
        }
    }

    /// The refined level.
    fn refine(&mut self) -> End {
        let Local { parts, whole, .. } = *self.local;
        if !unfolding::can_unfold(parts, self.local.longest) {
            return self.search_everything();
        }
        let local = self.local;
        let inside = |state| whole.is_inside(state);
        let mut graph = Graph::new(parts.nodes());
        let mut unfolding =
            Unfolding::new(parts, local.workers(), &inside, local.domain, local.longest);
        let mut combinations = Combinations::new(parts.nodes());
        let mut suspects = Suspects::default();
        let mut verified = Attempts::default();
        let mut examined = verify::Examined::default();
        let mut patience = FIRST_HISTORIES;
        let mut counted = (0, 0);
        let mut round = Some(unfolding.begin(self.beginnings.clone(), &mut graph));
        while let Some(this) = round {
            let now = (unfolding.len() as u64, unfolding.counts.steps);
            local.gauge.add(now.0 - counted.0, now.1 - counted.1);
            local.gauge.reach(unfolding.counts.depth);
            local.gauge.frontier.store(unfolding.open() as u64, Relaxed);
            counted = now;
            self.work.local_states = graph.len() as u64;
            self.work.messages = graph.messages() as u64;
            if local.gauge.must_end() {
                return End::Cut;
            }
            if !is_exact(local, &unfolding) && unfolding.len() > patience {
                patience *= 4;
                if let Some(end) = self.try_everything(unfolding.len() as u64 * STATES_A_HISTORY) {
                    return end;
                }
            }
            let confirmed =
                self.verifier()
                    .examine(&unfolding, &this, &mut examined, &mut suspects);
            if let Some(found) = confirmed {
                return End::Found(found);
            }
            if let Some(found) = self.walk(&suspects) {
                return End::Found(found);
            }
            if !self.combine(&graph, &mut combinations, &mut suspects) {
                return End::Cut;
            }
            suspects.forget_what_is_reached(whole);
            if verified.is_worthwhile(&suspects, &graph, unfolding.counts.steps) {
                let most = 1_000 + 4 * unfolding.counts.steps;
                match self.verifier().search(&graph, &suspects, Some(most)) {
                    Confirmed::Found(found) => return End::Found(found),
                    Confirmed::Cut if local.gauge.must_end() => return End::Cut,
                    Confirmed::Cut | Confirmed::Deeper | Confirmed::Rejected => {}
                }
                verified.remember(&suspects, &graph, unfolding.counts.steps);
            }
            round = unfolding.round(&mut graph);
        }
        if local.gauge.must_end() {
            return End::Cut;
        }
        let mut cut_deeper = unfolding.counts.cut_deeper;
        if suspects.len() > 0 {
            match self.verifier().search(&graph, &suspects, None) {
                Confirmed::Found(found) => return End::Found(found),
                Confirmed::Cut => return End::Cut,
                Confirmed::Deeper => cut_deeper = true,
                Confirmed::Rejected => {}
            }
        }
        self.conclude(cut_deeper, unfolding.counts.steps)
    }
}

/// Whether an unfolding lets nothing through but what can happen, and so ends where the system is finite.
fn is_exact(local: &Local<'_>, unfolding: &Unfolding<'_>) -> bool {
    unfolding.is_exact() && local.whole.bounds_are_local()
}

/// What suspects have been tried to verify, and when that is worth another try.
#[derive(Default)]
struct Attempts {
    suspects: usize,
    known_steps: usize,
    after: u64,
}

impl Attempts {
    /// Whether there is something new, and verifying it will not take the greater part of the time.
    fn is_worthwhile(&self, suspects: &Suspects, graph: &Graph, steps: u64) -> bool {
        suspects.len() > 0
            && (suspects.len(), graph.steps()) != (self.suspects, self.known_steps)
            && steps >= 2 * self.after
    }

    fn remember(&mut self, suspects: &Suspects, graph: &Graph, steps: u64) {
        *self = Self {
            suspects: suspects.len(),
            known_steps: graph.steps(),
            after: steps,
        };
    }
}
