//! What surrounds the nodes of a cluster: fault budgets and partitions.

use super::faults::FaultKind;

/// What is left of the fault budgets, and which nodes a partition has put on the other side.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Environment {
    pub(super) left: [u32; FaultKind::ALL.len()],
    pub(super) cut: Option<u64>,
}

impl Environment {
    pub(super) fn allows(&self, kind: FaultKind) -> bool {
        self.left[kind as usize] > 0
    }

    pub(super) fn spend(&self, kind: FaultKind) -> Self {
        let mut after = self.clone();
        after.left[kind as usize] -= 1;
        after
    }

    pub(super) fn separates(&self, from: usize, to: usize) -> bool {
        self.cut
            .is_some_and(|far| (far >> from ^ far >> to) & 1 == 1)
    }
}
