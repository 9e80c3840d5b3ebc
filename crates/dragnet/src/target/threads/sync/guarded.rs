//! What a lock guards.

use std::cell::UnsafeCell;

use super::poison::Poison;
use crate::target::threads::handle::Handle;
use crate::target::threads::world;

/// What a lock that is a static has of its own in every execution.
pub(super) struct Guarded<T: ?Sized> {
    pub(super) poison: Poison,
    pub(super) data: UnsafeCell<T>,
}

impl<T> Guarded<T> {
    pub(super) const fn new(value: T) -> Self {
        Self {
            poison: Poison::new(),
            data: UnsafeCell::new(value),
        }
    }
}

/// The thing itself, or what the present execution has instead of it where it is part of a static.
pub(super) fn placed<'a, T: ?Sized>(handle: &Handle, thing: &'a T) -> &'a T {
    match world::current() {
        None => thing,
        Some(world) => {
            let place = world.place(handle, std::ptr::from_ref(thing).cast_mut());
            // SAFETY: it is the thing itself, or a copy that lives as long as the execution.
            unsafe { &*place }
        }
    }
}

/// What all locks have besides locking, as those of `std` have: a guard is shown as what it guards, and a lock with that as
/// far as nobody holds it.
macro_rules! lock_like_std {
    ($lock:ident, $model:ident, $look:ident, $($guard:ident),+) => {
        impl<T: ?Sized> $lock<T> {
            /// Whether a thread has panicked that held it.
            #[track_caller]
            pub fn is_poisoned(&self) -> bool {
                self.ask(Action::Look, std::panic::Location::caller());
                self.guarded().poison.is_set()
            }

            /// Lets it be as if no thread had panicked.
            #[track_caller]
            pub fn clear_poison(&self) {
                self.ask(Action::Modify, std::panic::Location::caller());
                self.guarded().poison.clear();
            }

            fn ask(&self, action: Action, at: &'static std::panic::Location<'static>) {
                if let Some(world) = world::current() {
                    world.operate(&self.handle, Model::$model, action, at);
                }
            }
        }

        impl<T: ?Sized + std::fmt::Debug> std::fmt::Debug for $lock<T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                use std::sync::TryLockError::{Poisoned, WouldBlock};
                let mut shown = f.debug_struct(stringify!($lock));
                match self.$look() {
                    Ok(guard) => shown.field("data", &&*guard),
                    Err(Poisoned(poisoned)) => shown.field("data", &&**poisoned.get_ref()),
                    Err(WouldBlock) => shown.field("data", &format_args!("<locked>")),
                };
                let poisoned = self.guarded().poison.is_set();
                shown.field("poisoned", &poisoned).finish_non_exhaustive()
            }
        }

        impl<T: Default> Default for $lock<T> {
            #[track_caller]
            fn default() -> Self {
                Self::new(T::default())
            }
        }

        impl<T> From<T> for $lock<T> {
            #[track_caller]
            fn from(value: T) -> Self {
                Self::new(value)
            }
        }

        $(
            impl<T: ?Sized + std::fmt::Debug> std::fmt::Debug for $guard<'_, T> {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    (**self).fmt(f)
                }
            }

            impl<T: ?Sized + std::fmt::Display> std::fmt::Display for $guard<'_, T> {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    (**self).fmt(f)
                }
            }
        )+
    };
}

pub(super) use lock_like_std;
