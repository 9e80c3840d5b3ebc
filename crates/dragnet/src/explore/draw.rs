//! How random walks go on: evenly, or by priorities.
//!
//! Priorities are those of probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi and Nagarakatte, *A randomized
//! scheduler with probabilistic guarantees of finding bugs*, ASPLOS 2010). Each [actor](crate::system::Actor) has one, drawn when it is
//! first seen, and of those that are enabled the one with the highest takes its event. After some steps, drawn beforehand, the
//! actor of the last step falls behind all others. A bug that takes d - 1 such changes is found on a walk of k steps of n actors
//! with a probability of at least 1 / (n k^(d-1)).
//!
//! What deviates from the paper:
//! - How long walks are is not known beforehand. They are made in rounds, and changes are drawn within the longest walk of
//!   earlier rounds, which is the same with any number of workers.
//! - An actor may have several events, such as messages that can be received, or ways in which a wait can end. Among its
//!   events it is drawn evenly.
//! - Walks end although the thread with the highest priority may wait in a loop. A spin loop blocks its thread as long as
//!   nothing changes that it reads (`target::threads::spin`). Other loops that yield are fair only beyond the
//!   k steps of the bound, the longest walk of earlier rounds: from there on a thread that yields falls behind all others. The
//!   first walk, before which no k is known, has no changes, and its k is a thousand. Within k steps yields and sleeps change no priority,
//!   without which the bound would not hold for programs that have them.

use std::collections::HashMap;
use std::ops::Range;

use crate::quantity::Seed;
use crate::system::Actor;
use crate::trace::{GOLDEN, scatter};

/// Which walks to make.
pub(crate) struct Walks {
    pub(crate) seed: Seed,
    pub(crate) count: u64,
    pub(crate) longest: Option<u64>,
    /// How often priorities change on a walk that goes by them. Without, it goes on evenly.
    pub(crate) priority_changes: Option<u32>,
}

/// How many steps of the first walk, before which nothing is known of their number, are like those within the bound.
const FIRST_WALK: u64 = 1_000;

/// Where the rounds of walks end that learn from earlier ones how long walks are.
const ROUNDS: [u64; 3] = [1, 16, u64::MAX];

impl Walks {
    /// The numbers of the walks of each round. A round begins when all walks of those before it are over.
    pub(super) fn rounds(&self) -> impl Iterator<Item = Range<u64>> {
        let ends = match self.priority_changes {
            None => &ROUNDS[ROUNDS.len() - 1..],
            Some(_) => &ROUNDS[..],
        };
        let count = self.count;
        let starts = [0].into_iter().chain(ends.iter().copied());
        let rounds = starts
            .zip(ends)
            .map(move |(start, &end)| start.min(count)..end.min(count));
        rounds.filter(|round| !round.is_empty())
    }

    /// What decides on a walk, where walks of earlier rounds had up to `steps` steps. It depends on nothing else.
    pub(super) fn lot(&self, walk: u64, steps: u64) -> Lot {
        let mut draw = Draw::new(self.seed, walk);
        let priorities = self.priority_changes.map(|count| {
            let count = if steps == 0 { 0 } else { count };
            let mut change = || 1 + draw.below(steps as usize) as u64;
            Priorities {
                of: HashMap::new(),
                steps: 0,
                fair_from: if steps == 0 { FIRST_WALK } else { steps },
                changes: (0..count).map(|_| change()).collect(),
                last: LAST,
            }
        });
        Lot { draw, priorities }
    }
}

/// Decides how one walk goes on.
pub(super) struct Lot {
    draw: Draw,
    priorities: Option<Priorities>,
}

struct Priorities {
    of: HashMap<Actor, u64>,
    /// How many steps have been taken,
    steps: u64,
    /// after how many of them who has just gone on falls behind,
    changes: Vec<u64>,
    /// and after how many of them who yields does.
    fair_from: u64,
    /// The lowest that somebody has who has yielded since then.
    last: u64,
}

/// Priorities that components begin with are higher than this,
const FIRST: u64 = 1 << 63;
/// those of who has fallen behind than this, and those of who has yielded beyond the bound are lower.
const LAST: u64 = 1 << 62;

impl Priorities {
    /// That of an actor; it is drawn when the actor is first seen.
    fn of(&mut self, actor: Actor, draw: &mut Draw) -> u64 {
        let priority = self.of.entry(actor);
        *priority.or_insert_with(|| draw.number() | FIRST)
    }
}

impl Lot {
    /// One of so many things, drawn evenly.
    pub(super) fn below(&mut self, count: usize) -> usize {
        self.draw.below(count)
    }

    /// The position of the event that comes next, among some that are enabled, of which the actors are given.
    pub(super) fn next(&mut self, actors: impl Iterator<Item = Actor> + Clone) -> usize {
        let Self { draw, priorities } = self;
        let Some(priorities) = priorities else {
            return draw.below(actors.count());
        };
        let (mut highest, mut count) = (0, 0);
        for actor in actors.clone() {
            let priority = priorities.of(actor, draw);
            if priority > highest {
                (highest, count) = (priority, 0);
            }
            count += usize::from(priority == highest);
        }
        let which = if count > 1 { draw.below(count) } else { 0 };
        let has_highest = |(_, actor): &(usize, Actor)| priorities.of[actor] == highest;
        let next = actors.enumerate().filter(has_highest).nth(which);
        next.expect("something is enabled").0
    }

