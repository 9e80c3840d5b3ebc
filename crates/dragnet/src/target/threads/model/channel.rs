//! Channels.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::{EventId, GONE, Outcome};
use crate::target::threads::operation::{Action, ThreadId, Way, Ways};

#[derive(Clone, Debug)]
pub(crate) struct Channel {
    /// How many messages it has room for.
    room: Option<usize>,
    /// What has been sent and not been received.
    sent: VecDeque<Sent>,
    /// The events that have received, as far as a sender may depend on them.
    received: VecDeque<EventId>,
    taken: u64,
    offered: u64,
    /// Whose message has been taken out of their hands, and by which event.
    handed: Vec<(ThreadId, EventId)>,
    /// Whether the receiver waits for a message, where a channel has no room of its own.
    awaited: bool,
    /// How many senders there have ever been, in all copies of the model: a sender is made without an event, so a copy
    /// that goes another way from an earlier event on would not hear of it. That a copy counts senders which have not
    /// been made there does no harm: they are made of others, which are not gone then.
    opened: Rc<Cell<usize>>,
    /// How many of them are gone.
    closed: usize,
    /// The event with which the receiver has gone.
    hung_up: Option<EventId>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    event: EventId,
    sender: ThreadId,
    /// Whether the sender waits until it has been taken.
    waits: bool,
}

impl Channel {
    pub(super) fn new(room: Option<usize>) -> Self {
        Self {
            room,
            sent: VecDeque::new(),
            received: VecDeque::new(),
            taken: 0,
            offered: 0,
            handed: Vec::new(),
            awaited: false,
            opened: Rc::new(Cell::new(1)),
            closed: 0,
            hung_up: None,
        }
    }

    /// A sender more.
    pub(super) fn add_sender(&self) {
        self.opened.set(self.opened.get() + 1);
    }

    pub(super) fn allows(&self, thread: ThreadId, action: Action, way: Way) -> bool {
        match action {
            Action::Send => self.has_room() || self.hung_up.is_some(),
            Action::Handed => {
                self.hung_up.is_some() || self.handed.iter().any(|&(other, _)| other == thread)
            }
            Action::Receive { timed } => {
                let come = !self.sent.is_empty() || self.is_closed();
                match way {
                    Ways::COME => come,
                    _ => !come && timed,
                }
            }
            _ => true,
        }
    }

    /// Whether there is room for a message. Where a channel has none of its own, messages wait in the hands of their
    /// senders, so there always is.
    fn has_room(&self) -> bool {
        self.room
            .is_none_or(|room| room == 0 || self.sent.len() < room)
    }

    /// Whether a message can be sent by who does not wait. Where a channel has no room of its own, the receiver must be
    /// waiting, and for nothing that has come already.
    fn has_room_at_once(&self) -> bool {
        match self.room {
            Some(0) => self.awaited && self.sent.is_empty(),
            _ => self.has_room(),
        }
    }

    /// Whether all senders are gone.
    fn is_closed(&self) -> bool {
        self.closed == self.opened.get()
    }

    pub(super) fn perform(
        &mut self,
        thread: ThreadId,
        action: Action,
        way: Way,
        event: EventId,
    ) -> Outcome {
        match action {
            Action::Send | Action::TrySend => {
                if self.hung_up.is_some() {
                    return Outcome::answer(GONE);
                }
                if action == Action::TrySend && !self.has_room_at_once() {
                    return Outcome::FAILURE;
                }
                self.sent.push_back(Sent {
                    event,
                    sender: thread,
                    waits: action == Action::Send && self.room == Some(0),
                });
                self.offered += 1;
                Outcome::SUCCESS.after(self.room_made_by())
            }
            Action::Await => {
                self.awaited = true;
                Outcome::SUCCESS
            }
            Action::Receive { .. } | Action::TryReceive => {
                self.awaited = false;
                if way == Ways::TIMEOUT {
                    return Outcome::FAILURE;
                }
                self.receive(event)
            }
            Action::Handed => {
                let at = self.handed.iter().position(|&(other, _)| other == thread);
                match at.map(|at| self.handed.swap_remove(at)) {
                    Some((_, taken)) => Outcome::SUCCESS.after(Some(taken)),
                    None => Outcome::answer(GONE).after(self.hung_up),
                }
            }
            Action::Close => {
                self.closed += 1;
                Outcome::SUCCESS
            }
            _ => {
                self.hung_up = Some(event);
                self.sent.clear();
                Outcome::SUCCESS
            }
        }
    }

    fn receive(&mut self, event: EventId) -> Outcome {
        match self.sent.pop_front() {
            Some(sent) => {
                self.taken += 1;
                match self.room {
                    Some(0) if sent.waits => self.handed.push((sent.sender, event)),
                    None | Some(0) => {}
                    Some(_) => self.received.push_back(event),
                }
                Outcome::SUCCESS.after(Some(sent.event))
            }
            None if self.is_closed() => Outcome {
                after_closing: true,
                ..Outcome::answer(GONE)
            },
            None => Outcome::FAILURE,
        }
    }

    /// The receipt that has made room for the last message.
    fn room_made_by(&mut self) -> Option<EventId> {
        let room = self.room.filter(|&room| room > 0)? as u64;
        let which = self.offered.checked_sub(room)?.checked_sub(1)?;
        let first = self.taken - self.received.len() as u64;
        let at = which.checked_sub(first)? as usize;
        let event = self.received.get(at).copied()?;
        self.received.drain(..at);
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_may_have_room_for_all_that_can_be_counted() {
        for room in [usize::MAX - 1, usize::MAX] {
            let mut channel = Channel::new(Some(room));
            let sender = ThreadId(0);
            for event in 0..3 {
                assert!(channel.allows(sender, Action::Send, Ways::COME));
                let sent = channel.perform(sender, Action::Send, Ways::COME, 2 * event);
                // Nobody had to make room for it.
                assert_eq!(sent, Outcome::SUCCESS);
                let receive = Action::Receive { timed: false };
                let received = channel.perform(ThreadId(1), receive, Ways::COME, 2 * event + 1);
                assert_eq!(received, Outcome::SUCCESS.after(Some(2 * event)));
            }
        }
    }

    #[test]
    fn a_message_comes_after_the_receipt_that_has_made_room_for_it() {
        let mut channel = Channel::new(Some(1));
        let send = |channel: &mut Channel, event| {
            channel.perform(ThreadId(0), Action::Send, Ways::COME, event)
        };
        assert_eq!(send(&mut channel, 0), Outcome::SUCCESS);
        assert!(!channel.allows(ThreadId(0), Action::Send, Ways::COME));
        channel.perform(ThreadId(1), Action::TryReceive, Ways::COME, 1);
        assert_eq!(send(&mut channel, 2), Outcome::SUCCESS.after(Some(1)));
    }
}
