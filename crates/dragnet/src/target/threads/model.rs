//! Shared objects as small state machines: which operations can happen now, and what becomes of the object.
//!
//! A model knows no values, only what decides who may go on. It is cheap to clone: what an operation could have done
//! somewhere else in an execution is found out on a copy.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::operation::{Action, ThreadId, Way, Ways};

/// An event of one execution, by its place in it.
pub(crate) type EventId = u32;

#[derive(Clone, Debug)]
pub(crate) enum Model {
    /// Nothing but a value; also what only its own thread uses.
    Memory,
    Mutex {
        owner: Option<ThreadId>,
    },
    RwLock {
        writer: Option<ThreadId>,
        readers: Rc<Vec<ThreadId>>,
    },
    Condvar(Rc<Condvar>),
    Channel(Rc<Channel>),
    Thread {
        /// Its last event, once it has ended.
        ended: Option<EventId>,
        /// Whether it may pass the next time that it parks.
        token: bool,
    },
    Once(Once),
    Barrier(Rc<Barrier>),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Condvar {
    waiting: Vec<ThreadId>,
    /// Who has been notified and has not gone on, and by which event.
    notified: Vec<(ThreadId, EventId)>,
    /// How often somebody may still wake up for no reason.
    spurious: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Channel {
    /// How many messages it has room for.
    room: Option<usize>,
    /// What has been sent and not been received.
    sent: VecDeque<Sent>,
    /// The events that have received, as far as a sender may depend on them.
    received: VecDeque<EventId>,
    taken: u64,
    offered: u64,
    /// Whose message has been taken out of their hands, and by which event.
    handed: Vec<(ThreadId, EventId)>,
    /// Whether the receiver waits for a message, where a channel has no room of its own.
    awaited: bool,
    /// How many senders there have ever been, in all copies of the model: a sender is made without an event, so a copy
    /// that goes another way from an earlier event on would not hear of it. That a copy counts senders which have not
    /// been made there does no harm: they are made of others, which are not gone then.
    opened: Rc<Cell<usize>>,
    /// How many of them are gone.
    closed: usize,
    /// The event with which the receiver has gone.
    hung_up: Option<EventId>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    event: EventId,
    sender: ThreadId,
    /// Whether the sender waits until it has been taken.
    waits: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Once {
    New,
    Running(ThreadId),
    Done,
}

#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    parties: usize,
    arrived: Vec<ThreadId>,
    /// Who has been let go and has not left, and by which event.
    released: Vec<(ThreadId, EventId)>,
}

/// What came of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// What the thread is told: 1 when it succeeded, or what was chosen.
    pub(crate) answer: u32,
    /// An event that it has waited for.
    pub(crate) after: Option<EventId>,
    /// Whether it has waited for every sender to be gone.
    pub(crate) after_closing: bool,
}

impl Outcome {
    const SUCCESS: Self = Self::answer(1);
    const FAILURE: Self = Self::answer(0);

    const fn answer(answer: u32) -> Self {
        Self {
            answer,
            after: None,
            after_closing: false,
        }
    }

    fn of(success: bool) -> Self {
        Self::answer(success as u32)
    }

    fn after(self, event: Option<EventId>) -> Self {
        Self {
            after: event,
            ..self
        }
    }
}

impl Model {
    pub(crate) fn mutex() -> Self {
        Self::Mutex { owner: None }
    }

    pub(crate) fn rw_lock() -> Self {
        Self::RwLock {
            writer: None,
            readers: Rc::default(),
        }
    }

    pub(crate) fn condvar(spurious: u32) -> Self {
        Self::Condvar(Rc::new(Condvar {
            spurious,
            ..Condvar::default()
        }))
    }

    pub(crate) fn channel(room: Option<usize>) -> Self {
        Self::Channel(Rc::new(Channel {
            room,
            sent: VecDeque::new(),
            received: VecDeque::new(),
            taken: 0,
            offered: 0,
            handed: Vec::new(),
            awaited: false,
            opened: Rc::new(Cell::new(1)),
            closed: 0,
            hung_up: None,
        }))
    }

