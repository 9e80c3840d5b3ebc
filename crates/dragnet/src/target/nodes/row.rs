//! A global state: a short row of numbers.

use std::hash::{Hash, Hasher};

/// A state of a cluster, as the numbers of its interned parts: first the environment (fault budgets, partition), then
/// for each node its cell, which is its local state with what is in flight to it.
///
/// The sum of the parts' hashes, each bound to its place, travels along, so that a successor's fingerprint costs what
/// changed and not what there is.
#[derive(Clone, Debug)]
pub struct Row {
    pub(super) sum: u64,
    /// Places that are not used are 0 in every row.
    near: [u32; NEAR],
    /// The places that do not fit. One word, so that rows of small clusters stay small.
    #[expect(clippy::box_collection, reason = "a boxed slice takes two words")]
    far: Option<Box<Vec<u32>>>,
}

/// How many numbers fit into a row without a detour over the heap: those of seven nodes.
const NEAR: usize = 8;

impl Row {
    /// A row of `len` places, all 0.
    pub(super) fn zeros(len: usize) -> Self {
        Self {
            sum: 0,
            near: [0; NEAR],
            far: (len > NEAR).then(|| Box::new(vec![0; len - NEAR])),
        }
    }

    #[inline]
    pub(super) fn id(&self, place: usize) -> u32 {
        match self.near.get(place) {
            Some(&id) => id,
            None => self.far.as_ref().expect("a row has all its places")[place - NEAR],
        }
    }

    #[inline]
    pub(super) fn set(&mut self, place: usize, id: u32) {
        match self.near.get_mut(place) {
            Some(known) => *known = id,
            None => self.far.as_mut().expect("a row has all its places")[place - NEAR] = id,
        }
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.near == other.near && self.far == other.far
    }
}

impl Eq for Row {}

impl Hash for Row {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.near.hash(state);
        self.far.hash(state);
    }
}

/// The place of the environment in a row.
pub(super) const ENVIRONMENT: usize = 0;

/// The place of a node's cell in a row.
#[inline]
pub(super) fn cell_place(node: usize) -> usize {
    1 + node
}
