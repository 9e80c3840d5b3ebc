//! A program with threads as a [`System`]: a state is what has happened so far, whatever the order of what does not
//! depend on each other.

use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::describe;
use super::execution::ExecutionView;
use super::executor::{Director, Executor, Finish, Program, Transition};
use super::run::LiveRun;
use super::spin::blocking::GaveUp;
use super::state::State;
use super::world;
use crate::run::Run;
use crate::system::{Actor, ComponentId, Failure, FailureKind, System, Task};
use crate::trace::{Fingerprint, Key, Step, scatter};

/// The executions of a program with threads, moment by moment.
pub struct Moments {
    program: Arc<Program>,
    idle: Mutex<Vec<Idle>>,
    /// Whether a thread has had to wait because it went round without seeing anything new.
    went_round: AtomicBool,
    /// Where a thread had to wait because of that, though it would have gone on by itself.
    gave_up: Mutex<Option<GaveUp>>,
    /// Whether a thread has drawn a random number.
    has_drawn: AtomicBool,
    weakly_ordered: AtomicU64,
}

/// An executor between two executions.
struct Idle(Executor);

// SAFETY: between two executions it has no coroutines and nobody else refers to anything in it.
unsafe impl Send for Idle {}

/// What has happened in an execution so far. Two are equal when the same has happened, and depended on each other, in both.
#[derive(Clone)]
pub struct Moment(Arc<Past>);

pub(super) struct Past {
    /// An earlier moment of the execution,
    before: Option<Moment>,
    /// and what has been taken since.
    since: Box<[Transition]>,
    /// How many have been taken in all.
    steps: usize,
    seen: Seen,
    /// The last of them, as far as it has been told.
    told: Option<Step>,
}

/// What is seen of a moment from outside.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) history: u64,
    pub(super) enabled: Vec<Transition>,
    /// The task of each of them, and what it is about.
    pub(super) tasks: Vec<(Task, u64)>,
    pub(super) waiting: Vec<Actor>,
}

impl Drop for Past {
    /// One after the other: a long execution would otherwise use up the stack.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut past) = before.and_then(|Moment(past)| Arc::into_inner(past)) {
            before = past.before.take();
        }
    }
}

impl Seen {
    fn new(state: &State, history: u64, enabled: &[Transition]) -> Self {
        let tasks = enabled.iter().map(|&transition| state.task_of(transition));
        Self {
            history,
            tasks: tasks.collect(),
            enabled: enabled.to_vec(),
            waiting: state.waiting().collect(),
        }
    }
}

impl Moment {
    /// How many operations the threads have done.
    pub fn steps(&self) -> usize {
        self.0.steps
    }

    fn task(&self, event: &Turn) -> Option<(Task, u64)> {
        let position = self
            .0
            .seen
            .enabled
            .iter()
            .position(|enabled| *enabled == event.0);
        position.map(|position| self.0.seen.tasks[position])
    }

    /// What has been taken, from the beginning on.
    pub(super) fn taken(&self) -> Vec<Transition> {
        let earlier = std::iter::successors(Some(self), |moment| moment.0.before.as_ref());
        let mut segments: Vec<&[Transition]> = earlier.map(|moment| &*moment.0.since).collect();
        segments.reverse();
        segments.concat()
    }

    /// A later moment of the same execution.
    pub(super) fn later(&self, since: Box<[Transition]>, seen: Seen, told: Option<Step>) -> Self {
        Self(Arc::new(Past {
            steps: self.0.steps + since.len(),
            before: Some(self.clone()),
            since,
            seen,
            told,
        }))
    }

    pub(super) fn seen(&self) -> &Seen {
        &self.0.seen
    }

    /// Whether no thread can go on.
    pub fn is_over(&self) -> bool {
        self.0.seen.enabled.is_empty()
    }
}

impl PartialEq for Moment {
    fn eq(&self, other: &Self) -> bool {
        (self.0.seen.history, self.0.steps) == (other.0.seen.history, other.0.steps)
    }
}

impl Eq for Moment {}

impl Hash for Moment {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.seen.history.hash(hasher);
    }
}

impl Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} steps", self.steps())
    }
}

/// A thread goes on, in one of the ways that are open to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn(pub(super) Transition);

/// Follows decisions, and stops behind them.
struct Along<'a> {
    decisions: &'a [Transition],
    taken: usize,
    /// The places of those taken among all that were possible.
    positions: Vec<usize>,
    /// What is possible behind them.
    enabled: Vec<Transition>,
    lost: bool,
}

