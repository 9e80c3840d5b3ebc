//! Shared objects as small state machines: which operations can happen now, and what becomes of the object.
//!
//! A model knows no values, only what decides who may go on. It is cheap to clone: what an operation could have done
//! somewhere else in an execution is found out on a copy.

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
    /// The events that have sent what has not been received, and whose they were.
    sent: VecDeque<(EventId, ThreadId)>,
    /// The events that have received, as far as a sender may depend on them.
    received: VecDeque<EventId>,
    taken: u64,
    offered: u64,
    /// Whose message has been taken out of their hands, and by which event.
    handed: Vec<(ThreadId, EventId)>,
    senders: usize,
    hung_up: bool,
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
            senders: 1,
            hung_up: false,
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
            (Self::Channel(channel), Action::Send) => channel.has_room() || channel.hung_up,
            (Self::Channel(channel), Action::Handed) => {
                channel.hung_up || channel.handed.iter().any(|&(other, _)| other == thread)
            }
            (Self::Channel(channel), Action::Receive { timed }) => {
                let come = !channel.sent.is_empty() || channel.senders == 0;
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
                let possible = match action {
                    Action::Wake { .. } => Ways::COME..=Ways::SPURIOUS,
                    Action::Receive { .. } | Action::Park { .. } | Action::Enter => {
                        Ways::COME..=Ways::TIMEOUT
                    }
                    _ => Ways::COME..=Ways::COME,
                };
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
                _ => {
                    *token = true;
                    Outcome::SUCCESS
                }
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
            Rc::make_mut(channel).senders += 1;
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
    /// Whether there is room for a message. Where a channel has none of its own, a message waits in the hands of its
    /// sender.
    fn has_room(&self) -> bool {
        self.room.is_none_or(|room| self.sent.len() < room.max(1))
    }

    fn perform(&mut self, thread: ThreadId, action: Action, way: Way, event: EventId) -> Outcome {
        match action {
            Action::Send | Action::TrySend => {
                if self.hung_up {
                    return Outcome::answer(GONE);
                }
                if !self.has_room() || action == Action::TrySend && self.room == Some(0) {
                    return Outcome::FAILURE;
                }
                self.sent.push_back((event, thread));
                self.offered += 1;
                Outcome::SUCCESS.after(self.room_made_by())
            }
            Action::Receive { .. } if way == Ways::TIMEOUT => Outcome::FAILURE,
            Action::Receive { .. } | Action::TryReceive => match self.sent.pop_front() {
                Some((sent, sender)) => {
                    self.taken += 1;
                    match self.room {
                        Some(0) => self.handed.push((sender, event)),
                        Some(_) => self.received.push_back(event),
                        None => {}
                    }
                    Outcome::SUCCESS.after(Some(sent))
                }
                None if self.senders == 0 => Outcome {
                    after_closing: true,
                    ..Outcome::answer(GONE)
                },
                None => Outcome::FAILURE,
            },
            Action::Handed => {
                let at = self.handed.iter().position(|&(other, _)| other == thread);
                match at.map(|at| self.handed.swap_remove(at)) {
                    Some((_, taken)) => Outcome::SUCCESS.after(Some(taken)),
                    None => Outcome::answer(GONE),
                }
            }
            Action::Close => {
                self.senders -= 1;
                Outcome::SUCCESS
            }
            _ => {
                self.hung_up = true;
                self.sent.clear();
                Outcome::SUCCESS
            }
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
