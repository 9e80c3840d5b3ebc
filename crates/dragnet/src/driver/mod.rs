//! From a check to a verdict: the target is made ready, an engine explores it, and what it finds is shortened, replayed and
//! described.

mod auto;
mod custom;
#[cfg(feature = "threads")]
mod dpor;
mod engines;
mod host;
mod replay;
mod requirements;
mod run;
mod shorten;
mod walks;

pub(crate) use host::Host;
pub use host::{Checkable, Direct};
pub(crate) use replay::{check_or_replay, replay_of};
pub(crate) use requirements::unmet_requirement;
pub(crate) use run::Prepared;
