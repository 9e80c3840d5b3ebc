//! Ways of bytes, connections and datagrams from those who send them to one who takes them.

use std::collections::VecDeque;

use super::{EventId, GONE, Outcome, RESET};
use crate::target::threads::operation::{Action, Way, Ways};

#[derive(Clone, Debug, Default)]
pub(crate) struct Pipe {
    /// What has been put in and not been taken, a piece for each time.
    pieces: VecDeque<Piece>,
    /// The event since which nothing more is put in.
    shut: Option<EventId>,
    /// Whether nobody takes anything out any more.
    hung_up: bool,
    /// Whether it was broken from outside.
    reset: bool,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    event: EventId,
    size: u32,
}

impl Pipe {
    /// Whether who waits for something need not wait any longer.
    fn is_ready(&self) -> bool {
        !self.pieces.is_empty() || self.shut.is_some() || self.hung_up || self.reset
    }

    pub(super) fn allows(&self, action: Action, way: Way) -> bool {
        match action {
            Action::Take { timed, .. } => match way {
                Ways::COME => self.is_ready(),
                _ => !self.is_ready() && timed,
            },
            _ => true,
        }
    }

    pub(super) fn perform(&mut self, action: Action, way: Way, event: EventId) -> Outcome {
        match action {
            Action::Put(_) if self.reset => Outcome::answer(RESET),
            Action::Put(_) if self.shut.is_some() || self.hung_up => Outcome::answer(GONE),
            Action::Put(size) => {
                self.pieces.push_back(Piece { event, size });
                Outcome::SUCCESS
            }
            Action::Take { .. } if way == Ways::TIMEOUT => Outcome::FAILURE,
            Action::Take { most, .. } | Action::TryTake { most } => self.take(most),
            Action::Shut => {
                self.shut.get_or_insert(event);
                Outcome::SUCCESS
            }
            Action::HangUp => {
                self.hung_up = true;
                self.pieces.clear();
                Outcome::SUCCESS
            }
            _ => {
                self.reset = true;
                self.pieces.clear();
                Outcome::SUCCESS
            }
        }
    }

    /// Takes so much of the first piece at most.
    fn take(&mut self, most: u32) -> Outcome {
        if self.reset {
            return Outcome::answer(RESET);
        }
        let Some(first) = self.pieces.front_mut() else {
            return match (self.shut, self.hung_up) {
                (_, true) => Outcome::answer(GONE),
                (None, false) => Outcome::FAILURE,
                (shut, false) => Outcome::answer(GONE).after(shut),
            };
        };
        let put = first.event;
        first.size = first.size.saturating_sub(most);
        if first.size == 0 {
            self.pieces.pop_front();
        }
        Outcome::SUCCESS.after(Some(put))
    }
}
