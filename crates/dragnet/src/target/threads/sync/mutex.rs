//! Mutual exclusion.

use std::ops::{Deref, DerefMut};
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use super::guarded::{Guarded, lock_like_std, placed};
use crate::target::threads::handle::Handle;
use crate::target::threads::model::Model;
use crate::target::threads::operation::{Action, Guarding};
use crate::target::threads::world;

/// Mutual exclusion, like [`std::sync::Mutex`].
pub struct Mutex<T: ?Sized> {
    handle: Handle,
    /// What excludes others outside of any execution.
    real: std::sync::Mutex<()>,
    guarded: Guarded<T>,
}

// SAFETY: whoever has a guard is alone with the data, inside and outside of an execution.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: the same.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
impl<T: ?Sized> UnwindSafe for Mutex<T> {}
impl<T: ?Sized> RefUnwindSafe for Mutex<T> {}

/// Access to what a [`Mutex`] holds, for as long as it is there.
#[must_use = "if unused the Mutex will immediately unlock"]
pub struct MutexGuard<'a, T: ?Sized + 'a> {
    mutex: &'a Mutex<T>,
    guarded: &'a Guarded<T>,
    was_panicking: bool,
    /// What has been done to what it guards.
    guarding: Guarding,
    real: Option<std::sync::MutexGuard<'a, ()>>,
    /// Guards stay on their thread.
    _stays: std::marker::PhantomData<*const ()>,
}

// SAFETY: it gives out nothing but what it guards.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    /// An unlocked mutex.
    #[track_caller]
    pub const fn new(value: T) -> Self {
        Self {
            handle: Handle::new(),
            real: std::sync::Mutex::new(()),
            guarded: Guarded::new(value),
        }
    }

    /// What it held.
    pub fn into_inner(self) -> LockResult<T> {
        let Guarded { poison, data } = self.guarded;
        poison.judge(data.into_inner())
    }
}

impl<T: ?Sized> Mutex<T> {
    fn guarded(&self) -> &Guarded<T> {
        placed(&self.handle, &self.guarded)
    }

    fn guard<'a>(&'a self, real: Option<std::sync::MutexGuard<'a, ()>>) -> MutexGuard<'a, T> {
        MutexGuard {
            mutex: self,
            guarded: self.guarded(),
            was_panicking: world::is_panicking(),
            guarding: Guarding::Looked,
            real,
            _stays: std::marker::PhantomData,
        }
    }

    /// Waits until nobody else holds it.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.lock_at(Location::caller())
    }

    /// The same for somebody who is there in the source.
    pub(super) fn lock_at(&self, at: &'static Location<'static>) -> LockResult<MutexGuard<'_, T>> {
        let guard = match world::current() {
            None => {
                self.handle.used_outside();
                let real = self.real.lock().unwrap_or_else(PoisonError::into_inner);
                self.guard(Some(real))
            }
            Some(world) => {
                world.operate(&self.handle, Model::mutex, Action::Lock, at);
                self.guard(None)
            }
        };
        guard.guarded.poison.judge(guard)
    }

    /// Takes it if nobody else holds it.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let guard = match world::current() {
            None => {
                self.handle.used_outside();
                let real = match self.real.try_lock() {
                    Ok(real) => real,
                    Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                    Err(TryLockError::WouldBlock) => return Err(TryLockError::WouldBlock),
                };
                self.guard(Some(real))
            }
            Some(world) => {
                let at = Location::caller();
                match world.operate(&self.handle, Model::mutex, Action::TryLock, at) {
                    Some(0) => return Err(TryLockError::WouldBlock),
                    _ => self.guard(None),
                }
            }
        };
        Ok(guard.guarded.poison.judge(guard)?)
    }

    /// Access to what it holds, which nobody else has.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        let Guarded { poison, data } = &mut self.guarded;
        poison.judge(data.get_mut())
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    pub(super) fn mutex(&self) -> &'a Mutex<T> {
        self.mutex
    }

    /// What excludes others outside of any execution, which is given back later.
    pub(super) fn real(&mut self) -> &mut Option<std::sync::MutexGuard<'a, ()>> {
        &mut self.real
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: who has the guard is alone with the data.
        unsafe { &*self.guarded.data.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guarding = Guarding::Changed;
        self.judged()
    }
}

impl<T: ?Sized> MutexGuard<'_, T> {
    /// What it guards may have been changed.
    pub(super) fn note_change(&mut self) {
        self.guarding = Guarding::Changed;
    }

    /// What it guards, for who only wants to know whether to wait.
    pub(super) fn judged(&mut self) -> &mut T {
        // SAFETY: who has the guard is alone with the data.
        unsafe { &mut *self.guarded.data.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[track_caller]
    fn drop(&mut self) {
        let panics = !self.was_panicking && world::is_panicking();
        if self.real.is_none()
            && let Some(world) = world::current()
        {
            let at = Location::caller();
            let unlock = Action::Unlock(self.guarding.or_panicked(panics));
            world.operate(&self.mutex.handle, Model::mutex, unlock, at);
        }
        // Others see it when they see that the lock is free.
        if panics {
            self.guarded.poison.set();
        }
    }
}

lock_like_std!(Mutex, mutex, try_lock, MutexGuard);
