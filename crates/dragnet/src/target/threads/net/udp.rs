//! Datagrams.

use std::fmt::{self, Debug};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::Location;
use std::sync::Arc;

use super::addresses::{self, Bound, Protocol};
use super::behaviour::{Behaviour, options};
use super::held::{Close, Held};
use super::pipe::{Failed, Pipe};
use super::{Label, Socket, ToSocketAddrs, first_that_works, give_up, over, seen_at};
use crate::target::threads::operation::Harm;
use crate::target::threads::world;

/// A socket that sends and receives datagrams, like [`std::net::UdpSocket`].
///
/// Under a check a datagram is on its way for as long as it likes, and arrives unless it is lost. What is sent to where
/// nobody is, is lost.
///
/// ```
/// use dragnet::net::UdpSocket;
/// use dragnet::{Check, Threads, drops, process};
/// use std::time::Duration;
///
/// let ask = || {
///     let socket = UdpSocket::bind("main:9000").unwrap();
///     socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
///     process::spawn("sensor", || {
///         let socket = UdpSocket::bind("sensor:0").unwrap();
///         socket.send_to(&[21], "main:9000").unwrap();
///     });
///     let mut measured = [0];
///     socket.recv_from(&mut measured).expect("the sensor is heard");
/// };
/// let verdict = Check::new(Threads::new(ask)).faults(drops(1)).run();
/// assert!(verdict.violation().is_some());
/// ```
pub struct UdpSocket(Kind);

enum Kind {
    Real(std::net::UdpSocket),
    Ours(Held<Ours>),
}

/// A socket of an execution.
struct Ours {
    bound: Arc<BoundUdp>,
    behaviour: Behaviour,
}

/// Where somebody receives, and what.
struct BoundUdp {
    local: SocketAddr,
    /// The address of the process that it belongs to.
    host: IpAddr,
    inbox: Arc<Inbox>,
}

/// What has arrived and has not been received.
pub(super) struct Inbox {
    arrived: Pipe<Datagram>,
}

#[derive(Clone)]
struct Datagram {
    from: SocketAddr,
    bytes: Arc<[u8]>,
}

impl Close for Ours {
    fn close(&self) {
        self.bound.break_off();
        give_up(&self.bound);
    }
}

impl Socket for BoundUdp {
    fn break_off(&self) {
        let at = Location::caller();
        if let Some(world) = world::current() {
            addresses::unbind(world, self.host, Protocol::Udp, self.local, at);
        }
        self.inbox.arrived.hang_up(at);
    }
}

impl Ours {
    fn connected(&self, at: &'static Location<'static>) -> io::Result<SocketAddr> {
        let peer = self.behaviour.ask(at).peer;
        peer.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn send(
        &self,
        bytes: &[u8],
        to: SocketAddr,
        at: &'static Location<'static>,
    ) -> io::Result<usize> {
        let Some(world) = world::current().filter(|world| !world.is_over()) else {
            return Err(over());
        };
        let copies = match world.suffer(Harm::Datagram, at).ok_or_else(over)? {
            Harm::LOST => 0,
            Harm::TWICE => 2,
            _ => 1,
        };
        let BoundUdp { local, host, .. } = *self.bound;
        let ip = match local.ip().is_unspecified() {
            false => local.ip(),
            true if to.ip().is_loopback() => to.ip(),
            true => host,
        };
        let datagram = Datagram {
            from: SocketAddr::new(ip, local.port()),
            bytes: bytes.into(),
        };
        for _ in 0..copies {
            let datagram = datagram.clone();
            let name = format!("datagram from {}", world.name_of_running());
            world.spawn_outside(
                name,
                Box::new(move || {
                    let Some(world) = world::current() else {
                        return;
                    };
                    let found = addresses::find(world, host, Protocol::Udp, to, at);
                    if let Some(Bound::Udp(inbox)) = found
                        && let Some(inbox) = inbox.upgrade()
                    {
                        let size = datagram.bytes.len().max(1);
                        // Where nobody receives it any more it is lost.
                        let _arrives = inbox.arrived.put(size, at, || datagram);
                    }
                }),
            );
        }
        Ok(bytes.len())
    }

    fn receive(
        &self,
        into: &mut [u8],
        takes: bool,
        at: &'static Location<'static>,
    ) -> io::Result<(usize, SocketAddr)> {
        loop {
            let most = if takes { usize::MAX } else { 0 };
            let peer = self.behaviour.ask(at).peer;
            let wait = self.behaviour.wait(at);
            let received = self.bound.inbox.arrived.take(most, wait, at, |datagram| {
                let size = datagram.bytes.len().min(into.len());
                into[..size].copy_from_slice(&datagram.bytes[..size]);
                ((size, datagram.from), takes)
            });
            match received {
                Ok((_, from)) if peer.is_some_and(|peer| peer != from) => {
                    if !takes {
                        let skip = |_: &mut Datagram| ((), true);
                        let _skipped = self.bound.inbox.arrived.take(usize::MAX, wait, at, skip);
                    }
                }
                Ok(received) => return Ok(received),
                Err(Failed::Empty) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(Failed::Gone | Failed::Reset | Failed::Over) => return Err(over()),
            }
        }
    }
}

impl UdpSocket {
    /// A socket at an address. Port 0 is a port that is free.
    #[track_caller]
    pub fn bind<A: ToSocketAddrs>(address: A) -> io::Result<Self> {
        let at = Location::caller();
        first_that_works(address, |address| Self::bind_to(address, at))
    }

