//! Makes a long counterexample short before a person sees it.
//!
//! First events are left out, in large blocks, then in smaller ones down to single events, from the end to the start: the
//! rest is taken in order, skipping what is no longer enabled. Then a breadth-first search over a modest number of states looks for an execution
//! that is shorter still; if it gets through every shorter one, what there is is the shortest.

use super::breadth;
use super::limits::Gauge;
use super::path::{Execution, Path, Wrong};
use super::store::Fingerprints;
use super::walk::{LeftOut, Space};
use crate::system::System;
use crate::tables::{Domain, Pair};

const STATES: u64 = 300_000;
/// How many steps may be taken in all to find out which events can go.
const STEPS: usize = 3_000_000;

/// A path to the same complaint, at most as long, and whether it is known to be the shortest.
pub(super) fn shorten<S: System>(space: &Space<'_, S>, path: Path, wrong: &Wrong) -> (Path, bool) {
    let Some(execution) = Execution::along(space.system, &path) else {
        return (path, false);
    };
    let events: Vec<S::Event> = execution.steps.into_iter().map(|step| step.event).collect();
    let mut best = path;
    let mut kept = events;
    let mut block = (kept.len() / 2).max(1);
    let mut steps = 0;
    loop {
        let mut at = kept.len();
        while at > 0 && steps < STEPS {
            steps += kept.len();
            let from = at.saturating_sub(block);
            let without: Vec<S::Event> = kept[..from].iter().chain(&kept[at..]).cloned().collect();
            if let Some((path, taken)) = retake(space, best.start, &without, wrong)
                && taken.len() < kept.len()
            {
                best = path;
                at = from.min(taken.len());
                kept = taken;
            } else {
                at = from;
            }
        }
        if block == 1 || steps >= STEPS {
            break;
        }
        block /= 2;
    }
    search(space, best, wrong)
}

/// Takes `events` in order as far as they are enabled, until the same complaint comes up.
fn retake<S: System>(
    space: &Space<'_, S>,
    start: usize,
    events: &[S::Event],
    wrong: &Wrong,
) -> Option<(Path, Vec<S::Event>)> {
    let initial = space.initial().ok()?;
    let mut state = initial.into_iter().find(|(index, _)| *index == start)?.1;
    let mut path = Path {
        start,
        events: Vec::new(),
    };
    let mut taken = Vec::new();
    let mut enabled = Vec::new();
    let complains = |found: Option<Wrong>| found.is_some_and(|found| found.same_kind(wrong));
    if complains(space.judge(&state)) {
        return Some((path, taken));
    }
    for event in events {
        enabled.clear();
        if complains(space.events(&state, &mut enabled)) {
            return Some((path, taken));
        }
        let Some(position) = enabled.iter().position(|known| known == event) else {
            continue;
        };
        let Some(successor) = space.take(&state, &enabled[position]) else {
            continue;
        };
        path.events.push(position);
        taken.push(enabled[position].clone());
        match successor {
            Err(failure) => {
                return complains(Some(Wrong::Failed(failure))).then_some((path, taken));
            }
            Ok(next) => {
                if complains(space.judge(&next)) {
                    return Some((path, taken));
                }
                state = next;
            }
        }
    }
    enabled.clear();
    complains(space.events(&state, &mut enabled)).then_some((path, taken))
}

fn search<S: System>(space: &Space<'_, S>, best: Path, wrong: &Wrong) -> (Path, bool) {
    let Some(shorter) = (best.events.len() as u64).checked_sub(1) else {
        return (best, true);
    };
    let gauge = Gauge::up_to(STATES);
    let store = Fingerprints::<Pair>::new(&Domain::new(1));
    let explored = breadth::explore(space, &store, &gauge, 1, Some(shorter));
    match (explored.found, explored.left_out) {
        (Some((path, found)), _) if found.same_kind(wrong) => (path, true),
        (None, None | Some(LeftOut::Deeper)) => (best, true),
        _ => (best, false),
    }
}
