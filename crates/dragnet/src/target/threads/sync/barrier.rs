//! Barriers.

use std::fmt::{self, Debug};
use std::panic::Location;

use crate::target::threads::handle::Handle;
use crate::target::threads::model::Model;
use crate::target::threads::operation::Action;
use crate::target::threads::world;

/// Where threads wait until so many of them have come, like [`std::sync::Barrier`].
pub struct Barrier {
    handle: Handle,
    real: std::sync::Barrier,
    parties: usize,
}

/// Whether a thread was the last to come to a [`Barrier`], like [`std::sync::BarrierWaitResult`].
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// Whether it was. Of all who are let go at once one was.
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl Barrier {
    /// A barrier that lets so many threads go at once.
    #[track_caller]
    pub const fn new(parties: usize) -> Self {
        Self {
            handle: Handle::new(),
            real: std::sync::Barrier::new(parties),
            parties,
        }
    }

    /// Waits until all others have come.
    #[track_caller]
    pub fn wait(&self) -> BarrierWaitResult {
        let Some(world) = world::current() else {
            self.handle.used_outside();
            return BarrierWaitResult(self.real.wait().is_leader());
        };
        let at = Location::caller();
        let operate = |action| {
            let model = || Model::barrier(self.parties);
            world.operate(&self.handle, model, action, at)
        };
        let leads = operate(Action::Arrive) == Some(1);
        operate(Action::Depart);
        BarrierWaitResult(leads)
    }
}

impl Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}

impl Debug for BarrierWaitResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWaitResult")
            .field("is_leader", &self.0)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn one_of_the_real_threads_that_are_let_go_leads() {
        let barrier = Arc::new(Barrier::new(3));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let barrier = Arc::clone(&barrier);
                std::thread::spawn(move || [(); 2].map(|()| barrier.wait().is_leader()))
            })
            .collect();
        let led: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        for round in 0..2 {
            assert_eq!(led.iter().filter(|led| led[round]).count(), 1);
        }
    }

    #[test]
    fn who_is_alone_leads() {
        assert!(Barrier::new(1).wait().is_leader());
        assert!(Barrier::new(0).wait().is_leader());
    }
}
