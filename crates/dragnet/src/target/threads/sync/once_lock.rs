//! A value that is set once.

use std::cell::UnsafeCell;
use std::fmt::{self, Debug};
use std::panic::{Location, RefUnwindSafe, UnwindSafe};

use super::once::Gate;
use crate::target::threads::world;

/// A value that is set once, like [`std::sync::OnceLock`].
pub struct OnceLock<T> {
    gate: Gate,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: only who passes the gate writes the value, when nobody reads it yet; from then on it is only read. It may be
// made on one thread and dropped on another.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}
impl<T: UnwindSafe> UnwindSafe for OnceLock<T> {}
impl<T: RefUnwindSafe + UnwindSafe> RefUnwindSafe for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// No value.
    #[track_caller]
    pub const fn new() -> Self {
        Self {
            gate: Gate::new(),
            value: UnsafeCell::new(None),
        }
    }

    /// The value, when it is known that nobody writes it.
    fn value(&self) -> Option<&T> {
        let value = self.gate.placed(&self.value);
        // SAFETY: the gate has been passed, or the execution is over and nobody goes on with a write.
        unsafe { &*value.get() }.as_ref()
    }

    /// The value, if it has been set.
    #[track_caller]
    pub fn get(&self) -> Option<&T> {
        match self.gate.is_done(Location::caller()) {
            true => self.value(),
            false => None,
        }
    }

    /// Waits until the value has been set.
    #[track_caller]
    pub fn wait(&self) -> &T {
        self.gate.wait(Location::caller());
        match (self.value(), world::current()) {
            (Some(value), _) => value,
            (None, Some(world)) => world.stay(),
            (None, None) => unreachable!("it has been set"),
        }
    }

    /// The value, which nobody else has.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut().as_mut()
    }

    /// Sets the value, or gives it back if there is one.
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.fill(Location::caller(), || value.take().expect("it is set once"));
        match value {
            None => Ok(()),
            Some(value) => Err(value),
        }
    }

    /// The value, made by `first` if there is none; who comes meanwhile waits.
    #[track_caller]
    pub fn get_or_init<F>(&self, first: F) -> &T
    where
        F: FnOnce() -> T,
    {
        self.fill(Location::caller(), first);
        self.value().expect("it has been set")
    }

    /// Sets the value unless it has been set.
    fn fill(&self, at: &'static Location<'static>, first: impl FnOnce() -> T) {
        self.gate.pass(at, || {
            if self.value().is_none() {
                let value = first();
                // SAFETY: only one passes the gate at a time, and nobody reads before.
                unsafe { *self.gate.placed(&self.value).get() = Some(value) };
            }
        });
    }

    /// Takes the value out.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// Takes the value out, so that it can be set again.
    #[track_caller]
    pub fn take(&mut self) -> Option<T> {
        let unset = Self::new();
        std::mem::replace(self, unset).into_inner()
    }
}

impl<T> Default for OnceLock<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        let lock = Self::new();
        match lock.set(value) {
            Ok(()) => lock,
            Err(_) => unreachable!("nobody else can have set it"),
        }
    }
}

impl<T: Clone> Clone for OnceLock<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        match self.get() {
            Some(value) => Self::from(value.clone()),
            None => Self::new(),
        }
    }
}

impl<T: PartialEq> PartialEq for OnceLock<T> {
    #[track_caller]
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceLock<T> {}

impl<T: Debug> Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_tuple("OnceLock");
        match self.get() {
            Some(value) => shown.field(value),
            None => shown.field(&format_args!("<uninit>")),
        };
        shown.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{self, AssertUnwindSafe};
    use std::sync::Arc;

    use super::*;

    #[test]
    fn it_is_set_once() {
        let mut lock = OnceLock::new();
        assert_eq!(lock.get(), None);
        assert_eq!(lock.set(1), Ok(()));
        assert_eq!(lock.set(2), Err(2));
        assert_eq!(*lock.get_or_init(|| 3), 1);
        assert_eq!(lock.clone(), OnceLock::from(1));
        *lock.get_mut().unwrap() = 4;
        assert_eq!(lock.take(), Some(4));
        assert_eq!(*lock.get_or_init(|| 5), 5);
        assert_eq!(lock.into_inner(), Some(5));
    }

    #[test]
    fn a_panic_leaves_it_unset() {
        let lock = OnceLock::new();
        let panics = panic::catch_unwind(AssertUnwindSafe(|| {
            lock.get_or_init(|| panic::resume_unwind(Box::new("no value")));
        }));
        assert!(panics.is_err());
        assert_eq!(lock.get(), None);
        assert_eq!(lock.set(()), Ok(()));
    }

    #[test]
    fn real_threads_agree_on_the_value() {
        let lock = Arc::new(OnceLock::new());
        let threads: Vec<_> = (0..4)
            .map(|id| {
                let lock = Arc::clone(&lock);
                std::thread::spawn(move || *lock.get_or_init(|| id))
            })
            .collect();
        for thread in threads {
            assert_eq!(Some(&thread.join().unwrap()), lock.get());
        }
    }

    #[test]
    fn a_static_outside_of_any_execution_is_itself() {
        static WORD: OnceLock<String> = OnceLock::new();
        assert_eq!(WORD.get_or_init(|| "kept".to_owned()), "kept");
        assert_eq!(WORD.get().map(String::as_str), Some("kept"));
    }
}
