//! Which loops of a program terminate by themselves.
//!
//! A thread that goes round and sees nothing new may wait for another thread, or be about to end by itself: to count to
//! twenty, to give up, to find that its time is over. Only the first may be left to wait. So when a thread is about to, for
//! the first time in a loop after having seen what it has seen, an execution is run in which it goes on alone.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::trace::scatter;

/// A loop ends by itself when it is left within so many steps in which nobody else goes on,
const FAR: usize = 10_000;
/// or so many where the thread changes something in each turn, or looks how late it is, for the first few times,
const VERY_FAR: usize = 100_000;
const SELDOM: u32 = 2;
/// or so many where it has been run alone for this often already.
const NEAR: usize = 500;
const OFTEN: u32 = 8;

/// In so many contexts a loop is looked at one by one,
const CONTEXTS: u32 = 256;
/// or only [as often as that](OFTEN) where it takes more steps than this to come there again.
const LONG_WAY: usize = 2_000;

/// A loop that only looks is followed for so many turns in every schedule.
const FOLLOWED: u32 = 1_000;

/// A number for a place in the source that is the same in every process of a program.
pub(in super::super) fn offset(at: &'static Location<'static>) -> u64 {
    static ORIGIN: u8 = 0;
    (ptr::from_ref(at) as u64).wrapping_sub(&raw const ORIGIN as u64)
}

/// A place in a thread, the same in every execution and in every process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in super::super) struct Place(u64);

impl Place {
    pub(in super::super) fn new(thread: u64, at: &Location<'_>) -> Self {
        let file = at.file().bytes();
        let file = file.fold(0, |hash, byte| scatter(hash ^ u64::from(byte)));
        let line = scatter(u64::from(at.line()) << 32 | u64::from(at.column()));
        Self(scatter(thread ^ scatter(file ^ line)))
    }

    /// A loop that begins there, so deep on the stack: what calls the same function elsewhere has another one.
    pub(in super::super) fn loop_at(self, depth: usize) -> Loop {
        Loop(Self(scatter(self.0 ^ scatter(depth as u64))))
    }
}

/// A loop of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in super::super) struct Loop(Place);

impl Loop {
    /// The same where the thread has seen something that it may depend on whether the loop ends.
    pub(in super::super) fn in_context(self, context: u64) -> Instance {
        let Self(Place(key)) = self;
        Instance {
            of: self,
            here: Place(scatter(key ^ scatter(context))),
        }
    }
}

/// A loop in one context.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Instance {
    of: Loop,
    here: Place,
}

/// What is known of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Nature {
    /// It has been seen to end by itself after so many turns, or fewer.
    pub(in super::super) ends_after: u32,
    /// Beyond that it goes on without end,
    pub(in super::super) spins: bool,
    /// or ends only after so many.
    pub(in super::super) late_end: Option<u32>,
    /// Whether that is only concluded from other contexts.
    pub(in super::super) is_guessed: bool,
}

/// How a thread goes round in a loop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Habit {
    /// Whether it changes something in each turn.
    pub(in super::super) acts: bool,
    /// Whether it looks how late it is.
    pub(in super::super) reads_clock: bool,
}

/// What came of a loop in which a thread went on alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Probed {
    /// The thread left it after so many turns.
    Left(u32),
    /// It went on for as long as one can wait.
    Stayed,
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

#[derive(Clone, Default)]
struct Known {
    natures: BTreeMap<Place, Nature>,
    loops: BTreeMap<Loop, Overall>,
    /// Where threads change something again and again.
    busy: BTreeSet<Place>,
}

/// What is known of a loop in all contexts.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Overall {
    contexts: u32,
    spins: bool,
}

impl Loops {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a loop to which it took so many steps.
    pub(in super::super) fn nature(&self, which: Instance, steps: usize) -> Option<Nature> {
        let known = self.known();
        let nature = known.natures.get(&which.here).copied();
        let guess = |overall: &Overall| Nature {
            ends_after: if overall.spins { 0 } else { u32::MAX },
            spins: overall.spins,
            late_end: None,
            is_guessed: true,
        };
        nature.or_else(|| {
            let overall = known.loops.get(&which.of)?;
            let most = if steps > LONG_WAY { OFTEN } else { CONTEXTS };
            (overall.contexts >= most).then(|| guess(overall))
        })
    }

    /// For how many steps a thread goes on alone, until it is clear that it does not leave a loop.
    pub(in super::super) fn far(&self, which: Instance, habit: Habit) -> usize {
        let contexts = self
            .known()
            .loops
            .get(&which.of)
            .map_or(0, |overall| overall.contexts);
        let is_slow = habit.acts || habit.reads_clock;
        match contexts {
            0..SELDOM if is_slow => VERY_FAR,
            0..OFTEN => FAR,
            _ => NEAR,
        }
    }

