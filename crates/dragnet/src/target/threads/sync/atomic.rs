//! Atomic values, with the names and signatures of `std::sync::atomic`.
//!
//! Under a check every operation is sequentially consistent, whatever its ordering says. Orderings decide what is a data race
//! on a [checked cell](crate::cell).
//!
//! An atomic value is larger than what it holds, so what `std` has to treat plain memory as one is missing: `from_ptr`.

use std::fmt::{self, Debug};
use std::panic::{Location, RefUnwindSafe};
use std::sync::atomic as real;
use std::sync::atomic::Ordering::SeqCst;

pub use std::sync::atomic::Ordering;

use super::guarded::placed;
use crate::target::threads::handle::Handle;
use crate::target::threads::happens_before::Atomic;
use crate::target::threads::model::Model;
use crate::target::threads::operation::Action;
use crate::target::threads::world;

/// Orders what comes before and after it. Under a check that matters to data races alone: all else is ordered as it is.
///
/// # Panics
/// When the ordering is `Relaxed`, as in `std`.
pub fn fence(order: Ordering) {
    assert!(
        order != Ordering::Relaxed,
        "there is no such thing as a relaxed fence"
    );
    let Some(world) = world::current() else {
        real::fence(order);
        return;
    };
    if order != SeqCst {
        world.add_weakly_ordered();
    }
    world.fence(order);
}

/// Keeps the compiler from moving anything across it.
pub fn compiler_fence(order: Ordering) {
    real::compiler_fence(order);
}

/// What is behind an atomic value.
trait Value {
    type Plain: Copy + PartialEq;

    fn get(&self) -> Self::Plain;

    /// Another value instead of the present one.
    fn set_bits(&self, bits: u64);

    fn bits(value: Self::Plain) -> u64;

    /// The value as a person can read it.
    fn show(value: Self::Plain) -> String;
}

/// A plain value as a number.
trait Bits: Sized {
    fn to_bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
}

macro_rules! bits {
    ($($type:ty),*) => {
        $(
            impl Bits for $type {
                fn to_bits(self) -> u64 {
                    self as u64
                }

                fn from_bits(bits: u64) -> Self {
                    bits as Self
                }
            }
        )*
    };
}

bits!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

impl Bits for bool {
    fn to_bits(self) -> u64 {
        self.into()
    }

    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
}

/// Waits for the operation's turn, and does it.
#[track_caller]
fn operate<A: Value, R>(
    handle: &Handle,
    value: &A,
    action: Action,
    orders: &[Ordering],
    operation: impl FnOnce(&A) -> (R, Atomic),
) -> R {
    let Some(world) = world::current() else {
        handle.used_outside();
        return operation(value).0;
    };
    if orders.iter().any(|&order| order != SeqCst) {
        world.add_weakly_ordered();
    }
    world.operate(handle, || Model::Memory, action, Location::caller());
    let value = placed(handle, value);
    if world.is_forced()
        && let Some(forced) = world.forced(A::bits(value.get()))
    {
        value.set_bits(forced);
    }
    let before = value.get();
    let (result, atomic) = operation(value);
    let after = value.get();
    if world.follows_races() {
        world.order(handle, atomic, A::bits(before));
    }
    if action != Action::Load && before == after {
        world.changed_nothing();
    }
    if world.is_told() {
        world.tell(A::show(before), A::show(after));
    }
    result
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
                operate(&self.handle, &self.value, Action::Load, &[order], |value| (value.load(order), Atomic::Load(order)))
            }

            /// Writes it.
            #[track_caller]
            pub fn store(&self, value: $type, order: Ordering) {
                operate(&self.handle, &self.value, Action::Store, &[order], |this| (this.store(value, order), Atomic::Store(order)));
            }

            /// Writes it, and says what it was.
            #[track_caller]
            pub fn swap(&self, value: $type, order: Ordering) -> $type {
                operate(&self.handle, &self.value, Action::Modify, &[order], |this| (this.swap(value, order), Atomic::Modify(order)))
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
                let orders = &[success, failure];
                operate(&self.handle, &self.value, Action::Modify, orders, |value| {
                    let swapped = value.compare_exchange(current, new, success, failure);
                    let atomic = match swapped {
                        Ok(_) => Atomic::Modify(success),
                        Err(_) => Atomic::Load(failure),
                    };
                    (swapped, atomic)
                })
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

            /// The same under a newer name.
            #[track_caller]
            pub fn try_update(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                change: impl FnMut($type) -> Option<$type>,
            ) -> Result<$type, $type> {
                self.fetch_update(set_order, fetch_order, change)
            }

            /// The same where `change` always makes something of it.
            #[track_caller]
            pub fn update(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                mut change: impl FnMut($type) -> $type,
            ) -> $type {
                let mut before = self.load(fetch_order);
                loop {
                    let next = change(before);
                    match self.compare_exchange_weak(before, next, set_order, fetch_order) {
                        Err(now) => before = now,
                        Ok(before) => return before,
                    }
                }
            }

            /// Where the value is. What is done there is not noticed by a check.
            pub fn as_ptr(&self) -> *mut $type {
                placed(&self.handle, &self.value).as_ptr()
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
                Debug::fmt(&self.load(SeqCst), f)
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
                    operate(&self.handle, &self.value, Action::Modify, &[order], |this| (this.$method(value, order), Atomic::Modify(order)))
                }
            )*
        }

        impl Value for real::$name {
            type Plain = $type;

            fn get(&self) -> $type {
                self.load(SeqCst)
            }

            fn set_bits(&self, bits: u64) {
                self.store(<$type>::from_bits(bits), SeqCst);
            }

            fn bits(value: $type) -> u64 {
                value.to_bits()
            }

            fn show(value: $type) -> String {
                value.to_string()
            }
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

impl AtomicBool {
    /// Makes true of false and the other way, and says what it was.
    #[track_caller]
    pub fn fetch_not(&self, order: Ordering) -> bool {
        self.fetch_xor(true, order)
    }
}

impl<T> Value for real::AtomicPtr<T> {
    type Plain = *mut T;

    fn get(&self) -> *mut T {
        self.load(SeqCst)
    }

    fn set_bits(&self, bits: u64) {
        self.store(std::ptr::without_provenance_mut(bits as usize), SeqCst);
    }

    fn bits(value: *mut T) -> u64 {
        value.addr() as u64
    }

    /// Where it points to is different each time.
    fn show(value: *mut T) -> String {
        if value.is_null() { "null" } else { "a pointer" }.to_owned()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_of_an_execution_values_are_the_real_ones() {
        let number = AtomicU32::new(5);
        assert_eq!(number.fetch_add(2, Ordering::Relaxed), 5);
        assert_eq!(number.update(SeqCst, SeqCst, |number| number * 2), 7);
        assert_eq!(number.try_update(SeqCst, SeqCst, |_| None), Err(14));
        assert_eq!(number.compare_exchange(3, 4, SeqCst, SeqCst), Err(14));
        // SAFETY: nobody else has it.
        assert_eq!(unsafe { *number.as_ptr() }, number.into_inner());
        let flag = AtomicBool::new(false);
        assert!(!flag.fetch_not(SeqCst) && flag.fetch_not(SeqCst) && !flag.load(SeqCst));
        let mut target = 3;
        let pointer = AtomicPtr::new(&raw mut target);
        assert_eq!(pointer.swap(std::ptr::null_mut(), SeqCst), &raw mut target);
        assert!(pointer.load(SeqCst).is_null());
    }
}
