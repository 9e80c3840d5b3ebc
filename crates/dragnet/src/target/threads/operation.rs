//! What threads do that others can notice, and which of it commutes.

use std::panic::Location;
use std::ptr;

use super::spin::detection::{Aspect, Effect};
use crate::target::nodes::FaultKind;

/// A thread, by a number that is the same in every execution: whose child it is and the how manyeth decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ThreadId(pub(crate) u32);

/// Something that threads share, by the order of first use in one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObjectId(pub(crate) u32);

/// A process, by the order in which they were started in one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ProcessId(pub(crate) u32);

impl ProcessId {
    /// What the check begins with.
    pub(crate) const FIRST: Self = Self(0);
    /// What does harm to the others, and carries what they send: no process at all.
    pub(crate) const OUTSIDE: Self = Self(u32::MAX);
}

/// An operation that a thread has come to: nothing but operations is noticed by other threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) object: ObjectId,
    pub(crate) action: Action,
    /// Where in the source.
    pub(crate) at: &'static Location<'static>,
}

impl PartialEq for Operation {
    fn eq(&self, other: &Self) -> bool {
        // One place is mostly in one place in memory, but need not be.
        self.object == other.object
            && (ptr::eq(self.at, other.at) || self.at == other.at)
            && self.action == other.action
    }
}

impl Eq for Operation {}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Memory is read.
    Load,
    /// It is written.
    Store,
    /// It is read and written at once.
    Modify,

    Lock,
    TryLock,
    Unlock(Guarding),

    Read,
    TryRead,
    ReadUnlock,
    Write,
    TryWrite,
    WriteUnlock(Guarding),
    /// A writer goes on as a reader.
    Downgrade(Guarding),

    /// A thread lines up at a condition variable. Where spurious wake-ups are explored, it is decided here whether it may have
    /// one: a thread that could wake up at any time would never be seen to wait for ever.
    Wait {
        spurious: bool,
    },
    /// It goes on: notified, or by one of the [other ways](Ways) to wake up.
    Wake {
        timed: bool,
    },
    NotifyOne,
    NotifyAll,

    Send,
    TrySend,
    /// A sender waits until its message has been taken, where a channel has no room of its own.
    Handed,
    /// The receiver comes to wait for a message, where a channel has no room of its own.
    Await,
    Receive {
        timed: bool,
    },
    TryReceive,
    /// A sender is gone.
    Close,
    /// The receiver is gone.
    HangUp,

    /// A thread ends.
    End,
    Join,
    IsFinished,
    Park {
        timed: bool,
    },
    Unpark,

    /// Somebody comes to what is to be done once.
    Enter,
    /// It has been done.
    Complete,
    /// It has failed.
    Abandon,
    /// Somebody looks whether it has been done.
    Look,
    /// Somebody waits until it has been done.
    AwaitDone,

    /// A thread comes to a barrier.
    Arrive,
    /// It leaves it again.
    Depart,

    /// So much is put into a pipe, in one piece.
    Put(u32),
    /// So much is taken out at most, of one piece. Nothing at most: somebody waits until there is something.
    Take {
        most: u32,
        timed: bool,
    },
    TryTake {
        most: u32,
    },
    /// Nothing more is put in.
    Shut,
    /// A pipe is broken from outside.
    Reset,

    /// The first thread of a process has ended.
    Exit,
    /// A process stops where it is. It matters to everything that its threads do.
    Crash,
    /// Something may go wrong.
    Suffer(Harm),

    /// A value that knows of itself is made, and has its first owner.
    Own,
    /// A reference count grows by one.
    Retain(Counted),
    /// It shrinks by one. Whose is the last owner drops the value.
    Release(Counted),
    ReadCount,
    /// Somebody who knows of a value becomes an owner, if there is one left.
    Upgrade,
    /// The only owner takes the value out.
    Unwrap,
    /// The last owner takes the value out, and others go.
    IntoInner,
    /// Whether there is one owner, and nobody else who knows of the value.
    Unique,
    /// The only owner moves the value away from those who know of it, if somebody does.
    MakeUnique,

    /// One of so many.
    Choose(u32),
    /// A thread lets others go first.
    Yield,
}

