//! Keeps what the program under test prints off the terminal while it is explored.
//!
//! On Linux a thread can have file descriptors of its own. The search runs on one whose standard output and error lead
//! nowhere, and so do the threads that it starts. The thread is made without `std`, so that a test harness, which
//! hands its own capture down to new threads, does not collect what thousands of executions print.

use std::any::Any;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use crate::step_guard;

/// The stack of every OS thread that runs code of the program under test, so that whether it overflows does not depend on
/// which of them runs it.
const STACK_BYTES: usize = 64 << 20;

/// The result of work on another OS thread, or the panic that ended it.
type Outcome<R> = Result<R, Box<dyn Any + Send>>;

/// Work on an OS thread of its own, and what it hands over before it ends.
pub(super) struct Job<R> {
    shared: Arc<Shared<R>>,
    thread: Option<platform::Thread>,
}

struct Shared<R> {
    state: Mutex<State<R>>,
    changed: Condvar,
}

struct State<R> {
    result: Option<Outcome<R>>,
    has_ended: bool,
}

/// Takes what a job has come to.
pub(crate) struct Delivery<R>(Arc<Shared<R>>);

impl<R> Delivery<R> {
    /// Hands the result over. Whatever the job still does after that, nobody waits for it who does not want to.
    pub(crate) fn deliver(&self, result: R) {
        self.0.lock().result = Some(Ok(result));
        self.0.changed.notify_all();
    }
}

impl<R> Shared<R> {
    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Send + 'static> Job<R> {
    /// Starts `work` quietly. It hands over its result.
    pub(super) fn start(work: impl FnOnce(&Delivery<R>) + Send + 'static) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                result: None,
                has_ended: false,
            }),
            changed: Condvar::new(),
        });
        let delivery = Delivery(Arc::clone(&shared));
        let thread = platform::start(Box::new(move || {
            let done = panic::catch_unwind(AssertUnwindSafe(|| work(&delivery)));
            let mut state = delivery.0.lock();
            if let (Err(payload), None) = (done, &state.result) {
                state.result = Some(Err(payload));
            }
            state.has_ended = true;
            drop(state);
            delivery.0.changed.notify_all();
        }));
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// The result, if it is there within `longest`.
    pub(super) fn wait(&self, longest: Duration) -> Option<R> {
        let state = self.shared.lock();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, longest, |state| {
                state.result.is_none() && !state.has_ended
            });
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.result.take() {
            None => None,
            Some(Ok(result)) => Some(result),
            // The panic's own message went nowhere: raise it again where it is seen.
            Some(Err(payload)) => {
                drop(state);
                panic!("{}", crate::panics::message(&*payload))
            }
        }
    }

    /// Waits until the job has ended, but no longer than this. One that has not ended goes on by itself.
    pub(super) fn finish(mut self, longest: Duration) {
        let state = self.shared.lock();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, longest, |state| !state.has_ended);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.has_ended
            && let Some(thread) = self.thread.take()
        {
            drop(state);
            thread.join();
        }
    }
}

/// Threads have no subscriber but the one that they are given: each that runs the program's code needs this.
pub(super) fn silence_tracing<R>(search: impl FnOnce() -> R) -> R {
    tracing::dispatcher::with_default(&tracing::Dispatch::none(), search)
}

/// Starts another OS thread that runs code of the program under test.
pub(crate) fn spawn_worker<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> R + Send + 'scope,
) -> ScopedJoinHandle<'scope, R> {
    let steps = step_guard::current();
    let worker = thread::Builder::new().stack_size(STACK_BYTES);
    let started = worker.spawn_scoped(scope, move || {
        let _entered = step_guard::enter(steps.as_ref());
        silence_tracing(work)
    });
    started.unwrap_or_else(|error| panic!("no thread can be started to search: {error}"))
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::thread::{self, JoinHandle};

    pub(super) struct Thread(JoinHandle<()>);

    pub(super) fn start(work: Box<dyn FnOnce() + Send>) -> Thread {
        Thread(thread::spawn(|| super::silence_tracing(work)))
    }

    impl Thread {
        pub(super) fn join(self) {
            let _ = self.0.join();
        }
    }
}

#[cfg(target_os = "linux")]
mod platform {
    use std::ffi::c_void;
    use std::mem::MaybeUninit;
    use std::panic::{self, AssertUnwindSafe};
    use std::ptr;
    use std::thread;

    use super::{STACK_BYTES, Write, io};

    type Work = Box<dyn FnOnce() + Send>;

    /// An OS thread, which goes on by itself when this is dropped.
    pub(super) struct Thread(Option<libc::pthread_t>);

    impl Thread {
        pub(super) fn join(mut self) {
            if let Some(thread) = self.0.take() {
                // SAFETY: it was started, and is joined or detached once.
                unsafe { libc::pthread_join(thread, ptr::null_mut()) };
            }
        }
    }

    impl Drop for Thread {
        fn drop(&mut self) {
            if let Some(thread) = self.0.take() {
                // SAFETY: it was started, and is joined or detached once.
                unsafe { libc::pthread_detach(thread) };
            }
        }
    }

    pub(super) fn start(work: Work) -> Thread {
        // What stands in the shared buffer of standard output must not follow the thread into nowhere.
        let _ = io::stdout().flush();
        let work = Box::into_raw(Box::new(work));
        let mut attributes = MaybeUninit::uninit();
        let mut thread = 0;
        // SAFETY: the attributes are initialised before they are used and destroyed once. The thread gets the only
        // pointer to `work`.
        unsafe {
            if libc::pthread_attr_init(attributes.as_mut_ptr()) == 0 {
                libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK_BYTES);
                let attributes = attributes.as_mut_ptr();
                let created = libc::pthread_create(&mut thread, attributes, body, work.cast());
                libc::pthread_attr_destroy(attributes);
                if created == 0 {
                    return Thread(Some(thread));
                }
            }
        }
        // SAFETY: no thread has got it.
        let work = unsafe { Box::from_raw(work) };
        let work = || super::silence_tracing(work);
        // Where there is no thread to be had, this one does it, in whatever way it ends.
        let _ = thread::scope(|scope| scope.spawn(work).join());
        Thread(None)
    }

    extern "C" fn body(argument: *mut c_void) -> *mut c_void {
        // SAFETY: `start` passes a pointer that nobody else has.
        let work = unsafe { Box::from_raw(argument.cast::<Work>()) };
        silence_descriptors();
        // No panic may leave a function that C calls.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| {
            super::silence_tracing(work);
        }));
        // What the program left in the buffer goes where the rest of its output went.
        let _ = io::stdout().flush();
        ptr::null_mut()
    }

    /// Gives this thread, and those it will start, a table of file descriptors of its own, with output leading nowhere. Where
    /// the system refuses, output stays as it was.
    fn silence_descriptors() {
        // SAFETY: plain system calls on descriptors; after `unshare` they concern this thread alone.
        unsafe {
            if libc::unshare(libc::CLONE_FILES) != 0 {
                return;
            }
            let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            if nowhere >= 0 {
                libc::dup2(nowhere, libc::STDOUT_FILENO);
                libc::dup2(nowhere, libc::STDERR_FILENO);
                libc::close(nowhere);
            }
        }
    }
}
