//! From a check to a verdict.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::auto::explore_auto;
use super::custom;
use super::engines::{Searched, explore, taken_apart};
use super::host::{Checkable, Host};
use super::shorten;
use crate::check::Check;
use crate::engine::{Breadth, Engine, EngineName};
use crate::explore::custom::Explorer;
use crate::explore::limits::{self, Control, Cut, Ended, Gauge, Watched};
use crate::explore::path::{Execution, Path, Wrong};
use crate::explore::quiet::Delivery;
use crate::explore::walk::{LeftOut, Space};
use crate::options::Options;
use crate::panics;
use crate::property::{Bound, Properties};
use crate::step_guard::{self, Loss, LostStep, StepGuard};
use crate::system::{Failure, FailureKind, System};
use crate::tables::Domain;
use crate::target::Setting;
use crate::trace::{Key, SavedState, Step, Trace, TraceStep};
use crate::verdict::{
    Counterexample, Outcome, Statistics, Verdict, Violation, ViolationKind, Waiting, next_unnamed,
};

/// A check, ready to run: one attempt at it, where it has to be begun anew.
///
/// The first attempt has all workers. Further ones have one, and end at the first violation: one step after the other is
/// met that does not return, always in the same order, and the first is soon known.
pub struct Prepared<H: Host> {
    shared: Arc<Shared<H>>,
    /// Which attempt it is.
    attempt: usize,
}

/// What all attempts at a check share.
pub struct Shared<H: Host> {
    pub(super) name: String,
    pub(super) system: H::System,
    pub(super) properties: Properties<H::System>,
    pub(super) within: Vec<Bound<H::System>>,
    pub(super) bounds: Vec<String>,
    pub(super) from: Option<SavedState>,
    pub(super) options: Options,
    /// An engine of the user's, if it explores instead of that of the options.
    pub(super) explorer: Option<Arc<dyn Explorer>>,
    pub(super) domain: Arc<Domain>,
    pub(super) steps: Arc<StepGuard>,
    /// What was found, until its counterexample is described.
    found: Mutex<Option<Violation>>,
}

/// How often a check is begun, at most. Each time one more step is known that does not return.
const ATTEMPTS: usize = 50;

/// How many of the attempts make a counterexample short: that runs other steps, which may not return either.
const SHORTENING_ATTEMPTS: usize = 3;

/// From this attempt on a search goes breadth first where it went node by node.
const LAST_RESORT: usize = 6;

/// How many workers an attempt has that is not the first: one, or one for each of two engines.
const SUBSTITUTES: usize = 2;

impl<H: Host> Deref for Prepared<H> {
    type Target = Shared<H>;

    fn deref(&self) -> &Shared<H> {
        &self.shared
    }
}

impl<H: Host> Prepared<H> {
    pub(crate) fn new<T>(check: Check<T>) -> Self
    where
        T: Checkable<Host = H, System = H::System>,
    {
        if let Some(objection) = check.objection() {
            panic!("{objection}");
        }
        let bounds = check.bounds();
        let setting = Setting {
            watch: check.watch,
            key: check.options.key,
            determinism: check.options.determinism,
            domain: Domain::with_substitutes(workers(&check.options), (ATTEMPTS - 1) * SUBSTITUTES),
        };
        let name = check.name.unwrap_or_else(next_unnamed);
        let shared = Shared {
            name,
            system: check.target.prepare(&setting),
            properties: Properties::new(check.properties),
            within: check.within,
            bounds,
            from: check.from,
            options: check.options,
            explorer: check.explorer,
            domain: setting.domain,
            steps: StepGuard::new(),
            found: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
            attempt: 0,
        }
    }

