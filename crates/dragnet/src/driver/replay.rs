//! From a trace back to its execution.

use std::env;
use std::path::Path as FilePath;
use std::time::{Duration, Instant};

use super::host::{Checkable, Host};
use super::run::{Prepared, saved_states, statistics, violation};
use crate::check::Check;
use crate::engine::Breadth;
use crate::explore::limits::{Control, Gauge};
use crate::explore::path::{Execution, Path, Wrong};
use crate::explore::walk::Space;
use crate::system::System;
use crate::target::TargetKind;
use crate::trace::{Key, StateError, Trace};
use crate::verdict::{
    Counterexample, Outcome, Replay, ReplayError, Style, Verdict, Violation, unnamed_as,
};

/// How long a step of a trace may take, unless the check says so.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a check, or, when `DRAGNET_REPLAY` names a trace of it, that trace.
#[track_caller]
pub(crate) fn check_or_replay<T: Checkable>(checked: Check<T>) -> Verdict {
    let Some(file) = env::var_os("DRAGNET_REPLAY") else {
        return T::Host::check(Prepared::new(checked), &Control::default());
    };
    let trace = match Trace::read(FilePath::new(&file)) {
        Ok(trace) => trace,
        Err(error) => panic!("{error}"),
    };
    let prepared = Prepared::new(checked);
    if trace.system != prepared.name {
        eprintln!(
            "DRAGNET_REPLAY names a trace of `{}`; this check is `{}`, so it searches as usual",
            trace.system, prepared.name
        );
        return T::Host::check(prepared, &Control::default());
    }
    match T::Host::execute_steps(&prepared, &trace) {
        Ok(verdict) => verdict,
        Err(error) => panic!("{error}"),
    }
}

/// Runs a trace again on the system at hand.
pub(crate) fn replay_of<T: Checkable>(
    check: Check<T>,
    trace: &Trace,
) -> Result<Replay, ReplayError> {
    T::Host::replay(&prepare_for(check, trace)?, trace)
}

pub(super) fn replay<H: Host>(
    prepared: &Prepared<H>,
    trace: &Trace,
) -> Result<Replay, ReplayError> {
    let (execution, violation) = replay_under_watch(prepared, trace)?;
    Ok(Replay {
        states: saved_states(prepared, &execution),
        violation: violation.describe(),
        property: violation.property,
        counterexample: violation.counterexample.expect("it has just been followed"),
    })
}

/// An execution, and the violation at its end.
type Followed<H> = (Execution<<H as Host>::System>, Violation);

/// Follows a trace, whose last step may be one that does not return.
fn replay_under_watch<H: Host>(
    prepared: &Prepared<H>,
    trace: &Trace,
) -> Result<Followed<H>, ReplayError> {
    let trace = trace.clone();
    let done = prepared.under_watch(
        &Control::default(),
        Instant::now(),
        move |prepared, _, delivery| {
            delivery.deliver(replay_trace(prepared, &trace));
        },
    );
    done.unwrap_or_else(|(why, _)| Err(ReplayError::Unfinished { why }))
}

/// Makes a check ready to follow a trace, which may start in a state of its own.
fn prepare_for<T: Checkable>(
    mut check: Check<T>,
    trace: &Trace,
) -> Result<Prepared<T::Host>, ReplayError> {
    check.options.engine = Breadth::new().into();
    if check.target.kind() != TargetKind::Threads {
        check.options.patience.get_or_insert(PATIENCE);
    }
    if let Some(from) = &trace.from {
        let unfit = |error: StateError| ReplayError::Changed {
            at: "at the start".to_owned(),
            what: error.to_string(),
        };
        check = check.starting_from(from).map_err(unfit)?;
    }
    let name = check.name.take();
    check.name = name.or_else(|| Some(unnamed_as(&trace.system)));
    Ok(Prepared::new(check))
}

