//! Threads of the program that a target runs on OS threads of the search: where one of them panics or ends the process, the
//! target takes it out of its execution.

use std::sync::OnceLock;

/// What the target does then. It is all about the thread that runs on the OS thread which calls it.
pub(crate) struct ControlledThreads {
    /// Whether one runs there.
    pub(crate) is_running: fn() -> bool,
    /// A panic is about to be reported; `fatal` is one that cannot unwind. Does not return where that ends the process.
    pub(crate) on_panic: fn(fatal: bool),
    /// A panic will be caught by the search.
    pub(crate) on_caught_panic: fn(),
    /// The thread ends the process with this status. Does not return where one runs.
    pub(crate) on_exit: fn(status: i32),
    /// The thread, and where it was last.
    pub(crate) describe: fn() -> String,
}

static REGISTERED: OnceLock<ControlledThreads> = OnceLock::new();

/// Has the target asked from now on.
pub(crate) fn register(threads: ControlledThreads) {
    REGISTERED.get_or_init(|| threads);
}

/// The target that has registered, if one has.
pub(crate) fn registered() -> Option<&'static ControlledThreads> {
    REGISTERED.get()
}

/// The same, if one of its threads runs on this OS thread. A signal handler may ask.
pub(crate) fn running() -> Option<&'static ControlledThreads> {
    registered().filter(|threads| (threads.is_running)())
}
