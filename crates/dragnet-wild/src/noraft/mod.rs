//! `noraft`: Raft without I/O, clock or random numbers, in the releases 0.4.0 and 0.5.0.
//!
//! Node 0 creates a cluster of which all nodes are voters, and runs for its first leader; everybody else learns from it
//! that there is one. The driver hands a node its messages and time-outs and does what the node then wants done: it
//! saves term, vote and log entries, sends messages, and sets one timer, called `heartbeat` on a leader and `election`
//! on everybody else. A handler is one step, so that all is saved before anything is sent. After a crash a node starts
//! again from what was saved, with the next generation. Nobody takes snapshots, and the voters stay the same. `noraft`
//! knows that there is a command at a place in the log, not what it says; its place, the term and the index, names it.
//!
//! What a node has ever said to be committed is remembered beside it, over crashes. Such an entry must stay in the log of
//! the node, and no two nodes may have committed different entries at the same index. Besides, no term has two leaders
//! at once, and two logs that share an entry share all before it.
//!
//! Elections and commands go on for ever, so these parameters bound the system. Within their defaults the space is small,
//! and it is large enough for what is wrong in 0.4.0.
//!
//! | parameter | means |
//! |---|---|
//! | `version` | the release |
//! | `nodes` | how many nodes there are |
//! | `proposers` | how many of them are asked for commands, node 0 first; only a leader can take one |
//! | `commands` | how often each of those is asked |
//! | `elections` | how often a node can stand for election because its time-out runs out, besides the first election |
//! | `heartbeats` | how often the time-out of a leader runs out, so that it shows its followers that it is there |
//! | `terms` | the last term that is looked at |
//! | `capacity` | how many messages a link carries at once, from one node to another; what is sent beyond that is lost, as the crate allows for a busy link. 0 stands for any number |
//!
//! A voter of 0.4.0 compares the length of its log with that of the candidate, and forgets to compare the terms of their
//! last entries first. So a deposed leader that took a command in its old term and kept it to itself is elected by
//! somebody who has committed an entry of a later term at the same index, and has it overwritten.
//!
//! 0.5.0 mends that. With one crash something else goes wrong in both: a node that gives up entries which its leader does
//! not have gives them up in memory only, and has them again after a restart. When the leader's answer to what the node
//! said before then arrives, entries are written behind those that should be gone.

use dragnet::catalog::{AnyCheck, Entry};

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
        reason = "one driver for two releases, whose types are not the same"
    )]
    pub(super) mod driver;
}

/// The crate under the name `noraft`.
pub fn entry() -> Entry {
    Entry::new(
        "noraft",
        "the crate noraft: Raft without I/O",
        |setup| -> Box<dyn AnyCheck> {
            let bounds = Bounds {
                nodes: setup.number("nodes"),
                proposers: setup.number("proposers"),
                commands: setup.number("commands"),
                elections: setup.number("elections"),
                heartbeats: setup.number("heartbeats"),
                terms: setup.number("terms"),
                capacity: setup.number("capacity"),
            };
            setup.require(
                bounds.proposers <= bounds.nodes,
                "there are more proposers than nodes",
            );
            match setup.choice("version") {
                "0.4.0" => v0_4::driver::check(&bounds).into(),
                _ => v0_5::driver::check(&bounds).into(),
            }
        },
    )
    .choice("version", ["0.5.0", "0.4.0"], "which release it is")
    .parameter(
        "nodes",
        3,
        1..=9,
        "how many nodes there are, all of them voters",
    )
    .parameter(
        "proposers",
        1,
        1..=9,
        "how many of them are asked for commands",
    )
    .parameter("commands", 1, 1..=9, "how often each of those is asked")
    .parameter(
        "elections",
        1,
        0..=9,
        "how often a node can stand for election after the first one",
    )
    .parameter(
        "heartbeats",
        0,
        0..=9,
        "how often a leader can show that it is there",
    )
    .parameter("terms", 3, 1..=99, "the last term that is looked at")
    .parameter(
        "capacity",
        1,
        0..=99,
        "how many messages a link carries; 0 for any number",
    )
}

