//! From a check to a verdict.

use std::sync::Arc;
use std::time::Instant;

use super::engines::{Searched, explore, race, taken_apart};
use super::limits::{self, Control, Cut, Gauge};
use super::path::{Execution, Path, Wrong};
use super::walk::{LeftOut, Space};
use super::{quiet, shorten};
use crate::check::Check;
use crate::options::{Engine, Options};
use crate::property::{Bound, Properties};
use crate::system::{FailureKind, System};
use crate::tables::Domain;
use crate::target::{Setting, Target};
use crate::trace::{Key, SavedState, Trace, TraceStep};
use crate::verdict::{
    Counterexample, Outcome, Statistics, Verdict, Violation, ViolationKind, Waiting, test_name,
};

/// A check, ready to run.
pub(super) struct Prepared<T: Target> {
    pub(super) name: String,
    pub(super) system: T::System,
    pub(super) properties: Properties<T::System>,
    pub(super) within: Vec<Bound<T::System>>,
    pub(super) bounds: Vec<String>,
    pub(super) from: Option<SavedState>,
    pub(super) options: Options,
    pub(super) domain: Arc<Domain>,
}

impl<T: Target> Prepared<T> {
    pub(super) fn new(check: Check<T>) -> Self {
        if let Some(objection) = check.objection() {
            panic!("{objection}");
        }
        let bounds = check.bounds();
        let setting = Setting {
            watch: check.watch,
            key: check.options.key,
            determinism: check.options.determinism,
            // Two searches at once have workers of their own.
            domain: Domain::new(match check.options.engine {
                Engine::Auto => 2 * check.options.workers(),
                _ => check.options.workers(),
            }),
        };
        let name = check
            .name
            .or_else(test_name)
            .unwrap_or_else(|| "system".to_owned());
        Self {
            name,
            system: check.target.prepare(&setting),
            properties: Properties::new(check.properties),
            within: check.within,
            bounds,
            from: check.from,
            options: check.options,
            domain: setting.domain,
        }
    }

    pub(super) fn space(&self) -> Space<'_, T::System> {
        Space {
            system: &self.system,
            properties: &self.properties,
            within: &self.within,
            restriction: None,
            key: self.options.key,
            domain: &self.domain,
            first_worker: 0,
        }
    }
}

pub(crate) fn check<T: Target>(check: Check<T>, control: &Control) -> Verdict {
    run(&Prepared::new(check), control)
}

pub(super) fn run<T: Target>(prepared: &Prepared<T>, control: &Control) -> Verdict {
    let began = Instant::now();
    let options = &prepared.options;
    let workers = options.workers();
    let gauge = Gauge::new();
    let mut searched = limits::watched(&gauge, options, control, || match options.engine {
        Engine::Auto => race(prepared, &gauge, workers),
        engine => explore(prepared, engine, Gauge::shared(&gauge), workers),
    });
    if options.engine == Engine::Depth && workers > 1 && searched.explored.found.is_some() {
        // Who met it first depended on timing: what one thread meets first does not.
        let again = Gauge::new();
        let alone = limits::watched(&again, options, control, || {
            explore(prepared, Engine::Depth, Gauge::shared(&again), 1)
        });
        if alone.explored.found.is_some() {
            searched = alone;
        }
    }
    let outcome = match searched.explored.found {
        Some(_) => quiet::run(|| outcome(prepared, &searched)),
        // Nothing of the program has to be run again.
        None => outcome(prepared, &searched),
    };
    let state = options
        .keep_state
        .then(|| quiet::run(|| last_state(prepared, &outcome)))
        .flatten();
    // Where one walks the whole space in vain, exploring node by node may not.
    let suggestion = matches!(outcome, Outcome::Inconclusive(_))
        && matches!(options.engine, Engine::Breadth | Engine::Depth)
        && taken_apart(prepared).is_some();
    Verdict {
        system: prepared.name.clone(),
        outcome,
        within: [&prepared.bounds[..], &searched.bounds].concat(),
        engine: options.engine,
        suggestion: suggestion.then_some(Engine::Auto),
        decided_by: searched.engine,
        threads: workers,
        state,
        exact: options.exact,
        statistics: Statistics {
            local: searched.local,
            schedules: searched.schedules,
            ..statistics(prepared, &searched.gauge, began)
        },
        inconclusive_is_fine: false,
    }
}

