//! Channels, with the names and signatures of `std::sync::mpsc`.
//!
//! A channel belongs to where it is made: inside of an execution it is a queue that the execution knows of, outside it is
//! a real one, which no execution may use.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::mpsc as real;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::target::threads::handle::Handle;
use crate::target::threads::model::{GONE, Model};
use crate::target::threads::operation::Action;
use crate::target::threads::world;

pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

/// A channel that takes any number of messages, like [`std::sync::mpsc::channel`].
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = open(None, real::channel);
    (Sender(sender), receiver)
}

/// A channel that holds so many messages, like [`std::sync::mpsc::sync_channel`]. With a bound of 0 a message goes from
/// hand to hand: who sends waits for who receives.
#[track_caller]
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    let (sender, receiver) = open(Some(bound), || real::sync_channel(bound));
    (SyncSender(sender), receiver)
}

#[track_caller]
fn open<S, T>(
    room: Option<usize>,
    real: impl FnOnce() -> (S, real::Receiver<T>),
) -> (End<S, T>, Receiver<T>) {
    let (sender, receiver) = match world::current() {
        None => {
            let made = Location::caller();
            let (sender, receiver) = real();
            (End::Real(sender, made), End::Real(receiver, made))
        }
        Some(_) => {
            let queue = Arc::new(Queue {
                handle: Handle::new(),
                room,
                messages: Mutex::default(),
            });
            (End::Ours(Arc::clone(&queue)), End::Ours(queue))
        }
    };
    let receiver = Receiver {
        end: receiver,
        _stays: PhantomData,
    };
    (sender, receiver)
}

/// One end of a channel.
enum End<R, T> {
    /// Of a real one, and where that was made.
    Real(R, &'static Location<'static>),
    Ours(Arc<Queue<T>>),
}

impl<R, T> End<R, T> {
    /// The end as it is used now. An execution that comes to a real one ends: it would wait there for ever.
    fn of(&self) -> Result<&R, &Queue<T>> {
        match self {
            Self::Ours(queue) => Err(queue),
            Self::Real(real, made) => match world::current() {
                Some(world) if !world.is_over() => world.refuse_older(made),
                _ => Ok(real),
            },
        }
    }
}

impl<R: Clone, T> End<R, T> {
    /// One sender more.
    fn another(&self) -> Self {
        match self {
            Self::Real(real, made) => Self::Real(real.clone(), made),
            Self::Ours(queue) => {
                if let Some(world) = world::current() {
                    world.add_sender(&queue.handle, || Model::channel(queue.room));
                }
                Self::Ours(Arc::clone(queue))
            }
        }
    }
}

/// A channel of an execution.
struct Queue<T> {
    handle: Handle,
    /// How many messages it holds, if that is bounded.
    room: Option<usize>,
    messages: Mutex<Messages<T>>,
}

/// Messages that have not been received, each with its number.
struct Messages<T> {
    sent: u64,
    waiting: VecDeque<(u64, T)>,
}

impl<T> Default for Messages<T> {
    fn default() -> Self {
        Self {
            sent: 0,
            waiting: VecDeque::new(),
        }
    }
}

impl<T> Queue<T> {
    /// What came of an operation; nothing when the execution is over, or somewhere else.
    fn operate(&self, action: Action, at: &'static Location<'static>) -> Option<u32> {
        let model = || Model::channel(self.room);
        world::current()?.operate(&self.handle, model, action, at)
    }

    fn messages(&self) -> MutexGuard<'_, Messages<T>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message, and says its number.
    fn push(&self, message: T) -> u64 {
        let mut messages = self.messages();
        messages.sent += 1;
        let number = messages.sent;
        messages.waiting.push_back((number, message));
        number
    }

    fn pop(&self) -> Option<T> {
        let (_, message) = self.messages().waiting.pop_front()?;
        Some(message)
    }

    /// Takes a message back.
    fn withdraw(&self, number: u64) -> Option<T> {
        let mut messages = self.messages();
        let mut waiting = messages.waiting.iter();
        let at = waiting.position(|&(other, _)| other == number)?;
        let (_, message) = messages.waiting.remove(at)?;
        Some(message)
    }

