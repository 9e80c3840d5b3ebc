//! What a lock guards.

use std::cell::UnsafeCell;

use super::poison::Poison;
use crate::target::threads::world::{self, Handle};

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
