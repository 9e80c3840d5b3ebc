//! Datagrams.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::time::Duration;

use dragnet::net::{TcpListener, UdpSocket};
use dragnet::{Check, Faults, Threads, Verdict, drops, duplicates, process};

use super::{explore, explore_with, failed, holds_in};

/// A socket of the first process, to which a process called `sensor` sends.
fn with_sensor(send: impl Fn(UdpSocket) + Send + Sync + 'static) -> UdpSocket {
    let socket = UdpSocket::bind("main:9000").unwrap();
    process::spawn("sensor", move || {
        send(UdpSocket::bind("sensor:9001").unwrap());
    });
    socket
}

fn receive(socket: &UdpSocket) -> u8 {
    let mut byte = [0];
    assert_eq!(socket.recv_from(&mut byte).unwrap().0, 1);
    byte[0]
}

/// What comes until nothing more comes.
fn receive_all(socket: &UdpSocket) -> Vec<u8> {
    let time = Some(Duration::from_secs(1));
    socket.set_read_timeout(time).unwrap();
    let mut all = Vec::new();
    let mut byte = [0];
    while socket.recv_from(&mut byte).is_ok() {
        all.push(byte[0]);
    }
    all
}

#[test]
fn a_datagram_arrives_and_says_from_whom() {
    holds_in(1, || {
        let socket = with_sensor(|socket| {
            assert_eq!(socket.send_to(b"21", "main:9000").unwrap(), 2);
        });
        let mut buffer = [0; 4];
        let (size, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..size], b"21");
        assert_eq!(from, (process::address_of("sensor"), 9001).into());
    });
}

#[test]
fn a_datagram_overtakes_another() {
    let explored = explore(|| {
        let socket = with_sensor(|socket| {
            socket.send_to(&[1], "main:9000").unwrap();
            socket.send_to(&[2], "main:9000").unwrap();
        });
        [receive(&socket), receive(&socket)]
    });
    assert_eq!(explored.outcomes, [[1, 2], [2, 1]].into());
    assert_eq!(explored.executions, 2);
}

#[test]
fn who_waits_for_a_while_may_hear_nothing_though_nothing_is_lost() {
    let explored = explore(|| {
        let socket = with_sensor(|socket| {
            socket.send_to(&[1], "main:9000").unwrap();
        });
        let heard = receive_all(&socket);
        std::mem::forget(socket);
        heard
    });
    assert_eq!(explored.outcomes, [vec![], vec![1]].into());
}

#[test]
fn a_socket_that_does_not_block_may_find_nothing() {
    let explored = explore(|| {
        let socket = with_sensor(|socket| {
            socket.send_to(&[1], "main:9000").unwrap();
        });
        socket.set_nonblocking(true).unwrap();
        let heard = failed(socket.recv_from(&mut [0]));
        std::mem::forget(socket);
        heard
    });
    let both = [None, Some(ErrorKind::WouldBlock)];
    assert_eq!(explored.outcomes, both.into());
    assert_eq!(explored.executions, 2);
}

/// What may be heard of two datagrams, sorted.
fn heard_of_two(faults: Faults) -> BTreeSet<Vec<u8>> {
    let explored = explore_with(faults, || {
        let socket = with_sensor(|socket| {
            socket.send_to(&[1], "main:9000").unwrap();
            socket.send_to(&[2], "main:9000").unwrap();
        });
        let mut heard = receive_all(&socket);
        std::mem::forget(socket);
        heard.sort_unstable();
        heard
    });
    explored.outcomes
}

#[test]
fn a_datagram_comes_twice_as_often_as_the_budget_says() {
    let twice = |heard: &Vec<u8>| heard.windows(2).filter(|two| two[0] == two[1]).count();
    let most = |faults| heard_of_two(faults).iter().map(twice).max();
    assert_eq!(most(Faults::none()), Some(0));
    assert_eq!(most(duplicates(1)), Some(1));
    assert_eq!(most(duplicates(2)), Some(2));
}

