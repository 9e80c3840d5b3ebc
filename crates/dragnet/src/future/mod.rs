//! Asynchronous tasks, on [`sync`](crate::sync), [`thread`](mod@crate::thread) and [`time`](crate::time).
//!
//! A task is a thread that polls its future and is parked while the future waits; a waker unparks it. Under a check of
//! [`Threads`](crate::Threads) the tasks are interleaved at every operation that others can notice, as threads are, and a
//! future whose waker is never woken is a deadlock. Everywhere else the tasks run on threads of the operating system.
//!
//! ```
//! use dragnet::future::{block_on, channel, spawn};
//!
//! let sum = block_on(async {
//!     let (sender, mut receiver) = channel();
//!     for number in 1..=3 {
//!         let sender = sender.clone();
//!         spawn(async move { sender.send(number).await });
//!     }
//!     drop(sender);
//!     let mut sum = 0;
//!     while let Ok(number) = receiver.recv().await {
//!         sum += number;
//!     }
//!     sum
//! });
//! assert_eq!(sum, 6);
//! ```
//!
//! Time that is waited for ([`sleep`], [`timeout`]) is virtual under a check: none passes, and what else a task waits for
//! comes before it or does not, both of which are tried.
//!
//! Futures that are written by hand work as everywhere, with the wakers that they are given. [`sleep`] and [`timeout`] work
//! inside of [`block_on`] and [`spawn`] only, and not under the executors of other libraries.

mod channel;
mod join;
pub mod oneshot;
mod poller;
mod select;
mod task;
mod timer;
mod waiter;

#[doc(inline)]
pub use crate::__join as join;
pub use channel::{
    Receiver, Receiving, RecvError, SendError, Sender, Sending, TryRecvError, TrySendError,
    bounded, channel,
};
pub use join::{join, join_all};
pub use poller::block_on;
pub use select::{Either, select, select_all};
pub use task::{JoinError, JoinHandle, spawn};
pub use timer::{Elapsed, Sleep, YieldNow, sleep, timeout, yield_now};
