//! A node's local state together with what is in flight to it: a place of a row.
//!
//! What a node can do next follows from its cell alone, so that is found out once for each distinct cell. Expanding a
//! global state is then a look at each of its cells, and a step replaces the cell of the node that acts and those of the
//! nodes that it sends to.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use super::steps::NodeEvent;
use crate::tables::{Arena, Domain, FlatTable, prefetch};
use crate::trace::scatter;

pub(super) struct Cells {
    cells: Arena<Cell>,
    /// From (local state, inbox) to the cell.
    index: FlatTable,
    /// From (cell, envelope that arrives) to the cell after.
    arrivals: FlatTable,
}

pub(super) struct Cell {
    /// What the cell adds to the sum of a row: its parts' hashes, bound to their places.
    pub(super) bound: u64,
    pub(super) local: u32,
    pub(super) inbox: u32,
    moves: OnceLock<Box<[Move]>>,
}

/// Something that the node of a cell can do: one event, and what it makes of the cell.
pub(super) struct Move {
    pub(super) event: NodeEvent,
    /// The cell after it, before anything is sent, plus one; 0 until it is known.
    after: AtomicU32,
}

impl Move {
    pub(super) fn new(event: NodeEvent) -> Self {
        Self {
            event,
            after: AtomicU32::new(0),
        }
    }

    #[inline]
    pub(super) fn after(&self, find: impl FnOnce() -> u32) -> u32 {
        match self.after.load(Ordering::Acquire) {
            0 => {
                let cell = find();
                self.after.store(cell + 1, Ordering::Release);
                cell
            }
            known => known - 1,
        }
    }
}

impl Cells {
    pub(super) fn new(domain: &Arc<Domain>) -> Self {
        Self {
            cells: Arena::new(),
            index: FlatTable::small(domain),
            arrivals: FlatTable::small(domain),
        }
    }

    #[inline]
    pub(super) fn get(&self, id: u32) -> &Cell {
        self.cells.get(id)
    }

    /// The cell of a local state and an inbox; `bound` computes what it adds to a row's sum.
    pub(super) fn find(&self, local: u32, inbox: u32, bound: impl FnOnce() -> u64) -> u32 {
        let key = pair(local, inbox);
        let known = self.index.get(key).unwrap_or_else(|| {
            let id = self.cells.push(Cell {
                bound: bound(),
                local,
                inbox,
                moves: OnceLock::new(),
            });
            self.index.upsert(key, u64::from(id) + 1, |old, _| old);
            self.index.get(key).expect("it has just been set")
        });
        (known - 1) as u32
    }

    /// The cell after `envelope` has arrived in the inbox of `cell`.
    #[inline]
    pub(super) fn after_arrival(
        &self,
        cell: u32,
        envelope: u32,
        find: impl FnOnce(&Cell) -> u32,
    ) -> u32 {
        let key = pair(cell, envelope);
        match self.arrivals.get(key) {
            Some(known) => (known - 1) as u32,
            None => {
                let after = find(self.get(cell));
                self.arrivals
                    .upsert(key, u64::from(after) + 1, |old, _| old);
                after
            }
        }
    }
}

impl Cell {
    /// Brings the moves into the cache.
    #[inline]
    pub(super) fn anticipate(&self) {
        if let Some(first) = self.moves.get().and_then(|moves| moves.first()) {
            prefetch(first);
        }
    }

    /// What its node can do, in a fixed order.
    #[inline]
    pub(super) fn moves(&self, find: impl FnOnce(&Self) -> Vec<Move>) -> &[Move] {
        self.moves.get_or_init(|| find(self).into())
    }
}

/// Two numbers as one evenly spread key, different for different pairs.
fn pair(one: u32, two: u32) -> u64 {
    scatter((u64::from(one) << 32 | u64::from(two)).wrapping_add(1))
}
