//! Executions as positions among enabled events, and what is found at their end.

use std::cmp::Ordering;

use crate::panics;
use crate::system::{ComponentId, Failure, System};
use crate::trace::{Fingerprint, Key};

/// An execution: an initial state, then at each step the position of the event taken among those enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) start: usize,
    pub(crate) events: Vec<usize>,
}

impl Path {
    /// Only an initial state.
    pub(crate) fn starting(start: usize) -> Self {
        Self {
            start,
            events: Vec::new(),
        }
    }
}

/// What is wrong at the end of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Somebody alive waits, and nothing but faults and idle deliveries can still happen.
    Deadlock(usize, Vec<ComponentId>),
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

    /// The shortest comes first, then whatever does not depend on who found it.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let key = |f: &Self| (f.length(), f.wrong.rank(), f.state, f.event);
        key(self).cmp(&key(other))
    }

    /// Keeps the lesser of two findings.
    pub(crate) fn keep_least(slot: &mut Option<Self>, found: Self) {
        if slot.as_ref().is_none_or(|known| found.order(known).is_lt()) {
            *slot = Some(found);
        }
    }
}

/// An execution with its events and states.
pub(crate) struct Execution<S: System> {
    pub(crate) start: S::State,
    pub(crate) steps: Vec<ExecutionStep<S>>,
}

pub(crate) struct ExecutionStep<S: System> {
    pub(crate) position: usize,
    pub(crate) event: S::Event,
    /// The state after it, or how the program failed.
    pub(crate) after: Result<S::State, Failure>,
}

impl<S: System> Execution<S> {
    /// Takes the steps of `path` in `system`. `None` if the path does not fit.
    pub(crate) fn along(system: &S, path: &Path) -> Option<Self> {
        let execution = Self::as_far_as_it_fits(system, path)?;
        (execution.steps.len() == path.events.len()).then_some(execution)
    }

    /// The same up to where the path does not fit. `None` if there is no such initial state.
    pub(crate) fn as_far_as_it_fits(system: &S, path: &Path) -> Option<Self> {
        let initial = panics::catch(|| system.initial()).ok()?;
        let start = initial.into_iter().nth(path.start)?;
        let followed = system.follow(&start, &path.events);
        let steps = path.events.iter().zip(followed);
        let steps = steps.map(|(&position, (event, after))| ExecutionStep {
            position,
            event,
            after,
        });
        let steps = steps.collect();
        Some(Self { start, steps })
    }

    /// The last state, unless the last step failed.
    pub(crate) fn last(&self) -> Option<&S::State> {
        match self.steps.last() {
            None => Some(&self.start),
            Some(step) => step.after.as_ref().ok(),
        }
    }

    /// Finds the way through `levels`, a list of candidate fingerprints for the state after each number of steps, to a
    /// state that `ends` accepts.
    ///
    /// Candidates are nearly always single; where one is false, the search goes back a step.
    pub(crate) fn through(
        system: &S,
        levels: &[Vec<Fingerprint>],
        key: Key,
        ends: impl Fn(&S::State) -> bool,
    ) -> Option<Path> {
        let fits = |state: &S::State, level: usize| {
            levels[level].contains(&system.fingerprint(state, key))
        };
        for (start, state) in system.initial().into_iter().enumerate() {
            if !fits(&state, 0) {
                continue;
            }
            // For each state on the way, the position of the event to try next.
            let mut way = vec![(state, 0)];
            while !way.is_empty() {
                let level = way.len();
                let (state, next) = way.last_mut().expect("it is not empty");
                if level == levels.len() {
                    if ends(state) {
                        let taken = way[..level - 1].iter();
                        let events = taken.map(|(_, next)| next - 1).collect();
                        return Some(Path { start, events });
                    }
                    way.pop();
                    continue;
                }
                let mut enabled = Vec::new();
                system.events(state, &mut enabled);
                let found = (*next..enabled.len()).find_map(|position| {
                    let after = super::walk::next(system, state, &enabled[position]).ok()?;
                    fits(&after, level).then_some((position, after))
                });
                match found {
                    Some((position, after)) => {
                        *next = position + 1;
                        way.push((after, 0));
                    }
                    None => {
                        way.pop();
                    }
                }
            }
        }
        None
    }
}