    pub(crate) fn thread() -> Self {
        Self::Thread {
            ended: None,
            token: false,
        }
    }

    pub(crate) fn barrier(parties: usize) -> Self {
        Self::Barrier(Rc::new(Barrier {
            parties,
            arrived: Vec::new(),
            released: Vec::new(),
        }))
    }

    /// Whether an operation of a thread can happen now in a certain way.
    pub(crate) fn allows(&self, thread: ThreadId, action: Action, way: Way) -> bool {
        match (self, action) {
            (Self::Mutex { owner }, Action::Lock) => owner.is_none(),
            (Self::RwLock { writer, .. }, Action::Read) => writer.is_none(),
            (Self::RwLock { writer, readers }, Action::Write) => {
                writer.is_none() && readers.is_empty()
            }
            (Self::Condvar(condvar), Action::Wake { timed }) => {
                let notified = condvar.notified.iter().any(|&(other, _)| other == thread);
                match way {
                    Ways::COME => notified,
                    Ways::TIMEOUT => !notified && timed,
                    _ => !notified && condvar.spurious > 0,
                }
            }
            (Self::Channel(channel), Action::Send) => {
                channel.has_room() || channel.hung_up.is_some()
            }
            (Self::Channel(channel), Action::Handed) => {
                channel.hung_up.is_some()
                    || channel.handed.iter().any(|&(other, _)| other == thread)
            }
            (Self::Channel(channel), Action::Receive { timed }) => {
                let come = !channel.sent.is_empty() || channel.is_closed();
                match way {
                    Ways::COME => come,
                    _ => !come && timed,
                }
            }
            (Self::Thread { ended, .. }, Action::Join) => ended.is_some(),
            (Self::Thread { token, .. }, Action::Park { timed }) => match way {
                Ways::COME => *token,
                _ => !token && timed,
            },
            (Self::Once(once), Action::Enter) => match way {
                Ways::DONE => *once == Once::Done,
                _ => *once == Once::New,
            },
            (Self::Once(once), Action::AwaitDone) => *once == Once::Done,
            (Self::Barrier(barrier), Action::Depart) => {
                barrier.released.iter().any(|&(other, _)| other == thread)
            }
            _ => true,
        }
    }

    /// The ways in which an operation of a thread can happen now, appended to `ways`.
    pub(crate) fn ways(&self, thread: ThreadId, action: Action, ways: &mut Vec<Way>) {
        match (self, action) {
            (_, Action::Choose(count)) => ways.extend(0..count),
            (Self::Condvar(condvar), Action::NotifyOne) if !condvar.waiting.is_empty() => {
                let mut waiting: Vec<Way> = condvar.waiting.iter().map(|thread| thread.0).collect();
                waiting.sort_unstable();
                ways.extend(waiting);
            }
            _ => {
                let possible = action.possible_ways().iter().copied();
                ways.extend(possible.filter(|&way| self.allows(thread, action, way)));
            }
        }
    }