/// What who could have changed something did to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Guarding {
    Looked,
    Changed,
}

impl Guarding {
    /// The same where the lock is poisoned by that.
    pub(crate) fn or_panicked(self, panicked: bool) -> Self {
        match panicked {
            true => Self::Changed,
            false => self,
        }
    }

    fn effect(self) -> Effect {
        match self {
            Self::Looked => Effect::PASS,
            Self::Changed => Effect::CHANGE,
        }
    }
}

/// Who is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Counted {
    /// An owner of a value.
    Strong,
    /// Somebody who knows of it.
    Weak,
}

/// What can come to harm. What happens to it is a [`Way`]; 0 is that nothing does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Harm {
    Datagram,
    Connection,
    Process,
    /// A process that is down: what happens to it is for the better.
    Crashed,
}

impl Harm {
    /// Nothing happens to it.
    pub(crate) const NONE: Way = 0;
    /// Something does.
    pub(crate) const DONE: Way = 1;
    pub(crate) const LOST: Way = 1;
    pub(crate) const TWICE: Way = 2;

    fn kinds(self) -> &'static [FaultKind] {
        match self {
            Self::Datagram => &[FaultKind::Drop, FaultKind::Duplicate],
            Self::Connection => &[FaultKind::Reset],
            Self::Process => &[FaultKind::Crash],
            Self::Crashed => &[FaultKind::Restart],
        }
    }

    /// The kind of fault that a way is, if it is one.
    pub(crate) fn kind(self, way: Way) -> Option<FaultKind> {
        let at = (way as usize).checked_sub(1)?;
        self.kinds().get(at).copied()
    }
}

/// In which of several ways an operation comes out, where that is not decided by what was before.
pub(crate) type Way = u32;

/// The ways in which a wait comes out.
pub(crate) struct Ways;

impl Ways {
    /// What was waited for has come.
    pub(crate) const COME: Way = 0;
    /// The time was over first.
    pub(crate) const TIMEOUT: Way = 1;
    /// Spuriously.
    pub(crate) const SPURIOUS: Way = 2;
    /// What is to be done once has been done.
    pub(crate) const DONE: Way = 1;
    /// There is nothing left to crash.
    pub(crate) const TOO_LATE: Way = 1;
}

/// A class of operations on one object that commute with the same others, as a bit.
type Classes = u8;

/// What an operation has to do with others on the same object.
#[derive(Clone, Copy)]
pub(crate) struct Rivalry {
    class: Classes,
    rivals: Classes,
}

impl Rivalry {
    /// The number of its class, if others are in one at all.
    #[inline]
    pub(crate) fn class(self) -> Option<usize> {
        (self.class != 0).then(|| self.class.trailing_zeros() as usize)
    }

    /// The numbers of the classes that it does not commute with.
    #[inline]
    pub(crate) fn rivals(self) -> impl Iterator<Item = usize> {
        let mut rivals = self.rivals;
        std::iter::from_fn(move || {
            let next = (rivals != 0).then(|| rivals.trailing_zeros() as usize);
            rivals &= rivals.wrapping_sub(1);
            next
        })
    }

    /// Whether it matters which of the two comes first.
    #[inline]
    pub(crate) fn depends(self, other: Self) -> bool {
        self.class & other.rivals != 0
    }

    /// Whether whatever does not commute with `other` does not commute with this either.
    #[inline]
    pub(crate) fn includes(self, other: Self) -> bool {
        other.rivals & !self.rivals == 0
    }
}

