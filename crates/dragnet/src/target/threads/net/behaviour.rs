//! How sockets behave.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::pipe::Wait;

/// How a socket behaves, for all who have it.
pub(super) struct Behaviour(Mutex<Options>);

#[derive(Clone, Copy)]
pub(super) struct Options {
    pub(super) blocks: bool,
    pub(super) read_timeout: Option<Duration>,
    pub(super) write_timeout: Option<Duration>,
    pub(super) nodelay: bool,
    pub(super) ttl: u32,
    pub(super) broadcast: bool,
}

impl Behaviour {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Options {
            blocks: true,
            read_timeout: None,
            write_timeout: None,
            nodelay: false,
            ttl: 64,
            broadcast: false,
        }))
    }

    pub(super) fn get(&self) -> Options {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut Options)) -> io::Result<()> {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    /// How long somebody waits who reads.
    pub(super) fn wait(&self) -> Wait {
        let options = self.get();
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
        pub fn read_timeout(&self) -> std::io::Result<Option<std::time::Duration>> {
            match &self.0 {
                $kind::Real(real) => real.read_timeout(),
                $kind::Ours(ours) => Ok(ours.behaviour.get().read_timeout),
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