    fn send(&self, message: T, at: &'static Location<'static>) -> Result<(), SendError<T>> {
        match self.operate(Action::Send, at) {
            None => Ok(()),
            Some(GONE) => Err(SendError(message)),
            Some(_) => {
                let number = self.push(message);
                if self.room == Some(0)
                    && self.operate(Action::Handed, at) == Some(GONE)
                    && let Some(message) = self.withdraw(number)
                {
                    return Err(SendError(message));
                }
                Ok(())
            }
        }
    }

    fn try_send(&self, message: T, at: &'static Location<'static>) -> Result<(), TrySendError<T>> {
        match self.operate(Action::TrySend, at) {
            None => Ok(()),
            Some(GONE) => Err(TrySendError::Disconnected(message)),
            Some(0) => Err(TrySendError::Full(message)),
            Some(_) => {
                self.push(message);
                Ok(())
            }
        }
    }

    /// Waits for a message, or for `time` at most.
    fn receive(
        &self,
        time: Option<Duration>,
        at: &'static Location<'static>,
    ) -> Result<T, RecvTimeoutError> {
        if self.room == Some(0) {
            self.operate(Action::Await, at);
        }
        let receive = Action::Receive {
            timed: time.is_some(),
        };
        match (self.operate(receive, at), time) {
            (Some(0), Some(time)) => {
                if let Some(world) = world::current() {
                    world.pass(time);
                }
                Err(RecvTimeoutError::Timeout)
            }
            (None | Some(GONE), _) => Err(RecvTimeoutError::Disconnected),
            _ => self.pop().ok_or(RecvTimeoutError::Disconnected),
        }
    }

    fn try_receive(&self, at: &'static Location<'static>) -> Result<T, TryRecvError> {
        match self.operate(Action::TryReceive, at) {
            None | Some(GONE) => Err(TryRecvError::Disconnected),
            Some(0) => Err(TryRecvError::Empty),
            Some(_) => self.pop().ok_or(TryRecvError::Disconnected),
        }
    }

    /// The receiver goes, and what it has not received.
    fn hang_up(&self, at: &'static Location<'static>) {
        self.operate(Action::HangUp, at);
        // Where a channel has no room of its own, messages go back to their senders.
        if self.room != Some(0) {
            let messages = std::mem::take(&mut self.messages().waiting);
            drop(messages);
        }
    }
}

/// Sends messages into a [`channel`], like [`std::sync::mpsc::Sender`].
pub struct Sender<T>(End<real::Sender<T>, T>);

/// Sends messages into a [`sync_channel`], like [`std::sync::mpsc::SyncSender`].
pub struct SyncSender<T>(End<real::SyncSender<T>, T>);

/// Receives the messages of a channel, like [`std::sync::mpsc::Receiver`].
pub struct Receiver<T> {
    end: End<real::Receiver<T>, T>,
    /// Receivers are not shared.
    _stays: PhantomData<Cell<()>>,
}

impl<T> Sender<T> {
    /// Sends a message, unless the receiver is gone.
    #[track_caller]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        match self.0.of() {
            Ok(real) => real.send(message),
            Err(queue) => queue.send(message, Location::caller()),
        }
    }
}

impl<T> SyncSender<T> {
    /// Sends a message when there is room for it, unless the receiver is gone.
    #[track_caller]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        match self.0.of() {
            Ok(real) => real.send(message),
            Err(queue) => queue.send(message, Location::caller()),
        }
    }

    /// Sends a message if there is room for it or, where the bound is 0, the receiver waits for one.
    #[track_caller]
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        match self.0.of() {
            Ok(real) => real.try_send(message),
            Err(queue) => queue.try_send(message, Location::caller()),
        }
    }
}

impl<T> RefUnwindSafe for Receiver<T> {}
impl<T> UnwindSafe for Receiver<T> {}