impl Action {
    /// Its class, and those on the same object that it does not commute with. What merely waits for something else
    /// commutes with it: it cannot come before it.
    fn classes(self, way: Way) -> (Classes, Classes) {
        const A: Classes = 1;
        const B: Classes = 2;
        const C: Classes = 4;
        const D: Classes = 8;
        const E: Classes = 16;
        const F: Classes = 32;
        const G: Classes = 64;
        match self {
            // Readers among themselves commute.
            Self::Load | Self::Read | Self::TryRead | Self::ReadUnlock | Self::Look => (A, B),
            Self::Store | Self::Modify => (B, A | B),
            Self::Write | Self::TryWrite => (B, A | B),
            Self::WriteUnlock(_) | Self::Downgrade(_) => (B, A | B),
            Self::Lock | Self::TryLock | Self::Unlock(_) => (B, A | B),
            Self::AwaitDone => (A, B),
            Self::Enter if way == Ways::DONE => (A, B),
            Self::Enter | Self::Complete | Self::Abandon => (B, A | B),
            // Who waits first does not matter: anybody may be woken.
            // There are only so many spurious wake-ups.
            Self::Wait { .. } if way == Ways::SPURIOUS => (E, B | E),
            Self::Wait { .. } => (A, B),
            Self::NotifyOne | Self::NotifyAll => (B, A | B | C | E),
            Self::Wake { .. } if way == Ways::COME => (D, 0),
            Self::Wake { .. } => (C, B),
            // The two ends of a channel meet only in a message, or where one asks whether there is one.
            Self::Send => (A, A | C | D | E),
            Self::Receive { timed: false } => (B, B | C | D | E),
            // Who waits only for a while asks as well, also where a message comes: that it came in time depends on all
            // that could have come before.
            Self::TryReceive | Self::Receive { timed: true } => (C, A | B | C | D | E | F),
            // It fails where there is no room, or where nobody waits.
            Self::TrySend => (D, A | B | C | D | E | G),
            Self::Await => (G, D),
            Self::HangUp => (E, A | B | C | D | E),
            Self::Close => (F, C),
            Self::Handed => (0, 0),
            Self::End => (A, C),
            Self::Join => (0, 0),
            Self::IsFinished => (C, A),
            Self::Park { .. } => (D, E),
            Self::Unpark => (E, D | E),
            Self::Arrive => (B, B),
            // What is taken depends on what was put in, and on nothing else, unless somebody does not wait for it.
            Self::Put(_) => (A, A | C | D | E | F),
            Self::Take { timed: false, .. } => (B, B | C | D | E),
            Self::TryTake { .. } | Self::Take { timed: true, .. } => (C, A | B | C | D | E | F),
            Self::Reset => (D, A | B | C | D | E | F),
            Self::Shut => (F, A | C | D | F),
            Self::Exit | Self::Crash => (B, A | B),
            // There are only so many faults of a kind.
            Self::Suffer(harm) => match harm.kind(way) {
                None => (0, 0),
                Some(kind) => (1 << kind as Classes, 1 << kind as Classes),
            },
            // Who drops the last one matters where something comes of it, which is not known yet.
            Self::Own | Self::Retain(Counted::Strong) | Self::Release(Counted::Strong) => {
                (B, A | C | E)
            }
            // Owners are nothing to the count of weak references, nor are these to theirs.
            Self::Retain(Counted::Weak) | Self::Release(Counted::Weak) => (D, A | E),
            Self::ReadCount | Self::Unique => (A, B | C | D | E),
            Self::Upgrade | Self::Unwrap | Self::IntoInner => (C, A | B | C | E),
            Self::MakeUnique => (E, A | B | C | D | E),
            Self::Depart | Self::Choose(_) | Self::Yield => (0, 0),
        }
    }

