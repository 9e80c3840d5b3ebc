//! Atomic values, with the names and signatures of `std::sync::atomic`.
//!
//! Under a check every operation is sequentially consistent, whatever its ordering says.

use std::fmt::{self, Debug};
use std::panic::{Location, RefUnwindSafe};
use std::sync::atomic as real;

pub use std::sync::atomic::Ordering;

use crate::target::threads::model::Model;
use crate::target::threads::operation::Action;
use crate::target::threads::world::{self, Handle};

/// Orders what comes before and after it. Under a check everything is ordered as it is.
pub fn fence(order: Ordering) {
    if world::current().is_none() {
        real::fence(order);
    }
}

/// Keeps the compiler from moving anything across it.
pub fn compiler_fence(order: Ordering) {
    real::compiler_fence(order);
}

/// Waits for the operation's turn, and gives the value to operate on.
fn turn<'a, A>(
    handle: &Handle,
    value: &'a A,
    action: Action,
    at: &'static Location<'static>,
) -> &'a A {
    match world::current() {
        None => {
            handle.used_outside();
            value
        }
        Some(world) => {
            world.operate(handle, || Model::Memory, action, at);
            let place = world.place(handle, std::ptr::from_ref(value).cast_mut());
            // SAFETY: it is the value itself, or a copy that lives as long as the execution.
            unsafe { &*place }
        }
    }
}

macro_rules! atomic {
    ($name:ident, $type:ty $(, <$parameter:ident>)?) => {
        #[doc = concat!("Like [`std::sync::atomic::", stringify!($name), "`].")]
        pub struct $name$(<$parameter>)? {
            handle: Handle,
            value: real::$name$(<$parameter>)?,
        }

        impl$(<$parameter>)? RefUnwindSafe for $name$(<$parameter>)? {}

        impl$(<$parameter>)? $name$(<$parameter>)? {
            /// An atomic value.
            #[track_caller]
            pub const fn new(value: $type) -> Self {
                Self {
                    handle: Handle::new(),
                    value: real::$name::new(value),
                }
            }

            /// Reads it.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $type {
                turn(&self.handle, &self.value, Action::Load, Location::caller()).load(order)
            }

            /// Writes it.
            #[track_caller]
            pub fn store(&self, value: $type, order: Ordering) {
                turn(&self.handle, &self.value, Action::Store, Location::caller()).store(value, order);
            }

            /// Writes it, and says what it was.
            #[track_caller]
            pub fn swap(&self, value: $type, order: Ordering) -> $type {
                turn(&self.handle, &self.value, Action::Modify, Location::caller()).swap(value, order)
            }

            /// Writes it if it is `current`, and says what it was.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $type,
                new: $type,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$type, $type> {
                let value = turn(&self.handle, &self.value, Action::Modify, Location::caller());
                let exchanged = value.compare_exchange(current, new, success, failure);
                if exchanged.is_err()
                    && let Some(world) = world::current()
                {
                    world.changed_nothing();
                }
                exchanged
            }

            /// The same. Under a check it does not fail for no reason.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $type,
                new: $type,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$type, $type> {
                self.compare_exchange(current, new, success, failure)
            }

            /// Reads it, and writes what `change` makes of it, until nobody else has written between.
            #[track_caller]
            pub fn fetch_update<F>(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                mut change: F,
            ) -> Result<$type, $type>
            where
                F: FnMut($type) -> Option<$type>,
            {
                let mut before = self.load(fetch_order);
                while let Some(next) = change(before) {
                    match self.compare_exchange_weak(before, next, set_order, fetch_order) {
                        Err(now) => before = now,
                        done => return done,
                    }
                }
                Err(before)
            }

            /// Access to what nobody else has.
            pub fn get_mut(&mut self) -> &mut $type {
                self.value.get_mut()
            }

            /// What it was.
            pub fn into_inner(self) -> $type {
                self.value.into_inner()
            }
        }

        impl$(<$parameter>)? From<$type> for $name$(<$parameter>)? {
            #[track_caller]
            fn from(value: $type) -> Self {
                Self::new(value)
            }
        }

        impl$(<$parameter>)? Debug for $name$(<$parameter>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // To look at the value would be an operation of its own.
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

macro_rules! modifiers {
    ($name:ident, $type:ty, $($method:ident),*) => {
        impl $name {
            $(
                #[doc = concat!("Like [`std::sync::atomic::", stringify!($name), "::", stringify!($method), "`].")]
                #[track_caller]
                pub fn $method(&self, value: $type, order: Ordering) -> $type {
                    turn(&self.handle, &self.value, Action::Modify, Location::caller()).$method(value, order)
                }
            )*
        }

        impl Default for $name {
            #[track_caller]
            fn default() -> Self {
                Self::new(<$type>::default())
            }
        }
    };
}

macro_rules! integers {
    ($($name:ident: $type:ty),*) => {
        $(
            atomic!($name, $type);
            modifiers!(
                $name, $type, fetch_add, fetch_sub, fetch_and, fetch_nand, fetch_or, fetch_xor, fetch_max, fetch_min
            );
        )*
    };
}

integers!(
    AtomicU8: u8, AtomicU16: u16, AtomicU32: u32, AtomicU64: u64, AtomicUsize: usize,
    AtomicI8: i8, AtomicI16: i16, AtomicI32: i32, AtomicI64: i64, AtomicIsize: isize
);
atomic!(AtomicBool, bool);
modifiers!(AtomicBool, bool, fetch_and, fetch_nand, fetch_or, fetch_xor);
atomic!(AtomicPtr, *mut T, <T>);

// SAFETY: as for the real one, what it points to is not its concern.
unsafe impl<T> Send for AtomicPtr<T> {}
// SAFETY: the same.
unsafe impl<T> Sync for AtomicPtr<T> {}

impl<T> Default for AtomicPtr<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(std::ptr::null_mut())
    }
}
