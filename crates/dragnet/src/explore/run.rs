//! From a check to a verdict, and from a trace back to its execution.

use std::env;
use std::path::Path as FilePath;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::limits::{self, Control, Cut, Gauge};
use super::local::{Local, Taken};
use super::path::{Execution, Path, Wrong};
use super::random::{self, Walks};
use super::store::{Exact, Fingerprints, Store};
use super::walk::{Explored, LeftOut, Space};
use super::{breadth, depth, quiet, shorten};
use crate::check::{Check, Engine, Options};
use crate::property::{Bound, Properties, Property};
use crate::system::{FailureKind, System};
use crate::tables::{Domain, Pair, Single};
use crate::target::parts::Apart;
use crate::target::{Setting, Target};
use crate::trace::{Key, SavedState, StateError, Trace, TraceStep};
use crate::verdict::{
    Counterexample, LocalWork, Outcome, Replay, ReplayError, Statistics, Style, Verdict, Violation,
    ViolationKind, Waiting, test_name,
};

/// A check, ready to run.
struct Prepared<T: Target> {
    name: String,
    system: T::System,
    properties: Properties<T::System>,
    within: Vec<Bound<T::System>>,
    bounds: Vec<String>,
    from: Option<SavedState>,
    options: Options,
    domain: Arc<Domain>,
}

