//! Connections.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use dragnet::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use dragnet::sync::mpsc;
use dragnet::{Check, Outcome, Threads, Verdict, process, thread};

use super::{explore, failed, holds_in, with_client};

const A_WHILE: Option<Duration> = Some(Duration::from_secs(1));

#[test]
fn bytes_come_in_order_and_then_the_end() {
    holds_in(1, || {
        let mut stream = with_client(|mut stream| {
            stream.write_all(b"hel").unwrap();
            stream.write_all(b"lo").unwrap();
        });
        let mut heard = String::new();
        stream.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "hello");
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "the end stays");
    });
}

#[test]
fn a_question_gets_its_answer() {
    holds_in(1, || {
        let mut stream = with_client(|mut stream| {
            stream.write_all(&[20]).unwrap();
            let mut answer = [0];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [21]);
        });
        let mut question = [0];
        stream.read_exact(&mut question).unwrap();
        stream.write_all(&[question[0] + 1]).unwrap();
        assert_eq!(stream.read(&mut question).unwrap(), 0);
    });
}

#[test]
fn a_read_gives_bytes_of_one_write() {
    holds_in(1, || {
        let mut stream = with_client(|mut stream| {
            stream.write_all(b"abc").unwrap();
            stream.write_all(b"de").unwrap();
        });
        let mut buffer = [0; 8];
        assert_eq!(stream.read(&mut buffer[..2]).unwrap(), 2);
        assert_eq!(stream.read(&mut buffer[2..]).unwrap(), 1);
        assert_eq!(stream.read(&mut buffer[3..]).unwrap(), 2);
        assert_eq!(&buffer[..5], b"abcde");
        assert_eq!(stream.read(&mut buffer).unwrap(), 0);
    });
}

#[test]
fn a_connection_is_refused_where_nobody_listens() {
    holds_in(1, || {
        let refused = Some(ErrorKind::ConnectionRefused);
        assert_eq!(failed(TcpStream::connect("main:7000")), refused);
        assert_eq!(failed(TcpStream::connect("nobody:7000")), refused);
        let listener = TcpListener::bind("main:7000").unwrap();
        assert_eq!(failed(TcpStream::connect("main:7001")), refused);
        assert_eq!(failed(TcpStream::connect("nobody:7000")), refused);
        drop(listener);
        assert_eq!(failed(TcpStream::connect("main:7000")), refused);
    });
}

#[test]
fn who_connects_while_another_begins_to_listen_may_be_too_early() {
    let explored = explore(|| {
        let server = process::spawn("server", || {
            std::mem::forget(TcpListener::bind("server:7000").unwrap());
        });
        let refused = failed(TcpStream::connect("server:7000"));
        server.join().unwrap();
        refused
    });
    let both = [None, Some(ErrorKind::ConnectionRefused)];
    assert_eq!(explored.outcomes, both.into());
    assert_eq!(explored.executions, 2);
}

#[test]
fn an_address_is_bound_once_and_only_by_its_process() {
    holds_in(1, || {
        let in_use = Some(ErrorKind::AddrInUse);
        let listener = TcpListener::bind("main:7000").unwrap();
        assert_eq!(failed(TcpListener::bind("main:7000")), in_use);
        assert_eq!(failed(TcpListener::bind("0.0.0.0:7000")), in_use);
        let local = TcpListener::bind("localhost:7000").unwrap();
        drop(listener);
        drop(TcpListener::bind("main:7000").unwrap());
        drop(local);
        drop(TcpListener::bind("0.0.0.0:7000").unwrap());
        let elsewhere = failed(TcpListener::bind("other:7000"));
        assert_eq!(elsewhere, Some(ErrorKind::AddrNotAvailable));
        assert_eq!(
            failed(TcpListener::bind("main")),
            Some(ErrorKind::InvalidInput)
        );
    });
}