    /// One of the attempts at the same check.
    fn attempt(&self, number: usize) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            attempt: number,
        }
    }

    /// Takes note of what was found. From now on a limit does not interrupt the search, and if it has to be abandoned, what was
    /// found is the verdict.
    pub(super) fn note_found(&self, wrong: &Wrong) {
        step_guard::report();
        let violation = undescribed_violation(self, wrong, None);
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(violation);
    }

    /// Whether a counterexample is made short.
    fn shortens(&self) -> bool {
        self.attempt < SHORTENING_ATTEMPTS
    }

    /// The engine of this attempt. Node by node, steps are run that no execution has, and a violation is looked for among
    /// the steps of many states: breadth first ends at the first step that fails.
    fn engine(&self) -> Engine {
        let is_last_resort = self.attempt >= LAST_RESORT;
        match self.options.engine {
            Engine::Local(_) | Engine::Auto(_) if is_last_resort && H::nodes(self).is_some() => {
                Breadth::new().into()
            }
            engine => engine,
        }
    }

    /// How many workers an engine has.
    fn workers(&self) -> usize {
        match self.attempt {
            0 => self.options.workers(),
            _ => 1,
        }
    }

    /// The number under which the tables know the first worker. Those of earlier attempts may still be there.
    fn first_worker(&self) -> usize {
        match self.attempt.checked_sub(1) {
            None => 0,
            Some(earlier) => workers(&self.options) + earlier * SUBSTITUTES,
        }
    }

    pub(super) fn space(&self) -> Space<'_, H::System> {
        Space {
            system: &self.system,
            properties: &self.properties,
            within: &self.within,
            restriction: None,
            key: self.options.key,
            domain: &self.domain,
            first_worker: self.first_worker(),
            ends_at_first: self.attempt > 0,
        }
    }

    /// Does `work` on an OS thread of its own while this one keeps the limits of the check. Where a step of the program does
    /// not return, or takes the process with it, `work` is done again with that step failing instead.
    pub(super) fn under_watch<R: Send + 'static>(
        &self,
        control: &Control,
        began: Instant,
        work: impl Fn(&Self, &Gauge, &Delivery<R>) + Send + Sync + 'static,
    ) -> Result<R, (String, Gauge)> {
        let work = Arc::new(work);
        for number in 0..ATTEMPTS {
            let gauge = Gauge::new();
            let watched = Watched {
                gauge: &gauge,
                options: &self.options,
                control,
                began,
                steps: &self.steps,
            };
            let ended = watched.run({
                let (attempt, work) = (self.attempt(number), Arc::clone(&work));
                let gauge = Gauge::shared(&gauge);
                move |delivery: &Delivery<R>| work(&attempt, &gauge, delivery)
            });
            match ended {
                Ended::Delivered(result) => return Ok(result),
                Ended::Abandoned(cut, step) => {
                    return Err((abandoned(cut, step, &self.options), gauge));
                }
                Ended::Undescribed(patience) => {
                    let why = format!("a `Debug` of the program has not returned for {patience:?}");
                    return Err((why, gauge));
                }
                Ended::Lost(step) => match self.options.patience {
                    None if step.loss == Loss::Stuck => return Err((stuck(&step), gauge)),
                    patience => {
                        let failure = self.steps.refuse(&step, patience.unwrap_or_default());
                        // Breadth first runs no step that no execution has.
                        if number + 1 == ATTEMPTS {
                            self.note_found(&Wrong::Failed(failure));
                        }
                    }
                },
            }
        }
        let message = "too many different steps do not return, or take the process with them";
        Err((message.to_owned(), Gauge::new()))
    }
}

/// How many workers search at once. Two engines at once have workers of their own.
fn workers(options: &Options) -> usize {
    match options.engine {
        Engine::Auto(_) => 2 * options.workers(),
        _ => options.workers(),
    }
}

/// Why a search says nothing that was waited for in vain.
fn abandoned(cut: Cut, step: Option<LostStep>, options: &Options) -> String {
    let why = why(LeftOut::Cut(cut), options);
    match step {
        Some(step) => format!("{why} in a step that does not return: {}", step.description),
        None => why,
    }
}

