//! How a space is walked: the explorers, what they share, and the limits that they keep.
//!
//! The walk itself, one state and its successors at a time, is written once in [`walk`]; an explorer decides which
//! state comes next.

mod breadth;
mod crew;
mod depth;
mod draw;
mod engines;
mod guarded;
mod limits;
mod local;
mod path;
mod quiet;
mod random;
#[cfg(test)]
mod reference;
mod replay;
mod run;
mod sample;
#[cfg(feature = "threads")]
pub(crate) mod schedules;
mod shorten;
mod store;
mod walk;

pub use limits::{Control, Progress};
pub(crate) use replay::{check_or_replay, replay};
pub(crate) use run::check;
