//! Threads that run one thing and end.

use std::sync::OnceLock;
use std::{panic, thread};

use tracing::dispatcher::{self, Dispatch};

use super::{replace, world};
use crate::step_guard;

/// Runs `code` on a thread on which nothing has run before.
///
/// It inherits the caller's file descriptors and a test harness's capture of output by being started from here; the
/// subscriber of `tracing`, which belongs to a thread, is handed over.
pub(super) fn run<T: Send>(code: impl FnOnce() -> T + Send) -> T {
    static IN_PLACE: OnceLock<Result<(), String>> = OnceLock::new();
    let in_place = IN_PLACE.get_or_init(|| {
        start_and_join(|| {
            world::enter(0);
            replace::in_place()
        })
    });
    if let Err(why_not) = in_place {
        panic!("{why_not}");
    }
    let subscriber = dispatcher::get_default(Dispatch::clone);
    let steps = step_guard::current();
    start_and_join(|| {
        let _entered = step_guard::enter(steps.as_ref());
        dispatcher::with_default(&subscriber, code)
    })
}

fn start_and_join<T: Send>(code: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let started = thread::Builder::new().spawn_scoped(scope, code);
        let thread = started.unwrap_or_else(|error| {
            panic!("there is no thread for a handler to run on: {error}");
        });
        thread.join()
    })
    .unwrap_or_else(|payload| panic::resume_unwind(payload))
}
