//! Connections.

use std::fmt::{self, Debug};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::addresses::{self, Bound, Protocol};
use super::behaviour::{Behaviour, options};
use super::held::{Close, Held};
use super::pipe::{Failed, Pipe};
use super::{Label, Socket, ToSocketAddrs, first_that_works, give_up, over};
use crate::target::threads::describe::address;
use crate::target::threads::operation::Harm;
use crate::target::threads::world::{self, World};

/// One end of a connection, like [`std::net::TcpStream`].
///
/// ```
/// use std::io::{Read, Write};
///
/// use dragnet::net::{TcpListener, TcpStream};
/// use dragnet::{Check, Threads, process};
///
/// Check::new(Threads::new(|| {
///     let listener = TcpListener::bind("main:7000").unwrap();
///     process::spawn("client", || {
///         let mut stream = TcpStream::connect("main:7000").unwrap();
///         stream.write_all(b"hello").unwrap();
///     });
///     let (mut stream, _) = listener.accept().unwrap();
///     let mut heard = String::new();
///     stream.read_to_string(&mut heard).unwrap();
///     assert_eq!(heard, "hello");
/// }))
/// .run()
/// .assert_holds();
/// ```
pub struct TcpStream(Stream);

enum Stream {
    Real(std::net::TcpStream),
    Ours(Held<End>),
}

/// One end of a connection of an execution.
pub(super) struct End {
    pub(super) pipes: Arc<Pipes>,
    local: SocketAddr,
    pub(super) peer: SocketAddr,
    behaviour: Behaviour,
}

/// The two ways of a connection, as one end sees them.
pub(super) struct Pipes {
    incoming: Arc<Pipe<Vec<u8>>>,
    outgoing: Arc<Pipe<Vec<u8>>>,
}

impl Close for End {
    fn close(&self) {
        let at = Location::caller();
        self.pipes.outgoing.shut(at);
        self.pipes.incoming.hang_up(at);
        give_up(&self.pipes);
    }
}

impl Socket for Pipes {
    fn break_off(&self) {
        let at = Location::caller();
        self.outgoing.reset(at);
        self.incoming.reset(at);
    }
}

/// Two ends that belong together.
#[track_caller]
fn connection(local: SocketAddr, peer: SocketAddr) -> (Held<End>, Held<End>) {
    let (there, back) = (Arc::new(Pipe::new()), Arc::new(Pipe::new()));
    let way = |from, to| Label::Bytes { from, to };
    there.label(way(local, peer));
    back.label(way(peer, local));
    let end = |incoming: &Arc<_>, outgoing: &Arc<_>, local, peer| {
        let pipes = Arc::new(Pipes {
            incoming: Arc::clone(incoming),
            outgoing: Arc::clone(outgoing),
        });
        let behaviour = Behaviour::new();
        let end = End {
            pipes,
            local,
            peer,
            behaviour,
        };
        Held::new(end, local, Some(peer))
    };
    (
        end(&back, &there, local, peer),
        end(&there, &back, peer, local),
    )
}

/// A connection may break at some time.
fn tempt_fate(world: &World, end: &End) {
    let pipes = Arc::clone(&end.pipes);
    let (from, to) = (end.local, end.peer);
    let name = || {
        let state = world.state().borrow();
        let (from, to) = (address(&state, from), address(&state, to));
        format!("fate of the connection from {from} to {to}")
    };
    world.tempt(Harm::Connection, name, move || pipes.break_off());
}

impl TcpStream {
    pub(super) fn real(real: std::net::TcpStream) -> Self {
        Self(Stream::Real(real))
    }

    pub(super) fn ours(end: Held<End>) -> Self {
        Self(Stream::Ours(end))
    }

    /// Connects to somebody who listens.
    #[track_caller]
    pub fn connect<A: ToSocketAddrs>(address: A) -> io::Result<Self> {
        let at = Location::caller();
        first_that_works(address, |address| Self::connect_to(address, None, at))
    }

