//! What comes out of a check: a verdict, with a counterexample that a person can read and a machine can replay.

mod counterexample;
mod replay;
mod report;
mod summary;
mod turns;

pub use counterexample::{Counterexample, Violation, ViolationKind, Waiting};
pub use replay::{Replay, ReplayError};
pub(crate) use report::test_name;
pub use report::{LocalWork, Outcome, ScheduleWork, Statistics, Verdict};
pub use summary::Style;
