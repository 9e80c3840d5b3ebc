//! Data that threads share without a lock, with a check that they may.

use std::panic::{Location, RefUnwindSafe};

use super::handle::Handle;
use super::world;

/// Data that its users keep apart themselves, like [`std::cell::UnsafeCell`].
///
/// Under a check it is a failure when two threads come to it, one of them to change it, and neither happens before the
/// other as C11 has it: a data race, whether or not anything came of it. Atomic operations order by `Release` and `Acquire`;
/// `Relaxed` orders nothing. Where only an `Arc` of `std` can have ordered the two, the verdict
/// [warns](crate::Verdict::warnings) at most.
///
/// ```
/// use dragnet::cell::UnsafeCell;
/// use dragnet::sync::Arc;
/// use dragnet::{Check, Threads, thread};
///
/// struct Shared(UnsafeCell<u32>);
/// unsafe impl Sync for Shared {}
///
/// let verdict = Check::new(Threads::new(|| {
///     let shared = Arc::new(Shared(UnsafeCell::new(0)));
///     let other = Arc::clone(&shared);
///     let other = thread::spawn(move || other.0.with_mut(|data| unsafe { *data += 1 }));
///     shared.0.with(|data| unsafe { *data });
///     other.join().unwrap();
/// }))
/// .run();
/// assert!(verdict.violation().unwrap().describe().contains("data race"));
/// ```
pub struct UnsafeCell<T: ?Sized> {
    handle: Handle,
    data: std::cell::UnsafeCell<T>,
}

impl<T: ?Sized + RefUnwindSafe> RefUnwindSafe for UnsafeCell<T> {}

impl<T> UnsafeCell<T> {
    /// A cell with `value` in it.
    #[track_caller]
    pub const fn new(value: T) -> Self {
        Self {
            handle: Handle::new(),
            data: std::cell::UnsafeCell::new(value),
        }
    }

    /// What is in it.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Looks at the data. The caller makes sure that nobody changes it meanwhile.
    #[track_caller]
    pub fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
        look(self.enter(false, Location::caller()))
    }

    /// Changes the data. The caller makes sure that nobody else looks at it meanwhile.
    #[track_caller]
    pub fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
        change(self.enter(true, Location::caller()))
    }

    /// Access to what nobody else has.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    fn enter(&self, changes: bool, at: &'static Location<'static>) -> *mut T {
        let data = self.data.get();
        match world::current() {
            None => {
                self.handle.used_outside();
                data
            }
            Some(world) => {
                world.access(&self.handle, changes, at);
                world.place(&self.handle, data)
            }
        }
    }
}
