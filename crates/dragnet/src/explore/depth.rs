//! The depth-first engine: the [depth-first core](super::depth_first) with or without a depth bound, on any number of OS
//! threads.
//!
//! With a bound, a state met again at a smaller depth is expanded again, so that every state within the bound is reached.
//!
//! Workers share the visited states, each with a walk of its own. One that runs out of work is given the successors that
//! wait at the smallest depth on the stack of another. Which of them meets a violation first depends on timing, so the
//! search is then repeated by one worker: the counterexample is the same with any number of them.

use std::marker::PhantomData;
use std::mem;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use super::crew::with_crew;
use super::depth_first::{Advance, Branch, Decision, DepthFirst, Stack, Visitor};
use super::limits::Gauge;
use super::path::{Path, Wrong};
use super::visited::{ANY_DEPTH, Visit, Visited};
use super::walk::{Explored, LeftOut, Next, Space};
use super::work_queue::WorkQueue;
use crate::system::System;
use crate::trace::Fingerprint;

/// How many states a worker enters before it looks at limits and at idle workers.
const STRIDE: u32 = 256;

/// How many states behind the bound are remembered, to see at the end whether they were visited on other paths.
const MOST_BEHIND_BOUND: usize = 1 << 20;

pub(crate) fn explore<S: System, V: Visited<S> + Sync>(
    space: &Space<'_, S>,
    visited: &V,
    gauge: &Gauge,
    workers: usize,
    bound: Option<u64>,
) -> Explored {
    let initial = match space.initial() {
        Ok(initial) => initial,
        Err(explored) => return explored,
    };
    let search = Search {
        space,
        visited,
        gauge,
        bound,
        queue: WorkQueue::new(workers),
        is_over: AtomicBool::new(false),
    };
    let mut roots = Vec::new();
    for (start, state) in initial {
        let path = Path::starting(start);
        match space.identify(visited, &state) {
            Ok(fingerprint) => roots.push(Branch::rooted(path, state, fingerprint)),
            Err(failure) => return Explored::found(path, Wrong::Failed(failure)),
        }
        if gauge.must_end() {
            return Explored::to_the_end(gauge);
        }
    }
    search.queue.push(roots);
    search.run(workers)
}

struct Search<'a, S: System, V> {
    space: &'a Space<'a, S>,
    visited: &'a V,
    gauge: &'a Gauge,
    bound: Option<u64>,
    queue: WorkQueue<Branch<S::State>>,
    is_over: AtomicBool,
}

/// A worker of the search.
struct Worker<'a, S: System, V> {
    space: &'a Space<'a, S>,
    gauge: &'a Gauge,
    bound: Option<u64>,
    states: u64,
    deepest: u64,
    behind_bound: Vec<BehindBound<S::State>>,
    /// There were more of them.
    overflows: bool,
    visited: PhantomData<V>,
}

/// A state behind the bound: its fingerprint, and the state itself where whole states are compared.
type BehindBound<T> = (Fingerprint, Option<T>);

/// How the work of one worker ended.
struct Worked<T> {
    found: Option<(Path, Wrong)>,
    behind_bound: Vec<BehindBound<T>>,
    overflows: bool,
}

impl<S: System, V: Visited<S> + Sync> Search<'_, S, V> {
    fn run(&self, workers: usize) -> Explored {
        let work = |worker| self.work(worker);
        let all = with_crew(workers, work, |crew| crew.round(workers));
        let mut behind_bound = Vec::new();
        let mut overflows = false;
        for worked in all {
            if let Some((path, wrong)) = worked.found {
                return Explored::found(path, wrong);
            }
            behind_bound.extend(worked.behind_bound);
            overflows |= worked.overflows;
        }
        let mut explored = Explored::to_the_end(self.gauge);
        let is_unvisited = |(fingerprint, state): &BehindBound<S::State>| match state {
            Some(state) => !self.visited.contains(state, *fingerprint, ANY_DEPTH),
            None => !self.visited.contains_fingerprint(*fingerprint),
        };
        if explored.left_out.is_none() && (overflows || behind_bound.iter().any(is_unvisited)) {
            explored.left_out = Some(LeftOut::Deeper);
        }
        explored
    }

    fn work(&self, worker: usize) -> Worked<S::State> {
        let mut walk = DepthFirst::new(self.space, self.visited, self.bound.is_some());
        let mut visitor = Worker::<S, V> {
            space: self.space,
            gauge: self.gauge,
            bound: self.bound,
            states: 0,
            deepest: 0,
            behind_bound: Vec::new(),
            overflows: false,
            visited: PhantomData,
        };
        let mut found = None;
        let _guard = self.queue.close_on_panic();
        self.space.leave(worker);
        while let Some(branch) = self.queue.pop() {
            self.space.quiesce(worker);
            walk.begin(branch);
            found = self.walk(worker, &mut walk, &mut visitor);
            self.space.leave(worker);
            if found.is_some() || self.must_end() {
                self.is_over.store(true, Ordering::Relaxed);
                self.queue.close();
                break;
            }
        }
        Worked {
            found,
            behind_bound: visitor.behind_bound,
            overflows: visitor.overflows,
        }
    }

    /// Walks a branch to its end, unless the search must end before that.
    fn walk(
        &self,
        worker: usize,
        walk: &mut DepthFirst<'_, S, V>,
        visitor: &mut Worker<'_, S, V>,
    ) -> Option<(Path, Wrong)> {
        loop {
            let advance = walk.advance(visitor, STRIDE);
            visitor.report(walk);
            match advance {
                Advance::Found(path, wrong) => return Some((path, wrong)),
                Advance::Finished => return None,
                Advance::Paused => {}
            }
            self.space.quiesce(worker);
            if self.must_end() {
                return None;
            }
            if self.queue.has_idle_workers() {
                self.queue.push(walk.split());
            }
        }
    }

    fn must_end(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.gauge.must_end()
    }
}

impl<S: System, V: Visited<S>> Worker<'_, S, V> {
    /// Counts for the gauge what has been counted here.
    fn report(&mut self, walk: &mut DepthFirst<'_, S, V>) {
        self.gauge
            .add(mem::take(&mut self.states), walk.take_transitions());
        self.gauge.reach(self.deepest);
        let waiting = walk.stack().waiting() as u64;
        self.gauge.frontier.store(waiting, Ordering::Relaxed);
    }
}

impl<S: System, V: Visited<S>> Visitor<S> for Worker<'_, S, V> {
    #[inline]
    fn enter(&mut self, stack: &Stack<S::State>, visit: Visit) -> ControlFlow<Wrong, Decision> {
        let at = stack.top();
        if visit == Visit::New {
            self.states += 1;
            self.deepest = self.deepest.max(at.depth);
            if let Some(wrong) = self.space.judge(at.state) {
                return ControlFlow::Break(wrong);
            }
        }
        ControlFlow::Continue(match self.bound {
            Some(bound) if bound == at.depth => Decision::Cut,
            _ => Decision::Expand,
        })
    }

    fn cut(&mut self, to: Next<S::State>, fingerprint: Fingerprint) {
        match to {
            // Perhaps a state within the bound, which is still to be met.
            Ok(state) if self.behind_bound.len() < MOST_BEHIND_BOUND => {
                let state = V::IS_EXACT.then_some(state);
                self.behind_bound.push((fingerprint, state));
            }
            _ => self.overflows = true,
        }
    }
}
