//! The programs under shuttle.

use ::shuttle::{sync, thread};

#[path = "text.rs"]
mod text;

pub use text::PROGRAMS;
