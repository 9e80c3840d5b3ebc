//! Values of which every thread has its own.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt::{self, Debug, Display};

use crate::target::threads::world;

/// A value of which every thread has its own, like [`std::thread::LocalKey`]; declared with
/// [`thread_local!`](crate::thread_local).
pub struct LocalKey<T: 'static> {
    real: &'static std::thread::LocalKey<T>,
    first: fn() -> T,
}

/// The thread ends, and its values are gone, like [`std::thread::AccessError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError;

impl Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("already destroyed")
    }
}

impl std::error::Error for AccessError {}

impl<T: 'static> Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}

impl<T: 'static> LocalKey<T> {
    #[doc(hidden)]
    pub const fn new(real: &'static std::thread::LocalKey<T>, first: fn() -> T) -> Self {
        Self { real, first }
    }

    /// Shows the thread's own value, made when it is first asked for.
    pub fn with<F, R>(&'static self, look: F) -> R
    where
        F: FnOnce(&T) -> R,
    {
        match self.try_with(look) {
            Ok(seen) => seen,
            Err(error) => panic!("cannot access a thread-local value: {error}"),
        }
    }

    /// The same, unless the thread ends and its values are gone.
    pub fn try_with<F, R>(&'static self, look: F) -> Result<R, AccessError>
    where
        F: FnOnce(&T) -> R,
    {
        let Some(world) = world::current() else {
            return self.real.try_with(look).map_err(|_| AccessError);
        };
        let key = std::ptr::from_ref(self) as usize;
        if world.has_forgotten(key) {
            return Err(AccessError);
        }
        let value = world.local(key).unwrap_or_else(|| {
            let value: Box<dyn Any> = Box::new((self.first)());
            world.set_local(key, value);
            world.local(key).expect("it was just set")
        });
        // SAFETY: the value is boxed, and stays until its thread, which runs this, has ended.
        let value = unsafe { &*value };
        Ok(look(value.downcast_ref().expect("the key has one type")))
    }
}

impl<T: 'static> LocalKey<Cell<T>> {
    /// Gives the thread another value of its own.
    pub fn set(&'static self, value: T) {
        self.with(|cell| cell.set(value));
    }

    /// The thread's own value.
    pub fn get(&'static self) -> T
    where
        T: Copy,
    {
        self.with(Cell::get)
    }

    /// Takes the thread's own value, and leaves the default one.
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(Cell::take)
    }

    /// Gives the thread another value of its own for the one that it had.
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T: 'static> LocalKey<RefCell<T>> {
    /// Shows the thread's own value.
    pub fn with_borrow<R>(&'static self, look: impl FnOnce(&T) -> R) -> R {
        self.with(|cell| look(&cell.borrow()))
    }

    /// Has the thread's own value changed.
    pub fn with_borrow_mut<R>(&'static self, change: impl FnOnce(&mut T) -> R) -> R {
        self.with(|cell| change(&mut cell.borrow_mut()))
    }

    /// Gives the thread another value of its own.
    pub fn set(&'static self, value: T) {
        self.with(|cell| *cell.borrow_mut() = value);
    }

    /// Takes the thread's own value, and leaves the default one.
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(RefCell::take)
    }

    /// Gives the thread another value of its own for the one that it had.
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

/// Declares values of which every thread has its own, like [`std::thread_local!`].
#[macro_export]
macro_rules! thread_local {
    () => {};
    ($(#[$attribute:meta])* $vis:vis static $name:ident: $type:ty = const { $first:expr } $(; $($rest:tt)*)?) => {
        $crate::thread_local!($(#[$attribute])* $vis static $name: $type = $first $(; $($rest)*)?);
    };
    ($(#[$attribute:meta])* $vis:vis static $name:ident: $type:ty = $first:expr $(; $($rest:tt)*)?) => {
        $(#[$attribute])*
        $vis static $name: $crate::thread::LocalKey<$type> = {
            fn first() -> $type {
                $first
            }
            ::std::thread_local!(static REAL: $type = first());
            $crate::thread::LocalKey::new(&REAL, first)
        };
        $($crate::thread_local!($($rest)*);)?
    };
}
