//! Depth first, with or without a depth bound, on any number of threads.
//!
//! One thread walks along the first new successor of each state as far as it goes, then back. All successors of a state
//! are looked up together when it is expanded, so that the memory they lie in is fetched at once; those that are new
//! wait on the stack. With a bound, a state met again at a smaller depth is expanded again, so that every state within
//! the bound is reached.
//!
//! Several threads share the visited states, and each that runs out of work is given the shallowest open branch of
//! another. Which of them meets a violation first depends on their timing, so then the search is done once more by one
//! thread: the counterexample is the same with any number of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::{mem, thread};

use super::crew::with_crew;
use super::limits::Gauge;
use super::path::{Path, Wrong};
use super::visited::{ANY_DEPTH, Visit, Visited};
use super::walk::{Explored, LeftOut, Space};
use crate::system::{Failure, Successor, System};
use crate::trace::Fingerprint;

/// How many steps a worker takes between looks at limits and at others who are idle.
const STRIDE: u32 = 256;

/// How many states beyond the bound are remembered, to see at the end whether they were reached otherwise.
const BEYOND: usize = 1 << 20;

pub(crate) fn explore<S: System, K: Visited<S> + Sync>(
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
        Err(explored) => return explored,
    };
    for (start, state) in initial {
        let arrival = space
            .identify(store, &state)
            .and_then(|fingerprint| search.arrive(&state, fingerprint, 0));
        let arrival = match arrival {
            Ok(arrival) => arrival,
            Err(failure) => return Explored::found(Path::starting(start), Wrong::Failed(failure)),
        };
        if matches!(arrival, Visit::Known) {
            continue;
        }
        gauge.add(u64::from(matches!(arrival, Visit::New)), 0);
        if gauge.must_end() {
            return Explored::to_the_end(gauge);
        }
        let path = Path {
            start,
            events: Vec::new(),
        };
        if let Some(wrong) = space.judge(&state) {
            return Explored::found(path, wrong);
        }
        roots.push(Branch {
            path,
            states: vec![Child {
                state,
                position: None,
            }],
        });
    }
    search.market.offer(roots);
    search.run(workers)
}

/// A part of the space for a worker to walk: some states, and the way to their common parent.
struct Branch<T> {
    path: Path,
    states: Vec<Child<T>>,
}

/// A state that waits to be expanded, and by which event its parent led to it; none for an initial state.
#[derive(Clone)]
struct Child<T> {
    state: T,
    position: Option<usize>,
}

struct Depth<'a, S: System, K> {
    space: &'a Space<'a, S>,
    store: &'a K,
    gauge: &'a Gauge,
    bound: Option<u64>,
    market: Market<Branch<S::State>>,
    found: AtomicBool,
}

/// The children of one state on the stack that are still to be expanded: a part of the walker's list, from the end.
struct Frame {
    first: usize,
    /// How the state that is being expanded, or whose children come after, was reached from their parent.
    taken: Option<usize>,
}

/// A state beyond the bound: its fingerprint, and the state itself where whole states are compared.
type Beyond<T> = (Fingerprint, Option<T>);

/// What a worker brings back.
struct Harvest<T> {
    found: Option<(Path, Wrong)>,
    beyond: Vec<Beyond<T>>,
    overflow: bool,
}

struct Walker<'w, S: System, K> {
    search: &'w Depth<'w, S, K>,
    worker: usize,
    /// The way to the parent of the first frame.
    prefix: Path,
    /// The depth of the children in the first frame.
    root_depth: u64,
    frames: Vec<Frame>,
    children: Vec<Child<S::State>>,
    events: Vec<S::Event>,
    /// The successors of the state that is being expanded, and their fingerprints.
    born: Vec<Successor<S::State>>,
    fingerprints: Vec<Fingerprint>,
    states: u64,
    transitions: u64,
    deepest: u64,
    beyond: Vec<Beyond<S::State>>,
    overflow: bool,
}

