//! Verification: whether what was found among parts can really happen.
//!
//! Something wrong with a history, or with two histories whose pasts fit together, is looked for by a breadth-first
//! search of the whole system that may only go through the local states of these histories; what it finds is an
//! execution. Something wrong with local states is verified by unfolding everything that could have led to them. Where
//! that is not exact, or a property looks at all nodes at once, the search goes through all that could have led there.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use super::graph::{Cone, Graph};
use super::unfolding::{self, Round, Unfolding};
use super::whole::Aim;
use super::{Local, Suspects};
use crate::explore::limits::Gauge;
use crate::explore::walk::{Explored, LeftOut};
use crate::target::parts::Beginning;
use crate::verdict::LocalWork;

pub(super) struct Verifier<'a> {
    pub(super) local: &'a Local<'a>,
    pub(super) beginnings: &'a [Vec<Beginning>],
    pub(super) work: &'a mut LocalWork,
}

/// What verification came to.
pub(super) enum Confirmed {
    /// It happens.
    Found(Explored),
    /// It cannot happen, as far as is known so far.
    Rejected,
    /// It does not happen within the depth bound, and something lies beyond.
    Deeper,
    /// A limit cut it short.
    Cut,
}

/// After so many histories for which no execution was found, single ones are no longer tried.
const PATIENCE: u32 = 64;

/// Random walks end after so many states.
const SHORT: u64 = 200_000;

/// What of an unfolding has been examined.
#[derive(Default)]
pub(super) struct Examined {
    locals: HashSet<u32>,
    /// For each invariant of pairs.
    pairs: Vec<Classified>,
    /// How many histories no execution was found for.
    in_vain: u32,
}

/// The points of an unfolding by their classes under an invariant of pairs.
#[derive(Default)]
struct Classified {
    /// The class of each point.
    classes: Vec<Option<u32>>,
    /// The classes that begin at a point or in what continues it, a bit each; some share one.
    below: Vec<u64>,
    /// For each class those that it clashes with: of nodes with greater ids, of nodes with smaller ones.
    clashes: HashMap<u32, [u64; 2]>,
}

fn bit(class: u32) -> u64 {
    1 << (class % 64)
}

impl Classified {
    /// Takes note of a class that comes up.
    fn know(&mut self, class: u32, clash: impl Fn(u32, u32) -> bool) {
        if self.clashes.contains_key(&class) {
            return;
        }
        self.clashes.insert(class, [0, 0]);
        let mut own = [0, 0];
        for (&other, theirs) in &mut self.clashes {
            if clash(class, other) {
                own[0] |= bit(other);
                theirs[1] |= bit(class);
            }
            if clash(other, class) {
                own[1] |= bit(other);
                theirs[0] |= bit(class);
            }
        }
        self.clashes.insert(class, own);
    }

    /// Whether a class begins at a point.
    fn begins(&self, unfolding: &Unfolding<'_>, point: u32) -> Option<u32> {
        let before = unfolding.parent(point);
        let before = before.and_then(|before| self.classes[before as usize]);
        self.classes[point as usize].filter(|&class| Some(class) != before)
    }
}

