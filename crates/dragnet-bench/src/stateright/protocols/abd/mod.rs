//! The register of Attiya, Bar-Noy and Dolev ("Sharing Memory Robustly in Message-Passing Systems", 1995): replicas on
//! which reads and writes are linearizable without consensus.
//!
//! The server that a client turns to first asks a majority for what they hold, then has a majority record what is to
//! stand: a new value under a larger stamp, or what it has read. It serves one request at a time and leaves others in
//! flight. With two servers and two clients it has 325 states. Stateright's own example says 544 of the same protocol,
//! since it keeps the history of calls and answers in the state: where both clients finish, the order in which they did
//! tells states apart that are otherwise equal. Here no history is kept.
//!
//! What both checkers work with is here, so that only the checkers differ.

pub mod dragnet;
pub mod stateright;

use std::collections::{BTreeMap, BTreeSet};

use super::register::Request;

/// When a value was written: a number, and which server gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stamp {
    number: u64,
    server: usize,
}

/// A value with its stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stamped {
    stamp: Stamp,
    value: char,
}

/// What servers say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Internal {
    /// What do you hold?
    Query(Request),
    /// This.
    Holds(Request, Stamped),
    /// Hold this, unless you hold something later.
    Record(Request, Stamped),
    /// Done.
    Recorded(Request),
}

/// What a server holds, and what it is doing for a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    held: Stamped,
    phase: Option<Phase>,
}

/// How far a client's request is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// Asking what the others hold.
    Asking {
        request: Request,
        client: usize,
        /// What is to be written, if anything.
        write: Option<char>,
        answers: BTreeMap<usize, Stamped>,
    },
    /// Having it recorded.
    Recording {
        request: Request,
        client: usize,
        /// What has been read, unless this is a write.
        read: Option<char>,
        recorded: BTreeSet<usize>,
    },
}

impl Server {
    fn new(me: usize) -> Self {
        let stamp = Stamp {
            number: 0,
            server: me,
        };
        Self {
            held: Stamped {
                stamp,
                value: char::default(),
            },
            phase: None,
        }
    }

    fn record(&mut self, later: Stamped) {
        if later.stamp > self.held.stamp {
            self.held = later;
        }
    }

    fn ask(&self, me: usize, request: Request, client: usize, write: Option<char>) -> Phase {
        Phase::Asking {
            request,
            client,
            write,
            answers: BTreeMap::from([(me, self.held)]),
        }
    }

    fn is_asking_for(&self, wanted: Request) -> bool {
        matches!(&self.phase, Some(Phase::Asking { request, .. }) if *request == wanted)
    }

    fn is_recording_for(&self, wanted: Request) -> bool {
        matches!(&self.phase, Some(Phase::Recording { request, .. }) if *request == wanted)
    }

    /// What must be recorded for a request that a majority has answered: a write goes on top of the latest.
    fn to_record(me: usize, answers: &BTreeMap<usize, Stamped>, write: Option<char>) -> Stamped {
        let latest = answers.values().max_by_key(|held| held.stamp);
        let latest = *latest.expect("a server answers itself");
        match write {
            None => latest,
            Some(value) => Stamped {
                stamp: Stamp {
                    number: latest.stamp.number + 1,
                    server: me,
                },
                value,
            },
        }
    }
}

/// The property: a stamp stands for one value, on whichever server. `servers` lists them anew each time.
fn stamps_are_unique<'a, L>(servers: impl Fn() -> L) -> bool
where
    L: Iterator<Item = &'a Server>,
{
    servers().enumerate().all(|(at, one)| {
        servers()
            .skip(at + 1)
            .all(|other| one.held.stamp != other.held.stamp || one.held.value == other.held.value)
    })
}

fn majority(servers: usize) -> usize {
    servers / 2 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stamp_with_two_values_is_noticed() {
        let server = |me, number, value| {
            let mut server = Server::new(me);
            server.record(Stamped {
                stamp: Stamp { number, server: 0 },
                value,
            });
            server
        };
        let unique = |servers: [Server; 2]| stamps_are_unique(|| servers.iter());
        assert!(unique([server(0, 1, 'A'), server(1, 1, 'A')]));
        assert!(unique([server(0, 1, 'A'), server(1, 2, 'B')]));
        assert!(!unique([server(0, 1, 'A'), server(1, 1, 'B')]));
    }
}
