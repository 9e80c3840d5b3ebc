//! Runs of clusters: executions that keep no more than their own states.
//!
//! A run has tables of its own, which are thrown away when they have grown: a local state that one walk comes to and no other
//! needs is forgotten. For a task that is drawn its handler is run once, with the choices that are drawn, and nothing is run
//! for the tasks beside it.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::faults::FaultKind;
use super::inbox::Inboxes;
use super::network::Order;
use super::outcome::Drawn;
use super::row::{ENVIRONMENT, Row};
use super::steps::{Kind, NodeEvent};
use super::system::Nodes;
use crate::coarse_hash::CoarseHash;
use crate::panics;
use crate::run::Run;
use crate::system::{Actor, Failure, System};
use crate::tables::Sketch;
use crate::trace::{Fingerprint, bind};

/// What a cluster keeps of its runs and for them.
pub(super) struct Runs {
    /// Tables that no run uses at the moment.
    idle: Mutex<Vec<Nodes>>,
    /// The local states of all runs.
    local_states: OnceLock<Sketch>,
    coarse_hash: OnceLock<CoarseHash>,
    is_within_a_run: bool,
}

impl Runs {
    pub(super) fn new() -> Self {
        Self {
            idle: Mutex::default(),
            local_states: OnceLock::new(),
            coarse_hash: OnceLock::new(),
            is_within_a_run: false,
        }
    }

    /// Those of a cluster whose tables belong to a run.
    pub(super) fn within_a_run() -> Self {
        Self {
            is_within_a_run: true,
            ..Self::new()
        }
    }

    /// Whether the tables of the cluster are there as long as the check.
    pub(super) fn shares_tables(&self) -> bool {
        !self.is_within_a_run
    }

    /// About how many local states runs have come to.
    pub(super) fn local_states(&self) -> u64 {
        self.local_states.get().map_or(0, Sketch::estimate)
    }

    /// Two unequal parts of states with one hash that a run has met.
    pub(super) fn coarse_hash(&self) -> Option<CoarseHash> {
        self.coarse_hash.get().cloned()
    }

    fn note_local_state(&self, hash: u64) {
        let known = self.local_states.get_or_init(Sketch::new);
        known.add(Fingerprint(hash));
    }
}

/// Tables with more local states, messages or cells than this are not used by another run.
const MOST_KEPT: u64 = 1 << 14;

/// An execution of a cluster.
pub(super) struct NodeRun<'a> {
    system: &'a Nodes,
    /// The same cluster with tables of its own, until the run is over.
    own: Option<Nodes>,
    /// Where it starts, in the tables of the system.
    start: Row,
    /// The states so far, in its own tables.
    rows: Vec<Row>,
    taken: Vec<Taken>,
    has_failed: bool,
    events: Vec<NodeEvent>,
    are_listed: bool,
    tasks: Vec<NodeEvent>,
}

/// What came of a task that runs a handler.
struct Handled {
    choices: Box<[usize]>,
    next: Result<Row, Failure>,
}

/// An event that was taken, by what it is.
struct Taken {
    kind: Kind,
    node: u8,
    /// The input in the run's own tables; for a partition, the nodes on the far side.
    input: u32,
    choices: Box<[usize]>,
}

impl<'a> NodeRun<'a> {
    pub(super) fn new(system: &'a Nodes, start: &Row) -> Result<Self, Failure> {
        let idle = &system.runs.idle;
        let ready = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let own = ready.unwrap_or_else(|| system.with_empty_tables());
        let first = panics::catch(|| own.adopt(system, start))?;
        for node in 0..own.len() {
            let local = own.local_in(&first, node);
            system.runs.note_local_state(own.handlers.local_hash(local));
        }
        Ok(Self {
            system,
            own: Some(own),
            start: start.clone(),
            rows: vec![first],
            taken: Vec::new(),
            has_failed: false,
            events: Vec::new(),
            are_listed: false,
            tasks: Vec::new(),
        })
    }

    fn own(&self) -> &Nodes {
        self.own.as_ref().expect("the run is not over")
    }

    fn row(&self) -> &Row {
        self.rows.last().expect("it begins with one")
    }

    /// Takes note of a step, and how it ended.
    fn note(&mut self, taken: Taken, next: Result<Row, Failure>) -> Result<(), Failure> {
        self.taken.push(taken);
        self.are_listed = false;
        match next {
            Ok(row) => {
                self.rows.push(row);
                Ok(())
            }
            Err(failure) => {
                self.has_failed = true;
                Err(failure)
            }
        }
    }

