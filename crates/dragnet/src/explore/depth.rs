//! Depth first, with or without a depth bound, on any number of threads.
//!
//! One thread walks along the first event of each state as far as it goes, then back. With a bound, a state met again
//! at a smaller depth is expanded again, so that every state within the bound is reached.
//!
//! Several threads share the visited states, and each that runs out of work is given the shallowest open branch of
//! another. Which of them meets a violation first depends on their timing, so then the search is done once more by one
//! thread: the counterexample is the same with any number of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::{mem, thread};

use super::limits::Gauge;
use super::path::{Path, Wrong};
use super::store::Store;
use super::walk::{Explored, LeftOut, Space, Successor};
use crate::system::System;
use crate::tables::Upsert;
use crate::trace::Fingerprint;

/// How many steps a worker takes between looks at limits and at others who are idle.
const STRIDE: u32 = 256;

/// How many states beyond the bound are remembered, to see at the end whether they were reached otherwise.
const BEYOND: usize = 1 << 20;

pub(crate) fn explore<S: System, K: Store<S>>(
    space: &Space<'_, S>,
    store: &K,
    gauge: &Gauge,
    workers: usize,
    bound: Option<u64>,
) -> Explored {
    let mut roots = Vec::new();
    let search = Depth {
        space,
        store,
        gauge,
        bound,
        market: Market::new(workers),
        found: AtomicBool::new(false),
    };
    let initial = match space.initial() {
        Ok(initial) => initial,
        Err(failure) => {
            let nowhere = Path {
                start: 0,
                events: Vec::new(),
            };
            return Explored::found(nowhere, Wrong::Failed(failure));
        }
    };
    for (start, state) in initial {
        let fingerprint = space.fingerprint(&state);
        match search.arrive(&state, fingerprint, 0) {
            Arrival::Known => continue,
            Arrival::New => {
                if let Some(wrong) = space.judge(&state) {
                    let events = Vec::new();
                    return Explored::found(Path { start, events }, wrong);
                }
            }
            Arrival::Nearer => {}
        }
        roots.push(Branch {
            path: Path {
                start,
                events: Vec::new(),
            },
            state,
            skip: 0,
            until: None,
        });
    }
    gauge.add(roots.len() as u64, 0);
    search.market.offer(roots);
    search.run(workers)
}

/// A part of the space for a worker to walk: a state, and which of its events.
struct Branch<T> {
    path: Path,
    state: T,
    /// The first event to take, and the one to stop before.
    skip: usize,
    until: Option<usize>,
}

struct Depth<'a, S: System, K> {
    space: &'a Space<'a, S>,
    store: &'a K,
    gauge: &'a Gauge,
    bound: Option<u64>,
    market: Market<Branch<S::State>>,
    found: AtomicBool,
}

enum Arrival {
    New,
    /// Known, but not this near to the start.
    Nearer,
    Known,
}

/// A state on the stack, and which of its events comes next. The events of all frames share one list.
struct Frame<T> {
    state: T,
    first: usize,
    next: usize,
    end: usize,
}

/// What a worker brings back.
struct Harvest {
    found: Option<(Path, Wrong)>,
    beyond: Vec<Fingerprint>,
    overflow: bool,
}

struct Walker<'w, S: System, K> {
    search: &'w Depth<'w, S, K>,
    worker: usize,
    frames: Vec<Frame<S::State>>,
    events: Vec<S::Event>,
    /// The way to the first frame.
    prefix: Path,
    states: u64,
    transitions: u64,
    deepest: u64,
    beyond: Vec<Fingerprint>,
    overflow: bool,
}