    /// The ways in which it can come out, where they are not as many as there are threads.
    pub(crate) fn possible_ways(self) -> &'static [Way] {
        match self {
            Self::Wait { spurious: true } => &[Ways::COME, Ways::SPURIOUS],
            Self::Wake { timed: true } => &[Ways::COME, Ways::TIMEOUT, Ways::SPURIOUS],
            Self::Wake { timed: false } => &[Ways::COME, Ways::SPURIOUS],
            Self::Receive { timed: true }
            | Self::Take { timed: true, .. }
            | Self::Park { timed: true } => &[Ways::COME, Ways::TIMEOUT],
            Self::Suffer(Harm::Datagram) => &[Harm::NONE, Harm::LOST, Harm::TWICE],
            Self::Suffer(_) => &[Harm::NONE, Harm::DONE],
            Self::Enter => &[Ways::COME, Ways::DONE],
            Self::Crash => &[Ways::COME, Ways::TOO_LATE],
            _ => &[Ways::COME],
        }
    }

    /// The way in which it comes out whenever it can happen, if there is only one.
    #[inline]
    pub(crate) fn only_way(self) -> Option<Way> {
        match self {
            Self::Choose(_) | Self::NotifyOne | Self::Wake { .. } => None,
            Self::Wait { spurious: true } => None,
            Self::Receive { timed: true } | Self::Take { timed: true, .. } => None,
            Self::Park { timed: true } | Self::Enter | Self::Crash | Self::Suffer(_) => None,
            _ => Some(Ways::COME),
        }
    }

    /// What it was for its object, and to its thread. To come and go, and to look in vain, is nothing to go on with.
    pub(crate) fn effect(self, way: Way, answer: u32) -> Effect {
        let failed = answer == 0;
        let timed_out = way == Ways::TIMEOUT;
        match self {
            Self::Yield => Effect::NOTHING,
            Self::Load | Self::Look | Self::AwaitDone => Effect::look(Aspect::Content),
            Self::Enter if way == Ways::DONE => Effect::look(Aspect::Content),
            Self::Take { most: 0, .. } | Self::TryTake { most: 0 } => Effect::look(Aspect::Content),
            Self::TryLock | Self::TryRead | Self::TryWrite if failed => Effect::look(Aspect::Whole),
            Self::Lock | Self::Read | Self::Write => Effect::PASS_AND_LOOK,
            Self::TryLock | Self::TryRead | Self::TryWrite => Effect::PASS_AND_LOOK,
            Self::ReadUnlock | Self::Wait { .. } => Effect::PASS,
            Self::Unlock(guarding) | Self::WriteUnlock(guarding) | Self::Downgrade(guarding) => {
                guarding.effect()
            }
            Self::NotifyOne | Self::NotifyAll if failed => Effect::look(Aspect::Whole),
            Self::Wake { .. } if timed_out => Effect::PASS_AND_LOOK,
            Self::TryReceive | Self::TryTake { .. } | Self::TrySend | Self::IsFinished
                if failed =>
            {
                Effect::look(Aspect::Content)
            }
            Self::Receive { .. } | Self::Take { .. } | Self::Park { .. } if timed_out => {
                Effect::look(Aspect::Content)
            }
            Self::Retain(_) | Self::Release(_) | Self::IntoInner => Effect::PASS,
            Self::ReadCount | Self::Unique => Effect::look(Aspect::Whole),
            Self::Upgrade | Self::Unwrap | Self::MakeUnique if failed => {
                Effect::look(Aspect::Whole)
            }
            Self::MakeUnique if answer == 1 => Effect::look(Aspect::Whole),
            _ => Effect::CHANGE,
        }
    }

    /// Whether it does nothing but ask for an answer, or was refused.
    pub(crate) fn only_asks(self, answer: u32) -> bool {
        match self {
            Self::IsFinished => true,
            Self::TryLock | Self::TryRead | Self::TryWrite => answer == 0,
            Self::TrySend | Self::TryReceive => answer == 0,
            _ => false,
        }
    }

    /// Whether it drops an owner of a value.
    #[inline]
    pub(crate) fn drops_an_owner(self) -> bool {
        matches!(self, Self::Release(Counted::Strong))
    }

    /// Whether a thread lets others go first with it, or time pass.
    pub(crate) fn steps_aside(self, way: Way) -> bool {
        match self {
            Self::Yield => true,
            Self::Wake { .. } | Self::Receive { .. } | Self::Take { .. } | Self::Park { .. } => {
                way == Ways::TIMEOUT
            }
            _ => false,
        }
    }

    /// What it has to do with others on the same object.
    #[inline]
    pub(crate) fn rivalry(self, way: Way) -> Rivalry {
        let (class, rivals) = self.classes(way);
        Rivalry { class, rivals }
    }

    /// Whether it matters which of two operations on the same object comes first.
    pub(crate) fn depends(self, way: Way, other: Self, others_way: Way) -> bool {
        self.rivalry(way).depends(other.rivalry(others_way))
    }
}

