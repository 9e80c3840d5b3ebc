//! Executions as positions among enabled events, and what is found at their end.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::Hash;

use super::walk::{Space, examined};
use crate::guarded::{initial, list_events, next};
use crate::panics;
use crate::run::Run;
use crate::system::{Actor, Failure, System};
use crate::trace::{Fingerprint, Step};

/// An execution: an initial state, then at each step the position of the event taken among those enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) start: usize,
    pub(crate) events: Vec<usize>,
    /// The number of steps in the stem, where those behind it are a cycle.
    pub(crate) stem: Option<usize>,
}

impl Path {
    /// Only an initial state.
    pub(crate) fn starting(start: usize) -> Self {
        Self {
            start,
            events: Vec::new(),
            stem: None,
        }
    }
}

/// What is wrong at the end of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Somebody alive waits, and nothing but faults and idle deliveries can still happen.
    Deadlock(usize, Vec<Actor>),
    /// The program failed while it took the last event.
    Failed(Failure),
    /// The last state does not satisfy this property.
    Violated(usize),
    /// This property itself panicked on the last state.
    Panicked(usize, Failure),
}

impl Wrong {
    fn rank(&self) -> (u8, usize) {
        match self {
            Self::Deadlock(property, _) => (0, *property),
            Self::Failed(_) => (1, 0),
            Self::Violated(property) => (2, *property),
            Self::Panicked(property, _) => (3, *property),
        }
    }

    /// Whether it makes a check violated, and not only inconclusive.
    pub(crate) fn is_violation(&self) -> bool {
        match self {
            Self::Failed(failure) | Self::Panicked(_, failure) => failure.kind().is_violation(),
            Self::Deadlock(..) | Self::Violated(_) => true,
        }
    }

    /// Whether both are the same complaint, whatever the state.
    pub(crate) fn same_kind(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Failed(one), Self::Failed(two)) => one == two,
            _ => self.rank() == other.rank(),
        }
    }
}

/// Something wrong that a level-by-level search has met, before the way to it is known.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// How many steps lead to `state`.
    pub(crate) level: u64,
    pub(crate) state: Fingerprint,
    /// The event that fails in `state`, if that is what is wrong.
    pub(crate) event: Option<usize>,
    pub(crate) wrong: Wrong,
}

impl Finding {
    /// Something wrong with a state itself.
    pub(crate) fn at(level: u64, state: Fingerprint, wrong: Wrong) -> Self {
        Self {
            level,
            state,
            event: None,
            wrong,
        }
    }

    /// How many steps lead to what is wrong.
    pub(crate) fn length(&self) -> u64 {
        self.level + u64::from(self.event.is_some())
    }

    /// Violations come first, the shortest among them first, then whatever does not depend on who found it.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let key = |f: &Self| {
            let violates = f.wrong.is_violation();
            (!violates, f.length(), f.wrong.rank(), f.state, f.event)
        };
        key(self).cmp(&key(other))
    }

    /// Keeps the lesser of two findings.
    pub(crate) fn keep_least(slot: &mut Option<Self>, found: Self) {
        if slot.as_ref().is_none_or(|known| found.order(known).is_lt()) {
            *slot = Some(found);
        }
    }
}

/// An execution with its events and states, and all that is needed to print it: the program is not run again for that.
pub(crate) struct Execution<S: System> {
    pub(crate) start: S::State,
    pub(crate) steps: Vec<ExecutionStep<S>>,
    /// Where nothing makes progress in the last state, what each actor that waits there waits for.
    awaited: Vec<(Actor, Option<String>)>,
    /// The facts about the program that it takes.
    pub(crate) facts: Vec<String>,
}

pub(crate) struct ExecutionStep<S: System> {
    pub(crate) position: usize,
    pub(crate) event: S::Event,
    /// The state after it, or how the program failed.
    pub(crate) after: Result<S::State, Failure>,
    /// The step as a person wants to read it, where its run has described it.
    pub(crate) described: Option<Step>,
}

/// How often the search for an execution through given fingerprints backtracks before it gives up. Fingerprints that
/// collide by chance take a few; a `Hash` that leaves out fields can take exponentially many.
const BACKTRACKS: u32 = 10_000;

impl<S: System> Execution<S> {
    /// Takes the steps of `path` in `system`, given `facts` as [`System::replay`] is. `None` if the path does not fit.
    pub(crate) fn along(system: &S, path: &Path, facts: Option<&[String]>) -> Option<Self> {
        let execution = Self::as_far_as_it_fits(system, path, facts)?;
        (execution.steps.len() == path.events.len()).then_some(execution)
    }

