//! A list that only grows, and whose items stay where they are.
//!
//! # Protocol
//!
//! A push takes the next number, makes sure that there is a bucket for it, writes the item and returns the number. Buckets
//! double in size and never move. A number reaches another thread only through a table, whose values are stored with
//! `Release` and loaded with `Acquire`, so whoever holds a number sees its item; that is why looking one up needs no
//! check. Numbers must come from `push`, of the same arena.

use std::alloc::{self, Layout};
use std::mem::{self, MaybeUninit};
use std::ptr::{self, NonNull};

use super::pages::{self, LARGE_PAGE};
use crate::panics;
use crate::weave::{AtomicPtr, AtomicUsize, Ordering};

const FIRST_BITS: u32 = 5;
const BUCKETS: usize = 33 - FIRST_BITS as usize;

pub(crate) struct Arena<T> {
    /// For each bucket, where the item with the number 0 would be if the bucket reached back to it: an item is then found
    /// by its number alone. Null until there is the bucket.
    buckets: [AtomicPtr<MaybeUninit<T>>; BUCKETS],
    len: AtomicUsize,
    /// How many items there may be.
    most: usize,
}

/// A number plus one is a `u32` as well, and so is a number plus two.
const MOST: usize = u32::MAX as usize - 1;

// SAFETY: items are reached by reference from several threads, and dropped by one.
unsafe impl<T: Send + Sync> Sync for Arena<T> {}
// SAFETY: the arena owns its items.
unsafe impl<T: Send> Send for Arena<T> {}

impl<T> Arena<T> {
    pub(crate) fn new() -> Self {
        Self {
            buckets: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            len: AtomicUsize::new(0),
            most: MOST,
        }
    }

    /// Adds an item, and names it. More than 2^32 - 2 items are a [limit](panics::limit).
    pub(crate) fn push(&self, item: T) -> u32 {
        let id = self.len.fetch_add(1, Ordering::Relaxed);
        if id >= self.most {
            self.is_full();
        }
        let (bucket, at) = place(id as u32);
        let place = self.bucket(bucket).wrapping_add(at);
        // SAFETY: the bucket has room at this place, and this place belongs to this number alone.
        unsafe { place.write(MaybeUninit::new(item)) };
        id as u32
    }

    /// How many items there are.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// The item with this number, which `push` returned.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> &T {
        debug_assert!((id as usize) < self.len.load(Ordering::Relaxed));
        let (bucket, at) = place(id);
        // SAFETY: the number comes from `push`, which wrote the item before it returned, and it came here by way of an
        // acquiring load; items never move and are dropped only with the arena.
        unsafe {
            let origin = self.buckets.get_unchecked(bucket).load(Ordering::Acquire);
            (*origin.wrapping_add(at)).assume_init_ref()
        }
    }

    #[cold]
    fn is_full(&self) -> ! {
        // Whatever is below `len` was pushed.
        self.len.fetch_sub(1, Ordering::Relaxed);
        panics::limit(format!(
            "the search has more than {} distinct local states, messages or other parts of states of one kind",
            self.most
        ))
    }

    fn bucket(&self, bucket: usize) -> *mut MaybeUninit<T> {
        let known = self.buckets[bucket].load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        let layout = layout::<T>(bucket);
        // SAFETY: the layout is not empty: a bucket has items, and items of no size are not kept in arenas.
        let Some(memory) = NonNull::new(unsafe { alloc::alloc(layout) }) else {
            alloc::handle_alloc_error(layout);
        };
        pages::advise_large(memory, layout.size());
        let fresh = origin(bucket, memory.as_ptr().cast());
        let installed = self.buckets[bucket].compare_exchange(
            ptr::null_mut(),
            fresh,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        match installed {
            Ok(_) => fresh,
            Err(other) => {
                // SAFETY: another thread's bucket is in place, and nobody has seen this one.
                unsafe { alloc::dealloc(memory.as_ptr(), layout) };
                other
            }
        }
    }
}

