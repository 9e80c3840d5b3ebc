//! What is found is the same in every process of the operating system, and replays.

use std::env;
use std::io::{Read, Write};
use std::process::Command;

use dragnet::net::{TcpListener, TcpStream, UdpSocket};
use dragnet::sync::{Arc, Condvar, Mutex};
use dragnet::{Check, Threads, crashes, duplicates, process, resets, restarts, thread};

/// Two clients, of which the second to come is not expected.
fn two_clients() {
    let listener = TcpListener::bind("main:7000").unwrap();
    for name in ["one", "two"] {
        process::spawn(name, || {
            let mut stream = TcpStream::connect("main:7000").unwrap();
            let name = process::name();
            stream.write_all(name.as_bytes()).unwrap();
        });
    }
    let mut heard = [0; 2].map(|_| {
        let (mut stream, _) = listener.accept().unwrap();
        let mut name = String::new();
        stream.read_to_string(&mut name).unwrap();
        name
    });
    heard.reverse();
    assert_eq!(heard, ["two", "one"], "they come in another order");
}

/// Three threads wait, and one that is notified is taken for another.
fn notified() {
    let shared = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
    let waiting: Vec<_> = (0..3)
        .map(|number| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut woken = shared.1.wait(shared.0.lock().unwrap()).unwrap();
                woken.push(number);
                assert_ne!(*woken, [1, 2], "the wrong ones are woken");
            })
        })
        .collect();
    for _ in 0..2 {
        shared.1.notify_one();
    }
    drop(shared.0.lock().unwrap());
    shared.1.notify_all();
    drop(waiting);
}

/// Clients that may come in all orders but one.
fn crowd() {
    let listener = TcpListener::bind("main:7000").unwrap();
    for client in 0..3 {
        process::spawn(format!("client {client}"), move || {
            let mut stream = TcpStream::connect("main:7000").unwrap();
            stream.write_all(&[client]).unwrap();
        });
    }
    let shared = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
    let serving = [0; 3].map(|_| {
        let (mut stream, _) = listener.accept().unwrap();
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            let mut client = [0];
            stream.read_exact(&mut client).unwrap();
            shared.0.lock().unwrap().push(client[0]);
            shared.1.notify_one();
        })
    });
    let mut heard = shared.0.lock().unwrap();
    while heard.len() < 3 {
        heard = shared.1.wait(heard).unwrap();
    }
    assert_ne!(*heard, [2, 1, 0], "they come in no good order");
    drop(heard);
    drop(serving);
}

/// A datagram that comes twice, or overtakes another.
fn overtaken() {
    let socket = UdpSocket::bind("main:9000").unwrap();
    process::spawn("sensor", || {
        let socket = UdpSocket::bind("sensor:0").unwrap();
        for number in 0..2 {
            socket.send_to(&[number], "main:9000").unwrap();
        }
    });
    let mut first = [0];
    let mut second = [0];
    socket.recv_from(&mut first).unwrap();
    socket.recv_from(&mut second).unwrap();
    assert!(first < second, "they do not come in order");
}

fn programs(workers: usize) -> [(&'static str, Check<Threads>); 5] {
    let check = |program: fn()| Check::new(Threads::new(program)).threads(workers);
    [
        ("two clients", check(two_clients)),
        ("notified", check(notified)),
        ("crowd", check(crowd)),
        ("overtaken", check(overtaken).faults(duplicates(1))),
        (
            "unlucky clients",
            check(two_clients).faults(resets(1).and(crashes(1)).and(restarts(1))),
        ),
    ]
    .map(|(name, check)| (name, check.named(name)))
}

/// The violations of all programs, a line each.
fn violations(workers: usize) -> Vec<String> {
    let programs = programs(workers).into_iter();
    programs
        .map(|(name, check)| {
            let verdict = check.run();
            let found = verdict.counterexample();
            let found = found.unwrap_or_else(|| panic!("{name} goes wrong: {verdict}"));
            serde_json::to_string(&found.trace).unwrap()
        })
        .collect()
}

const CHILD: &str = "DRAGNET_TEST_WORKERS";
const MARK: &str = "a violation: ";

/// What another process of the operating system finds.
fn violations_elsewhere(workers: usize) -> Vec<String> {
    let this = env::current_exe().unwrap();
    let told = Command::new(this)
        .args([
            "--exact",
            "network::repeatable::a_child_says_what_it_finds",
            "--nocapture",
        ])
        .env(CHILD, workers.to_string())
        .output()
        .unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let lines = told.lines().filter_map(|line| line.strip_prefix(MARK));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_child_says_what_it_finds() {
    let Ok(workers) = env::var(CHILD) else {
        return;
    };
    println!();
    for violation in violations(workers.parse().unwrap()) {
        println!("{MARK}{violation}");
    }
}

#[test]
fn two_processes_find_the_same_byte_for_byte() {
    let (one, two) = (violations_elsewhere(1), violations_elsewhere(1));
    assert_eq!(one.len(), 5, "{one:?}");
    assert_eq!(one, two);
    assert_eq!(one, violations(1));
}

#[test]
fn two_processes_with_two_workers_find_the_same_byte_for_byte() {
    let (one, two) = (violations_elsewhere(2), violations_elsewhere(2));
    assert_eq!(one.len(), 5, "{one:?}");
    assert_eq!(one, two);
}

#[test]
fn what_is_found_replays() {
    let found = violations(1);
    for ((name, check), found) in programs(1).into_iter().zip(found) {
        let trace = serde_json::from_str(&found).unwrap();
        let replay = check.replay(&trace).expect("nothing has changed");
        assert_eq!(replay.violation, trace.violation, "{name}");
        assert_eq!(replay.counterexample.trace.steps, trace.steps, "{name}");
    }
}
