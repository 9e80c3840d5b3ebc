//! One writer and many readers of one variable.
//!
//! The program with which Abdulla, Aronis, Jonsson and Sagonas show what source sets are good for (*Optimal dynamic
//! partial order reduction*, POPL 2014). Each reader comes before or after the writer, and that is all that matters:
//! with `n` readers there are 2ⁿ executions, though their steps can be interleaved in far more ways.

use dragnet::catalog::Entry;
use dragnet::sync::Arc;
use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::{Check, Threads};

use super::{join_all, spawn};

/// The program under the name `readers`.
pub fn entry() -> Entry {
    Entry::new(
        "readers",
        "one writer and many readers of one variable",
        |setup| {
            let n = setup.number("n");
            Check::new(Threads::new(move || readers(n)))
        },
    )
    .parameter("n", 8, 0..=24, "how many readers there are")
}

const OLD: u32 = 1;
const NEW: u32 = 2;

/// A writer and `n` readers.
pub fn readers(n: usize) {
    let shared = Arc::new(AtomicU32::new(OLD));
    let writer = Arc::clone(&shared);
    let writer = spawn("writer", move || writer.store(NEW, SeqCst));
    let readers: Vec<_> = (1..=n)
        .map(|id| {
            let shared = Arc::clone(&shared);
            spawn(format!("reader {id}"), move || shared.load(SeqCst))
        })
        .collect();
    writer.join().expect("the writer does not panic");
    for seen in join_all(readers) {
        assert!(seen == OLD || seen == NEW, "a reader has seen {seen}");
    }
}
