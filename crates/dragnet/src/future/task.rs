//! Tasks: futures that are polled on threads of their own.

use std::any::Any;
use std::fmt::{self, Debug};
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use super::poller::Poller;
use super::waiter::{self, Waiter};
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::{Arc, Mutex};
use crate::thread;

/// Starts a task, which polls a future on a thread of its own.
///
/// Whoever awaits the handle learns what has become of it; without a handle the task goes on by itself. Under a check a
/// task that panics is a failure, unless [`Threads::panics_are_fine`](crate::Threads::panics_are_fine).
///
/// ```
/// use dragnet::future::{block_on, spawn};
///
/// let answer = spawn(async { 6 * 7 });
/// assert_eq!(block_on(answer).unwrap(), 42);
/// ```
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let task = Arc::new(Task {
        aborted: AtomicBool::new(false),
        waker: std::sync::Mutex::new(None),
        state: Mutex::new(State {
            end: None,
            waiter: None,
        }),
    });
    let inside = Arc::clone(&task);
    let origin = Location::caller();
    let thread = thread::spawn(move || run(&inside, future, origin));
    JoinHandle {
        task,
        thread: Some(thread),
        waiter: None,
        is_told: false,
    }
}

struct Task<T> {
    aborted: AtomicBool,
    /// Wakes its thread, from when that has begun.
    waker: std::sync::Mutex<Option<Waker>>,
    state: Mutex<State<T>>,
}

struct State<T> {
    end: Option<End<T>>,
    /// Who awaits the end.
    waiter: Option<Arc<Waiter>>,
}

/// How a task has ended.
enum End<T> {
    Ready(T),
    Aborted,
    /// Its thread has the payload.
    Panicked,
}

/// What a task's thread does.
fn run<F: Future>(task: &Task<F::Output>, future: F, origin: &'static Location<'static>) {
    let poller = Poller::new(origin);
    *task.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(poller.waker().clone());
    let mut ending = Ending {
        task,
        end: Some(End::Panicked),
    };
    // The future is dropped before anybody hears of the end.
    let done = {
        let future = pin!(future);
        poller.poll(future, || task.aborted.load(SeqCst))
    };
    ending.end = Some(done.map_or(End::Aborted, End::Ready));
}

/// Tells of the end of a task when it is dropped, which a panic does too.
struct Ending<'a, T> {
    task: &'a Task<T>,
    end: Option<End<T>>,
}

impl<T> Drop for Ending<'_, T> {
    fn drop(&mut self) {
        let mut state = lock(&self.task.state);
        state.end = self.end.take();
        let called = waiter::call(&mut state.waiter);
        drop(state);
        waiter::wake(called);
    }
}

/// Takes a lock; what it guards is whole even if somebody has panicked.
#[track_caller]
pub(super) fn lock<T>(mutex: &Mutex<T>) -> crate::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A task that can be awaited.
///
/// Dropping it leaves the task to itself. Under a check a task that waits for ever is a deadlock all the same.
pub struct JoinHandle<T> {
    task: Arc<Task<T>>,
    thread: Option<thread::JoinHandle<()>>,
    waiter: Option<Arc<Waiter>>,
    /// Whether the end has been told.
    is_told: bool,
}

impl<T> JoinHandle<T> {
    /// Has the task stop where it next waits: its future is dropped, on its own thread, and not polled any more. A task
    /// that comes to its end first is not stopped.
    ///
    /// ```
    /// use dragnet::future::{block_on, spawn};
    ///
    /// let task = spawn(std::future::pending::<()>());
    /// task.abort();
    /// assert!(block_on(task).unwrap_err().is_aborted());
    /// ```
    #[track_caller]
    pub fn abort(&self) {
        self.task.aborted.store(true, SeqCst);
        let waker = self.task.waker.lock();
        // A thread that has not begun looks before it polls.
        let waker = waker.unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether the task has come to its end.
    ///
    /// ```
    /// use dragnet::future::{block_on, spawn};
    ///
    /// let mut task = spawn(async {});
    /// block_on(&mut task).unwrap();
    /// assert!(task.is_finished());
    /// ```
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        let thread = self.thread.as_ref();
        self.is_told || thread.is_none_or(thread::JoinHandle::is_finished)
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        assert!(!this.is_told, "a task's end is told once");
        if let Some(waiter) = &this.waiter
            && waiter.still_waits(context)
        {
            return Poll::Pending;
        }
        let end = {
            let mut state = lock(&this.task.state);
            let Some(end) = state.end.take() else {
                let waiter = Waiter::new(context);
                state.waiter = Some(Arc::clone(&waiter));
                this.waiter = Some(waiter);
                return Poll::Pending;
            };
            end
        };
        this.is_told = true;
        Poll::Ready(match end {
            End::Ready(value) => Ok(value),
            End::Aborted => Err(JoinError(Why::Aborted)),
            End::Panicked => {
                let thread = this.thread.take().expect("it is joined once");
                let payload = thread.join().expect_err("it unwinds");
                Err(JoinError(Why::Panicked(std::sync::Mutex::new(payload))))
            }
        })
    }
}

impl<T> Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}

/// Why a task has come to nothing: it was [aborted](JoinHandle::abort), or it has panicked.
///
/// ```
/// use dragnet::future::{block_on, spawn};
///
/// let task = spawn(async { std::panic::resume_unwind(Box::new("on purpose")) });
/// let error = block_on(task).map(|()| "no").unwrap_err();
/// assert_eq!(error.to_string(), "the task has panicked");
/// assert_eq!(error.into_panic().unwrap().downcast_ref(), Some(&"on purpose"));
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct JoinError(Why);

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error("the task was aborted")]
    Aborted,
    // The lock only makes it possible to share the error.
    #[error("the task has panicked")]
    Panicked(std::sync::Mutex<Box<dyn Any + Send>>),
}

impl JoinError {
    /// Whether the task was stopped by [`JoinHandle::abort`].
    pub fn is_aborted(&self) -> bool {
        matches!(self.0, Why::Aborted)
    }

    /// Whether the task has panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self.0, Why::Panicked(_))
    }

    /// What the task has panicked with, if it has.
    pub fn into_panic(self) -> Option<Box<dyn Any + Send>> {
        match self.0 {
            Why::Aborted => None,
            Why::Panicked(payload) => {
                Some(payload.into_inner().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }
}