    /// Takes note of what came of a loop, and of the places in it.
    pub(in super::super) fn learn(
        &self,
        which: Instance,
        probed: Probed,
        habit: Habit,
        places: impl Iterator<Item = Place>,
    ) {
        let known = &mut *self.known();
        let overall = known.loops.entry(which.of).or_default();
        let nature = known.natures.entry(which.here).or_insert_with(|| {
            overall.contexts += 1;
            Nature::default()
        });
        match probed {
            Probed::Left(turns) if habit.acts || turns <= FOLLOWED => {
                // Where it goes on with something else each time, that is not to be found out each time.
                nature.ends_after = turns.saturating_mul(2);
                return;
            }
            Probed::Left(turns) => nature.late_end = Some(turns),
            // Its time may come.
            Probed::Stayed if habit.reads_clock => nature.late_end = Some(u32::MAX),
            Probed::Stayed => {}
        }
        nature.spins = true;
        overall.spins = true;
        if habit.acts {
            let places: BTreeSet<Place> = places.collect();
            if !places.is_subset(&known.busy) {
                // Before anybody can see the places.
                self.changes.fetch_add(1, Relaxed);
            }
            known.busy.extend(places);
            self.has_busy.store(true, Relaxed);
        }
    }

    /// How often something was learnt by which executions that were run before would have gone otherwise.
    pub(crate) fn revision(&self) -> u64 {
        self.changes.load(Relaxed)
    }

    /// Whether a thread goes round without end and changes something each time.
    #[inline]
    pub(in super::super) fn has_busy(&self) -> bool {
        self.has_busy.load(Relaxed)
    }

    /// Whether an operation there is one of those that such a thread does again and again.
    pub(in super::super) fn is_busy(&self, thread: u64, at: &Location<'_>) -> bool {
        self.known().busy.contains(&Place::new(thread, at))
    }

    /// Replaces all that is known by what is known elsewhere.
    pub(crate) fn replace_by(&self, other: &Self) {
        *self.known() = other.known().clone();
        self.has_busy.store(other.has_busy(), Relaxed);
        self.changes.fetch_add(1, Relaxed);
    }

    /// All that is known, as [facts](crate::Run::facts) for another process.
    pub(in super::super) fn facts(&self) -> Vec<String> {
        let known = self.known();
        let natures = known.natures.iter().map(|(&Place(key), nature)| {
            let Nature {
                ends_after, spins, ..
            } = *nature;
            let late_end = nature.late_end.unwrap_or_default();
            format!(
                "here {key:016x} {ends_after} {} {late_end}",
                u8::from(spins)
            )
        });
        let loops = known.loops.iter().map(|(&Loop(Place(key)), overall)| {
            let Overall { contexts, spins } = *overall;
            format!("loop {key:016x} {contexts} {}", u8::from(spins))
        });
        let busy = known.busy.iter();
        let busy = busy.map(|&Place(key)| format!("busy {key:016x}"));
        natures.chain(loops).chain(busy).collect()
    }

    /// Takes over facts that were found out elsewhere. One that cannot be read is found out anew.
    pub(in super::super) fn learn_facts(&self, facts: &[String]) {
        let known = &mut *self.known();
        for fact in facts {
            let words: Vec<&str> = fact.split(' ').collect();
            let key = words
                .get(1)
                .and_then(|key| u64::from_str_radix(key, 16).ok());
            let (Some(&kind), Some(place)) = (words.first(), key.map(Place)) else {
                continue;
            };
            let number = |at: usize| words.get(at).and_then(|word| word.parse::<u32>().ok());
            let (first, spins) = (number(2).unwrap_or_default(), number(3) == Some(1));
            match kind {
                "here" => {
                    let nature = Nature {
                        ends_after: first,
                        spins,
                        late_end: number(4).filter(|&end| end > 0),
                        is_guessed: false,
                    };
                    known.natures.insert(place, nature);
                }
                "loop" => {
                    let contexts = first;
                    known.loops.insert(Loop(place), Overall { contexts, spins });
                }
                "busy" => {
                    known.busy.insert(place);
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

    const LOOKS: Habit = Habit {
        acts: false,
        reads_clock: false,
    };

    #[test]
    fn facts_are_taken_over_elsewhere() {
        let place = Place::new(7, Location::caller());
        let loops = Loops::default();
        let [one, other] = [1, 2].map(|context| place.loop_at(0).in_context(context));
        let acts = Habit {
            acts: true,
            ..LOOKS
        };
        loops.learn(one, Probed::Left(5), LOOKS, [].into_iter());
        loops.learn(one, Probed::Stayed, acts, [place].into_iter());
        loops.learn(other, Probed::Left(5_000), LOOKS, [].into_iter());
        let elsewhere = Loops::default();
        elsewhere.learn_facts(&loops.facts());
        let nature = elsewhere.nature(one, 0).expect("it was learnt");
        assert_eq!((nature.ends_after, nature.spins), (10, true));
        let late = elsewhere.nature(other, 0).expect("it was learnt");
        assert_eq!(late.late_end, Some(5_000));
        assert!(elsewhere.known().busy.contains(&place));
        assert_eq!(elsewhere.facts(), loops.facts());
    }

    #[test]
    fn where_a_loop_has_come_up_in_many_contexts_the_others_are_guessed() {
        let loops = Loops::default();
        let which = Place::new(7, Location::caller()).loop_at(0);
        for context in 0..u64::from(CONTEXTS) {
            assert_eq!(loops.nature(which.in_context(context), 0), None);
            let far = loops.far(which.in_context(context), LOOKS);
            assert_eq!(far == FAR, context < u64::from(OFTEN));
            let probed = if context == 9 {
                Probed::Stayed
            } else {
                Probed::Left(3)
            };
            loops.learn(which.in_context(context), probed, LOOKS, [].into_iter());
        }
        let guess = loops
            .nature(which.in_context(u64::MAX), 0)
            .expect("there were many");
        assert!(guess.is_guessed && guess.spins);
    }
}