impl<S: System, K: Visited<S> + Sync> Depth<'_, S, K> {
    fn run(&self, workers: usize) -> Explored {
        let harvests = with_crew(
            workers,
            |worker| self.work(worker),
            |crew| crew.round(workers),
        );
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
        let unreached = |(fingerprint, state): &Beyond<S::State>| match state {
            Some(state) => !self.store.contains(state, *fingerprint, ANY_DEPTH),
            None => !self.store.contains_fingerprint(*fingerprint),
        };
        if explored.left_out.is_none() && (overflow || beyond.iter().any(unreached)) {
            explored.left_out = Some(LeftOut::Deeper);
        }
        explored
    }

    fn work(&self, worker: usize) -> Harvest<S::State> {
        let mut walker = Walker {
            search: self,
            worker,
            prefix: Path {
                start: 0,
                events: Vec::new(),
            },
            root_depth: 0,
            frames: Vec::new(),
            children: Vec::new(),
            events: Vec::new(),
            born: Vec::new(),
            fingerprints: Vec::new(),
            states: 0,
            transitions: 0,
            deepest: 0,
            beyond: Vec::new(),
            overflow: false,
        };
        let mut found = None;
        let _guard = CloseOnPanic(&self.market);
        self.space.leave(worker);
        while let Some(branch) = self.market.take() {
            self.space.quiesce(worker);
            found = walker.walk(branch);
            self.space.leave(worker);
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

    fn arrive(
        &self,
        state: &S::State,
        fingerprint: Fingerprint,
        depth: u64,
    ) -> Result<Visit, Failure> {
        let depth = if self.bound.is_some() { depth } else { 0 };
        self.store.visit(state, fingerprint, depth)
    }
}

impl<S: System, K: Visited<S> + Sync> Walker<'_, S, K> {
    fn walk(&mut self, branch: Branch<S::State>) -> Option<(Path, Wrong)> {
        self.prefix = branch.path;
        self.children = branch.states;
        let is_step = self
            .children
            .first()
            .is_some_and(|child| child.position.is_some());
        self.root_depth = (self.prefix.events.len() + usize::from(is_step)) as u64;
        self.frames = vec![Frame {
            first: 0,
            taken: None,
        }];
        let mut steps = 0;
        while let Some(frame) = self.frames.last_mut() {
            if self.children.len() == frame.first {
                self.frames.pop();
                continue;
            }
            let child = self.children.pop().expect("there is one in the frame");
            frame.taken = child.position;
            self.frames.push(Frame {
                first: self.children.len(),
                taken: None,
            });
            if let Some(wrong) = self.expand(&child.state) {
                return Some((self.path(), wrong));
            }
            steps += 1;
            if steps == STRIDE {
                steps = 0;
                self.tell();
                self.search.space.quiesce(self.worker);
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

    /// Looks up the successors of a state, whose children the last frame will hold.
    ///
    /// When something is wrong, the path ends there: `taken` of the last frame is the step to it, if it takes one.
    #[inline]
    fn expand(&mut self, state: &S::State) -> Option<Wrong> {
        let search = self.search;
        let depth = self.root_depth + self.frames.len() as u64 - 2;
        let at_bound = search.bound == Some(depth);
        let Self { events, born, .. } = self;
        let stuck = search.space.expand(state, events, born);
        if stuck.is_some() {
            self.born.clear();
            return stuck;
        }
        let (born, fingerprints) = (&mut self.born, &mut self.fingerprints);
        search.space.identify_each(search.store, born, fingerprints);
        let first = self.children.len();
        let mut wrong = None;
        for (born, &fingerprint) in self.born.drain(..).zip(&self.fingerprints) {
            let Successor { position, mut next } = born;
            if !search.space.admits(&mut next) {
                continue;
            }
            if at_bound {
                match next {
                    Ok(state) if search.store.contains(&state, fingerprint, ANY_DEPTH) => {}
                    // Perhaps a state within the bound, which is still to be met.
                    Ok(state) if self.beyond.len() < BEYOND => {
                        let state = K::IS_EXACT.then_some(state);
                        self.beyond.push((fingerprint, state));
                    }
                    _ => self.overflow = true,
                }
                continue;
            }
            self.transitions += 1;
            let state = match next {
                Ok(state) => state,
                Err(failure) => {
                    wrong = Some((position, Wrong::Failed(failure)));
                    break;
                }
            };
            match search.arrive(&state, fingerprint, depth + 1) {
                Err(failure) => {
                    wrong = Some((position, Wrong::Failed(failure)));
                    break;
                }
                Ok(Visit::Known) => continue,
                Ok(Visit::Nearer) => {}
                Ok(Visit::New) => {
                    self.states += 1;
                    self.deepest = self.deepest.max(depth + 1);
                    wrong = search.space.judge(&state).map(|wrong| (position, wrong));
                    if wrong.is_some() {
                        break;
                    }
                }
            }
            let position = Some(position);
            self.children.push(Child { state, position });
        }
        if let Some((position, wrong)) = wrong {
            return Some(self.wrong_at(position, wrong));
        }
        // The first comes off the list first.
        self.children[first..].reverse();
        None
    }

    fn wrong_at(&mut self, position: usize, wrong: Wrong) -> Wrong {
        self.frames
            .last_mut()
            .expect("the frame being filled")
            .taken = Some(position);
        wrong
    }

    /// The way to the state that is being looked at.
    fn path(&self) -> Path {
        let mut path = self.prefix.clone();
        path.events
            .extend(self.frames.iter().filter_map(|frame| frame.taken));
        path
    }

    /// Gives the waiting states of the shallowest frame that has any to whoever has nothing to do.
    fn share(&mut self) {
        let ends = self
            .frames
            .iter()
            .skip(1)
            .map(|frame| frame.first)
            .chain([self.children.len()]);
        let Some((at, (first, end))) = self
            .frames
            .iter()
            .map(|frame| frame.first)
            .zip(ends)
            .enumerate()
            .find(|(_, (first, end))| first < end)
        else {
            return;
        };
        let mut path = self.prefix.clone();
        path.events
            .extend(self.frames[..at].iter().filter_map(|frame| frame.taken));
        let states: Vec<_> = self.children.drain(first..end).collect();
        for frame in &mut self.frames[at + 1..] {
            frame.first -= states.len();
        }
        self.search.market.offer(vec![Branch { path, states }]);
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
            .store(self.children.len() as u64, Ordering::Relaxed);
    }
}

/// Where workers leave branches for each other. It closes when all have come for more and there is none.
struct Market<B> {
    state: Mutex<MarketState<B>>,
    changed: Condvar,
    takers: AtomicUsize,
    workers: usize,
}

/// Sends everybody home when a worker panics: nobody else would.
struct CloseOnPanic<'a, B>(&'a Market<B>);

impl<B> Drop for CloseOnPanic<'_, B> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.close();
        }
    }
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
