//! A node's local state together with what is in flight to it: a place of a row.
//!
//! What a node can do next follows from its cell alone, so that is found out once for each distinct cell. Expanding a
//! global state is then a look at each of its cells, and a step replaces the cell of the node that acts and those of the
//! nodes that it sends to.

use std::sync::Arc;

use super::outcome::Outcome;
use super::steps::{Kind, choice_number, short};
use crate::tables::{Arena, Domain, FlatTable, Ids, OnceSlice};
use crate::target::parts::Sent;
use crate::trace::scatter;
use crate::weave::{AtomicU32, AtomicU64, Ordering};

pub(super) struct Cells {
    cells: Arena<Cell>,
    /// From (local state, inbox) to the cell.
    index: Ids,
    /// From (cell, envelope that arrives) to the cell after, for cells where more arrives than they have room for.
    arrivals: FlatTable,
}

/// All that a step reads of a cell is in one cache line.
#[repr(align(64))]
pub(super) struct Cell {
    /// What the cell adds to the sum of a row: its parts' hashes, bound to their places.
    pub(super) bound: u64,
    pub(super) local: u32,
    pub(super) inbox: u32,
    moves: OnceSlice<Move>,
    arrivals: [Arrival; 2],
}

/// The cell that takes the place of another in a row, and what that adds to the row's sum.
#[derive(Clone, Copy)]
pub(super) struct Replacement {
    pub(super) cell: u32,
    pub(super) delta: u64,
}

/// Something that the node of a cell can do, and what it makes of the cell. There are as many as there are cells or
/// more, so it holds nothing that its cell and its place there already say.
pub(super) struct Move {
    pub(super) kind: Kind,
    /// The handler fails.
    pub(super) fails: bool,
    /// Where in the inbox the message stands, or among the inputs that the node gives itself.
    pub(super) at: u16,
    pub(super) choice: u32,
    pub(super) outcomes: u32,
    /// The cell after it, before anything is sent, plus one; 0 until it is known.
    after: AtomicU32,
    delta: AtomicU64,
    pub(super) sent: Arc<[Sent]>,
}

/// What one envelope makes of a cell when it arrives.
#[derive(Default)]
struct Arrival {
    /// The envelope in the upper half, the cell after plus one in the lower; 0 until it is known.
    entry: AtomicU64,
    /// 0 for a moment after the entry is there.
    delta: AtomicU64,
}

impl Move {
    pub(super) fn new(
        kind: Kind,
        at: usize,
        outcomes: u32,
        choice: usize,
        outcome: &Outcome,
    ) -> Self {
        Self {
            kind,
            fails: outcome.fails(),
            at: short(at),
            choice: choice_number(choice),
            outcomes,
            after: AtomicU32::new(0),
            delta: AtomicU64::new(0),
            sent: Arc::clone(&outcome.sent),
        }
    }

    /// What takes the place of the cell.
    #[inline]
    pub(super) fn after(&self, find: impl FnOnce() -> Replacement) -> Replacement {
        match self.after.load(Ordering::Acquire) {
            0 => {
                let found = find();
                // Every thread finds the same.
                self.delta.store(found.delta, Ordering::Relaxed);
                self.after.store(found.cell + 1, Ordering::Release);
                found
            }
            known => Replacement {
                cell: known - 1,
                delta: self.delta.load(Ordering::Relaxed),
            },
        }
    }
}

