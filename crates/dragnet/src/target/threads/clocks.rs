//! Vector clocks: which events of an execution must come before which.

use super::operation::ThreadId;

/// Rows of a table, each with the number of events of every thread that come before something.
pub(crate) struct Clocks {
    /// How many threads a row has room for.
    width: usize,
    cells: Vec<u32>,
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
            width: 8,
            cells: vec![0; 8],
        }
    }

    /// Forgets all rows but [`Row::NOTHING`].
    pub(crate) fn clear(&mut self) {
        self.cells.truncate(self.width);
    }

    /// Makes room for a thread.
    pub(crate) fn admit(&mut self, thread: ThreadId) {
        let needed = thread.0 as usize + 1;
        if needed <= self.width {
            return;
        }
        let width = needed.next_power_of_two();
        let mut cells = Vec::new();
        for row in self.cells.chunks(self.width) {
            cells.extend_from_slice(row);
            cells.resize(cells.len() + width - self.width, 0);
        }
        (self.width, self.cells) = (width, cells);
    }

    /// A new row that comes after another.
    pub(crate) fn after(&mut self, row: Row) -> Row {
        let new = Row((self.cells.len() / self.width) as u32);
        let from = row.0 as usize * self.width;
        self.cells.extend_from_within(from..from + self.width);
        new
    }

    /// Has a row come after another one as well.
    pub(crate) fn join(&mut self, row: Row, other: Row) {
        if row == other {
            return;
        }
        let (later, earlier) = (row.0.max(other.0), row.0.min(other.0));
        let (before, from) = self.cells.split_at_mut(later as usize * self.width);
        let later = &mut from[..self.width];
        let earlier = &mut before[earlier as usize * self.width..][..self.width];
        let (row, other) = match row.0 > other.0 {
            true => (later, earlier),
            false => (earlier, later),
        };
        for (cell, &other) in row.iter_mut().zip(&*other) {
            *cell = other.max(*cell);
        }
    }

    /// Counts one more event of a thread in a row.
    pub(crate) fn count(&mut self, row: Row, thread: ThreadId) {
        self.cells[row.0 as usize * self.width + thread.0 as usize] += 1;
    }

    /// How many events of a thread come before.
    pub(crate) fn of(&self, row: Row, thread: ThreadId) -> u32 {
        self.cells[row.0 as usize * self.width + thread.0 as usize]
    }

    /// How many events of each thread come before.
    pub(crate) fn row(&self, row: Row) -> &[u32] {
        &self.cells[row.0 as usize * self.width..][..self.width]
    }
}
