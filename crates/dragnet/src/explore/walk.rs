//! The walk over a space, one state at a time: what every explorer does alike.

use super::limits::{Cut, Gauge};
use super::path::{Path, Wrong};
use super::visited::Visited;
use crate::guarded::{
    Batch, GuardedStep, Part, guarded, implementation, initial, list_events, next,
};
use crate::panics;
use crate::property::{Bound, Properties};
use crate::run::Run;
use crate::step_guard::{self, Step as _};
use crate::system::{Actor, EventKind, Failure, FailureKind, Successor, System};
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
    /// A search ends at the first violation that it meets, also where it would look for the least of several.
    pub(crate) ends_at_first: bool,
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
    #[cfg_attr(
        not(feature = "threads"),
        expect(dead_code, reason = "nothing else runs executions without an end")
    )]
    /// What comes behind an execution that was so long that it may have no end.
    Endless {
        /// The places that came up most often in the end.
        at: Places,
    },
    /// What a thread does that had to wait in a loop, though the loop ends by itself.
    GaveUp {
        at: &'static std::panic::Location<'static>,
        /// How many turns would have to be followed.
        turns: u32,
    },
    /// What a limit cut.
    Cut(Cut),
    /// What an engine of the user's has not explored, for this reason.
    NotExplored(&'static str),
    /// All executions but those that were drawn.
    NotDrawn,
    /// Something wrong was met, and the way to it could not be found again.
    Collision,
}

/// Up to two places in the source of the program.
pub(crate) type Places = [Option<&'static std::panic::Location<'static>>; 2];

/// An execution of threads that is longer than this without a bound on its depth may have no end.
pub(crate) const LONGEST: u64 = 100_000;

/// A successor whose `Hash` works; where it panics, the step fails.
///
/// A search hashes every state. Whoever follows a known execution does not, and asks for it here.
pub(crate) fn examined<S: System>(system: &S, next: Next<S::State>) -> Next<S::State> {
    let state = next?;
    examine(system, &state)?;
    Ok(state)
}

