//! Programs with threads.
//!
//! Each is written as it would be on `std`, with the imports of what threads share taken from [`dragnet::sync`],
//! [`dragnet::thread`] and [`dragnet::net`].

use dragnet::catalog::Entry;
use dragnet::thread::{Builder, JoinHandle};

pub mod accumulator;
pub mod bounded_queue;
pub mod connection_pool;
pub mod file_system;
pub mod indexer;
pub mod last_zero;
pub mod lock_free_stack;
pub mod philosophers;
pub mod readers;
pub mod rw_cache;
pub mod work_stealing;

/// Every bundled program with threads.
pub fn entries() -> Vec<Entry> {
    vec![
        accumulator::entry(),
        accumulator::replicas_entry(),
        readers::entry(),
        last_zero::entry(),
        indexer::entry(),
        file_system::entry(),
        bounded_queue::entry(),
        lock_free_stack::entry(),
        connection_pool::entry(),
        work_stealing::entry(),
        philosophers::entry(),
        rw_cache::entry(),
    ]
}

/// Starts a thread with a name, by which counterexamples call it.
fn spawn<T: Send + 'static>(
    name: impl Into<String>,
    body: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let builder = Builder::new().name(name.into());
    builder.spawn(body).expect("the thread can be started")
}

/// Waits for threads, and gives what each has come to, in their order.
#[track_caller]
fn join_all<T>(threads: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T> {
    let mut results = Vec::new();
    for thread in threads {
        results.push(thread.join().expect("the thread does not panic"));
    }
    results
}
