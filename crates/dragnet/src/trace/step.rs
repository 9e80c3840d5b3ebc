//! One step of an execution, as a machine and as a person see it.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use super::{change, debug};

/// A step of a counterexample, told for a person: who does what, what changes, what is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The component that acts. Empty in a system with only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub component: String,
    /// What it does or receives.
    pub action: String,
    /// What changed in its state, a line a part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// What it sent, a line a message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<String>,
    /// Anything else that the step did: timers, answers, observations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Step {
    /// A step of a system that has only a state: what it did, and what that changed.
    pub fn of_change<S: Debug>(action: String, before: &S, after: Option<&S>) -> Self {
        Self {
            action,
            changed: after.map_or_else(Vec::new, |after| change::between(before, after)),
            ..Self::default()
        }
    }

    /// A value by its `Debug`, as a step shows it. Where that panics or returns an error, the text says so, behind what was
    /// written before.
    ///
    /// ```
    /// use std::fmt;
    ///
    /// struct Log;
    ///
    /// impl fmt::Debug for Log {
    ///     fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result { panic!("the log is gone") }
    /// }
    ///
    /// assert_eq!(dragnet::trace::Step::text(&Some(1)), "Some(1)");
    /// assert_eq!(dragnet::trace::Step::text(&Log), "‹Debug of Log panicked: the log is gone›");
    /// ```
    pub fn text<T: Debug + ?Sized>(value: &T) -> String {
        debug(value)
    }

    /// What changed between two values, by their `Debug` form: one line for each part that differs.
    ///
    /// ```
    /// #[derive(Debug)]
    /// struct Acceptor { promised: u32, accepted: Option<&'static str> }
    ///
    /// let before = Acceptor { promised: 1, accepted: None };
    /// let after = Acceptor { promised: 1, accepted: Some("a") };
    /// assert_eq!(dragnet::trace::Step::changes(&before, &after), ["accepted: None → Some(\"a\")"]);
    /// ```
    pub fn changes<S: Debug>(before: &S, after: &S) -> Vec<String> {
        change::between(before, after)
    }
}