impl Director for Along<'_> {
    fn next(&mut self, _: ExecutionView<'_>, enabled: &[Transition]) -> Option<Transition> {
        let Some(next) = self.decisions.get(self.taken) else {
            self.enabled = enabled.to_vec();
            return None;
        };
        let position = enabled.iter().position(|possible| possible == next);
        self.lost = position.is_none();
        self.positions.push(position?);
        self.taken += 1;
        Some(*next)
    }
}

/// Whether an execution is told to a person.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    No,
    Yes,
}

impl Moments {
    pub(crate) fn new(program: impl Into<Arc<Program>>) -> Self {
        Self {
            program: program.into(),
            idle: Mutex::default(),
            went_round: AtomicBool::new(false),
            gave_up: Mutex::default(),
            has_drawn: AtomicBool::new(false),
            weakly_ordered: AtomicU64::new(0),
        }
    }

    /// What turned out to bound an exploration, as far as is known here.
    pub(crate) fn bounds_met(&self) -> Vec<String> {
        let setting = &self.program.setting;
        let went_round = self.went_round.load(Relaxed);
        let has_drawn = self.has_drawn.load(Relaxed);
        let round = went_round.then(|| super::round_bound(setting.fruitless_turns));
        let drawn = has_drawn.then(|| super::seed_bound(setting.seed));
        round.into_iter().chain(drawn).collect()
    }

