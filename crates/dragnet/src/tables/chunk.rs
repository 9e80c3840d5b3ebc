//! Some items of a list that swells and ebbs, in a [block](super::blocks) that goes back to where it came from.

use std::alloc::{self, Layout};
use std::mem;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use super::Domain;
use super::blocks::{BLOCK, Blocks, checked};

/// Up to a fixed number of items. It has no memory before the first.
pub(crate) struct Chunk<T> {
    /// Dangling until there is an item.
    first: NonNull<T>,
    len: usize,
    pool: Arc<Blocks>,
}

/// However large items are, a chunk holds so many. In tests it holds no more, so that the smallest lists have several.
const FEWEST: usize = 4;

// SAFETY: the items are owned like those of a `Vec`.
unsafe impl<T: Send> Send for Chunk<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Chunk<T> {}

impl<T> Chunk<T> {
    const CAPACITY: usize = if cfg!(test) || size_of::<T>() * FEWEST > BLOCK {
        FEWEST
    } else if size_of::<T>() == 0 {
        BLOCK
    } else {
        BLOCK / size_of::<T>()
    };

    pub(crate) fn new(domain: &Domain) -> Self {
        Self {
            first: NonNull::dangling(),
            len: 0,
            pool: Arc::clone(domain.blocks()),
        }
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len == Self::CAPACITY
    }

    /// Adds an item, for which there must be room.
    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        assert!(!self.is_full(), "a chunk is full");
        if self.len == 0 {
            self.first = self.obtain();
        }
        // SAFETY: there is memory for `CAPACITY` items, and none at this place yet.
        unsafe { self.first.add(self.len).write(item) };
        self.len += 1;
    }

    /// Takes the items out, into a chunk of their own.
    pub(crate) fn take(&mut self) -> Self {
        let empty = Self {
            first: NonNull::dangling(),
            len: 0,
            pool: Arc::clone(&self.pool),
        };
        mem::replace(self, empty)
    }

    fn layout() -> Layout {
        Layout::array::<T>(Self::CAPACITY).expect("a few items, or a block of them")
    }

    /// Whether the items fit into a block.
    fn is_block(layout: Layout) -> bool {
        layout.size() <= BLOCK && layout.align() <= BLOCK
    }

    #[cold]
    fn obtain(&self) -> NonNull<T> {
        let layout = Self::layout();
        let memory = if Self::is_block(layout) {
            self.pool.take_one()
        } else {
            // SAFETY: what does not fit into a block is not empty.
            checked(unsafe { alloc::alloc(layout) }, layout)
        };
        memory.cast()
    }
}

impl<T> Deref for Chunk<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: so many items have been pushed; while there are none, the pointer dangles, but is aligned.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl<T> Drop for Chunk<T> {
    fn drop(&mut self) {
        if self.len == 0 {
            return;
        }
        let layout = Self::layout();
        // SAFETY: these are the items, which are dropped once; the memory was obtained for this layout, in this way.
        unsafe {
            ptr::drop_in_place(ptr::slice_from_raw_parts_mut(self.first.as_ptr(), self.len));
            if Self::is_block(layout) {
                self.pool.give([self.first.cast()]);
            } else {
                alloc::dealloc(self.first.as_ptr().cast(), layout);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn fill<T>(domain: &Domain, items: impl Iterator<Item = T>) -> Vec<Chunk<T>> {
        let mut chunk = Chunk::new(domain);
        let mut chunks = Vec::new();
        for item in items {
            chunk.push(item);
            if chunk.is_full() {
                chunks.push(chunk.take());
            }
        }
        chunks.push(chunk);
        chunks
    }

    fn items<T>(chunks: &[Chunk<T>]) -> impl Iterator<Item = &T> {
        chunks.iter().flat_map(|chunk| chunk.iter())
    }

    #[test]
    fn items_of_any_size_come_back_as_they_went_in() {
        let domain = Domain::new(1);
        let numbers = fill(&domain, 0..10_u64);
        assert!(items(&numbers).copied().eq(0..10));
        let nothing = fill(&domain, std::iter::repeat_n((), 10));
        assert_eq!(items(&nothing).count(), 10);
        let large = fill(&domain, (0..10).map(|n| [n; BLOCK]));
        assert!(items(&large).map(|item| item[5]).eq(0..10));
    }

    #[test]
    fn every_item_is_dropped_once_and_its_block_used_again() {
        let domain = Domain::new(1);
        let item = Arc::new(());
        let chunks = fill(&domain, std::iter::repeat_n(Arc::clone(&item), 10));
        let blocks: Vec<_> = chunks.iter().map(|chunk| chunk.first).collect();
        assert_eq!(Arc::strong_count(&item), 11);
        drop(chunks);
        assert_eq!(Arc::strong_count(&item), 1);
        let again = fill(&domain, std::iter::repeat_n(item, 10));
        assert!(again.iter().all(|chunk| blocks.contains(&chunk.first)));
    }
}