#[test]
fn of_two_threads_that_bind_one_address_either_comes_first() {
    let explored = explore(|| {
        let other = thread::spawn(|| TcpListener::bind("main:7000").map(std::mem::forget));
        let mine = failed(TcpListener::bind("main:7000").map(std::mem::forget));
        (mine, failed(other.join().unwrap()))
    });
    let in_use = Some(ErrorKind::AddrInUse);
    assert_eq!(explored.outcomes, [(None, in_use), (in_use, None)].into());
    assert_eq!(explored.executions, 2);
}

#[test]
fn port_0_is_a_port_that_is_free() {
    holds_in(1, || {
        let one = TcpListener::bind("main:0").unwrap();
        let two = TcpListener::bind("main:0").unwrap();
        let (one, two) = (one.local_addr().unwrap(), two.local_addr().unwrap());
        assert_eq!(one.ip(), process::address_of("main"));
        assert!(one.port() > 0 && two.port() > 0);
        assert_ne!(one, two);
    });
}

#[test]
fn both_ends_know_both_addresses() {
    holds_in(1, || {
        let listener = TcpListener::bind("main:7000").unwrap();
        let here = listener.local_addr().unwrap();
        assert_eq!(here, (process::address_of("main"), 7000).into());
        let client = process::spawn("client", move || {
            let stream = TcpStream::connect(here).unwrap();
            assert_eq!(stream.peer_addr().unwrap(), here);
            let local = stream.local_addr().unwrap();
            assert_eq!(local.ip(), process::address_of("client"));
            (&stream).write_all(local.to_string().as_bytes()).unwrap();
        });
        let (mut stream, from) = listener.accept().unwrap();
        assert_eq!(from.ip(), client.address());
        assert_eq!(stream.peer_addr().unwrap(), from);
        assert_eq!(stream.local_addr().unwrap(), here);
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert_eq!(said, from.to_string());
    });
}

#[test]
fn localhost_is_the_process_itself() {
    holds_in(1, || {
        let own = TcpListener::bind("localhost:7000").unwrap();
        let other = process::spawn("other", || {
            let own = TcpListener::bind(("127.0.0.1", 7000)).unwrap();
            let stream = TcpStream::connect("localhost:7000").unwrap();
            assert_eq!(stream.local_addr().unwrap().ip(), Ipv4Addr::LOCALHOST);
            let (_, from) = own.accept().unwrap();
            assert_eq!(from, stream.local_addr().unwrap());
            let refused = failed(TcpStream::connect("main:7000"));
            assert_eq!(refused, Some(ErrorKind::ConnectionRefused));
        });
        other.join().unwrap();
        own.set_nonblocking(true).unwrap();
        assert_eq!(failed(own.accept()), Some(ErrorKind::WouldBlock));
    });
}

#[test]
fn a_read_with_a_timeout_comes_out_both_ways() {
    let explored = explore(|| {
        let mut stream = with_client(|mut stream| stream.write_all(b"x").unwrap());
        stream.set_read_timeout(A_WHILE).unwrap();
        let read = failed(stream.read(&mut [0]));
        stream.set_read_timeout(None).unwrap();
        while stream.read(&mut [0]).unwrap() > 0 {}
        read
    });
    let both = [None, Some(ErrorKind::WouldBlock)];
    assert_eq!(explored.outcomes, both.into());
    // What comes after the byte is not there yet, or is: who waits for a while comes before or after the write.
    assert_eq!(explored.executions, 3);
}

#[test]
fn a_timeout_of_no_time_is_refused() {
    holds_in(1, || {
        let stream = with_client(|_| {});
        let refused = failed(stream.set_read_timeout(Some(Duration::ZERO)));
        assert_eq!(refused, Some(ErrorKind::InvalidInput));
        assert_eq!(stream.read_timeout().unwrap(), None);
    });
}

#[test]
fn who_does_not_block_learns_at_once_that_there_is_nothing() {
    let explored = explore(|| {
        let mut stream = with_client(|mut stream| {
            stream.write_all(b"x").unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        });
        stream.set_nonblocking(true).unwrap();
        let read = failed(stream.read(&mut [0]));
        stream.set_nonblocking(false).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        while stream.read(&mut [0]).unwrap() > 0 {}
        read
    });
    let both = [None, Some(ErrorKind::WouldBlock)];
    assert_eq!(explored.outcomes, both.into());
}