    /// Connects to somebody who listens. Under a check the answer, yes or no, comes in time.
    #[track_caller]
    pub fn connect_timeout(address: &SocketAddr, time: Duration) -> io::Result<Self> {
        Self::connect_to(*address, Some(time), Location::caller())
    }

    #[track_caller]
    fn connect_to(
        address: SocketAddr,
        time: Option<Duration>,
        at: &'static Location<'static>,
    ) -> io::Result<Self> {
        let Some(world) = world::current() else {
            let real = match time {
                None => std::net::TcpStream::connect(address),
                Some(time) => std::net::TcpStream::connect_timeout(&address, time),
            };
            return real.map(Self::real);
        };
        if world.is_over() {
            return Err(over());
        }
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let own = world.ip();
        let found = addresses::find(world, own, Protocol::Tcp, address, at);
        let Some(Bound::Tcp(backlog)) = found else {
            return Err(refused());
        };
        let backlog = backlog.upgrade().ok_or_else(refused)?;
        let local = match address.ip().is_loopback() {
            true => address.ip(),
            false => own,
        };
        let local = SocketAddr::new(local, addresses::free_port(world, Protocol::Tcp));
        let mut mine = None;
        let connected = backlog.connect(at, || {
            let (here, there) = connection(local, address);
            mine = Some(here);
            there
        });
        let mine = match (connected, mine) {
            (Ok(()), Some(mine)) => mine,
            (Err(Failed::Over), _) => return Err(over()),
            _ => return Err(refused()),
        };
        world.keep(&mine.pipes);
        tempt_fate(world, &mine);
        Ok(Self::ours(mine))
    }

    /// The address of this end.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Stream::Real(real) => real.local_addr(),
            Stream::Ours(end) => Ok(end.local),
        }
    }

    /// The address of the other end.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Stream::Real(real) => real.peer_addr(),
            Stream::Ours(end) => Ok(end.peer),
        }
    }

    /// Says that nothing more is written, or read.
    #[track_caller]
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let at = Location::caller();
        match &self.0 {
            Stream::Real(real) => return real.shutdown(how),
            Stream::Ours(end) => {
                if how != Shutdown::Read {
                    end.pipes.outgoing.shut(at);
                }
                if how != Shutdown::Write {
                    end.pipes.incoming.hang_up(at);
                }
            }
        }
        Ok(())
    }

    /// Another handle for the same end.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(match &self.0 {
            Stream::Real(real) => Stream::Real(real.try_clone()?),
            Stream::Ours(end) => Stream::Ours(end.clone()),
        }))
    }

    /// Reads without taking anything away.
    #[track_caller]
    pub fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Stream::Real(real) => real.peek(into),
            Stream::Ours(end) => end.read(into, false, Location::caller()),
        }
    }

    /// Whether what is written goes off at once. Under a check it always does.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        match &self.0 {
            Stream::Real(real) => real.set_nodelay(nodelay),
            Stream::Ours(end) => end.behaviour.set(|options| options.nodelay = nodelay),
        }
    }

    /// What was said by [`set_nodelay`](Self::set_nodelay).
    pub fn nodelay(&self) -> io::Result<bool> {
        match &self.0 {
            Stream::Real(real) => real.nodelay(),
            Stream::Ours(end) => Ok(end.behaviour.get().nodelay),
        }
    }

    fn read_at(&self, into: &mut [u8], at: &'static Location<'static>) -> io::Result<usize> {
        match &self.0 {
            Stream::Real(real) => (&*real).read(into),
            Stream::Ours(end) => end.read(into, true, at),
        }
    }

    fn write_at(&self, bytes: &[u8], at: &'static Location<'static>) -> io::Result<usize> {
        match &self.0 {
            Stream::Real(real) => (&*real).write(bytes),
            Stream::Ours(end) => end.write(bytes, at),
        }
    }
}