    /// An actor has taken an event, perhaps to yield.
    pub(super) fn went_on(&mut self, actor: Actor, yields: bool) {
        let Self { draw, priorities } = self;
        let Some(priorities) = priorities else {
            return;
        };
        priorities.steps += 1;
        if yields && priorities.steps > priorities.fair_from {
            priorities.last -= 1;
            priorities.of.insert(actor, priorities.last);
        } else if priorities.changes.contains(&priorities.steps) {
            priorities.of.insert(actor, draw.number() % LAST + LAST);
        }
    }
}

/// Random numbers that are the same everywhere: SplitMix64.
struct Draw(u64);

impl Draw {
    fn new(Seed(seed): Seed, walk: u64) -> Self {
        Self(scatter(seed).wrapping_add(scatter(walk.wrapping_add(1))))
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        scatter(self.0)
    }

    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.number()) * end as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::ComponentId;

    fn actor(component: usize) -> Actor {
        Actor::Component(ComponentId(component), 0)
    }

    fn walks(priority_changes: Option<u32>) -> Walks {
        Walks {
            seed: Seed(7),
            count: 100,
            longest: None,
            priority_changes,
        }
    }

    /// The components that go on, where three always can, with two events each.
    fn way(changes: Option<u32>, walk: u64, steps: u64) -> Vec<usize> {
        let mut lot = walks(changes).lot(walk, steps);
        let enabled = [0, 0, 1, 1, 2, 2];
        let mut way = Vec::new();
        for _ in 0..steps {
            let component = enabled[lot.next(enabled.into_iter().map(actor))];
            lot.went_on(actor(component), false);
            way.push(component);
        }
        way
    }

    fn turns(way: &[usize]) -> usize {
        way.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }

    #[test]
    fn rounds_have_every_walk_once() {
        for changes in [None, Some(0), Some(2)] {
            for count in [0, 1, 5, 16, 17, 100] {
                let walks = Walks {
                    count,
                    ..walks(changes)
                };
                let all: Vec<u64> = walks.rounds().flatten().collect();
                assert_eq!(all, (0..count).collect::<Vec<_>>(), "{changes:?}");
            }
        }
    }

    #[test]
    fn a_component_goes_on_until_its_priority_changes() {
        let mut most = 0;
        for walk in 0..1_000 {
            assert_eq!(turns(&way(Some(0), walk, 50)), 0);
            let turns = turns(&way(Some(2), walk, 50));
            assert!(turns <= 2, "two changes of priority make {turns} turns");
            most = most.max(turns);
        }
        assert_eq!(most, 2);
    }

    #[test]
    fn each_order_of_two_changes_is_as_likely_as_it_should_be() {
        // Any of three begins, and each of ten steps is the last before a change with the same probability.
        let mut begins = [0; 3];
        let mut ends = [0; 10];
        for walk in 0..30_000 {
            let way = way(Some(1), walk, 10);
            begins[way[0]] += 1;
            let before = way.iter().take_while(|&&other| other == way[0]).count();
            ends[before - 1] += 1;
        }
        assert!(
            begins.iter().all(|count| (9_500..10_500).contains(count)),
            "{begins:?}"
        );
        assert!(
            ends.iter().all(|count| (2_700..3_300).contains(count)),
            "{ends:?}"
        );
    }

    #[test]
    fn who_yields_keeps_its_priority_within_the_bound() {
        for walk in 0..100 {
            let mut lot = walks(Some(0)).lot(walk, 9);
            let first = lot.next((0..3).map(actor));
            for _ in 0..9 {
                assert_eq!(lot.next((0..3).map(actor)), first);
                lot.went_on(actor(first), true);
            }
            lot.went_on(actor(first), true);
            assert_ne!(
                lot.next((0..3).map(actor)),
                first,
                "beyond it others go first"
            );
        }
    }

    #[test]
    fn beyond_the_bound_who_yields_is_behind_all_others() {
        for walk in 0..100 {
            let mut lot = walks(Some(3)).lot(walk, 0);
            let mut seen = Vec::new();
            for _ in 0..FIRST_WALK {
                let component = lot.next((0..3).map(actor));
                lot.went_on(actor(component), true);
                assert_eq!(*seen.first().unwrap_or(&component), component);
                seen = vec![component];
            }
            seen.clear();
            for _ in 0..9 {
                let component = lot.next((0..3).map(actor));
                lot.went_on(actor(component), true);
                seen.push(component);
            }
            assert_eq!(seen[..3], seen[3..6], "they take turns");
            assert_eq!(seen[..3], seen[6..], "they take turns");
        }
    }

    #[test]
    fn among_the_events_of_a_component_each_is_drawn() {
        let mut counts = [0; 4];
        for walk in 0..4_000 {
            let mut lot = walks(Some(0)).lot(walk, 1);
            counts[lot.next([actor(5); 4].into_iter())] += 1;
        }
        assert!(
            counts.iter().all(|count| (850..1_150).contains(count)),
            "{counts:?}"
        );
    }
}
