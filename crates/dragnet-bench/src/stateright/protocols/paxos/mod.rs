//! Single-decree Paxos behind a register: three servers agree on one of the values that clients put.
//!
//! A put makes its server propose with a ballot above those that it knows; a server that knows the decision answers a
//! get, the others leave it in flight. A leader's messages to itself are done in place. What both checkers work with is
//! here, so that only the checkers differ.

pub mod dragnet;
pub mod stateright;

use std::collections::{BTreeMap, BTreeSet};

use super::register::Request;

const SERVERS: usize = 3;
const MAJORITY: usize = SERVERS / 2 + 1;

/// An attempt to lead. Later rounds win, and in one round the larger leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ballot {
    round: u32,
    leader: usize,
}

/// A value, with the request that it came with and whom to tell when it is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Proposal {
    request: Request,
    client: usize,
    value: char,
}

/// A proposal that was accepted, and under which ballot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Vote {
    ballot: Ballot,
    proposal: Proposal,
}

/// What servers say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Internal {
    /// Phase 1a: promise to ignore smaller ballots.
    Prepare(Ballot),
    /// Phase 1b: promised, and this was accepted last.
    Prepared(Ballot, Option<Vote>),
    /// Phase 2a: accept this.
    Accept(Vote),
    /// Phase 2b: accepted.
    Accepted(Ballot),
    /// A majority has accepted this.
    Decided(Vote),
}

/// What a server knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Server {
    ballot: Ballot,
    /// As a leader: what it proposes, who has promised, who has accepted.
    proposal: Option<Proposal>,
    promises: BTreeMap<usize, Option<Vote>>,
    acceptances: BTreeSet<usize>,
    /// As an acceptor.
    accepted: Option<Vote>,
    decided: bool,
}

impl Server {
    /// What a leader with a majority of promises must propose: what was accepted last, else its own.
    fn choose(&self) -> Proposal {
        let last = self.promises.values().flatten().max();
        let chosen = last.map(|vote| vote.proposal).or(self.proposal);
        chosen.expect("a leader has something to propose")
    }

    fn decision(&self) -> Option<Proposal> {
        self.accepted
            .filter(|_| self.decided)
            .map(|vote| vote.proposal)
    }
}

/// The property: no two servers have decided differently.
fn agree<'a>(servers: impl Iterator<Item = &'a Server>) -> bool {
    let mut decisions = servers.filter_map(Server::decision);
    match decisions.next() {
        Some(first) => decisions.all(|decision| decision == first),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_decided_differently_do_not_agree() {
        let server = |value, decided| Server {
            accepted: Some(Vote {
                ballot: Ballot::default(),
                proposal: Proposal {
                    request: 3,
                    client: 3,
                    value,
                },
            }),
            decided,
            ..Server::default()
        };
        assert!(agree([server('A', true), server('A', true)].iter()));
        assert!(agree([server('A', true), server('B', false)].iter()));
        assert!(!agree([server('A', true), server('B', true)].iter()));
    }
}
