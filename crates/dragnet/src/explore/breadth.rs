//! Breadth first, level by level, on any number of threads.
//!
//! Each level ends before a verdict, so a counterexample is shortest. It is also the same with any number of threads:
//! among the parents of a state on the level before, the one with the least fingerprint is remembered, and among several
//! findings of one level the least is reported.
//!
//! A visited state's value packs its level above the first bits of its parent's fingerprint. The way to a state is found
//! backwards through these, then forwards by taking every event and comparing fingerprints.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{mem, thread};

use super::crew::with_crew;
use super::limits::Gauge;
use super::parent_links::ParentLinks;
use super::path::{Execution, Finding, Path, Wrong};
use super::visited::ANY_DEPTH;
use super::walk::{Explored, LeftOut, Space};
use crate::step_guard;
use crate::system::{Successor, System};
use crate::tables::{Chunk, Upsert};
use crate::trace::Fingerprint;

const PARENT_BITS: u32 = 44;
/// The deepest level that is told apart from others; deeper ones share it.
const DEEPEST: u64 = (1 << (63 - PARENT_BITS)) - 1;

/// How many successors are computed before the first of them is looked up. Their places in the set are on their way
/// to the cache together.
const BATCH: usize = 32;

/// How many states before its turn a state is announced to the system.
const AHEAD: usize = 2;

/// Successors that are looked up together.
struct Batch<T> {
    born: Vec<Successor<T>>,
    /// Each successor's own fingerprint, once it is known, and its parent's.
    fingerprints: Vec<Fingerprint>,
    parents: Vec<Fingerprint>,
    /// Those whose place in the set was being moved: they are looked up with the next batch.
    late: Vec<(Successor<T>, Fingerprint)>,
}

/// What looking up a successor came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    New,
    /// It is known, or failed.
    Done,
    Late,
}

/// What one worker brings back from a level.
struct Harvest {
    finding: Option<Finding>,
    states: u64,
    transitions: u64,
}

pub(crate) fn explore<S: System, L: ParentLinks<S> + Sync>(
    space: &Space<'_, S>,
    links: &L,
    gauge: &Gauge,
    workers: usize,
    bound: Option<u64>,
) -> Explored {
    Breadth {
        space,
        links,
        gauge,
        workers,
        level: AtomicU64::new(0),
        current: Mutex::default(),
        next: Mutex::default(),
    }
    .run(bound)
}

struct Breadth<'a, S: System, L> {
    space: &'a Space<'a, S>,
    links: &'a L,
    gauge: &'a Gauge,
    workers: usize,
    level: AtomicU64,
    /// What is left of the level, and what the next one has so far.
    current: Mutex<Vec<Chunk<S::State>>>,
    next: Mutex<Vec<Chunk<S::State>>>,
}