/// Fails where the `Hash` of a state panics.
pub(crate) fn examine<S: System>(system: &S, state: &S::State) -> Result<(), Failure> {
    if !S::COMPARES_PARTS {
        implementation(system, state, "Hash", || {
            system.fingerprint(state, Key::default())
        })?;
    }
    Ok(())
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
        let all = panics::catch(|| initial(self.system)).map_err(|failure| failed(0, failure))?;
        let mut initial = Vec::new();
        for (start, state) in all.into_iter().enumerate() {
            let going_on = panics::catch(|| {
                step_guard::give_up_if_interrupted(|| {
                    format!("{start} initial states were looked at")
                });
            });
            going_on.map_err(|failure| failed(start, failure))?;
            let inside = self.is_inside(&state);
            if inside.map_err(|failure| failed(start, failure))? {
                initial.push((start, state));
            }
        }
        Ok(initial)
    }

    /// The fingerprint of a state; a `Hash` that panics is a failure.
    #[inline]
    pub(crate) fn fingerprint(&self, state: &S::State) -> Result<Fingerprint, Failure> {
        let fingerprint = || self.system.fingerprint(state, self.key);
        match S::COMPARES_PARTS {
            // Its parts have been hashed.
            true => Ok(fingerprint()),
            false => implementation(self.system, state, "Hash", fingerprint),
        }
    }

    /// The fingerprint of a state that is about to be visited, or looked up in the set, which has
    /// [examined](Visited::examine) it. A `Hash` or `Eq` that panics is a failure.
    pub(crate) fn identify(
        &self,
        visited: &impl Visited<S>,
        state: &S::State,
    ) -> Result<Fingerprint, Failure> {
        let fingerprint = self.fingerprint(state)?;
        if !S::COMPARES_PARTS {
            implementation(self.system, state, "Eq", || {
                visited.examine(state, fingerprint);
            })?;
        }
        Ok(fingerprint)
    }

    /// The fingerprint of each successor, or 0 where the step fails, which a `Hash` or `Eq` that panics makes it do. The set
    /// has examined them all, and their places in it are on their way to the cache.
    #[inline]
    pub(crate) fn identify_each(
        &self,
        visited: &impl Visited<S>,
        born: &mut [Successor<S::State>],
        fingerprints: &mut Vec<Fingerprint>,
    ) {
        let (system, key) = (self.system, self.key);
        if S::COMPARES_PARTS {
            identify_all(system, key, visited, born, fingerprints, |_| {});
            return;
        }
        let identified = !step_guard::refuses_some() && {
            // Entered once for all of them.
            let batch = Batch::new(system, Part::Implementation("Hash` or `Eq"));
            let identify_all = || {
                identify_all(system, key, visited, born, fingerprints, |state| {
                    batch.go_on_with(state);
                });
            };
            panics::catch(|| step_guard::run(&batch, identify_all)).is_ok()
        };
        if !identified {
            self.identify_one_by_one(visited, born, fingerprints);
        }
    }

    #[cold]
    fn identify_one_by_one(
        &self,
        visited: &impl Visited<S>,
        born: &mut [Successor<S::State>],
        fingerprints: &mut Vec<Fingerprint>,
    ) {
        fingerprints.clear();
        for Successor { next, .. } in born {
            let identified = match next {
                Ok(state) => self.identify(visited, state),
                Err(_) => Ok(Fingerprint(0)),
            };
            fingerprints.push(identified.unwrap_or_else(|failure| {
                if self.admits(next) && next.is_ok() {
                    *next = Err(failure);
                }
                Fingerprint(0)
            }));
        }
    }

    /// Fails where the `Eq` of a state panics. A search calls it only on states that are met again.
    pub(crate) fn compare_to_itself(&self, state: &S::State) -> Result<(), Failure> {
        if !S::COMPARES_PARTS {
            let same = state;
            panics::catch_in::<S::State, _>("Eq", || same == state)?;
        }
        Ok(())
    }

    /// Fails where the `Eq` or `Clone` of a state panics. A search clones some states, and compares those that are met
    /// again.
    pub(crate) fn copy_and_compare(&self, state: &S::State) -> Result<(), Failure> {
        if !S::COMPARES_PARTS {
            implementation(self.system, state, "Clone", || drop(state.clone()))?;
        }
        self.compare_to_itself(state)
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
        let step = self.step(state, Part::Bounds);
        panics::catch(|| {
            step_guard::run(&step, || {
                let mut bounds = self.within.iter();
                bounds.all(|bound| (bound.inside)(self.system, state))
            })
        })
    }

    /// Whether a state satisfies every bound, wherever the search looks.
    pub(crate) fn satisfies_bounds(&self, state: &S::State) -> bool {
        let mut bounds = self.within.iter();
        bounds.all(|bound| panics::catch(|| (bound.inside)(self.system, state)) == Ok(true))
    }

    /// The name of the bound that keeps `state` out of the space, if one does. Where a bound before it panics, none does:
    /// that is a failure.
    pub(crate) fn bound_left(&self, state: &S::State) -> Option<&str> {
        let judged = self.within.iter().map(|bound| {
            let inside = panics::catch(|| (bound.inside)(self.system, state));
            (bound, inside)
        });
        let mut unsatisfied = judged.filter(|(_, inside)| *inside != Ok(true));
        let (bound, inside) = unsatisfied.next()?;
        inside.is_ok().then_some(&bound.name)
    }

    /// How a bound fails on `state`, if it does.
    pub(crate) fn bound_failure(&self, state: &S::State) -> Option<Failure> {
        self.is_inside(state).err()
    }

    /// What is wrong with a state itself.
    #[inline]
    pub(crate) fn judge(&self, state: &S::State) -> Option<Wrong> {
        let step = self.step(state, Part::Properties);
        let judge = || step_guard::run(&step, || self.properties.judge(self.system, state));
        match panics::catch(judge) {
            Ok(violated) => violated.map(Wrong::Violated),
            Err(_) => Some(self.panicking(state)),
        }
    }

    /// The first property that panics on `state`, and how.
    fn panicking(&self, state: &S::State) -> Wrong {
        let mut failures = self
            .properties
            .iter()
            .enumerate()
            .filter_map(|(index, property)| {
                let step = self.step(state, Part::Property(&property.name));
                let judge = || step_guard::run(&step, || property.evaluate(self.system, state));
                Some(Wrong::Panicked(index, panics::catch(judge).err()?))
            });
        failures.next().unwrap_or_else(|| {
            let message = "a property panicked, and not when it was judged again on the same state";
            let failure = Failure::new(FailureKind::Nondeterminism, message.to_owned(), None);
            Wrong::Panicked(0, failure)
        })
    }

    fn step<'s>(&'s self, state: &'s S::State, part: Part<'s, S::Event>) -> GuardedStep<'s, S> {
        GuardedStep {
            system: self.system,
            state,
            part,
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
        if step_guard::refuses_some() {
            for (at, state) in states.enumerate() {
                if let Some(wrong) = self.judge(state) {
                    found(at, wrong);
                    if self.ends_at_first {
                        break;
                    }
                }
            }
            return;
        }
        let batch = Batch::new(self.system, Part::Properties);
        // Entered once for all, and again after each state on which a property panics.
        while panics::catch(|| {
            step_guard::run(&batch, || {
                for state in &mut states {
                    batch.go_on_with(state);
                    if let Some(property) = self.properties.judge(self.system, state) {
                        found(at, Wrong::Violated(property));
                    }
                    at += 1;
                }
            });
        })
        .is_err()
        {
            if let Some(state) = batch.at_hand() {
                found(at, self.panicking(state));
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
                .and_then(|event| self.take(state, event))
                .map(|next| examined(self.system, next));
            return match next {
                Some(Ok(next)) => self.fails_on(&next, wrong),
                Some(Err(_)) => matches!(wrong, Wrong::Failed(_)),
                None => false,
            };
        }
        if self.fails_on(state, wrong) {
            return true;
        }
        let found = [self.judge(state), stuck];
        found.iter().flatten().any(|found| found.same_kind(wrong))
    }

    /// Whether `wrong` is that a bound, or the `Eq` or `Clone` of `state`, fails on it.
    fn fails_on(&self, state: &S::State, wrong: &Wrong) -> bool {
        let failures = [
            self.bound_failure(state),
            self.copy_and_compare(state).err(),
        ];
        let mut failures = failures.into_iter().flatten();
        failures.any(|failure| Wrong::Failed(failure).same_kind(wrong))
    }

    /// The same space of the system whose state a run is in.
    pub(crate) fn in_run<'b>(&'b self, run: &'b dyn Run<S>) -> Space<'b, S> {
        Space {
            system: run.system(),
            ..*self
        }
    }

    /// Whether the state of a run is part of the space; a bound that panics is a failure like any other.
    pub(crate) fn holds(&self, run: &dyn Run<S>) -> Result<bool, Failure> {
        match self.within.is_empty() && self.restriction.is_none() {
            true => Ok(true),
            false => self.in_run(run).is_inside(run.state()),
        }
    }

    /// What is wrong with there being no events but those that are enabled in a run.
    pub(crate) fn is_stuck(&self, run: &mut dyn Run<S>) -> Option<Wrong> {
        let property = self.properties.deadlock()?;
        match run.makes_progress() {
            Ok(true) => return None,
            Ok(false) => {}
            Err(failure) => return Some(Wrong::Failed(failure)),
        }
        let (system, state) = (run.system(), run.state());
        self.deadlock(property, || {
            guarded(system, state, Part::Waiting, || system.waiting(state))
        })
    }

    fn deadlock(&self, property: usize, waiting: impl FnOnce() -> Vec<Actor>) -> Option<Wrong> {
        match panics::catch(waiting) {
            Ok(waiting) if waiting.is_empty() => None,
            Ok(waiting) => Some(Wrong::Deadlock(property, waiting)),
            Err(failure) => Some(Wrong::Failed(failure)),
        }
    }

    /// Lists the events of `state`, and what is wrong with there being no others.
    #[inline]
    pub(crate) fn events(&self, state: &S::State, events: &mut Vec<S::Event>) -> Option<Wrong> {
        let first = events.len();
        if let Err(failure) = panics::catch(|| list_events(self.system, state, events)) {
            return Some(Wrong::Failed(failure));
        }
        let property = self.properties.deadlock()?;
        let waiting = || {
            let stuck = events[first..]
                .iter()
                .all(|event| self.system.kind(state, event) != EventKind::Progress);
            if stuck {
                self.system.waiting(state)
            } else {
                Vec::new()
            }
        };
        self.deadlock(property, || {
            guarded(self.system, state, Part::Waiting, waiting)
        })
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
        let expanded = match step_guard::refusal(|| self.step(state, Part::Successors).key()) {
            // Which of them does not return is found out one by one.
            Some(_) => panics::catch(|| {
                scratch.clear();
                list_events(self.system, state, scratch);
                for (position, event) in scratch.iter().enumerate() {
                    let next = next(self.system, state, event);
                    let is_last = next.is_err() && self.ends_at_first;
                    out.push(Successor { position, next });
                    if is_last {
                        break;
                    }
                }
            }),
            None => panics::catch(|| {
                let successors = || self.system.successors(state, scratch, out);
                guarded(self.system, state, Part::Successors, successors);
            }),
        };
        expanded.err().map(Wrong::Failed).or(stuck)
    }
}

/// The fingerprints of successors, as [`Space::identify_each`] finds them where nothing panics.
#[inline]
fn identify_all<'b, S: System>(
    system: &S,
    key: Key,
    visited: &impl Visited<S>,
    born: &'b [Successor<S::State>],
    fingerprints: &mut Vec<Fingerprint>,
    go_on_with: impl Fn(&'b S::State),
) {
    fingerprints.clear();
    fingerprints.extend(born.iter().map(|born| {
        let Ok(state) = &born.next else {
            return Fingerprint(0);
        };
        go_on_with(state);
        let fingerprint = system.fingerprint(state, key);
        visited.prefetch(fingerprint);
        fingerprint
    }));
    if !S::COMPARES_PARTS && visited.examines_any(fingerprints) {
        for (born, &fingerprint) in born.iter().zip(&*fingerprints) {
            if let Ok(state) = &born.next {
                go_on_with(state);
                visited.examine(state, fingerprint);
            }
        }
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
