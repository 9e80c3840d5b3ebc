//! What may still go wrong in an execution.

use super::Outcome;
use crate::target::nodes::{FaultKind, Faults};
use crate::target::threads::operation::{Harm, Way};

/// How often each kind of fault may still happen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budgets([u32; FaultKind::ALL.len()]);

impl Budgets {
    pub(crate) fn new(faults: &Faults) -> Self {
        Self(FaultKind::ALL.map(|kind| faults.budget(kind)))
    }

    /// Whether something can be spared or can be harmed in a certain way.
    pub(super) fn allow(&self, harm: Harm, way: Way) -> bool {
        harm.kind(way).is_none_or(|kind| self.0[kind as usize] > 0)
    }

    pub(super) fn perform(&mut self, harm: Harm, way: Way) -> Outcome {
        if let Some(kind) = harm.kind(way) {
            self.0[kind as usize] -= 1;
        }
        Outcome::answer(way)
    }
}