impl<S: System, L: ParentLinks<S> + Sync> Breadth<'_, S, L> {
    fn run(&self, bound: Option<u64>) -> Explored {
        let _attendance = self.space.attend();
        let mut finding = None;
        if let Err(explored) = self.start(&mut finding) {
            return explored;
        }
        let work = |worker| self.work(worker);
        with_crew(self.workers, work, |crew| {
            for level in 0.. {
                if let Some(found) = finding {
                    return self.report(&found);
                }
                let mut current = mem::take(&mut *self.next.lock().unwrap());
                if self.gauge.must_end() || current.is_empty() {
                    return Explored::to_the_end(self.gauge);
                }
                self.gauge.reach(level);
                if bound == Some(level) {
                    return self.at_bound(&current);
                }
                let chunks = current.len();
                self.level.store(level, Ordering::Relaxed);
                mem::swap(&mut *self.current.lock().unwrap(), &mut current);
                for harvest in crew.round(chunks) {
                    self.gauge.add(harvest.states, harvest.transitions);
                    if let Some(found) = harvest.finding {
                        Finding::keep_least(&mut finding, found);
                    }
                }
                self.space.quiesce(0);
            }
            unreachable!("levels go on until one of them ends the search")
        })
    }

    /// The first level.
    fn start(&self, finding: &mut Option<Finding>) -> Result<(), Explored> {
        let initial = self.space.initial()?;
        let mut chunk = Chunk::new(self.space.domain);
        for (start, state) in initial {
            let failed = |failure| Explored::found(Path::starting(start), Wrong::Failed(failure));
            let fingerprint = self.space.identify(self.links, &state).map_err(failed)?;
            let root = Fingerprint(0);
            let visit = self
                .links
                .link(&state, fingerprint, value(0, root), |old, _| old);
            if visit.map_err(failed)? != Upsert::New {
                continue;
            }
            self.gauge.add(1, 0);
            self.gauge.frontier.fetch_add(1, Ordering::Relaxed);
            if self.gauge.must_end() {
                break;
            }
            if let Some(wrong) = self.space.judge(&state) {
                Finding::keep_least(finding, Finding::at(0, fingerprint, wrong));
            }
            self.keep(state, &mut chunk);
        }
        self.keep_all(chunk);
        Ok(())
    }

    /// Expands states of a level until none are left; the new ones are the next.
    fn work(&self, worker: usize) -> Harvest {
        let level = self.level.load(Ordering::Relaxed);
        let mut harvest = Harvest {
            finding: None,
            states: 0,
            transitions: 0,
        };
        let mut events = Vec::new();
        let mut batch = Batch {
            born: Vec::new(),
            fingerprints: Vec::new(),
            parents: Vec::new(),
            late: Vec::new(),
        };
        let mut grown = Chunk::new(self.space.domain);
        loop {
            self.space.quiesce(worker);
            if self.gauge.must_end() || self.space.ends_at_first && harvest.finding.is_some() {
                break;
            }
            let Some(chunk) = self.current.lock().unwrap().pop() else {
                if batch.born.is_empty() {
                    break;
                }
                thread::yield_now();
                self.settle(level, &mut batch, &mut grown, &mut harvest);
                self.tell(&mut harvest, 0);
                continue;
            };
            for (at, state) in chunk.iter().enumerate() {
                if let Some(ahead) = chunk.get(at + AHEAD) {
                    self.space.system.anticipate(ahead);
                }
                self.expand(level, state, &mut events, &mut batch, &mut harvest.finding);
                let found = harvest.finding.as_ref();
                if found.is_some_and(|found| !found.wrong.is_violation()) {
                    // The other states of the chunk would meet the same limit.
                    break;
                }
                if self.space.ends_at_first {
                    self.settle(level, &mut batch, &mut grown, &mut harvest);
                    if harvest.finding.is_some() {
                        break;
                    }
                }
                if batch.born.len() >= BATCH {
                    self.settle(level, &mut batch, &mut grown, &mut harvest);
                }
            }
            self.settle(level, &mut batch, &mut grown, &mut harvest);
            self.tell(&mut harvest, chunk.len());
        }
        self.keep_all(grown);
        self.space.leave(worker);
        harvest
    }

    /// Told now and then, so that progress and limits see a long level grow.
    fn tell(&self, harvest: &mut Harvest, expanded: usize) {
        let frontier = &self.gauge.frontier;
        frontier.fetch_add(harvest.states, Ordering::Relaxed);
        frontier.fetch_sub(expanded as u64, Ordering::Relaxed);
        self.gauge.add(
            mem::take(&mut harvest.states),
            mem::take(&mut harvest.transitions),
        );
    }

    #[inline]
    fn expand(
        &self,
        level: u64,
        state: &S::State,
        events: &mut Vec<S::Event>,
        batch: &mut Batch<S::State>,
        finding: &mut Option<Finding>,
    ) {
        let parent = match self.space.fingerprint(state) {
            Ok(parent) => parent,
            Err(failure) => {
                let found = Finding::at(level, Fingerprint(0), Wrong::Failed(failure));
                return Finding::keep_least(finding, found);
            }
        };
        let wrong = self.space.expand(state, events, &mut batch.born);
        batch.parents.resize(batch.born.len(), parent);
        if let Some(wrong) = wrong {
            Finding::keep_least(finding, Finding::at(level, parent, wrong));
        }
    }

    /// Looks up a batch of successors; those that are new are judged and kept for the next level.
    #[inline]
    fn settle(
        &self,
        level: u64,
        batch: &mut Batch<S::State>,
        grown: &mut Chunk<S::State>,
        harvest: &mut Harvest,
    ) {
        self.space
            .identify_each(self.links, &mut batch.born, &mut batch.fingerprints);
        // The new ones gather in front.
        let mut new = 0;
        for at in 0..batch.born.len() {
            let born = &mut batch.born[at];
            if !self.space.admits(&mut born.next) {
                continue;
            }
            let (fingerprint, parent) = (batch.fingerprints[at], batch.parents[at]);
            match self.arrive(level, born, fingerprint, parent, harvest) {
                Fate::Done => {}
                Fate::Late => batch.late.push((born.clone(), parent)),
                Fate::New => {
                    batch.born.swap(new, at);
                    batch.fingerprints.swap(new, at);
                    new += 1;
                }
            }
        }
        batch.born.truncate(new);
        batch.parents.clear();
        harvest.states += new as u64;
        let states = batch.born.iter().flat_map(|born| &born.next);
        self.space.judge_each(states, |at, wrong| {
            let found = Finding::at(level + 1, batch.fingerprints[at], wrong);
            Finding::keep_least(&mut harvest.finding, found);
        });
        for state in batch.born.drain(..).flat_map(|born| born.next) {
            self.keep(state, grown);
        }
        for (born, parent) in batch.late.drain(..) {
            batch.born.push(born);
            batch.parents.push(parent);
        }
    }

    /// Looks up a successor.
    #[inline]
    fn arrive(
        &self,
        level: u64,
        born: &Successor<S::State>,
        fingerprint: Fingerprint,
        parent: Fingerprint,
        harvest: &mut Harvest,
    ) -> Fate {
        let visit = match &born.next {
            Ok(state) => {
                let value = value(level + 1, parent);
                self.links.try_link(state, fingerprint, value, least_parent)
            }
            Err(failure) => Err(failure.clone()),
        };
        let visit = match visit {
            Ok(Some(visit)) => visit,
            Ok(None) => return Fate::Late,
            Err(failure) => {
                harvest.transitions += 1;
                let found = Finding {
                    level,
                    state: parent,
                    event: Some(born.position),
                    wrong: Wrong::Failed(failure),
                };
                Finding::keep_least(&mut harvest.finding, found);
                return Fate::Done;
            }
        };
        harvest.transitions += 1;
        if visit == Upsert::New {
            Fate::New
        } else {
            Fate::Done
        }
    }

    /// Adds a state to a chunk of the next level, which joins the others when it is full.
    #[inline]
    fn keep(&self, state: S::State, chunk: &mut Chunk<S::State>) {
        chunk.push(state);
        if chunk.is_full() {
            self.keep_all(chunk.take());
        }
    }

    #[cold]
    fn keep_all(&self, chunk: Chunk<S::State>) {
        if !chunk.is_empty() {
            self.next.lock().unwrap().push(chunk);
        }
    }

    /// At the depth bound: is there anything behind it?
    fn at_bound(&self, frontier: &[Chunk<S::State>]) -> Explored {
        let mut events = Vec::new();
        let mut born = Vec::new();
        let mut deeper = false;
        let mut finding = None;
        for state in frontier.iter().flat_map(|chunk| chunk.iter()) {
            if self.gauge.must_end() {
                return Explored::to_the_end(self.gauge);
            }
            let wrong = self.space.expand(state, &mut events, &mut born);
            for mut born in born.drain(..) {
                deeper |= self.space.admits(&mut born.next)
                    && !born.next.is_ok_and(|state| {
                        let fingerprint = self.space.identify(self.links, &state);
                        fingerprint.is_ok_and(|fingerprint| {
                            self.links.contains(&state, fingerprint, ANY_DEPTH)
                        })
                    });
            }
            // What is wrong with the state itself is still within the bound.
            if let Some(wrong) = wrong {
                let fingerprint = self.space.fingerprint(state);
                let found = Finding {
                    level: self.gauge.depth.load(Ordering::Relaxed),
                    state: fingerprint.unwrap_or(Fingerprint(0)),
                    event: None,
                    wrong,
                };
                Finding::keep_least(&mut finding, found);
            }
        }
        if let Some(found) = finding {
            return self.report(&found);
        }
        let mut explored = Explored::to_the_end(self.gauge);
        if deeper && explored.left_out.is_none() {
            explored.left_out = Some(LeftOut::Deeper);
        }
        explored
    }

    fn report(&self, found: &Finding) -> Explored {
        if !found.wrong.is_violation() {
            return Explored::found(Path::starting(0), found.wrong.clone());
        }
        step_guard::report();
        self.gauge.reach(found.length());
        let levels = self.way_to(found.state, found.level);
        let ends = |state: &S::State| self.space.shows(state, found.event, &found.wrong);
        match Execution::through(self.space, &levels, ends) {
            Some(mut path) => {
                path.events.extend(found.event);
                Explored::found(path, found.wrong.clone())
            }
            None => Explored {
                found: None,
                left_out: Some(LeftOut::Collision),
            },
        }
    }

    /// The fingerprints on the way to a state, candidates for each level from the first.
    fn way_to(&self, state: Fingerprint, level: u64) -> Vec<Vec<Fingerprint>> {
        let mut levels = vec![vec![state]];
        let mut children = self.links.with_prefix(state.0, 64);
        for level in (0..level).rev() {
            let mut parents = Vec::new();
            for (_, value) in &children {
                let prefix = value << (64 - PARENT_BITS);
                parents.extend(self.links.with_prefix(prefix, PARENT_BITS));
            }
            parents.retain(|(_, value)| value >> PARENT_BITS == (level + 1).min(DEEPEST));
            // Where whole states are kept, several can have one fingerprint, each with a parent of its own.
            parents.sort_unstable();
            parents.dedup();
            let fingerprints = parents.iter().map(|(fingerprint, _)| *fingerprint);
            let mut fingerprints: Vec<Fingerprint> = fingerprints.collect();
            fingerprints.dedup();
            levels.push(fingerprints);
            children = parents;
        }
        levels.reverse();
        levels
    }
}

/// What is remembered of a state: its level, counted from one, and the first bits of its parent.
#[inline]
fn value(level: u64, parent: Fingerprint) -> u64 {
    (level + 1).min(DEEPEST) << PARENT_BITS | parent.0 >> (64 - PARENT_BITS)
}

/// Among parents on one level the least is remembered; a state met again on a later level keeps its own.
#[inline]
fn least_parent(old: u64, new: u64) -> u64 {
    let same_level = old >> PARENT_BITS == new >> PARENT_BITS;
    // Without a branch: nothing here can be guessed.
    let merges = same_level & (old >> PARENT_BITS < DEEPEST);
    let least = old.min(new);
    old ^ ((old ^ least) & u64::from(merges).wrapping_neg())
}
