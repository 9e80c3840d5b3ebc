//! Whether a thread goes round and round.

use std::panic::Location;

use super::operation::ObjectId;

/// How many times as often a thread goes round that does not let others go first.
pub(super) const WITHOUT_STEPPING_ASIDE: u32 = 8;

/// What a thread has seen since it last did something, or saw something new: whether it goes round and round.
#[derive(Default)]
pub(super) struct Round {
    /// What it saw, where, and how often that had changed by then.
    pub(super) seen: Vec<Sight>,
    /// Where it came round first.
    pub(super) head: Option<Sight>,
    /// How often it has come round.
    pub(super) turns: u32,
    /// Whether it has let others go first, or time pass, since then.
    pub(super) steps_aside: bool,
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
        self.steps_aside = false;
    }

    /// Whether it has come round so often, for a thread that lets others go first each time. One that does not may be about
    /// to end, and has more turns.
    pub(super) fn has_turned(&self, turns: u32) -> bool {
        let patience = match self.steps_aside {
            true => 1,
            false => WITHOUT_STEPPING_ASIDE,
        };
        self.turns >= turns.saturating_mul(patience)
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
