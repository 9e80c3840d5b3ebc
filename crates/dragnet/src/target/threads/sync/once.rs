//! What is done once.

use std::fmt::{self, Debug};
use std::panic::{Location, RefUnwindSafe, UnwindSafe};

use super::guarded::placed;
use super::poison::Poison;
use crate::target::threads::handle::Handle;
use crate::target::threads::model::{self, Model};
use crate::target::threads::operation::Action;
use crate::target::threads::world::{self, World};

/// Lets one thread do something while others wait for it, until it has been done.
pub(super) struct Gate {
    handle: Handle,
    /// What excludes others outside of any execution.
    real: std::sync::Once,
}

/// What is under way: if it is dropped, it has failed.
struct UnderWay<'a> {
    gate: &'a Gate,
    at: &'static Location<'static>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.gate.operate(Action::Abandon, self.at);
    }
}

impl Gate {
    #[track_caller]
    pub(super) const fn new() -> Self {
        Self {
            handle: Handle::new(),
            real: std::sync::Once::new(),
        }
    }

    /// What the present execution has instead of a thing behind the gate. There must be only one thing.
    pub(super) fn placed<'a, T: ?Sized>(&self, thing: &'a T) -> &'a T {
        placed(&self.handle, thing)
    }

    fn operate(&self, action: Action, at: &'static Location<'static>) -> Option<u32> {
        let model = || Model::Once(model::Once::New);
        world::current()?.operate(&self.handle, model, action, at)
    }

    /// Does `work`, unless it has been done; who comes meanwhile waits. What panics has not been done.
    ///
    /// In an execution that is over nobody waits, and nothing is known: `work` may be done again.
    pub(super) fn pass(&self, at: &'static Location<'static>, work: impl FnOnce()) {
        if world::current().is_none() {
            self.handle.used_outside();
            self.real.call_once_force(|_| work());
            return;
        }
        match self.operate(Action::Enter, at) {
            None => work(),
            Some(0) => {}
            Some(_) => {
                let under_way = UnderWay { gate: self, at };
                work();
                std::mem::forget(under_way);
                self.operate(Action::Complete, at);
            }
        }
    }

    /// Waits until it has been done.
    pub(super) fn wait(&self, at: &'static Location<'static>) {
        if world::current().is_none() {
            self.handle.used_outside();
            self.real.wait_force();
        } else {
            self.operate(Action::AwaitDone, at);
        }
    }

    /// Whether it has been done.
    pub(super) fn is_done(&self, at: &'static Location<'static>) -> bool {
        if world::current().is_none() {
            self.handle.used_outside();
            return self.real.is_completed();
        }
        self.operate(Action::Look, at) == Some(1)
    }
}

/// What is done once, like [`std::sync::Once`].
pub struct Once {
    gate: Gate,
    poison: Poison,
}

/// What is known when something is done once, like [`std::sync::OnceState`].
pub struct OnceState {
    poisoned: bool,
}

impl UnwindSafe for Once {}
impl RefUnwindSafe for Once {}

/// What poisons unless it is forgotten.
struct Poisoning<'a>(&'a Poison);

impl Drop for Poisoning<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl Once {
    /// Something that has not been done.
    #[track_caller]
    #[expect(clippy::new_without_default, reason = "the real one has none either")]
    pub const fn new() -> Self {
        Self {
            gate: Gate::new(),
            poison: Poison::new(),
        }
    }

    /// Does it, unless it has been done; who comes meanwhile waits. Panics if somebody has panicked doing it.
    #[track_caller]
    pub fn call_once<F>(&self, work: F)
    where
        F: FnOnce(),
    {
        self.call(Location::caller(), false, |_| work());
    }

    /// The same, also if somebody has panicked doing it.
    #[track_caller]
    pub fn call_once_force<F>(&self, work: F)
    where
        F: FnOnce(&OnceState),
    {
        self.call(Location::caller(), true, work);
    }

    fn call(&self, at: &'static Location<'static>, force: bool, work: impl FnOnce(&OnceState)) {
        self.gate.pass(at, || {
            if world::current().is_some_and(World::is_over) {
                return;
            }
            let poison = self.gate.placed(&self.poison);
            let poisoned = poison.is_set();
            assert!(
                force || !poisoned,
                "Once instance has previously been poisoned"
            );
            let poisoning = Poisoning(poison);
            work(&OnceState { poisoned });
            std::mem::forget(poisoning);
        });
    }

    /// Waits until it has been done, by somebody else. Panics if somebody has panicked doing it.
    #[track_caller]
    pub fn wait(&self) {
        self.gate.wait(Location::caller());
        assert!(
            !self.gate.placed(&self.poison).is_set(),
            "Once instance has previously been poisoned"
        );
    }

    /// The same, also if somebody has panicked doing it.
    #[track_caller]
    pub fn wait_force(&self) {
        self.gate.wait(Location::caller());
    }

    /// Whether it has been done.
    #[track_caller]
    pub fn is_completed(&self) -> bool {
        self.gate.is_done(Location::caller())
    }
}

impl OnceState {
    /// Whether somebody has panicked doing it.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned
    }
}

impl Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}

impl Debug for OnceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceState")
            .field("poisoned", &self.poisoned)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{self, AssertUnwindSafe};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    #[test]
    fn real_threads_do_it_once() {
        let (once, count) = (Arc::new(Once::new()), Arc::new(AtomicUsize::new(0)));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (once, count) = (Arc::clone(&once), Arc::clone(&count));
                std::thread::spawn(move || {
                    once.call_once(|| {
                        count.fetch_add(1, SeqCst);
                    });
                    assert!(once.is_completed());
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(count.load(SeqCst), 1);
    }

    #[test]
    fn a_panic_poisons_until_it_is_done_by_force() {
        let once = Once::new();
        let panics = || {
            panic::catch_unwind(AssertUnwindSafe(|| {
                once.call_once(|| panic::resume_unwind(Box::new("not done")));
            }))
        };
        assert!(panics().is_err());
        let refused = panic::catch_unwind(AssertUnwindSafe(|| once.call_once(|| {})));
        assert!(refused.is_err() && !once.is_completed());
        let mut poisoned = false;
        once.call_once_force(|state| poisoned = state.is_poisoned());
        assert!(poisoned && once.is_completed());
        once.call_once(|| unreachable!("it has been done"));
    }
}