impl<T: Target> Prepared<T> {
    fn new(check: Check<T>) -> Self {
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

    fn space(&self) -> Space<'_, T::System> {
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

/// Runs a check, or, when `DRAGNET_REPLAY` names a trace of it, that trace.
#[track_caller]
pub(crate) fn check_or_replay<T: Target>(checked: Check<T>) -> Verdict {
    let Some(file) = env::var_os("DRAGNET_REPLAY") else {
        return check(checked, &Control::default());
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
        return run(&prepared, &Control::default());
    }
    match reenact(&prepared, &trace) {
        Ok(verdict) => verdict,
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn check<T: Target>(check: Check<T>, control: &Control) -> Verdict {
    run(&Prepared::new(check), control)
}

fn run<T: Target>(prepared: &Prepared<T>, control: &Control) -> Verdict {
    let began = Instant::now();
    let options = &prepared.options;
    let workers = options.workers();
    let gauge = Gauge::new();
    let mut searched = limits::watched(&gauge, options, control, || {
        quiet::run(|| match options.engine {
            Engine::Auto => race(prepared, &gauge, workers),
            engine => explore(prepared, engine, Gauge::shared(&gauge), workers),
        })
    });
    if options.engine == Engine::Depth && workers > 1 && searched.explored.found.is_some() {
        // Who met it first depended on timing: what one thread meets first does not.
        let again = Gauge::new();
        let alone = limits::watched(&again, options, control, || {
            quiet::run(|| explore(prepared, Engine::Depth, Gauge::shared(&again), 1))
        });
        if alone.explored.found.is_some() {
            searched = alone;
        }
    }
    let outcome = quiet::run(|| outcome(prepared, &searched));
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
        within: prepared.bounds.clone(),
        engine: options.engine,
        suggestion: suggestion.then_some(Engine::Auto),
        decided_by: searched.engine,
        threads: workers,
        state,
        exact: options.exact,
        statistics: Statistics {
            local: searched.local,
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
fn saved_states<T: Target>(
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

/// What a search came to, and by which engine.
struct Searched {
    explored: Explored,
    engine: Engine,
    gauge: Gauge,
    /// What the local engine did.
    local: Option<LocalWork>,
}

impl Searched {
    /// Whether nothing was cut short.
    fn is_complete(&self) -> bool {
        self.explored.found.is_some() || self.explored.left_out.is_none()
    }
}

/// The system taken apart, if it can be and its properties can be judged like that.
fn taken_apart<T: Target>(prepared: &Prepared<T>) -> Option<Apart<'_, T::System>> {
    let mut properties = prepared.properties.iter();
    let judges_nodes = !properties.any(Property::looks_at_the_network);
    T::apart(&prepared.system).filter(|_| judges_nodes)
}

/// How long the local engine has the cores to itself.
const HEAD_START: Duration = Duration::from_secs(2);

/// Local model checking by itself for a moment, then breadth first beside it: whichever has a verdict first.
fn race<T: Target>(prepared: &Prepared<T>, gauge: &Gauge, workers: usize) -> Searched {
    let Some(apart) = taken_apart(prepared) else {
        return explore(prepared, Engine::Breadth, Gauge::shared(gauge), workers);
    };
    let threads = AtomicUsize::new(workers);
    let space = Space {
        first_worker: workers,
        ..prepared.space()
    };
    let (done, news) = mpsc::channel();
    let local_gauge = Gauge::shared(gauge);
    let breadth_gauge = Gauge::inside(gauge, None);
    let (local_stop, breadth_stop) = (local_gauge.stopper(), breadth_gauge.stopper());
    thread::scope(|scope| {
        let (threads, apart, space) = (&threads, &apart, &space);
        let told = done.clone();
        scope.spawn(move || {
            quiet::silence_tracing(|| {
                let (explored, work) = search_parts(prepared, space, apart, &local_gauge, threads);
                _ = told.send(Searched {
                    explored,
                    engine: Engine::Local,
                    gauge: local_gauge,
                    local: Some(work),
                });
            });
        });
        let first = news.recv_timeout(HEAD_START).ok();
        if let Some(local) = first
            && (local.is_complete() || gauge.must_end())
        {
            return local;
        }
        // The larger share, where there is more than one to share.
        let for_local = (workers / 3).max(1);
        threads.store(for_local, Relaxed);
        let for_breadth = (workers - for_local).max(1);
        scope.spawn(move || {
            quiet::silence_tracing(|| {
                let searched = explore(prepared, Engine::Breadth, breadth_gauge, for_breadth);
                _ = done.send(searched);
            });
        });
        let mut last = None;
        for searched in news {
            if searched.is_complete() {
                local_stop.end();
                breadth_stop.end();
                return searched;
            }
            // Of two that were cut short, breadth first tells more.
            if last.is_none() || searched.engine == Engine::Breadth {
                last = Some(searched);
            }
        }
        last.expect("both say how they end")
    })
}

fn search_parts<T: Target>(
    prepared: &Prepared<T>,
    space: &Space<'_, T::System>,
    apart: &Apart<'_, T::System>,
    gauge: &Gauge,
    threads: &AtomicUsize,
) -> (Explored, LocalWork) {
    let _attendance = space.attend();
    match space.initial() {
        Err(found) => return (found, LocalWork::default()),
        Ok(initial) if initial.is_empty() => {
            return (Explored::to_the_end(gauge), LocalWork::default());
        }
        Ok(_) => {}
    }
    let whole = Taken::new(space, apart, &prepared.domain);
    let local = Local {
        parts: apart.parts,
        whole: &whole,
        gauge,
        domain: &prepared.domain,
        workers: threads,
        first_worker: space.first_worker,
        pruning: prepared.options.pruning,
        longest: prepared.options.depth,
    };
    local.explore()
}

fn explore<T: Target>(
    prepared: &Prepared<T>,
    engine: Engine,
    gauge: Gauge,
    workers: usize,
) -> Searched {
    let space = prepared.space();
    let options = &prepared.options;
    let domain = &prepared.domain;
    let mut local = None;
    let search = Search {
        space: &space,
        gauge: &gauge,
        options,
        workers,
    };
    let explored = if engine == Engine::Local {
        let apart = T::apart(&prepared.system).expect("only nodes can be taken apart");
        let threads = AtomicUsize::new(workers);
        let (explored, work) = search_parts(prepared, &space, &apart, &gauge, &threads);
        local = Some(work);
        explored
    } else if options.exact {
        let store = Exact::new(domain);
        match engine {
            Engine::Depth => search.depth(&store),
            Engine::Random => search.random(&store),
            _ => search.breadth(&store),
        }
    } else {
        let numbered = || Fingerprints::<Pair>::new(domain);
        let plain = || Fingerprints::<Single>::new(domain);
        match engine {
            Engine::Depth if options.depth.is_some() => search.depth(&numbered()),
            Engine::Depth => search.depth(&plain()),
            Engine::Random => search.random(&plain()),
            _ => search.breadth(&numbered()),
        }
    };
    Searched {
        explored,
        engine,
        gauge,
        local,
    }
}

/// An exploration that only lacks its store.
struct Search<'a, S: System> {
    space: &'a Space<'a, S>,
    gauge: &'a Gauge,
    options: &'a Options,
    workers: usize,
}

impl<S: System> Search<'_, S> {
    fn breadth(&self, store: &impl Store<S>) -> Explored {
        breadth::explore(
            self.space,
            store,
            self.gauge,
            self.workers,
            self.options.depth,
        )
    }

    fn depth(&self, store: &impl Store<S>) -> Explored {
        depth::explore(
            self.space,
            store,
            self.gauge,
            self.workers,
            self.options.depth,
        )
    }

    fn random(&self, store: &impl Store<S>) -> Explored {
        let walks = Walks {
            seed: self.options.seed,
            count: self.options.walks,
            longest: self.options.depth,
        };
        random::explore(self.space, store, self.gauge, self.workers, &walks)
    }
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

fn violation<T: Target>(
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
    let described = violation.describe();
    violation.counterexample = execution.map(|execution| {
        let mut trace = Trace::new(prepared.name.clone(), violation.property.clone(), described);
        trace.start = path.start;
        trace.from.clone_from(&prepared.from);
        record(system, &execution, &mut trace);
        Counterexample {
            start: system.introduce(&execution.start),
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

fn statistics<T: Target>(prepared: &Prepared<T>, gauge: &Gauge, began: Instant) -> Statistics {
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
    }
}

/// Runs a trace again on the system at hand.
pub(crate) fn replay<T: Target>(check: Check<T>, trace: &Trace) -> Result<Replay, ReplayError> {
    let prepared = prepare_for(check, trace)?;
    let (execution, violation) = quiet::run(|| follow(&prepared, trace))?;
    Ok(Replay {
        states: saved_states(&prepared, &execution),
        violation: violation.describe(),
        property: violation.property,
        counterexample: violation.counterexample.expect("it has just been followed"),
    })
}

/// Makes a check ready to follow a trace, which may start in a state of its own.
fn prepare_for<T: Target>(mut check: Check<T>, trace: &Trace) -> Result<Prepared<T>, ReplayError> {
    check.options.engine = Engine::Breadth;
    if let Some(from) = &trace.from {
        let unfit = |error: StateError| ReplayError::Changed {
            at: "at the start".to_owned(),
            what: error.to_string(),
        };
        check = check.starting_from(from).map_err(unfit)?;
    }
    Ok(Prepared::new(check))
}

/// Follows a trace step by step, comparing each state with what was recorded.
fn follow<T: Target>(
    prepared: &Prepared<T>,
    trace: &Trace,
) -> Result<(Execution<T::System>, Violation), ReplayError> {
    if trace.system != prepared.name {
        return Err(ReplayError::OtherSystem {
            recorded: trace.system.clone(),
            replayed: prepared.name.clone(),
        });
    }
    let changed = |at: String, what: String| ReplayError::Changed { at, what };
    let system = &prepared.system;
    let mut path = Path {
        start: trace.start,
        events: Vec::new(),
    };
    let mut execution = Execution::along(system, &path).ok_or_else(|| {
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
    let mut enabled = Vec::new();
    for (number, step) in trace.steps.iter().enumerate() {
        let at = || format!("in step {} ({})", number + 1, step.step.action);
        let Some(state) = execution.last() else {
            return Err(changed(at(), "the step before fails".to_owned()));
        };
        enabled.clear();
        system.events(state, &mut enabled);
        let Some(event) = enabled.get(step.event) else {
            return Err(changed(
                at(),
                format!(
                    "only {} events are enabled, and the trace takes number {}",
                    enabled.len(),
                    step.event
                ),
            ));
        };
        let after = super::walk::next(system, state, event);
        let fingerprint = after
            .as_ref()
            .ok()
            .map(|state| system.fingerprint(state, Key::default()));
        if fingerprint != step.fingerprint {
            let what = match (&fingerprint, &step.fingerprint) {
                (None, Some(_)) => "the program fails now",
                (Some(_), None) => "the program does not fail any more",
                _ => "it leads to another state",
            };
            return Err(changed(at(), what.to_owned()));
        }
        path.events.push(step.event);
        execution.steps.push(super::path::ExecutionStep {
            position: step.event,
            event: event.clone(),
            after,
        });
    }
    let wrong = complaint(&prepared.space(), &execution).ok_or_else(|| {
        changed(
            "at the end".to_owned(),
            format!("`{}` is not violated any more", trace.property),
        )
    })?;
    let violation = violation(prepared, &path, &wrong, false, path.events.len());
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
        Some(state) => space
            .judge(state)
            .or_else(|| space.bound_failure(state).map(Wrong::Failed))
            .or_else(|| space.events(state, &mut Vec::new())),
    }
}

/// Replays a trace inside a test: each step is printed and its code runs once more, this time for whoever watches.
fn reenact<T: Target>(prepared: &Prepared<T>, trace: &Trace) -> Result<Verdict, ReplayError> {
    let began = Instant::now();
    let (execution, violation) = quiet::run(|| follow(prepared, trace))?;
    let told = violation
        .counterexample
        .iter()
        .flat_map(Counterexample::steps);
    println!(
        "Replaying {} steps of `{}`",
        trace.steps.len(),
        trace.system
    );
    let mut before = &execution.start;
    for (number, (step, told)) in execution.steps.iter().zip(told).enumerate() {
        let mut text = String::new();
        told.render(number + 1, 2, Style::plain(), &mut text);
        print!("{text}");
        prepared.system.reenact(before, &step.event);
        before = step.after.as_ref().unwrap_or(before);
    }
    Ok(Verdict {
        system: prepared.name.clone(),
        outcome: Outcome::Violated(Box::new(violation)),
        within: prepared.bounds.clone(),
        engine: prepared.options.engine,
        suggestion: None,
        decided_by: prepared.options.engine,
        threads: 1,
        state: None,
        exact: prepared.options.exact,
        statistics: statistics(prepared, &Gauge::new(), began),
        inconclusive_is_fine: false,
    })
}
