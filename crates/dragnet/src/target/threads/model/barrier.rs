//! Barriers.

use super::{EventId, Outcome};
use crate::target::threads::operation::{Action, ThreadId};

#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    parties: usize,
    arrived: Vec<ThreadId>,
    /// Who has been let go and has not left, and by which event.
    released: Vec<(ThreadId, EventId)>,
}

impl Barrier {
    pub(super) fn new(parties: usize) -> Self {
        Self {
            parties,
            arrived: Vec::new(),
            released: Vec::new(),
        }
    }

    /// Whether a thread may leave.
    pub(super) fn has_released(&self, thread: ThreadId) -> bool {
        self.released.iter().any(|&(other, _)| other == thread)
    }

    pub(super) fn perform(&mut self, thread: ThreadId, action: Action, event: EventId) -> Outcome {
        match action {
            Action::Arrive => {
                self.arrived.push(thread);
                let last = self.arrived.len() >= self.parties;
                if last {
                    let arrived = self.arrived.drain(..);
                    self.released.extend(arrived.map(|thread| (thread, event)));
                }
                Outcome::of(last)
            }
            _ => {
                let at = self.released.iter().position(|&(other, _)| other == thread);
                let (_, by) = self
                    .released
                    .swap_remove(at.expect("only who was let go leaves"));
                Outcome::SUCCESS.after(Some(by))
            }
        }
    }
}
