//! The walk over a space, one state at a time: what every explorer does alike.

use super::limits::{Cut, Gauge};
use super::path::{Path, Wrong};
use crate::panics;
use crate::property::{Bound, Properties};
use crate::system::{EventKind, Failure, Successor, System};
use crate::tables::Domain;
use crate::trace::{Fingerprint, Key};

/// A system with what is demanded of it and what bounds it.
pub(crate) struct Space<'a, S: System> {
    pub(crate) system: &'a S,
    pub(crate) properties: &'a Properties<S>,
    pub(crate) within: &'a [Bound<S>],
    /// Where a search looks for an execution among others: states that are not inside are not looked at.
    pub(crate) restriction: Option<&'a Restriction<'a, S>>,
    pub(crate) key: Key,
    /// Whom the workers tell when they are between two steps.
    pub(crate) domain: &'a Domain,
    /// The number under which it knows the first of them.
    pub(crate) first_worker: usize,
}

/// Which states a search may go through.
pub(crate) type Restriction<'a, S> = dyn Fn(&<S as System>::State) -> bool + Sync + 'a;

/// What one event leads to: a state, unless the program fails.
pub(crate) type Next<T> = Result<T, Failure>;

/// What an exploration came to.
pub(crate) struct Explored {
    /// The way to something wrong.
    pub(crate) found: Option<(Path, Wrong)>,
    /// What was left out, if anything.
    pub(crate) left_out: Option<LeftOut>,
}

/// Why an exploration is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftOut {
    /// Executions longer than the depth bound.
    Deeper,
    /// What comes behind an execution that was so long that it may have no end.
    #[cfg(feature = "threads")]
    Endless {
        /// What came up most often in the end.
        at: crate::target::threads::describe::Haunts,
    },
    /// What a thread does that had to wait in a loop, though the loop ends by itself.
    #[cfg(feature = "threads")]
    GaveUp {
        at: &'static std::panic::Location<'static>,
        /// How many turns would have to be followed.
        turns: u32,
    },
    /// What a limit cut.
    Cut(Cut),
    /// All executions but those that were drawn.
    NotDrawn,
    /// Something wrong was met, and the way to it could not be found again.
    Collision,
}

/// An execution of threads that is longer than this without a bound on its depth may have no end.
#[cfg(feature = "threads")]
pub(crate) const LONGEST: u64 = 100_000;

/// The successor of `state`; a panic on the way is a failure.
#[inline]
pub(crate) fn next<S: System>(system: &S, state: &S::State, event: &S::Event) -> Next<S::State> {
    panics::catch(|| system.next(state, event)).and_then(|next| next)
}