/// The last state of a counterexample, or the first state where there is none.
fn last_state<T: Target>(prepared: &Prepared<T>, outcome: &Outcome) -> Option<SavedState> {
    let path = match outcome {
        Outcome::Violated(violation) => violation.counterexample.as_ref().map(|found| Path {
            start: found.trace.start,
            events: found.trace.steps.iter().map(|step| step.event).collect(),
        }),
        _ => None,
    };
    let path = path.unwrap_or_else(|| Path::starting(0));
    let execution = Execution::along(&prepared.system, &path)?;
    saved_states(prepared, &execution).pop()
}

/// The states of an execution, as files have them.
pub(super) fn saved_states<T: Target>(
    prepared: &Prepared<T>,
    execution: &Execution<T::System>,
) -> Vec<SavedState> {
    let after = execution.steps.iter();
    let after = after.filter_map(|step| step.after.as_ref().ok());
    [&execution.start]
        .into_iter()
        .chain(after)
        .filter_map(|state| T::save(&prepared.system, &prepared.name, state))
        .collect()
}

fn outcome<T: Target>(prepared: &Prepared<T>, searched: &Searched) -> Outcome {
    let explored = &searched.explored;
    if let Some((path, wrong)) = &explored.found {
        if let Wrong::Failed(failure) = wrong
            && failure.kind() == FailureKind::Nondeterminism
        {
            return Outcome::Inconclusive(failure.message().to_owned());
        }
        if !happens_again(&prepared.space(), path, wrong) {
            return Outcome::Inconclusive(NOT_DETERMINISTIC.to_owned());
        }
        let (found_length, path, shortest) = match searched.engine {
            Engine::Breadth => (path.events.len(), path.clone(), true),
            // What is simplest has been looked for.
            _ if searched.schedules.is_some() => (path.events.len(), path.clone(), false),
            _ => {
                let (short, shortest) = shorten::shorten(&prepared.space(), path.clone(), wrong);
                (path.events.len(), short, shortest)
            }
        };
        return Outcome::Violated(Box::new(violation(
            prepared,
            &path,
            wrong,
            shortest,
            found_length,
        )));
    }
    if let Some(left_out) = explored.left_out {
        return Outcome::Inconclusive(why(left_out, &prepared.options));
    }
    match prepared.properties.unreached() {
        Some(unreached) => Outcome::Violated(Box::new(Violation {
            property: prepared.properties.name(unreached).to_owned(),
            kind: ViolationKind::Unreached,
            counterexample: None,
        })),
        None => Outcome::Holds,
    }
}

const NOT_DETERMINISTIC: &str = "a violation was met that did not come again on the same way: \
                                 the system is not deterministic";

/// Whether a path still leads to what is wrong.
fn happens_again<S: System>(space: &Space<'_, S>, path: &Path, wrong: &Wrong) -> bool {
    if path.events.is_empty() {
        // Perhaps there is not even a state to look at.
        return true;
    }
    let execution = Execution::along(space.system, path);
    execution.is_some_and(|execution| match execution.last() {
        None => matches!(wrong, Wrong::Failed(_)),
        Some(state) => space.shows(state, None, wrong),
    })
}

fn why(left_out: LeftOut, options: &Options) -> String {
    match left_out {
        LeftOut::Deeper => format!(
            "executions of more than {} steps were not looked at",
            options.depth.unwrap_or_default()
        ),
        #[cfg(feature = "threads")]
        LeftOut::Endless { at } => {
            let places: Vec<String> = at.iter().flatten().map(ToString::to_string).collect();
            let places = match places.is_empty() {
                true => String::new(),
                false => format!(" at {}", places.join(" and ")),
            };
            format!(
                "an execution has more than {} steps: is there a loop without end{places}? If there is not, a larger depth \
                 follows it",
                super::walk::LONGEST
            )
        }
        #[cfg(feature = "threads")]
        LeftOut::GaveUp { at, turns } => format!(
            "the loop at {at} is left only after more turns without anything new than are followed while others can go on: \
             Threads::fruitless_turns({turns}) follows it"
        ),
        LeftOut::Cut(Cut::Time) => "the time limit cut the search short".to_owned(),
        LeftOut::Cut(Cut::Memory) => "the memory limit cut the search short".to_owned(),
        LeftOut::Cut(Cut::Stopped) => "the search was stopped".to_owned(),
        LeftOut::Cut(Cut::States) => "the search was cut short".to_owned(),
        LeftOut::NotDrawn => format!("{} random walks are no proof", options.walks),
        LeftOut::Collision if options.exact => NOT_DETERMINISTIC.to_owned(),
        LeftOut::Collision => {
            "a violation was met whose fingerprint another state shares: run again with --exact"
                .to_owned()
        }
    }
}