    /// Does an operation that is allowed, as the event `event`.
    pub(crate) fn perform(
        &mut self,
        thread: ThreadId,
        action: Action,
        way: Way,
        event: EventId,
    ) -> Outcome {
        match self {
            Self::Memory => Outcome::answer(way),
            Self::Mutex { owner } => match action {
                Action::Unlock => {
                    *owner = None;
                    Outcome::SUCCESS
                }
                _ if owner.is_some() => Outcome::FAILURE,
                _ => {
                    *owner = Some(thread);
                    Outcome::SUCCESS
                }
            },
            Self::RwLock { writer, readers } => match action {
                Action::ReadUnlock => {
                    let readers = Rc::make_mut(readers);
                    if let Some(at) = readers.iter().position(|&reader| reader == thread) {
                        readers.swap_remove(at);
                    }
                    Outcome::SUCCESS
                }
                Action::WriteUnlock => {
                    *writer = None;
                    Outcome::SUCCESS
                }
                Action::Downgrade => {
                    *writer = None;
                    Rc::make_mut(readers).push(thread);
                    Outcome::SUCCESS
                }
                Action::Read | Action::TryRead => {
                    let free = writer.is_none();
                    if free {
                        Rc::make_mut(readers).push(thread);
                    }
                    Outcome::of(free)
                }
                _ => {
                    let free = writer.is_none() && readers.is_empty();
                    if free {
                        *writer = Some(thread);
                    }
                    Outcome::of(free)
                }
            },
            Self::Condvar(condvar) => Rc::make_mut(condvar).perform(thread, action, way, event),
            Self::Channel(channel) => Rc::make_mut(channel).perform(thread, action, way, event),
            Self::Thread { ended, token } => match action {
                Action::End => {
                    *ended = Some(event);
                    Outcome::SUCCESS
                }
                Action::Join => Outcome::SUCCESS.after(*ended),
                Action::IsFinished => Outcome::of(ended.is_some()),
                Action::Park { .. } => {
                    *token = false;
                    Outcome::of(way == Ways::COME)
                }
                Action::Unpark => {
                    *token = true;
                    Outcome::SUCCESS
                }
                Action::Choose(_) => Outcome::answer(way),
                _ => Outcome::SUCCESS,
            },
            Self::Once(once) => match action {
                Action::Enter if way != Ways::DONE => {
                    *once = Once::Running(thread);
                    Outcome::SUCCESS
                }
                Action::Complete => {
                    *once = Once::Done;
                    Outcome::SUCCESS
                }
                Action::Abandon => {
                    *once = Once::New;
                    Outcome::SUCCESS
                }
                Action::Look => Outcome::of(*once == Once::Done),
                _ => Outcome::FAILURE,
            },
            Self::Barrier(barrier) => Rc::make_mut(barrier).perform(thread, action, event),
        }
    }

    /// Who holds it, if it can be held and is.
    pub(crate) fn holders(&self) -> Vec<ThreadId> {
        match self {
            Self::Mutex { owner } => owner.iter().copied().collect(),
            Self::RwLock { writer, readers } => {
                writer.iter().chain(readers.iter()).copied().collect()
            }
            Self::Once(Once::Running(thread)) => vec![*thread],
            _ => Vec::new(),
        }
    }

    /// A sender more.
    pub(crate) fn add_sender(&mut self) {
        if let Self::Channel(channel) = self {
            channel.opened.set(channel.opened.get() + 1);
        }
    }
}

impl Condvar {
    /// Who waits.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = ThreadId> {
        self.waiting.iter().copied()
    }

    fn perform(&mut self, thread: ThreadId, action: Action, way: Way, event: EventId) -> Outcome {
        match action {
            Action::Wait => {
                self.waiting.push(thread);
                Outcome::SUCCESS
            }
            Action::NotifyOne => {
                if let Some(at) = self.waiting.iter().position(|waiter| waiter.0 == way) {
                    let waiter = self.waiting.swap_remove(at);
                    self.notified.push((waiter, event));
                }
                Outcome::SUCCESS
            }
            Action::NotifyAll => {
                let waiting = self.waiting.drain(..);
                self.notified.extend(waiting.map(|waiter| (waiter, event)));
                Outcome::SUCCESS
            }
            _ if way == Ways::COME => {
                let at = self.notified.iter().position(|&(other, _)| other == thread);
                let (_, by) = self
                    .notified
                    .swap_remove(at.expect("only who was notified wakes"));
                Outcome::answer(way).after(Some(by))
            }
            _ => {
                self.waiting.retain(|&waiter| waiter != thread);
                if way == Ways::SPURIOUS {
                    self.spurious -= 1;
                }
                Outcome::answer(way)
            }
        }
    }
}

