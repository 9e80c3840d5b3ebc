//! Random programs of processes that talk over a network in which things go wrong.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use super::*;
use crate::process;
use crate::target::nodes::{crashes, drops, duplicates, resets, restarts};
use crate::target::threads::net::{TcpListener, TcpStream, UdpSocket};

#[derive(Clone, Copy, Debug)]
enum Act {
    Write,
    Read(usize),
    ReadAWhile,
    TryRead,
    Peek,
    ShutWriting,
    ShutReading,
    Hang,
    SendDatagram,
    Receive,
    ReceiveAWhile,
    TryReceive,
    Add,
}

#[derive(Clone, Debug)]
struct Plan {
    server: Vec<Act>,
    /// The threads of the client, which share its end of the connection.
    client: Vec<Vec<Act>>,
}

/// What a thread has: a connection, a socket for datagrams and who it sends them to, and a value in its own process.
struct Ends {
    stream: Option<TcpStream>,
    socket: UdpSocket,
    to: &'static str,
    value: Arc<AtomicUsize>,
}

/// What came of reading, as a number.
fn number(read: std::io::Result<usize>, buffer: &[u8]) -> usize {
    match read {
        Ok(size) => size + 10 * usize::from(buffer[0]),
        Err(error) if error.kind() == ErrorKind::WouldBlock => 7,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => 8,
        Err(_) => 9,
    }
}

fn act(id: usize, acts: &[Act], ends: &mut Ends) {
    const A_WHILE: Option<Duration> = Some(Duration::from_secs(1));
    for (place, &what) in acts.iter().enumerate() {
        let mut buffer = [0; 4];
        let seen = match (what, &mut ends.stream) {
            (Act::Write, Some(stream)) => number(stream.write(&[id as u8, place as u8]), &[0]),
            (Act::Read(size), Some(stream)) => {
                stream.set_read_timeout(None).unwrap();
                number(stream.read(&mut buffer[..size]), &buffer)
            }
            (Act::ReadAWhile, Some(stream)) => {
                stream.set_read_timeout(A_WHILE).unwrap();
                number(stream.read(&mut buffer), &buffer)
            }
            (Act::TryRead, Some(stream)) => {
                stream.set_nonblocking(true).unwrap();
                let read = stream.read(&mut buffer);
                stream.set_nonblocking(false).unwrap();
                number(read, &buffer)
            }
            (Act::Peek, Some(stream)) => {
                stream.set_read_timeout(None).unwrap();
                number(stream.peek(&mut buffer), &buffer)
            }
            (Act::ShutWriting, Some(stream)) => {
                usize::from(stream.shutdown(Shutdown::Write).is_ok())
            }
            (Act::ShutReading, Some(stream)) => {
                usize::from(stream.shutdown(Shutdown::Read).is_ok())
            }
            (Act::Hang, _) => {
                ends.stream = None;
                0
            }
            (Act::SendDatagram, _) => {
                let datagram = [id as u8, place as u8];
                number(ends.socket.send_to(&datagram, ends.to), &[0])
            }
            (Act::Receive | Act::ReceiveAWhile | Act::TryReceive, _) => {
                let time = match what {
                    Act::ReceiveAWhile => A_WHILE,
                    _ => None,
                };
                ends.socket.set_read_timeout(time).unwrap();
                let blocks = !matches!(what, Act::TryReceive);
                ends.socket.set_nonblocking(!blocks).unwrap();
                let received = ends.socket.recv_from(&mut buffer);
                number(received.map(|(size, _)| size), &buffer[1..])
            }
            (Act::Add, _) => ends.value.fetch_add(1, SeqCst),
            _ => continue,
        };
        note(id, place, seen);
    }
}