/// What keeps the space finite, as the parameters say it.
struct Bounds {
    nodes: usize,
    proposers: usize,
    commands: usize,
    elections: u32,
    heartbeats: u32,
    terms: u64,
    capacity: usize,
}

#[cfg(test)]
mod tests {
    use dragnet::catalog::Selection;
    use dragnet::engine::{Engine, EngineName, EngineOption};
    use dragnet::{Faults, Outcome, Verdict, crashes};

    use super::*;

    /// A check of a release: parameters as given, everything else as it is.
    fn check(version: &str, set: &[(&str, &str)], faults: Faults) -> Box<dyn AnyCheck> {
        let entry = entry();
        let selection = Selection::of(&entry).with("version", version).unwrap();
        let selection = set.iter().fold(selection, |selection, (name, value)| {
            selection.with(name, value).unwrap()
        });
        entry.check(&selection.with_faults(faults)).unwrap()
    }

    /// With one thread every engine takes the same steps in every run.
    fn search(version: &str, set: &[(&str, &str)], engine: EngineName, faults: Faults) -> Verdict {
        let mut check = check(version, set, faults);
        let engine = Engine::from(engine);
        let walks = engine.with(EngineOption::Walks(20_000));
        check.options_mut().engine = walks.unwrap_or(engine);
        check.options_mut().threads = 1;
        check.run_under(&Default::default())
    }

    /// How many steps it takes to overwrite a committed entry, after it has happened a second time.
    fn steps_to_overwriting(set: &[(&str, &str)], engine: EngineName) -> usize {
        let verdict = search("0.4.0", set, engine, Faults::none());
        let violation = verdict.violation().expect("0.4.0 forgets to compare terms");
        assert_eq!(violation.property, "no committed entry is ever overwritten");
        let counterexample = verdict.counterexample().expect("an execution shows it");
        let replay = check("0.4.0", set, Faults::none()).replay(&counterexample.trace);
        assert!(replay.is_ok(), "it happens again");
        counterexample.len()
    }

    #[test]
    fn breadth_first_finds_that_0_4_0_overwrites_a_committed_entry() {
        assert_eq!(steps_to_overwriting(&[], EngineName::Breadth), 20);
    }

    #[test]
    fn depth_first_finds_that_0_4_0_overwrites_a_committed_entry() {
        assert!(steps_to_overwriting(&[], EngineName::Depth) >= 20);
    }

    #[test]
    fn random_walks_find_it_on_links_that_carry_everything_and_with_all_nodes_proposing() {
        let wide = [("capacity", "0"), ("proposers", "3")];
        assert!(steps_to_overwriting(&wide, EngineName::Random) >= 18);
        let verdict = search("0.5.0", &wide, EngineName::Random, Faults::none());
        assert!(
            matches!(verdict.outcome, Outcome::Inconclusive(_)),
            "the same walks find nothing"
        );
    }

    #[test]
    fn the_whole_space_of_0_5_0_holds_without_faults() {
        let verdict = search("0.5.0", &[], EngineName::Breadth, Faults::none());
        verdict.assert_holds();
        assert_eq!(verdict.states(), 1_823_918);
    }

    #[test]
    fn two_terms_of_0_5_0_hold_with_a_crash() {
        search("0.5.0", &[("terms", "2")], EngineName::Breadth, crashes(1)).assert_holds();
    }

    #[test]
    fn three_terms_of_0_5_0_do_not_hold_with_a_crash() {
        let verdict = search("0.5.0", &[], EngineName::Depth, crashes(1));
        let counterexample = verdict
            .counterexample()
            .expect("a log is mended in memory only");
        let replay = check("0.5.0", &[], crashes(1)).replay(&counterexample.trace);
        assert!(replay.is_ok(), "it happens again");
    }
}
