//! Engines that are written outside of Dragnet, on a cursor that knows neither the target nor its properties by type.

use std::sync::atomic::Ordering;

use super::limits::Gauge;
use super::path::{Path, Wrong};
use super::sample::Sample;
use super::walk::{Explored, LeftOut, Space};
use crate::panics;
use crate::quantity::DepthBound;
use crate::run::Run;
use crate::system::{Actor, EventKind, Failure, FailureKind, System, Task};
use crate::tables::Sketch;
use crate::trace::Fingerprint;

/// An engine of one's own, for [`Check::explore_with`](crate::Check::explore_with).
///
/// It explores whatever target the check has, through a [`Cursor`]. The cursor judges each state that it comes to; what it
/// finds is shortened, replayed and printed as the findings of any engine.
///
/// ```
/// use dragnet::extend::{Arrival, Cursor, Explorer, Extent};
/// use dragnet::{Check, Failure, System};
///
/// /// Takes the last of the enabled events, as long as there are any.
/// struct LastFirst;
///
/// impl Explorer for LastFirst {
///     fn name(&self) -> &str {
///         "last-first"
///     }
///
///     fn explore(&self, cursor: &mut dyn Cursor) -> Extent {
///         while !cursor.must_end() {
///             let Some(last) = cursor.enabled().checked_sub(1) else {
///                 break;
///             };
///             cursor.take(last);
///         }
///         Extent::Part("one execution is no proof")
///     }
/// }
///
/// /// Counts to three, by ones and twos.
/// struct Counter;
///
/// impl System for Counter {
///     type State = u8;
///     type Event = u8;
///
///     fn initial(&self) -> Vec<u8> {
///         vec![0]
///     }
///
///     fn events(&self, count: &u8, out: &mut Vec<u8>) {
///         out.extend((1..=2).filter(|more| count + more <= 3));
///     }
///
///     fn next(&self, count: &u8, more: &u8) -> Result<u8, Failure> {
///         Ok(count + more)
///     }
/// }
///
/// let check = |worst| Check::new(Counter).always("not there", move |&count| count != worst);
/// assert!(check(2).explore_with(LastFirst).run().violation().is_some());
/// assert!(check(1).explore_with(LastFirst).run().violation().is_none());
/// ```
pub trait Explorer: Send + Sync + 'static {
    /// Its name in verdicts.
    fn name(&self) -> &str;

    /// Explores from the first initial state on, where the cursor is, until something is violated or the cursor says that the
    /// search must end.
    fn explore(&self, cursor: &mut dyn Cursor) -> Extent;
}

/// How much of the space an [`Explorer`] has explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extent {
    /// Every reachable state.
    Everything,
    /// Not all of it, for this reason.
    Part(&'static str),
}

/// Where a step leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arrival {
    /// To a state of the space.
    Inside,
    /// Out of the space that the check is bounded to: the step is not taken.
    Outside,
    /// To a violation, or to something that cannot be judged: the search is over.
    Violation,
}

/// A cursor along one execution of a check, which judges each state that it comes to.
pub trait Cursor {
    /// How many initial states the space has.
    fn starts(&self) -> usize;

    /// Begins anew in an initial state.
    fn begin(&mut self, start: usize) -> Arrival;

    /// How many steps have been taken from there.
    fn steps(&self) -> usize;

    /// How many events are enabled; none when the search is over.
    fn enabled(&mut self) -> usize;

    /// Who takes the enabled event at a position.
    ///
    /// # Panics
    /// Where there is no such event.
    fn task(&mut self, position: usize) -> Task;

    /// What the task of the enabled event at a position is about: see [`System::identity`].
    ///
    /// # Panics
    /// Where there is no such event.
    fn identity(&mut self, position: usize) -> Fingerprint;

    /// What kind of step the enabled event at a position is.
    ///
    /// # Panics
    /// Where there is no such event.
    fn kind(&mut self, position: usize) -> EventKind;

    /// The actors that are alive and wait for something.
    fn waiting(&mut self) -> Vec<Actor>;

    /// Takes the enabled event at a position.
    ///
    /// # Panics
    /// Where there is no such event.
    fn take(&mut self, position: usize) -> Arrival;

