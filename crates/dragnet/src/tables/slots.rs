//! Arrays of slots, made of blocks of one size.
//!
//! A growing table frees arrays of every size, and no later array fits where an earlier one was. So arrays are lists of
//! equal blocks that are used again, cut from slabs that the operating system backs with large pages where it can:
//! random access to a table of many megabytes otherwise costs more for translating addresses than for the memory itself.

use super::array::line;
use super::slot::Slot;

#[cfg(not(loom))]
pub(super) use blocks::{Blocks, Slots};

/// Under loom every slot is tracked, and arrays are tiny.
#[cfg(loom)]
pub(super) struct Slots<S>(Box<[S]>);

#[cfg(loom)]
pub(super) struct Blocks;

#[cfg(loom)]
impl Blocks {
    pub(super) fn new() -> Self {
        Self
    }
}

#[cfg(loom)]
impl<S: Slot> Slots<S> {
    pub(super) fn empty(len: usize, _blocks: &std::sync::Arc<Blocks>) -> Self {
        Self((0..len).map(|_| S::empty()).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn line(&self, at: usize) -> &[S] {
        &self.0[at..at + line::<S>()]
    }
}

#[cfg(not(loom))]
mod blocks {
    use std::alloc::{self, Layout};
    use std::ptr::NonNull;
    use std::slice;
    use std::sync::{Arc, Mutex};

    use super::{Slot, line};
    use crate::tables::pages::{self, LARGE_PAGE};

    /// The size of a block.
    const BLOCK: usize = 8 << 10;
    /// Slabs double up to the size of a large page.
    const FIRST_SLAB: usize = 64 << 10;

    /// An array of slots: whole blocks, or a part of the heap where one block would be too much.
    pub(in super::super) struct Slots<S> {
        blocks: Box<[NonNull<S>]>,
        len: usize,
        pool: Arc<Blocks>,
    }

    /// Blocks to use, and the slabs that they are cut from.
    pub(in super::super) struct Blocks {
        pool: Mutex<Pool>,
    }

    struct Pool {
        free: Vec<NonNull<u8>>,
        slabs: Vec<(NonNull<u8>, Layout)>,
    }

    // SAFETY: the slots are owned like those of a `Box`.
    unsafe impl<S: Send> Send for Slots<S> {}
    // SAFETY: as above.
    unsafe impl<S: Sync> Sync for Slots<S> {}
    // SAFETY: blocks in the pool belong to nobody, and slabs are only freed with the pool.
    unsafe impl Send for Pool {}

    impl<S> Slots<S> {
        const PER_BLOCK: usize = BLOCK / size_of::<S>();

        #[inline]
        pub(in super::super) fn len(&self) -> usize {
            self.len
        }
    }

    impl<S: Slot> Slots<S> {
        /// `len` empty slots, whole lines, at least one. An empty slot is all zeros.
        pub(in super::super) fn empty(len: usize, pool: &Arc<Blocks>) -> Self {
            assert!(len > 0 && len.is_multiple_of(line::<S>()));
            let blocks: Box<[NonNull<S>]> = if len < Self::PER_BLOCK {
                let layout = small::<S>(len);
                // SAFETY: the layout is not empty.
                let first = unsafe { alloc::alloc_zeroed(layout) };
                Box::new([checked(first, layout).cast()])
            } else {
                let blocks = pool.take(len.div_ceil(Self::PER_BLOCK));
                blocks.into_iter().map(NonNull::cast).collect()
            };
            Self {
                blocks,
                len,
                pool: Arc::clone(pool),
            }
        }

        /// The line that begins at `at`.
        #[inline]
        pub(in super::super) fn line(&self, at: usize) -> &[S] {
            debug_assert!(at < self.len && at.is_multiple_of(line::<S>()));
            // SAFETY: callers stay below `len`, which is whole lines like the size of a block, and every slot below it
            // lies in its block and is initialised.
            unsafe {
                let block = self.blocks.get_unchecked(at / Self::PER_BLOCK);
                let first = block.add(at % Self::PER_BLOCK);
                slice::from_raw_parts(first.as_ptr(), line::<S>())
            }
        }
    }

    impl<S> Drop for Slots<S> {
        fn drop(&mut self) {
            if self.len < Self::PER_BLOCK {
                // SAFETY: this is what `empty` obtained for the same length, and it is given back once.
                unsafe { alloc::dealloc(self.blocks[0].as_ptr().cast(), small::<S>(self.len)) };
            } else {
                let blocks = self.blocks.iter().map(|block| block.cast());
                self.pool.pool.lock().unwrap().free.extend(blocks);
            }
        }
    }

    impl Blocks {
        pub(in super::super) fn new() -> Self {
            Self {
                pool: Mutex::new(Pool {
                    free: Vec::new(),
                    slabs: Vec::new(),
                }),
            }
        }

        fn take(&self, count: usize) -> Vec<NonNull<u8>> {
            let taken: Vec<NonNull<u8>> = {
                let mut pool = self.pool.lock().unwrap();
                while pool.free.len() < count {
                    pool.add_slab();
                }
                let rest = pool.free.len() - count;
                pool.free.drain(rest..).collect()
            };
            for block in &taken {
                // SAFETY: the block is of this size, and belongs to nobody else.
                unsafe { block.as_ptr().write_bytes(0, BLOCK) };
            }
            taken
        }
    }

    impl Pool {
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
                // SAFETY: each slab was obtained with this layout. Every array holds the pool, so none is left.
                unsafe { alloc::dealloc(slab.as_ptr(), layout) };
            }
        }
    }

    fn small<S>(len: usize) -> Layout {
        Layout::array::<S>(len).expect("less than a block")
    }

    fn checked(memory: *mut u8, layout: Layout) -> NonNull<u8> {
        NonNull::new(memory).unwrap_or_else(|| alloc::handle_alloc_error(layout))
    }
}