/// Whether so many of two datagrams are heard in any case.
fn hears_of_two(count: usize, faults: Faults) -> Verdict {
    Check::new(Threads::new(move || {
        let socket = with_sensor(|socket| {
            socket.send_to(&[1], "main:9000").unwrap();
            socket.send_to(&[2], "main:9000").unwrap();
        });
        for _ in 0..count {
            receive(&socket);
        }
    }))
    .faults(faults)
    .run()
}

#[test]
fn a_datagram_is_lost_as_often_as_the_budget_says() {
    hears_of_two(2, Faults::none()).assert_holds();
    assert!(hears_of_two(2, drops(1)).violation().is_some());
    let one = hears_of_two(1, drops(1));
    one.assert_holds();
    assert_eq!(one.within, ["faults drops=1"]);
    assert!(hears_of_two(1, drops(2)).violation().is_some());
}

#[test]
fn a_connected_socket_hears_only_its_peer() {
    let explored = explore(|| {
        let socket = UdpSocket::bind("main:9000").unwrap();
        let not_connected = Some(ErrorKind::NotConnected);
        assert_eq!(failed(socket.peer_addr()), not_connected);
        assert_eq!(failed(socket.send(&[0])), not_connected);
        socket.connect("friend:1").unwrap();
        assert_eq!(
            socket.peer_addr().unwrap().ip(),
            process::address_of("friend")
        );
        for (name, byte) in [("friend", 1), ("stranger", 2)] {
            process::spawn(name, move || {
                let socket = UdpSocket::bind((name, 1)).unwrap();
                socket.connect("main:9000").unwrap();
                socket.send(&[byte]).unwrap();
            });
        }
        let mut byte = [0];
        assert_eq!(socket.recv(&mut byte).unwrap(), 1);
        byte[0]
    });
    assert_eq!(explored.outcomes, [1].into());
    // The stranger's comes before the friend's, between that and the end of the socket, or too late: the socket gives up
    // its port and then what has arrived.
    assert_eq!(explored.executions, 4);
}

#[test]
fn a_datagram_to_nobody_is_lost() {
    holds_in(1, || {
        let socket = UdpSocket::bind("main:0").unwrap();
        assert_eq!(socket.send_to(&[1], "nobody:9000").unwrap(), 1);
        assert_eq!(socket.send_to(&[1], "main:9000").unwrap(), 1);
        socket.set_nonblocking(true).unwrap();
        let nothing = failed(socket.recv_from(&mut [0]));
        assert_eq!(nothing, Some(ErrorKind::WouldBlock));
    });
}

#[test]
fn what_there_is_no_room_for_is_cut_off() {
    holds_in(1, || {
        let socket = with_sensor(|socket| {
            socket.send_to(b"abc", "main:9000").unwrap();
        });
        let mut buffer = [0; 2];
        assert_eq!(socket.peek_from(&mut buffer).unwrap().0, 2);
        assert_eq!(socket.recv_from(&mut buffer).unwrap().0, 2);
        assert_eq!(&buffer, b"ab");
        socket.set_nonblocking(true).unwrap();
        let rest = failed(socket.recv_from(&mut buffer));
        assert_eq!(rest, Some(ErrorKind::WouldBlock));
    });
}

#[test]
fn an_empty_datagram_is_one_all_the_same() {
    holds_in(1, || {
        let socket = with_sensor(|socket| {
            socket.send_to(&[], "main:9000").unwrap();
        });
        assert_eq!(socket.recv_from(&mut [0]).unwrap().0, 0);
    });
}

#[test]
fn datagrams_and_connections_have_ports_of_their_own() {
    holds_in(1, || {
        let _listener = TcpListener::bind("main:9000").unwrap();
        let socket = UdpSocket::bind("main:9000").unwrap();
        let again = failed(UdpSocket::bind("main:9000"));
        assert_eq!(again, Some(ErrorKind::AddrInUse));
        drop(socket);
        UdpSocket::bind("main:9000").unwrap();
    });
}