fn run(plan: &Plan) {
    SEEN.set(0);
    let listener = TcpListener::bind("main:1").unwrap();
    let socket = UdpSocket::bind("main:2").unwrap();
    let acts = plan.client.clone();
    process::spawn("client", move || {
        let Ok(stream) = TcpStream::connect("main:1") else {
            return note(9, 0, 0);
        };
        let socket = UdpSocket::bind("client:2").unwrap();
        let value = Arc::new(AtomicUsize::new(0));
        let ends = |_| Ends {
            stream: Some(stream.try_clone().unwrap()),
            socket: socket.try_clone().unwrap(),
            to: "main:2",
            value: Arc::clone(&value),
        };
        let mut ends: Vec<Ends> = acts.iter().map(ends).collect();
        drop((stream, socket));
        let mut own = ends.pop().expect("there is a thread");
        let threads = (2..).zip(&acts).zip(ends);
        let threads: Vec<_> = threads
            .map(|((id, acts), mut ends)| {
                let acts = acts.clone();
                thread::spawn(move || act(id, &acts, &mut ends))
            })
            .collect();
        act(1, acts.last().expect("there is a thread"), &mut own);
        drop(own);
        for thread in threads {
            thread.join().unwrap();
        }
    });
    let Ok((stream, _)) = listener.accept() else {
        return;
    };
    let mut ends = Ends {
        stream: Some(stream),
        socket,
        to: "client:2",
        value: Arc::new(AtomicUsize::new(0)),
    };
    act(0, &plan.server, &mut ends);
}

fn bytes() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Write),
        2 => prop_oneof![Just(1_usize), Just(4)].prop_map(Act::Read),
        1 => Just(Act::ReadAWhile),
        1 => Just(Act::TryRead),
        1 => Just(Act::Peek),
        1 => Just(Act::ShutWriting),
        1 => Just(Act::ShutReading),
        1 => Just(Act::Hang),
        1 => Just(Act::Add),
    ]
}

fn datagrams() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::SendDatagram),
        2 => Just(Act::Receive),
        1 => Just(Act::ReceiveAWhile),
        1 => Just(Act::TryReceive),
    ]
}

fn plan(act: impl Strategy<Value = Act> + Clone, threads: usize) -> impl Strategy<Value = Plan> {
    let acts = proptest::collection::vec(act, 0..3);
    let client = proptest::collection::vec(acts.clone(), 1..=threads);
    (acts, client).prop_map(|(server, mut client)| {
        if client.len() > 1 {
            // Who shares a socket does not change how it behaves.
            for act in client.iter_mut().flatten() {
                if matches!(act, Act::ReadAWhile | Act::TryRead) {
                    *act = Act::Read(4);
                }
            }
        }
        Plan { server, client }
    })
}

fn program_with_faults(faults: Faults, plan: Plan) -> Arc<Program> {
    let mut program = Arc::into_inner(program(move || run(&plan))).expect("it is not shared yet");
    program.setting.faults = faults;
    Arc::new(program)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_trace_of_connections_is_run_once(plan in plan(bytes().boxed(), 2)) {
        check_traces(move || run(&plan))?;
    }

    #[test]
    fn every_trace_of_datagrams_is_run_once(plan in plan(datagrams().boxed(), 1)) {
        check_traces(move || run(&plan))?;
    }

    #[test]
    fn every_trace_of_connections_that_break_is_run_once(plan in plan(bytes().boxed(), 1)) {
        check_traces_of(&program_with_faults(resets(1), plan), false)?;
    }
}

proptest! {
    // What can go wrong at any time makes many executions.
    #![proptest_config(ProptestConfig { cases: cases() / 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_trace_of_datagrams_that_are_lost_or_come_twice_is_run_once(
        plan in plan(datagrams().boxed(), 1),
        faults in prop_oneof![Just(drops(1)), Just(duplicates(1)), Just(drops(1).and(duplicates(1)))],
    ) {
        check_traces_of(&program_with_faults(faults, plan), false)?;
    }

    #[test]
    fn every_trace_of_processes_that_crash_is_run_once(
        plan in plan(bytes().boxed(), 2),
        restarts in prop_oneof![Just(restarts(0)), Just(restarts(1))],
    ) {
        check_traces_of(&program_with_faults(crashes(1).and(restarts), plan), false)?;
    }
}

/// Found by chance among thousands.
#[test]
fn who_waits_for_a_while_may_be_crashed_before_what_comes() {
    let plan = Plan {
        server: vec![Act::Write, Act::ReadAWhile],
        client: vec![vec![Act::Read(1), Act::Write]],
    };
    let program = program_with_faults(crashes(1).and(restarts(0)), plan);
    check_traces_of(&program, false).unwrap();
}
