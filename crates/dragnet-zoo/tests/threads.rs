//! What is known of the programs with threads, and what every way to explore them says.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use dragnet::catalog::{AnyCheck, Entry, Selection, find};
use dragnet::engine::{Dpor, Engine, EngineName, Pct, Random, Reduction};
use dragnet::verdict::ViolationKind;
use dragnet::{Check, Control, Threads, Verdict};
use dragnet_zoo::threads::{connection_pool, entries, philosophers, work_stealing};

/// The reductions that are meant for more than a comparison.
const REDUCTIONS: [Reduction; 2] = [Reduction::Source, Reduction::Optimal];

fn check(entry: &Entry, bug: Option<&str>, parameters: &[(&str, &str)]) -> Box<dyn AnyCheck> {
    let mut selection = Selection::of(entry);
    if let Some(bug) = bug {
        selection = selection.with_bug(bug).expect("it is listed");
    }
    for (name, value) in parameters {
        selection = selection.with(name, value).expect("it is in the range");
    }
    entry
        .check(&selection)
        .expect("the selection fits the entry")
}

fn explore(mut check: Box<dyn AnyCheck>, reduction: Reduction, workers: usize) -> Verdict {
    let options = check.options_mut();
    assert_eq!(options.engine, Dpor::new().into());
    options.engine = Dpor::new().reduction(reduction).into();
    options.threads = workers;
    check.run_under(&Control::default())
}

/// Demands that a program holds, in so many executions with every reduction.
fn has_executions(name: &str, parameters: &[(&str, &str)], expected: u64) {
    let entries = entries();
    let entry = find(&entries, name).expect("it is bundled");
    for reduction in REDUCTIONS {
        for workers in [1, 2] {
            let verdict = explore(check(entry, None, parameters), reduction, workers);
            verdict.assert_holds();
            let work = verdict.statistics.schedules.expect("schedules were run");
            assert_eq!(
                work.executions, expected,
                "{name} {parameters:?} with the reduction {reduction} and {workers} workers"
            );
        }
    }
}

#[test]
fn the_accumulator_has_as_many_executions_as_are_known() {
    has_executions("accumulator", &[], 18);
    let of = |numbers, servers, expected| {
        let parameters = [("numbers", numbers), ("servers", servers)];
        has_executions("accumulator-replicas", &parameters, expected);
    };
    of("0", "1", 1);
    of("2", "1", 3);
    of("2", "2", 9);
    of("2", "3", 27);
    of("4", "3", 125);
    of("1", "5", 32);
}

#[test]
fn a_writer_and_readers_have_an_execution_for_each_set_of_readers_that_come_first() {
    has_executions("readers", &[("n", "0")], 1);
    has_executions("readers", &[("n", "2")], 4);
    has_executions("readers", &[], 256);
    has_executions("readers", &[("n", "10")], 1_024);
}

#[test]
fn the_last_zero_has_as_many_executions_as_its_authors_have_counted() {
    has_executions("lastzero", &[], 64);
    has_executions("lastzero", &[("n", "10")], 3_328);
}

#[test]
fn the_indexer_has_as_many_executions_as_its_authors_have_counted() {
    has_executions("indexer", &[("n", "11")], 1);
    has_executions("indexer", &[], 8);
}

#[test]
fn the_file_system_has_as_many_executions_as_its_authors_have_counted() {
    has_executions("filesystem", &[("n", "13")], 1);
    has_executions("filesystem", &[("n", "14")], 2);
    has_executions("filesystem", &[], 8);
}

#[test]
fn what_is_written_with_atomics_and_locks_has_as_many_executions_with_every_reduction() {
    has_executions("lock-free-stack", &[], 680);
    has_executions("connection-pool", &[], 420);
    has_executions("work-stealing", &[], 115);
    has_executions("locked-philosophers", &[], 6);
    has_executions("rw-cache", &[], 1_500);
}

#[test]
fn the_bounded_queue_has_as_many_executions_with_every_reduction() {
    has_executions("bounded-queue", &[("items", "1")], 418);
    has_executions("bounded-queue", &[], 9_980);
}

#[test]
fn every_program_holds_as_it_is() {
    for entry in entries() {
        for reduction in REDUCTIONS {
            let verdict = explore(check(&entry, None, &[]), reduction, 2);
            assert!(
                verdict.holds(),
                "{} {reduction}: {:?}",
                entry.name(),
                verdict.outcome
            );
        }
    }
}