impl<S: System, K: Store<S>> Depth<'_, S, K> {
    fn run(&self, workers: usize) -> Explored {
        let harvests: Vec<Harvest> = if workers == 1 {
            vec![self.work(0)]
        } else {
            thread::scope(|scope| {
                let spawned: Vec<_> = (0..workers)
                    .map(|worker| scope.spawn(move || self.work(worker)))
                    .collect();
                let joined = spawned.into_iter().map(|handle| handle.join());
                joined
                    .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                    .collect()
            })
        };
        let mut beyond = Vec::new();
        let mut overflow = false;
        for harvest in harvests {
            if let Some((path, wrong)) = harvest.found {
                return Explored::found(path, wrong);
            }
            beyond.extend(harvest.beyond);
            overflow |= harvest.overflow;
        }
        let mut explored = Explored::to_the_end(self.gauge);
        let unreached = |fingerprint: &Fingerprint| {
            let same = self.store.with_prefix(fingerprint.0, 64);
            same.is_empty()
        };
        if explored.left_out.is_none() && (overflow || beyond.iter().any(unreached)) {
            explored.left_out = Some(LeftOut::Deeper);
        }
        explored
    }

    fn work(&self, worker: usize) -> Harvest {
        let mut walker = Walker {
            search: self,
            worker,
            frames: Vec::new(),
            events: Vec::new(),
            prefix: Path {
                start: 0,
                events: Vec::new(),
            },
            states: 0,
            transitions: 0,
            deepest: 0,
            beyond: Vec::new(),
            overflow: false,
        };
        let mut found = None;
        self.store.leave(worker);
        while let Some(branch) = self.market.take() {
            self.store.quiesce(worker);
            found = walker.walk(branch);
            self.store.leave(worker);
            if found.is_some() || self.must_end() {
                self.found.store(true, Ordering::Relaxed);
                self.market.close();
                break;
            }
        }
        walker.tell();
        Harvest {
            found,
            beyond: walker.beyond,
            overflow: walker.overflow,
        }
    }

    fn must_end(&self) -> bool {
        self.found.load(Ordering::Relaxed) || self.gauge.must_end()
    }

    fn arrive(&self, state: &S::State, fingerprint: Fingerprint, depth: u64) -> Arrival {
        let depth = if self.bound.is_some() { depth + 1 } else { 1 };
        match self.store.visit(state, fingerprint, depth, u64::min) {
            Upsert::New => Arrival::New,
            Upsert::Old(Some(known)) if known <= depth => Arrival::Known,
            Upsert::Old(None) if self.bound.is_none() => Arrival::Known,
            Upsert::Old(_) => Arrival::Nearer,
        }
    }
}

