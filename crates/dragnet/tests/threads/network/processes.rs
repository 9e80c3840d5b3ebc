//! What processes have for themselves, whatever they do over the network.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use dragnet::engine::{Engine, EngineName, EngineOption};
use dragnet::net::{TcpListener, TcpStream, UdpSocket};
use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::sync::{Arc, LazyLock, Mutex, mpsc};
use dragnet::{Check, Outcome, Threads, process, thread};

use super::{executions, explore, holds_in, refusal, with_client};

/// The engine with so many walks, if it makes random ones.
fn with_walks(engine: EngineName, walks: u64) -> Engine {
    let engine = Engine::from(engine);
    engine.with(EngineOption::Walks(walks)).unwrap_or(engine)
}

/// Two processes that do the same to something.
fn sharing<T: Send + Sync + 'static>(
    make: impl Fn() -> T + Send + Sync + 'static,
    touch: impl Fn(&T) + Clone + Send + Sync + 'static,
) -> String {
    refusal(Check::new(Threads::new(move || {
        let shared = Arc::new(make());
        for name in ["left", "right"] {
            let (shared, touch) = (Arc::clone(&shared), touch.clone());
            let process = process::spawn(name, move || touch(&shared));
            process.join().unwrap();
        }
    })))
}

#[test]
fn processes_that_share_something_else_than_the_network_are_refused_by_name() {
    let refusals = [
        sharing(
            || Mutex::new(0),
            |mutex| {
                *mutex.lock().unwrap() += 1;
            },
        ),
        sharing(
            || AtomicU32::new(0),
            |value| {
                value.fetch_add(1, SeqCst);
            },
        ),
        sharing(
            || mpsc::channel::<u8>().0,
            |sender| {
                sender.send(1).unwrap_err();
            },
        ),
    ];
    for why in refusals {
        assert!(
            why.contains("left and right share what was made at"),
            "{why}"
        );
        assert!(why.contains("network/processes.rs"), "{why}");
        assert!(why.contains("share nothing but the network"), "{why}");
    }
}

#[test]
fn what_the_check_begins_with_may_look_into_its_processes() {
    let explored = explore(|| {
        let count = Arc::new(AtomicU32::new(0));
        let inside = Arc::clone(&count);
        let process = process::spawn("worker", move || {
            inside.fetch_add(1, SeqCst);
        });
        let seen = count.load(SeqCst);
        process.join().unwrap();
        seen
    });
    assert_eq!(explored.outcomes, [0, 1].into());
    assert_eq!(explored.executions, 2);
}

static COUNT: AtomicU32 = AtomicU32::new(0);
static LAZY: LazyLock<String> = LazyLock::new(process::name);

#[test]
fn each_process_has_statics_of_its_own() {
    holds_in(1, || {
        let add = || {
            assert_eq!(COUNT.fetch_add(1, SeqCst), 0);
            assert_eq!(*LAZY, process::name());
            let other = thread::spawn(|| COUNT.load(SeqCst));
            assert_eq!(other.join().unwrap(), 1, "its threads share them");
        };
        let started = ["left", "right"].map(|name| process::spawn(name, add));
        add();
        for process in started {
            process.join().unwrap();
        }
        assert_eq!(COUNT.load(SeqCst), 1);
    });
}

#[test]
fn a_process_knows_its_name_and_address() {
    holds_in(1, || {
        assert_eq!(process::name(), "main");
        let worker = process::spawn("worker", || {
            assert_eq!(process::name(), "worker");
            let deeper = thread::spawn(process::name);
            assert_eq!(deeper.join().unwrap(), "worker");
        });
        assert_eq!(worker.name(), "worker");
        assert_eq!(worker.address(), process::address_of("worker"));
        assert_ne!(worker.address(), process::address_of("main"));
        assert!(!worker.address().is_loopback());
        worker.join().unwrap();
    });
}

#[test]
fn two_processes_of_one_name_are_refused() {
    let why = refusal(Check::new(Threads::new(|| {
        process::spawn("twin", || {});
        process::spawn("twin", || {});
    })));
    assert!(why.contains("there are two processes called twin"), "{why}");
}

