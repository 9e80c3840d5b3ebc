//! Programs with threads, tasks and processes, and what a check says of them.

mod arcs;
mod data_races;
mod futures;
mod loops;
mod mishaps;
mod network;
mod numbers;
mod programs;
mod refused;
mod runs;

use dragnet::{Check, Threads};

/// What is wrong with a program.
fn described(check: Check<Threads>) -> String {
    let verdict = check.run();
    let violation = verdict.violation();
    violation.expect("something is wrong").describe()
}