    /// What may be wrong and could not be decided, a sentence each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.program.races.warnings()
    }

    /// Where a thread had to wait in a loop, though it would have gone on by itself.
    pub(crate) fn gave_up(&self) -> Option<GaveUp> {
        *self.gave_up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Runs the program along decisions, and shows what it has come to. Where that is told to a person, values are known.
    fn along<R: Send>(
        &self,
        decisions: &[Transition],
        told: Told,
        look: impl FnOnce(&State, &Along<'_>) -> R + Send,
    ) -> Result<R, (R, Failure)> {
        let mut along = Along {
            decisions,
            taken: 0,
            positions: Vec::new(),
            enabled: Vec::new(),
            lost: false,
        };
        self.program.apart(|| {
            let (finish, seen) = self.run(&mut along, told, |state, _, along| look(state, along));
            match finish {
                Finish::Failed(failure) => Err((seen, failure)),
                _ if along.lost || along.taken < decisions.len() => Err((seen, lost())),
                _ => Ok(seen),
            }
        })
    }

    /// Runs the program as a director says, and shows what it has come to.
    fn run<D: Director, R>(
        &self,
        director: &mut D,
        told: Told,
        look: impl FnOnce(&State, &Finish, &mut D) -> R,
    ) -> (Finish, R) {
        let mut executor = self.executor();
        executor.set_told(told == Told::Yes);
        let finish = executor.run(director);
        let seen = {
            let state = executor.state();
            self.note(ExecutionView::new(&state), executor.weakly_ordered());
            look(&state, &finish, director)
        };
        if !world::is_spoiled() {
            self.give_back(executor);
        }
        (finish, seen)
    }

    /// An executor that runs no execution.
    pub(super) fn executor(&self) -> Executor {
        let ready = self.idle().pop();
        ready.map_or_else(|| Executor::new(Arc::clone(&self.program)), |idle| idle.0)
    }

    /// The same, when it runs none any more.
    pub(super) fn give_back(&self, executor: Executor) {
        self.idle().push(Idle(executor));
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of an execution.
    pub(super) fn note(&self, execution: ExecutionView<'_>, weakly_ordered: u64) {
        self.went_round.fetch_or(execution.went_round(), Relaxed);
        if execution.gave_up().is_some() {
            let mut known = self.gave_up.lock().unwrap_or_else(PoisonError::into_inner);
            *known = execution.gave_up().max(*known);
        }
        self.has_drawn.fetch_or(execution.has_drawn(), Relaxed);
        self.weakly_ordered.fetch_max(weakly_ordered, Relaxed);
    }

    /// The most operations of one execution that asked for a weaker ordering than they got.
    pub(crate) fn weakly_ordered(&self) -> u64 {
        self.weakly_ordered.load(Relaxed)
    }

    fn moment(&self, taken: Vec<Transition>) -> Result<Moment, Failure> {
        let seen = self.along(&taken, Told::No, |state, along| {
            Seen::new(state, state.fingerprint(), &along.enabled)
        });
        match seen {
            Err((_, failure)) => Err(failure),
            Ok(seen) => Ok(Moment(Arc::new(Past {
                before: None,
                steps: taken.len(),
                since: taken.into(),
                seen,
                told: None,
            }))),
        }
    }

    /// The decisions of an execution, given by positions among what was enabled. `None` where there is no such execution.
    pub(crate) fn decisions(&self, positions: &[usize]) -> Option<Vec<Transition>> {
        let first = self.moment(Vec::new()).ok()?;
        let mut run = LiveRun::new(self, &first);
        for &position in positions {
            if position >= run.events().ok()?.len() {
                return None;
            }
            // A failure is the end of it.
            let _ = run.take(position);
        }
        Some(run.taken().to_vec())
    }
}

/// What is said of a program that does not do the same again.
pub(crate) fn lost() -> Failure {
    Failure::new(
        FailureKind::Nondeterminism,
        "the program did not do the same when it was run again; does it read a clock, a random number or an address, or \
         keep something from one execution to the next?"
            .to_owned(),
        None,
    )
}

fn decisions(state: &Moment, event: &Turn) -> Vec<Transition> {
    let mut taken = state.taken();
    taken.push(event.0);
    taken
}

impl System for Moments {
    /// A state is a happens-before history, of which only a hash is kept.
    const COMPARES_PARTS: bool = true;

    type State = Moment;
    type Event = Turn;

    fn run(&self, start: &Moment) -> Result<Box<dyn Run<Self> + '_>, Failure> {
        Ok(Box::new(LiveRun::new(self, start)))
    }

    fn initial(&self) -> Vec<Moment> {
        match self.moment(Vec::new()) {
            Ok(moment) => vec![moment],
            Err(failure) => crate::panics::raise(failure),
        }
    }

    fn events(&self, state: &Moment, out: &mut Vec<Turn>) {
        out.extend(
            state
                .0
                .seen
                .enabled
                .iter()
                .map(|&transition| Turn(transition)),
        );
    }

    fn next(&self, state: &Moment, event: &Turn) -> Result<Moment, Failure> {
        self.moment(decisions(state, event))
    }

    fn replay(
        &self,
        start: &Moment,
        facts: Option<&[String]>,
    ) -> Result<Box<dyn Run<Self> + '_>, Failure> {
        let loops = &self.program.loops;
        Ok(Box::new(match facts {
            // Nothing is known here but what is given.
            Some(facts) if *facts != loops.facts() => {
                let program = self.program.with_nothing_learnt();
                program.loops.learn_facts(facts);
                LiveRun::of_its_own(Self::new(program), start)
            }
            _ => LiveRun::new(self, start),
        }))
    }

    fn guards_steps(&self) -> bool {
        true
    }

    fn fingerprint(&self, state: &Moment, key: Key) -> Fingerprint {
        Fingerprint::of(&scatter(state.0.seen.history), key)
    }

    fn waiting(&self, state: &Moment) -> Vec<Actor> {
        state.0.seen.waiting.clone()
    }

    fn awaits(&self, state: &Moment, actor: Actor) -> Option<String> {
        let names = &self.program.names;
        let thread = names.thread(actor)?;
        let awaited = self.along(&state.taken(), Told::No, |state, _| {
            describe::awaited(state, thread, names)
        });
        awaited.ok().flatten()
    }

    fn task(&self, state: &Moment, event: &Turn) -> Task {
        state
            .task(event)
            .map_or_else(|| Task::of(ComponentId(0)), |(task, _)| task)
    }

    /// The next operation of the thread: it has one at a time.
    fn identity(&self, state: &Moment, event: &Turn) -> Fingerprint {
        let about = state.task(event).map(|(_, about)| about);
        Fingerprint::of(&about, Key::default())
    }

    fn components(&self) -> Vec<String> {
        self.program.names.processes()
    }

    fn actor_name(&self, actor: Actor) -> String {
        let names = &self.program.names;
        match names.thread(actor) {
            Some(thread) => names.of(thread),
            None => describe::OUTSIDE.to_owned(),
        }
    }

    fn explain(&self, before: &Moment, event: &Turn, after: Option<&Moment>) -> Step {
        if let Some(told) = after.and_then(|after| after.0.told.clone()) {
            return told;
        }
        let names = &self.program.names;
        let step = self.along(&decisions(before, event), Told::Yes, |state, _| {
            describe::last_step(state, names)
        });
        step.unwrap_or_else(|(step, _)| step)
    }

    fn has_lanes(&self) -> bool {
        true
    }

    fn introduce(&self, _state: &Moment) -> Vec<String> {
        vec!["the first thread, `main`, begins".to_owned()]
    }
}
