//! Vector clocks: which events of an execution must come before which.

use super::operation::ThreadId;

/// How many threads a block has room for. Most programs have no more, and a row of theirs is one block.
const BLOCK: usize = 8;

type Block = [u32; BLOCK];

/// Rows of a table, each with the number of events of every thread that come before something.
pub(crate) struct Clocks {
    /// How many blocks a row has.
    width: usize,
    blocks: Vec<Block>,
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row(u32);

impl Row {
    /// The row of what nothing comes before.
    pub(crate) const NOTHING: Self = Self(0);
}

impl Clocks {
    pub(crate) fn new() -> Self {
        Self {
            width: 1,
            blocks: vec![[0; BLOCK]],
        }
    }

    /// Forgets all rows but [`Row::NOTHING`].
    pub(crate) fn clear(&mut self) {
        self.blocks.truncate(self.width);
    }

    /// Makes room for a thread.
    pub(crate) fn admit(&mut self, thread: ThreadId) {
        let needed = thread.0 as usize / BLOCK + 1;
        if needed <= self.width {
            return;
        }
        let width = needed.next_power_of_two();
        let mut blocks = Vec::new();
        for row in self.blocks.chunks(self.width) {
            blocks.extend_from_slice(row);
            blocks.resize(blocks.len() + width - self.width, [0; BLOCK]);
        }
        (self.width, self.blocks) = (width, blocks);
    }

    /// A new row that comes after another.
    #[inline]
    pub(crate) fn after(&mut self, row: Row) -> Row {
        if self.width == 1 {
            let block = self.blocks[row.0 as usize];
            self.blocks.push(block);
            return Row(self.blocks.len() as u32 - 1);
        }
        let new = Row((self.blocks.len() / self.width) as u32);
        let from = self.start(row);
        self.blocks.extend_from_within(from..from + self.width);
        new
    }

    /// Has a row come after another one as well.
    #[inline]
    pub(crate) fn join(&mut self, row: Row, other: Row) {
        let (row, other) = (self.start(row), self.start(other));
        for at in 0..self.width {
            let other = self.blocks[other + at];
            let both = &mut self.blocks[row + at];
            *both = std::array::from_fn(|thread| both[thread].max(other[thread]));
        }
    }

    /// Counts one more event of a thread in a row.
    pub(crate) fn count(&mut self, row: Row, thread: ThreadId) {
        let (at, thread) = (self.start(row), thread.0 as usize);
        self.blocks[at + thread / BLOCK][thread % BLOCK] += 1;
    }

    /// How many events of a thread come before.
    pub(crate) fn of(&self, row: Row, thread: ThreadId) -> u32 {
        let thread = thread.0 as usize;
        self.blocks[self.start(row) + thread / BLOCK][thread % BLOCK]
    }

    /// How many events of each thread come before.
    pub(crate) fn row(&self, row: Row) -> &[u32] {
        self.blocks[self.start(row)..][..self.width].as_flattened()
    }

    /// The first block of a row.
    fn start(&self, row: Row) -> usize {
        row.0 as usize * self.width
    }
}
