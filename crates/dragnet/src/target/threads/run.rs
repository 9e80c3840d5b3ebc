//! Runs of multithreaded programs: a live execution that is resumed for each step.

use std::cell::{Cell, OnceCell};
use std::ops::Deref;
use std::sync::Arc;

use super::moments::{Moment, Moments, Seen, Turn};
use super::runtime::executor::Transition;
use super::runtime::live::Live;
use crate::run::Run;
use crate::system::{Actor, Failure, System};
use crate::trace::{Fingerprint, Key, Step, scatter};

/// An execution that goes on from a moment. It is begun when the first step is taken; where something has to be known about
/// the program before a step can be taken, it is begun anew, as it is to go back.
pub(super) struct LiveRun<'a> {
    moments: Owner<'a>,
    start: Moment,
    live: Live,
    /// All that has been taken, also before the start.
    taken: Vec<Transition>,
    positions: Vec<usize>,
    seen: Seen,
    events: Vec<Turn>,
    /// The present moment, if it has been asked for.
    moment: OnceCell<Moment>,
    /// The last moment before it that was asked for.
    earlier: Cell<Option<Moment>>,
    is_told: bool,
    has_failed: bool,
    repeated: u64,
}

/// Whose execution it is: that of a search, or one that knows of the program only what it was given.
enum Owner<'a> {
    Search(&'a Moments),
    Run(Box<Moments>),
}

impl Deref for Owner<'_> {
    type Target = Moments;

    fn deref(&self) -> &Moments {
        match self {
            Self::Search(moments) => moments,
            Self::Run(moments) => moments,
        }
    }
}

impl<'a> LiveRun<'a> {
    pub(super) fn new(moments: &'a Moments, start: &Moment) -> Self {
        Self::owned_by(Owner::Search(moments), start)
    }

    /// A run that brings what is known of the program.
    pub(super) fn of_its_own(moments: Moments, start: &Moment) -> Self {
        Self::owned_by(Owner::Run(Box::new(moments)), start)
    }

    fn owned_by(moments: Owner<'a>, start: &Moment) -> Self {
        let seen = start.seen().clone();
        Self {
            live: Live::new(Arc::clone(moments.program()), false),
            moments,
            start: start.clone(),
            taken: start.taken(),
            positions: Vec::new(),
            events: turns(&seen),
            seen,
            moment: OnceCell::from(start.clone()),
            earlier: Cell::new(None),
            is_told: false,
            has_failed: false,
            repeated: 0,
        }
    }

    /// All that has been taken, also before the start.
    pub(super) fn taken(&self) -> &[Transition] {
        &self.taken
    }

    fn end(&mut self) {
        let moments = &self.moments;
        let executor = self
            .live
            .end(|execution, weak| moments.note(execution, weak));
        if let Some(executor) = executor {
            moments.give_back(executor);
        }
    }
}

fn turns(seen: &Seen) -> Vec<Turn> {
    let enabled = seen.enabled.iter();
    enabled.map(|&transition| Turn(transition)).collect()
}

impl Drop for LiveRun<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

impl Run<Moments> for LiveRun<'_> {
    fn system(&self) -> &Moments {
        &self.moments
    }

    fn steps(&self) -> usize {
        self.positions.len()
    }

    fn state(&self) -> &Moment {
        self.moment.get_or_init(|| {
            let earlier = self.earlier.take();
            let earlier = earlier.unwrap_or_else(|| self.start.clone());
            // The step that failed leads nowhere.
            let end = self.taken.len() - usize::from(self.has_failed);
            let since = self.taken[earlier.steps()..end].into();
            let told = self.live.report().told.clone();
            let told = told.filter(|_| !self.has_failed);
            earlier.later(since, self.seen.clone(), told)
        })
    }

    fn events(&mut self) -> Result<&[Turn], Failure> {
        Ok(&self.events)
    }

    fn take(&mut self, position: usize) -> Result<(), Failure> {
        let Turn(next) = self.events[position];
        let moments = &self.moments;
        if let Some(moment) = self.moment.take() {
            self.earlier.set(Some(moment));
        }
        let taken = self.live.take(&self.taken, next, || moments.executor());
        self.taken.push(next);
        self.positions.push(position);
        let report = self.live.report();
        self.repeated += report.repeated;
        self.events.clear();
        if let Err(failure) = taken {
            self.has_failed = true;
            return Err(failure);
        }
        self.seen.history = self.seen.history.wrapping_add(report.hash);
        self.seen.enabled.clone_from(&report.enabled);
        self.seen.tasks.clone_from(&report.tasks);
        self.seen.waiting.clone_from(&report.waiting);
        let enabled = report.enabled.iter();
        self.events
            .extend(enabled.map(|&transition| Turn(transition)));
        Ok(())
    }

    fn back_to(&mut self, steps: usize) -> Result<(), Failure> {
        assert!(steps <= self.steps(), "there are only {}", self.steps());
        if steps == self.steps() {
            return Ok(());
        }
        self.end();
        let positions = std::mem::take(&mut self.positions);
        self.live = Live::new(Arc::clone(self.moments.program()), self.is_told);
        self.taken = self.start.taken();
        self.seen = self.start.seen().clone();
        self.events = turns(&self.seen);
        self.moment = OnceCell::from(self.start.clone());
        self.earlier = Cell::new(None);
        self.has_failed = false;
        for &position in &positions[..steps] {
            self.take(position)?;
            self.repeated += 1;
        }
        Ok(())
    }

    fn positions(&mut self) -> Vec<usize> {
        self.positions.clone()
    }

    fn fingerprint(&self, key: Key) -> Fingerprint {
        Fingerprint::of(&scatter(self.seen.history), key)
    }

    fn makes_progress(&mut self) -> Result<bool, Failure> {
        Ok(!self.events.is_empty())
    }

    fn tasks(&mut self, actors: &mut Vec<Actor>) -> Result<(), Failure> {
        actors.clear();
        let tasks = self.seen.tasks.iter();
        actors.extend(tasks.map(|(task, _)| task.actor));
        Ok(())
    }

    fn take_task(
        &mut self,
        position: usize,
        _choose: &mut dyn FnMut(usize) -> usize,
    ) -> Result<bool, Failure> {
        self.take(position)?;
        Ok(true)
    }

    fn has_yielded(&self) -> bool {
        self.live.report().has_yielded
    }

    fn describe_steps(&mut self) {
        self.is_told = true;
        self.live = Live::new(Arc::clone(self.moments.program()), true);
    }

    fn described(&self) -> Option<Step> {
        self.live.report().told.clone()
    }

    fn awaits(&self, actor: Actor) -> Option<String> {
        if self.positions.is_empty() {
            return self.moments.awaits(&self.start, actor);
        }
        self.live
            .awaited(self.moments.program().names.thread(actor)?)
    }

    fn facts(&self) -> Vec<String> {
        self.moments.program().loops.facts()
    }

    fn repeated_steps(&self) -> u64 {
        self.repeated
    }
}
