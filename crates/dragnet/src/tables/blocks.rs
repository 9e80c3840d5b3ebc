//! Memory in blocks of one size, used again and again.
//!
//! A growing table frees arrays of every size, and no later array fits where an earlier one was; a search has a frontier
//! that swells and ebbs. Made of equal blocks, each of them takes what another has left. Blocks are cut from slabs that
//! the operating system backs with large pages where it can.

use std::alloc::{self, Layout};
use std::ptr::NonNull;
use std::sync::Mutex;

use super::pages::{self, LARGE_PAGE};

/// The size of a block, and what it is aligned to.
pub(super) const BLOCK: usize = 8 << 10;
/// Slabs double up to the size of a large page.
const FIRST_SLAB: usize = 64 << 10;

/// Blocks to use, and the slabs that they are cut from.
pub(crate) struct Blocks {
    pool: Mutex<Pool>,
}

struct Pool {
    free: Vec<NonNull<u8>>,
    slabs: Vec<(NonNull<u8>, Layout)>,
}

// SAFETY: blocks in the pool belong to nobody, and slabs are only freed with the pool.
unsafe impl Send for Pool {}

impl Blocks {
    pub(super) fn new() -> Self {
        Self {
            pool: Mutex::new(Pool {
                free: Vec::new(),
                slabs: Vec::new(),
            }),
        }
    }

    /// So many blocks, with whatever is in them. They belong to the caller until it gives them back, which must be while
    /// the pool is there.
    pub(super) fn take(&self, count: usize) -> Vec<NonNull<u8>> {
        let mut pool = self.pool.lock().unwrap();
        pool.provide(count);
        let rest = pool.free.len() - count;
        pool.free.drain(rest..).collect()
    }

    /// One block, on the terms of [`Blocks::take`].
    pub(super) fn take_one(&self) -> NonNull<u8> {
        let mut pool = self.pool.lock().unwrap();
        pool.provide(1);
        pool.free.pop().expect("one has been provided")
    }

    /// Takes back blocks that were taken from here and that nobody uses any more.
    pub(super) fn give(&self, blocks: impl IntoIterator<Item = NonNull<u8>>) {
        self.pool.lock().unwrap().free.extend(blocks);
    }
}

impl Pool {
    /// Sees to it that so many are free.
    fn provide(&mut self, count: usize) {
        while self.free.len() < count {
            self.add_slab();
        }
    }

    fn add_slab(&mut self) {
        let size = self
            .slabs
            .last()
            .map_or(FIRST_SLAB, |(_, last)| (last.size() * 2).min(LARGE_PAGE));
        let layout = Layout::from_size_align(size, size).expect("a power of two");
        // SAFETY: the layout is not empty.
        let slab = checked(unsafe { alloc::alloc(layout) }, layout);
        pages::advise_large(slab, size);
        self.slabs.push((slab, layout));
        // SAFETY: the slab has room for this many blocks, one after the other.
        let block = |at| unsafe { slab.add(at * BLOCK) };
        self.free.extend((0..size / BLOCK).rev().map(block));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for &(slab, layout) in &self.slabs {
            // SAFETY: each slab was obtained with this layout. Whoever has a block holds the pool, so none is left.
            unsafe { alloc::dealloc(slab.as_ptr(), layout) };
        }
    }
}

/// Memory that was asked for, if it was given.
pub(super) fn checked(memory: *mut u8, layout: Layout) -> NonNull<u8> {
    NonNull::new(memory).unwrap_or_else(|| alloc::handle_alloc_error(layout))
}