    /// Goes back to where so many steps had been taken. One step back is cheap for most targets; a multithreaded program is
    /// executed again up to there.
    ///
    /// # Panics
    /// Where there were fewer steps.
    fn back_to(&mut self, steps: usize);

    /// The fingerprint of the present state.
    fn fingerprint(&self) -> Fingerprint;

    /// The bound on the steps of an execution, if the check has one. An explorer that keeps it says that it explored a part.
    fn depth(&self) -> Option<DepthBound>;

    /// Whether the search must end: something is violated, or a limit is reached.
    fn must_end(&self) -> bool;
}

/// Explores with an engine of the user's.
pub(crate) fn explore<S: System>(
    space: &Space<'_, S>,
    explorer: &dyn Explorer,
    sample: Option<&Sample<S::State>>,
    gauge: &Gauge,
    depth: Option<DepthBound>,
) -> Explored {
    let _attendance = space.attend();
    let initial = match space.initial() {
        Ok(initial) => initial,
        Err(explored) => return explored,
    };
    if initial.is_empty() {
        return Explored::to_the_end(gauge);
    }
    let mut judge = Judge {
        space,
        sample,
        gauge,
        depth,
        initial: &initial,
        start: 0,
        run: None,
        found: None,
        states: Sketch::new(),
        taken: 0,
    };
    judge.begin(0);
    let extent = panics::catch(|| explorer.explore(&mut judge));
    judge.estimate();
    if let Some((path, wrong)) = judge.found {
        return Explored::found(path, wrong);
    }
    let mut explored = Explored::to_the_end(gauge);
    match extent {
        Ok(Extent::Everything) => {}
        Ok(Extent::Part(why)) => {
            let why = explored.left_out.unwrap_or(LeftOut::NotExplored(why));
            explored.left_out = Some(why);
        }
        // A mistake of the engine is none of the program.
        Err(failure) if failure.kind().is_violation() => {
            let message = format!("the engine {} {failure}", explorer.name());
            let failure = Failure::new(FailureKind::Limit, message, None);
            return Explored::found(Path::starting(0), Wrong::Failed(failure));
        }
        Err(failure) => return Explored::found(Path::starting(0), Wrong::Failed(failure)),
    }
    explored
}

/// The cursor of an explorer: a run, each state of which is judged.
struct Judge<'a, S: System> {
    space: &'a Space<'a, S>,
    /// States of a direct system are compared by equality with others of their fingerprint.
    sample: Option<&'a Sample<S::State>>,
    gauge: &'a Gauge,
    depth: Option<DepthBound>,
    /// The initial states inside the space, with their places in the system's own list.
    initial: &'a [(usize, S::State)],
    start: usize,
    run: Option<Box<dyn Run<S> + 'a>>,
    found: Option<(Path, Wrong)>,
    /// The states that the cursor has come to.
    states: Sketch,
    /// How many steps it has taken in all.
    taken: u64,
}

/// How many steps are taken between two estimates of the number of states.
const BETWEEN_ESTIMATES: u64 = 4_096;

#[cold]
fn no_such_event(position: usize, enabled: usize) -> ! {
    panic!("takes number {position} of {enabled} enabled events, counted from 0")
}

impl<'a, S: System> Judge<'a, S> {
    fn run(&mut self) -> &mut (dyn Run<S> + 'a) {
        &mut **self.run.as_mut().expect("it has begun")
    }

    fn event(&mut self, position: usize) -> S::Event {
        let enabled = match self.run().events() {
            Ok(enabled) => enabled,
            Err(failure) => panics::raise(failure),
        };
        match enabled.get(position) {
            Some(event) => event.clone(),
            None => no_such_event(position, enabled.len()),
        }
    }

    fn estimate(&self) {
        let states = self.states.estimate();
        self.gauge.states.store(states, Ordering::Relaxed);
    }

    /// Takes note of what is wrong with the execution so far.
    fn note(&mut self, wrong: Wrong) -> Arrival {
        let events = self.run.as_mut().map(|run| run.positions());
        let path = Path {
            events: events.unwrap_or_default(),
            ..Path::starting(self.initial[self.start].0)
        };
        self.found = Some((path, wrong));
        Arrival::Violation
    }

    fn fail(&mut self, failure: Failure) -> Arrival {
        self.note(Wrong::Failed(failure))
    }

