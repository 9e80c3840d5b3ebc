//! A global state: a short row of numbers.

use smallvec::SmallVec;

/// A state of a cluster, as the numbers of its interned parts: first the environment (fault budgets, partition), then
/// for each node its local state and what is in flight to it.
///
/// The sum of the parts' hashes, each bound to its place, travels along, so that a successor's fingerprint costs what
/// changed and not what there is.
#[derive(Clone, Debug)]
pub struct Row {
    pub(super) sum: u64,
    pub(super) ids: SmallVec<[u32; 14]>,
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.ids == other.ids
    }
}

impl Eq for Row {}

impl std::hash::Hash for Row {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.ids.hash(state);
    }
}

/// The place of the environment in a row.
pub(super) const ENVIRONMENT: usize = 0;

/// The place of a node's local state in a row.
#[inline]
pub(super) fn local_slot(node: usize) -> usize {
    1 + 2 * node
}

/// The place of what is in flight to a node in a row.
#[inline]
pub(super) fn inbox_slot(node: usize) -> usize {
    2 + 2 * node
}
