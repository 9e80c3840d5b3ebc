//! Runs: cursors along one execution of a system.

use std::mem;

use crate::guarded;
use crate::panics;
use crate::system::{Actor, EventKind, Failure, System};
use crate::trace::{Fingerprint, Key, Step};

/// A cursor along one execution, which [`System::run`] makes.
///
/// Taking an event costs one step of the system, however long the execution is. That matters where a state is expensive: a
/// multithreaded program is a live execution that is resumed for each step, and only [going back](Run::back_to) executes what
/// came before again.
///
/// Random walks, replay and the printed counterexample stand on runs, so that each is written once for every target. A system
/// need not implement this: by default a run keeps its states.
///
/// ```
/// use dragnet::{Failure, Run, System};
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
/// let mut run = Counter.run(&0)?;
/// while !run.events()?.is_empty() {
///     // The last of the enabled events.
///     let last = run.events()?.len() - 1;
///     run.take(last)?;
/// }
/// assert_eq!((*run.state(), run.steps()), (3, 2));
/// assert_eq!(run.positions(), [1, 0]);
/// run.back_to(1)?;
/// assert_eq!((*run.state(), run.events()?), (2, &[1][..]));
/// # Ok::<(), Failure>(())
/// ```
pub trait Run<S: System> {
    /// The system that [`state`](Run::state) is a state of. It may be a copy that belongs to the run.
    fn system(&self) -> &S;

    /// How many steps have been taken.
    fn steps(&self) -> usize;

    /// The present state. Behind a step that failed it is that before the step.
    fn state(&self) -> &S::State;

    /// The events that are enabled, in the order of [`System::events`]. None are behind a step that failed.
    fn events(&mut self) -> Result<&[S::Event], Failure>;

    /// Takes the event at a position among those enabled. A failure ends the run, and counts as a step.
    ///
    /// # Panics
    /// Where there is no such event.
    fn take(&mut self, position: usize) -> Result<(), Failure>;

    /// Goes back to where so many steps had been taken. One step back is cheap where states are; otherwise the steps
    /// before are taken again.
    fn back_to(&mut self, steps: usize) -> Result<(), Failure>;

    /// The steps so far, each as the position of its event among those that were enabled.
    fn positions(&mut self) -> Vec<usize>;

    /// The [fingerprint](System::fingerprint) of the present state. A run may know it without making the state.
    fn fingerprint(&self, key: Key) -> Fingerprint {
        self.system().fingerprint(self.state(), key)
    }

    /// Whether an event is enabled that is neither a fault nor a delivery that changes nothing.
    fn makes_progress(&mut self) -> Result<bool, Failure>;

    /// Lists the actor of each task that is enabled, for a walk that draws one of them. Events that differ only in the
    /// choices of one handler are one task, and what a task does need not be known before it is taken.
    fn tasks(&mut self, actors: &mut Vec<Actor>) -> Result<(), Failure>;

    /// Takes the task at a position among those that were listed last. Where its handler chooses, `choose` picks one of so
    /// many alternatives. Says no where the task turns out not to be enabled, because it would change nothing: then the state
    /// is the same as before, and another one of the tasks can be taken.
    fn take_task(
        &mut self,
        position: usize,
        choose: &mut dyn FnMut(usize) -> usize,
    ) -> Result<bool, Failure>;

    /// Whether the last step was a thread's yield, by which it lets others go first.
    fn has_yielded(&self) -> bool {
        false
    }

    /// Has steps described from here on, with the values that only their execution shows. Called before the first step.
    fn describe_steps(&mut self) {}

    /// The last step as a person wants to read it, where the run has described it. Elsewhere
    /// [`System::explain`] does.
    fn described(&self) -> Option<Step> {
        None
    }

    /// Has the program's own code be executed for each step from here on, also where what comes of it is known.
    fn execute_steps(&mut self) {}

