//! Makes a long counterexample short before a person sees it.
//!
//! First events are left out, in large blocks, then in smaller ones down to single events, from the end to the start: the
//! rest is taken in order, skipping what is no longer enabled. Then a breadth-first search over a modest number of states looks for an execution
//! that is shorter still; if it gets through every shorter one, what there is is the shortest.

use crate::explore::breadth;
use crate::explore::limits::Gauge;
use crate::explore::path::{Execution, Path, Wrong};
use crate::explore::sample::Sample;
use crate::explore::visited::{Exact, Fingerprints};
use crate::explore::walk::{LeftOut, Space, examine};
use crate::run::Run;
use crate::system::System;
use crate::tables::{Domain, Pair};

const STATES: u64 = 300_000;
/// How many steps may be taken in all to find out which events can go.
const STEPS: usize = 3_000_000;

/// A path to the same complaint, at most as long, and whether it is known to be the shortest. Where `exact`, states are
/// told apart as a whole.
///
/// The search that `outer` belongs to may have to end: then what there is by then is short enough.
pub(super) fn shorten<S: System>(
    space: &Space<'_, S>,
    path: &Path,
    execution: &Execution<S>,
    wrong: &Wrong,
    exact: bool,
    outer: &Gauge,
) -> (Path, bool) {
    let events = execution.steps.iter().map(|step| step.event.clone());
    let mut kept: Vec<S::Event> = events.collect();
    let mut best = path.clone();
    let mut block = (kept.len() / 2).max(1);
    let mut steps = 0;
    loop {
        let mut at = kept.len();
        while at > 0 && steps < STEPS && !outer.must_end() {
            steps += kept.len();
            let from = at.saturating_sub(block);
            let without: Vec<S::Event> = kept[..from].iter().chain(&kept[at..]).cloned().collect();
            if let Some((events, taken)) = retake(space, &execution.start, &without, wrong)
                && taken.len() < kept.len()
            {
                best.events = events;
                at = from.min(taken.len());
                kept = taken;
            } else {
                at = from;
            }
        }
        if block == 1 || steps >= STEPS || outer.must_end() {
            break;
        }
        block /= 2;
    }
    search(space, best, wrong, exact, outer)
}

/// Takes `events` in order as far as they are enabled, until something is wrong, which must be the same complaint: a search
/// ends at the first, and so does a replay. The positions of those that were taken, and the events themselves.
fn retake<S: System>(
    space: &Space<'_, S>,
    start: &S::State,
    events: &[S::Event],
    wrong: &Wrong,
) -> Option<(Vec<usize>, Vec<S::Event>)> {
    let mut run = space.system.replay(start, None).ok()?;
    let mut taken = Vec::new();
    let mut found = space.judge(run.state());
    for event in events {
        found = found.or_else(|| ending(space, &mut *run));
        if found.is_some() {
            break;
        }
        let enabled = run.events().ok()?;
        let Some(position) = enabled.iter().position(|known| known == event) else {
            continue;
        };
        let taking = run.take(position);
        let holds = match taking {
            Ok(()) => space.holds(&*run),
            Err(failure) => Err(failure),
        };
        if holds == Ok(false) {
            run.back_to(run.steps() - 1).ok()?;
            continue;
        }
        taken.push(event.clone());
        found = match holds.and_then(|_| examine(space.system, run.state())) {
            Err(failure) => Some(Wrong::Failed(failure)),
            Ok(()) => {
                let state = run.state();
                // An `Eq` or `Clone` that panics is met only by a search that compares or copies the state.
                let compare = || space.copy_and_compare(state).err().map(Wrong::Failed);
                let compare = || compare().filter(|failure| failure.same_kind(wrong));
                space.judge(state).or_else(compare)
            }
        };
    }
    let found = found.or_else(|| ending(space, &mut *run))?;
    found.same_kind(wrong).then(|| (run.positions(), taken))
}

/// What is wrong with there being no events but those that are enabled in a run.
fn ending<S: System>(space: &Space<'_, S>, run: &mut dyn Run<S>) -> Option<Wrong> {
    match run.events() {
        Err(failure) => Some(Wrong::Failed(failure)),
        Ok(_) => space.is_stuck(run),
    }
}

fn search<S: System>(
    space: &Space<'_, S>,
    best: Path,
    wrong: &Wrong,
    exact: bool,
    outer: &Gauge,
) -> (Path, bool) {
    let Some(shorter) = (best.events.len() as u64).checked_sub(1) else {
        return (best, true);
    };
    let gauge = Gauge::inside(outer, Some(STATES));
    let domain = &Domain::new(1);
    // Whether states are taken for others must not depend on what several workers have met before.
    let afresh = space.system.afresh();
    let system = afresh.as_ref().unwrap_or(space.system);
    let space = &Space {
        system,
        domain,
        first_worker: 0,
        ..*space
    };
    let sample = (!S::COMPARES_PARTS && !exact).then(Sample::new);
    let explored = if exact {
        let store = Exact::new(domain);
        breadth::explore(space, &store, &gauge, 1, Some(shorter))
    } else {
        let store = Fingerprints::<S, Pair>::new(domain, sample.as_ref());
        breadth::explore(space, &store, &gauge, 1, Some(shorter))
    };
    let took_for_another = match &sample {
        _ if exact => false,
        Some(sample) => sample.unequal().is_some(),
        None => system.coarse_hash().is_some(),
    };
    match (explored.found, explored.left_out) {
        (Some((path, found)), _) if found.same_kind(wrong) => (path, !took_for_another),
        (None, None | Some(LeftOut::Deeper)) => (best, !took_for_another),
        _ => (best, false),
    }
}
