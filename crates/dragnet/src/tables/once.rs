//! A list that is made once, by whoever asks first.
//!
//! # Protocol
//!
//! Whoever finds no list makes one. The first to take the lock bit of `len` writes the pointer and then the length, both
//! for ever; who comes second throws their own list away and waits for the length.

use std::marker::PhantomData;
use std::{ptr, slice};

use super::number_below;
use crate::weave::{AtomicPtr, AtomicU32, Ordering, spin_loop};

/// A `OnceLock<Box<[T]>>` in two thirds of its size.
pub(crate) struct OnceSlice<T> {
    first: AtomicPtr<T>,
    len: AtomicU32,
    owns: PhantomData<T>,
}

const UNMADE: u32 = u32::MAX;
const BEING_SET: u32 = u32::MAX - 1;

// SAFETY: it owns its items, and hands out references to them like a `OnceLock`.
unsafe impl<T: Send> Send for OnceSlice<T> {}
// SAFETY: as above; items made by one thread can be dropped by another.
unsafe impl<T: Send + Sync> Sync for OnceSlice<T> {}

impl<T> OnceSlice<T> {
    pub(crate) fn new() -> Self {
        Self {
            first: AtomicPtr::new(ptr::null_mut()),
            len: AtomicU32::new(UNMADE),
            owns: PhantomData,
        }
    }

    /// The list; `make` makes it if there is none yet.
    #[inline]
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> Box<[T]>) -> &[T] {
        let len = self.len.load(Ordering::Acquire);
        if len >= BEING_SET {
            return self.init(make());
        }
        self.get(len)
    }

    #[cold]
    fn init(&self, list: Box<[T]>) -> &[T] {
        let len = number_below(list.len(), BEING_SET, "steps of one node in one state");
        let taken =
            self.len
                .compare_exchange(UNMADE, BEING_SET, Ordering::Acquire, Ordering::Acquire);
        if taken.is_ok() {
            let first = Box::into_raw(list).cast::<T>();
            self.first.store(first, Ordering::Relaxed);
            self.len.store(len, Ordering::Release);
            return self.get(len);
        }
        loop {
            match self.len.load(Ordering::Acquire) {
                BEING_SET => spin_loop(),
                len => return self.get(len),
            }
        }
    }

    #[inline]
    fn get(&self, len: u32) -> &[T] {
        // SAFETY: the length was loaded with `Acquire` after it was set, so the pointer is that of a boxed slice of this
        // length, which is freed only with this.
        unsafe { slice::from_raw_parts(self.first.load(Ordering::Relaxed), len as usize) }
    }
}

impl<T> Drop for OnceSlice<T> {
    fn drop(&mut self) {
        let len = self.len.load(Ordering::Acquire);
        if len < BEING_SET {
            let first = self.first.load(Ordering::Relaxed);
            let list = ptr::slice_from_raw_parts_mut(first, len as usize);
            // SAFETY: this is the slice that `init` took out of its box, and nobody else can have it any more.
            drop(unsafe { Box::from_raw(list) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn all_threads_get_one_list_and_it_is_dropped_once() {
        let item = Arc::new(());
        for _ in 0..200 {
            let slice = OnceSlice::new();
            let make = || vec![Arc::clone(&item); 3].into_boxed_slice();
            let places: Vec<usize> = thread::scope(|scope| {
                let get = || slice.get_or_init(make).as_ptr().addr();
                let handles: Vec<_> = (0..4).map(|_| scope.spawn(get)).collect();
                handles.into_iter().map(|h| h.join().unwrap()).collect()
            });
            assert!(places.iter().all(|place| *place == places[0]));
            assert_eq!(slice.get_or_init(|| panic!("it is made")).len(), 3);
        }
        assert_eq!(Arc::strong_count(&item), 1);
    }

    #[test]
    fn a_list_may_be_empty() {
        let slice = OnceSlice::<String>::new();
        assert!(slice.get_or_init(Box::default).is_empty());
        assert!(slice.get_or_init(|| panic!("it is made")).is_empty());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::Arc;

    use loom::thread;

    use super::*;
    use crate::weave::tracked::Tracked;

    /// Two threads ask at once: one list stays, and both find its items made.
    #[test]
    fn all_threads_get_one_list() {
        loom::model(|| {
            let slice = Arc::new(OnceSlice::new());
            let get = |slice: &OnceSlice<Tracked>, value| {
                let list = slice.get_or_init(|| Box::new([Tracked::new(value)]));
                (list.as_ptr().addr(), list[0].read())
            };
            let other = Arc::clone(&slice);
            let thread = thread::spawn(move || get(&other, 1));
            let mine = get(&slice, 2);
            assert_eq!(mine, thread.join().unwrap());
        });
    }
}
