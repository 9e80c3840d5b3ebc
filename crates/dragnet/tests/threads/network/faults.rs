//! Connections that break, and processes that crash.

use std::io::{ErrorKind, Read, Write};

use dragnet::engine::EngineName;
use dragnet::net::{TcpListener, TcpStream, UdpSocket};
use dragnet::process::{self, Process};
use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::sync::{Arc, Mutex};
use dragnet::{Check, Faults, Threads, crashes, duplicates, partitions, resets, restarts, thread};

use super::{explore, explore_by, explore_with, failed, with_client};

/// Processes crash, and do not come back.
fn crashes_for_good(budget: u32) -> Faults {
    crashes(budget).and(restarts(0))
}

const RESET: Option<ErrorKind> = Some(ErrorKind::ConnectionReset);

#[test]
fn who_reads_sees_that_the_connection_breaks() {
    let explored = explore_with(resets(1), || {
        let mut stream = with_client(|mut stream| drop(stream.write_all(b"x")));
        failed(stream.read_exact(&mut [0]))
    });
    assert_eq!(explored.outcomes, [None, RESET].into());
}

#[test]
fn who_writes_sees_that_the_connection_breaks() {
    let explored = explore_with(resets(1), || {
        let mut stream = with_client(|mut stream| drop(stream.read_to_end(&mut Vec::new())));
        failed(stream.write(b"x"))
    });
    assert_eq!(explored.outcomes, [None, RESET].into());
}

/// How many of two connections are seen to break.
fn broken_of_two() -> usize {
    let listener = TcpListener::bind("main:7000").unwrap();
    process::spawn("client", || {
        let streams = [0; 2].map(|_| TcpStream::connect("main:7000").unwrap());
        for mut stream in streams {
            drop(stream.write_all(b"x"));
        }
    });
    let mut streams = [0; 2].map(|_| listener.accept().unwrap().0);
    let reads = streams
        .iter_mut()
        .map(|stream| failed(stream.read(&mut [0])));
    reads.filter(|&failed| failed == RESET).count()
}

#[test]
fn as_many_connections_break_as_the_budget_says() {
    assert_eq!(explore(broken_of_two).outcomes, [0].into());
    assert_eq!(
        explore_with(resets(1), broken_of_two).outcomes,
        [0, 1].into()
    );
    assert_eq!(
        explore_with(resets(2), broken_of_two).outcomes,
        [0, 1, 2].into()
    );
}

#[test]
fn peers_of_a_process_that_crashes_see_their_connections_break() {
    let explored = explore_with(crashes_for_good(1), || {
        let listener = TcpListener::bind("main:7000").unwrap();
        listener.set_nonblocking(true).unwrap();
        let client = process::spawn("client", || {
            let mut stream = TcpStream::connect("main:7000").unwrap();
            stream.write_all(b"x").unwrap();
        });
        let crashed = client.join().is_err();
        let Ok((mut stream, _)) = listener.accept() else {
            return (crashed, None);
        };
        stream.set_nonblocking(false).unwrap();
        let mut all = Vec::new();
        (crashed, Some(failed(stream.read_to_end(&mut all))))
    });
    // It crashes before it connects, while it is connected, or after it has closed the connection; or it does not.
    let outcomes = [
        (true, None),
        (true, Some(RESET)),
        (true, Some(None)),
        (false, Some(None)),
    ];
    assert_eq!(explored.outcomes, outcomes.into());
}

#[test]
fn who_connected_to_a_process_that_crashes_before_it_accepts_sees_the_connection_break() {
    let explored = explore_with(crashes_for_good(1), || {
        let server = process::spawn("server", || {
            drop(TcpListener::bind("server:7000").unwrap());
        });
        let stream = TcpStream::connect("server:7000");
        let seen = stream.map(|mut stream| failed(stream.read(&mut [0])));
        (server.join().is_err(), seen.ok())
    });
    let outcomes = [false, true].map(|crashed| [(crashed, None), (crashed, Some(RESET))]);
    assert_eq!(explored.outcomes, outcomes.into_iter().flatten().collect());
}

#[test]
fn all_threads_of_a_process_stop_when_it_crashes() {
    let explored = explore_with(crashes_for_good(1), || {
        let steps = Arc::new([const { AtomicU32::new(0) }; 2]);
        let inside = Arc::clone(&steps);
        let process = process::spawn("worker", move || {
            let other = Arc::clone(&inside);
            let other = thread::spawn(move || other[1].store(1, SeqCst));
            inside[0].store(1, SeqCst);
            other.join().unwrap();
        });
        let crashed = process.join().is_err();
        let seen = [0, 1].map(|at| steps[at].load(SeqCst));
        let later = [0, 1].map(|at| steps[at].load(SeqCst));
        assert_eq!(seen, later, "who has crashed or ended does nothing more");
        (crashed, seen)
    });
    let crashed = [[0, 0], [0, 1], [1, 0], [1, 1]].map(|seen| (true, seen));
    let mut outcomes = std::collections::BTreeSet::from(crashed);
    outcomes.insert((false, [1, 1]));
    assert_eq!(explored.outcomes, outcomes);
}