    /// The same up to where the path does not fit. `None` if there is no such initial state.
    pub(crate) fn as_far_as_it_fits(
        system: &S,
        path: &Path,
        facts: Option<&[String]>,
    ) -> Option<Self> {
        let initial = panics::catch(|| initial(system)).ok()?;
        let start = initial.into_iter().nth(path.start)?;
        let start = examined(system, Ok(start)).ok()?;
        let mut run = system.replay(&start, facts).ok()?;
        run.describe_steps();
        let mut steps: Vec<ExecutionStep<S>> = Vec::with_capacity(path.events.len());
        for &position in &path.events {
            let event = run.events().ok().and_then(|events| events.get(position));
            let Some(event) = event.cloned() else { break };
            let taken = run.take(position);
            let copied = || panics::catch_in::<S::State, _>("Clone", || run.state().clone());
            let after = taken.and_then(|()| copied());
            let after = examined(system, after);
            let fails = after.is_err();
            steps.push(ExecutionStep {
                position,
                event,
                after,
                described: run.described(),
            });
            if fails {
                break;
            }
        }
        let fails = steps.last().is_some_and(|step| step.after.is_err());
        let awaited = match fails {
            true => Vec::new(),
            false => awaited(&mut *run),
        };
        let facts = run.facts();
        drop(run);
        Some(Self {
            start,
            steps,
            awaited,
            facts,
        })
    }

    /// What an actor that waits in the last state waits for.
    pub(crate) fn awaits(&self, actor: Actor) -> Option<&str> {
        let mut awaited = self.awaited.iter();
        let (_, what) = awaited.find(|(known, _)| *known == actor)?;
        what.as_deref()
    }

    /// How the last step failed, if it did.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.steps.last()?.after.as_ref().err()
    }

    /// The last state, unless the last step failed.
    pub(crate) fn last(&self) -> Option<&S::State> {
        match self.steps.last() {
            None => Some(&self.start),
            Some(step) => step.after.as_ref().ok(),
        }
    }

    /// Finds the way through `levels`, a list of candidate fingerprints for the state after each number of steps, to a
    /// state that `ends` accepts. It does not leave the space.
    ///
    /// Candidates are nearly always single; where one is false, the search backtracks. With many states of one
    /// fingerprint it gives up at some time.
    pub(crate) fn through(
        space: &Space<'_, S>,
        levels: &[Vec<Fingerprint>],
        ends: impl Fn(&S::State) -> bool,
    ) -> Option<Path> {
        let system = space.system;
        let fits = |state: &S::State, level: usize| {
            let fingerprint = system.fingerprint(state, space.key);
            levels[level].contains(&fingerprint) && space.satisfies_bounds(state)
        };
        // At each level, the states from which no way was found: where many states share a fingerprint, ways would
        // otherwise be tried without number.
        let mut dead: Vec<HashSet<S::State>> = vec![HashSet::new(); levels.len()];
        let mut backtracks = 0;
        for (start, state) in initial(system).into_iter().enumerate() {
            if !fits(&state, 0) {
                continue;
            }
            // For each state on the way, the position of the event to try next.
            let mut way = vec![(state, 0)];
            while !way.is_empty() && backtracks < BACKTRACKS {
                let level = way.len();
                let (state, untried) = way.last_mut().expect("it is not empty");
                if level == levels.len() {
                    if ends(state) {
                        let taken = way[..level - 1].iter();
                        let events = taken.map(|(_, untried)| untried - 1).collect();
                        return Some(Path {
                            events,
                            ..Path::starting(start)
                        });
                    }
                    go_back(&mut way, &mut dead);
                    backtracks += 1;
                    continue;
                }
                let mut enabled = Vec::new();
                list_events(system, state, &mut enabled);
                let found = (*untried..enabled.len()).find_map(|position| {
                    let after = next(system, state, &enabled[position]);
                    let after = examined(system, after).ok()?;
                    let leads_on = fits(&after, level) && !dead[level].contains(&after);
                    leads_on.then_some((position, after))
                });
                match found {
                    Some((position, after)) => {
                        *untried = position + 1;
                        way.push((after, 0));
                    }
                    None => {
                        go_back(&mut way, &mut dead);
                        backtracks += 1;
                    }
                }
            }
        }
        None
    }
}

/// What each actor that waits waits for, where nothing makes progress any more.
fn awaited<S: System>(run: &mut dyn Run<S>) -> Vec<(Actor, Option<String>)> {
    if run.makes_progress() != Ok(false) {
        return Vec::new();
    }
    let waiting = panics::catch(|| run.system().waiting(run.state())).unwrap_or_default();
    let awaited = waiting.into_iter().map(|actor| {
        let what = panics::catch(|| run.awaits(actor));
        (actor, what.ok().flatten())
    });
    awaited.collect()
}

/// Takes back the last step of a way, whose state leads nowhere.
fn go_back<T: Eq + Hash>(way: &mut Vec<(T, usize)>, dead: &mut [HashSet<T>]) {
    if let Some((state, _)) = way.pop() {
        dead[way.len()].insert(state);
    }
}
