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
