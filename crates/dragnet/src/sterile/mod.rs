//! Sterile execution: what the code of a node reads of the clock and of chance follows from what it is run on.
//!
//! A handler must be a function of its state and its input. Code that reads `Instant::now()`, iterates a `HashMap` or
//! draws a random number is none. With the feature `sterile` it becomes one, without a change to its source, in two
//! steps:
//!
//! - *Replacements.* The functions of libc through which `std` and the `getrandom` crates reach the clock and the
//!   random source are replaced in this process (`replace`). A thread that runs a handler gets the values of its own
//!   small world (`world`); every other thread gets the real ones.
//! - *A fresh thread for each run.* `std` draws the keys of its hash maps once per thread and counts them up from map
//!   to map, and random generators keep their state in thread-locals too. A thread that has run a handler is therefore
//!   not clean any more, and no second one runs on it.
//!
//! Without the feature a handler runs where it is called.

#[cfg(all(
    feature = "sterile",
    not(all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))
))]
compile_error!("the feature `sterile` of dragnet needs Linux with glibc on x86_64 or aarch64");

#[cfg(feature = "sterile")]
mod fresh;
#[cfg(feature = "sterile")]
mod real;
#[cfg(feature = "sterile")]
mod replace;
#[cfg(feature = "sterile")]
mod world;

use std::hash::Hash;

use crate::panics;
use crate::system::Failure;

/// Runs code of a node; a panic in it comes back as a failure.
///
/// With the feature `sterile`, whatever `code` reads of the clock and of chance follows from `situation`.
#[cfg(feature = "sterile")]
pub(crate) fn run<T: Send>(
    situation: &impl Hash,
    code: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    use crate::trace::{Fingerprint, Key};

    let seed = Fingerprint::of(situation, Key::default()).0;
    fresh::run(|| {
        world::enter(seed);
        panics::catch(code)
    })
}

#[cfg(not(feature = "sterile"))]
pub(crate) fn run<T: Send>(
    _situation: &impl Hash,
    code: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    panics::catch(code)
}
