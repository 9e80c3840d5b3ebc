//! One task that waits, as those know it who can wake it.

use std::panic::Location;
use std::task::{Context, Waker};

use super::poller::Poller;
use crate::sync::Arc;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::SeqCst;

/// A task that waits for something behind a lock, and has left this there.
///
/// Whoever changes what it waits for takes it out, [calls](Self::call) it while it holds the lock, and
/// [wakes](Self::wake) it after. A task that is polled again before it was called need not take the lock: it only looks
/// at this. So a task that waits in a loop, for a while each time, changes nothing, and the loop has an end of schedules.
pub(super) struct Waiter {
    called: AtomicBool,
    waker: Waker,
}

impl Waiter {
    #[track_caller]
    pub(super) fn new(context: &Context<'_>) -> Arc<Self> {
        Poller::note(Location::caller());
        Arc::new(Self {
            called: AtomicBool::new(false),
            waker: context.waker().clone(),
        })
    }

    /// Whether the task that is polled waits with this and has not been called.
    #[track_caller]
    pub(super) fn still_waits(&self, context: &Context<'_>) -> bool {
        let waits = self.waker.will_wake(context.waker()) && !self.called.load(SeqCst);
        if waits {
            Poller::note(Location::caller());
        }
        waits
    }

    /// What it waits for has changed.
    #[track_caller]
    pub(super) fn call(&self) {
        self.called.store(true, SeqCst);
    }

    #[track_caller]
    pub(super) fn wake(&self) {
        self.waker.wake_by_ref();
    }
}

/// Calls the waiter that was left in a slot, if there is one. The caller wakes it when it has let go of the lock.
#[track_caller]
pub(super) fn call(slot: &mut Option<Arc<Waiter>>) -> Option<Arc<Waiter>> {
    let waiter = slot.take()?;
    waiter.call();
    Some(waiter)
}

/// Wakes who has been called.
#[track_caller]
pub(super) fn wake(called: Option<Arc<Waiter>>) {
    if let Some(waiter) = called {
        waiter.wake();
    }
}
