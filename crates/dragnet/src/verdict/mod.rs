//! What comes out of a check: a verdict, with a counterexample that a person can read and a machine can replay.

mod counterexample;
mod replay;
mod report;
mod summary;
mod turns;

pub use counterexample::{Counterexample, Violation, ViolationKind, Waiting};
pub use replay::{Replay, ReplayError};
pub use report::{LocalWork, Outcome, ScheduleWork, Statistics, Verdict};
pub(crate) use report::{next_unnamed, unnamed_as};
pub use summary::Style;
