//! Random executions, one after the other, each [drawn](crate::explore::draw) as random walks are.
//!
//! Execution number n depends on the seed and n alone, and among several that go wrong the first is reported, so the
//! outcome is the same with any number of workers.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::{Arc, Director, Executor, Explored, Finish, Schedules, State, Transition, lock};
use crate::explore::draw::{Lot, Walks};
use crate::explore::quiet;
use crate::explore::random::LONGEST;
use crate::system::{Actor, ComponentId};
use crate::target::threads::operation::Action;
use crate::target::threads::world;

/// What the workers share.
struct Shared<'a> {
    walks: &'a Walks,
    next: AtomicU64,
    /// No execution from this one on is needed, in this round or at all.
    end: AtomicU64,
    /// How long executions of earlier rounds were.
    steps: u64,
    explored: Mutex<Explored>,
    /// Which execution went wrong, if one did.
    first: Mutex<Option<u64>>,
}

/// Draws who goes on.
struct Drawn {
    lot: Lot,
    longest: u64,
    taken: Vec<Transition>,
}

impl Director for Drawn {
    fn next(&mut self, state: &State, enabled: &[Transition]) -> Option<Transition> {
        if self.taken.len() as u64 >= self.longest {
            return None;
        }
        let actor = |&(thread, _): &Transition| Actor::Component(ComponentId(0), thread.0);
        let next = enabled[self.lot.next(enabled.iter().map(actor))];
        let pending = state.pending(next.0);
        let yields = pending.is_some_and(|pending| pending.action == Action::Yield);
        self.lot.went_on(actor(&next), yields);
        self.taken.push(next);
        Some(next)
    }
}

impl Schedules<'_> {
    /// Runs executions in which who goes on is drawn.
    pub(crate) fn draw(&self, walks: &Walks) -> Explored {
        let mut shared = Shared {
            walks,
            next: AtomicU64::new(0),
            end: AtomicU64::new(0),
            steps: 0,
            explored: Mutex::default(),
            first: Mutex::default(),
        };
        for round in walks.rounds() {
            if lock(&shared.first).is_some() {
                break;
            }
            let workers = self
                .workers
                .min((round.end - round.start).try_into().unwrap_or(usize::MAX));
            shared.next = AtomicU64::new(round.start);
            shared.end = AtomicU64::new(round.end);
            shared.steps = self.gauge.depth.load(Relaxed);
            std::thread::scope(|scope| {
                for _ in 1..workers {
                    scope.spawn(|| self.draw_all(&shared));
                }
                self.draw_all(&shared);
            });
        }
        let explored = shared.explored.into_inner();
        explored.unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Runs executions of a round until there are no more, each on a thread of the operating system that is fit for it.
    fn draw_all(&self, shared: &Shared<'_>) {
        let draw = || quiet::silence_tracing(|| self.draw_here(shared));
        while self.program.apart(draw) {}
    }

    /// Runs executions of a round until there are no more, or this thread of the operating system is not fit for them: then
    /// it says that there may be more.
    fn draw_here(&self, shared: &Shared<'_>) -> bool {
        let mut executor = Executor::new(Arc::clone(self.program));
        while !world::is_spoiled() {
            let number = shared.next.fetch_add(1, Relaxed);
            if number >= shared.end.load(Relaxed) || self.gauge.must_end() {
                return false;
            }
            self.draw_one(shared, &mut executor, number);
        }
        true
    }

    fn draw_one(&self, shared: &Shared<'_>, executor: &mut Executor, number: u64) {
        let mut drawn = Drawn {
            lot: shared.walks.lot(number, shared.steps),
            longest: shared.walks.longest.unwrap_or(LONGEST),
            taken: Vec::new(),
        };
        let finish = executor.run(&mut drawn);
        let state = executor.state();
        let steps = state.events.len() as u64;
        let is_whole = finish != Finish::Left;
        self.gauge.add(u64::from(is_whole), steps);
        self.gauge.reach(steps);
        let explored = &mut *lock(&shared.explored);
        explored.executions += u64::from(is_whole);
        explored.scheduling_points += steps;
        explored.cut_deeper |= !is_whole;
        explored.weakly_ordered = explored.weakly_ordered.max(executor.weakly_ordered());
        explored.went_round |= state.went_round;
        explored.has_drawn |= state.has_drawn();
        let first = &mut *lock(&shared.first);
        if is_whole
            && !(self.watch)(&state, &finish)
            && first.is_none_or(|earlier| number < earlier)
        {
            shared.end.fetch_min(number, Relaxed);
            *first = Some(number);
            explored.found = Some((drawn.taken, finish));
        }
    }
}
