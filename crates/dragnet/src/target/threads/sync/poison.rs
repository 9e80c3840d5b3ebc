//! Locks whose holder has panicked.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{LockResult, PoisonError};

use crate::target::threads::world::{self, World};

/// Whether a holder has panicked.
#[derive(Debug)]
pub(super) struct Poison(AtomicBool);

impl Poison {
    pub(super) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Whether a holder has panicked. In an execution that is over nobody has: what threads do on their way out must not
    /// fail.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Relaxed) && !world::current().is_some_and(World::is_over)
    }

    /// Takes note that a holder has panicked, unless it is only on its way out of an execution that is over.
    pub(super) fn set(&self) {
        if !world::current().is_some_and(World::is_over) {
            self.0.store(true, Relaxed);
        }
    }

    pub(super) fn clear(&self) {
        self.0.store(false, Relaxed);
    }

    pub(super) fn judge<T>(&self, value: T) -> LockResult<T> {
        match self.is_set() {
            true => Err(PoisonError::new(value)),
            false => Ok(value),
        }
    }
}