impl Cells {
    pub(super) fn new(domain: &Arc<Domain>) -> Self {
        Self {
            cells: Arena::new(),
            index: Ids::new(domain),
            arrivals: FlatTable::small(domain),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    #[inline]
    pub(super) fn get(&self, id: u32) -> &Cell {
        self.cells.get(id)
    }

    /// The cell of a local state and an inbox; `bound` computes what it adds to a row's sum.
    pub(super) fn find(&self, local: u32, inbox: u32, bound: impl FnOnce() -> u64) -> u32 {
        let hash = pair(local, inbox);
        let is = |id| {
            let cell = self.get(id);
            (cell.local, cell.inbox) == (local, inbox)
        };
        self.index.find(hash, is).unwrap_or_else(|| {
            let id = self.cells.push(Cell {
                bound: bound(),
                local,
                inbox,
                moves: OnceSlice::new(),
                arrivals: Default::default(),
            });
            self.index.enter(hash, id, is)
        })
    }

    /// One cell in the place of another.
    #[inline]
    pub(super) fn replace(&self, old: u32, new: u32) -> Replacement {
        Replacement {
            cell: new,
            delta: self.get(new).bound.wrapping_sub(self.get(old).bound),
        }
    }

    /// What takes the place of `cell` when `envelope` arrives in its inbox.
    #[inline]
    pub(super) fn after_arrival(
        &self,
        id: u32,
        envelope: u32,
        find: impl FnOnce(&Cell) -> u32,
    ) -> Replacement {
        let cell = self.get(id);
        for arrival in &cell.arrivals {
            let entry = arrival.entry.load(Ordering::Acquire);
            if entry == 0 {
                break;
            }
            if entry >> 32 == u64::from(envelope) {
                let after = entry as u32 - 1;
                return match arrival.delta.load(Ordering::Relaxed) {
                    0 => self.replace(id, after),
                    delta => Replacement { cell: after, delta },
                };
            }
        }
        self.arrive(id, envelope, find)
    }

    #[cold]
    fn arrive(&self, id: u32, envelope: u32, find: impl FnOnce(&Cell) -> u32) -> Replacement {
        let cell = self.get(id);
        let key = pair(id, envelope);
        let has_room = |arrival: &Arrival| arrival.entry.load(Ordering::Acquire) == 0;
        if !cell.arrivals.iter().any(has_room)
            && let Some(known) = self.arrivals.get(key)
        {
            return self.replace(id, (known - 1) as u32);
        }
        let found = self.replace(id, find(cell));
        let entry = u64::from(envelope) << 32 | u64::from(found.cell + 1);
        for arrival in &cell.arrivals {
            let claimed =
                arrival
                    .entry
                    .compare_exchange(0, entry, Ordering::AcqRel, Ordering::Acquire);
            match claimed {
                Ok(_) => arrival.delta.store(found.delta, Ordering::Relaxed),
                Err(other) if other != entry => continue,
                Err(_) => {}
            }
            return found;
        }
        self.arrivals.settle(key, u64::from(found.cell) + 1);
        found
    }
}

impl Cell {
    /// What its node can do, in a fixed order.
    #[inline]
    pub(super) fn moves(&self, find: impl FnOnce(&Self) -> Box<[Move]>) -> &[Move] {
        self.moves.get_or_init(|| find(self))
    }
}

/// Two numbers as one evenly spread key, different for different pairs.
fn pair(one: u32, two: u32) -> u64 {
    scatter((u64::from(one) << 32 | u64::from(two)).wrapping_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_cache_line_and_a_move_less() {
        assert_eq!(size_of::<Cell>(), 64);
        assert_eq!(size_of::<Move>(), 40);
    }

    #[test]
    fn every_arrival_is_remembered_however_many_there_are() {
        let cells = Cells::new(&Domain::new(1));
        let cell = cells.find(0, 0, || 0);
        let arrive = |envelope| {
            let find = || cells.find(0, envelope + 1, || 100 + u64::from(envelope));
            cells.after_arrival(cell, envelope, |_| find())
        };
        let first: Vec<_> = (0..10).map(arrive).collect();
        for envelope in 0..10 {
            let again = cells.after_arrival(cell, envelope, |_| panic!("it is known"));
            assert_eq!(again.cell, first[envelope as usize].cell);
            assert_eq!(again.delta, 100 + u64::from(envelope));
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::thread;

    use super::*;

    /// Cells of which the first is there, and the next to be made is the first of a bucket of its own: whoever gets its
    /// number without happening after that does not even find the bucket.
    fn cells() -> Arc<Cells> {
        let cells = Cells::new(&Domain::new(2));
        for inbox in 0..32 {
            cells.find(0, 100 * inbox, || 0);
        }
        Arc::new(cells)
    }

    fn arrive(cells: &Cells, id: u32, envelope: u32) {
        let find = |_: &Cell| cells.find(0, envelope + 1, || 100 + u64::from(envelope));
        let after = cells.after_arrival(id, envelope, find);
        assert_eq!(cells.get(after.cell).inbox, envelope + 1);
        assert_eq!(after.delta, 100 + u64::from(envelope));
    }

    /// Two threads look up an arrival that both find out, one of them after another for which it may lose its place. The cell
    /// that each gets is made, and is the right one.
    #[test]
    fn an_arrival_that_another_thread_has_found_out_leads_to_its_cell() {
        loom::model(|| {
            let (cells, cell) = (cells(), 0);
            let others = Arc::clone(&cells);
            let thread = thread::spawn(move || arrive(&others, cell, 7));
            arrive(&cells, cell, 3);
            arrive(&cells, cell, 7);
            thread.join().unwrap();
        });
    }

    /// Two threads take the same move: both get the same replacement, whoever has found it out.
    #[test]
    fn a_move_that_another_thread_has_taken_leads_to_its_cell() {
        loom::model(|| {
            let (cells, cell) = (cells(), 0);
            let step = Arc::new(Move {
                kind: Kind::Own,
                fails: false,
                at: 0,
                choice: 0,
                outcomes: 0,
                after: AtomicU32::new(0),
                delta: AtomicU64::new(0),
                sent: Arc::new([]),
            });
            let take = move |cells: &Cells, step: &Move| {
                let after = step.after(|| cells.replace(cell, cells.find(1, 0, || 5)));
                assert_eq!((cells.get(after.cell).local, after.delta), (1, 5));
            };
            let (others, same) = (Arc::clone(&cells), Arc::clone(&step));
            let thread = thread::spawn(move || take(&others, &same));
            take(&cells, &step);
            thread.join().unwrap();
        });
    }
}
