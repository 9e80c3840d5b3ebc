//! What threads share, with the names and signatures of `std::sync`.

pub mod atomic;
mod condvar;
mod mutex;
mod poison;

pub use condvar::{Condvar, WaitTimeoutResult};
pub use mutex::{Mutex, MutexGuard};
pub use std::sync::{Arc, LockResult, PoisonError, TryLockError, TryLockResult, Weak};
