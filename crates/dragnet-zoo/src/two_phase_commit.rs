//! Two-phase commit between a coordinator and its participants, as nodes on a network.
//!
//! The application asks the coordinator, node 0, to begin. It asks every participant to prepare; each votes yes, and is
//! then bound by what the coordinator decides, or votes no and aborts at once. When all have voted yes the coordinator
//! commits; when one votes no, or the votes take too long, it aborts; it tells everybody, and answers the application.
//!
//! Votes and decisions are on disk before they are sent. A coordinator that comes back from a crash tells its decision
//! once more, and aborts when it had none. A participant that has voted yes waits for the decision, for ever if need be:
//! that two-phase commit blocks is not a bug of this module.
//!
//! The one parameter, `participants`, says how many participants there are. With the bug `majority` the coordinator
//! commits as soon as a majority has voted yes.

use std::collections::BTreeSet;
use std::time::Duration;

use dragnet::catalog::Entry;
use dragnet::nodes::{Either, Snapshot};
use dragnet::{Check, Cluster, Context, Node, NodeId, Timer};
use serde::{Deserialize, Serialize};

/// Two-phase commit under the name `two-phase-commit`.
pub fn entry() -> Entry {
    Entry::new(
        "two-phase-commit",
        "a coordinator and participants that commit together or not at all",
        |setup| {
            let participants: usize = setup.number("participants");
            let votes = if setup.has_bug("majority") {
                participants / 2 + 1
            } else {
                participants
            };
            check(cluster(participants, votes))
        },
    )
    .parameter("participants", 3, 1..=8, "how many participants there are")
    .bug(
        "majority",
        "commits as soon as a majority has voted yes",
        |bug| bug,
    )
}

fn check(
    cluster: Cluster<Either<Coordinator, Participant>>,
) -> Check<Cluster<Either<Coordinator, Participant>>> {
    Check::new(cluster.serializable())
        .always("nobody commits while another aborts", |s| {
            !(somebody(s, Outcome::Committed) && somebody(s, Outcome::Aborted))
        })
        .always("nobody commits before all have voted yes", |s| {
            let decided = s
                .role::<Coordinator, _>()
                .any(|(_, state)| *state == Decision::Committed);
            !(decided || somebody(s, Outcome::Committed))
                || s.role::<Participant, _>()
                    .all(|(_, state)| matches!(state, Outcome::Prepared | Outcome::Committed))
        })
        .reachable("all commit", |s| everybody(s, Outcome::Committed))
        .reachable("all abort", |s| everybody(s, Outcome::Aborted))
}

/// A coordinator that commits with `votes` votes, and its participants.
pub fn cluster(participants: usize, votes: usize) -> Cluster<Either<Coordinator, Participant>> {
    Cluster::new(1, |_| Coordinator { votes })
        .and(participants, |_| Participant)
        .calls(0, [Msg::Begin])
}

fn somebody(s: Snapshot<'_, Either<Coordinator, Participant>>, outcome: Outcome) -> bool {
    s.role::<Participant, _>()
        .any(|(_, state)| *state == outcome)
}

fn everybody(s: Snapshot<'_, Either<Coordinator, Participant>>, outcome: Outcome) -> bool {
    s.role::<Participant, _>()
        .all(|(_, state)| *state == outcome)
}

const VOTES_ARE_LATE: Timer = Timer::new("votes are late");
const PATIENCE: Duration = Duration::from_millis(500);

/// What the application, the coordinator and the participants say to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// The application wants the transaction to be committed.
    Begin,
    /// The coordinator asks for a vote.
    Prepare,
    /// A participant votes to commit.
    Yes,
    /// A participant votes to abort.
    No,
    /// The coordinator has decided to commit.
    Commit,
    /// The coordinator has decided to abort.
    Abort,
}

/// The node that decides.
#[derive(Clone, Copy, Debug)]
pub struct Coordinator {
    /// With how many votes it commits.
    pub votes: usize,
}

/// What the coordinator has decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Decision {
    /// Nobody has asked for anything.
    Idle,
    /// It waits for votes.
    Collecting {
        /// Who has voted yes.
        yes: BTreeSet<NodeId>,
    },
    /// To commit.
    Committed,
    /// To abort.
    Aborted,
}

