//! The programs under loom.

use ::loom::{sync, thread};

#[path = "text.rs"]
mod text;

pub use text::PROGRAMS;
