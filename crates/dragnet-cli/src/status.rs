//! How the process ends.

use std::process::ExitCode;

use dragnet::Outcome;

/// How the process ends. The numbers are a promise to scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// What was asked for is done; what was checked holds.
    Done = 0,
    /// Something is violated.
    Violated = 1,
    /// The command or its input is bad.
    BadInput = 2,
    /// Nothing wrong was found, and that is no proof.
    Inconclusive = 3,
}

impl From<&Outcome> for Status {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Holds => Self::Done,
            Outcome::Violated(_) => Self::Violated,
            Outcome::Inconclusive(_) => Self::Inconclusive,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status as u8)
    }
}