impl<T> Drop for Arena<T> {
    fn drop(&mut self) {
        let items = match mem::needs_drop::<T>() {
            true => self.len.load(Ordering::Relaxed),
            false => 0,
        };
        for id in 0..items {
            let (bucket, at) = place(id as u32);
            let item = self.buckets[bucket]
                .load(Ordering::Relaxed)
                .wrapping_add(at);
            // An item of the program may panic, and so may the next: the process would not survive two at once. The search
            // is over by now.
            //
            // SAFETY: every number below `len` was pushed, and nobody else has the arena any more.
            let _ = panics::catch(|| unsafe { (*item).assume_init_drop() });
        }
        for (bucket, origin) in self.buckets.iter().enumerate() {
            let origin = origin.load(Ordering::Relaxed);
            if !origin.is_null() {
                let first = origin.wrapping_add(first_of(bucket));
                // SAFETY: it was allocated with this layout, and its items are dropped.
                unsafe { alloc::dealloc(first.cast(), layout::<T>(bucket)) };
            }
        }
    }
}

/// The bucket of a number, and its distance from where that bucket would begin if it held all before it too.
///
/// Numbers are counted from 2^FIRST_BITS: bucket b holds those of b + FIRST_BITS + 1 bits.
#[inline]
fn place(id: u32) -> (usize, usize) {
    let at = id as usize + (1 << FIRST_BITS);
    (at.ilog2() as usize - FIRST_BITS as usize, at)
}

/// The least distance in a bucket.
fn first_of(bucket: usize) -> usize {
    1 << (bucket + FIRST_BITS as usize)
}

/// Where distances in a bucket are counted from.
fn origin<T>(bucket: usize, first: *mut T) -> *mut T {
    first.wrapping_sub(first_of(bucket))
}

fn layout<T>(bucket: usize) -> Layout {
    const { assert!(size_of::<T>() > 0) };
    let items = Layout::array::<T>(first_of(bucket));
    let items = items.expect("a bucket fits into memory");
    if items.size() < LARGE_PAGE {
        return items;
    }
    items.align_to(LARGE_PAGE).expect("a power of two")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;
    use crate::system::FailureKind;

    #[test]
    fn an_item_too_many_is_a_limit_and_changes_nothing() {
        let mut arena = Arena::new();
        arena.most = 40;
        let full: Vec<u32> = (0..40).map(|n| arena.push(format!("{n}"))).collect();
        for _ in 0..3 {
            let failure = panics::catch(|| arena.push("one more".to_owned())).unwrap_err();
            assert_eq!(failure.kind(), FailureKind::Limit);
        }
        assert_eq!(arena.len.load(Ordering::Relaxed), 40);
        assert!(full.iter().all(|&id| *arena.get(id) == id.to_string()));
    }

    #[test]
    fn the_last_number_has_a_place() {
        let (bucket, at) = place(MOST as u32 - 1);
        assert!(bucket < BUCKETS && at - first_of(bucket) < first_of(bucket));
    }

    #[test]
    fn every_item_is_found_under_its_number_from_every_thread() {
        let arena = Arena::new();
        let pushed: Vec<Vec<(u32, String)>> = thread::scope(|scope| {
            let spawn = |thread| {
                let arena = &arena;
                scope.spawn(move || {
                    let push = |n| {
                        let text = format!("{thread}/{n}");
                        (arena.push(text.clone()), text)
                    };
                    (0..5_000).map(push).collect()
                })
            };
            let handles: Vec<_> = (0..4).map(spawn).collect();
            handles
                .into_iter()
                .map(|handle| handle.join().unwrap())
                .collect()
        });
        let ids: HashSet<u32> = pushed.iter().flatten().map(|(id, _)| *id).collect();
        assert_eq!(ids.len(), 20_000);
        for (id, text) in pushed.iter().flatten() {
            assert_eq!(arena.get(*id), text);
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::Arc;

    use loom::thread;

    use super::*;
    use crate::weave::AtomicU32;
    use crate::weave::tracked::Tracked;

    /// Two threads push, both into the first bucket, which both may have made. Each number that one passes on to the other
    /// as a table does is that of its item.
    #[test]
    fn whoever_gets_a_number_finds_its_item() {
        loom::model(|| {
            let arena = Arc::new(Arena::new());
            let passed = Arc::new(AtomicU32::new(0));
            let (others, passing) = (Arc::clone(&arena), Arc::clone(&passed));
            let thread = thread::spawn(move || {
                let id = others.push(Tracked::new(1));
                passing.store(id + 1, Ordering::Release);
                id
            });
            let mine = arena.push(Tracked::new(2));
            if let Some(theirs) = passed.load(Ordering::Acquire).checked_sub(1) {
                assert_eq!(arena.get(theirs).read(), 1);
            }
            assert_eq!(arena.get(mine).read(), 2);
            let theirs = thread.join().unwrap();
            assert_ne!(mine, theirs);
            assert_eq!(arena.get(theirs).read(), 1);
        });
    }
}