impl<T> Receiver<T> {
    /// Waits for a message, or until all senders are gone.
    #[track_caller]
    pub fn recv(&self) -> Result<T, RecvError> {
        match self.end.of() {
            Ok(real) => real.recv(),
            Err(queue) => queue
                .receive(None, Location::caller())
                .map_err(|_| RecvError),
        }
    }

    /// A message, if there is one.
    #[track_caller]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        match self.end.of() {
            Ok(real) => real.try_recv(),
            Err(queue) => queue.try_receive(Location::caller()),
        }
    }

    /// Waits for a message, or until all senders are gone or the time is over.
    #[track_caller]
    pub fn recv_timeout(&self, time: Duration) -> Result<T, RecvTimeoutError> {
        match self.end.of() {
            Ok(real) => real.recv_timeout(time),
            Err(queue) => queue.receive(Some(time), Location::caller()),
        }
    }

    /// All messages, each waited for, until all senders are gone.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self)
    }

    /// The messages that are there.
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter(self)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.another())
    }
}

impl<T> Clone for SyncSender<T> {
    fn clone(&self) -> Self {
        Self(self.0.another())
    }
}

impl<T> Drop for Sender<T> {
    #[track_caller]
    fn drop(&mut self) {
        if let End::Ours(queue) = &self.0 {
            queue.operate(Action::Close, Location::caller());
        }
    }
}

impl<T> Drop for SyncSender<T> {
    #[track_caller]
    fn drop(&mut self) {
        if let End::Ours(queue) = &self.0 {
            queue.operate(Action::Close, Location::caller());
        }
    }
}

impl<T> Drop for Receiver<T> {
    #[track_caller]
    fn drop(&mut self) {
        if let End::Ours(queue) = &self.end {
            queue.hang_up(Location::caller());
        }
    }
}

/// All messages, each waited for, like [`std::sync::mpsc::Iter`].
#[derive(Debug)]
pub struct Iter<'a, T: 'a>(&'a Receiver<T>);

/// The messages that are there, like [`std::sync::mpsc::TryIter`].
#[derive(Debug)]
pub struct TryIter<'a, T: 'a>(&'a Receiver<T>);

/// All messages, each waited for, like [`std::sync::mpsc::IntoIter`].
#[derive(Debug)]
pub struct IntoIter<T>(Receiver<T>);

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}

impl<T> Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> Debug for SyncSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncSender").finish_non_exhaustive()
    }
}

impl<T> Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_real_threads_come_until_the_last_sender_is_gone() {
        let (sender, receiver) = channel();
        for id in 0..3 {
            let sender = sender.clone();
            std::thread::spawn(move || sender.send(id).unwrap());
        }
        drop(sender);
        let mut received: Vec<_> = receiver.iter().collect();
        received.sort_unstable();
        assert_eq!(received, [0, 1, 2]);
        assert_eq!(receiver.recv(), Err(RecvError));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    }

    #[test]
    fn who_sends_to_nobody_gets_the_message_back() {
        let (sender, receiver) = channel();
        drop(receiver);
        assert_eq!(sender.send(1), Err(SendError(1)));
        let (sender, receiver) = sync_channel(1);
        drop(receiver);
        assert_eq!(sender.try_send(1), Err(TrySendError::Disconnected(1)));
    }

    #[test]
    fn a_bounded_channel_is_full_at_its_bound() {
        let (sender, receiver) = sync_channel(1);
        assert_eq!(sender.try_send(1), Ok(()));
        assert_eq!(sender.clone().try_send(2), Err(TrySendError::Full(2)));
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1]);
        let none = receiver.recv_timeout(Duration::from_millis(1));
        assert_eq!(none, Err(RecvTimeoutError::Timeout));
        drop(sender);
        assert_eq!(receiver.into_iter().next(), None);
    }

    #[test]
    fn without_room_a_message_goes_from_hand_to_hand() {
        let (sender, receiver) = sync_channel(0);
        assert_eq!(sender.try_send(0), Err(TrySendError::Full(0)));
        let thread = std::thread::spawn(move || {
            for number in 1..4 {
                sender.send(number).unwrap();
            }
        });
        assert_eq!(receiver.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
        thread.join().unwrap();
    }
}
