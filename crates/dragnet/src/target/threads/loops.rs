//! What is known of the loops of a program: whether they end by themselves.
//!
//! A thread that goes round and sees nothing new may wait for another thread, or be about to end by itself: to count to
//! twenty, to give up, to find that its time is over. Only the first may be left to wait. So when a thread is about to, for
//! the first time at a place, an execution is run in which it goes on alone.

use std::collections::{HashMap, HashSet};
use std::panic::Location;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::operation::ThreadId;

/// A loop ends by itself when it is left within so many steps in which nobody else goes on,
pub(super) const FAR: usize = 10_000;
/// or so many where the thread changes something in each turn.
pub(super) const FAR_ACTING: usize = 100_000;

/// A loop that only looks is followed for so many turns in every schedule.
const FOLLOWED: u32 = 1_000;

/// A loop of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Loop {
    pub(super) thread: ThreadId,
    /// Where it begins.
    pub(super) at: &'static Location<'static>,
    /// How deep on the stack: what calls the same function elsewhere has another loop.
    pub(super) depth: usize,
}

/// What is known of a loop.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Nature {
    /// It has been seen to end by itself after so many turns, or fewer.
    pub(super) ends_after: u32,
    /// Beyond that it goes on without end,
    pub(super) spins: bool,
    /// or ends only after so many.
    pub(super) late_end: Option<u32>,
}

/// What came of a loop in which a thread went on alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Probed {
    /// The thread left it after so many turns.
    Left { turns: u32, acts: bool },
    /// It went on for as long as one can wait.
    Spins { acts: bool },
}

/// What is known of the loops of a program.
#[derive(Default)]
pub(crate) struct Loops {
    known: Mutex<Known>,
    /// How often something was learnt by which executions that were run before would have gone otherwise.
    lessons: AtomicU64,
    /// Whether a thread goes round without end and changes something each time.
    has_busy: AtomicBool,
}

#[derive(Default)]
struct Known {
    natures: HashMap<Loop, Nature>,
    /// Where threads change something again and again.
    busy: HashSet<(ThreadId, &'static Location<'static>)>,
}

impl Loops {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn nature(&self, which: &Loop) -> Option<Nature> {
        self.known().natures.get(which).copied()
    }

    /// Takes note of what came of a loop, and of the places in it.
    pub(super) fn learn(
        &self,
        which: Loop,
        probed: Probed,
        places: impl Iterator<Item = &'static Location<'static>>,
    ) {
        let known = &mut *self.known();
        let nature = known.natures.entry(which).or_default();
        let is_lesson = match probed {
            Probed::Left { turns, acts } if acts || turns <= FOLLOWED => {
                // One that takes longer each time is not to be learnt of each time.
                nature.ends_after = nature.ends_after.max(turns.next_power_of_two());
                true
            }
            Probed::Left { turns, .. } => {
                nature.spins = true;
                nature.late_end = Some(turns);
                false
            }
            Probed::Spins { acts } => {
                nature.spins = true;
                if acts {
                    known.busy.extend(places.map(|at| (which.thread, at)));
                    self.has_busy.store(true, Relaxed);
                }
                acts
            }
        };
        if is_lesson {
            self.lessons.fetch_add(1, Relaxed);
        }
    }

    /// How often something was learnt by which executions that were run before would have gone otherwise.
    pub(crate) fn lessons(&self) -> u64 {
        self.lessons.load(Relaxed)
    }

    /// Whether an operation there is one of those that a thread does again and again.
    pub(super) fn is_busy(&self, thread: ThreadId, at: &'static Location<'static>) -> bool {
        self.has_busy.load(Relaxed) && self.known().busy.contains(&(thread, at))
    }
}
