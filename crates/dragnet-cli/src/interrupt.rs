//! Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a shell reports of a process that Ctrl-C has ended.
const INTERRUPTED: i32 = 130;

/// Requests that follow each other this closely are one: `timeout` signals the process and then its group.
const ONE_REQUEST: Duration = Duration::from_secs(1);

/// Lets Ctrl-C, or a request to terminate, set `stop`; another one, a second later or more, ends the process at once.
pub(crate) fn stops(stop: Arc<AtomicBool>) {
    let first = Mutex::new(None);
    let handler = move || {
        stop.store(true, Ordering::Relaxed);
        let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
        if first.get_or_insert_with(Instant::now).elapsed() >= ONE_REQUEST {
            dragnet::end_process(INTERRUPTED);
        }
    };
    // This fails where a handler was set before, which then stays: Ctrl-C does what the program wants it to do.
    let _ = ctrlc::set_handler(handler);
}
