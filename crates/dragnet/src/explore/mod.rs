//! How a space is walked: the explorers, what they share, and the limits that they keep.
//!
//! The walk itself, one state and its successors at a time, is written once in [`walk`]; an explorer decides which
//! state comes next.

pub(crate) mod breadth;
mod crew;
pub(crate) mod custom;
pub(crate) mod depth;
mod depth_first;
pub(crate) mod draw;
pub(crate) mod limits;
pub(crate) mod local;
pub(crate) mod parent_links;
pub(crate) mod path;
pub(crate) mod quiet;
pub(crate) mod random;
#[cfg(test)]
mod reference;
pub(crate) mod sample;
#[cfg(feature = "threads")]
pub(crate) mod schedules;
pub(crate) mod visited;
pub(crate) mod walk;
mod work_queue;

pub use limits::{Control, Progress};
