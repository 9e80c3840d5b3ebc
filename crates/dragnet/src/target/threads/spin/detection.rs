//! Whether a thread spins: the same operations come again, and each has seen what it saw before.

use std::panic::Location;
use std::ptr;

use super::super::operation::{ObjectId, Operation};
use super::termination::Nature;

/// How many times as often a thread goes round that does not let others go first.
pub(in super::super) const WITHOUT_STEPPING_ASIDE: u32 = 8;

/// What there is to see of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aspect {
    /// What it holds or says, but for what threads change in it that go round without end: what they see of each other.
    Calm,
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
    /// What may have changed. Whoever changes the calm content changes the content, and who does that changes the whole.
    pub(crate) changes: Option<Aspect>,
}

impl Effect {
    /// The thread has done something, and not only looked.
    pub(crate) const CHANGE: Self = Self {
        sees: None,
        changes: Some(Aspect::Calm),
    };

    /// The same of a thread that goes round without end, and does so in each turn.
    pub(crate) const BUSY_CHANGE: Self = Self {
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
            Some(Aspect::Calm) => true,
            Some(Aspect::Content) => seen != Aspect::Calm,
            Some(Aspect::Whole) => seen == Aspect::Whole,
        }
    }
}

/// How often each aspect of an object may have changed.
#[derive(Clone, Copy, Default)]
pub(in super::super) struct Versions {
    calm: u32,
    content: u32,
    whole: u32,
}

impl Versions {
    pub(in super::super) fn of(self, aspect: Aspect) -> u32 {
        match aspect {
            Aspect::Calm => self.calm,
            Aspect::Content => self.content,
            Aspect::Whole => self.whole,
        }
    }

    pub(in super::super) fn count(&mut self, effect: Effect) {
        let Some(changes) = effect.changes else {
            return;
        };
        self.calm += u32::from(changes == Aspect::Calm);
        self.content += u32::from(changes != Aspect::Whole);
        self.whole += 1;
    }

    /// Undoes the same.
    pub(in super::super) fn discount(&mut self, effect: Effect) {
        self.calm -= u32::from(effect.alters(Aspect::Calm));
        self.content -= u32::from(effect.alters(Aspect::Content));
        self.whole -= u32::from(effect.alters(Aspect::Whole));
    }
}

/// How many operations a loop may consist of, so that it is seen to be one.
pub(in super::super) const LONGEST_LOOP: usize = 128;

/// What a thread has done and seen since it last saw something new: whether it goes round and round.
#[derive(Default)]
pub(in super::super) struct Round {
    /// What it saw, where, and how often that had changed by then. What it changed itself is nothing new to it.
    pub(in super::super) seen: Vec<Sight>,
    /// A bit for each of their operations, and perhaps for others: most are not among them.
    mask: u64,
    /// Whether anybody who comes and goes matters to one of them.
    sees_whole: bool,
    /// Which of them it came to again first.
    head: Option<usize>,
    /// Which have come again since it last came round there: a bit each.
    strays: u128,
    /// Which have come up since what no longer does was last left out: a bit each.
    lately: u128,
    /// What the thread had seen when it first came round.
    pub(in super::super) context: u64,
    /// How often it had come round when somebody last changed what it sees, though that was nothing new.
    pub(in super::super) disturbed_at: u32,
    /// Whether it has asked what time it is.
    pub(in super::super) reads_clock: bool,
    /// How often it has come round.
    pub(in super::super) turns: u32,
    /// Whether it changed something in its last turn,
    pub(in super::super) acts: bool,
    /// whether it has in this one,
    has_acted: bool,
    /// and whether it had before its last operation.
    had_acted: bool,
    /// Whether it has gone on only because nobody else could, and after all of them.
    pub(in super::super) alone: bool,
    /// Whether it has let others go first, or time pass, since then.
    pub(in super::super) steps_aside: bool,
    /// What is known of the loop.
    pub(in super::super) nature: Option<Nature>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sight {
    /// By what, and where in the source.
    pub(crate) operation: Operation,
    pub(crate) aspect: Aspect,
    /// How often that had changed by then.
    pub(crate) version: u32,
}

/// One of 64 bits.
fn bit(operation: &Operation) -> u64 {
    let at = ptr::from_ref(operation.at) as usize / align_of::<Location<'_>>();
    1 << ((at ^ at >> 6 ^ operation.object.0 as usize) % 64)
}

impl Round {
    /// An empty one, in the room of an earlier one.
    pub(in super::super) fn in_room_of(earlier: Vec<Sight>) -> Self {
        Self {
            seen: earlier,
            ..Self::default()
        }
    }

    /// The thread has done something that is new each time.
    pub(in super::super) fn forget(&mut self) {
        self.seen.clear();
        self.mask = 0;
        self.sees_whole = false;
        self.head = None;
        self.strays = 0;
        self.lately = 0;
        self.disturbed_at = 0;
        self.reads_clock = false;
        self.turns = 0;
        self.acts = false;
        self.has_acted = false;
        self.had_acted = false;
        self.alone = false;
        self.steps_aside = false;
        self.nature = None;
    }

    /// The thread has seen something new.
    fn begin(&mut self, sight: Sight) {
        self.forget();
        self.add(sight);
    }