#[test]
fn locks_that_a_crashed_process_held_are_its_own() {
    // Another process can come to the same static, which is another lock there.
    static LOCK: Mutex<u32> = Mutex::new(0);
    let explored = explore_with(crashes_for_good(1), || {
        let hold = || {
            let mut held = LOCK.lock().unwrap();
            *held += 1;
            thread::yield_now();
            assert_eq!(*held, 1);
        };
        let both = ["one", "two"].map(|name| process::spawn(name, hold));
        both.map(|process| process.join().is_ok())
    });
    let outcomes = [[true, true], [true, false], [false, true]];
    assert_eq!(explored.outcomes, outcomes.into());
}

static RUNS: AtomicU32 = AtomicU32::new(0);

#[test]
fn a_process_that_comes_back_begins_anew_with_fresh_statics() {
    let explored = explore_with(crashes(1).and(restarts(1)), || {
        let begun = Arc::new(AtomicU32::new(0));
        let inside = Arc::clone(&begun);
        let process = process::spawn("worker", move || {
            assert_eq!(RUNS.fetch_add(1, SeqCst), 0, "it knows nothing of before");
            inside.fetch_add(1, SeqCst);
        });
        let crashed = process.join().is_err();
        (crashed, begun.load(SeqCst))
    });
    // Who joins it learns of the crash, and may look before it has come back or after.
    let outcomes = [(false, 1), (true, 0), (true, 1), (true, 2)];
    assert_eq!(explored.outcomes, outcomes.into());
}

#[test]
fn a_process_that_comes_back_binds_its_port_again() {
    let explored = explore_with(crashes(1).and(restarts(1)), || {
        let server = process::spawn("server", || {
            let _socket = UdpSocket::bind("server:9000").expect("the port is free again");
            drop(TcpListener::bind("server:7000").expect("the port is free again"));
        });
        server.join().is_ok()
    });
    assert_eq!(explored.outcomes, [false, true].into());
}

#[test]
fn who_joins_a_process_that_crashed_is_told_its_name() {
    let explored = explore_with(crashes_for_good(1), || {
        let process = process::spawn("worker", || thread::yield_now());
        process.join().map_err(|crashed| crashed.to_string())
    });
    let crashed = Err("process worker has crashed".to_owned());
    assert_eq!(explored.outcomes, [Ok(()), crashed].into());
}

#[test]
fn crashes_are_counted_over_all_processes() {
    let crashed = |budget| {
        let explored = explore_with(crashes_for_good(budget), || {
            let started = ["one", "two"].map(|name| process::spawn(name, || thread::yield_now()));
            let crashed = started.map(Process::join);
            crashed.iter().filter(|joined| joined.is_err()).count()
        });
        explored.outcomes
    };
    assert_eq!(crashed(0), [0].into());
    assert_eq!(crashed(1), [0, 1].into());
    assert_eq!(crashed(2), [0, 1, 2].into());
}

#[test]
fn a_process_crashes_where_it_stands_before_between_and_after_its_steps() {
    let explored = explore_with(crashes_for_good(1), || {
        process::spawn("worker", || {
            thread::yield_now();
            thread::yield_now();
        });
    });
    // It is spared, or crashes before either step or before it ends its process, or it is too late for that.
    assert_eq!(explored.executions, 5);
}

#[test]
fn faults_that_have_no_budget_do_not_happen() {
    let program = || {
        let mut stream = with_client(|mut stream| stream.write_all(b"x").unwrap());
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"x");
    };
    let plain = explore(program);
    let twice = explore_with(duplicates(3), program);
    assert_eq!(plain.executions, twice.executions);
}

#[test]
fn the_same_comes_of_faults_whoever_looks_for_it() {
    let program = || {
        let listener = TcpListener::bind("main:7000").unwrap();
        listener.set_nonblocking(true).unwrap();
        let begun = Arc::new(AtomicU32::new(0));
        let inside = Arc::clone(&begun);
        let client = process::spawn("client", move || {
            inside.fetch_add(1, SeqCst);
            if let Ok(mut stream) = TcpStream::connect("main:7000") {
                drop(stream.write_all(b"x"));
            }
        });
        let crashed = client.join().is_err();
        let read = listener.accept().map(|(mut stream, _)| {
            let mut all = Vec::new();
            (failed(stream.read_to_end(&mut all)), all.len())
        });
        (crashed, read.ok(), begun.load(SeqCst))
    };
    for faults in [Faults::none(), resets(1), crashes_for_good(1)] {
        let (by_schedules, _) = explore_by(EngineName::Dpor, faults, program);
        let (outcomes, _) = explore_by(EngineName::Breadth, faults, program);
        assert_eq!(outcomes, by_schedules, "{faults}");
    }
}

#[test]
fn partitions_are_refused_in_a_line() {
    let check = || Check::new(Threads::new(|| {})).faults(partitions(1));
    let refused = std::panic::catch_unwind(|| check().run()).unwrap_err();
    let why = refused.downcast_ref::<String>().expect("it says why");
    assert_eq!(why.lines().count(), 1, "{why}");
    assert!(why.contains("`drops`") && why.contains("`resets`"), "{why}");
}
