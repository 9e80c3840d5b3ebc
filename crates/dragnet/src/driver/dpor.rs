//! Schedules of multithreaded programs: those that matter, and the simplest that ends like a given one.

use std::sync::atomic::Ordering::Relaxed;

use super::engines::Searched;
use super::run::Prepared;
use crate::engine::{Dpor, EngineName};
use crate::explore::draw::Walks;
use crate::explore::limits::Gauge;
use crate::explore::path::{Path, Wrong};
use crate::explore::random;
use crate::explore::schedules::{self, Schedules};
use crate::explore::walk::{Explored, LeftOut};
use crate::panics;
use crate::quantity::Seed;
use crate::system::FailureKind;
use crate::target::threads::executor::{Finish, Transition};
use crate::target::threads::{Moments, round_bound, seed_bound};
use crate::verdict::ScheduleWork;

/// Explores the schedules of a multithreaded program that matter.
pub(super) fn explore(
    prepared: &Prepared<Moments>,
    dpor: Dpor,
    gauge: Gauge,
    workers: usize,
) -> Searched {
    let schedules = schedules(prepared, dpor, &gauge, workers);
    let mut leaked = None;
    let ended = panics::catch_limit(|| {
        let ended = schedules.explore();
        let executions = ended.executions + ended.blocked_executions;
        if ended.found.is_none() && executions <= workers as u64 {
            leaked = leaked_object(prepared, &gauge);
        }
        ended
    });
    let (explored, ended) = match ended {
        Ok(ended) => {
            let found = match &ended.found {
                _ if leaked.is_some() => leaked,
                Some((decisions, finish)) => {
                    let (decisions, finish) = (decisions.clone(), finish.clone());
                    Some(simplest(prepared, &schedules, decisions, finish))
                }
                None => None,
            };
            let left_out = match &found {
                Some(_) => None,
                None => left_out(&ended, &gauge),
            };
            (Explored { found, left_out }, ended)
        }
        Err(limit) => {
            let explored = Explored::found(Path::starting(0), Wrong::Failed(limit));
            (explored, schedules::Explored::default())
        }
    };
    Searched {
        explored,
        schedules: Some(ScheduleWork {
            reduction: dpor.reduction,
            executions: ended.executions,
            blocked_executions: ended.blocked_executions,
            scheduling_points: ended.scheduling_points,
            weakly_ordered: ended.weakly_ordered,
        }),
        bounds: bounds(&prepared.system, dpor, &ended),
        ..Searched::nothing(EngineName::Dpor, gauge)
    }
}

/// Where schedules were drawn, says what that took, and puts the simplest execution with the same end in the place of what was
/// found.
pub(super) fn simplify_walk(
    prepared: &Prepared<Moments>,
    workers: usize,
    ended: u64,
    searched: &mut Searched,
) {
    // Where states are judged, an execution with the same end may not show what is wrong.
    if !prepared.within.is_empty() || !prepared.properties.are_about_the_end() {
        return;
    }
    let dpor = Dpor::new();
    searched.schedules = Some(ScheduleWork {
        reduction: dpor.reduction,
        executions: ended,
        blocked_executions: 0,
        scheduling_points: searched.gauge.transitions.load(Relaxed),
        weakly_ordered: prepared.system.weakly_ordered(),
    });
    if searched.explored.found.is_none() && ended <= workers as u64 {
        searched.explored.found = leaked_object(prepared, &searched.gauge);
    }
    let Some((path, wrong)) = &searched.explored.found else {
        return;
    };
    let finish = match wrong {
        Wrong::Failed(failure) => Finish::Failed(failure.clone()),
        _ => Finish::Stuck,
    };
    if wrong.is_violation()
        && let Some(decisions) = prepared.system.decisions(&path.events)
    {
        // Which walk goes wrong first does not depend on how many workers there are.
        let schedules = schedules(prepared, dpor, &searched.gauge, 1);
        searched.explored.found = Some(simplest(prepared, &schedules, decisions, finish));
    }
}

/// How the schedules of a program are explored.
fn schedules<'a>(
    prepared: &'a Prepared<Moments>,
    dpor: Dpor,
    gauge: &'a Gauge,
    workers: usize,
) -> Schedules<'a> {
    Schedules {
        program: prepared.system.program(),
        reduction: dpor.reduction,
        longest: prepared.options.longest(),
        preemptions: dpor.preemptions,
        gauge,
        workers,
        watch: &|_, finish| *finish == Finish::Complete,
    }
}

/// The failure of an object that an execution takes from the one before it on the same OS thread. Where each OS thread has run
/// one execution at most, one of them runs two more.
fn leaked_object(prepared: &Prepared<Moments>, gauge: &Gauge) -> Option<(Path, Wrong)> {
    let walks = Walks {
        seed: Seed(0),
        count: 2,
        longest: prepared.options.longest(),
        priority_changes: None,
    };
    let gauge = Gauge::inside(gauge, None);
    let walked = random::explore(&prepared.space(), None, &gauge, 1, &walks);
    walked.explored.found.filter(|(_, wrong)| {
        let refused = FailureKind::Nondeterminism;
        matches!(wrong, Wrong::Failed(failure) if failure.kind() == refused)
    })
}

/// The simplest execution that ends like one that was found.
fn simplest(
    prepared: &Prepared<Moments>,
    schedules: &Schedules<'_>,
    decisions: Vec<Transition>,
    finish: Finish,
) -> (Path, Wrong) {
    let deadlock = prepared.properties.deadlock().unwrap_or_default();
    match &finish {
        Finish::Failed(failure) if !failure.kind().is_violation() => {}
        Finish::Failed(failure) => prepared.note_found(&Wrong::Failed(failure.clone())),
        _ => prepared.note_found(&Wrong::Deadlock(deadlock, Vec::new())),
    }
    let found = schedules.simplest(decisions, finish);
    let wrong = match found.finish {
        Finish::Failed(failure) => Wrong::Failed(failure),
        _ => Wrong::Deadlock(deadlock, found.waiting),
    };
    let path = Path {
        events: found.positions,
        ..Path::starting(0)
    };
    (path, wrong)
}

/// Why not all that matters was explored, if it was not.
fn left_out(ended: &schedules::Explored, gauge: &Gauge) -> Option<LeftOut> {
    if let Some(cut) = gauge.cut() {
        return Some(LeftOut::Cut(cut));
    }
    if let Some(at) = ended.endless_at {
        return Some(LeftOut::Endless { at });
    }
    if let Some((at, turns)) = ended.gave_up {
        return Some(LeftOut::GaveUp { at, turns });
    }
    ended.cut_deeper.then_some(LeftOut::Deeper)
}

/// What turned out to bound the schedules, a phrase each.
fn bounds(moments: &Moments, dpor: Dpor, ended: &schedules::Explored) -> Vec<String> {
    let setting = &moments.program().setting;
    let preemptions = dpor.preemptions.map(|most| match most {
        1 => "at most 1 preemption".to_owned(),
        most => format!("at most {most} preemptions"),
    });
    let rounds = ended
        .went_round
        .then(|| round_bound(setting.fruitless_turns));
    let drawn = ended.has_drawn.then(|| seed_bound(setting.seed));
    preemptions.into_iter().chain(rounds).chain(drawn).collect()
}
