//! Who listens where, and which names and addresses stand for which process.

use std::collections::HashMap;
use std::io;
use std::net::{self, IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::panic::Location;
use std::sync::Weak;
use std::vec;

use super::Label;
use super::listener::Backlog;
use super::udp::Inbox;
use crate::target::threads::model::Model;
use crate::target::threads::operation::{Action, ObjectId};
use crate::target::threads::world::{self, World};
use crate::trace::scatter;

/// The addresses that something stands for.
pub type SocketAddrs = vec::IntoIter<SocketAddr>;

/// Something that stands for addresses, like [`std::net::ToSocketAddrs`]. Under a check the names of
/// [processes](crate::process) do, and no other names.
///
/// ```
/// use dragnet::net::{TcpListener, TcpStream};
/// use dragnet::{Check, Threads, process};
///
/// let verdict = Check::new(Threads::new(|| {
///     let listener = TcpListener::bind("main:7000").unwrap();
///     process::spawn("client", || drop(TcpStream::connect("main:7000").unwrap()));
///     listener.accept().unwrap();
/// }))
/// .run();
/// verdict.assert_holds();
/// ```
pub trait ToSocketAddrs {
    /// The addresses.
    fn to_socket_addrs(&self) -> io::Result<SocketAddrs>;
}

macro_rules! is_one_already {
    ($($address:ty),*) => {$(
        impl ToSocketAddrs for $address {
            fn to_socket_addrs(&self) -> io::Result<SocketAddrs> {
                let addresses: Vec<SocketAddr> = net::ToSocketAddrs::to_socket_addrs(self)?.collect();
                Ok(addresses.into_iter())
            }
        }
    )*};
}

is_one_already!(
    SocketAddr,
    SocketAddrV4,
    SocketAddrV6,
    (IpAddr, u16),
    (Ipv4Addr, u16),
    (Ipv6Addr, u16),
    &[SocketAddr]
);

impl ToSocketAddrs for (&str, u16) {
    fn to_socket_addrs(&self) -> io::Result<SocketAddrs> {
        let (host, port) = *self;
        if world::current().is_none() {
            let addresses: Vec<SocketAddr> = net::ToSocketAddrs::to_socket_addrs(self)?.collect();
            return Ok(addresses.into_iter());
        }
        let ip = match host {
            "localhost" => Ipv4Addr::LOCALHOST.into(),
            _ => host.parse().unwrap_or_else(|_| ip_of(host)),
        };
        Ok(vec![SocketAddr::new(ip, port)].into_iter())
    }
}

impl ToSocketAddrs for (String, u16) {
    fn to_socket_addrs(&self) -> io::Result<SocketAddrs> {
        (self.0.as_str(), self.1).to_socket_addrs()
    }
}

impl ToSocketAddrs for str {
    fn to_socket_addrs(&self) -> io::Result<SocketAddrs> {
        let invalid = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
        if let Ok(address) = self.parse() {
            return Ok(vec![address].into_iter());
        }
        let parts = self.rsplit_once(':');
        let (host, port) = parts.ok_or_else(|| invalid("invalid socket address"))?;
        let port: u16 = port.parse().map_err(|_| invalid("invalid port value"))?;
        (host, port).to_socket_addrs()
    }
}

impl ToSocketAddrs for String {
    fn to_socket_addrs(&self) -> io::Result<SocketAddrs> {
        self.as_str().to_socket_addrs()
    }
}

impl<T: ToSocketAddrs + ?Sized> ToSocketAddrs for &T {
    fn to_socket_addrs(&self) -> io::Result<SocketAddrs> {
        (**self).to_socket_addrs()
    }
}

/// The address of a process, which follows from its name: others can know it before the process is there.
pub(in crate::target::threads) fn ip_of(name: &str) -> IpAddr {
    let hash = name
        .bytes()
        .fold(1, |hash, byte| scatter(hash ^ u64::from(byte)));
    let [a, b, c, ..] = hash.to_le_bytes();
    Ipv4Addr::new(10, a, b, c.clamp(1, 254)).into()
}

/// What the processes of an execution listen on. A process need not be there for others to look for it.
#[derive(Default)]
pub(in crate::target::threads) struct Addresses(HashMap<Key, Port>);

/// A port of the process with this address.
type Key = (IpAddr, Protocol, u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Protocol {
    Tcp,
    Udp,
}

struct Port {
    /// What says who comes first: those who bind it, or those who look for somebody there.
    object: ObjectId,
    bound: Vec<(IpAddr, Bound)>,
}

/// Something that can be reached at an address.
#[derive(Clone)]
pub(super) enum Bound {
    Tcp(Weak<Backlog>),
    Udp(Weak<Inbox>),
}

impl Bound {
    fn protocol(&self) -> Protocol {
        match self {
            Self::Tcp(_) => Protocol::Tcp,
            Self::Udp(_) => Protocol::Udp,
        }
    }
}

impl Addresses {
    pub(in crate::target::threads) fn clear(&mut self) {
        self.0.clear();
    }

    fn port(&mut self, key: Key) -> Option<&mut Port> {
        self.0.get_mut(&key)
    }
}

/// Ports that nobody asks for by number begin here.
pub(in crate::target::threads) const FIRST_FREE_PORT: u16 = 49_152;

/// Makes something reachable for others, and says at which address.
pub(super) fn bind(
    world: &World,
    address: SocketAddr,
    bound: Bound,
    at: &'static Location<'static>,
) -> io::Result<SocketAddr> {
    let ip = address.ip();
    let own = world.ip();
    if !(ip.is_loopback() || ip.is_unspecified() || ip == own) {
        return Err(io::ErrorKind::AddrNotAvailable.into());
    }
    let protocol = bound.protocol();
    let port = match address.port() {
        0 => free_port(world, protocol),
        port => port,
    };
    let key = (own, protocol, port);
    world
        .operate_on(object(world, key), Action::Modify, at)
        .ok_or_else(super::over)?;
    let free = world.with_addresses(|addresses| {
        let port = addresses.port(key)?;
        let clash = |other: &IpAddr| *other == ip || other.is_unspecified() || ip.is_unspecified();
        if port.bound.iter().any(|(other, _)| clash(other)) {
            return None;
        }
        port.bound.push((ip, bound));
        Some(())
    });
    match free {
        Some(()) => Ok(SocketAddr::new(ip, port)),
        None => {
            world.changed_nothing();
            Err(io::ErrorKind::AddrInUse.into())
        }
    }
}

/// Undoes that. `own` is the address of the process that bound it.
pub(super) fn unbind(
    world: &World,
    own: IpAddr,
    protocol: Protocol,
    address: SocketAddr,
    at: &'static Location<'static>,
) {
    let key = (own, protocol, address.port());
    if world
        .operate_on(object(world, key), Action::Store, at)
        .is_some()
    {
        world.with_addresses(|addresses| {
            if let Some(port) = addresses.port(key) {
                port.bound.retain(|(ip, _)| *ip != address.ip());
            }
        });
    }
}

/// Who can be reached at an address from the process whose own address is `from`.
pub(super) fn find(
    world: &World,
    from: IpAddr,
    protocol: Protocol,
    address: SocketAddr,
    at: &'static Location<'static>,
) -> Option<Bound> {
    let ip = address.ip();
    let host = match ip.is_loopback() || ip.is_unspecified() {
        true => from,
        false => ip,
    };
    let key = (host, protocol, address.port());
    world.operate_on(object(world, key), Action::Load, at)?;
    let reaches = |bound: IpAddr| bound.is_unspecified() || bound == ip || ip.is_unspecified();
    world.with_addresses(|addresses| {
        let bound = &addresses.port(key)?.bound;
        let found = bound.iter().find(|(bound, _)| reaches(*bound))?;
        Some(found.1.clone())
    })
}

/// The object that a port is.
fn object(world: &World, key: Key) -> ObjectId {
    let known = world.with_addresses(|addresses| addresses.port(key).map(|port| port.object));
    known.unwrap_or_else(|| {
        let (host, _, port) = key;
        let label = Label::Port(SocketAddr::new(host, port));
        let object = world.add_object(Model::Memory, label);
        let bound = Vec::new();
        let port = Port { object, bound };
        world.with_addresses(|addresses| addresses.0.insert(key, port));
        object
    })
}

/// A port that nobody has asked for: it follows from who asks, and not from when, so that two who ask do not get in each
/// other's way.
pub(super) fn free_port(world: &World, protocol: Protocol) -> u16 {
    let own = world.ip();
    loop {
        let number = world.draw_port() % u64::from(u16::MAX - FIRST_FREE_PORT);
        let port = FIRST_FREE_PORT + number as u16;
        if world.with_addresses(|addresses| addresses.port((own, protocol, port)).is_none()) {
            return port;
        }
    }
}
