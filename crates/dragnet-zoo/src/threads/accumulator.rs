//! A service that sums up numbers: a client sends them to a primary, which adds them up and forwards them to replicas.
//!
//! This is the example of *Practical software model checking via dynamic interface reduction* (Guo, Wu, Zhou, Hu, Yang,
//! Zhang; SOSP 2011), figure 1 and section 2.3. Each server is a process of two threads: one adds up what it receives,
//! the other writes a checkpoint of the sum. In `accumulator` the client sends one of two sequences to a primary and a
//! secondary: 2 sequences, and 3 orders of sums and checkpoint at each of the two servers, are 18 executions. In
//! `accumulator-replicas` it sends one sequence of `numbers` numbers to `servers` servers: (numbers + 1)^servers.
//!
//! A checkpoint has the sum, and how many numbers were added up, which must fit together. With the bug `unlocked-sum` the
//! servers forget the lock while they add.

use std::io::{ErrorKind, Read, Write};

use dragnet::catalog::{Entry, Setup};
use dragnet::net::{TcpListener, TcpStream};
use dragnet::process::{self, Process};
use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::sync::{Arc, Mutex};
use dragnet::{Check, Threads, choose};

use super::spawn;

/// The program of figure 1 under the name `accumulator`.
pub fn entry() -> Entry {
    Entry::new(
        "accumulator",
        "a client sends numbers to a primary, which forwards them to a secondary",
        |setup| {
            let locking = locking(setup);
            Check::new(Threads::new(move || {
                let sequences = [vec![1, 2], vec![1, 3]];
                accumulate(&sequences, 2, locking);
            }))
        },
    )
    .bug("unlocked-sum", UNLOCKED, |bug| bug)
}

/// The program of section 2.3 under the name `accumulator-replicas`.
pub fn replicas_entry() -> Entry {
    Entry::new(
        "accumulator-replicas",
        "a client sends numbers to a primary, which forwards them to replicas",
        |setup| {
            let (numbers, servers) = (setup.number("numbers"), setup.number("servers"));
            let locking = locking(setup);
            Check::new(Threads::new(move || {
                let sequence: Vec<u32> = (1..=numbers).collect();
                accumulate(&[sequence], servers, locking);
            }))
        },
    )
    .parameter("numbers", 2, 0..=8, "how many numbers the client sends")
    .parameter("servers", 3, 1..=6, "how many servers add them up")
    .bug("unlocked-sum", UNLOCKED, |bug| bug.set("servers", 2))
}

const UNLOCKED: &str = "adds numbers up without the lock that checkpoints take";

fn locking(setup: &Setup<'_>) -> Locking {
    match setup.has_bug("unlocked-sum") {
        true => Locking::Forgotten,
        false => Locking::Used,
    }
}

/// Whether a server takes its lock while it adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locking {
    /// It does.
    Used,
    /// Only checkpoints do.
    Forgotten,
}

/// What a server has added up.
#[derive(Default)]
struct Sum {
    lock: Mutex<()>,
    sum: AtomicU32,
    count: AtomicU32,
}

impl Sum {
    fn add(&self, number: u32, locking: Locking) {
        let guard = (locking == Locking::Used).then(|| self.lock.lock().expect("nobody panics"));
        self.sum.fetch_add(number, SeqCst);
        self.count.fetch_add(1, SeqCst);
        drop(guard);
    }

    /// The sum, and how many numbers it is of.
    fn checkpoint(&self) -> (u32, u32) {
        let _guard = self.lock.lock().expect("nobody panics");
        (self.sum.load(SeqCst), self.count.load(SeqCst))
    }
}

/// A client sends one of the sequences to the first of the servers, which forwards it to the others.
pub fn accumulate(sequences: &[Vec<u32>], servers: u16, locking: Locking) {
    let mut started: Vec<Process> = Vec::new();
    let mut replicas: Vec<String> = Vec::new();
    for server in (0..servers).rev() {
        // Who is to be connected to listens before anybody knows of it.
        let address = format!("main:{}", 7000 + server);
        let listener = TcpListener::bind(&address).expect("the port is free");
        let (name, others) = match server {
            0 => ("primary".to_owned(), std::mem::take(&mut replicas)),
            1 if servers == 2 => ("secondary".to_owned(), Vec::new()),
            _ => (format!("replica {server}"), Vec::new()),
        };
        replicas.push(address);
        let serve = move || serve(&listener, &others, locking);
        started.push(process::spawn(name, serve));
    }
    let sequences = sequences.to_vec();
    let client = move || {
        let numbers = &sequences[choose(sequences.len())];
        let mut primary = TcpStream::connect("main:7000").expect("the primary listens");
        for number in numbers {
            let number = number.to_be_bytes();
            primary.write_all(&number).expect("the primary reads");
        }
    };
    started.push(process::spawn("client", client));
    for process in started {
        process.join().expect("nobody crashes");
    }
}

/// Adds up what comes, forwards it, and writes a checkpoint of it.
fn serve(listener: &TcpListener, replicas: &[String], locking: Locking) {
    let (mut from, _) = listener.accept().expect("somebody connects");
    let connect = |address| TcpStream::connect(address).expect("the replica listens");
    let mut replicas: Vec<TcpStream> = replicas.iter().map(connect).collect();
    let sum = Arc::new(Sum::default());
    let checkpoint = Arc::clone(&sum);
    let checkpoint = spawn("checkpoint", move || checkpoint.checkpoint());
    let mut sums = vec![0];
    while let Some(number) = receive(&mut from) {
        sum.add(number, locking);
        sums.push(sums.last().copied().unwrap_or_default() + number);
        for replica in &mut replicas {
            let number = number.to_be_bytes();
            replica.write_all(&number).expect("the replica reads");
        }
    }
    let (checkpoint, count) = checkpoint.join().expect("the checkpoint is written");
    assert_eq!(
        Some(&checkpoint),
        sums.get(count as usize),
        "the checkpoint has {count} numbers, and another sum"
    );
}

/// The next number, unless there are no more.
#[track_caller]
fn receive(from: &mut TcpStream) -> Option<u32> {
    let mut number = [0; 4];
    match from.read_exact(&mut number) {
        Ok(()) => Some(u32::from_be_bytes(number)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => None,
        Err(error) => panic!("the numbers do not come: {error}"),
    }
}
