//! Condition variables.

use super::{EventId, Outcome};
use crate::target::threads::operation::{Action, ThreadId, Way, Ways};

#[derive(Clone, Debug, Default)]
pub(crate) struct Condvar {
    waiting: Vec<ThreadId>,
    /// Who has been notified and has not gone on, and by which event.
    notified: Vec<(ThreadId, EventId)>,
    /// How often somebody may still wake up for no reason.
    spurious: u32,
}

impl Condvar {
    pub(super) fn new(spurious: u32) -> Self {
        Self {
            spurious,
            ..Self::default()
        }
    }

    pub(super) fn allows(&self, thread: ThreadId, action: Action, way: Way) -> bool {
        let Action::Wake { timed } = action else {
            return true;
        };
        let notified = self.notified.iter().any(|&(other, _)| other == thread);
        match way {
            Ways::COME => notified,
            Ways::TIMEOUT => !notified && timed,
            _ => !notified && self.spurious > 0,
        }
    }

    /// Who waits.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = ThreadId> {
        self.waiting.iter().copied()
    }

    pub(super) fn perform(
        &mut self,
        thread: ThreadId,
        action: Action,
        way: Way,
        event: EventId,
    ) -> Outcome {
        match action {
            Action::Wait => {
                self.waiting.push(thread);
                Outcome::SUCCESS
            }
            Action::NotifyOne => {
                let waiter = self.waiting.iter().position(|waiter| waiter.0 == way);
                if let Some(at) = waiter {
                    let waiter = self.waiting.swap_remove(at);
                    self.notified.push((waiter, event));
                }
                Outcome::of(waiter.is_some())
            }
            Action::NotifyAll => {
                let notified = self.waiting.len();
                let waiting = self.waiting.drain(..);
                self.notified.extend(waiting.map(|waiter| (waiter, event)));
                Outcome::of(notified > 0)
            }
            _ if way == Ways::COME => {
                let at = self.notified.iter().position(|&(other, _)| other == thread);
                let (_, by) = self
                    .notified
                    .swap_remove(at.expect("only who was notified wakes"));
                Outcome::answer(way).after(Some(by))
            }
            _ => {
                self.waiting.retain(|&waiter| waiter != thread);
                if way == Ways::SPURIOUS {
                    self.spurious -= 1;
                }
                Outcome::answer(way)
            }
        }
    }
}