/// Why a search says nothing that has met a step which takes too long, though nobody has said how long that is.
fn stuck(step: &LostStep) -> String {
    format!(
        "a step does not return: {}; a patience (`Check::patience`, `--patience`) gives it more time, and makes it a \
         violation when it takes longer",
        step.description
    )
}

pub(super) fn run<H: Host>(prepared: Prepared<H>, control: &Control) -> Verdict {
    let verdict = verdict_of(&prepared, control);
    if control.ends_process() {
        std::mem::forget(prepared);
    }
    verdict
}

fn verdict_of<H: Host>(prepared: &Prepared<H>, control: &Control) -> Verdict {
    let began = Instant::now();
    let done = prepared.under_watch(control, began, move |prepared, gauge, delivery| {
        let searched = search(prepared, gauge);
        let (outcome, execution) = outcome(prepared, &searched);
        let state = prepared
            .options
            .keep_state
            .then(|| last_state(prepared, execution));
        delivery.deliver(verdict(
            prepared,
            &searched,
            outcome,
            state.flatten(),
            began,
        ));
    });
    let verdict = done.unwrap_or_else(|(why, gauge)| {
        let found = prepared.found.lock();
        let found = found.unwrap_or_else(PoisonError::into_inner).take();
        let undescribed = found.is_some().then(|| {
            format!(
                "there is no counterexample, because describing it did not come to an end: {why}"
            )
        });
        let outcome = match found {
            Some(violation) => Outcome::Violated(Box::new(violation)),
            None => Outcome::Inconclusive(why),
        };
        let searched = Searched::nothing(prepared.options.engine.name(), gauge);
        let mut verdict = verdict(prepared, &searched, outcome, None, began);
        verdict.warnings.extend(undescribed);
        // No engine gets past a step that does not return.
        verdict.suggestion = None;
        verdict
    });
    // Another check of the process may have been the one, and has a verdict of its own to print.
    let exited = prepared.steps.has_exited()
        || step_guard::has_exited() && matches!(verdict.outcome, Outcome::Violated(_));
    if exited && !control.ends_process() {
        verdict.end_process();
    }
    verdict
}

fn search<H: Host>(prepared: &Prepared<H>, gauge: &Gauge) -> Searched {
    let options = &prepared.options;
    let workers = prepared.workers();
    if let Some(explorer) = &prepared.explorer {
        return custom::explore(prepared, &**explorer, Gauge::shared(gauge));
    }
    let searched = match prepared.engine() {
        Engine::Auto(auto) => explore_auto(prepared, auto, gauge, workers),
        engine => explore(prepared, engine, Gauge::shared(gauge), workers),
    };
    let found = searched.explored.found.as_ref();
    if matches!(options.engine, Engine::Depth(_))
        && workers > 1
        && found.is_some_and(|(_, wrong)| wrong.is_violation())
    {
        // Who met it first depended on timing: what one thread meets first does not.
        step_guard::report();
        let alone = explore(prepared, options.engine, Gauge::inside(gauge, None), 1);
        if alone.explored.found.is_some() {
            return alone;
        }
    }
    searched
}

fn verdict<H: Host>(
    prepared: &Prepared<H>,
    searched: &Searched,
    outcome: Outcome,
    state: Option<SavedState>,
    began: Instant,
) -> Verdict {
    let options = &prepared.options;
    let explorer = prepared.explorer.as_ref();
    let is_walk = searched.engine.is_random() || explorer.is_some();
    let statistics = statistics(prepared, &searched.gauge, began);
    // Where one walks the whole space in vain, exploring node by node may not.
    let suggestion = matches!(outcome, Outcome::Inconclusive(_))
        && matches!(options.engine, Engine::Breadth(_) | Engine::Depth(_))
        && explorer.is_none()
        && taken_apart(prepared).is_some();
    // Which of them a search has met that was ended by something wrong depends on timing.
    let warnings = match outcome {
        Outcome::Violated(_) => Vec::new(),
        _ => warnings(prepared),
    };
    Verdict {
        system: prepared.name.clone(),
        outcome,
        warnings,
        within: [&prepared.bounds[..], &searched.bounds].concat(),
        engine: options.engine.name(),
        explorer: explorer.map(|explorer| explorer.name().to_owned()),
        suggestion: suggestion.then_some(EngineName::Auto),
        decided_by: searched.engine,
        threads: if explorer.is_some() {
            1
        } else {
            options.workers()
        },
        state,
        exact: options.exact,
        statistics: Statistics {
            local: searched.local,
            schedules: searched.schedules,
            states_estimated: is_walk,
            collision_probability: if searched.engine.is_random() {
                0.0
            } else {
                statistics.collision_probability
            },
            sampled_states: searched.sampled,
            coarse_hash: searched
                .coarse_hash
                .as_ref()
                .map(|found| found.type_name.clone()),
            ..statistics
        },
        inconclusive_is_fine: false,
    }
}