impl Verifier<'_> {
    /// Judges the new points of an unfolding. What is wrong with them and cannot be confirmed at once becomes a suspect.
    pub(super) fn examine(
        &mut self,
        unfolding: &Unfolding<'_>,
        round: &Round,
        examined: &mut Examined,
        suspects: &mut Suspects,
    ) -> Option<Explored> {
        self.work.preliminary_violations += round.failing.len() as u64;
        for past in &round.failing {
            if let Some(found) = self.confirm(unfolding, past, None, examined, suspects) {
                return Some(found);
            }
        }
        let new = round.first..unfolding.len() as u32;
        for point in new.clone() {
            let local = unfolding.local(point);
            if local == u32::MAX || !examined.locals.insert(local) {
                continue;
            }
            let wrong = self.local.whole.is_wrong(local);
            self.work.preliminary_violations += u64::from(wrong);
            if wrong || self.local.whole.is_wanted(local) {
                let past = unfolding.past(point);
                let wanted = (!wrong).then_some(local);
                if let Some(found) = self.confirm(unfolding, past, wanted, examined, suspects) {
                    return Some(found);
                }
            }
        }
        for invariant in 0..self.local.whole.pairs() {
            let clashes = self.clashes(unfolding, new.clone(), invariant, examined);
            self.work.preliminary_violations += clashes.len() as u64;
            self.work.system_states += clashes.len() as u64;
            for past in clashes {
                if let Some(found) = self.confirm(unfolding, &past, None, examined, suspects) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// Pasts in which two points have classes that clash, one of them new: those with the fewest steps, and so at least
    /// one wherever there are any.
    fn clashes(
        &self,
        unfolding: &Unfolding<'_>,
        new: std::ops::Range<u32>,
        invariant: usize,
        examined: &mut Examined,
    ) -> Vec<Box<[u32]>> {
        let count = self.local.whole.pairs();
        examined.pairs.resize_with(count, Classified::default);
        let known = &mut examined.pairs[invariant];
        let mut entries = Vec::new();
        for point in new {
            let local = unfolding.local(point);
            let class = (local != u32::MAX)
                .then(|| self.local.whole.class(invariant, local))
                .flatten();
            known.classes.push(class);
            known.below.push(0);
            let Some(class) = known.begins(unfolding, point) else {
                continue;
            };
            known.know(class, |one, two| {
                self.local.whole.clash(invariant, one, two)
            });
            entries.push(point);
            let mut at = Some(point);
            while let Some(this) = at
                && known.below[this as usize] & bit(class) == 0
            {
                known.below[this as usize] |= bit(class);
                at = unfolding.parent(this);
            }
        }
        let known = &*known;
        let found = self.local.workers().spread(entries.len(), |range| {
            let mut found = Vec::new();
            for &point in &entries[range] {
                self.clashes_with(unfolding, point, invariant, known, &mut found);
            }
            found
        });
        found.into_iter().flatten().collect()
    }

    /// Pasts in which a point at which its class begins clashes with another node's.
    fn clashes_with(
        &self,
        unfolding: &Unfolding<'_>,
        point: u32,
        invariant: usize,
        known: &Classified,
        found: &mut Vec<Box<[u32]>>,
    ) {
        let node = unfolding.node(point);
        let class = known.classes[point as usize].expect("a class begins here");
        let mut open = Vec::new();
        for other in (0..unfolding.past(point).len()).filter(|&other| other != node) {
            let clash = |theirs: u32| {
                if node < other {
                    self.local.whole.clash(invariant, class, theirs)
                } else {
                    self.local.whole.clash(invariant, theirs, class)
                }
            };
            let from = unfolding.past(point)[other];
            if known.classes[from as usize].is_some_and(clash) {
                found.push(unfolding.past(point).into());
            }
            let sought = known.clashes[&class][usize::from(other < node)];
            let is_worthwhile = |&this: &u32| known.below[this as usize] & sought != 0;
            open.extend(unfolding.children(from).filter(is_worthwhile));
            while let Some(this) = open.pop() {
                if !unfolding.meet(point, this) {
                    continue;
                }
                if known.begins(unfolding, this).is_some_and(clash) {
                    found.push(unfolding.joined(point, this));
                    continue;
                }
                open.extend(unfolding.children(this).filter(is_worthwhile));
            }
        }
    }

    /// Looks for an execution through the histories of a past, to something wrong or to a local state that is `wanted`.
    /// Where there is none, they become suspects.
    fn confirm(
        &mut self,
        unfolding: &Unfolding<'_>,
        past: &[u32],
        wanted: Option<u32>,
        examined: &mut Examined,
        suspects: &mut Suspects,
    ) -> Option<Explored> {
        let wrong = wanted.is_none();
        if examined.in_vain < PATIENCE {
            let cone = unfolding.cone(past);
            let aim = match wanted {
                Some(_) => Aim::Wanted,
                None => Aim::Wrong,
            };
            // Where more and more is in flight, even few local states have no end of states of the whole system.
            let most = 1_000 + 4 * unfolding.counts.steps;
            match self.search_through(&cone, Some(most), aim) {
                Confirmed::Found(found) => return Some(found),
                Confirmed::Cut => examined.in_vain += 1,
                Confirmed::Rejected | Confirmed::Deeper
                    if wanted.is_some_and(|local| !self.local.whole.is_wanted(local)) =>
                {
                    return None;
                }
                Confirmed::Rejected | Confirmed::Deeper => {
                    let exact = || {
                        super::is_exact(self.local, unfolding)
                            && self.local.longest.is_none()
                            && self.local.whole.tells_states_apart()
                    };
                    assert!(
                        !cfg!(test) || !wrong || !exact(),
                        "what fits together happens"
                    );
                    examined.in_vain += 1;
                }
            }
        }
        let locals = past.iter().map(|&point| unfolding.local(point));
        suspects.wrong |= wrong;
        suspects
            .locals
            .extend(locals.filter(|&local| local != u32::MAX));
        None
    }

    /// Verifies suspects of a search among local states: unfolds what could have led to them, then, where that does not
    /// decide, searches it.
    pub(super) fn verify(
        &mut self,
        graph: &Graph,
        suspects: &Suspects,
        most: Option<u64>,
    ) -> Confirmed {
        let mut left = Suspects {
            wrong: suspects.wrong && !suspects.whole.is_empty(),
            whole: suspects.whole.clone(),
            ..Suspects::default()
        };
        let whole = self.local.whole;
        let is_open = || suspects.wrong || !whole.is_content();
        if !unfolding::can_unfold(self.local.parts, self.local.longest) {
            return self.search(graph, suspects, most);
        }
        let mut unfolded = Confirmed::Rejected;
        if !suspects.locals.is_empty() && is_open() {
            let locals = suspects.locals.iter().copied();
            let cone = graph.cone(locals, &suspects.envelopes);
            match self.unfold(&cone, &is_open, &mut left, most) {
                Some(undecided @ (Confirmed::Rejected | Confirmed::Deeper)) => unfolded = undecided,
                Some(decided) => return decided,
                None => return self.search(graph, suspects, most),
            }
        }
        if left.len() == 0 {
            return unfolded;
        }
        match self.search(graph, &left, most) {
            Confirmed::Rejected => unfolded,
            searched => searched,
        }
    }

    /// Unfolds a cone for as long as something is open. `None` when that does not seem to have an end.
    fn unfold(
        &mut self,
        cone: &Cone,
        is_open: &dyn Fn() -> bool,
        left: &mut Suspects,
        most: Option<u64>,
    ) -> Option<Confirmed> {
        let local = self.local;
        let Local { parts, whole, .. } = *local;
        let inside = |state| cone.holds(state) && whole.is_inside(state);
        let mut graph = Graph::new(parts.nodes());
        let mut unfolding =
            Unfolding::new(parts, local.workers(), &inside, local.domain, local.longest);
        self.work.soundness_checks += 1;
        let mut examined = Examined::default();
        let mut round = Some(unfolding.begin(self.beginnings.to_vec(), &mut graph));
        let mut counted = 0;
        while let Some(this) = round
            && is_open()
        {
            self.work.soundness_states += unfolding.len() as u64 - counted;
            counted = unfolding.len() as u64;
            if let Some(found) = self.examine(&unfolding, &this, &mut examined, left) {
                return Some(Confirmed::Found(found));
            }
            if local.gauge.must_end() || most.is_some_and(|most| unfolding.counts.steps > most) {
                return Some(Confirmed::Cut);
            }
            if !super::is_exact(local, &unfolding) && unfolding.len() > super::MANY {
                return None;
            }
            round = unfolding.round(&mut graph);
        }
        if local.gauge.must_end() {
            return Some(Confirmed::Cut);
        }
        Some(match unfolding.counts.cut_deeper && is_open() {
            true => Confirmed::Deeper,
            false => Confirmed::Rejected,
        })
    }

    /// Looks for what must be reachable on a few random walks, then, where much would have to be put together for it, on
    /// many. Something wrong can be met on the way as well.
    pub(super) fn walk(&mut self) -> Option<Explored> {
        let whole = self.local.whole;
        for (walks, steps) in [(16, 1_000), (4_096, 200)] {
            let aim = Aim::WantedByChance { walks, steps };
            let searched = self.search_through(&Cone::EVERYTHING, Some(SHORT), aim);
            if let Confirmed::Found(found) = searched {
                return Some(found);
            }
            if whole.is_content() || !whole.looks_at_whole() {
                break;
            }
        }
        None
    }

    /// Searches the whole system for anything that is wrong, as breadth first does.
    pub(super) fn search_everything(&mut self) -> Explored {
        let gauge = self.local.gauge;
        let explored = self.search_whole(&Cone::EVERYTHING, Aim::Wrong, gauge);
        self.work.system_states += gauge.states.load(Ordering::Relaxed);
        explored
    }

    /// The same up to a number of states.
    pub(super) fn try_everything(&mut self, most: u64) -> Confirmed {
        self.search_through(&Cone::EVERYTHING, Some(most), Aim::Wrong)
    }

    /// Searches the whole system for an execution to suspects.
    pub(super) fn search(
        &mut self,
        graph: &Graph,
        suspects: &Suspects,
        most: Option<u64>,
    ) -> Confirmed {
        let all = suspects.locals.iter().chain(&suspects.whole).copied();
        let cone = graph.cone(all, &suspects.envelopes);
        let aim = match suspects.wrong {
            true => Aim::Wrong,
            false => Aim::Wanted,
        };
        let searched = self.search_through(&cone, most, aim);
        // What an execution does that does not matter to where it leads can matter to what it may do: it makes room on
        // links, and takes the system past a bound on all nodes.
        let decides = self.local.whole.bounds_are_local() && !self.local.parts.links().limited;
        let undecided = matches!(searched, Confirmed::Rejected | Confirmed::Deeper);
        if undecided && !decides && !graph.is_within(&cone) {
            return self.search_through(&Cone::EVERYTHING, most, aim);
        }
        searched
    }

    /// Searches the whole system, but only through the local states of a cone.
    fn search_through(&mut self, cone: &Cone, most: Option<u64>, aim: Aim) -> Confirmed {
        let Local { whole, gauge, .. } = *self.local;
        let counts = Gauge::inside(gauge, most);
        self.work.soundness_checks += 1;
        let explored = self.search_whole(cone, aim, &counts);
        self.work.soundness_states += counts.states.load(Ordering::Relaxed);
        match explored {
            Explored { found: Some(_), .. }
            | Explored {
                left_out: Some(LeftOut::Collision),
                ..
            } => Confirmed::Found(explored),
            Explored {
                left_out: Some(LeftOut::Cut(_)),
                ..
            } => Confirmed::Cut,
            Explored {
                left_out: Some(LeftOut::Deeper),
                ..
            } if matches!(aim, Aim::Wrong) || !whole.is_content() => Confirmed::Deeper,
            _ => Confirmed::Rejected,
        }
    }

    fn search_whole(&self, cone: &Cone, aim: Aim, gauge: &Gauge) -> Explored {
        let local = self.local;
        let workers = local.workers.load(Ordering::Relaxed);
        let explored = local.whole.search(cone, aim, local.longest, gauge, workers);
        // Its leader has left.
        local.domain.quiesce(local.first_worker);
        explored
    }
}
