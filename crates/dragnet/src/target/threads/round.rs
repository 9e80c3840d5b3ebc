//! Whether a thread goes round and round.

use std::panic::Location;

use super::operation::ObjectId;

/// What a thread has seen since it last did something, or saw something new: whether it goes round and round.
#[derive(Default)]
pub(super) struct Round {
    /// What it saw, where, and how often that had changed by then.
    pub(super) seen: Vec<Sight>,
    /// Where it came round first.
    pub(super) head: Option<Sight>,
    /// How often it has come round.
    pub(super) turns: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Sight {
    pub(super) at: &'static Location<'static>,
    pub(super) object: ObjectId,
    pub(super) version: u32,
}

impl Round {
    /// The thread has done something, or seen something new.
    pub(super) fn begin(&mut self) {
        self.seen.clear();
        self.head = None;
        self.turns = 0;
    }

    /// The thread has looked at something.
    pub(super) fn see(&mut self, sight: Sight) {
        let same = |seen: &&Sight| seen.at == sight.at && seen.object == sight.object;
        match self.seen.iter().find(same) {
            Some(seen) if *seen == sight => {
                let head = *self.head.get_or_insert(sight);
                self.turns += u32::from(head == sight);
            }
            Some(_) => {
                self.begin();
                self.seen.push(sight);
            }
            None => self.seen.push(sight),
        }
    }
}