    #[track_caller]
    fn bind_to(address: SocketAddr, at: &'static Location<'static>) -> io::Result<Self> {
        let Some(world) = world::current() else {
            let real = std::net::UdpSocket::bind(address)?;
            return Ok(Self(Kind::Real(real)));
        };
        let inbox = Arc::new(Inbox {
            arrived: Pipe::new(),
        });
        let bound = Bound::Udp(Arc::downgrade(&inbox));
        let local = addresses::bind(world, address, bound, at)?;
        let host = world.ip();
        inbox.arrived.label(Label::Inbox(seen_at(local, host)));
        let bound = Arc::new(BoundUdp { local, host, inbox });
        world.keep(&bound);
        let ours = Ours {
            bound,
            behaviour: Behaviour::new(),
        };
        let held = Held::new(ours, seen_at(local, host), None);
        Ok(Self(Kind::Ours(held)))
    }

    /// Where it receives.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Kind::Real(real) => real.local_addr(),
            Kind::Ours(ours) => Ok(ours.bound.local),
        }
    }

    /// Where it is [connected](Self::connect) to.
    #[track_caller]
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Kind::Real(real) => real.peer_addr(),
            Kind::Ours(ours) => ours.connected(Location::caller()),
        }
    }

    /// Another handle for the same socket.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(match &self.0 {
            Kind::Real(real) => Kind::Real(real.try_clone()?),
            Kind::Ours(ours) => Kind::Ours(ours.clone()),
        }))
    }

    /// Says whom [`send`](Self::send) sends to, and from whom alone something is received.
    #[track_caller]
    pub fn connect<A: ToSocketAddrs>(&self, address: A) -> io::Result<()> {
        first_that_works(address, |address| match &self.0 {
            Kind::Real(real) => real.connect(address),
            Kind::Ours(ours) => ours.behaviour.set(|options| options.peer = Some(address)),
        })
    }

    /// Sends a datagram to somebody.
    #[track_caller]
    pub fn send_to<A: ToSocketAddrs>(&self, bytes: &[u8], address: A) -> io::Result<usize> {
        let at = Location::caller();
        let mut addresses = address.to_socket_addrs()?;
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "no addresses to send data to");
        let address = addresses.next().ok_or_else(none)?;
        match &self.0 {
            Kind::Real(real) => real.send_to(bytes, address),
            Kind::Ours(ours) => ours.send(bytes, address, at),
        }
    }

    /// Sends a datagram to where the socket is [connected](Self::connect) to.
    #[track_caller]
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::Real(real) => real.send(bytes),
            Kind::Ours(ours) => ours.send(
                bytes,
                ours.connected(Location::caller())?,
                Location::caller(),
            ),
        }
    }

    /// Waits for a datagram, and says who has sent it. What there is no room for is lost.
    #[track_caller]
    pub fn recv_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        match &self.0 {
            Kind::Real(real) => real.recv_from(into),
            Kind::Ours(ours) => ours.receive(into, true, Location::caller()),
        }
    }

    /// Waits for a datagram from where the socket is [connected](Self::connect) to.
    #[track_caller]
    pub fn recv(&self, into: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::Real(real) => real.recv(into),
            Kind::Ours(ours) => {
                ours.connected(Location::caller())?;
                let (size, _) = ours.receive(into, true, Location::caller())?;
                Ok(size)
            }
        }
    }

    /// The same as [`recv_from`](Self::recv_from), but the datagram stays.
    #[track_caller]
    pub fn peek_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        match &self.0 {
            Kind::Real(real) => real.peek_from(into),
            Kind::Ours(ours) => ours.receive(into, false, Location::caller()),
        }
    }

    /// The same as [`recv`](Self::recv), but the datagram stays.
    #[track_caller]
    pub fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::Real(real) => real.peek(into),
            Kind::Ours(ours) => {
                ours.connected(Location::caller())?;
                let (size, _) = ours.receive(into, false, Location::caller())?;
                Ok(size)
            }
        }
    }

    /// Whether it may send to all at once. Under a check there is no such address.
    pub fn set_broadcast(&self, broadcast: bool) -> io::Result<()> {
        match &self.0 {
            Kind::Real(real) => real.set_broadcast(broadcast),
            Kind::Ours(ours) => ours.behaviour.set(|options| options.broadcast = broadcast),
        }
    }

    /// What was said by [`set_broadcast`](Self::set_broadcast).
    pub fn broadcast(&self) -> io::Result<bool> {
        match &self.0 {
            Kind::Real(real) => real.broadcast(),
            Kind::Ours(ours) => Ok(ours.behaviour.get().broadcast),
        }
    }
}

options!(UdpSocket: Kind, timeouts, nonblocking, ttl, error);

impl Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Real(real) => real.fmt(f),
            Kind::Ours(ours) => f
                .debug_struct("UdpSocket")
                .field("addr", &ours.bound.local)
                .finish(),
        }
    }
}
