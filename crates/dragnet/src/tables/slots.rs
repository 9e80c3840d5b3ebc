//! Arrays of slots, made of [blocks](super::blocks).

use super::array::line;
use super::slot::Slot;

#[cfg(not(loom))]
pub(super) use in_blocks::Slots;

/// Under loom every slot is tracked, and arrays are tiny.
#[cfg(loom)]
pub(super) struct Slots<S>(Box<[S]>);

#[cfg(loom)]
impl<S: Slot> Slots<S> {
    pub(super) fn empty(len: usize, _pool: &std::sync::Arc<super::blocks::Blocks>) -> Self {
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
mod in_blocks {
    use std::alloc::{self, Layout};
    use std::ptr::NonNull;
    use std::slice;
    use std::sync::Arc;

    use super::{Slot, line};
    use crate::tables::blocks::{BLOCK, Blocks, checked};

    /// An array of slots: whole blocks, or a part of the heap where one block would be too much.
    pub(in super::super) struct Slots<S> {
        blocks: Box<[NonNull<S>]>,
        len: usize,
        pool: Arc<Blocks>,
    }

    // SAFETY: the slots are owned like those of a `Box`.
    unsafe impl<S: Send> Send for Slots<S> {}
    // SAFETY: as above.
    unsafe impl<S: Sync> Sync for Slots<S> {}

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
                for block in &blocks {
                    // SAFETY: the block is of this size, and belongs to nobody else.
                    unsafe { block.as_ptr().write_bytes(0, BLOCK) };
                }
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
                self.pool.give(self.blocks.iter().map(|block| block.cast()));
            }
        }
    }

    fn small<S>(len: usize) -> Layout {
        Layout::array::<S>(len).expect("less than a block")
    }
}
