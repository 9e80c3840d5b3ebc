//! A global state: a short row of numbers.

use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;

use crate::trace::{Key, scatter};

/// A state of a cluster, as the numbers of its interned parts: the environment (fault budgets, partition), and for each
/// node its cell, which is its local state with what is in flight to it.
///
/// The sum of the parts' hashes, each bound to its place, travels along, so that a successor's fingerprint costs what
/// changed and not what there is.
#[derive(Clone, Debug)]
pub struct Row {
    pub(super) sum: u64,
    /// Plus one, so that a `Result` with a row in it is no larger than the row.
    environment: NonZeroU32,
    /// The cells of the first nodes; 0 where there are fewer.
    near: [u32; NEAR],
    /// Those of all others. One word, so that rows of small clusters stay small.
    #[expect(clippy::box_collection, reason = "a boxed slice takes two words")]
    far: Option<Box<Vec<u32>>>,
}

/// The cells of how many nodes fit into a row without a detour over the heap. In tests so few that the smallest clusters
/// take that too.
const NEAR: usize = if cfg!(test) { 1 } else { 7 };

impl Row {
    /// A row for so many nodes, whose cells are still to be set.
    pub(super) fn new(sum: u64, environment: u32, nodes: usize) -> Self {
        Self {
            sum,
            environment: above(environment),
            near: [0; NEAR],
            far: (nodes > NEAR).then(|| Box::new(vec![0; nodes - NEAR])),
        }
    }

    #[inline]
    pub(super) fn environment(&self) -> u32 {
        self.environment.get() - 1
    }

    pub(super) fn set_environment(&mut self, environment: u32) {
        self.environment = above(environment);
    }

    /// The number of a node's cell.
    #[inline]
    pub(super) fn cell(&self, node: usize) -> u32 {
        match self.near.get(node) {
            Some(&cell) => cell,
            None => self.far.as_ref().expect("a row has a cell for each node")[node - NEAR],
        }
    }

    #[inline]
    pub(super) fn set_cell(&mut self, node: usize, cell: u32) {
        match self.near.get_mut(node) {
            Some(known) => *known = cell,
            None => self.far.as_mut().expect("a row has a cell for each node")[node - NEAR] = cell,
        }
    }
}

fn above(id: u32) -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(id)
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        (self.environment, self.near, &self.far) == (other.environment, other.near, &other.far)
    }
}

impl Eq for Row {}

impl Hash for Row {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.environment.hash(state);
        self.near.hash(state);
        self.far.hash(state);
    }
}

/// What the hash of a part of a row is bound with, by the part's number.
pub(super) fn slot(key: Key, part: usize) -> u64 {
    scatter(key.0 ^ scatter(part as u64 + 1))
}

/// The number of the environment among the parts of a row.
pub(super) const ENVIRONMENT: usize = 0;

/// The number of a node's local state among the parts of a row.
pub(super) fn local_slot(node: usize) -> usize {
    1 + 2 * node
}

/// The number of a node's inbox among the parts of a row.
pub(super) fn inbox_slot(node: usize) -> usize {
    2 + 2 * node
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Failure;

    #[test]
    fn a_row_of_a_small_cluster_is_small_and_so_is_what_becomes_of_it() {
        assert_eq!(size_of::<Row>(), 20 + 4 * NEAR);
        assert_eq!(size_of::<Result<Row, Failure>>(), size_of::<Row>());
    }

    #[test]
    fn cells_near_and_far_are_kept_apart() {
        let mut row = Row::new(0, 3, 20);
        for node in 0..20 {
            row.set_cell(node, 100 + node as u32);
        }
        assert!((0..20).all(|node| row.cell(node) == 100 + node as u32));
        let mut other = row.clone();
        other.set_cell(19, 0);
        assert_ne!(row, other);
        assert_eq!(row.environment(), 3);
    }
}
