//! A global state: a short row of numbers.

use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

/// A state of a cluster, as the numbers of its interned parts: first the environment (fault budgets, partition), then
/// for each node its cell, which is its local state with what is in flight to it.
///
/// The sum of the parts' hashes, each bound to its place, travels along, so that a successor's fingerprint costs what
/// changed and not what there is.
#[derive(Debug)]
pub struct Row {
    pub(super) sum: u64,
    pub(super) ids: SmallVec<[u32; 8]>,
}

impl Clone for Row {
    #[inline]
    fn clone(&self) -> Self {
        Self {
            sum: self.sum,
            ids: SmallVec::from_slice(&self.ids),
        }
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.ids == other.ids
    }
}

impl Eq for Row {}

impl Hash for Row {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ids.hash(state);
    }
}

/// The place of the environment in a row.
pub(super) const ENVIRONMENT: usize = 0;

/// The place of a node's cell in a row.
#[inline]
pub(super) fn cell_place(node: usize) -> usize {
    1 + node
}
