//! The primitives against those of `std`: random programs are run on real OS threads, many times, and every outcome that is
//! observed there must be one that Dragnet explores.

mod gaps;
mod interpret;
mod plan;

use std::collections::HashSet;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use dragnet::engine::{Dpor, Reduction};
use dragnet::verdict::ViolationKind;
use dragnet::{Check, Control, Outcome as Verdict, Threads};

use interpret::{OnPurpose, Outcome, ours, real};
use plan::{Draw, Plan};

/// Programs with more executions than this are left out,
const MOST_EXECUTIONS: usize = 20_000;
/// and only those with fewer are explored without reduction, too.
const FEW_EXECUTIONS: usize = 60;

/// `DRAGNET_CASES`: a program for each fifty, and for each program as many runs, between these.
const CASES_A_PROGRAM: u64 = 50;
const RUNS: std::ops::RangeInclusive<u64> = 200..=1_000;

fn programs() -> u64 {
    let cases = std::env::var("DRAGNET_CASES").ok();
    let cases: u64 = cases.and_then(|cases| cases.parse().ok()).unwrap_or(1_500);
    (cases / CASES_A_PROGRAM).max(1)
}

/// A check that says nothing of panics that belong to a program. The hook for that comes before Dragnet's own, which has to
/// see these panics.
fn check(threads: Threads) -> Check<Threads> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !info.payload().is::<OnPurpose>() {
                others(info);
            }
        }));
    });
    Check::new(threads)
}

/// The outcomes of all executions, unless there are too many of them or one ends in a deadlock.
fn explored(plan: &Plan, reduction: Reduction, most: usize) -> Option<HashSet<Outcome>> {
    let control = Control::default();
    let stop = control.stopper();
    let outcomes: Arc<Mutex<HashSet<Outcome>>> = Arc::default();
    let count = Arc::new(AtomicUsize::new(0));
    let (found, runs) = (Arc::clone(&outcomes), plan.clone());
    let executions = Arc::clone(&count);
    let threads = Threads::new(move || {
        let outcome = ours::run(&runs, None);
        found.lock().unwrap().insert(outcome);
        if executions.fetch_add(1, Relaxed) >= most {
            stop.store(true, Relaxed);
        }
    });
    let threads = threads
        .panics_are_fine()
        .spurious_wakeups(plan.spurious_wakeups());
    let check = check(threads)
        .engine(Dpor::new().reduction(reduction))
        .threads(1);
    let verdict = check.run_under(&control);
    match verdict.outcome {
        Verdict::Holds => Some(std::mem::take(&mut outcomes.lock().unwrap())),
        Verdict::Violated(violation) => {
            let is_deadlock = matches!(violation.kind, ViolationKind::Deadlock(_));
            assert!(is_deadlock, "{}: {plan:#?}", violation.describe());
            None
        }
        Verdict::Inconclusive(why) => {
            assert!(count.load(Relaxed) > most, "{why}: {plan:#?}");
            None
        }
    }
}

/// How long nothing may be heard of a run before its threads have deadlocked.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a program on real threads so often, and so many copies of it at the same time: they are the load under which threads
/// are preempted. A deadlock is a failure, and leaves the threads where they are.
fn observed(plan: &Plan, runs: u64, copies: u64) -> HashSet<Outcome> {
    let (says, hears) = mpsc::channel();
    for copy in 0..copies {
        let (program, says) = (plan.clone(), says.clone());
        std::thread::spawn(move || {
            let mut draw = Draw::new(copy);
            for _ in 0..runs.div_ceil(copies) {
                // A token that an earlier run has left.
                std::thread::park_timeout(Duration::ZERO);
                let outcome = real::run(&program, Some(draw.number()));
                if says.send(outcome).is_err() {
                    return;
                }
            }
        });
    }
    drop(says);
    let mut outcomes = HashSet::new();
    loop {
        match hears.recv_timeout(PATIENCE) {
            Ok(outcome) => outcomes.insert(outcome),
            Err(RecvTimeoutError::Disconnected) => return outcomes,
            Err(RecvTimeoutError::Timeout) => {
                panic!("no execution deadlocks, but real threads do: {plan:#?}")
            }
        };
    }
}

fn assert_contains(explored: &HashSet<Outcome>, observed: &HashSet<Outcome>, plan: &Plan) {
    if let Some(outcome) = observed.difference(explored).next() {
        panic!(
            "real threads come to {outcome:?}, and none of the {} outcomes explored is that: {plan:#?}",
            explored.len()
        );
    }
}

#[test]
fn every_outcome_of_real_threads_is_explored() {
    let programs = programs();
    let runs = programs.clamp(*RUNS.start(), *RUNS.end());
    let (mut number, mut done, mut seen, mut all) = (0, 0, 0, 0);
    while done < programs {
        let plan = Plan::random(number);
        number += 1;
        let explored_by_default = match explored(&plan, Reduction::Optimal, MOST_EXECUTIONS) {
            // Where nothing depends on the schedule, there is not much to be seen.
            Some(outcomes) if outcomes.len() > 1 => outcomes,
            _ => continue,
        };
        done += 1;
        let copies = [1, 2, 4, 8][done as usize % 4];
        let observed = observed(&plan, runs, copies);
        assert_contains(&explored_by_default, &observed, &plan);
        seen += observed.len();
        all += explored_by_default.len();
        if explored_by_default.len() <= FEW_EXECUTIONS
            && let Some(enumerated) = explored(&plan, Reduction::None, MOST_EXECUTIONS)
        {
            assert_eq!(enumerated, explored_by_default, "{plan:#?}");
        }
    }
    println!(
        "{done} of {number} programs, {runs} real runs each: {seen} of {all} outcomes observed"
    );
}
