//! Shared objects as small state machines: which operations can happen now, and what becomes of the object.
//!
//! A model knows no values, only what decides who may go on. It is cheap to clone: what an operation could have done
//! somewhere else in an execution is found out on a copy.

mod barrier;
mod channel;
mod condvar;
mod faults;
mod pipe;

use std::rc::Rc;

use super::super::nodes::Faults;
use super::operation::{Action, Counted, ProcessId, ThreadId, Way, Ways};
use barrier::Barrier;
use channel::Channel;
use condvar::Condvar;
use faults::Budgets;
use pipe::Pipe;

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
    Pipe(Rc<Pipe>),
    Process {
        id: ProcessId,
        /// The event with which it has come to an end for the first time.
        over: Option<(EventId, Over)>,
        /// Whether its first thread has ended.
        ended: bool,
    },
    /// What may still go wrong.
    Faults(Budgets),
    /// The reference counts of a value.
    Counted {
        strong: u32,
        weak: u32,
        /// Whether dropping the value can do anything.
        destructs: bool,
    },
}

/// How a process has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Ended,
    Crashed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Once {
    New,
    Running(ThreadId),
    Done,
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

    /// Whether the other end of a channel is gone.
    pub(crate) fn is_gone(self) -> bool {
        self.answer == GONE
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
        Self::Condvar(Rc::new(Condvar::new(spurious)))
    }

    pub(crate) fn channel(room: Option<usize>) -> Self {
        Self::Channel(Rc::new(Channel::new(room)))
    }

    pub(crate) fn thread() -> Self {
        Self::Thread {
            ended: None,
            token: false,
        }
    }

    pub(crate) fn barrier(parties: usize) -> Self {
        Self::Barrier(Rc::new(Barrier::new(parties)))
    }

    pub(crate) fn pipe() -> Self {
        Self::Pipe(Rc::default())
    }

    pub(crate) fn process(id: ProcessId) -> Self {
        Self::Process {
            id,
            over: None,
            ended: false,
        }
    }

    pub(crate) fn faults(faults: &Faults) -> Self {
        Self::Faults(Budgets::new(faults))
    }

    /// The counts of a value that has so many owners.
    pub(crate) fn counted(owners: u32, destructs: bool) -> Self {
        Self::Counted {
            strong: owners,
            weak: 0,
            destructs,
        }
    }

    /// Whether an operation of a thread can happen now in a certain way.
    pub(crate) fn allows(&self, thread: ThreadId, action: Action, way: Way) -> bool {
        match (self, action) {
            (Self::Mutex { owner }, Action::Lock) => owner.is_none(),
            (Self::RwLock { writer, .. }, Action::Read) => writer.is_none(),
            (Self::RwLock { writer, readers }, Action::Write) => {
                writer.is_none() && readers.is_empty()
            }
            (Self::Condvar(condvar), _) => condvar.allows(thread, action, way),
            (Self::Channel(channel), _) => channel.allows(thread, action, way),
            (Self::Pipe(pipe), _) => pipe.allows(action, way),
            (Self::Process { over, .. }, Action::Join) => over.is_some(),
            (Self::Process { ended, .. }, Action::Crash) => *ended == (way == Ways::TOO_LATE),
            (Self::Faults(budgets), Action::Suffer(harm)) => budgets.allow(harm, way),
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
            (Self::Barrier(barrier), Action::Depart) => barrier.has_released(thread),
            _ => true,
        }
    }

    /// The ways in which an operation of a thread can happen now, appended to `ways`.
    pub(crate) fn ways(&self, thread: ThreadId, action: Action, ways: &mut Vec<Way>) {
        match (self, action) {
            (_, Action::Choose(count)) => ways.extend(0..count),
            (Self::Condvar(condvar), Action::NotifyOne) if condvar.waiting().next().is_some() => {
                ways.extend(condvar.waiting().map(|thread| thread.0));
            }
            _ => {
                let possible = action.possible_ways().iter().copied();
                ways.extend(possible.filter(|&way| self.allows(thread, action, way)));
            }
        }
    }

    /// Whether a way is one of those.
    pub(crate) fn has_way(&self, thread: ThreadId, action: Action, way: Way) -> bool {
        match (self, action) {
            (_, Action::Choose(count)) => way < count,
            (Self::Condvar(condvar), Action::NotifyOne) if condvar.waiting().next().is_some() => {
                condvar.waiting().any(|waiting| waiting.0 == way)
            }
            _ => action.possible_ways().contains(&way) && self.allows(thread, action, way),
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
                Action::Unlock(_) => {
                    *owner = None;
                    Outcome::SUCCESS
                }
                Action::Look | Action::Modify => Outcome::SUCCESS,
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
                Action::WriteUnlock(_) => {
                    *writer = None;
                    Outcome::SUCCESS
                }
                Action::Look | Action::Modify => Outcome::SUCCESS,
                Action::Downgrade(_) => {
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
            Self::Pipe(pipe) => Rc::make_mut(pipe).perform(action, way, event),
            Self::Process { over, ended, .. } => match action {
                Action::Join => {
                    let (event, how) = over.expect("only what is over can be joined");
                    Outcome::of(how == Over::Ended).after(Some(event))
                }
                Action::Crash if *ended => Outcome::FAILURE,
                Action::Crash => {
                    over.get_or_insert((event, Over::Crashed));
                    Outcome::SUCCESS
                }
                // Its first thread has panicked.
                Action::Abandon => {
                    *ended = true;
                    over.get_or_insert((event, Over::Crashed));
                    Outcome::SUCCESS
                }
                _ => {
                    *ended = true;
                    over.get_or_insert((event, Over::Ended));
                    Outcome::SUCCESS
                }
            },
            Self::Faults(budgets) => match action {
                Action::Suffer(harm) => budgets.perform(harm, way),
                _ => Outcome::SUCCESS,
            },
            Self::Counted { strong, weak, .. } => match action {
                Action::Own | Action::Retain(Counted::Strong) => {
                    *strong += 1;
                    Outcome::SUCCESS
                }
                Action::Retain(Counted::Weak) => {
                    *weak += 1;
                    Outcome::SUCCESS
                }
                Action::Release(Counted::Weak) => {
                    *weak = weak.saturating_sub(1);
                    Outcome::FAILURE
                }
                Action::Release(Counted::Strong) | Action::IntoInner => {
                    *strong = strong.saturating_sub(1);
                    Outcome::of(*strong == 0)
                }
                Action::Upgrade => {
                    let owned = *strong > 0;
                    *strong += u32::from(owned);
                    Outcome::of(owned)
                }
                Action::Unwrap => {
                    let alone = *strong == 1;
                    *strong -= u32::from(alone);
                    Outcome::of(alone)
                }
                Action::MakeUnique => match (*strong, *weak) {
                    (1, 0) => Outcome::SUCCESS,
                    (1, _) => {
                        *strong = 0;
                        Outcome::answer(MOVED)
                    }
                    _ => Outcome::FAILURE,
                },
                Action::Unique => Outcome::of(*strong == 1 && *weak == 0),
                _ => Outcome::SUCCESS,
            },
        }
    }

    /// Whether a value has one owner, and dropping it can do something.
    pub(crate) fn is_last_owned(&self) -> bool {
        matches!(
            self,
            Self::Counted {
                strong: 1,
                destructs: true,
                ..
            }
        )
    }

    /// Who holds it, if it can be held and is.
    pub(crate) fn holders(&self) -> impl Iterator<Item = ThreadId> {
        let (one, others): (_, &[ThreadId]) = match self {
            Self::Mutex { owner } => (*owner, &[]),
            Self::RwLock { writer, readers } => (*writer, readers),
            Self::Once(Once::Running(thread)) => (Some(*thread), &[]),
            _ => (None, &[]),
        };
        one.into_iter().chain(others.iter().copied())
    }

    /// A sender more.
    pub(crate) fn add_sender(&mut self) {
        if let Self::Channel(channel) = self {
            channel.add_sender();
        }
    }
}

/// What a thread is told when the other end of a channel is gone.
pub(crate) const GONE: u32 = 2;

/// What a thread is told when it has moved a value away from those who know of it.
pub(crate) const MOVED: u32 = 2;

/// What a thread is told when a connection was broken from outside.
pub(crate) const RESET: u32 = 3;
