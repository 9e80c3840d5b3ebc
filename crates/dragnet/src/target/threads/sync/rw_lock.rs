//! Many readers or one writer.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use super::guarded::{Guarded, lock_like_std, placed};
use crate::target::threads::handle::Handle;
use crate::target::threads::model::Model;
use crate::target::threads::operation::{Action, Guarding};
use crate::target::threads::world;

/// Many readers or one writer, like [`std::sync::RwLock`].
///
/// Under a check nobody has precedence: who waits to write does not keep others from reading.
pub struct RwLock<T: ?Sized> {
    handle: Handle,
    /// What excludes others outside of any execution.
    real: std::sync::RwLock<()>,
    guarded: Guarded<T>,
}

// SAFETY: whoever has a guard to write is alone with the data, inside and outside of an execution.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: the same, and those who have a guard to read share the data.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}
impl<T: ?Sized> UnwindSafe for RwLock<T> {}
impl<T: ?Sized> RefUnwindSafe for RwLock<T> {}

/// Shared access to what an [`RwLock`] holds, for as long as it is there.
#[must_use = "if unused the RwLock will immediately unlock"]
pub struct RwLockReadGuard<'a, T: ?Sized + 'a> {
    lock: &'a RwLock<T>,
    guarded: &'a Guarded<T>,
    real: Option<std::sync::RwLockReadGuard<'a, ()>>,
    /// Guards stay on their thread.
    _stays: PhantomData<*const ()>,
}

/// Access to what an [`RwLock`] holds that nobody else has, for as long as it is there.
#[must_use = "if unused the RwLock will immediately unlock"]
pub struct RwLockWriteGuard<'a, T: ?Sized + 'a> {
    lock: &'a RwLock<T>,
    guarded: &'a Guarded<T>,
    was_panicking: bool,
    /// What has been done to what it guards.
    guarding: Guarding,
    real: Option<std::sync::RwLockWriteGuard<'a, ()>>,
    /// Guards stay on their thread.
    _stays: PhantomData<*const ()>,
}

// SAFETY: it gives out nothing but what it guards.
unsafe impl<T: ?Sized + Sync> Sync for RwLockReadGuard<'_, T> {}
// SAFETY: the same.
unsafe impl<T: ?Sized + Sync> Sync for RwLockWriteGuard<'_, T> {}

impl<T> RwLock<T> {
    /// An unlocked lock.
    #[track_caller]
    pub const fn new(value: T) -> Self {
        Self {
            handle: Handle::new(),
            real: std::sync::RwLock::new(()),
            guarded: Guarded::new(value),
        }
    }

    /// What it held.
    pub fn into_inner(self) -> LockResult<T> {
        let Guarded { poison, data } = self.guarded;
        poison.judge(data.into_inner())
    }
}

impl<T: ?Sized> RwLock<T> {
    fn guarded(&self) -> &Guarded<T> {
        placed(&self.handle, &self.guarded)
    }

