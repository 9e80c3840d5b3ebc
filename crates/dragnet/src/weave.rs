//! The primitives of concurrency, from `std` or, under `--cfg loom`, from loom.

#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread::yield_now,
};
#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread::yield_now,
};

#[cfg(all(test, loom))]
pub(crate) mod tracked {
    use loom::cell::UnsafeCell;

    /// A value of which loom knows when it was made: reading it without happening after that fails the model.
    pub(crate) struct Tracked(UnsafeCell<u32>);

    // SAFETY: it is only ever read, and loom reports a read that does not happen after the value was made.
    unsafe impl Sync for Tracked {}

    impl Tracked {
        pub(crate) fn new(value: u32) -> Self {
            Self(UnsafeCell::new(value))
        }

        pub(crate) fn read(&self) -> u32 {
            // SAFETY: nobody writes to it.
            self.0.with(|value| unsafe { *value })
        }
    }
}