    /// The facts about the program, in a fixed order, that decide which events are enabled along the run. It has found them
    /// out, or was [given](System::replay) them.
    fn facts(&self) -> Vec<String> {
        Vec::new()
    }

    /// How many steps were taken a second time, to go back or because something had to be known before the next one.
    fn repeated_steps(&self) -> u64 {
        0
    }

    /// What an actor that waits in the present state waits for.
    fn awaits(&self, actor: Actor) -> Option<String> {
        self.system().awaits(self.state(), actor)
    }
}

/// A run of a system whose states are cheap.
pub(crate) struct StateRun<'a, S: System> {
    system: &'a S,
    state: S::State,
    /// The states before it.
    before: Vec<S::State>,
    positions: Vec<usize>,
    events: Vec<S::Event>,
    are_listed: bool,
    has_failed: bool,
    executes: bool,
}

impl<'a, S: System> StateRun<'a, S> {
    pub(crate) fn new(system: &'a S, start: &S::State) -> Result<Self, Failure> {
        let state = guarded::implementation(system, start, "Clone", || start.clone())?;
        Ok(Self {
            system,
            state,
            before: Vec::new(),
            positions: Vec::new(),
            events: Vec::new(),
            are_listed: false,
            has_failed: false,
            executes: false,
        })
    }

    fn list(&mut self) -> Result<(), Failure> {
        if self.are_listed {
            return Ok(());
        }
        self.events.clear();
        let (system, state, events) = (self.system, &self.state, &mut self.events);
        panics::catch(|| guarded::list_events(system, state, events))?;
        self.are_listed = true;
        Ok(())
    }
}

impl<S: System> Run<S> for StateRun<'_, S> {
    fn system(&self) -> &S {
        self.system
    }

    fn steps(&self) -> usize {
        self.positions.len()
    }

    fn state(&self) -> &S::State {
        &self.state
    }

    fn events(&mut self) -> Result<&[S::Event], Failure> {
        self.list()?;
        Ok(&self.events)
    }

    fn take(&mut self, position: usize) -> Result<(), Failure> {
        self.list()?;
        if self.executes {
            self.system.execute(&self.state, &self.events[position]);
        }
        let next = guarded::next(self.system, &self.state, &self.events[position]);
        self.positions.push(position);
        match next {
            Ok(next) => {
                self.before.push(mem::replace(&mut self.state, next));
                self.are_listed = false;
                Ok(())
            }
            Err(failure) => {
                self.events.clear();
                self.has_failed = true;
                Err(failure)
            }
        }
    }

    fn back_to(&mut self, steps: usize) -> Result<(), Failure> {
        assert!(steps <= self.steps(), "there are only {}", self.steps());
        if steps == self.steps() {
            return Ok(());
        }
        self.are_listed = false;
        self.has_failed = false;
        self.positions.truncate(steps);
        // A step that failed has led to no state.
        if let Some(state) = self.before.drain(steps.min(self.before.len())..).next() {
            self.state = state;
        }
        Ok(())
    }

    fn positions(&mut self) -> Vec<usize> {
        self.positions.clone()
    }

    fn makes_progress(&mut self) -> Result<bool, Failure> {
        self.list()?;
        let mut events = self.events.iter();
        panics::catch(|| {
            events.any(|event| self.system.kind(&self.state, event) == EventKind::Progress)
        })
    }

    fn tasks(&mut self, actors: &mut Vec<Actor>) -> Result<(), Failure> {
        self.list()?;
        actors.clear();
        let (system, state) = (self.system, &self.state);
        let events = self.events.iter();
        panics::catch(|| actors.extend(events.map(|event| system.task(state, event).actor)))
    }

    fn take_task(
        &mut self,
        position: usize,
        _choose: &mut dyn FnMut(usize) -> usize,
    ) -> Result<bool, Failure> {
        self.take(position)?;
        Ok(true)
    }

    fn execute_steps(&mut self) {
        self.executes = true;
    }
}
