//! How what went wrong is told.

use std::io::{Read, Write};

use dragnet::net::{TcpListener, UdpSocket};
use dragnet::sync::Arc;
use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::verdict::ViolationKind;
use dragnet::{Check, Threads, crashes, drops, duplicates, process, resets, thread};

use super::with_client;

/// What a counterexample of a check has for a person: the lanes, and the steps.
struct Told {
    lanes: Vec<String>,
    steps: Vec<String>,
    all: String,
}

fn told(check: Check<Threads>) -> Told {
    let verdict = check.run();
    let found = verdict.counterexample();
    let found = found.unwrap_or_else(|| panic!("something is wrong with it: {verdict}"));
    let step = |step: &dragnet::trace::Step| format!("{} {}", step.component, step.action);
    Told {
        lanes: found.lanes.clone(),
        steps: found.steps().map(step).collect(),
        all: verdict.to_string(),
    }
}

impl Told {
    #[track_caller]
    fn has(&self, steps: &[&str]) {
        for &step in steps {
            let is_told = self.steps.iter().any(|told| told == step);
            assert!(is_told, "`{step}` is not told in\n{}", self.all);
        }
    }
}

#[test]
fn a_deadlock_of_processes_says_who_waits_for_whom() {
    let verdict = Check::new(Threads::new(|| {
        let mut stream = with_client(|mut stream| {
            stream.read_exact(&mut [0]).unwrap();
            stream.write_all(b"x").unwrap();
        });
        stream.read_exact(&mut [0]).unwrap();
    }))
    .run();
    let violation = verdict.violation().expect("both wait");
    let ViolationKind::Deadlock(waiting) = &violation.kind else {
        panic!("{verdict}");
    };
    let waiting: Vec<String> = waiting.iter().map(ToString::to_string).collect();
    let [main, client] = &*waiting else {
        panic!("{waiting:?}");
    };
    assert!(
        main.starts_with("main waits for client to write something; it is at ")
            && main.contains("telling.rs"),
        "{main}"
    );
    assert!(
        client.starts_with("client waits for main:7000 to write something; it is at "),
        "{client}"
    );
}

#[test]
fn who_waits_for_a_connection_a_datagram_or_a_process_says_so() {
    let waits = |program: fn()| {
        let verdict = Check::new(Threads::new(program)).run();
        verdict.violation().expect("it waits for ever").describe()
    };
    let described = waits(|| drop(TcpListener::bind("main:7000").unwrap().accept()));
    assert!(
        described.contains("main waits for somebody to connect to main:7000;"),
        "{described}"
    );
    let described = waits(|| {
        let socket = UdpSocket::bind("0.0.0.0:9000").unwrap();
        socket.recv_from(&mut [0]).unwrap();
    });
    assert!(
        described.contains("main waits for a datagram at main:9000;"),
        "{described}"
    );
    let described = waits(|| process::spawn("sleeper", || thread::park()).join().unwrap());
    assert!(
        described.contains("main waits for sleeper to end;"),
        "{described}"
    );
}

#[test]
fn what_is_done_with_connections_is_told_by_names_and_ports() {
    let told = told(Check::new(Threads::new(|| {
        let mut stream = with_client(|stream| {
            let mut other = stream.try_clone().unwrap();
            let builder = thread::Builder::new().name("writer".to_owned());
            let writer = builder.spawn(move || other.write_all(b"x").unwrap());
            writer.unwrap().join().unwrap();
        });
        let _listener = TcpListener::bind("main:7000").unwrap();
        drop(TcpListener::bind("main:7000"));
        stream.read_exact(&mut [0; 2]).unwrap();
    })));
    assert_eq!(told.lanes, ["main", "client", "client/writer"]);
    told.has(&[
        "main binds main:7000",
        "client looks for who is at main:7000",
        "client connects to main:7000",
        "main accepts a connection at main:7000",
        "client/writer writes 1 byte to main:7000",
        "client/writer drops a handle of its connection to main:7000",
        "main tries to bind main:7000, which is in use",
        "main reads what client has written",
        "main finds that client writes no more",
    ]);
    let dragnets_own = ["tcp.rs", "pipe.rs", "held.rs"];
    for file in dragnets_own {
        assert!(!told.all.contains(file), "{}", told.all);
    }
}

#[test]
fn all_that_comes_from_outside_has_one_lane() {
    let told = told(
        Check::new(Threads::new(|| {
            let socket = UdpSocket::bind("main:9000").unwrap();
            process::spawn("sensor", || {
                let socket = UdpSocket::bind("sensor:0").unwrap();
                for number in 0..3 {
                    socket.send_to(&[number], "main:9000").unwrap();
                }
            });
            let mut heard = [0; 4].map(|_| {
                let mut byte = [0];
                socket.recv_from(&mut byte).unwrap();
                byte[0]
            });
            heard.sort_unstable();
            assert_eq!(heard, [0, 1, 2, 2]);
        }))
        .faults(drops(1).and(duplicates(1))),
    );
    assert_eq!(told.lanes, ["main", "sensor", "outside"]);
    told.has(&[
        "sensor binds a free port of sensor",
        "outside has a datagram from sensor arrive at main:9000",
        "main receives a datagram at main:9000",
    ]);
    let fates = ["lost", "comes twice", "spared"];
    assert!(
        told.steps.iter().any(|step| {
            step.starts_with("sensor sends a datagram")
                && fates.iter().any(|fate| step.ends_with(fate))
        }),
        "{}",
        told.all
    );
}

#[test]
fn a_connection_that_breaks_is_named() {
    let told = told(
        Check::new(Threads::new(|| {
            let mut stream = with_client(|mut stream| drop(stream.write_all(b"x")));
            stream.read_exact(&mut [0]).unwrap();
        }))
        .faults(resets(1)),
    );
    assert_eq!(told.lanes, ["main", "client", "outside"]);
    told.has(&[
        "outside is going to break the connection from client to main:7000",
        "outside breaks the connection from client to main:7000",
        "main reads from client, and the connection has broken",
    ]);
}

#[test]
fn a_process_that_crashes_and_comes_back_is_named() {
    let told = told(
        Check::new(Threads::new(|| {
            // What is made outside of a process stays when it crashes, as a disk does.
            let begun = Arc::new(AtomicU32::new(0));
            process::spawn("worker", move || {
                assert_eq!(begun.fetch_add(1, SeqCst), 0, "it has begun before");
            });
        }))
        .faults(crashes(1)),
    );
    for lane in ["worker", "outside"] {
        let lanes = told.lanes.iter().filter(|known| *known == lane);
        assert_eq!(lanes.count(), 1, "{lane}: {}", told.all);
    }
    told.has(&[
        "outside is going to crash worker",
        "outside crashes worker",
        "outside starts worker again",
    ]);
}
