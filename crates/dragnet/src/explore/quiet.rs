//! Keeps what the program under test prints off the terminal while it is explored.
//!
//! On Linux a thread can have file descriptors of its own. The search runs on one whose standard output and error lead
//! nowhere, and so do the threads that it starts. The thread is made without `std`, so that a test harness, which
//! hands its own capture down to new threads, does not collect what thousands of executions print.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Runs `search` and waits for it.
pub(crate) fn run<R: Send>(search: impl FnOnce() -> R + Send) -> R {
    run_watched(search, Duration::MAX, || ())
}

/// Runs `search`, and calls `look` again and again until it has ended.
pub(super) fn run_watched<R: Send>(
    search: impl FnOnce() -> R + Send,
    between_looks: Duration,
    mut look: impl FnMut(),
) -> R {
    let (done, ended) = (Mutex::new(false), Condvar::new());
    let lock = || done.lock().unwrap_or_else(PoisonError::into_inner);
    let search = || {
        // However the search ends, nobody waits for it in vain.
        let _done = OnDrop(|| {
            *lock() = true;
            ended.notify_one();
        });
        search()
    };
    platform::run(search, || {
        let mut done = lock();
        while !*done {
            look();
            let waited = ended.wait_timeout(done, between_looks);
            (done, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    })
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Threads have no subscriber but the one that they are given: each that runs the program's code needs this.
pub(super) fn silence_tracing<R>(search: impl FnOnce() -> R) -> R {
    tracing::dispatcher::with_default(&tracing::Dispatch::none(), search)
}

/// Runs `search` on a new thread, and `meanwhile` on this one.
#[cfg(not(target_os = "linux"))]
mod platform {
    use std::thread;

    pub(super) fn run<R: Send>(search: impl FnOnce() -> R + Send, meanwhile: impl FnOnce()) -> R {
        let outcome = thread::scope(|scope| {
            let search = scope.spawn(|| super::silence_tracing(search));
            meanwhile();
            search.join()
        });
        outcome.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    }
}

/// Runs `search` on a new thread, and `meanwhile` on this one.
#[cfg(target_os = "linux")]
mod platform {
    use std::any::Any;
    use std::ffi::c_void;
    use std::io::{self, Write};
    use std::mem::MaybeUninit;
    use std::panic::{self, AssertUnwindSafe};
    use std::{ptr, thread};

    type Outcome<R> = Result<R, Box<dyn Any + Send>>;

    struct Task<F, R> {
        search: Option<F>,
        outcome: Option<Outcome<R>>,
    }

    pub(super) fn run<R: Send, F: FnOnce() -> R + Send>(search: F, meanwhile: impl FnOnce()) -> R {
        // What stands in the shared buffer of standard output must not follow the thread into nowhere.
        let _ = io::stdout().flush();
        let mut task = Task {
            search: Some(search),
            outcome: None,
        };
        let outcome = match start(&mut task) {
            Some(thread) => {
                let met = panic::catch_unwind(AssertUnwindSafe(meanwhile));
                // SAFETY: it was started, and is joined once.
                unsafe { libc::pthread_join(thread, ptr::null_mut()) };
                if let Err(payload) = met {
                    panic::resume_unwind(payload);
                }
                task.outcome.expect("the thread has ended")
            }
            None => {
                let search = task.search.take().expect("no thread has taken it");
                thread::scope(|scope| {
                    let search = scope.spawn(|| super::silence_tracing(search));
                    meanwhile();
                    search.join()
                })
            }
        };
        // The panic's own message went nowhere: raise it again where it is seen.
        outcome.unwrap_or_else(|payload| panic!("{}", crate::panics::message(&*payload)))
    }

    /// Starts the task on a new thread, which must be joined; nothing when there is no thread to be had.
    fn start<R: Send, F: FnOnce() -> R + Send>(task: &mut Task<F, R>) -> Option<libc::pthread_t> {
        const STACK: usize = 64 << 20;
        let mut attributes = MaybeUninit::uninit();
        let mut thread = 0;
        // SAFETY: the attributes are initialised before they are used and destroyed once. The thread gets the only
        // pointer to `task`, which outlives it, because whoever calls this joins it first; `R` and `F` are `Send`.
        unsafe {
            if libc::pthread_attr_init(attributes.as_mut_ptr()) != 0 {
                return None;
            }
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK);
            let argument = ptr::from_mut(task).cast::<c_void>();
            let created =
                libc::pthread_create(&mut thread, attributes.as_ptr(), body::<F, R>, argument);
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            (created == 0).then_some(thread)
        }
    }

    extern "C" fn body<F: FnOnce() -> R + Send, R: Send>(argument: *mut c_void) -> *mut c_void {
        // SAFETY: `start_and_join` passes a pointer to a `Task` that nobody else touches until this thread has ended.
        let task = unsafe { &mut *argument.cast::<Task<F, R>>() };
        silence_descriptors();
        let search = task.search.take().expect("this is the one thread for it");
        // No panic may leave a function that C calls.
        task.outcome = Some(panic::catch_unwind(AssertUnwindSafe(|| {
            super::silence_tracing(search)
        })));
        // What the program left in the buffer goes where the rest of its output went.
        let _ = io::stdout().flush();
        ptr::null_mut()
    }

    /// Gives this thread, and those it will start, a table of file descriptors of its own, with output leading nowhere.
    /// Where the system refuses, output stays as it was.
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