impl<S: System, K: Store<S>> Walker<'_, S, K> {
    fn walk(&mut self, branch: Branch<S::State>) -> Option<(Path, Wrong)> {
        self.frames.clear();
        self.events.clear();
        self.prefix = branch.path;
        if let Some(wrong) = self.enter(branch.state) {
            return Some((self.path(), wrong));
        }
        if let Some(frame) = self.frames.first_mut() {
            frame.next = frame.first + branch.skip;
            if let Some(until) = branch.until {
                frame.end = frame.first + until;
            }
        }
        let mut steps = 0;
        while let Some(frame) = self.frames.last_mut() {
            if frame.next == frame.end {
                let first = frame.first;
                self.frames.pop();
                self.events.truncate(first);
                continue;
            }
            let event = frame.next;
            frame.next += 1;
            if let Some(found) = self.step(event) {
                return Some(found);
            }
            steps += 1;
            if steps == STRIDE {
                steps = 0;
                self.tell();
                self.search.store.quiesce(self.worker);
                if self.search.must_end() {
                    return None;
                }
                if self.search.market.has_takers() {
                    self.share();
                }
            }
        }
        None
    }

    /// Takes one event of the last frame.
    #[inline]
    fn step(&mut self, event: usize) -> Option<(Path, Wrong)> {
        let search = self.search;
        let frame = self.frames.last().expect("the frame whose event it is");
        let successor = search.space.take(&frame.state, &self.events[event])?;
        self.transitions += 1;
        let (state, fingerprint) = match successor {
            Successor::Failed(failure) => return Some((self.path(), Wrong::Failed(failure))),
            Successor::State(state, fingerprint) => (state, fingerprint),
        };
        let depth = self.depth() + 1;
        match search.arrive(&state, fingerprint, depth) {
            Arrival::Known => return None,
            Arrival::Nearer => {}
            Arrival::New => {
                self.states += 1;
                self.deepest = self.deepest.max(depth);
                if let Some(wrong) = search.space.judge(&state) {
                    return Some((self.path(), wrong));
                }
            }
        }
        self.enter(state).map(|wrong| (self.path(), wrong))
    }

    /// The depth of the last frame.
    fn depth(&self) -> u64 {
        (self.prefix.events.len() + self.frames.len() - 1) as u64
    }

    /// Puts a state on the stack, or looks beyond it if it stands at the bound.
    fn enter(&mut self, state: S::State) -> Option<Wrong> {
        let first = self.events.len();
        let wrong = self.search.space.events(&state, &mut self.events);
        let end = self.events.len();
        self.frames.push(Frame {
            state,
            first,
            next: first,
            end,
        });
        if wrong.is_some() {
            return wrong;
        }
        if self.search.bound == Some(self.depth()) {
            self.look_beyond();
        }
        None
    }

    fn look_beyond(&mut self) {
        let frame = self.frames.last_mut().expect("it has just been entered");
        for event in &self.events[frame.first..frame.end] {
            match self.search.space.take(&frame.state, event) {
                None => {}
                Some(Successor::Failed(_)) => self.overflow = true,
                Some(Successor::State(state, fingerprint)) => {
                    if self.search.store.contains(&state, fingerprint) {
                        continue;
                    }
                    if self.beyond.len() == BEYOND {
                        self.overflow = true;
                    } else {
                        self.beyond.push(fingerprint);
                    }
                }
            }
        }
        frame.end = frame.first;
        self.events.truncate(frame.first);
    }

    /// The way to what the last frame's latest event led to.
    fn path(&self) -> Path {
        let mut path = self.prefix.clone();
        let taken = self.frames.iter().filter(|frame| frame.next > frame.first);
        path.events
            .extend(taken.map(|frame| frame.next - 1 - frame.first));
        path
    }

    /// Gives the open events of the shallowest frame that has any to whoever waits.
    fn share(&mut self) {
        let Some(at) = self.frames.iter().position(|frame| frame.next < frame.end) else {
            return;
        };
        let mut path = self.prefix.clone();
        let above = &self.frames[..at];
        path.events
            .extend(above.iter().map(|frame| frame.next - 1 - frame.first));
        let frame = &mut self.frames[at];
        let branch = Branch {
            path,
            state: frame.state.clone(),
            skip: frame.next - frame.first,
            until: Some(frame.end - frame.first),
        };
        frame.end = frame.next;
        self.search.market.offer(vec![branch]);
    }

    fn tell(&mut self) {
        let gauge = self.search.gauge;
        gauge.add(
            mem::take(&mut self.states),
            mem::take(&mut self.transitions),
        );
        gauge.reach(self.deepest);
        gauge
            .frontier
            .store(self.frames.len() as u64, Ordering::Relaxed);
    }
}

/// Where workers leave branches for each other. It closes when all have come for more and there is none.
struct Market<B> {
    state: Mutex<MarketState<B>>,
    changed: Condvar,
    takers: AtomicUsize,
    workers: usize,
}

struct MarketState<B> {
    offers: VecDeque<B>,
    waiting: usize,
    closed: bool,
}

impl<B> Market<B> {
    fn new(workers: usize) -> Self {
        Self {
            state: Mutex::new(MarketState {
                offers: VecDeque::new(),
                waiting: 0,
                closed: false,
            }),
            changed: Condvar::new(),
            takers: AtomicUsize::new(0),
            workers,
        }
    }

    fn offer(&self, branches: Vec<B>) {
        self.state.lock().unwrap().offers.extend(branches);
        self.changed.notify_all();
    }

    fn has_takers(&self) -> bool {
        self.takers.load(Ordering::Relaxed) > 0
    }

    /// The next branch; `None` when there will be no more.
    fn take(&self) -> Option<B> {
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        loop {
            if state.closed {
                return None;
            }
            if let Some(branch) = state.offers.pop_front() {
                state.waiting -= 1;
                let unserved = state.waiting.saturating_sub(state.offers.len());
                self.takers.store(unserved, Ordering::Relaxed);
                return Some(branch);
            }
            if state.waiting == self.workers {
                state.closed = true;
                self.changed.notify_all();
                return None;
            }
            self.takers.store(state.waiting, Ordering::Relaxed);
            state = self.changed.wait(state).unwrap();
        }
    }

    fn close(&self) {
        self.state.lock().unwrap().closed = true;
        self.changed.notify_all();
    }
}