    /// Judges the state that the run has come to, and that there is no more to come if nothing is enabled.
    fn arrive(&mut self) -> Arrival {
        let (space, sample) = (self.space, self.sample);
        let run = &mut **self.run.as_mut().expect("it has begun");
        let fingerprint = || run.fingerprint(space.key);
        let identified = panics::catch_in::<S::State, _>("Hash", fingerprint);
        let identified = identified.and_then(|fingerprint| {
            let examine = |sample: &Sample<S::State>| sample.examine(run.state(), fingerprint);
            panics::catch_in::<S::State, _>("Eq", || sample.map_or((), examine))?;
            space.compare_to_itself(run.state())?;
            Ok(fingerprint)
        });
        match identified {
            Ok(fingerprint) => self.states.add(fingerprint),
            Err(failure) => return self.fail(failure),
        }
        let run = &mut **self.run.as_mut().expect("it has begun");
        let wrong = space.in_run(run).judge(run.state());
        match wrong.or_else(|| space.is_stuck(run)) {
            Some(wrong) => self.note(wrong),
            None => Arrival::Inside,
        }
    }
}

impl<S: System> Cursor for Judge<'_, S> {
    fn starts(&self) -> usize {
        self.initial.len()
    }

    fn begin(&mut self, start: usize) -> Arrival {
        if self.found.is_some() {
            return Arrival::Violation;
        }
        let starts = self.starts();
        assert!(
            start < starts,
            "begins at {start}, and there are {starts} initial states"
        );
        self.start = start;
        self.run = None;
        self.estimate();
        match self.space.system.run(&self.initial[start].1) {
            Ok(run) => self.run = Some(run),
            Err(failure) => return self.fail(failure),
        }
        self.arrive()
    }

    fn steps(&self) -> usize {
        self.run.as_ref().map_or(0, |run| run.steps())
    }

    fn enabled(&mut self) -> usize {
        if self.found.is_some() {
            return 0;
        }
        match self.run().events().map(<[_]>::len) {
            Ok(enabled) => enabled,
            Err(failure) => {
                self.fail(failure);
                0
            }
        }
    }

    fn task(&mut self, position: usize) -> Task {
        let event = self.event(position);
        let run = self.run();
        run.system().task(run.state(), &event)
    }

    fn identity(&mut self, position: usize) -> Fingerprint {
        let event = self.event(position);
        let run = self.run();
        run.system().identity(run.state(), &event)
    }

    fn kind(&mut self, position: usize) -> EventKind {
        let event = self.event(position);
        let run = self.run();
        run.system().kind(run.state(), &event)
    }

    fn waiting(&mut self) -> Vec<Actor> {
        let run = self.run();
        run.system().waiting(run.state())
    }

    fn take(&mut self, position: usize) -> Arrival {
        if self.found.is_some() {
            return Arrival::Violation;
        }
        let enabled = self.enabled();
        if self.found.is_some() {
            return Arrival::Violation;
        }
        if position >= enabled {
            no_such_event(position, enabled);
        }
        self.gauge.add(0, 1);
        self.taken += 1;
        if self.taken.is_multiple_of(BETWEEN_ESTIMATES) {
            self.estimate();
        }
        if let Err(failure) = self.run().take(position) {
            self.gauge.reach(self.steps() as u64);
            return self.fail(failure);
        }
        let inside = self.space.holds(self.run());
        match inside {
            Err(failure) => self.fail(failure),
            Ok(false) => {
                self.back_to(self.steps() - 1);
                match self.found {
                    Some(_) => Arrival::Violation,
                    None => Arrival::Outside,
                }
            }
            Ok(true) => {
                self.gauge.reach(self.steps() as u64);
                self.arrive()
            }
        }
    }

    fn back_to(&mut self, steps: usize) {
        let taken = self.steps();
        assert!(
            steps <= taken,
            "goes back to step {steps}, and has taken {taken}"
        );
        if self.found.is_none()
            && let Err(failure) = self.run().back_to(steps)
        {
            self.fail(failure);
        }
    }

    fn fingerprint(&self) -> Fingerprint {
        let run = self.run.as_ref().expect("it has begun");
        run.fingerprint(self.space.key)
    }

    fn depth(&self) -> Option<DepthBound> {
        self.depth
    }

    fn must_end(&self) -> bool {
        self.found.is_some() || self.gauge.must_end()
    }
}
