//! Waiting for time to pass, and for others to have their turn.

use std::fmt::{self, Debug};
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::poller::{Alarm, Poller};
use crate::time::Instant;

/// Waits until so much time has passed since this was called.
///
/// ```
/// use dragnet::future::{block_on, sleep};
/// use std::time::Duration;
///
/// block_on(sleep(Duration::from_millis(1)));
/// ```
pub fn sleep(time: Duration) -> Sleep {
    Sleep {
        until: Instant::now().checked_add(time),
        alarm: None,
    }
}

/// Waits for a time: what [`sleep`] makes.
///
/// # Panics
/// When it is polled outside of [`block_on`](super::block_on) and [`spawn`](super::spawn).
#[must_use = "futures do nothing unless they are awaited"]
pub struct Sleep {
    /// `None` for a time that never comes.
    until: Option<Instant>,
    alarm: Option<Arc<Alarm>>,
}

impl Future for Sleep {
    type Output = ();

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Poller::note(Location::caller());
        let Some(until) = self.until else {
            return Poll::Pending;
        };
        if Instant::now() >= until {
            self.alarm = None;
            return Poll::Ready(());
        }
        let poller = Poller::current().expect(
            "`sleep` and `timeout` work inside of `dragnet::future::block_on` and `spawn` only",
        );
        self.alarm = Some(poller.set_alarm(until, context.waker()));
        Poll::Pending
    }
}

impl Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// Waits for a future, but only so long from when this was called. A future that is not ready by then is dropped.
///
/// ```
/// use dragnet::future::{Elapsed, block_on, timeout};
/// use std::future::{pending, ready};
/// use std::time::Duration;
///
/// let moment = Duration::from_millis(1);
/// assert_eq!(block_on(timeout(moment, ready(7))), Ok(7));
/// assert_eq!(block_on(timeout(moment, pending::<()>())), Err(Elapsed));
/// ```
pub fn timeout<F: IntoFuture>(
    time: Duration,
    future: F,
) -> impl Future<Output = Result<F::Output, Elapsed>> {
    Timeout {
        future: Box::pin(future.into_future()),
        sleep: sleep(time),
    }
}

// A type of its own, so that the future hears where it is awaited, which an `async` block does not tell.
struct Timeout<F> {
    future: Pin<Box<F>>,
    sleep: Sleep,
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(done) = self.future.as_mut().poll(context) {
            return Poll::Ready(Ok(done));
        }
        Pin::new(&mut self.sleep)
            .poll(context)
            .map(|()| Err(Elapsed))
    }
}

/// The time of a [`timeout`] was over first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the time was over first")]
pub struct Elapsed;

/// Lets other tasks go first.
///
/// ```
/// use dragnet::future::{block_on, spawn, yield_now};
///
/// block_on(async {
///     let task = spawn(async { 1 });
///     while !task.is_finished() {
///         yield_now().await;
///     }
///     assert_eq!(task.await.unwrap(), 1);
/// });
/// ```
pub fn yield_now() -> YieldNow {
    YieldNow { has_yielded: false }
}

/// Lets other tasks go first: what [`yield_now`] makes.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are awaited"]
pub struct YieldNow {
    has_yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.has_yielded {
            return Poll::Ready(());
        }
        self.has_yielded = true;
        match Poller::current() {
            Some(poller) if poller.waker().will_wake(context.waker()) => poller.yield_once(),
            _ => context.waker().wake_by_ref(),
        }
        Poll::Pending
    }
}