#[test]
fn a_listener_that_does_not_block_may_find_nobody() {
    let explored = explore(|| {
        let listener = TcpListener::bind("main:7000").unwrap();
        listener.set_nonblocking(true).unwrap();
        let client = process::spawn("client", || {
            std::mem::forget(TcpStream::connect("main:7000").unwrap());
        });
        let accepted = failed(listener.accept().map(std::mem::forget));
        client.join().unwrap();
        accepted
    });
    let both = [None, Some(ErrorKind::WouldBlock)];
    assert_eq!(explored.outcomes, both.into());
    assert_eq!(explored.executions, 2);
}

#[test]
fn what_is_peeked_at_stays() {
    holds_in(1, || {
        let mut stream = with_client(|mut stream| stream.write_all(b"abc").unwrap());
        let mut buffer = [0; 3];
        assert_eq!(stream.peek(&mut buffer[..2]).unwrap(), 2);
        assert_eq!(&buffer, b"ab\0");
        assert_eq!(stream.read(&mut buffer).unwrap(), 3);
        assert_eq!(&buffer, b"abc");
        assert_eq!(stream.peek(&mut buffer).unwrap(), 0);
    });
}

#[test]
fn who_shuts_its_writing_down_reads_on() {
    holds_in(1, || {
        let mut stream = with_client(|mut stream| {
            stream.write_all(b"question").unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert_eq!(answer, "answer");
        });
        let mut question = String::new();
        stream.read_to_string(&mut question).unwrap();
        assert_eq!(question, "question");
        stream.write_all(b"answer").unwrap();
    });
}

#[test]
fn who_shuts_its_writing_down_writes_no_more() {
    holds_in(1, || {
        let mut stream = with_client(|mut stream| {
            stream.shutdown(Shutdown::Write).unwrap();
            assert_eq!(failed(stream.write(b"more")), Some(ErrorKind::BrokenPipe));
            stream.read_exact(&mut [0]).unwrap_err();
        });
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        std::mem::forget(stream.try_clone());
        stream.shutdown(Shutdown::Write).unwrap();
    });
}

#[test]
fn who_shuts_its_reading_down_reads_the_end() {
    let explored = explore(|| {
        let mut stream = with_client(|stream| {
            stream.shutdown(Shutdown::Read).unwrap();
            assert_eq!((&stream).read(&mut [0]).unwrap(), 0);
        });
        failed(stream.write(b"x"))
    });
    let both = [None, Some(ErrorKind::BrokenPipe)];
    assert_eq!(explored.outcomes, both.into());
}

#[test]
fn two_threads_that_share_an_end_write_in_both_orders() {
    let explored = explore(|| {
        let mut stream = with_client(|stream| {
            let mut other = stream.try_clone().unwrap();
            let other = thread::spawn(move || other.write_all(b"a").unwrap());
            (&stream).write_all(b"b").unwrap();
            other.join().unwrap();
        });
        let mut heard = String::new();
        stream.read_to_string(&mut heard).unwrap();
        heard
    });
    assert_eq!(explored.outcomes, ["ab".to_owned(), "ba".to_owned()].into());
    // The handle of the thread that ends is dropped before the other one is, whatever they write.
    assert_eq!(explored.executions, 2);
}

#[test]
fn a_connection_ends_with_the_last_of_its_handles() {
    let explored = explore(|| {
        let mut stream = with_client(|stream| {
            let other = stream.try_clone().unwrap();
            thread::spawn(move || drop(other));
            (&stream).write_all(b"x").unwrap();
        });
        let mut heard = String::new();
        stream.read_to_string(&mut heard).unwrap();
        heard
    });
    assert_eq!(explored.outcomes, ["x".to_owned()].into());
    // Either thread is the last.
    assert_eq!(explored.executions, 2);
}