    fn read_guard<'a>(
        &'a self,
        real: Option<std::sync::RwLockReadGuard<'a, ()>>,
    ) -> RwLockReadGuard<'a, T> {
        RwLockReadGuard {
            lock: self,
            guarded: self.guarded(),
            real,
            _stays: PhantomData,
        }
    }

    fn write_guard<'a>(
        &'a self,
        real: Option<std::sync::RwLockWriteGuard<'a, ()>>,
    ) -> RwLockWriteGuard<'a, T> {
        RwLockWriteGuard {
            lock: self,
            guarded: self.guarded(),
            was_panicking: world::is_panicking(),
            guarding: Guarding::Looked,
            real,
            _stays: PhantomData,
        }
    }

    /// Waits until nobody writes.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let guard = match world::current() {
            None => {
                self.handle.used_outside();
                let real = self.real.read().unwrap_or_else(PoisonError::into_inner);
                self.read_guard(Some(real))
            }
            Some(world) => {
                let at = Location::caller();
                world.operate(&self.handle, Model::rw_lock, Action::Read, at);
                self.read_guard(None)
            }
        };
        guard.guarded.poison.judge(guard)
    }

    /// Waits until nobody reads and nobody else writes.
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let guard = match world::current() {
            None => {
                self.handle.used_outside();
                let real = self.real.write().unwrap_or_else(PoisonError::into_inner);
                self.write_guard(Some(real))
            }
            Some(world) => {
                let at = Location::caller();
                world.operate(&self.handle, Model::rw_lock, Action::Write, at);
                self.write_guard(None)
            }
        };
        guard.guarded.poison.judge(guard)
    }

    /// Takes it to read if nobody writes.
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let guard = match world::current() {
            None => {
                self.handle.used_outside();
                let real = unless_blocked(self.real.try_read())?;
                self.read_guard(Some(real))
            }
            Some(world) => {
                let at = Location::caller();
                match world.operate(&self.handle, Model::rw_lock, Action::TryRead, at) {
                    Some(0) => return Err(TryLockError::WouldBlock),
                    _ => self.read_guard(None),
                }
            }
        };
        Ok(guard.guarded.poison.judge(guard)?)
    }

    /// Takes it to write if nobody reads and nobody else writes.
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let guard = match world::current() {
            None => {
                self.handle.used_outside();
                let real = unless_blocked(self.real.try_write())?;
                self.write_guard(Some(real))
            }
            Some(world) => {
                let at = Location::caller();
                match world.operate(&self.handle, Model::rw_lock, Action::TryWrite, at) {
                    Some(0) => return Err(TryLockError::WouldBlock),
                    _ => self.write_guard(None),
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

/// A real guard, unless it is not to be had: only what is ours knows of poison.
fn unless_blocked<G, T>(tried: TryLockResult<G>) -> Result<G, TryLockError<T>> {
    match tried {
        Ok(real) => Ok(real),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Goes on as a reader, without letting another writer come between.
    #[track_caller]
    pub fn downgrade(mut guard: Self) -> RwLockReadGuard<'a, T> {
        let lock = guard.lock;
        if let Some(real) = guard.real.take() {
            // Nothing is left for the guard to let go but the poison, of which there is none.
            std::mem::forget(guard);
            return lock.read_guard(Some(std::sync::RwLockWriteGuard::downgrade(real)));
        }
        // The lock is a reader's from the operation on, and a writer's if its turn does not come.
        if let Some(world) = world::current() {
            let at = Location::caller();
            let downgrade = Action::Downgrade(guard.guarding);
            world.operate(&lock.handle, Model::rw_lock, downgrade, at);
        }
        std::mem::forget(guard);
        lock.read_guard(None)
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: nobody writes while somebody has a guard to read.
        unsafe { &*self.guarded.data.get() }
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: who has the guard is alone with the data.
        unsafe { &*self.guarded.data.get() }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guarding = Guarding::Changed;
        // SAFETY: who has the guard is alone with the data.
        unsafe { &mut *self.guarded.data.get() }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    #[track_caller]
    fn drop(&mut self) {
        if self.real.is_none()
            && let Some(world) = world::current()
        {
            let at = Location::caller();
            world.operate(&self.lock.handle, Model::rw_lock, Action::ReadUnlock, at);
        }
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    #[track_caller]
    fn drop(&mut self) {
        let panics = !self.was_panicking && world::is_panicking();
        if self.real.is_none()
            && let Some(world) = world::current()
        {
            let at = Location::caller();
            let unlock = Action::WriteUnlock(self.guarding.or_panicked(panics));
            world.operate(&self.lock.handle, Model::rw_lock, unlock, at);
        }
        // Others see it when they see that the lock is free.
        if panics {
            self.guarded.poison.set();
        }
    }
}

lock_like_std!(RwLock, rw_lock, try_read, RwLockReadGuard, RwLockWriteGuard);

#[cfg(test)]
mod tests {
    use std::panic::{self, AssertUnwindSafe};
    use std::sync::Arc;

    use super::*;

    #[test]
    fn readers_share_and_a_writer_is_alone() {
        let lock = RwLock::new(1);
        let one = lock.read().unwrap();
        let two = lock.try_read().unwrap();
        assert_eq!(*one + *two, 2);
        assert!(matches!(lock.try_write(), Err(TryLockError::WouldBlock)));
        drop((one, two));
        let mut writer = lock.write().unwrap();
        *writer = 5;
        assert!(matches!(lock.try_read(), Err(TryLockError::WouldBlock)));
        let reader = RwLockWriteGuard::downgrade(writer);
        assert_eq!(*lock.try_read().unwrap(), *reader);
        drop(reader);
        assert_eq!(lock.into_inner().unwrap(), 5);
    }

    #[test]
    fn a_writer_that_panics_poisons_and_a_reader_does_not() {
        let mut lock = RwLock::new(1);
        let read = panic::catch_unwind(AssertUnwindSafe(|| {
            let _guard = lock.read().unwrap();
            panic::resume_unwind(Box::new("a reader"));
        }));
        assert!(read.is_err() && !lock.is_poisoned());
        let written = panic::catch_unwind(AssertUnwindSafe(|| {
            *lock.write().unwrap() = 2;
            let _guard = lock.write().unwrap();
            panic::resume_unwind(Box::new("a writer"));
        }));
        assert!(written.is_err() && lock.is_poisoned());
        assert_eq!(*lock.read().unwrap_err().into_inner(), 2);
        assert!(matches!(lock.try_write(), Err(TryLockError::Poisoned(_))));
        assert!(lock.get_mut().is_err());
        lock.clear_poison();
        assert_eq!(*lock.read().unwrap(), 2);
    }

    #[test]
    fn real_threads_do_not_lose_each_others_writes() {
        let lock = Arc::new(RwLock::new(0));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let lock = Arc::clone(&lock);
                std::thread::spawn(move || {
                    for _ in 0..100 {
                        *lock.write().unwrap() += 1;
                        assert!(*lock.read().unwrap() > 0);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*lock.read().unwrap(), 400);
    }
}
