//! Data races on checked cells: what `std`'s `Arc` orders, and what memory orderings are too weak for.

mod counted;
mod litmus;
mod oneshot;
mod primitives;
mod slab;
mod through_an_arc;

use dragnet::cell::UnsafeCell;
use dragnet::engine::{Dpor, Engine, EngineName, Pct, Random, Reduction};
use dragnet::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use dragnet::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};
use dragnet::sync::{Arc, Barrier, Condvar, Mutex, Once, RwLock, mpsc};
use dragnet::{Check, Threads, Verdict, thread};

/// Data that is checked, and what says who may come to it.
#[derive(Default)]
struct Slot {
    flag: AtomicU32,
    other_flag: AtomicU32,
    data: Data,
}

/// Plain data.
struct Data(UnsafeCell<u32>);

// SAFETY: this is what the checks are for.
unsafe impl Sync for Data {}

impl Default for Data {
    fn default() -> Self {
        Self(UnsafeCell::new(0))
    }
}

impl Data {
    #[track_caller]
    fn write(&self, value: u32) {
        // SAFETY: the check says when somebody else may be here.
        self.0.with_mut(|data| unsafe { *data = value });
    }

    #[track_caller]
    fn read(&self) -> u32 {
        // SAFETY: the same.
        self.0.with(|data| unsafe { *data })
    }
}

/// Every engine that runs schedules, on the same program.
fn checks(threads: impl Fn() -> Threads) -> Vec<(String, Check<Threads>)> {
    let new = || Check::new(threads());
    let mut checks = Vec::new();
    for reduction in [
        Reduction::None,
        Reduction::Sleep,
        Reduction::Source,
        Reduction::Optimal,
    ] {
        for workers in [1, 2] {
            let check = new()
                .engine(Dpor::new().reduction(reduction))
                .threads(workers);
            checks.push((format!("{reduction}, {workers} workers"), check));
        }
    }
    for preemptions in [1, 2] {
        let check = new().engine(Dpor::new().preemptions(preemptions));
        checks.push((format!("{preemptions} preemptions"), check));
    }
    let walks = [
        Engine::from(Random::new().walks(500).seed(1)),
        Pct::new().walks(500).seed(1).into(),
    ];
    for engine in walks {
        let check = new().engine(engine);
        checks.push((engine.to_string(), check));
    }
    for engine in [EngineName::Breadth, EngineName::Depth] {
        checks.push((engine.to_string(), new().engine(engine)));
    }
    checks
}

/// Nothing is wrong with a program, whichever engine looks.
#[track_caller]
fn assert_no_race(program: fn()) {
    assert_no_race_in(|| Threads::new(program));
}

/// The same where no `Arc` of `std` can be what orders the accesses.
#[track_caller]
fn assert_no_race_without_std_arcs(program: fn()) {
    assert_no_race_in(|| Threads::new(program).without_std_arcs());
}

#[track_caller]
fn assert_no_race_in(threads: impl Fn() -> Threads) {
    for (engine, check) in checks(threads) {
        let verdict = check.run();
        let violation = verdict.violation().map(|violation| violation.describe());
        assert_eq!(violation, None, "{engine}");
    }
}

/// A program has a data race, whichever engine looks, and the execution replays.
#[track_caller]
fn assert_race(program: fn()) {
    assert_race_in(|| Threads::new(program));
}

/// The same where no `Arc` of `std` can be what orders the accesses.
#[track_caller]
fn assert_race_without_std_arcs(program: fn()) {
    assert_race_in(|| Threads::new(program).without_std_arcs());
}

#[track_caller]
fn assert_race_in(threads: impl Fn() -> Threads) {
    for (engine, check) in checks(threads) {
        let verdict = check.run();
        let described = verdict.violation().map(|violation| violation.describe());
        let described = described.unwrap_or_default();
        assert!(described.contains("data race"), "{engine}: {described:?}");
    }
}

fn verdict(program: impl Fn() + Send + Sync + 'static) -> Verdict {
    Check::new(Threads::new(program)).run()
}

#[track_caller]
fn races(program: impl Fn() + Send + Sync + 'static) -> bool {
    let verdict = verdict(program);
    assert_eq!(verdict.warnings, [] as [&str; 0]);
    match verdict.violation() {
        None => {
            verdict.assert_holds();
            false
        }
        Some(violation) => {
            let described = violation.describe();
            assert!(described.contains("data race"), "{described}");
            true
        }
    }
}
