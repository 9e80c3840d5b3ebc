//! What is known of the loops of a program: whether they end by themselves.
//!
//! A thread that goes round and sees nothing new may wait for another thread, or be about to end by itself: to count to
//! twenty, to give up, to find that its time is over. Only the first may be left to wait. So when a thread is about to, for
//! the first time at a place, an execution is run in which it goes on alone.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::trace::scatter;

/// A loop ends by itself when it is left within so many steps in which nobody else goes on,
pub(super) const FAR: usize = 10_000;
/// or so many where the thread changes something in each turn.
pub(super) const FAR_ACTING: usize = 100_000;

/// A loop that only looks is followed for so many turns in every schedule.
const FOLLOWED: u32 = 1_000;

/// A place in a thread, the same in every execution and in every process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place(u64);

impl Place {
    pub(super) fn new(thread: u64, at: &Location<'_>) -> Self {
        let file = at.file().bytes();
        let file = file.fold(0, |hash, byte| scatter(hash ^ u64::from(byte)));
        let line = scatter(u64::from(at.line()) << 32 | u64::from(at.column()));
        Self(scatter(thread ^ scatter(file ^ line)))
    }

    /// A loop that begins there, so deep on the stack: what calls the same function elsewhere has another one.
    pub(super) fn loop_at(self, depth: usize) -> Loop {
        Loop(Self(scatter(self.0 ^ scatter(depth as u64))))
    }
}

/// A loop of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Loop(Place);

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
    changes: AtomicU64,
    /// Whether a thread goes round without end and changes something each time.
    has_busy: AtomicBool,
}

#[derive(Default)]
struct Known {
    natures: BTreeMap<Loop, Nature>,
    /// Where threads change something again and again.
    busy: BTreeSet<Place>,
}

impl Loops {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn nature(&self, which: &Loop) -> Option<Nature> {
        self.known().natures.get(which).copied()
    }

    /// Takes note of what came of a loop, and of the places in it.
    pub(super) fn learn(&self, which: Loop, probed: Probed, places: impl Iterator<Item = Place>) {
        let known = &mut *self.known();
        let nature = known.natures.entry(which).or_default();
        let matters = match probed {
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
                    known.busy.extend(places);
                    self.has_busy.store(true, Relaxed);
                }
                acts
            }
        };
        if matters {
            self.changes.fetch_add(1, Relaxed);
        }
    }

    /// How often something was learnt by which executions that were run before would have gone otherwise.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Relaxed)
    }

    /// Whether an operation there is one of those that a thread does again and again.
    pub(super) fn is_busy(&self, thread: u64, at: &Location<'_>) -> bool {
        self.has_busy.load(Relaxed) && self.known().busy.contains(&Place::new(thread, at))
    }

    /// All that is known, for [`recall`](Self::recall) in another process.
    pub(super) fn lessons(&self) -> Vec<String> {
        let known = self.known();
        let natures = known.natures.iter().map(|(&Loop(Place(key)), nature)| {
            let Nature {
                ends_after,
                spins,
                late_end,
            } = nature;
            let late_end = late_end.unwrap_or_default();
            format!(
                "loop {key:016x} {ends_after} {} {late_end}",
                u8::from(*spins)
            )
        });
        let busy = known.busy.iter();
        let busy = busy.map(|&Place(key)| format!("busy {key:016x}"));
        natures.chain(busy).collect()
    }

    /// Takes up what was known elsewhere. What cannot be read is found out anew.
    pub(super) fn recall(&self, lessons: &[String]) {
        let known = &mut *self.known();
        for lesson in lessons {
            let words: Vec<&str> = lesson.split(' ').collect();
            let key = words
                .get(1)
                .and_then(|key| u64::from_str_radix(key, 16).ok());
            let number = |at: usize| words.get(at).and_then(|word| word.parse::<u32>().ok());
            match (words.first(), key) {
                (Some(&"loop"), Some(key)) => {
                    let nature = Nature {
                        ends_after: number(2).unwrap_or_default(),
                        spins: number(3) == Some(1),
                        late_end: number(4).filter(|&end| end > 0),
                    };
                    known.natures.insert(Loop(Place(key)), nature);
                }
                (Some(&"busy"), Some(key)) => {
                    known.busy.insert(Place(key));
                    self.has_busy.store(true, Relaxed);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learnt_is_recalled_elsewhere() {
        let place = Place::new(7, Location::caller());
        let loops = Loops::default();
        let left = Probed::Left {
            turns: 5,
            acts: false,
        };
        loops.learn(place.loop_at(1), left, [].into_iter());
        loops.learn(
            place.loop_at(1),
            Probed::Spins { acts: true },
            [place].into_iter(),
        );
        let late = Probed::Left {
            turns: 5_000,
            acts: false,
        };
        loops.learn(place.loop_at(2), late, [].into_iter());
        let elsewhere = Loops::default();
        elsewhere.recall(&loops.lessons());
        let nature = elsewhere.nature(&place.loop_at(1)).expect("it was learnt");
        assert_eq!((nature.ends_after, nature.spins), (8, true));
        let late = elsewhere.nature(&place.loop_at(2)).expect("it was learnt");
        assert_eq!(late.late_end, Some(5_000));
        assert!(elsewhere.known().busy.contains(&place));
        assert_eq!(elsewhere.lessons(), loops.lessons());
    }
}
