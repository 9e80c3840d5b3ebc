//! Random walks: one execution after the other, each event drawn evenly from those enabled.
//!
//! Walk number n depends on the seed and n alone, and among several violations the one of the first walk is reported, so
//! the outcome is the same with any number of threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::crew::with_crew;
use super::limits::Gauge;
use super::path::{Path, Wrong};
use super::store::Store;
use super::walk::{Explored, LeftOut, Space};
use crate::system::System;
use crate::tables::{PRESENT, Upsert};
use crate::trace::{GOLDEN, scatter};

/// How long a walk can get when nothing else bounds it.
pub(super) const LONGEST: u64 = 10_000;

/// Which walks to make.
pub(crate) struct Walks {
    pub(crate) seed: u64,
    pub(crate) count: u64,
    pub(crate) longest: Option<u64>,
}

pub(crate) fn explore<S: System, K: Store<S>>(
    space: &Space<'_, S>,
    store: &K,
    gauge: &Gauge,
    workers: usize,
    walks: &Walks,
) -> Explored {
    let initial = match space.initial() {
        Ok(initial) => initial,
        Err(explored) => return explored,
    };
    let search = Random {
        space,
        store,
        gauge,
        initial,
        longest: walks.longest.unwrap_or(LONGEST),
        seed: walks.seed,
    };
    search.run(workers, walks.count)
}

struct Random<'a, S: System, K> {
    space: &'a Space<'a, S>,
    store: &'a K,
    gauge: &'a Gauge,
    initial: Vec<(usize, S::State)>,
    longest: u64,
    seed: u64,
}

/// The first walk that went wrong, and how.
type First = Mutex<Option<(u64, Path, Wrong)>>;

impl<S: System, K: Store<S>> Random<'_, S, K> {
    fn run(&self, workers: usize, count: u64) -> Explored {
        let next = AtomicU64::new(0);
        // No walk from this one on needs to be made.
        let end = AtomicU64::new(if self.initial.is_empty() { 0 } else { count });
        let first: First = Mutex::new(None);
        let work = |worker: usize| {
            let mut events = Vec::new();
            loop {
                self.space.quiesce(worker);
                let walk = next.fetch_add(1, Ordering::Relaxed);
                if walk >= end.load(Ordering::Relaxed) || self.gauge.must_end() {
                    break;
                }
                if let Some((path, wrong)) = self.walk(walk, &mut events) {
                    end.fetch_min(walk, Ordering::Relaxed);
                    let mut first = first.lock().unwrap();
                    if first.as_ref().is_none_or(|(known, ..)| walk < *known) {
                        *first = Some((walk, path, wrong));
                    }
                }
            }
            self.space.leave(worker);
        };
        with_crew(workers, work, |crew| crew.round(workers));
        match first.into_inner().unwrap() {
            Some((_, path, wrong)) => Explored::found(path, wrong),
            None => Explored {
                found: None,
                left_out: Some(self.gauge.cut().map_or(LeftOut::NotDrawn, LeftOut::Cut)),
            },
        }
    }

    fn walk(&self, walk: u64, events: &mut Vec<S::Event>) -> Option<(Path, Wrong)> {
        let mut draw = Draw::new(self.seed, walk);
        let (start, state) = &self.initial[draw.below(self.initial.len())];
        let mut state = state.clone();
        let mut path = Path {
            start: *start,
            events: Vec::new(),
        };
        let mut found = self.arrive(&state);
        while found.is_none() && (path.events.len() as u64) < self.longest {
            events.clear();
            found = self.space.events(&state, events);
            if found.is_some() || events.is_empty() || self.gauge.must_end() {
                break;
            }
            // An event that leaves the space is drawn again, without being put back.
            let mut open: Vec<usize> = (0..events.len()).collect();
            let successor = loop {
                if open.is_empty() {
                    break None;
                }
                let position = open.swap_remove(draw.below(open.len()));
                if let Some(successor) = self.space.take(&state, &events[position]) {
                    path.events.push(position);
                    break Some(successor);
                }
            };
            self.gauge.add(0, u64::from(successor.is_some()));
            match successor {
                None => break,
                Some(Err(failure)) => found = Some(Wrong::Failed(failure)),
                Some(Ok(next)) => {
                    found = self.arrive(&next);
                    state = next;
                }
            }
        }
        self.gauge.reach(path.events.len() as u64);
        found.map(|wrong| (path, wrong))
    }

    /// Notes a visit. A state is judged on every walk that meets it, so that a walk's outcome is its own.
    fn arrive(&self, state: &S::State) -> Option<Wrong> {
        let fingerprint = self.space.fingerprint(state);
        if self.store.visit(state, fingerprint, PRESENT, |old, _| old) == Upsert::New {
            self.gauge.add(1, 0);
        }
        self.space.judge(state)
    }
}

/// Random numbers that are the same everywhere: SplitMix64.
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(seed: u64, walk: u64) -> Self {
        Self(scatter(seed).wrapping_add(scatter(walk.wrapping_add(1))))
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(GOLDEN);
        let drawn = u128::from(scatter(self.0));
        ((drawn * end as u128) >> 64) as usize
    }
}
