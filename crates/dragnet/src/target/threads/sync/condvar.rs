//! Condition variables.

use std::panic::Location;
use std::sync::{LockResult, PoisonError};
use std::time::Duration;

use super::mutex::MutexGuard;
use crate::target::threads::handle::Handle;
use crate::target::threads::model::Model;
use crate::target::threads::operation::{Action, Way, Ways};
use crate::target::threads::world::{self, World};

/// A place where threads wait for each other, like [`std::sync::Condvar`].
///
/// Under a check anybody who waits may be the one that [`notify_one`](Condvar::notify_one) wakes, and threads wake up for
/// no reason as often as the check allows.
#[derive(Debug)]
pub struct Condvar {
    handle: Handle,
    real: std::sync::Condvar,
}

/// Whether a wait ended because the time was over, like [`std::sync::WaitTimeoutResult`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the time was over.
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Default for Condvar {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl Condvar {
    /// A condition variable at which nobody waits.
    #[track_caller]
    pub const fn new() -> Self {
        Self {
            handle: Handle::new(),
            real: std::sync::Condvar::new(),
        }
    }

    fn operate(&self, world: &World, action: Action, at: &'static Location<'static>) -> Way {
        let model = || Model::condvar(world.spurious_wakeups());
        world
            .operate(&self.handle, model, action, at)
            .unwrap_or(Ways::COME)
    }

    /// Lets the mutex go, and waits until somebody notifies this thread.
    #[track_caller]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.wait_for(guard, None, Location::caller())
            .map(|(guard, _)| guard)
            .map_err(|poisoned| PoisonError::new(poisoned.into_inner().0))
    }

    fn wait_for<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        time: Option<Duration>,
        at: &'static Location<'static>,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let mutex = guard.mutex();
        let Some(world) = world::current() else {
            self.handle.used_outside();
            let real = guard.real().take().expect("it was locked outside");
            let (real, timed_out) = match time {
                None => (
                    self.real.wait(real).unwrap_or_else(PoisonError::into_inner),
                    false,
                ),
                Some(time) => {
                    let waited = self.real.wait_timeout(real, time);
                    let (real, result) = waited.unwrap_or_else(PoisonError::into_inner);
                    (real, result.timed_out())
                }
            };
            *guard.real() = Some(real);
            let poisoned = mutex.is_poisoned();
            let waited = (guard, WaitTimeoutResult(timed_out));
            return match poisoned {
                true => Err(PoisonError::new(waited)),
                false => Ok(waited),
            };
        };
        // To line up before the mutex is let go is as good as both at once: nobody else can tell.
        let spurious = world.spurious_wakeups() > 0;
        self.operate(world, Action::Wait { spurious }, at);
        drop(guard);
        let wake = Action::Wake {
            timed: time.is_some(),
        };
        let way = self.operate(world, wake, at);
        let timed_out = way == Ways::TIMEOUT;
        if let (true, Some(time)) = (timed_out, time) {
            world.pass(time);
        }
        let result = WaitTimeoutResult(timed_out);
        match mutex.lock_at(at) {
            Ok(guard) => Ok((guard, result)),
            Err(poisoned) => Err(PoisonError::new((poisoned.into_inner(), result))),
        }
    }

    /// Waits as long as `condition` is true.
    #[track_caller]
    pub fn wait_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: F,
    ) -> LockResult<MutexGuard<'a, T>>
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(guard.judged()) {
            guard = self.wait(guard)?;
        }
        guard.note_change();
        Ok(guard)
    }

    /// Waits until somebody notifies this thread, or the time is over.
    #[track_caller]
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        self.wait_for(guard, Some(time), Location::caller())
    }

    /// Waits as long as `condition` is true, or until the time is over.
    #[track_caller]
    pub fn wait_timeout_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        time: Duration,
        mut condition: F,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)>
    where
        F: FnMut(&mut T) -> bool,
    {
        loop {
            if !condition(guard.judged()) {
                guard.note_change();
                return Ok((guard, WaitTimeoutResult(false)));
            }
            let (waited, result) = self.wait_timeout(guard, time)?;
            guard = waited;
            if result.timed_out() {
                let still = condition(guard.judged());
                return Ok((guard, WaitTimeoutResult(still)));
            }
        }
    }

    /// Wakes one of those who wait, if anybody does.
    #[track_caller]
    pub fn notify_one(&self) {
        match world::current() {
            None => self.real.notify_one(),
            Some(world) => {
                self.operate(world, Action::NotifyOne, Location::caller());
            }
        }
    }

    /// Wakes all who wait.
    #[track_caller]
    pub fn notify_all(&self) {
        match world::current() {
            None => self.real.notify_all(),
            Some(world) => {
                self.operate(world, Action::NotifyAll, Location::caller());
            }
        }
    }
}