impl Coordinator {
    fn decide(&self, state: &mut Decision, decision: Decision, cx: &mut Context<Msg>) {
        *state = decision;
        cx.cancel_timer(VOTES_ARE_LATE);
        self.tell(state, cx);
    }

    fn tell(&self, state: &Decision, cx: &mut Context<Msg>) {
        let msg = match state {
            Decision::Committed => Msg::Commit,
            Decision::Aborted => Msg::Abort,
            Decision::Idle | Decision::Collecting { .. } => return,
        };
        cx.broadcast_to_others(msg);
        cx.answer(msg);
    }
}

impl Node for Coordinator {
    type State = Decision;
    type Msg = Msg;

    fn on_start(&self, _cx: &mut Context<Msg>) -> Decision {
        Decision::Idle
    }

    fn on_call(&self, state: &mut Decision, _begin: Msg, cx: &mut Context<Msg>) {
        *state = Decision::Collecting {
            yes: BTreeSet::new(),
        };
        cx.broadcast_to_others(Msg::Prepare);
        cx.set_timer(VOTES_ARE_LATE, PATIENCE);
    }

    fn on_message(&self, state: &mut Decision, from: NodeId, vote: Msg, cx: &mut Context<Msg>) {
        let Decision::Collecting { yes } = state else {
            return;
        };
        if vote == Msg::Yes {
            yes.insert(from);
            if yes.len() >= self.votes {
                self.decide(state, Decision::Committed, cx);
            }
        } else {
            self.decide(state, Decision::Aborted, cx);
        }
    }

    fn on_timer(&self, state: &mut Decision, _timer: Timer, cx: &mut Context<Msg>) {
        self.decide(state, Decision::Aborted, cx);
    }

    fn durable(&self, state: &Decision) -> Option<Decision> {
        Some(match state {
            Decision::Collecting { .. } => Decision::Collecting {
                yes: BTreeSet::new(),
            },
            other => other.clone(),
        })
    }

    fn on_recover(&self, state: &mut Decision, cx: &mut Context<Msg>) {
        if matches!(state, Decision::Collecting { .. }) {
            *state = Decision::Aborted;
        }
        self.tell(state, cx);
    }
}

/// A node that votes and obeys.
#[derive(Clone, Copy, Debug)]
pub struct Participant;

/// How far a participant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// It has not voted.
    Working,
    /// It has voted yes, and is bound by the decision.
    Prepared,
    /// It has committed.
    Committed,
    /// It has aborted.
    Aborted,
}

impl Node for Participant {
    type State = Outcome;
    type Msg = Msg;

    fn on_start(&self, _cx: &mut Context<Msg>) -> Outcome {
        Outcome::Working
    }

    fn on_message(&self, state: &mut Outcome, from: NodeId, msg: Msg, cx: &mut Context<Msg>) {
        match (msg, *state) {
            (Msg::Prepare, Outcome::Working) => {
                let (outcome, vote) =
                    [(Outcome::Prepared, Msg::Yes), (Outcome::Aborted, Msg::No)][cx.choose(2)];
                *state = outcome;
                cx.send(from, vote);
            }
            (Msg::Commit, Outcome::Working | Outcome::Prepared) => *state = Outcome::Committed,
            (Msg::Abort, Outcome::Working | Outcome::Prepared) => *state = Outcome::Aborted,
            _ => {}
        }
    }

    fn durable(&self, state: &Outcome) -> Option<Outcome> {
        Some(*state)
    }
}

#[cfg(test)]
mod tests {
    use dragnet::{crashes, drops, duplicates};

    use super::*;
    use crate::testing::{bug_verdict, default_verdict, verdict};

    #[test]
    fn three_participants_commit_together_or_not_at_all() {
        let verdict = default_verdict(&entry());
        verdict.assert_holds();
        assert_eq!(verdict.states(), 554);
    }

    #[test]
    fn crashes_losses_and_duplicates_do_no_harm() {
        let faults = crashes(1).and(drops(1)).and(duplicates(1));
        verdict(&entry(), |selection| Ok(selection.with_faults(faults))).assert_holds();
    }

    #[test]
    fn a_majority_of_votes_is_not_enough() {
        assert!(!bug_verdict(&entry(), "majority").holds());
    }
}
