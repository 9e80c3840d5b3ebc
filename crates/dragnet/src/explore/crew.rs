//! Threads that work side by side, round after round.
//!
//! A search has many short rounds, a level each when it goes breadth first. Its threads stay, and wait for the next round
//! at the ready for a moment before they go to sleep: waking one, and starting one even more, costs as much as exploring
//! hundreds of states.

use std::cell::Cell;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::thread::{self, Scope};

use super::quiet;
use crate::weave::{AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, spin_loop};

/// How often a thread looks before it goes to sleep: for some tens of microseconds.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 1 << 12 };

/// The threads of a search, led by the one that has this. They start when there is work for more than one.
pub(super) struct Crew<'scope, 'env, T, W> {
    scope: &'scope Scope<'scope, 'env>,
    workers: usize,
    started: Cell<bool>,
    work: &'env W,
    meeting: &'env Meeting<T>,
}

struct Meeting<T> {
    /// Counts the rounds; the last value means that there are no more.
    round: AtomicU64,
    /// How many are still at work in this round, besides the leader.
    busy: AtomicUsize,
    brought: Mutex<Vec<(usize, thread::Result<T>)>>,
    changed: Condvar,
}

const OVER: u64 = u64::MAX;

/// Runs `lead`, which has `workers` threads do `work` whenever it wants, itself the first of them.
pub(super) fn with_crew<T: Send, R, W: Fn(usize) -> T + Sync>(
    workers: usize,
    work: W,
    lead: impl for<'scope, 'env> FnOnce(&Crew<'scope, 'env, T, W>) -> R,
) -> R {
    let meeting = Meeting::new();
    thread::scope(|scope| {
        // Also when something panics on the way.
        let _over = Over(&meeting);
        lead(&Crew {
            scope,
            workers,
            started: Cell::new(false),
            work: &work,
            meeting: &meeting,
        })
    })
}

impl<T: Send, W: Fn(usize) -> T + Sync> Crew<'_, '_, T, W> {
    /// Has everybody work once, and returns what each brought back; the leader works alone where there is only work for
    /// one.
    pub(super) fn round(&self, wanted: usize) -> Vec<T> {
        if self.workers == 1 || wanted <= 1 {
            return vec![(self.work)(0)];
        }
        if !self.started.replace(true) {
            for worker in 1..self.workers {
                let (meeting, work) = (self.meeting, self.work);
                quiet::spawn_worker(self.scope, move || meeting.serve(worker, work));
            }
        }
        self.meeting.begin(self.workers - 1);
        let own = (self.work)(0);
        let mut brought = self.meeting.end();
        brought.sort_by_key(|&(worker, _)| worker);
        let others = brought.into_iter().map(|(_, result)| match result {
            Ok(result) => result,
            Err(panic) => panic::resume_unwind(panic),
        });
        [own].into_iter().chain(others).collect()
    }
}

impl<T> Meeting<T> {
    fn new() -> Self {
        Self {
            round: AtomicU64::new(0),
            busy: AtomicUsize::new(0),
            brought: Mutex::new(Vec::new()),
            changed: Condvar::new(),
        }
    }

    /// Begins a round in which so many work besides the leader.
    fn begin(&self, others: usize) {
        self.busy.store(others, Ordering::Relaxed);
        self.change(|| _ = self.round.fetch_add(1, Ordering::Release));
    }

    /// Waits until the round is over, and returns what each of them brought, and who.
    fn end(&self) -> Vec<(usize, thread::Result<T>)> {
        self.wait_until(|| self.busy.load(Ordering::Acquire) == 0);
        mem::take(&mut *self.brought.lock().unwrap())
    }

    /// Works in every round until there are no more.
    fn serve(&self, worker: usize, work: &impl Fn(usize) -> T) {
        let mut seen = 0;
        loop {
            let now = || self.round.load(Ordering::Acquire);
            self.wait_until(|| now() != seen);
            seen = now();
            if seen == OVER {
                return;
            }
            let result = panic::catch_unwind(AssertUnwindSafe(|| work(worker)));
            self.brought.lock().unwrap().push((worker, result));
            self.change(|| _ = self.busy.fetch_sub(1, Ordering::Release));
        }
    }

    /// Changes something that others may be waiting for.
    fn change(&self, change: impl FnOnce()) {
        // Under the lock, so that nobody looks before it and falls asleep after it.
        let lock = self.brought.lock().unwrap();
        change();
        drop(lock);
        self.changed.notify_all();
    }

    fn wait_until(&self, happened: impl Fn() -> bool) {
        for _ in 0..LOOKS {
            if happened() {
                return;
            }
            spin_loop();
        }
        let mut asleep = self.brought.lock().unwrap();
        while !happened() {
            asleep = self.changed.wait(asleep).unwrap();
        }
    }
}

/// Sends everybody home.
struct Over<'m, T>(&'m Meeting<T>);

impl<T> Drop for Over<'_, T> {
    fn drop(&mut self) {
        let round = &self.0.round;
        self.0.change(|| round.store(OVER, Ordering::Release));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_worker_works_once_a_round_and_what_it_brings_is_in_order() {
        for workers in 1..5 {
            let rounds: Vec<Vec<usize>> = with_crew(
                workers,
                |worker| worker * 10,
                |crew| (0..100).map(|_| crew.round(workers)).collect(),
            );
            let all: Vec<usize> = (0..workers).map(|worker| worker * 10).collect();
            assert!(rounds.iter().all(|round| *round == all));
        }
    }

    #[test]
    fn work_for_one_wakes_nobody() {
        let brought = with_crew(3, |worker| worker, |crew| crew.round(1));
        assert_eq!(brought, [0]);
    }

    #[test]
    fn a_panic_of_any_worker_reaches_the_leader() {
        for panicking in 0..3 {
            let outcome = panic::catch_unwind(|| {
                let work = |worker| assert!(worker != panicking, "worker {worker} fails");
                with_crew(3, work, |crew| crew.round(3))
            });
            let payload = outcome.unwrap_err();
            let message = crate::panics::message(&*payload);
            assert_eq!(message, format!("worker {panicking} fails"));
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::Arc;

    use super::*;

    /// Two rounds with one worker besides the leader: nobody sleeps through a round or its end, and all that is brought
    /// arrives.
    #[test]
    fn every_round_ends_with_what_the_worker_brings() {
        loom::model(|| {
            let meeting = Arc::new(Meeting::new());
            let served = Arc::clone(&meeting);
            let worker = loom::thread::spawn(move || served.serve(1, &|worker| worker * 10));
            for _ in 0..2 {
                meeting.begin(1);
                let brought = meeting.end();
                let brought = brought
                    .into_iter()
                    .map(|(worker, what)| (worker, what.unwrap()));
                assert_eq!(brought.collect::<Vec<_>>(), [(1, 10)]);
            }
            drop(Over(&meeting));
            worker.join().unwrap();
        });
    }
}
