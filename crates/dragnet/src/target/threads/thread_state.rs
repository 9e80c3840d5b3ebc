//! The threads of an execution: the operation that each has come to, its clock, and what it has seen.

use std::any::Any;
use std::ptr;
use std::time::Duration;

use corosensei::Yielder;

use super::clocks::Row;
use super::model::{EventId, Model};
use super::object::Object;
use super::operation::{ObjectId, Operation, ProcessId, ThreadId, Way};
use super::runtime::executor::Transition;
use super::spin::detection::{Effect, Round};
use super::spin::termination;
use super::state::State;
use crate::system::{Actor, ComponentId, Task};
use crate::trace::{GOLDEN, scatter};

/// A thread, as far as an execution has brought it.
pub(super) struct ThreadState {
    /// Identifies it in every process.
    pub(super) hash: u64,
    pub(super) name: Option<String>,
    pub(super) object: ObjectId,
    pub(super) process: ProcessId,
    /// The operation that it has come to.
    pub(super) pending: Option<Operation>,
    /// The operation that was pending when its process crashed, and the crash.
    pub(super) cut_off: Option<(Operation, EventId)>,
    /// The number of its events.
    pub(super) steps: u32,
    /// Its clock: that of its last event, or else of its spawn.
    pub(super) row: Row,
    /// Its clock when it was spawned.
    pub(super) row_at_spawn: Row,
    pub(super) ended: bool,
    /// Whether it unwinds because of a panic, as far as is known.
    pub(super) panicking: bool,
    /// The thread that has spawned it, and its index among the children of that.
    pub(super) parent: Option<(ThreadId, u32)>,
    /// The number of threads that it has spawned.
    pub(super) children: u32,
    /// The answer to its last operation.
    pub(super) answer: u32,
    /// The value before its last operation and after it, where values are described.
    pub(super) values: Option<(String, String)>,
    pub(super) yielder: *const Yielder<(), ()>,
    /// How often it has been told that the execution is over.
    pub(super) told: u32,
    /// How much of its stack it used when it came to its last operation.
    pub(super) depth: usize,
    /// Its last event.
    pub(super) latest: EventId,
    pub(super) round: Round,
    /// A hash of all its operations and of all that it has seen by them.
    pub(super) view: u64,
    pub(super) time: Duration,
    /// Its time at each of its events, if time has passed for any thread.
    pub(super) times: Vec<Duration>,
    /// The number of sockets that it has made, and of port numbers that it was given.
    pub(super) sockets: u32,
    /// Its thread-local values, in the order in which they were made.
    pub(super) locals: Vec<(usize, Box<dyn Any>)>,
    /// The keys of those that are gone, because it ends.
    pub(super) forgotten: Vec<usize>,
    /// The number of random numbers that it has drawn.
    pub(super) drawn: u64,
    /// The number of its accesses to checked cells.
    pub(super) accesses: u32,
    /// The events with which it dropped the last owners of values that it is about to drop.
    pub(super) destroying: Vec<EventId>,
}

pub(super) type Body = Box<dyn FnOnce()>;

/// A thread that has just been spawned and has not begun.
pub(super) struct Newborn {
    pub(super) thread: ThreadId,
    pub(super) body: Body,
    /// The stack size that the program asks for, if it does.
    pub(super) stack_size: Option<usize>,
}

impl ThreadState {
    /// Adds an operation to its [view](Self::view), and the view of the thread that last changed the object, if it sees the
    /// object.
    #[inline]
    pub(super) fn look_at(
        &mut self,
        object: &mut Object,
        operation: &Operation,
        (way, answer): (Way, u32),
        effect: Effect,
    ) {
        let acts = effect == Effect::CHANGE;
        let seen = match acts || effect.sees.is_some() {
            true => object.view,
            false => 0,
        };
        let how = u64::from(way) << 32 | u64::from(answer);
        let view = self.view ^ termination::offset(operation.at) ^ how.rotate_left(7);
        self.view = scatter(view.wrapping_mul(GOLDEN) ^ seen);
        if acts {
            object.view = self.view;
        }
    }
}

impl State {
    /// Adds a thread that has been spawned where the clock is `row`.
    pub(super) fn add_thread(
        &mut self,
        id: ThreadId,
        hash: u64,
        name: Option<String>,
        process: ProcessId,
        row: Row,
        time: Duration,
    ) {
        let object = self.add_object(Model::thread(), None);
        self.objects[object.0 as usize].thread = Some(id);
        self.clocks.admit(id);
        let round = Round::in_room_of(self.spare_rounds.pop().unwrap_or_default());
        let at = id.0 as usize;
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, || None);
        }
        self.threads[at] = Some(ThreadState {
            hash,
            name,
            object,
            process,
            pending: None,
            cut_off: None,
            steps: 0,
            row,
            row_at_spawn: row,
            ended: false,
            panicking: false,
            parent: None,
            children: 0,
            answer: 0,
            values: None,
            yielder: ptr::null(),
            told: 0,
            depth: 0,
            latest: 0,
            round,
            view: hash,
            time,
            times: Vec::new(),
            sockets: 0,
            locals: Vec::new(),
            forgotten: Vec::new(),
            drawn: 0,
            accesses: 0,
            destroying: Vec::new(),
        });
        self.order.push(id);
    }

    /// Who a thread is for an explorer.
    pub(super) fn actor(&self, id: ThreadId) -> Actor {
        let thread = self.thread(id);
        match thread.process {
            ProcessId::OUTSIDE => Actor::Environment,
            process => Actor::Component(component(process), thread.hash),
        }
    }

    /// The task of a transition, and the identity of the operation: a thread has one at a time.
    pub(super) fn task_of(&self, (id, way): Transition) -> (Task, u64) {
        let thread = self.thread(id);
        let crashes = |operation| self.crashed_by(&operation, way).map(component);
        let task = match self.actor(id) {
            Actor::Environment => Task::of_the_environment(self.pending(id).and_then(crashes)),
            actor => Task::by(actor),
        };
        (task, thread.hash ^ scatter(u64::from(thread.steps)))
    }

    /// The threads that have not ended.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Actor> {
        let threads = self.order.iter().copied();
        let waiting = threads.filter(|&thread| !self.thread(thread).ended);
        waiting.map(|thread| self.actor(thread))
    }
}

fn component(ProcessId(process): ProcessId) -> ComponentId {
    ComponentId(process as usize)
}