/// A client that adds one to what the server has, in two steps, as often as there are clients.
fn counting(clients: usize) {
    let listener = TcpListener::bind("main:7000").unwrap();
    for client in 0..clients {
        process::spawn(format!("client {client}"), || {
            let mut stream = TcpStream::connect("main:7000").unwrap();
            let mut seen = [0];
            stream.write_all(b"?").unwrap();
            stream.read_exact(&mut seen).unwrap();
            stream.write_all(&[seen[0] + 1]).unwrap();
        });
    }
    let count = Arc::new(AtomicU32::new(0));
    let serving: Vec<_> = (0..clients)
        .map(|_| {
            let (mut stream, _) = listener.accept().unwrap();
            let count = Arc::clone(&count);
            thread::spawn(move || {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                stream.write_all(&[count.load(SeqCst) as u8]).unwrap();
                stream.read_exact(&mut byte).unwrap();
                count.store(u32::from(byte[0]), SeqCst);
            })
        })
        .collect();
    for thread in serving {
        thread.join().unwrap();
    }
    assert_eq!(count.load(SeqCst) as usize, clients, "an update is lost");
}

#[test]
fn all_engines_agree_on_processes() {
    let engines = [
        EngineName::Dpor,
        EngineName::Breadth,
        EngineName::Depth,
        EngineName::Random,
        EngineName::Auto,
    ];
    for engine in engines {
        let check = |clients| {
            Check::new(Threads::new(move || counting(clients)))
                .engine(with_walks(engine, 200))
                .run()
        };
        let one = check(1);
        assert!(one.violation().is_none(), "{engine}: {one}");
        if engine != EngineName::Random {
            assert_eq!(one.outcome, Outcome::Holds, "{engine}: {one}");
        }
        let two = check(2);
        let violation = two.violation().expect("an update can be lost");
        assert!(
            violation.describe().contains("an update is lost"),
            "{engine}: {two}"
        );
    }
}

#[test]
fn clients_that_nothing_orders_are_counted_by_hand() {
    // Two who write to one listener: the order in which they come. What each says to its own thread does not matter.
    let verdict = Check::new(Threads::new(|| {
        let listener = TcpListener::bind("main:7000").unwrap();
        let clients = [0, 1, 2].map(|client| {
            process::spawn(format!("client {client}"), move || {
                let mut stream = TcpStream::connect("main:7000").unwrap();
                stream.write_all(&[client]).unwrap();
            })
        });
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
        }
        for client in clients {
            client.join().unwrap();
        }
    }))
    .threads(1)
    .run();
    verdict.assert_holds();
    assert_eq!(executions(&verdict), 6, "3 clients connect in 3! orders");
    assert_eq!(verdict.statistics.schedules.unwrap().blocked_executions, 0);
}

#[test]
fn outside_of_a_check_sockets_and_processes_are_real() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap();
    let client = process::spawn("client", move || {
        let mut stream = TcpStream::connect(here).unwrap();
        stream.write_all(b"hello").unwrap();
    });
    assert_eq!(client.address(), here.ip());
    let (mut stream, from) = listener.accept().unwrap();
    assert_eq!(stream.peer_addr().unwrap(), from);
    let mut heard = String::new();
    stream.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "hello");
    client.join().unwrap();
    assert_eq!(process::name(), "main");

    let socket = UdpSocket::bind((process::address_of("main"), 0)).unwrap();
    let time = Some(Duration::from_millis(20));
    socket.set_read_timeout(time).unwrap();
    let nothing = socket.recv_from(&mut [0]).unwrap_err().kind();
    assert!(
        matches!(nothing, ErrorKind::WouldBlock | ErrorKind::TimedOut),
        "{nothing:?}"
    );
    let to = socket.local_addr().unwrap();
    socket.set_read_timeout(None).unwrap();
    let sensor = process::spawn("sensor", move || {
        UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .send_to(&[7], to)
            .unwrap();
    });
    let mut byte = [0];
    socket.recv_from(&mut byte).unwrap();
    assert_eq!(byte, [7]);
    sensor.join().unwrap();

    let panics = process::spawn("panics", || panic!("on purpose"));
    let crashed = panics.join().unwrap_err();
    assert_eq!(crashed.to_string(), "process panics has crashed");
}

#[test]
fn a_process_that_panics_is_a_failure() {
    let verdict = Check::new(Threads::new(|| {
        drop(with_client(|_| panic!("the client gives up")));
    }))
    .run();
    let described = verdict.violation().expect("it panics").describe();
    assert!(described.contains("the client gives up"), "{described}");
}
