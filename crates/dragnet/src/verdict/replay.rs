//! A counterexample that was run again.

use thiserror::Error;

use super::Counterexample;
use crate::trace::SavedState;

/// A trace that was run again and still violates its property.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Replay {
    /// The execution, explained anew.
    pub counterexample: Counterexample,
    /// The property that it violates.
    pub property: String,
    /// What is wrong at its end, in a line.
    pub violation: String,
    /// The states of the execution, as files have them: the first, then one after each step that did not fail. None where
    /// states cannot be written.
    pub states: Vec<SavedState>,
}

/// A trace that does not fit the system any more.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayError {
    /// The trace was recorded from another system.
    #[error("this trace is of `{recorded}`, not of `{replayed}`")]
    OtherSystem {
        /// The system of the trace.
        recorded: String,
        /// The system at hand.
        replayed: String,
    },
    /// The system does something else than it did.
    #[error(
        "the system has changed since this trace was recorded: {at}, {what}; check it again to record a new trace"
    )]
    Changed {
        /// Where the difference shows.
        at: String,
        /// What the difference is.
        what: String,
    },
    /// Its execution does not come to an end.
    #[error("the trace could not be followed to its end: {why}")]
    Unfinished {
        /// What stands in the way.
        why: String,
    },
}
