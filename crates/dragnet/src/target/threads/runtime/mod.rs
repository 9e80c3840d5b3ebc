//! Running a program: threads as coroutines on one OS thread, and who of them is enabled.

pub(crate) mod enabled;
pub(crate) mod executor;
pub(super) mod live;
mod stacks;
pub(crate) mod statics;
pub(crate) mod watchdog;
pub(crate) mod world;