impl<S: System> Space<'_, S> {
    /// Says that a worker is between two steps.
    pub(crate) fn quiesce(&self, worker: usize) {
        self.domain.quiesce(self.first_worker + worker);
    }

    /// Says that a worker does nothing until it says that it is between two steps.
    pub(crate) fn leave(&self, worker: usize) {
        self.domain.leave(self.first_worker + worker);
    }

    /// Keeps what the tables give away in place for the thread that leads the workers, while they are away: another search
    /// may be using the same tables.
    pub(crate) fn attend(&self) -> Attendance<'_> {
        self.quiesce(0);
        Attendance {
            domain: self.domain,
            worker: self.first_worker,
        }
    }

    /// The initial states inside the space, each with its place in the system's own list.
    ///
    /// Where there are none because the program or a bound fails, that is what comes back, found.
    pub(crate) fn initial(&self) -> Result<Vec<(usize, S::State)>, Explored> {
        let failed =
            |start, failure| Explored::found(Path::starting(start), Wrong::Failed(failure));
        let all = panics::catch(|| self.system.initial()).map_err(|failure| failed(0, failure))?;
        let mut initial = Vec::new();
        for (start, state) in all.into_iter().enumerate() {
            let inside = self.is_inside(&state);
            if inside.map_err(|failure| failed(start, failure))? {
                initial.push((start, state));
            }
        }
        Ok(initial)
    }

    pub(crate) fn fingerprint(&self, state: &S::State) -> Fingerprint {
        self.system.fingerprint(state, self.key)
    }

    /// Whether a state is part of the space; a bound that panics is a failure like any other.
    #[inline]
    fn is_inside(&self, state: &S::State) -> Result<bool, Failure> {
        if self.restriction.is_some_and(|looks_at| !looks_at(state)) {
            return Ok(false);
        }
        if self.within.is_empty() {
            return Ok(true);
        }
        panics::catch(|| {
            let mut bounds = self.within.iter();
            bounds.all(|bound| (bound.inside)(self.system, state))
        })
    }

    /// How a bound fails on `state`, if it does.
    pub(crate) fn bound_failure(&self, state: &S::State) -> Option<Failure> {
        self.is_inside(state).err()
    }

    /// What is wrong with a state itself.
    #[inline]
    pub(crate) fn judge(&self, state: &S::State) -> Option<Wrong> {
        match panics::catch(|| self.properties.judge(self.system, state)) {
            Ok(violated) => violated.map(Wrong::Violated),
            Err(failure) => Some(Wrong::Panicked(
                self.properties.panicking(self.system, state),
                failure,
            )),
        }
    }

    /// What is wrong with each of several states: `found` is told the place of each that something is wrong with.
    #[inline]
    pub(crate) fn judge_each<'s>(
        &self,
        mut states: impl Iterator<Item = &'s S::State>,
        mut found: impl FnMut(usize, Wrong),
    ) where
        S::State: 's,
    {
        let mut at = 0;
        let mut judged = None;
        // Entered once for all, and again after each state on which a property panics.
        while let Err(failure) = panics::catch(|| {
            for state in &mut states {
                judged = Some(state);
                if let Some(property) = self.properties.judge(self.system, state) {
                    found(at, Wrong::Violated(property));
                }
                at += 1;
            }
        }) {
            if let Some(state) = judged {
                let property = self.properties.panicking(self.system, state);
                found(at, Wrong::Panicked(property, failure));
            }
            at += 1;
        }
    }

    /// Whether `wrong`, or its like, is what is wrong with `state`, or with taking its event at `position`.
    pub(crate) fn shows(&self, state: &S::State, position: Option<usize>, wrong: &Wrong) -> bool {
        let mut events = Vec::new();
        let stuck = self.events(state, &mut events);
        if let Some(position) = position {
            let next = events
                .get(position)
                .and_then(|event| self.take(state, event));
            return matches!((next, wrong), (Some(Err(_)), Wrong::Failed(_)));
        }
        let bound = self.is_inside(state).err().map(Wrong::Failed);
        let found = [self.judge(state), stuck, bound];
        found.iter().flatten().any(|found| found.same_kind(wrong))
    }

    /// Lists the events of `state`, and what is wrong with there being no others.
    #[inline]
    pub(crate) fn events(&self, state: &S::State, events: &mut Vec<S::Event>) -> Option<Wrong> {
        let first = events.len();
        if let Err(failure) = panics::catch(|| self.system.events(state, events)) {
            return Some(Wrong::Failed(failure));
        }
        let property = self.properties.deadlock()?;
        let waiting = panics::catch(|| {
            let stuck = events[first..]
                .iter()
                .all(|event| self.system.kind(state, event) != EventKind::Progress);
            if stuck {
                self.system.waiting(state)
            } else {
                Vec::new()
            }
        });
        match waiting {
            Ok(waiting) if waiting.is_empty() => None,
            Ok(waiting) => Some(Wrong::Deadlock(property, waiting)),
            Err(failure) => Some(Wrong::Failed(failure)),
        }
    }

    /// Where `event` leads from `state`; `None` when that is outside the space.
    pub(crate) fn take(&self, state: &S::State, event: &S::Event) -> Option<Next<S::State>> {
        let mut next = next(self.system, state, event);
        self.admits(&mut next).then_some(next)
    }

    /// Whether a successor is part of the space. Where a bound fails on it, so does the step.
    #[inline]
    pub(crate) fn admits(&self, next: &mut Next<S::State>) -> bool {
        (self.within.is_empty() && self.restriction.is_none()) || self.admits_by_bounds(next)
    }

    fn admits_by_bounds(&self, next: &mut Next<S::State>) -> bool {
        match next.as_ref().map(|state| self.is_inside(state)) {
            Ok(Ok(inside)) => inside,
            Ok(Err(failure)) => {
                *next = Err(failure);
                true
            }
            Err(_) => true,
        }
    }

    /// Adds the successors of `state` to `out`, inside the space or not, and says what is wrong with there being no
    /// others.
    #[inline]
    pub(crate) fn expand(
        &self,
        state: &S::State,
        scratch: &mut Vec<S::Event>,
        out: &mut Vec<Successor<S::State>>,
    ) -> Option<Wrong> {
        let stuck = match self.properties.deadlock() {
            Some(_) => {
                scratch.clear();
                self.events(state, scratch)
            }
            None => None,
        };
        let expanded = panics::catch(|| self.system.successors(state, scratch, out));
        expanded.err().map(Wrong::Failed).or(stuck)
    }
}

/// A worker that is there, between two steps of the others.
pub(crate) struct Attendance<'a> {
    domain: &'a Domain,
    worker: usize,
}

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        self.domain.leave(self.worker);
    }
}

impl Explored {
    /// The outcome of a search that went through to its end, unless the gauge says otherwise.
    pub(crate) fn to_the_end(gauge: &Gauge) -> Self {
        Self {
            found: None,
            left_out: gauge.cut().map(LeftOut::Cut),
        }
    }

    pub(crate) fn found(path: Path, wrong: Wrong) -> Self {
        Self {
            found: Some((path, wrong)),
            left_out: None,
        }
    }
}
