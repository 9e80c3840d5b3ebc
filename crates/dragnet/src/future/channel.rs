//! Messages from any number of tasks to one.

use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::task::lock;
use super::waiter::{self, Waiter};
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::{Arc, Mutex, MutexGuard};

pub use std::sync::mpsc::{RecvError, SendError, TryRecvError, TrySendError};

/// A channel that takes any number of messages.
///
/// ```
/// use dragnet::future::{block_on, channel};
///
/// let (sender, mut receiver) = channel();
/// sender.try_send(1).unwrap();
/// drop(sender);
/// assert_eq!(block_on(receiver.recv()), Ok(1));
/// assert!(block_on(receiver.recv()).is_err());
/// ```
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    open(None)
}

/// A channel that holds so many messages: who sends more waits until one has been received.
///
/// ```
/// use dragnet::future::{TrySendError, block_on, bounded};
///
/// let (sender, mut receiver) = bounded(1);
/// assert_eq!(sender.try_send(1), Ok(()));
/// assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
/// assert_eq!(block_on(receiver.recv()), Ok(1));
/// assert_eq!(block_on(sender.send(2)), Ok(()));
/// ```
///
/// # Panics
/// When there is room for none.
#[track_caller]
pub fn bounded<T>(room: usize) -> (Sender<T>, Receiver<T>) {
    assert!(room > 0, "a channel has room for a message");
    open(Some(room))
}

#[track_caller]
fn open<T>(room: Option<usize>) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        room,
        senders: AtomicUsize::new(1),
        queue: Mutex::new(Queue {
            messages: VecDeque::new(),
            senders_are_gone: false,
            receiver_is_gone: false,
            receiver: None,
            senders: VecDeque::new(),
        }),
    });
    let receiver = Receiver {
        shared: Arc::clone(&shared),
        waiter: None,
    };
    (Sender { shared }, receiver)
}

struct Shared<T> {
    room: Option<usize>,
    /// How many senders there are. The last one to go tells the receiver; the others do not come to the queue.
    senders: AtomicUsize,
    queue: Mutex<Queue<T>>,
}

struct Queue<T> {
    messages: VecDeque<T>,
    senders_are_gone: bool,
    receiver_is_gone: bool,
    /// The receiver, if it waits for a message.
    receiver: Option<Arc<Waiter>>,
    /// Those who wait for room.
    senders: VecDeque<Arc<Waiter>>,
}

impl<T> Shared<T> {
    fn has_room(&self, queue: &Queue<T>) -> bool {
        self.room.is_none_or(|room| queue.messages.len() < room)
    }

    #[track_caller]
    fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let queue = lock(&self.queue);
        if queue.receiver_is_gone {
            return Err(TrySendError::Disconnected(message));
        }
        if !self.has_room(&queue) {
            return Err(TrySendError::Full(message));
        }
        deliver(queue, message);
        Ok(())
    }
}

/// Puts a message into the queue, where there is room for it.
#[track_caller]
fn deliver<T>(mut queue: MutexGuard<'_, Queue<T>>, message: T) {
    queue.messages.push_back(message);
    let called = waiter::call(&mut queue.receiver);
    drop(queue);
    waiter::wake(called);
}

impl<T> Queue<T> {
    /// The next message, and who waits for the room that it leaves: to be woken when the lock is free.
    #[track_caller]
    fn receive(&mut self) -> Result<(T, Option<Arc<Waiter>>), TryRecvError> {
        match self.messages.pop_front() {
            Some(message) => Ok((message, self.call_sender())),
            None if self.senders_are_gone => Err(TryRecvError::Disconnected),
            None => Err(TryRecvError::Empty),
        }
    }

    /// Calls the first sender that waits for room.
    #[track_caller]
    fn call_sender(&mut self) -> Option<Arc<Waiter>> {
        waiter::call(&mut self.senders.pop_front())
    }

    /// Takes out a sender that waits for room; false when it has been called.
    fn forget(&mut self, waiter: &Arc<Waiter>) -> bool {
        let same = |other: &Arc<Waiter>| Arc::ptr_eq(other, waiter);
        let at = self.senders.iter().position(same);
        at.and_then(|at| self.senders.remove(at)).is_some()
    }
}

/// Sends messages into a [`channel`] or a [`bounded`] one; clones send into the same.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// Sends a message, as soon as there is room for it. It comes back if the receiver is gone.
    ///
    /// A future that is dropped before it is ready has not sent anything.
    ///
    /// ```
    /// use dragnet::future::{SendError, block_on, channel};
    ///
    /// let (sender, receiver) = channel();
    /// block_on(async {
    ///     assert_eq!(sender.send(1).await, Ok(()));
    ///     drop(receiver);
    ///     assert_eq!(sender.send(2).await, Err(SendError(2)));
    /// });
    /// ```
    pub fn send(&self, message: T) -> Sending<'_, T> {
        Sending {
            shared: &self.shared,
            message: Some(message),
            waiter: None,
        }
    }

    /// Sends a message if there is room for it now, and the receiver is not gone.
    #[track_caller]
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        self.shared.try_send(message)
    }
}

