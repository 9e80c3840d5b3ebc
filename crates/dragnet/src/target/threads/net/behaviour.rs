//! How sockets behave.

use std::io;
use std::net::SocketAddr;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::pipe::Wait;
use crate::target::threads::handle::Handle;
use crate::target::threads::world;

/// How a socket behaves, for all who have it.
///
/// To ask and to say how is nothing that others notice by itself. Threads that do it side by side would have to be followed
/// in every order, which is not done: it is refused.
pub(super) struct Behaviour {
    options: Mutex<Options>,
    handle: Handle,
}

#[derive(Clone, Copy)]
pub(super) struct Options {
    pub(super) blocks: bool,
    pub(super) read_timeout: Option<Duration>,
    pub(super) write_timeout: Option<Duration>,
    pub(super) nodelay: bool,
    pub(super) ttl: u32,
    pub(super) broadcast: bool,
    /// Who a socket for datagrams sends to, and hears of.
    pub(super) peer: Option<SocketAddr>,
}

impl Behaviour {
    pub(super) fn new() -> Self {
        Self {
            options: Mutex::new(Options {
                blocks: true,
                read_timeout: None,
                write_timeout: None,
                nodelay: false,
                ttl: 64,
                broadcast: false,
                peer: None,
            }),
            handle: Handle::new(),
        }
    }

    pub(super) fn get(&self) -> Options {
        *self.lock()
    }

    /// The same for who goes on by it.
    pub(super) fn ask(&self, at: &'static Location<'static>) -> Options {
        self.come(false, at);
        self.get()
    }

    #[track_caller]
    pub(super) fn set(&self, change: impl FnOnce(&mut Options)) -> io::Result<()> {
        let mut options = self.lock();
        let before = *options;
        change(&mut options);
        let matters = |options: Options| (options.blocks, options.read_timeout, options.peer);
        let changes = matters(before) != matters(*options);
        drop(options);
        if changes {
            self.come(true, Location::caller());
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Options> {
        self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn come(&self, changes: bool, at: &'static Location<'static>) {
        if let Some(world) = world::current()
            && let Some(raced) = world.come_to(&self.handle, changes, at)
        {
            world.refuse(format!(
                "{raced}: how a socket behaves is followed only where a lock or a message orders who changes it"
            ));
        }
    }

    /// How long somebody waits who reads.
    pub(super) fn wait(&self, at: &'static Location<'static>) -> Wait {
        let options = self.ask(at);
        match options.read_timeout {
            _ if !options.blocks => Wait::No,
            Some(time) => Wait::For(time),
            None => Wait::Long,
        }
    }
}

/// A timeout of no time at all is refused, as `std` does.
pub(super) fn checked_timeout(time: Option<Duration>) -> io::Result<Option<Duration>> {
    match time {
        Some(Duration::ZERO) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "cannot set a 0 duration timeout",
        )),
        time => Ok(time),
    }
}

/// The options that several kinds of sockets have, real ones and those of executions.
macro_rules! options {
    ($socket:ident: $kind:ident, $($what:ident),*) => {
        impl $socket {
            $($crate::target::threads::net::behaviour::option!($kind $what);)*
        }
    };
}

macro_rules! option {
    ($kind:ident timeouts) => {
        /// How long somebody waits for something to come; under a check the wait comes to either end.
        #[track_caller]
        pub fn set_read_timeout(&self, time: Option<std::time::Duration>) -> std::io::Result<()> {
            match &self.0 {
                $kind::Real(real) => real.set_read_timeout(time),
                $kind::Ours(ours) => {
                    let time = $crate::target::threads::net::behaviour::checked_timeout(time)?;
                    ours.behaviour.set(|options| options.read_timeout = time)
                }
            }
        }

        /// How long somebody waits until something goes off. Under a check nobody has to.
        pub fn set_write_timeout(&self, time: Option<std::time::Duration>) -> std::io::Result<()> {
            match &self.0 {
                $kind::Real(real) => real.set_write_timeout(time),
                $kind::Ours(ours) => {
                    let time = $crate::target::threads::net::behaviour::checked_timeout(time)?;
                    ours.behaviour.set(|options| options.write_timeout = time)
                }
            }
        }

        /// What was said by [`set_read_timeout`](Self::set_read_timeout).
        #[track_caller]
        pub fn read_timeout(&self) -> std::io::Result<Option<std::time::Duration>> {
            match &self.0 {
                $kind::Real(real) => real.read_timeout(),
                $kind::Ours(ours) => {
                    let at = std::panic::Location::caller();
                    Ok(ours.behaviour.ask(at).read_timeout)
                }
            }
        }

        /// What was said by [`set_write_timeout`](Self::set_write_timeout).
        pub fn write_timeout(&self) -> std::io::Result<Option<std::time::Duration>> {
            match &self.0 {
                $kind::Real(real) => real.write_timeout(),
                $kind::Ours(ours) => Ok(ours.behaviour.get().write_timeout),
            }
        }
    };
    ($kind:ident nonblocking) => {
        /// Whether nobody waits, but learns at once that there is nothing.
        #[track_caller]
        pub fn set_nonblocking(&self, nonblocking: bool) -> std::io::Result<()> {
            match &self.0 {
                $kind::Real(real) => real.set_nonblocking(nonblocking),
                $kind::Ours(ours) => ours.behaviour.set(|options| options.blocks = !nonblocking),
            }
        }
    };
    ($kind:ident ttl) => {
        /// How far packets go. Under a check they always arrive.
        pub fn set_ttl(&self, ttl: u32) -> std::io::Result<()> {
            match &self.0 {
                $kind::Real(real) => real.set_ttl(ttl),
                $kind::Ours(ours) => ours.behaviour.set(|options| options.ttl = ttl),
            }
        }

        /// How far packets go.
        pub fn ttl(&self) -> std::io::Result<u32> {
            match &self.0 {
                $kind::Real(real) => real.ttl(),
                $kind::Ours(ours) => Ok(ours.behaviour.get().ttl),
            }
        }
    };
    ($kind:ident error) => {
        /// Why the last operation failed that did not say so itself.
        pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
            match &self.0 {
                $kind::Real(real) => real.take_error(),
                $kind::Ours(_) => Ok(None),
            }
        }
    };
}

pub(super) use {option, options};