    fn list(&mut self) -> Result<(), Failure> {
        if self.are_listed {
            return Ok(());
        }
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        if !self.has_failed {
            panics::catch(|| self.own().events(self.row(), &mut events))?;
        }
        self.events = events;
        self.are_listed = true;
        Ok(())
    }

    /// Runs the handler of a task with choices that follow from `draw`. `None` where that changes nothing, and such deliveries
    /// are left out.
    fn handle(&self, task: &NodeEvent, draw: u64) -> Option<Handled> {
        let (own, row) = (self.own(), self.row());
        let node = usize::from(task.node);
        let cell = own.cell(row, node);
        let drawn = own.handlers.draw_outcome(cell.local, task.input, draw);
        let outcomes = match &drawn {
            Drawn::Known(id) => own.handlers.outcomes(*id),
            Drawn::Once(outcomes) => outcomes,
        };
        if task.kind == Kind::Deliver && own.skips_idle && outcomes.idle {
            return None;
        }
        let outcome = &outcomes.outcomes[0];
        self.system
            .runs
            .note_local_state(own.handlers.local_hash(outcome.local));
        let choices = outcome.choices().into();
        let inbox = match task.kind {
            Kind::Deliver => own.inboxes.without(cell.inbox, usize::from(task.at), own),
            Kind::Crash if own.order == Order::PerLink => Inboxes::EMPTY,
            _ => cell.inbox,
        };
        let fault = match task.kind {
            Kind::Crash => Some(FaultKind::Crash),
            Kind::Restart => Some(FaultKind::Restart),
            _ => None,
        };
        let mut next = row.clone();
        let settled = own.settle(&mut next, node, outcome, inbox);
        if let (Ok(()), Some(fault)) = (&settled, fault) {
            own.set_environment(&mut next, own.environment(row).spend(fault));
        }
        let next = settled.map(|()| next);
        Some(Handled { choices, next })
    }

    /// The position of an event among those that the system itself lists.
    fn position(&self, taken: &Taken, events: &[NodeEvent]) -> Option<usize> {
        let (system, own) = (self.system, self.own());
        let is_it = |event: &NodeEvent| {
            let is_same = match taken.kind {
                Kind::Heal => true,
                Kind::Partition => event.input == taken.input,
                _ => system.handlers.is_same_input(event.input, own, taken.input),
            };
            event.kind == taken.kind && event.node == taken.node && is_same
        };
        let choices = |event: &NodeEvent| match event.kind {
            Kind::Own | Kind::Deliver | Kind::Crash | Kind::Restart => {
                system.outcome_of(event).choices()
            }
            _ => &[],
        };
        let chosen = |event: &NodeEvent| is_it(event) && *choices(event) == *taken.choices;
        let chosen = events.iter().position(chosen);
        // A step that is refused, because it does not return, has chosen nothing.
        chosen.or_else(|| events.iter().position(is_it))
    }

    /// The positions of what was taken, as far as the system itself goes the same way.
    fn find_positions(&self) -> Vec<usize> {
        let mut row = self.start.clone();
        let mut positions = Vec::with_capacity(self.taken.len());
        let mut events = Vec::new();
        for taken in &self.taken {
            events.clear();
            self.system.events(&row, &mut events);
            let Some(position) = self.position(taken, &events) else {
                break;
            };
            positions.push(position);
            match self.system.next(&row, &events[position]) {
                Ok(next) => row = next,
                Err(_) => break,
            }
        }
        positions
    }
}

impl Nodes {
    /// A row of another cluster like this in the tables of this one.
    fn adopt(&self, other: &Self, row: &Row) -> Row {
        let environment = self.intern_environment(other.environment(row).clone());
        let bound = bind(self.environments.hash(environment), self.slots[ENVIRONMENT]);
        let mut adopted = Row::new(bound, environment, self.len());
        for node in 0..self.len() {
            let local = self.handlers.adopt_local(other, other.local_in(row, node));
            let envelopes = other.in_flight_to(row, node).iter();
            let envelopes: Vec<u32> = envelopes
                .map(|&envelope| self.handlers.adopt_input(other, envelope))
                .collect();
            let inbox = self.inboxes.of(&envelopes, self);
            let cell = self.find_cell(node, local, inbox);
            adopted.set_cell(node, cell);
            adopted.sum = adopted.sum.wrapping_add(self.cells.get(cell).bound);
        }
        adopted
    }

    fn is_small(&self) -> bool {
        let (locals, inputs) = (self.handlers.local_states(), self.handlers.inputs());
        let cells = self.cells.len() as u64;
        [locals, inputs, cells]
            .iter()
            .all(|&size| size <= MOST_KEPT)
    }
}

