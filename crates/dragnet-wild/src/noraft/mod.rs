//! `noraft`: Raft without I/O.

use dragnet::{AnyCheck, Entry};

#[path = "."]
mod v0_4 {
    pub(super) use noraft_0_4 as noraft;

    pub(super) mod driver;
}

#[path = "."]
mod v0_5 {
    pub(super) use noraft_0_5 as noraft;

    #[expect(
        clippy::duplicate_mod,
        reason = "one driver for two versions, whose types are not the same"
    )]
    pub(super) mod driver;
}

/// What keeps the space small.
struct Bounds {
    nodes: usize,
    commands: usize,
    elections: u32,
    heartbeats: u32,
    terms: u64,
}

/// The crate under the name `noraft`.
pub fn entry() -> Entry {
    Entry::new("noraft", "Raft without I/O", |setup| -> Box<dyn AnyCheck> {
        let bounds = Bounds {
            nodes: setup.number("nodes"),
            commands: setup.number("commands"),
            elections: setup.number("elections"),
            heartbeats: setup.number("heartbeats"),
            terms: setup.number("terms"),
        };
        match setup.choice("version") {
            "0.4.0" => v0_4::driver::check(&bounds).into(),
            _ => v0_5::driver::check(&bounds).into(),
        }
    })
    .choice("version", ["0.5.0", "0.4.0"], "which release it is")
    .parameter(
        "nodes",
        3,
        1..=9,
        "how many nodes there are, all of them voters",
    )
    .parameter(
        "commands",
        1,
        1..=9,
        "how often each node is asked to propose a command",
    )
    .parameter(
        "elections",
        1,
        0..=9,
        "how often a node can lose its patience and stand for election",
    )
    .parameter(
        "heartbeats",
        0,
        0..=9,
        "how often a node can show that it leads",
    )
    .parameter("terms", 3, 1..=99, "the last term that is looked at")
}