impl End {
    /// Reads as much of what was written in one go as there is room for.
    fn read(
        &self,
        into: &mut [u8],
        takes: bool,
        at: &'static Location<'static>,
    ) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let most = if takes { into.len() } else { 0 };
        let wait = self.behaviour.wait(at);
        let read = self.pipes.incoming.take(most, wait, at, |piece| {
            let size = piece.len().min(into.len());
            into[..size].copy_from_slice(&piece[..size]);
            if takes {
                piece.drain(..size);
            }
            (size, piece.is_empty())
        });
        match read {
            Ok(size) => Ok(size),
            Err(Failed::Gone) => Ok(0),
            Err(Failed::Empty) => Err(io::ErrorKind::WouldBlock.into()),
            Err(Failed::Reset) => Err(io::ErrorKind::ConnectionReset.into()),
            Err(Failed::Over) => Err(over()),
        }
    }

    fn write(&self, bytes: &[u8], at: &'static Location<'static>) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        match self.pipes.outgoing.put(bytes.len(), at, || bytes.to_vec()) {
            Ok(()) => Ok(bytes.len()),
            Err(Failed::Over) => Err(over()),
            Err(Failed::Reset) => Err(io::ErrorKind::ConnectionReset.into()),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// Reads until nothing comes any more.
fn read_to_end(
    mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
    all: &mut Vec<u8>,
) -> io::Result<usize> {
    let mut buffer = vec![0; 8 << 10];
    let before = all.len();
    loop {
        match read(&mut buffer) {
            Ok(0) => return Ok(all.len() - before),
            Ok(size) => all.extend_from_slice(&buffer[..size]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

options!(TcpStream: Stream, timeouts, nonblocking, ttl, error);

// What `std` would do by itself is done here, so that places in the source are those of the user.
impl Read for &TcpStream {
    #[track_caller]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_at(into, Location::caller())
    }

    #[track_caller]
    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let into = into.iter_mut().find(|slice| !slice.is_empty());
        into.map_or(Ok(0), |into| self.read_at(into, Location::caller()))
    }

    #[track_caller]
    fn read_exact(&mut self, mut into: &mut [u8]) -> io::Result<()> {
        let at = Location::caller();
        while !into.is_empty() {
            match self.read_at(into, at) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(size) => into = &mut into[size..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    #[track_caller]
    fn read_to_end(&mut self, all: &mut Vec<u8>) -> io::Result<usize> {
        let at = Location::caller();
        read_to_end(|buffer| self.read_at(buffer, at), all)
    }

    #[track_caller]
    fn read_to_string(&mut self, all: &mut String) -> io::Result<usize> {
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        let text = String::from_utf8(bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        all.push_str(&text);
        Ok(text.len())
    }
}

impl Write for &TcpStream {
    #[track_caller]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_at(bytes, Location::caller())
    }

    #[track_caller]
    fn write_vectored(&mut self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        let bytes = bytes.iter().find(|slice| !slice.is_empty());
        bytes.map_or(Ok(0), |bytes| self.write_at(bytes, Location::caller()))
    }

    #[track_caller]
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let at = Location::caller();
        while !bytes.is_empty() {
            match self.write_at(bytes, at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(size) => bytes = &bytes[size..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for TcpStream {
    #[track_caller]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        (&*self).read(into)
    }

    #[track_caller]
    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&*self).read_vectored(into)
    }

    #[track_caller]
    fn read_exact(&mut self, into: &mut [u8]) -> io::Result<()> {
        (&*self).read_exact(into)
    }

    #[track_caller]
    fn read_to_end(&mut self, all: &mut Vec<u8>) -> io::Result<usize> {
        (&*self).read_to_end(all)
    }

    #[track_caller]
    fn read_to_string(&mut self, all: &mut String) -> io::Result<usize> {
        (&*self).read_to_string(all)
    }
}

impl Write for TcpStream {
    #[track_caller]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    #[track_caller]
    fn write_vectored(&mut self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(bytes)
    }

    #[track_caller]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        (&*self).write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Stream::Real(real) => real.fmt(f),
            Stream::Ours(end) => f
                .debug_struct("TcpStream")
                .field("addr", &end.local)
                .field("peer", &end.peer)
                .finish(),
        }
    }
}