impl Channel {
    /// Whether there is room for a message. Where a channel has none of its own, messages wait in the hands of their
    /// senders, so there always is.
    fn has_room(&self) -> bool {
        self.room
            .is_none_or(|room| room == 0 || self.sent.len() < room)
    }

    /// Whether a message can be sent by who does not wait. Where a channel has no room of its own, the receiver must be
    /// waiting, and for nothing that has come already.
    fn has_room_at_once(&self) -> bool {
        match self.room {
            Some(0) => self.awaited && self.sent.is_empty(),
            _ => self.has_room(),
        }
    }

    /// Whether all senders are gone.
    fn is_closed(&self) -> bool {
        self.closed == self.opened.get()
    }

    fn perform(&mut self, thread: ThreadId, action: Action, way: Way, event: EventId) -> Outcome {
        match action {
            Action::Send | Action::TrySend => {
                if self.hung_up.is_some() {
                    return Outcome::answer(GONE);
                }
                if action == Action::TrySend && !self.has_room_at_once() {
                    return Outcome::FAILURE;
                }
                self.sent.push_back(Sent {
                    event,
                    sender: thread,
                    waits: action == Action::Send && self.room == Some(0),
                });
                self.offered += 1;
                Outcome::SUCCESS.after(self.room_made_by())
            }
            Action::Await => {
                self.awaited = true;
                Outcome::SUCCESS
            }
            Action::Receive { .. } | Action::TryReceive => {
                self.awaited = false;
                if way == Ways::TIMEOUT {
                    return Outcome::FAILURE;
                }
                self.receive(event)
            }
            Action::Handed => {
                let at = self.handed.iter().position(|&(other, _)| other == thread);
                match at.map(|at| self.handed.swap_remove(at)) {
                    Some((_, taken)) => Outcome::SUCCESS.after(Some(taken)),
                    None => Outcome::answer(GONE).after(self.hung_up),
                }
            }
            Action::Close => {
                self.closed += 1;
                Outcome::SUCCESS
            }
            _ => {
                self.hung_up = Some(event);
                self.sent.clear();
                Outcome::SUCCESS
            }
        }
    }

    fn receive(&mut self, event: EventId) -> Outcome {
        match self.sent.pop_front() {
            Some(sent) => {
                self.taken += 1;
                match self.room {
                    Some(0) if sent.waits => self.handed.push((sent.sender, event)),
                    None | Some(0) => {}
                    Some(_) => self.received.push_back(event),
                }
                Outcome::SUCCESS.after(Some(sent.event))
            }
            None if self.is_closed() => Outcome {
                after_closing: true,
                ..Outcome::answer(GONE)
            },
            None => Outcome::FAILURE,
        }
    }

    /// The receipt that has made room for the last message.
    fn room_made_by(&mut self) -> Option<EventId> {
        let room = self.room.filter(|&room| room > 0)? as u64;
        let which = self.offered.checked_sub(room + 1)?;
        let first = self.taken - self.received.len() as u64;
        let at = which.checked_sub(first)? as usize;
        let event = self.received.get(at).copied()?;
        self.received.drain(..at);
        Some(event)
    }
}

/// What a thread is told when the other end of a channel is gone.
pub(crate) const GONE: u32 = 2;

impl Barrier {
    fn perform(&mut self, thread: ThreadId, action: Action, event: EventId) -> Outcome {
        match action {
            Action::Arrive => {
                self.arrived.push(thread);
                let last = self.arrived.len() >= self.parties;
                if last {
                    let arrived = self.arrived.drain(..);
                    self.released.extend(arrived.map(|thread| (thread, event)));
                }
                Outcome::of(last)
            }
            _ => {
                let at = self.released.iter().position(|&(other, _)| other == thread);
                let (_, by) = self
                    .released
                    .swap_remove(at.expect("only who was let go leaves"));
                Outcome::SUCCESS.after(Some(by))
            }
        }
    }
}
