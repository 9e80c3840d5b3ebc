//! Real multi-threaded code, on primitives that mirror those of `std`.
//!
//! Threads run as coroutines on one thread of the operating system. A thread runs undisturbed up to its next operation
//! on something that it shares; which thread goes on there is decided outside. So an execution is a sequence of
//! decisions, and the same decisions give the same execution.

mod clocks;
pub(crate) mod executor;
pub mod hint;
pub(crate) mod model;
pub(crate) mod operation;
mod statics;
pub mod sync;
pub mod thread;
pub(crate) mod world;