impl<T> Clone for Sender<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        self.shared.senders.fetch_add(1, SeqCst);
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T> Drop for Sender<T> {
    #[track_caller]
    fn drop(&mut self) {
        if self.shared.senders.fetch_sub(1, SeqCst) > 1 {
            return;
        }
        let mut queue = lock(&self.shared.queue);
        queue.senders_are_gone = true;
        let called = waiter::call(&mut queue.receiver);
        drop(queue);
        waiter::wake(called);
    }
}

impl<T> Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

/// A message on its way: what [`Sender::send`] makes.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Sending<'a, T> {
    shared: &'a Shared<T>,
    message: Option<T>,
    waiter: Option<Arc<Waiter>>,
}

// The message is never pinned.
impl<T> Unpin for Sending<'_, T> {}

impl<T> Future for Sending<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Some(waiter) = &this.waiter
            && waiter.still_waits(context)
        {
            return Poll::Pending;
        }
        let message = this
            .message
            .take()
            .expect("it is not polled when it is ready");
        let mut queue = lock(&this.shared.queue);
        if let Some(waiter) = this.waiter.take() {
            queue.forget(&waiter);
        }
        if queue.receiver_is_gone {
            return Poll::Ready(Err(SendError(message)));
        }
        if !this.shared.has_room(&queue) {
            let waiter = Waiter::new(context);
            queue.senders.push_back(Arc::clone(&waiter));
            this.waiter = Some(waiter);
            this.message = Some(message);
            return Poll::Pending;
        }
        deliver(queue, message);
        Poll::Ready(Ok(()))
    }
}

impl<T> Drop for Sending<'_, T> {
    #[track_caller]
    fn drop(&mut self) {
        let Some(waiter) = self.waiter.take() else {
            return;
        };
        let mut queue = lock(&self.shared.queue);
        // Whoever was called for room that it does not take passes it on.
        let passes_on = !queue.forget(&waiter) && self.shared.has_room(&queue);
        let called = passes_on.then(|| queue.call_sender()).flatten();
        drop(queue);
        waiter::wake(called);
    }
}

impl<T> Debug for Sending<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").finish_non_exhaustive()
    }
}

/// Receives the messages of a [`channel`] or a [`bounded`] one, in the order in which they were sent.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    waiter: Option<Arc<Waiter>>,
}

impl<T> Receiver<T> {
    /// Waits for a message, or until all senders are gone and there is none any more.
    ///
    /// A future that is dropped before it is ready has not received anything.
    ///
    /// ```
    /// use dragnet::future::{block_on, channel};
    ///
    /// let (sender, mut receiver) = channel();
    /// sender.try_send("first").unwrap();
    /// assert_eq!(block_on(receiver.recv()), Ok("first"));
    /// ```
    pub fn recv(&mut self) -> Receiving<'_, T> {
        Receiving { receiver: self }
    }

    /// A message, if there is one.
    #[track_caller]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let mut queue = lock(&self.shared.queue);
        let (message, called) = queue.receive()?;
        drop(queue);
        waiter::wake(called);
        Ok(message)
    }
}

impl<T> Drop for Receiver<T> {
    #[track_caller]
    fn drop(&mut self) {
        let mut queue = lock(&self.shared.queue);
        queue.receiver_is_gone = true;
        let messages = std::mem::take(&mut queue.messages);
        let called: Vec<_> = std::iter::from_fn(|| queue.call_sender()).collect();
        drop(queue);
        for waiter in called {
            waiter.wake();
        }
        drop(messages);
    }
}

impl<T> Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

/// Waits for a message: what [`Receiver::recv`] makes.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are awaited"]
pub struct Receiving<'a, T> {
    receiver: &'a mut Receiver<T>,
}

impl<T> Future for Receiving<'_, T> {
    type Output = Result<T, RecvError>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Receiver { shared, waiter } = &mut *self.receiver;
        if let Some(waiter) = waiter
            && waiter.still_waits(context)
        {
            return Poll::Pending;
        }
        let mut queue = lock(&shared.queue);
        match queue.receive() {
            Ok((message, called)) => {
                drop(queue);
                waiter::wake(called);
                Poll::Ready(Ok(message))
            }
            Err(TryRecvError::Disconnected) => Poll::Ready(Err(RecvError)),
            Err(TryRecvError::Empty) => {
                let new = Waiter::new(context);
                queue.receiver = Some(Arc::clone(&new));
                *waiter = Some(new);
                Poll::Pending
            }
        }
    }
}
