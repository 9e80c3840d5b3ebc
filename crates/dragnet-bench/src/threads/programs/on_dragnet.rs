//! The programs under Dragnet.

use ::dragnet::{sync, thread};

#[path = "text.rs"]
mod text;

pub use text::PROGRAMS;