/// How many classes there are.
pub(crate) const CLASSES: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    /// All actions, by what they are done to.
    fn kinds() -> Vec<Vec<Action>> {
        let wake = |timed| Action::Wake { timed };
        let receive = |timed| Action::Receive { timed };
        let park = |timed| Action::Park { timed };
        let take = |timed| Action::Take { most: 1, timed };
        let memory = vec![Action::Load, Action::Store, Action::Modify];
        let locks = vec![
            Action::Lock,
            Action::TryLock,
            Action::Unlock(Guarding::Changed),
            Action::Look,
            Action::Modify,
        ];
        let rw_locks = vec![
            Action::Read,
            Action::TryRead,
            Action::ReadUnlock,
            Action::Write,
            Action::TryWrite,
            Action::WriteUnlock(Guarding::Changed),
            Action::Downgrade(Guarding::Looked),
            Action::Look,
            Action::Modify,
        ];
        let condvar = vec![
            Action::Wait { spurious: false },
            Action::Wait { spurious: true },
            wake(false),
            wake(true),
            Action::NotifyOne,
            Action::NotifyAll,
        ];
        let channel = vec![
            Action::Send,
            Action::TrySend,
            Action::Handed,
            Action::Await,
            receive(false),
            receive(true),
            Action::TryReceive,
            Action::Close,
            Action::HangUp,
        ];
        let pipe = vec![
            Action::Put(1),
            take(false),
            take(true),
            Action::TryTake { most: 1 },
            Action::Shut,
            Action::HangUp,
            Action::Reset,
        ];
        let process = vec![Action::Exit, Action::Abandon, Action::Crash, Action::Join];
        let faults = [
            Harm::Datagram,
            Harm::Connection,
            Harm::Process,
            Harm::Crashed,
        ];
        let faults = faults.map(Action::Suffer).to_vec();
        let thread = vec![
            Action::End,
            Action::Join,
            Action::IsFinished,
            park(false),
            park(true),
            Action::Unpark,
            Action::Choose(2),
            Action::Yield,
        ];
        let once = vec![
            Action::Enter,
            Action::Complete,
            Action::Abandon,
            Action::Look,
            Action::AwaitDone,
        ];
        let barrier = vec![Action::Arrive, Action::Depart];
        let counts = vec![
            Action::Own,
            Action::Retain(Counted::Strong),
            Action::Release(Counted::Strong),
            Action::Retain(Counted::Weak),
            Action::Release(Counted::Weak),
            Action::ReadCount,
            Action::Upgrade,
            Action::Unwrap,
            Action::IntoInner,
            Action::Unique,
            Action::MakeUnique,
        ];
        vec![
            counts, memory, locks, rw_locks, condvar, channel, thread, once, barrier, pipe,
            process, faults,
        ]
    }

    #[test]
    fn dependence_is_mutual() {
        for kind in kinds() {
            for &one in &kind {
                for &two in &kind {
                    for ways in 0..9 {
                        let (first, second) = (ways / 3, ways % 3);
                        assert_eq!(
                            one.depends(first, two, second),
                            two.depends(second, one, first),
                            "{one:?} in way {first}, {two:?} in way {second}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn what_comes_out_in_one_way_only_has_no_other() {
        for action in kinds().concat() {
            let only = match (action, action.possible_ways()) {
                // As many as there are to choose from, or threads that wait.
                (Action::Choose(_) | Action::NotifyOne, _) => None,
                (_, &[way]) => Some(way),
                _ => None,
            };
            assert_eq!(action.only_way(), only, "{action:?}");
        }
    }
}