/// What may be wrong and could not be decided, a sentence each.
fn warnings<H: Host>(prepared: &Prepared<H>) -> Vec<String> {
    #[cfg(feature = "threads")]
    if let Some(prepared) = H::threads(prepared) {
        return prepared.system.warnings();
    }
    _ = prepared;
    Vec::new()
}

/// The last state of a counterexample, or the first state where there is none.
fn last_state<H: Host>(
    prepared: &Prepared<H>,
    execution: Option<Execution<H::System>>,
) -> Option<SavedState> {
    let begun = || Execution::along(&prepared.system, &Path::starting(0), None);
    saved_states(prepared, &execution.or_else(begun)?).pop()
}

/// The states of an execution, as files have them.
pub(super) fn saved_states<H: Host>(
    prepared: &Prepared<H>,
    execution: &Execution<H::System>,
) -> Vec<SavedState> {
    let after = execution.steps.iter();
    let after = after.filter_map(|step| step.after.as_ref().ok());
    [&execution.start]
        .into_iter()
        .chain(after)
        .filter_map(|state| H::save(&prepared.system, &prepared.name, state))
        .collect()
}

/// What a search has come to, and the execution of the counterexample, if there is one.
fn outcome<H: Host>(
    prepared: &Prepared<H>,
    searched: &Searched,
) -> (Outcome, Option<Execution<H::System>>) {
    let Some((path, wrong)) = &searched.explored.found else {
        return (outcome_of_a_search_in_vain(prepared, searched), None);
    };
    if let Wrong::Failed(failure) | Wrong::Panicked(_, failure) = wrong
        && !failure.kind().is_violation()
    {
        let why = match searched.gauge.cut() {
            // A step was given up in which the checker or the program went on and on.
            Some(cut) => format!(
                "{}: {}",
                why(LeftOut::Cut(cut), &prepared.options),
                failure.message()
            ),
            None => failure.message().to_owned(),
        };
        return (Outcome::Inconclusive(why), None);
    }
    prepared.note_found(wrong);
    let mut execution = retrace(prepared, path, wrong);
    // Where there are no steps, there may not even be a state.
    if execution.is_none() && !path.events.is_empty() {
        return (Outcome::Inconclusive(NOT_DETERMINISTIC.to_owned()), None);
    }
    // A state that was taken for another may not have been judged.
    let judged = match (wrong, execution.as_ref().and_then(Execution::last)) {
        (Wrong::Deadlock(..), Some(state)) => prepared.space().judge(state),
        _ => None,
    };
    let wrong = judged.as_ref().unwrap_or(wrong);
    let found_length = path.events.len();
    // A shorter one may lie behind a state that was taken for another.
    let is_breadth_first = searched.engine == EngineName::Breadth;
    let mut shortest = is_breadth_first && searched.coarse_hash.is_none();
    let mut short = path.clone();
    // What is simplest has been looked for where schedules were explored, or nothing else is run.
    if !is_breadth_first
        && path.stem.is_none()
        && searched.schedules.is_none()
        && prepared.shortens()
        && let Some(found) = &execution
    {
        let exact = prepared.options.exact;
        (short, shortest) = shorten::shorten(
            &prepared.space(),
            path,
            found,
            wrong,
            exact,
            &searched.gauge,
        );
        if short != *path {
            execution = retrace(prepared, &short, wrong);
        }
    }
    step_guard::describe();
    let found = execution.as_ref();
    let violation = violation(prepared, &short, wrong, found, shortest, found_length);
    (Outcome::Violated(Box::new(violation)), execution)
}

