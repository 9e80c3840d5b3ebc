//! A network, with the names and signatures of `std::net`.
//!
//! Under a check it exists only in the execution. Each [process](crate::process) has an address of its own, which its name
//! stands for: `TcpStream::connect("primary:7000")`. Bytes that are written to a connection can be read at once, those of
//! one `write` at a time; connections break if there is a budget for [`resets`](crate::resets). A datagram is on its way
//! for as long as it likes, so that others overtake it; it can be lost or come twice where there is a budget for
//! [`drops`](crate::drops) or [`duplicates`](crate::duplicates).

mod addresses;
mod behaviour;
mod held;
mod listener;
mod pipe;
mod stream;
mod udp;

use std::io;
use std::sync::Arc;

pub use std::net::{
    AddrParseError, IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, SocketAddrV4, SocketAddrV6,
};

use super::world;

pub(super) use addresses::{Addresses, FIRST_FREE_PORT, ip_of};
pub use addresses::{SocketAddrs, ToSocketAddrs};
pub use listener::{Incoming, TcpListener};
pub use stream::TcpStream;
pub use udp::UdpSocket;

/// What a part of the network is, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// Who binds it and who looks for somebody there meet at it.
    Port(SocketAddr),
    Backlog(SocketAddr),
    Inbox(SocketAddr),
    /// One way of a connection.
    Bytes {
        from: SocketAddr,
        to: SocketAddr,
    },
    /// The last of them closes the socket.
    Handles {
        local: SocketAddr,
        peer: Option<SocketAddr>,
    },
}

/// Something that breaks when its process crashes.
pub(super) trait Socket {
    /// The caller is none of the threads of the process.
    fn break_off(&self);
}

/// A socket is closed, and does not break any more.
fn give_up<S: Socket + 'static>(socket: &Arc<S>) {
    if let Some(world) = world::current() {
        world.give_up(socket);
    }
}

/// An address as others know it: one that stands for all is that of the process.
fn seen_at(local: SocketAddr, host: IpAddr) -> SocketAddr {
    match local.ip().is_unspecified() {
        true => SocketAddr::new(host, local.port()),
        false => local,
    }
}

/// What is said when an execution is over, and nobody hears it.
fn over() -> io::Error {
    io::Error::other("the execution is over")
}

/// Tries addresses one after the other.
fn first_that_works<A: ToSocketAddrs, T>(
    addresses: A,
    mut attempt: impl FnMut(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut last = io::Error::new(
        io::ErrorKind::InvalidInput,
        "could not resolve to any addresses",
    );
    for address in addresses.to_socket_addrs()? {
        match attempt(address) {
            Ok(works) => return Ok(works),
            Err(error) => last = error,
        }
    }
    Err(last)
}
