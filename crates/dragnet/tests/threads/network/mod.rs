//! Processes that talk over a simulated network, and what a check says of them.

mod connections;
mod datagrams;
mod faults;
mod processes;
mod repeatable;
mod telling;

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};

use dragnet::engine::{Dpor, EngineName, Reduction};
use dragnet::net::{TcpListener, TcpStream};
use dragnet::{Check, Faults, Outcome, Threads, Verdict, process};

/// What a program comes to in all its executions, and how many there are.
struct Explored<R> {
    outcomes: BTreeSet<R>,
    executions: u64,
}

/// Runs a program in all ways that matter, with nothing going wrong around it. What comes of it is what `main` returns.
fn explore<R: Ord + Send + 'static>(main: impl Fn() -> R + Send + Sync + 'static) -> Explored<R> {
    explore_with(Faults::none(), main)
}

/// The same where things go wrong.
fn explore_with<R: Ord + Send + 'static>(
    faults: Faults,
    main: impl Fn() -> R + Send + Sync + 'static,
) -> Explored<R> {
    let (outcomes, verdict) = explore_by(EngineName::Dpor, faults, main);
    Explored {
        outcomes,
        executions: executions(&verdict),
    }
}

/// What a program comes to where an engine runs it.
fn explore_by<R: Ord + Send + 'static>(
    engine: EngineName,
    faults: Faults,
    main: impl Fn() -> R + Send + Sync + 'static,
) -> (BTreeSet<R>, Verdict) {
    let outcomes = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&outcomes);
    let main = move || {
        let outcome = main();
        seen.lock().unwrap().insert(outcome);
    };
    let verdict = Check::new(Threads::new(main))
        .faults(faults)
        .engine(engine)
        .threads(1)
        .run();
    verdict.assert_holds();
    let outcomes = std::mem::take(&mut *outcomes.lock().unwrap());
    (outcomes, verdict)
}

fn executions(verdict: &Verdict) -> u64 {
    verdict.statistics.schedules.expect("it ran").executions
}

/// Every reduction comes to the same verdict on a program, and all of them run as many executions in the end.
fn holds_in(executions_by_hand: u64, main: impl Fn() + Clone + Send + Sync + 'static) {
    for reduction in [Reduction::Sleep, Reduction::Source, Reduction::Optimal] {
        let verdict = Check::new(Threads::new(main.clone()))
            .engine(Dpor::new().reduction(reduction))
            .threads(1)
            .run();
        verdict.assert_holds();
        assert_eq!(executions(&verdict), executions_by_hand, "{reduction}");
    }
}

/// Why a check gives no answer.
fn refusal(check: Check<Threads>) -> String {
    let verdict = check.run();
    match verdict.outcome {
        Outcome::Inconclusive(why) => why,
        _ => panic!("it should be refused: {verdict}"),
    }
}

/// The kind of error that something failed with, if it did.
fn failed<T>(result: io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// A connection between the first process, which listens at port 7000, and one that is called `client` and does `talk`.
fn with_client(talk: impl Fn(TcpStream) + Send + Sync + 'static) -> TcpStream {
    let listener = TcpListener::bind("main:7000").unwrap();
    process::spawn("client", move || {
        talk(TcpStream::connect("main:7000").unwrap());
    });
    listener.accept().unwrap().0
}
