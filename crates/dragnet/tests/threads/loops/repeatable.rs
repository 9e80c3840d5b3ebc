//! Traces of programs that spin are the same bytes with any number of workers.

use dragnet::engine::{Engine, EngineName, EngineOption};
use dragnet::sync::Arc;
use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::trace::Trace;
use dragnet::{Check, Threads, thread};

/// The engine with so many walks, if it makes random ones.
fn with_walks(engine: EngineName, walks: u64) -> Engine {
    let engine = Engine::from(engine);
    engine.with(EngineOption::Walks(walks)).unwrap_or(engine)
}

/// Threads that wait for their turns in spin loops, and that see different things before it comes. The last two may come in
/// the wrong order.
fn take_turns() {
    let turn = Arc::new(AtomicU32::new(0));
    let seen = Arc::new(AtomicU32::new(0));
    let threads: Vec<_> = (0..3)
        .map(|id| {
            let (turn, seen) = (Arc::clone(&turn), Arc::clone(&seen));
            thread::spawn(move || {
                let before = seen.fetch_add(1, SeqCst);
                while turn.load(SeqCst) < id.min(1) {
                    thread::yield_now();
                }
                turn.fetch_add(1, SeqCst);
                while turn.load(SeqCst) < 2 {}
                assert!(id < 2 || before > 0 || turn.load(SeqCst) == 3);
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// The same, where a thread changes something in each turn of its loop.
fn count_turns() {
    let stop = Arc::new(AtomicU32::new(0));
    let turns = Arc::new(AtomicU32::new(0));
    let counting: Vec<_> = (0..2)
        .map(|_| {
            let (stop, turns) = (Arc::clone(&stop), Arc::clone(&turns));
            thread::spawn(move || {
                while stop.load(SeqCst) == 0 {
                    turns.fetch_add(1, SeqCst);
                    thread::yield_now();
                }
            })
        })
        .collect();
    let seen = turns.load(SeqCst);
    stop.store(1, SeqCst);
    for thread in counting {
        thread.join().unwrap();
    }
    assert_ne!(seen, 1);
}

fn trace(program: fn(), engine: EngineName, workers: usize) -> Trace {
    let check = Check::new(Threads::new(program)).named("spins");
    let verdict = check
        .engine(with_walks(engine, 1_000))
        .threads(workers)
        .run();
    let found = verdict.counterexample();
    let found = found.unwrap_or_else(|| panic!("with {workers} workers: {verdict}"));
    let again = Check::new(Threads::new(program)).named("spins");
    again.replay(&found.trace).expect("it replays");
    found.trace.clone()
}

#[test]
fn the_trace_of_a_program_that_spins_is_the_same_with_any_number_of_workers() {
    let programs: [(&str, fn()); 2] = [("take turns", take_turns), ("count turns", count_turns)];
    for (name, program) in programs {
        for engine in [EngineName::Dpor, EngineName::Random, EngineName::Pct] {
            let alone = trace(program, engine, 1);
            for workers in [1, 2, 4, 4] {
                let others = trace(program, engine, workers);
                assert_eq!(alone, others, "{name}, {engine:?} with {workers} workers");
            }
        }
    }
}

#[test]
fn a_trace_has_only_what_its_own_execution_needs() {
    let one = trace(take_turns, EngineName::Dpor, 1);
    // A loop of each thread at most, and each with what is known of it in this execution and in all.
    assert!(one.facts.len() <= 12, "{:#?}", one.facts);
}
