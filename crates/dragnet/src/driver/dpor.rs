//! Schedules of multithreaded programs: those that matter, or random ones.

use super::engines::{Searched, walks};
use super::run::Prepared;
use crate::engine::{Dpor, Engine, EngineName};
use crate::explore::draw::Walks;
use crate::explore::limits::Gauge;
use crate::explore::path::{Execution, Path, Wrong};
use crate::explore::schedules::{self, Schedules};
use crate::explore::walk::{Explored, LeftOut};
use crate::panics;
use crate::system::{FailureKind, System};
use crate::target::Target;
use crate::target::threads::executor::{Finish, Transition};
use crate::target::threads::{Moments, round_bound, seed_bound};
use crate::verdict::ScheduleWork;

/// Explores the schedules of a multithreaded program under `engine`, which is [`Dpor`] or makes random walks.
pub(super) fn explore<T: Target>(
    prepared: &Prepared<T>,
    moments: &Moments,
    engine: Engine,
    gauge: Gauge,
    workers: usize,
) -> Searched {
    let dpor = match engine {
        Engine::Dpor(dpor) => dpor,
        _ => Dpor::new(),
    };
    let walks = walks(engine, prepared.options.depth);
    let schedules = Schedules {
        program: moments.program(),
        reduction: dpor.reduction,
        longest: prepared.options.depth,
        preemptions: dpor.preemptions,
        gauge: &gauge,
        workers,
        watch: &|_, finish| *finish == Finish::Complete,
    };
    let ended = panics::catch_limit(|| match &walks {
        Some(walks) => schedules.draw(walks),
        None => schedules.explore(),
    });
    let ended = ended.map(|mut ended| {
        // Objects that outlive an execution are noticed by the next one on the same OS thread. Where each has run one at
        // most, one of them runs two more.
        let executions = ended.executions + ended.blocked_executions;
        if ended.found.is_none() && executions <= workers as u64 {
            ended.found = leaked_object(&schedules);
        }
        ended
    });
    let (explored, ended) = match ended {
        Ok(ended) => {
            let explored = match &ended.found {
                Some((decisions, finish)) => {
                    // Which walk goes wrong first does not depend on how many workers there are.
                    let workers = if walks.is_some() { 1 } else { workers };
                    let schedules = Schedules {
                        workers,
                        ..schedules
                    };
                    describe(prepared, moments, &schedules, decisions.clone(), finish)
                }
                None => Explored {
                    found: None,
                    left_out: left_out(&ended, walks.is_some(), &gauge),
                },
            };
            (explored, ended)
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
        bounds: bounds(moments, dpor, &ended),
        ..Searched::nothing(engine.name(), gauge)
    }
}

/// The engine that explores a multithreaded program where its states need not be judged.
pub(super) fn runs_schedules<T: Target>(prepared: &Prepared<T>, engine: EngineName) -> bool {
    // Properties of states are judged state by state.
    let judges_ends = prepared.within.is_empty() && prepared.properties.are_about_the_end();
    engine == EngineName::Dpor || engine.is_random() && judges_ends
}

/// The failure of an object that an execution takes from the one before it.
fn leaked_object(schedules: &Schedules<'_>) -> Option<(Vec<Transition>, Finish)> {
    let gauge = &Gauge::inside(schedules.gauge, None);
    let again = Schedules {
        workers: 1,
        gauge,
        ..*schedules
    };
    let two = Walks {
        seed: 0,
        count: 2,
        longest: schedules.longest,
        priority_changes: None,
    };
    again.draw(&two).found.filter(|(_, finish)| {
        let refused = FailureKind::Nondeterminism;
        matches!(finish, Finish::Failed(failure) if failure.kind() == refused)
    })
}

/// The simplest schedule that shows what was found, as a path.
fn describe<T: Target>(
    prepared: &Prepared<T>,
    moments: &Moments,
    schedules: &Schedules<'_>,
    decisions: Vec<Transition>,
    finish: &Finish,
) -> Explored {
    let deadlock = prepared.properties.deadlock().unwrap_or_default();
    match finish {
        Finish::Failed(failure) if !failure.kind().is_violation() => {}
        Finish::Failed(failure) => prepared.note_found(&Wrong::Failed(failure.clone())),
        _ => prepared.note_found(&Wrong::Deadlock(deadlock, Vec::new())),
    }
    let (decisions, finish) = schedules.simplest(decisions, finish.clone());
    let path = Path {
        start: 0,
        events: moments.positions(&decisions),
    };
    let wrong = match finish {
        Finish::Failed(failure) => Wrong::Failed(failure),
        _ => {
            let execution = Execution::along(&prepared.system, &path);
            let last = execution.as_ref().and_then(Execution::last);
            let waiting = last.map(|state| prepared.system.waiting(state));
            Wrong::Deadlock(deadlock, waiting.unwrap_or_default())
        }
    };
    Explored::found(path, wrong)
}

/// Why not all that matters was explored, if it was not.
fn left_out(ended: &schedules::Explored, is_random: bool, gauge: &Gauge) -> Option<LeftOut> {
    if let Some(cut) = gauge.cut() {
        return Some(LeftOut::Cut(cut));
    }
    if is_random {
        return Some(LeftOut::NotDrawn);
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