/// What is said of a search that has found nothing.
fn outcome_of_a_search_in_vain<H: Host>(prepared: &Prepared<H>, searched: &Searched) -> Outcome {
    let explored = &searched.explored;
    let left_out = explored
        .left_out
        .map(|left_out| why(left_out, &prepared.options));
    // Without all of the states nothing is said to hold, nor to be unreachable.
    let missed = searched.coarse_hash.as_ref().map(ToString::to_string);
    match (left_out, missed) {
        (Some(why), Some(missed)) => return Outcome::Inconclusive(format!("{why}; and {missed}")),
        (Some(why), None) | (None, Some(why)) => return Outcome::Inconclusive(why),
        (None, None) => {}
    }
    let runs_only_what_happens =
        !matches!(prepared.options.engine, Engine::Local(_) | Engine::Auto(_));
    if runs_only_what_happens && step_guard::refuses_some() {
        return Outcome::Inconclusive(NOT_LOST_AGAIN.to_owned());
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

const NOT_LOST_AGAIN: &str = "a step did not return, or took the process with it, and was not met when the search was begun \
                             anew: run it with one thread";

const NOT_DETERMINISTIC: &str = "a violation was met that did not come again on the same way: \
                                 the system is not deterministic";

/// The execution along a path, if it still leads to what is wrong.
///
/// It is run by itself at first, so that the facts about the program that it takes are known: how many facts the workers of a
/// search have found out, and in which order, differs from run to run.
fn retrace<H: Host>(
    prepared: &Prepared<H>,
    path: &Path,
    wrong: &Wrong,
) -> Option<Execution<H::System>> {
    let along = |facts| Execution::along(&prepared.system, path, facts);
    if path.events.is_empty() {
        return along(None);
    }
    let space = prepared.space();
    let shows = |execution: &Execution<H::System>, failure: Option<&Failure>| {
        execution.last().map_or_else(
            || failure.is_none_or(|failure| execution.failure() == Some(failure)),
            |state| space.shows(state, None, wrong),
        )
    };
    let failure = match wrong {
        Wrong::Failed(failure) => Some(failure),
        _ => None,
    };
    let by_itself = along(Some(&[])).filter(|execution| {
        (execution.last().is_some() || failure.is_some()) && shows(execution, failure)
    });
    // It may take facts that were found out along other executions.
    by_itself.or_else(|| {
        along(None).filter(|execution| {
            (execution.last().is_some() || failure.is_some()) && shows(execution, None)
        })
    })
}

fn why(left_out: LeftOut, options: &Options) -> String {
    match left_out {
        LeftOut::Deeper => format!(
            "executions of more than {} steps were not looked at",
            options.depth.unwrap_or_default()
        ),
        LeftOut::Endless { at } => {
            let places: Vec<String> = at.iter().flatten().map(ToString::to_string).collect();
            let places = match places.is_empty() {
                true => String::new(),
                false => format!(" at {}", places.join(" and ")),
            };
            format!(
                "an execution has more than {} steps: is there a loop without end{places}? If there is not, a larger depth \
                 follows it",
                crate::explore::walk::LONGEST
            )
        }
        LeftOut::GaveUp { at, turns } => format!(
            "the loop at {at} is left only after more turns without anything new than are followed while others can go on: \
             Threads::fruitless_turns({turns}) follows it"
        ),
        LeftOut::Cut(Cut::Time) => "the time limit cut the search short".to_owned(),
        LeftOut::Cut(Cut::Memory) if options.memory.is_none() => {
            "nine tenths of the memory that the process can have are used up".to_owned()
        }
        LeftOut::Cut(Cut::Memory) => "the memory limit cut the search short".to_owned(),
        LeftOut::Cut(Cut::Stopped) => "the search was stopped".to_owned(),
        LeftOut::Cut(Cut::States) => "the search was cut short".to_owned(),
        LeftOut::NotExplored(why) => why.to_owned(),
        LeftOut::NotDrawn => {
            let walks = options.engine.walks().map_or(0, |walks| walks.count);
            format!("{walks} random walks are no proof")
        }
        LeftOut::Collision if options.exact => NOT_DETERMINISTIC.to_owned(),
        LeftOut::Collision => {
            "a violation was met whose fingerprint another state shares: run again with --exact"
                .to_owned()
        }
    }
}

/// A violation without its counterexample, at the end of an execution where that is known.
fn undescribed_violation<H: Host>(
    prepared: &Prepared<H>,
    wrong: &Wrong,
    execution: Option<&Execution<H::System>>,
) -> Violation {
    let system = &prepared.system;
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
                FailureKind::Limit => "limit",
            };
            (property.to_owned(), ViolationKind::Failure(failure.clone()))
        }
        Wrong::Deadlock(property, waiting) => {
            let waiting = waiting.iter().map(|&actor| Waiting {
                who: panics::catch(|| system.actor_name(actor))
                    .unwrap_or_else(|failure| undescribed(&failure)),
                what: execution
                    .and_then(|execution| execution.awaits(actor))
                    .map(str::to_owned),
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
    Violation {
        property,
        kind,
        counterexample: None,
    }
}

pub(super) fn violation<H: Host>(
    prepared: &Prepared<H>,
    path: &Path,
    wrong: &Wrong,
    execution: Option<&Execution<H::System>>,
    shortest: bool,
    found_length: usize,
) -> Violation {
    let system = &prepared.system;
    let mut violation = undescribed_violation(prepared, wrong, execution);
    let (described, ending) = (violation.describe(), violation.ending());
    violation.counterexample = execution.map(|execution| {
        let mut trace = Trace::new(prepared.name.clone(), violation.property.clone(), described);
        trace.start = path.start;
        trace.from.clone_from(&prepared.from);
        trace.facts.clone_from(&execution.facts);
        record(system, execution, &mut trace);
        if let Some(stem) = path.stem {
            trace.close_cycle(stem);
        }
        let steps = trace.steps.iter().filter(|_| system.has_lanes());
        let mut lanes: Vec<String> = Vec::new();
        for step in steps {
            if !lanes.contains(&step.step.component) {
                lanes.push(step.step.component.clone());
            }
        }
        Counterexample {
            lanes,
            start: panics::catch(|| system.introduce(&execution.start))
                .unwrap_or_else(|failure| vec![undescribed(&failure)]),
            ending,
            trace,
            shortest,
            found_length,
        }
    });
    violation
}

/// Stands for a state or a step that the system fails to describe.
fn undescribed(failure: &Failure) -> String {
    format!("‹its description {failure}›")
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
            step: step.described.clone().unwrap_or_else(|| {
                let explained = panics::catch(|| system.explain(before, &step.event, after));
                explained.unwrap_or_else(|failure| Step {
                    action: undescribed(&failure),
                    ..Step::default()
                })
            }),
        });
        before = after.unwrap_or(before);
    }
}

pub(super) fn statistics<H: Host>(
    prepared: &Prepared<H>,
    gauge: &Gauge,
    began: Instant,
) -> Statistics {
    use std::sync::atomic::Ordering::Relaxed;
    let states = gauge.states.load(Relaxed);
    let pairs = states.saturating_sub(1) as f64 * states as f64 / 2.0;
    Statistics {
        states,
        states_estimated: false,
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
        nodes: H::nodes(prepared).map(|prepared| prepared.system.work()),
        local: None,
        schedules: None,
        sampled_states: None,
        coarse_hash: None,
    }
}
