//! An execution that violates a property.

use std::fmt::{self, Display};

use crate::system::{Failure, FailureKind};
use crate::trace::{Step, Trace};

/// What is wrong, and how to get there.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Violation {
    /// The property that does not hold.
    pub property: String,
    /// In which way it does not.
    pub kind: ViolationKind,
    /// An execution that shows it; there is none for a property that nothing reaches.
    pub counterexample: Option<Counterexample>,
}

/// In which way a property does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ViolationKind {
    /// A reachable state does not satisfy an invariant.
    Invariant,
    /// An assertion failed or the code panicked.
    Failure(Failure),
    /// These components wait, and nothing will happen any more.
    Deadlock(Vec<Waiting>),
    /// The property itself panicked on a reachable state.
    PropertyPanicked(Failure),
    /// No reachable state satisfies a property that some must.
    Unreached,
}

/// A component that waits in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// Its name.
    pub who: String,
    /// What it waits for, if that can be said.
    pub what: Option<String>,
}

impl Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { who, what } = self;
        match what {
            Some(what) => write!(f, "{who} waits for {what}"),
            None => write!(f, "{who} waits"),
        }
    }
}

impl Violation {
    /// What is wrong, in a short line: of a deadlock only who waits.
    pub(super) fn headline(&self) -> String {
        match &self.kind {
            ViolationKind::Deadlock(waiting) if waiting.len() > 1 => {
                let (last, others) = waiting.split_last().expect("there are several");
                let others: Vec<&str> = others.iter().map(|other| &*other.who).collect();
                format!("deadlock of {} and {}", others.join(", "), last.who)
            }
            _ => self.describe(),
        }
    }

    /// What an execution comes to that shows it, a line for each who waits.
    pub(crate) fn ending(&self) -> Vec<String> {
        match &self.kind {
            ViolationKind::Deadlock(waiting) if waiting.len() > 1 => {
                let title = "deadlock: nothing can happen any more".to_owned();
                let waiting = waiting.iter().map(ToString::to_string);
                [title].into_iter().chain(waiting).collect()
            }
            _ => vec![self.describe()],
        }
    }

    /// What is wrong, in a line.
    pub fn describe(&self) -> String {
        let property = &self.property;
        match &self.kind {
            ViolationKind::Invariant => format!("`{property}` does not hold in the last state"),
            ViolationKind::Failure(failure) => failure.to_string(),
            ViolationKind::Deadlock(waiting) => {
                let waiting: Vec<String> = waiting.iter().map(ToString::to_string).collect();
                let waiting = waiting.join(", ");
                format!("deadlock: {waiting}, and nothing can happen any more")
            }
            ViolationKind::PropertyPanicked(failure) if failure.kind() != FailureKind::Panic => {
                format!("the property `{property}` cannot be judged: {failure}")
            }
            ViolationKind::PropertyPanicked(failure) => {
                format!("the property `{property}` itself {failure}")
            }
            ViolationKind::Unreached => format!("no reachable state satisfies `{property}`"),
        }
    }
}

/// An execution that violates a property.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Counterexample {
    /// The initial state, a line a component.
    pub start: Vec<String>,
    /// Who has a lane of its own where the steps are shown.
    pub lanes: Vec<String>,
    /// What it comes to, and who waits for what if nothing can happen any more.
    pub ending: Vec<String>,
    /// The execution in the form that replays.
    pub trace: Trace,
    /// Whether there is no shorter one.
    pub shortest: bool,
    /// How many steps it had before it was shortened.
    pub found_length: usize,
}

impl Counterexample {
    /// How many steps it has.
    pub fn len(&self) -> usize {
        self.trace.steps.len()
    }

    /// Whether an initial state itself is the violation.
    pub fn is_empty(&self) -> bool {
        self.trace.steps.is_empty()
    }

    /// Its steps.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.trace.steps.iter().map(|step| &step.step)
    }
}
