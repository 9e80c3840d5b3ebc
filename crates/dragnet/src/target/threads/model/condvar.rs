//! Condition variables.

use super::{EventId, Outcome};
use crate::target::threads::operation::{Action, ThreadId, Way, Ways};

#[derive(Clone, Debug, Default)]
pub(crate) struct Condvar {
    waiting: Vec<ThreadId>,
    /// Who has been notified and has not gone on, and by which event.
    notified: Vec<(ThreadId, EventId)>,
    /// How many spurious wake-ups are left,
    spurious: u32,
    /// and who of those that wait may have one.
    restless: Vec<ThreadId>,
}

impl Condvar {
    pub(super) fn new(spurious: u32) -> Self {
        Self {
            spurious,
            ..Self::default()
        }
    }

    pub(super) fn allows(&self, thread: ThreadId, action: Action, way: Way) -> bool {
        let timed = match action {
            Action::Wake { timed } => timed,
            Action::Wait { .. } => return way == Ways::COME || self.spurious > 0,
            _ => return true,
        };
        let notified = self.notified.iter().any(|&(other, _)| other == thread);
        match way {
            Ways::COME => notified,
            Ways::TIMEOUT => !notified && timed,
            _ => !notified && self.restless.contains(&thread),
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
            Action::Wait { .. } => {
                self.waiting.push(thread);
                if way == Ways::SPURIOUS {
                    self.spurious -= 1;
                    self.restless.push(thread);
                }
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
            _ => {
                self.waiting.retain(|&waiter| waiter != thread);
                self.restless.retain(|&other| other != thread);
                let notified = self.notified.iter().position(|&(other, _)| other == thread);
                // There is none in an execution that repeats another one without the notification.
                let by = notified
                    .filter(|_| way == Ways::COME)
                    .map(|at| self.notified.swap_remove(at).1);
                Outcome::answer(way).after(by)
            }
        }
    }
}
