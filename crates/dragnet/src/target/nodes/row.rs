//! A global state: a short row of numbers.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};

/// A state of a cluster, as the numbers of its interned parts: first the environment (fault budgets, partition), then
/// for each node its cell, which is its local state with what is in flight to it.
///
/// The sum of the parts' hashes, each bound to its place, travels along, so that a successor's fingerprint costs what
/// changed and not what there is.
#[derive(Clone, Debug)]
pub struct Row {
    pub(super) sum: u64,
    pub(super) ids: Ids,
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.ids[..] == other.ids[..]
    }
}

impl Eq for Row {}

impl Hash for Row {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ids.hash(state);
    }
}

/// How many numbers fit into a row without a detour over the heap: those of seven nodes.
const INLINE: usize = 8;

/// The numbers of a row. A short row is copied in whole, without looking how long it is.
#[derive(Clone)]
pub(super) enum Ids {
    /// Numbers that are not used are 0 in every row.
    Short([u32; INLINE]),
    Long(Box<[u32]>),
}

impl Ids {
    /// `len` numbers, all 0.
    pub(super) fn zeros(len: usize) -> Self {
        if len <= INLINE {
            Self::Short([0; INLINE])
        } else {
            Self::Long(vec![0; len].into())
        }
    }
}

impl Deref for Ids {
    type Target = [u32];

    #[inline]
    fn deref(&self) -> &[u32] {
        match self {
            Self::Short(ids) => ids,
            Self::Long(ids) => ids,
        }
    }
}

impl DerefMut for Ids {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u32] {
        match self {
            Self::Short(ids) => ids,
            Self::Long(ids) => ids,
        }
    }
}

impl fmt::Debug for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}

/// The place of the environment in a row.
pub(super) const ENVIRONMENT: usize = 0;

/// The place of a node's cell in a row.
#[inline]
pub(super) fn cell_place(node: usize) -> usize {
    1 + node
}
