//! A value that is made when it is first asked for.

use std::cell::UnsafeCell;
use std::fmt::{self, Debug};
use std::ops::Deref;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};

use super::once::Gate;
use crate::target::threads::world;

/// A value that is made when it is first asked for, like [`std::sync::LazyLock`].
pub struct LazyLock<T, F = fn() -> T> {
    gate: Gate,
    state: UnsafeCell<State<T, F>>,
}

enum State<T, F> {
    New(F),
    /// It is being made, or who made it has panicked.
    Gone,
    Made(T),
}

// SAFETY: only who passes the gate writes, when nobody reads yet; from then on the value is only read. What makes it may
// be called on another thread.
unsafe impl<T: Send + Sync, F: Send> Sync for LazyLock<T, F> {}
impl<T: UnwindSafe, F: UnwindSafe> UnwindSafe for LazyLock<T, F> {}
impl<T: RefUnwindSafe + UnwindSafe, F: UnwindSafe> RefUnwindSafe for LazyLock<T, F> {}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// What `first` makes.
    #[track_caller]
    pub const fn new(first: F) -> Self {
        Self {
            gate: Gate::new(),
            state: UnsafeCell::new(State::New(first)),
        }
    }

    /// The value, made if there is none; who comes meanwhile waits. Panics if who made it has.
    #[track_caller]
    pub fn force(this: &Self) -> &T {
        let at = Location::caller();
        let state = this.gate.placed(&this.state).get();
        this.gate.pass(at, || {
            // SAFETY: only one passes the gate at a time, and nobody reads before. No reference stays while `first`
            // runs.
            unsafe {
                if let State::New(_) = &*state
                    && let State::New(first) = state.replace(State::Gone)
                {
                    let value = first();
                    *state = State::Made(value);
                }
            }
        });
        // SAFETY: the gate has been passed, or the execution is over and nobody goes on with a write.
        match (unsafe { &*state }, world::current()) {
            (State::Made(value), _) => value,
            (_, Some(world)) if world.is_over() => world.stay(),
            _ => panic!("LazyLock instance has previously been poisoned"),
        }
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        Self::force(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default)
    }
}

impl<T: Debug, F> Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_made = self.gate.is_done(Location::caller());
        let state = self.gate.placed(&self.state).get();
        let mut shown = f.debug_tuple("LazyLock");
        // SAFETY: nobody writes any more behind the gate once it has been passed.
        match is_made.then(|| unsafe { &*state }) {
            Some(State::Made(value)) => shown.field(value),
            _ => shown.field(&format_args!("<uninit>")),
        };
        shown.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{self, AssertUnwindSafe};
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    #[test]
    fn real_threads_see_what_was_made_once() {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        static WORD: LazyLock<String> = LazyLock::new(|| {
            COUNT.fetch_add(1, SeqCst);
            "made".to_owned()
        });
        let threads = [(); 4].map(|()| std::thread::spawn(|| WORD.len()));
        for thread in threads {
            assert_eq!(thread.join().unwrap(), 4);
        }
        assert_eq!(COUNT.load(SeqCst), 1);
    }

    #[test]
    fn a_panic_poisons() {
        let lock: LazyLock<u8> = LazyLock::new(|| panic::resume_unwind(Box::new("no value")));
        for _ in 0..2 {
            let forced = panic::catch_unwind(AssertUnwindSafe(|| *lock));
            assert!(forced.is_err());
        }
    }
}
