//! The programs that are compared, written once: the same text is compiled against the primitives of each checker.
//!
//! What all checkers can run and understand in the same way:
//!
//! - at most five threads with the first one, as loom has room for no more;
//! - atomic operations with `SeqCst` only;
//! - `Arc` of `std`, because loom counts what is done to its own, and the others do not;
//! - at most one thread that waits at a condition variable, unless all are notified: loom wakes the first, the others
//!   any;
//! - channels that nobody waits to see closed: loom does not tell;
//! - nothing that is right only because all `SeqCst` operations have one order, such as a work-stealing deque: loom takes
//!   them for acquire and release, and finds what cannot happen;
//! - no loop around `park`: shuttle wakes threads for no reason, without end.

// The same file three times is the point.
#![allow(clippy::duplicate_mod)]

mod on_dragnet;
mod on_loom;
mod on_shuttle;

use super::checker::Tool;

/// A program, on the primitives of one checker.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// By which it is chosen.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Whether something is wrong with it.
    pub is_wrong: bool,
    /// Whether even every interleaving of it takes no time worth mentioning.
    pub is_small: bool,
    /// What is run once for each execution.
    pub run: fn(),
}

impl Program {
    const fn correct(name: &'static str, title: &'static str, run: fn()) -> Self {
        Self {
            name,
            title,
            is_wrong: false,
            is_small: false,
            run,
        }
    }

    const fn wrong(name: &'static str, title: &'static str, run: fn()) -> Self {
        let program = Self::correct(name, title, run);
        Self {
            is_wrong: true,
            ..program
        }
    }

    const fn small(self) -> Self {
        Self {
            is_small: true,
            ..self
        }
    }

    /// All of them, on the primitives of a checker.
    pub const fn all(tool: Tool) -> &'static [Self] {
        match tool {
            Tool::Dragnet => on_dragnet::PROGRAMS,
            Tool::Loom => on_loom::PROGRAMS,
            Tool::Shuttle => on_shuttle::PROGRAMS,
        }
    }

    /// The one with a name, on Dragnet's primitives.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        let all = Self::all(Tool::Dragnet);
        let found = all.iter().find(|program| program.name == name);
        found.ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|program| program.name).collect();
            format!("choose one of {}", names.join(", "))
        })
    }

    /// The same program on the primitives of a checker.
    pub fn on(&self, tool: Tool) -> &'static Self {
        let same = |program: &&Self| program.name == self.name;
        let found = Self::all(tool).iter().find(same);
        found.expect("every checker has the same programs")
    }
}