/// Follows a trace step by step, comparing each state with what was recorded.
fn replay_trace<H: Host>(
    prepared: &Prepared<H>,
    trace: &Trace,
) -> Result<(Execution<H::System>, Violation), ReplayError> {
    if trace.system != prepared.name {
        return Err(ReplayError::OtherSystem {
            recorded: trace.system.clone(),
            replayed: prepared.name.clone(),
        });
    }
    let changed = |at: String, what: String| ReplayError::Changed { at, what };
    let system = &prepared.system;
    let path = Path {
        start: trace.start,
        events: trace.steps.iter().map(|step| step.event).collect(),
        stem: trace.stem(),
    };
    let execution =
        Execution::as_far_as_it_fits(system, &path, Some(&trace.facts)).ok_or_else(|| {
            changed(
                "at the start".to_owned(),
                "there is no such initial state".to_owned(),
            )
        })?;
    if system.fingerprint(&execution.start, Key::default()) != trace.fingerprint {
        return Err(changed(
            "at the start".to_owned(),
            "the initial state is another".to_owned(),
        ));
    }
    let space = prepared.space();
    if let Some(bound) = space.bound_left(&execution.start) {
        return Err(changed(
            "at the start".to_owned(),
            format!("the initial state is outside the space `{bound}`"),
        ));
    }
    for (number, step) in trace.steps.iter().enumerate() {
        let at = || format!("in step {} ({})", number + 1, step.step.action);
        let Some(taken) = execution.steps.get(number) else {
            let Some(state) = execution.last() else {
                return Err(changed(at(), "the step before fails".to_owned()));
            };
            let mut enabled = Vec::new();
            system.events(state, &mut enabled);
            return Err(changed(
                at(),
                format!(
                    "only {} events are enabled, and the trace takes number {}",
                    enabled.len(),
                    step.event
                ),
            ));
        };
        let after = taken.after.as_ref().ok();
        let fingerprint = after.map(|state| system.fingerprint(state, Key::default()));
        if fingerprint != step.fingerprint {
            let what = match (&fingerprint, &step.fingerprint) {
                (None, Some(_)) => "the program fails now",
                (Some(_), None) => "the program does not fail any more",
                _ => "it leads to another state",
            };
            return Err(changed(at(), what.to_owned()));
        }
        let Some(state) = after else { continue };
        if let Some(bound) = space.bound_left(state) {
            return Err(changed(at(), format!("it leaves the space `{bound}`")));
        }
        if number + 1 < trace.steps.len() && space.bound_failure(state).is_some() {
            return Err(changed(at(), "a bound of the space panics".to_owned()));
        }
    }
    let wrong = complaint(&space, &execution).ok_or_else(|| {
        changed(
            "at the end".to_owned(),
            format!("`{}` is not violated any more", trace.property),
        )
    })?;
    let length = path.events.len();
    let violation = violation(prepared, &path, &wrong, Some(&execution), false, length);
    if violation.property != trace.property {
        return Err(changed(
            "at the end".to_owned(),
            format!(
                "`{}` is violated instead of `{}`",
                violation.property, trace.property
            ),
        ));
    }
    Ok((execution, violation))
}

/// What is wrong at the end of an execution.
fn complaint<S: System>(space: &Space<'_, S>, execution: &Execution<S>) -> Option<Wrong> {
    match execution.last() {
        None => match &execution.steps.last()?.after {
            Err(failure) => Some(Wrong::Failed(failure.clone())),
            Ok(_) => None,
        },
        // In the order of a search: a state whose bound panics is never judged.
        Some(state) => space
            .bound_failure(state)
            .map(Wrong::Failed)
            .or_else(|| space.judge(state))
            .or_else(|| space.copy_and_compare(state).err().map(Wrong::Failed))
            .or_else(|| space.events(state, &mut Vec::new())),
    }
}

/// Replays a trace inside a test: each step is printed and its code is executed once more, this time for whoever watches.
pub(super) fn execute_steps<H: Host>(
    prepared: &Prepared<H>,
    trace: &Trace,
) -> Result<Verdict, ReplayError> {
    let began = Instant::now();
    let (execution, violation) = replay_under_watch(prepared, trace)?;
    // From here on the program runs for whoever watches, also where it does not return.
    prepared.steps.allow_all();
    let told = violation
        .counterexample
        .iter()
        .flat_map(Counterexample::steps);
    println!(
        "Replaying {} steps of `{}`",
        trace.steps.len(),
        trace.system
    );
    let mut run = prepared.system.replay(&execution.start, Some(&trace.facts));
    if let Ok(run) = &mut run {
        run.execute_steps();
    }
    for (number, (step, told)) in execution.steps.iter().zip(told).enumerate() {
        let mut text = String::new();
        told.render(number + 1, 2, Style::plain(), &mut text);
        print!("{text}");
        if let Ok(run) = &mut run {
            // A failure is the last step, and told.
            let _ = run.take(step.position);
        }
    }
    drop(run);
    Ok(Verdict {
        system: prepared.name.clone(),
        outcome: Outcome::Violated(Box::new(violation)),
        warnings: Vec::new(),
        within: prepared.bounds.clone(),
        engine: prepared.options.engine.name(),
        explorer: None,
        suggestion: None,
        decided_by: prepared.options.engine.name(),
        threads: 1,
        state: None,
        exact: prepared.options.exact,
        statistics: statistics(prepared, &Gauge::new(), began),
        inconclusive_is_fine: false,
    })
}
