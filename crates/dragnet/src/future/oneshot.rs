//! One message from one task to another.

use std::fmt::{self, Debug};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::task::lock;
use super::waiter::{self, Waiter};
use crate::sync::{Arc, Mutex};

pub use std::sync::mpsc::{RecvError, TryRecvError};

/// A channel for one message.
///
/// ```
/// use dragnet::future::{block_on, oneshot, spawn};
///
/// let (sender, receiver) = oneshot::channel();
/// spawn(async move { sender.send("done") });
/// assert_eq!(block_on(receiver), Ok("done"));
/// ```
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Mutex::new(Slot {
        message: None,
        sender_is_gone: false,
        receiver_is_gone: false,
        receiver: None,
    }));
    let receiver = Receiver {
        shared: Arc::clone(&shared),
        waiter: None,
    };
    let sender = Sender {
        shared: Some(shared),
    };
    (sender, receiver)
}

struct Slot<T> {
    message: Option<T>,
    sender_is_gone: bool,
    receiver_is_gone: bool,
    /// The receiver, if it waits for the message.
    receiver: Option<Arc<Waiter>>,
}

/// Sends one message.
pub struct Sender<T> {
    /// Until it has sent.
    shared: Option<Arc<Mutex<Slot<T>>>>,
}

impl<T> Sender<T> {
    /// Sends the message. It comes back if the receiver is gone.
    ///
    /// ```
    /// let (sender, receiver) = dragnet::future::oneshot::channel();
    /// drop(receiver);
    /// assert_eq!(sender.send(1), Err(1));
    /// ```
    #[track_caller]
    pub fn send(mut self, message: T) -> Result<(), T> {
        let shared = self.shared.take().expect("it has not sent");
        let mut slot = lock(&shared);
        if slot.receiver_is_gone {
            return Err(message);
        }
        slot.message = Some(message);
        slot.sender_is_gone = true;
        let called = waiter::call(&mut slot.receiver);
        drop(slot);
        waiter::wake(called);
        Ok(())
    }
}

impl<T> Drop for Sender<T> {
    #[track_caller]
    fn drop(&mut self) {
        let Some(shared) = &self.shared else {
            return;
        };
        let mut slot = lock(shared);
        slot.sender_is_gone = true;
        let called = waiter::call(&mut slot.receiver);
        drop(slot);
        waiter::wake(called);
    }
}

impl<T> Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

/// Receives one message: a future that is ready when it has come, or when the sender is gone without.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Receiver<T> {
    shared: Arc<Mutex<Slot<T>>>,
    waiter: Option<Arc<Waiter>>,
}

impl<T> Receiver<T> {
    /// The message, if it has come.
    ///
    /// ```
    /// use dragnet::future::{TryRecvError, oneshot};
    ///
    /// let (sender, mut receiver) = oneshot::channel();
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    /// ```
    #[track_caller]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        lock(&self.shared).receive()
    }
}

impl<T> Slot<T> {
    fn receive(&mut self) -> Result<T, TryRecvError> {
        match self.message.take() {
            Some(message) => Ok(message),
            None if self.sender_is_gone => Err(TryRecvError::Disconnected),
            None => Err(TryRecvError::Empty),
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Some(waiter) = &this.waiter
            && waiter.still_waits(context)
        {
            return Poll::Pending;
        }
        let mut slot = lock(&this.shared);
        match slot.receive() {
            Ok(message) => Poll::Ready(Ok(message)),
            Err(TryRecvError::Disconnected) => Poll::Ready(Err(RecvError)),
            Err(TryRecvError::Empty) => {
                let waiter = Waiter::new(context);
                slot.receiver = Some(Arc::clone(&waiter));
                this.waiter = Some(waiter);
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Receiver<T> {
    #[track_caller]
    fn drop(&mut self) {
        let mut slot = lock(&self.shared);
        slot.receiver_is_gone = true;
        let message = slot.message.take();
        drop(slot);
        drop(message);
    }
}

impl<T> Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