#[test]
fn two_threads_that_share_an_end_read_in_both_orders() {
    let explored = explore(|| {
        let stream = with_client(|mut stream| {
            stream.write_all(b"a").unwrap();
            stream.write_all(b"b").unwrap();
        });
        let other = stream.try_clone().unwrap();
        let read = |mut stream: &TcpStream| {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            char::from(byte[0])
        };
        let other = thread::spawn(move || read(&other));
        let mine = read(&stream);
        (mine, other.join().unwrap())
    });
    assert_eq!(explored.outcomes, [('a', 'b'), ('b', 'a')].into());
    assert_eq!(explored.executions, 2);
}

#[test]
fn who_writes_to_one_that_reads_no_more_is_told() {
    holds_in(1, || {
        let (gone, is_gone) = mpsc::channel();
        let mut stream = with_client(move |stream| {
            drop(stream);
            gone.send(()).unwrap();
        });
        is_gone.recv().unwrap();
        assert_eq!(failed(stream.write(b"x")), Some(ErrorKind::BrokenPipe));
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    });
}

#[test]
fn a_connection_that_nobody_accepts_breaks_with_the_listener() {
    let explored = explore(|| {
        let listener = TcpListener::bind("main:7000").unwrap();
        let client = process::spawn("client", || {
            let Ok(mut stream) = TcpStream::connect("main:7000") else {
                return;
            };
            let broken = failed(stream.read(&mut [0]));
            assert_eq!(broken, Some(ErrorKind::ConnectionReset));
        });
        drop(listener);
        client.join().unwrap();
    });
    // The client looks for the listener when it is gone, or comes too late to connect, or connects: then it hangs up
    // before or after the way to the listener breaks as well.
    assert_eq!(explored.executions, 4);
}

#[test]
fn those_who_connect_are_accepted_in_that_order() {
    let explored = explore(|| {
        let listener = TcpListener::bind("main:7000").unwrap();
        let clients = ["one", "two"].map(|name| {
            process::spawn(name, || {
                std::mem::forget(TcpStream::connect("main:7000").unwrap());
            })
        });
        let accept = || listener.accept().unwrap().1.ip();
        let (first, second) = (accept(), accept());
        assert_ne!(first, second);
        for client in clients {
            client.join().unwrap();
        }
        first == process::address_of("one")
    });
    assert_eq!(explored.outcomes, [false, true].into());
    assert_eq!(explored.executions, 2);
}

#[test]
fn incoming_gives_all_who_connect() {
    holds_in(1, || {
        let listener = TcpListener::bind("0.0.0.0:7000").unwrap();
        process::spawn("client", || {
            for number in 0..2 {
                let mut stream = TcpStream::connect(("main", 7000)).unwrap();
                stream.write_all(&[number]).unwrap();
            }
        });
        for (number, stream) in (0..2).zip(listener.incoming()) {
            let mut all = Vec::new();
            stream.unwrap().read_to_end(&mut all).unwrap();
            assert_eq!(all, [number]);
        }
    });
}

/// Two threads of a client share a connection; the second one calls `aside` meanwhile.
fn beside_a_reader(aside: fn(&TcpStream)) -> Verdict {
    let main = move || {
        let listener = TcpListener::bind("main:1").unwrap();
        process::spawn("client", move || {
            let mut stream = TcpStream::connect("main:1").unwrap();
            let other = stream.try_clone().unwrap();
            let other = thread::spawn(move || aside(&other));
            let mut buffer = [0];
            let _ = stream.read(&mut buffer);
            other.join().unwrap();
        });
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"x").unwrap();
    };
    Check::new(Threads::new(main)).run()
}

#[test]
fn who_changes_how_a_socket_reads_while_another_reads_is_refused() {
    let verdict = beside_a_reader(|stream| stream.set_nonblocking(true).unwrap());
    let Outcome::Inconclusive(why) = &verdict.outcome else {
        panic!("{verdict}");
    };
    assert!(why.contains("how a socket behaves"), "{why}");
}

#[test]
fn what_makes_no_difference_to_a_reader_can_be_changed_beside_it() {
    let verdict = beside_a_reader(|stream| {
        stream.set_nodelay(true).unwrap();
        stream
            .set_write_timeout(Some(Duration::from_secs(1)))
            .unwrap();
        stream.set_nonblocking(false).unwrap();
    });
    verdict.assert_holds();
}
