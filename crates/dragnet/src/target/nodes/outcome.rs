//! What inputs do to local states, by the numbers under which both are interned.

use std::any::Any;
use std::sync::Arc;

use crate::system::Failure;
use crate::target::parts::Sent;

/// Everything that one input can do to one local state: an outcome for each combination of choices.
pub(super) struct OutcomeSet {
    pub(super) outcomes: Box<[Outcome]>,
    /// Whatever is chosen, nothing changes.
    pub(super) idle: bool,
}

impl OutcomeSet {
    /// Whether the handler chose nothing, so that there is one outcome.
    pub(super) fn is_single(&self) -> bool {
        match &*self.outcomes {
            [one] => one.rest.as_ref().is_none_or(|rest| rest.choices.is_empty()),
            _ => false,
        }
    }
}

/// What one run of a handler came to.
pub(super) enum Drawn {
    /// The only outcome, by its number among those that are memoised.
    Known(u32),
    /// One of several.
    Once(OutcomeSet),
}

pub(super) struct Outcome {
    pub(super) local: u32,
    pub(super) sent: Arc<[Sent]>,
    pub(super) rest: Option<Box<Rest>>,
}

impl Outcome {
    /// What its handler chose.
    pub(super) fn choices(&self) -> &[usize] {
        self.rest.as_ref().map_or(&[], |rest| &rest.choices)
    }

    /// How it fails.
    ///
    /// # Panics
    /// Where it does not.
    #[cold]
    pub(super) fn failure(&self) -> Failure {
        let rest = self.rest.as_ref();
        rest.and_then(|rest| rest.failure.clone())
            .expect("it fails")
    }

    pub(super) fn fails(&self) -> bool {
        self.rest
            .as_ref()
            .is_some_and(|rest| rest.failure.is_some())
    }
}

/// The parts of an outcome that are rarely there.
pub(super) struct Rest {
    pub(super) failure: Option<Failure>,
    /// The answers to calls, a vector of the messages of the cluster.
    pub(super) answers: Box<dyn Any + Send + Sync>,
    pub(super) observations: Vec<String>,
    pub(super) choices: Vec<usize>,
}
