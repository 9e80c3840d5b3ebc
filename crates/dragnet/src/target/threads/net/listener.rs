//! Who can be connected to.

use std::fmt::{self, Debug};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::Location;
use std::sync::Arc;

use super::addresses::{self, Bound, Protocol};
use super::behaviour::{Behaviour, options};
use super::held::{Close, Held};
use super::pipe::{Failed, Pipe};
use super::stream::{End, TcpStream};
use super::{Label, Socket, ToSocketAddrs, first_that_works, give_up, over, seen_at};
use crate::target::threads::world;

/// Somebody who can be connected to, like [`std::net::TcpListener`].
pub struct TcpListener(Listener);

enum Listener {
    Real(std::net::TcpListener),
    Ours(Held<Listening>),
}

/// A listener of an execution.
struct Listening {
    bound: Arc<BoundTcp>,
    behaviour: Behaviour,
}

/// Where somebody listens, and who has connected.
struct BoundTcp {
    local: SocketAddr,
    /// The address of the process that it belongs to.
    host: IpAddr,
    backlog: Arc<Backlog>,
}

/// Connections that nobody has accepted.
pub(super) struct Backlog {
    waiting: Pipe<Unaccepted>,
}

impl Backlog {
    /// Has somebody wait to be accepted, at the end that `there` makes once it is known that somebody listens.
    pub(super) fn connect(
        &self,
        at: &'static Location<'static>,
        there: impl FnOnce() -> Held<End>,
    ) -> Result<(), Failed> {
        self.waiting.put(1, at, || Unaccepted(Some(there())))
    }
}

/// The end of a connection that nobody has accepted.
struct Unaccepted(Option<Held<End>>);

impl Unaccepted {
    /// It breaks with the listener.
    fn losing(&self) -> impl FnOnce() + use<> {
        let pipes = self.0.as_ref().map(|end| Arc::clone(&end.pipes));
        move || {
            if let Some(pipes) = pipes {
                pipes.break_off();
            }
        }
    }
}

impl Drop for Unaccepted {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            end.abandon();
        }
    }
}

impl Close for Listening {
    fn close(&self) {
        self.bound.break_off();
        give_up(&self.bound);
    }
}

impl Socket for BoundTcp {
    fn break_off(&self) {
        let at = Location::caller();
        if let Some(world) = world::current() {
            addresses::unbind(world, self.host, Protocol::Tcp, self.local, at);
        }
        self.backlog.waiting.hang_up_losing(at, Unaccepted::losing);
    }
}

impl TcpListener {
    /// Listens at an address. Port 0 is a port that is free.
    #[track_caller]
    pub fn bind<A: ToSocketAddrs>(address: A) -> io::Result<Self> {
        let at = Location::caller();
        first_that_works(address, |address| Self::bind_to(address, at))
    }

    #[track_caller]
    fn bind_to(address: SocketAddr, at: &'static Location<'static>) -> io::Result<Self> {
        let Some(world) = world::current() else {
            let real = std::net::TcpListener::bind(address)?;
            return Ok(Self(Listener::Real(real)));
        };
        let backlog = Arc::new(Backlog {
            waiting: Pipe::new(),
        });
        let bound = Bound::Tcp(Arc::downgrade(&backlog));
        let local = addresses::bind(world, address, bound, at)?;
        let host = world.ip();
        backlog.waiting.label(Label::Backlog(seen_at(local, host)));
        let bound = Arc::new(BoundTcp {
            local,
            host,
            backlog,
        });
        world.keep(&bound);
        let behaviour = Behaviour::new();
        let listening = Listening { bound, behaviour };
        let held = Held::new(listening, seen_at(local, host), None);
        Ok(Self(Listener::Ours(held)))
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Listener::Real(real) => real.local_addr(),
            Listener::Ours(listening) => Ok(listening.bound.local),
        }
    }

    /// Another handle for the same listener.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(match &self.0 {
            Listener::Real(real) => Listener::Real(real.try_clone()?),
            Listener::Ours(listening) => Listener::Ours(listening.clone()),
        }))
    }

    /// Waits for somebody to connect.
    #[track_caller]
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let listening = match &self.0 {
            Listener::Real(real) => {
                let (real, peer) = real.accept()?;
                return Ok((TcpStream::real(real), peer));
            }
            Listener::Ours(listening) => listening,
        };
        let wait = listening.behaviour.wait(Location::caller());
        let waiting = &listening.bound.backlog.waiting;
        let accepted = waiting.take(1, wait, Location::caller(), |end| (end.0.take(), true));
        match accepted {
            Ok(Some(end)) => {
                if let Some(world) = world::current() {
                    world.keep(&end.pipes);
                }
                let peer = end.peer;
                Ok((TcpStream::ours(end), peer))
            }
            Err(Failed::Empty) => Err(io::ErrorKind::WouldBlock.into()),
            Err(Failed::Gone | Failed::Reset) => Err(io::ErrorKind::InvalidInput.into()),
            Ok(None) | Err(Failed::Over) => Err(over()),
        }
    }

    /// All who connect, one after the other.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming(self)
    }
}

options!(TcpListener: Listener, nonblocking, ttl, error);

impl Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Listener::Real(real) => real.fmt(f),
            Listener::Ours(listening) => f
                .debug_struct("TcpListener")
                .field("addr", &listening.bound.local)
                .finish(),
        }
    }
}

/// All who connect to a [`TcpListener`], one after the other.
#[derive(Debug)]
pub struct Incoming<'a>(&'a TcpListener);

impl Iterator for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    #[track_caller]
    fn next(&mut self) -> Option<io::Result<TcpStream>> {
        Some(self.0.accept().map(|(stream, _)| stream))
    }
}
