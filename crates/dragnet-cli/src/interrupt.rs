//! Ctrl-C.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a shell reports of a process that Ctrl-C has ended.
const INTERRUPTED: i32 = 130;

/// Lets Ctrl-C, or a request to terminate, set `stop`; a second one ends the process at once.
pub(crate) fn stops(stop: Arc<AtomicBool>) {
    let handler = move || {
        if stop.swap(true, Ordering::Relaxed) {
            process::exit(INTERRUPTED);
        }
    };
    // This fails where a handler was set before, which then stays: Ctrl-C does what the program wants it to do.
    let _ = ctrlc::set_handler(handler);
}