#[test]
fn a_queue_that_looks_again_does_not_mind_to_be_woken_for_no_reason() {
    let parameters = [("consumers", "1"), ("items", "2"), ("spurious", "1")];
    let entries = entries();
    let queue = find(&entries, "bounded-queue").expect("it is bundled");
    let verdict = explore(check(queue, None, &parameters), Reduction::Source, 2);
    verdict.assert_holds();
    assert_eq!(
        verdict.within,
        ["1 wake-up for no reason at each condition variable"]
    );
}

/// Demands that a violation was found, and happens again when its trace is run again.
fn replays(entry: &Entry, bug: &str, parameters: &[(&str, &str)], verdict: &Verdict) {
    let name = entry.name();
    let found = verdict.violation().unwrap_or_else(|| {
        panic!("{name} {bug} {}: {:?}", verdict.engine, verdict.outcome);
    });
    let counterexample = found.counterexample.as_ref().expect("it has an execution");
    let replay = check(entry, Some(bug), parameters)
        .replay(&counterexample.trace)
        .unwrap_or_else(|error| panic!("{name} {bug} {}: {error}", verdict.engine));
    assert_eq!(replay.property, found.property, "{name} {bug}");
    assert_eq!(replay.violation, found.describe(), "{name} {bug}");
}

#[test]
fn every_bug_is_found_with_every_reduction_and_its_execution_replays() {
    for entry in entries() {
        for bug in entry.bugs() {
            for reduction in REDUCTIONS {
                for workers in [1, 2] {
                    let verdict = explore(check(&entry, Some(bug.name), &[]), reduction, workers);
                    replays(&entry, bug.name, &[], &verdict);
                }
            }
        }
    }
}

#[test]
fn random_walks_find_every_bug_with_a_fixed_seed() {
    for entry in entries() {
        for bug in entry.bugs() {
            // To lose a task takes so many changes of priorities, and no fewer.
            let engines = [
                Engine::from(Random::new().seed(1).walks(10_000)),
                Pct::new().seed(1).walks(10_000).priority_changes(3).into(),
            ];
            for engine in engines {
                let mut check = check(&entry, Some(bug.name), &[]);
                let options = check.options_mut();
                options.engine = engine;
                let verdict = check.run_under(&Control::default());
                replays(&entry, bug.name, &[], &verdict);
            }
        }
    }
}

#[test]
fn a_notification_that_comes_late_wakes_even_a_single_consumer_for_nothing() {
    let entries = entries();
    let queue = find(&entries, "bounded-queue").expect("it is bundled");
    let (bug, alone) = ("if-instead-of-while", [("consumers", "1")]);
    for reduction in REDUCTIONS {
        let verdict = explore(check(queue, Some(bug), &alone), reduction, 1);
        replays(queue, bug, &alone, &verdict);
    }
}

#[test]
fn a_deadlock_of_the_pool_says_who_holds_what() {
    let entries = entries();
    let pool = find(&entries, "connection-pool").expect("it is bundled");
    let verdict = explore(check(pool, Some("lock-order"), &[]), Reduction::Optimal, 1);
    let violation = verdict.violation().expect("two clients can meet");
    let ViolationKind::Deadlock(waiting) = &violation.kind else {
        panic!("{violation:?}");
    };
    let told: Vec<String> = waiting.iter().map(ToString::to_string).collect();
    for (who, holder) in [("client 0", "client 1"), ("client 1", "client 0")] {
        let its_own = told.iter().find(|line| line.starts_with(who));
        let line = its_own.unwrap_or_else(|| panic!("{who} does not wait: {told:?}"));
        assert!(line.contains("waits for the mutex of"), "{line}");
        assert!(line.contains(&format!("which {holder} holds")), "{line}");
    }
}

/// In how many ways a program ends, found state by state without any reduction.
fn ends(main: impl Fn() + Send + Sync + 'static) -> u64 {
    let ends = Arc::new(Mutex::new(HashSet::new()));
    let seen = Arc::clone(&ends);
    Check::new(Threads::new(main))
        .engine(EngineName::Breadth)
        .always("ends are counted", move |moment| {
            if moment.is_over() {
                seen.lock().unwrap().insert(moment.clone());
            }
            true
        })
        .run()
        .assert_holds();
    let ends = ends.lock().unwrap();
    ends.len() as u64
}

#[test]
fn breadth_first_finds_an_end_for_each_execution() {
    let dine = || philosophers::dine(3, philosophers::Order::SmallerFirst);
    assert_eq!(ends(dine), 6);
    let run_tasks = || work_stealing::run_tasks(2, 2, work_stealing::LastTask::Contended);
    assert_eq!(ends(run_tasks), 115);
    let borrow = || connection_pool::borrow(2, 1, connection_pool::Order::ConnectionsFirst);
    let few = [("clients", "2"), ("connections", "1")];
    has_executions("connection-pool", &few, ends(borrow));
}