    fn add(&mut self, sight: Sight) {
        self.mask |= bit(&sight.operation);
        self.sees_whole |= sight.aspect == Aspect::Whole;
        self.lately |= 1 << self.seen.len();
        self.seen.push(sight);
    }

    /// For how many turns it goes round for each one of a thread that lets others go first each time. One that does not may be
    /// about to end.
    pub(in super::super) fn patience(&self) -> u32 {
        match self.steps_aside {
            true => 1,
            false => WITHOUT_STEPPING_ASIDE,
        }
    }

    /// The same since somebody last changed what it sees.
    pub(in super::super) fn has_turned_undisturbed(&self, turns: u32) -> bool {
        let turns = turns.saturating_mul(self.patience());
        self.turns - self.disturbed_at >= turns
    }

    /// Whether it has come round so often, for its [patience](Self::patience).
    #[inline]
    pub(in super::super) fn has_turned(&self, turns: u32) -> bool {
        self.head.is_some() && self.turns >= turns.saturating_mul(self.patience())
    }

    /// Where it began.
    pub(in super::super) fn head(&self) -> Option<&'static Location<'static>> {
        self.head.map(|head| self.seen[head].operation.at)
    }

    /// What it consists of.
    pub(in super::super) fn operations(&self) -> Vec<Operation> {
        self.seen.iter().map(|sight| sight.operation).collect()
    }

    /// Whether it still goes round, and consists of nothing but these.
    pub(in super::super) fn is_made_of(&self, operations: &[Operation]) -> bool {
        let mut operations = operations.iter();
        let mut seen = self.seen.iter().map(|sight| &sight.operation);
        self.head.is_some() && seen.all(|seen| operations.any(|known| known == seen))
    }

    /// Whether it sees an object.
    pub(in super::super) fn sees(&self, object: ObjectId) -> bool {
        let mut seen = self.seen.iter();
        seen.any(|sight| sight.operation.object == object)
    }

    /// Whether an operation is one of the round.
    pub(in super::super) fn has(&self, operation: &Operation) -> bool {
        self.position(operation).is_some()
    }

    fn position(&self, operation: &Operation) -> Option<usize> {
        if self.mask & bit(operation) == 0 {
            return None;
        }
        let mut seen = self.seen.iter();
        seen.rposition(|seen| seen.operation == *operation)
    }

    /// Whether it comes round with an operation.
    pub(in super::super) fn is_closed_by(&self, operation: &Operation) -> bool {
        self.head
            .is_some_and(|head| self.seen[head].operation == *operation)
    }

    /// The thread has changed something itself: that is nothing new to it.
    pub(in super::super) fn change(&mut self, object: ObjectId, effect: Effect) {
        if effect.changes == Some(Aspect::Whole) && !self.sees_whole {
            return;
        }
        let of_object = |sight: &&mut Sight| sight.operation.object == object;
        for sight in self.seen.iter_mut().filter(of_object) {
            sight.version += u32::from(effect.alters(sight.aspect));
        }
    }

    /// Undoes the same. An operation that was thought to change something was only a look.
    pub(in super::super) fn take_back_change(&mut self, object: ObjectId, effect: Effect) {
        let of_object = |sight: &&mut Sight| sight.operation.object == object;
        for sight in self.seen.iter_mut().filter(of_object) {
            sight.version -= u32::from(effect.alters(sight.aspect));
        }
        self.has_acted = self.had_acted;
    }

    /// The thread has looked at something, or changed it.
    pub(in super::super) fn see(&mut self, sight: Sight, acts: bool, view: u64) {
        self.go_on(sight, view);
        self.had_acted = self.has_acted;
        self.has_acted |= acts;
    }

    fn go_on(&mut self, sight: Sight, view: u64) {
        let Some(at) = self.position(&sight.operation) else {
            if self.seen.len() >= LONGEST_LOOP {
                self.forget();
            }
            self.add(sight);
            return;
        };
        let known = self.seen[at];
        if (known.aspect, known.version) != (sight.aspect, sight.version) {
            self.begin(sight);
            return;
        }
        let head = *self.head.get_or_insert_with(|| {
            // What it saw before it came here first is not part of the round.
            self.seen.drain(..at);
            self.lately = u128::MAX;
            self.context = view;
            0
        });
        if self.seen[head].operation == sight.operation {
            self.turns += 1;
            self.strays = 0;
            self.acts = std::mem::take(&mut self.has_acted);
            if (self.turns as usize).is_multiple_of(LONGEST_LOOP) {
                self.leave_out_what_is_gone();
            }
        } else if self.strays >> at & 1 == 1 {
            // It goes round somewhere else by now.
            self.begin(sight);
        } else {
            self.strays |= 1 << at;
            self.lately |= 1 << at;
        }
    }

    /// What has not come up for as many turns as a loop has operations at most is no part of it: a loop that ended before the
    /// first turn may have begun with the same.
    fn leave_out_what_is_gone(&mut self) {
        let lately = std::mem::take(&mut self.lately);
        let mut at = 0;
        self.seen.retain(|_| {
            let stays = at == 0 || lately >> at & 1 == 1;
            at += 1;
            stays
        });
    }
}
