//! Whether a thread goes round and round.

use std::panic::Location;

use super::operation::Operation;

/// How many times as often a thread goes round that does not let others go first.
pub(super) const WITHOUT_STEPPING_ASIDE: u32 = 8;

/// What there is to see of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aspect {
    /// What it holds or says. Who comes and goes leaves it as it was.
    Content,
    /// Anything about it: also who holds it now, or waits there.
    Whole,
}

/// What an operation was for its object, and to its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    /// What the thread has seen, if it has done nothing but look.
    pub(crate) sees: Option<Aspect>,
    /// What may have changed. Whoever changes the content changes the whole.
    pub(crate) changes: Option<Aspect>,
}

impl Effect {
    /// The thread has done something, and not only looked.
    pub(crate) const CHANGE: Self = Self {
        sees: None,
        changes: Some(Aspect::Content),
    };

    /// The thread comes or goes, and nothing else.
    pub(crate) const PASS: Self = Self {
        sees: None,
        changes: Some(Aspect::Whole),
    };

    pub(crate) const fn look(sees: Aspect) -> Self {
        Self {
            sees: Some(sees),
            changes: None,
        }
    }

    /// Nobody can notice it, and the thread sees nothing by it.
    pub(crate) const NOTHING: Self = Self {
        sees: None,
        changes: None,
    };

    /// The thread comes or goes, and sees the content by that.
    pub(crate) const PASS_AND_LOOK: Self = Self {
        sees: Some(Aspect::Content),
        changes: Some(Aspect::Whole),
    };

    /// Whether something that was seen may be different now.
    pub(crate) fn alters(self, seen: Aspect) -> bool {
        match self.changes {
            None => false,
            Some(Aspect::Content) => true,
            Some(Aspect::Whole) => seen == Aspect::Whole,
        }
    }
}

/// How often each aspect of an object may have changed.
#[derive(Clone, Copy, Default)]
pub(super) struct Versions {
    content: u32,
    whole: u32,
}

impl Versions {
    pub(super) fn of(self, aspect: Aspect) -> u32 {
        match aspect {
            Aspect::Content => self.content,
            Aspect::Whole => self.whole,
        }
    }

    pub(super) fn count(&mut self, effect: Effect) {
        self.content += u32::from(effect.alters(Aspect::Content));
        self.whole += u32::from(effect.alters(Aspect::Whole));
    }

    /// Undoes the same.
    pub(super) fn discount(&mut self, effect: Effect) {
        self.content -= u32::from(effect.alters(Aspect::Content));
        self.whole -= u32::from(effect.alters(Aspect::Whole));
    }
}

/// What a thread has seen since it last did something, or saw something new: whether it goes round and round.
#[derive(Default)]
pub(super) struct Round {
    /// What it saw, where, and how often that had changed by then.
    pub(super) seen: Vec<Sight>,
    /// Where it came round first.
    head: Option<Sight>,
    /// What has come again since it last came round there.
    stray: Option<Sight>,
    /// How often it has come round.
    pub(super) turns: u32,
    /// Whether it has gone on only because nobody else could, and after all of them.
    pub(super) alone: bool,
    /// Whether it has let others go first, or time pass, since then.
    pub(super) steps_aside: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sight {
    /// By what, and where in the source.
    pub(crate) operation: Operation,
    pub(crate) aspect: Aspect,
    /// How often that had changed by then.
    pub(crate) version: u32,
}

impl Round {
    /// The thread has done something, or seen something new.
    pub(super) fn begin(&mut self) {
        self.seen.clear();
        self.head = None;
        self.stray = None;
        self.turns = 0;
        self.alone = false;
        self.steps_aside = false;
    }

    /// For how many turns it goes round for each one of a thread that lets others go first each time. One that does not may be
    /// about to end.
    pub(super) fn patience(&self) -> u32 {
        match self.steps_aside {
            true => 1,
            false => WITHOUT_STEPPING_ASIDE,
        }
    }

    /// Whether it has come round so often, for its [patience](Self::patience).
    pub(super) fn has_turned(&self, turns: u32) -> bool {
        self.turns >= turns.saturating_mul(self.patience())
    }

    /// Where it began, if the thread leaves it with an operation though nothing has changed.
    pub(super) fn is_left_by(&self, operation: &Operation) -> Option<&'static Location<'static>> {
        let head = self.head.filter(|_| self.alone)?;
        let mut seen = self.seen.iter();
        let is_inside = seen.any(|seen| seen.operation == *operation);
        (!is_inside).then_some(head.operation.at)
    }

    /// Whether it comes round with an operation.
    pub(super) fn is_closed_by(&self, operation: &Operation) -> bool {
        self.head.is_some_and(|head| head.operation == *operation)
    }

    /// The thread has looked at something.
    pub(super) fn see(&mut self, sight: Sight) {
        let same = |seen: &Sight| seen.operation == sight.operation;
        match self.seen.iter().position(same) {
            Some(at) if self.seen[at] == sight => {
                if self.head.is_none() {
                    // What it saw before it came here first is not part of the round.
                    self.seen.drain(..at);
                    self.head = Some(sight);
                }
                if self.head == Some(sight) {
                    self.turns += 1;
                    self.stray = None;
                } else if self.stray == Some(sight) {
                    // It goes round somewhere else by now.
                    self.begin();
                    self.seen.push(sight);
                } else {
                    self.stray.get_or_insert(sight);
                }
            }
            Some(_) => {
                self.begin();
                self.seen.push(sight);
            }
            None => self.seen.push(sight),
        }
    }
}