pub(super) fn violation<T: Target>(
    prepared: &Prepared<T>,
    path: &Path,
    wrong: &Wrong,
    shortest: bool,
    found_length: usize,
) -> Violation {
    let system = &prepared.system;
    let names = system.components();
    let execution = Execution::along(system, path);
    let (property, kind) = match wrong {
        Wrong::Violated(property) => (
            prepared.properties.name(*property).to_owned(),
            ViolationKind::Invariant,
        ),
        Wrong::Failed(failure) => {
            let property = match failure.kind() {
                FailureKind::Assertion => "assertion",
                FailureKind::Panic => "panic",
                FailureKind::Nondeterminism => "determinism",
                FailureKind::Fault => "fault",
            };
            (property.to_owned(), ViolationKind::Failure(failure.clone()))
        }
        Wrong::Deadlock(property, waiting) => {
            let last = execution.as_ref().and_then(Execution::last);
            let waiting = waiting.iter().map(|id| Waiting {
                who: names.get(id.0).cloned().unwrap_or_else(|| id.to_string()),
                what: last.and_then(|state| system.awaits(state, *id)),
            });
            (
                prepared.properties.name(*property).to_owned(),
                ViolationKind::Deadlock(waiting.collect()),
            )
        }
        Wrong::Panicked(property, failure) => (
            prepared.properties.name(*property).to_owned(),
            ViolationKind::PropertyPanicked(failure.clone()),
        ),
    };
    let mut violation = Violation {
        property,
        kind,
        counterexample: None,
    };
    let (described, ending) = (violation.describe(), violation.ending());
    violation.counterexample = execution.map(|execution| {
        let mut trace = Trace::new(prepared.name.clone(), violation.property.clone(), described);
        trace.start = path.start;
        trace.from.clone_from(&prepared.from);
        trace.lessons = system.lessons();
        record(system, &execution, &mut trace);
        let steps = trace.steps.iter().filter(|_| system.has_lanes());
        let mut lanes: Vec<String> = Vec::new();
        for step in steps {
            if !lanes.contains(&step.step.component) {
                lanes.push(step.step.component.clone());
            }
        }
        Counterexample {
            lanes,
            start: system.introduce(&execution.start),
            ending,
            trace,
            shortest,
            found_length,
        }
    });
    violation
}

/// Writes an execution into a trace, under the key that all traces share.
fn record<S: System>(system: &S, execution: &Execution<S>, trace: &mut Trace) {
    trace.fingerprint = system.fingerprint(&execution.start, Key::default());
    let mut before = &execution.start;
    for step in &execution.steps {
        let after = step.after.as_ref().ok();
        trace.steps.push(TraceStep {
            event: step.position,
            fingerprint: after.map(|state| system.fingerprint(state, Key::default())),
            step: system.explain(before, &step.event, after),
        });
        before = after.unwrap_or(before);
    }
}

pub(super) fn statistics<T: Target>(
    prepared: &Prepared<T>,
    gauge: &Gauge,
    began: Instant,
) -> Statistics {
    use std::sync::atomic::Ordering::Relaxed;
    let states = gauge.states.load(Relaxed);
    let pairs = states.saturating_sub(1) as f64 * states as f64 / 2.0;
    Statistics {
        states,
        transitions: gauge.transitions.load(Relaxed),
        depth: gauge.depth.load(Relaxed),
        frontier: gauge.frontier.load(Relaxed),
        elapsed: began.elapsed(),
        peak_memory_bytes: limits::peak_resident_bytes(),
        collision_probability: if prepared.options.exact {
            0.0
        } else {
            pairs / 2_f64.powi(64)
        },
        nodes: T::work(&prepared.system),
        local: None,
        schedules: None,
    }
}
