//! Random walks: one execution after the other, each event [drawn](super::draw) from those enabled.
//!
//! Walk number n depends on the seed and n alone, and among several violations the one of the first walk is reported, so
//! the outcome is the same with any number of threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::crew::with_crew;
use super::draw::Walks;
use super::limits::Gauge;
use super::path::{Path, Wrong};
use super::visited::{Visit, Visited};
use super::walk::{Explored, LeftOut, Space};
use crate::system::{Failure, System};

/// How long a walk can get when nothing else bounds it.
pub(super) const LONGEST: u64 = 10_000;

pub(crate) fn explore<S: System, V: Visited<S> + Sync>(
    space: &Space<'_, S>,
    visited: &V,
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
        visited,
        gauge,
        initial,
        longest: walks.longest.unwrap_or(LONGEST),
        walks,
    };
    search.run(workers)
}

struct Random<'a, S: System, V> {
    space: &'a Space<'a, S>,
    visited: &'a V,
    gauge: &'a Gauge,
    initial: Vec<(usize, S::State)>,
    longest: u64,
    walks: &'a Walks,
}

/// The first walk that went wrong, and how.
type First = Mutex<Option<(u64, Path, Wrong)>>;

impl<S: System, V: Visited<S> + Sync> Random<'_, S, V> {
    fn run(&self, workers: usize) -> Explored {
        let next = AtomicU64::new(0);
        // No walk from this one on needs to be made, in this round or at all.
        let end = AtomicU64::new(0);
        // How long walks of earlier rounds were.
        let steps = AtomicU64::new(0);
        let first: First = Mutex::new(None);
        let work = |worker: usize| {
            let mut events = Vec::new();
            let steps = steps.load(Ordering::Relaxed);
            loop {
                self.space.quiesce(worker);
                let walk = next.fetch_add(1, Ordering::Relaxed);
                if walk >= end.load(Ordering::Relaxed) || self.gauge.must_end() {
                    break;
                }
                if let Some((path, wrong)) = self.walk(walk, steps, &mut events) {
                    end.fetch_min(walk, Ordering::Relaxed);
                    let mut first = first.lock().unwrap();
                    if first.as_ref().is_none_or(|(known, ..)| walk < *known) {
                        *first = Some((walk, path, wrong));
                    }
                }
            }
            self.space.leave(worker);
        };
        with_crew(workers, work, |crew| {
            for round in self.walks.rounds() {
                if self.initial.is_empty() || first.lock().unwrap().is_some() {
                    break;
                }
                next.store(round.start, Ordering::Relaxed);
                end.store(round.end, Ordering::Relaxed);
                steps.store(self.gauge.depth.load(Ordering::Relaxed), Ordering::Relaxed);
                crew.round((round.end - round.start).try_into().unwrap_or(workers));
            }
        });
        match first.into_inner().unwrap() {
            Some((_, path, wrong)) => Explored::found(path, wrong),
            None => Explored {
                found: None,
                left_out: Some(self.gauge.cut().map_or(LeftOut::NotDrawn, LeftOut::Cut)),
            },
        }
    }

    /// One walk, where earlier ones had up to `steps` steps.
    fn walk(&self, walk: u64, steps: u64, events: &mut Vec<S::Event>) -> Option<(Path, Wrong)> {
        let mut lot = self.walks.lot(walk, steps);
        let (start, state) = &self.initial[lot.below(self.initial.len())];
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
            // Where listing the events ran the steps of all of them, no other one may come to be run.
            if self.space.ends_at_first
                && self.space.system.guards_steps()
                && let Some((position, failure)) = self.first_failure(&state, events)
            {
                path.events.push(position);
                found = Some(Wrong::Failed(failure));
                break;
            }
            // An event that leaves the space is drawn again, without being put back.
            let mut open: Vec<usize> = (0..events.len()).collect();
            let actor = |position: &usize| {
                let task = self.space.system.task(&state, &events[*position]);
                task.actor
            };
            let successor = loop {
                if open.is_empty() {
                    break None;
                }
                let position = open.swap_remove(lot.next(open.iter().map(actor)));
                if let Some(successor) = self.space.take(&state, &events[position]) {
                    path.events.push(position);
                    lot.went_on(actor(&position), false);
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

    /// The first of the events of a state whose step fails, drawn or not.
    fn first_failure(&self, state: &S::State, events: &[S::Event]) -> Option<(usize, Failure)> {
        events.iter().enumerate().find_map(|(position, event)| {
            let failure = self.space.take(state, event)?.err()?;
            Some((position, failure))
        })
    }

    /// Notes a visit. A state is judged on every walk that meets it, so that a walk's outcome is its own.
    fn arrive(&self, state: &S::State) -> Option<Wrong> {
        let visit = self
            .space
            .identify(self.visited, state)
            .and_then(|fingerprint| {
                self.space.compare_to_itself(state)?;
                self.visited.visit(state, fingerprint, 0)
            });
        match visit {
            Ok(Visit::New) => self.gauge.add(1, 0),
            Ok(_) => {}
            Err(failure) => return Some(Wrong::Failed(failure)),
        }
        self.space.judge(state)
    }
}