impl Drop for NodeRun<'_> {
    fn drop(&mut self) {
        let Some(own) = self.own.take() else { return };
        let known = self.system.handlers.counts();
        let counts = own.handlers.counts();
        let ran = counts.handler_runs.swap(0, Relaxed);
        known.handler_runs.fetch_add(ran, Relaxed);
        let digested = counts.digested.load(Relaxed);
        known.digested.fetch_or(digested, Relaxed);
        if let Some(found) = own.handlers.unequal_parts() {
            let _ = self.system.runs.coarse_hash.set(found);
        }
        if own.is_small() && !std::thread::panicking() {
            let idle = self.system.runs.idle.lock();
            idle.unwrap_or_else(PoisonError::into_inner).push(own);
        }
    }
}

impl Run<Nodes> for NodeRun<'_> {
    fn system(&self) -> &Nodes {
        self.own()
    }

    fn steps(&self) -> usize {
        self.taken.len()
    }

    fn state(&self) -> &Row {
        self.row()
    }

    fn events(&mut self) -> Result<&[NodeEvent], Failure> {
        self.list()?;
        Ok(&self.events)
    }

    fn take(&mut self, position: usize) -> Result<(), Failure> {
        self.list()?;
        let event = self.events[position];
        let next = panics::catch(|| self.own().next(self.row(), &event)).and_then(|next| next);
        let choices = match event.kind {
            Kind::Own | Kind::Deliver | Kind::Crash | Kind::Restart => {
                self.own().outcome_of(&event).choices().into()
            }
            _ => Box::default(),
        };
        let taken = Taken {
            kind: event.kind,
            node: event.node,
            input: event.input,
            choices,
        };
        if let Ok(next) = &next {
            let local = self.own().cell(next, usize::from(event.node)).local;
            let hash = self.own().handlers.local_hash(local);
            self.system.runs.note_local_state(hash);
        }
        self.note(taken, next)
    }

    fn back_to(&mut self, steps: usize) -> Result<(), Failure> {
        assert!(steps <= self.steps(), "there are only {}", self.steps());
        if steps < self.steps() {
            self.taken.truncate(steps);
            self.rows.truncate(steps + 1);
            self.has_failed = false;
            self.are_listed = false;
        }
        Ok(())
    }

    fn positions(&mut self) -> Vec<usize> {
        panics::catch(|| self.find_positions()).unwrap_or_default()
    }

    fn makes_progress(&mut self) -> Result<bool, Failure> {
        let (own, row) = (self.own(), self.row());
        if own.environment(row).cut.is_some() {
            return Ok(true);
        }
        let mut tasks = Vec::new();
        panics::catch(|| {
            (0..own.len()).any(|node| {
                tasks.clear();
                own.open_tasks(row, node, &mut tasks);
                let local = own.cell(row, node).local;
                tasks.iter().any(|task| {
                    let handlers = &own.handlers;
                    let is_idle = || {
                        handlers
                            .outcomes(handlers.outcomes_of(local, task.input))
                            .idle
                    };
                    task.kind == Kind::Own || !is_idle()
                })
            })
        })
    }

    fn tasks(&mut self, actors: &mut Vec<Actor>) -> Result<(), Failure> {
        let mut tasks = std::mem::take(&mut self.tasks);
        tasks.clear();
        actors.clear();
        if !self.has_failed {
            let (own, row) = (self.own(), self.row());
            panics::catch(|| {
                for node in 0..own.len() {
                    own.open_tasks(row, node, &mut tasks);
                }
                if own.has_faults {
                    own.push_faults(row, &mut tasks, |kind, node, input, tasks| {
                        tasks.push(NodeEvent::of_input(kind, node, input));
                    });
                }
                actors.extend(tasks.iter().map(|task| own.task(row, task).actor));
            })?;
        }
        self.tasks = tasks;
        Ok(())
    }

    fn take_task(
        &mut self,
        position: usize,
        choose: &mut dyn FnMut(usize) -> usize,
    ) -> Result<bool, Failure> {
        let task = self.tasks[position];
        let Handled { choices, next } = match task.kind {
            Kind::Own | Kind::Deliver | Kind::Crash | Kind::Restart => {
                let draw = choose(1 << 62) as u64;
                match panics::catch(|| self.handle(&task, draw))? {
                    Some(handled) => handled,
                    None => return Ok(false),
                }
            }
            _ => {
                let next = panics::catch(|| self.own().next(self.row(), &task));
                Handled {
                    choices: Box::default(),
                    next: next.and_then(|next| next),
                }
            }
        };
        let taken = Taken {
            kind: task.kind,
            node: task.node,
            input: task.input,
            choices,
        };
        self.note(taken, next).map(|()| true)
    }
}
