//! Single-decree Paxos, once for each index, as section 5 of *Model Checking a Networked System Without the Network*
//! (Guerraoui and Yabandeh, NSDI 2011) describes it.
//!
//! Every node is proposer, acceptor and learner, and reaches itself through the network like everybody else. A
//! proposal begins when the application calls `Propose`: the proposer broadcasts `Prepare` with a ballot above all that
//! it has seen; an acceptor that has promised nothing higher answers `PrepareResponse` with what it has accepted; after a
//! majority of these the proposer broadcasts `Accept` with the value of the highest ballot among them, its own if there
//! is none; an acceptor that has promised nothing higher accepts and sends `Learn` to the learners; a learner that hears
//! the same ballot from a majority knows the value to be chosen, and answers its application. A proposer that is
//! overtaken by a higher ballot stays silent. What acceptors promise and accept and what learners learn is on disk.
//!
//! | parameter | means |
//! |---|---|
//! | `nodes` | how many replicas there are |
//! | `proposers` | how many of them propose: node *p* wants the value *p* for every index, once |
//! | `indexes` | how many independent decisions there are |
//! | `learners` | how many nodes are told what acceptors accept; all of them unless said otherwise |
//! | `overlap` | how many proposals for an index may wait for promises at once. When these are fewer than the proposers, they propose in the order of their ids; unless said otherwise everybody proposes at any moment |
//! | `capacity` | how many messages a link carries at once, from one node to another; what is sent beyond that is lost. Any number unless said otherwise |
//!
//! | bug | what is wrong |
//! |---|---|
//! | `last-response` | the value of the response that completes the majority is taken (section 5.5 of the paper) |
//! | `first-value` | the first accepted value that is heard of is taken, not that of the highest ballot (*Practical Software Model Checking via Dynamic Interface Reduction*, section 5.3) |
//! | `forget-on-restart` | promises and acceptances do not survive a crash (the other bug of that section) |
//!
//! The last two need more room than the first. `first-value` takes three ballots: one accepted by a single node, the next
//! by a majority that has not heard of it, and a third that hears of both. Three proposers at any moment are far too many
//! for a global search, so that the bug comes with proposals in turn, two learners and links that carry one message; within
//! these bounds there are 24,541,384 states, and without the bug all of them agree. With the bounds of `forget-on-restart`
//! there are 6,276,969, with those of `last-response` 23,187,741.

mod node;

use dragnet::catalog::{Entry, Setup};
use dragnet::nodes::{Network, NodeView, Snapshot};
use dragnet::{Check, Cluster, NodeId, crashes};

pub use node::{Accepted, Ballot, Index, Memory, Mistake, Msg, Replica, Value};

/// The most nodes that a cluster of replicas can have here.
const MOST: u64 = 9;

/// Paxos under the name `paxos`.
pub fn entry() -> Entry {
    Entry::new("paxos", "single-decree Paxos, once for each index", check)
        .parameter("nodes", 3, 1..=MOST, "how many replicas there are")
        .parameter(
            "proposers",
            1,
            0..=MOST,
            "how many of them propose a value of their own",
        )
        .parameter(
            "indexes",
            1,
            0..=MOST,
            "how many independent decisions there are",
        )
        .parameter(
            "learners",
            MOST,
            1..=MOST,
            "how many nodes at most are told what is accepted",
        )
        .parameter(
            "overlap",
            MOST,
            1..=MOST,
            "how many proposals may wait for promises at once, begun in turn",
        )
        .parameter(
            "capacity",
            0,
            0..=99,
            "how many messages a link carries; 0 for any number",
        )
        .bug(
            "last-response",
            "goes on with what the last response of the majority says, not with the highest ballot",
            |bug| bug.set("proposers", 2),
        )
        .bug(
            "first-value",
            "goes on with the first accepted value that it hears of, not with the highest ballot",
            |bug| {
                bug.set("proposers", 3)
                    .set("learners", 2)
                    .set("overlap", 1)
                    .set("capacity", 1)
            },
        )
        .bug(
            "forget-on-restart",
            "loses what it promised and accepted in a crash",
            |bug| {
                bug.set("proposers", 2)
                    .set("learners", 2)
                    .set("overlap", 1)
                    .faults(crashes(1))
            },
        )
}

fn check(setup: &Setup<'_>) -> Check<Cluster<Replica>> {
    let nodes: usize = setup.number("nodes");
    let proposers = setup.number("proposers");
    setup.require(proposers <= nodes, "there are more proposers than nodes");
    let replica = Replica {
        learners: setup.number::<usize>("learners").min(nodes),
        mistake: [
            ("last-response", Mistake::LastResponse),
            ("first-value", Mistake::FirstValue),
            ("forget-on-restart", Mistake::ForgetOnRestart),
        ]
        .into_iter()
        .find_map(|(name, mistake)| setup.has_bug(name).then_some(mistake)),
    };
    let indexes: u8 = setup.number("indexes");
    let mut cluster = cluster(nodes, proposers, indexes, replica);
    let capacity = setup.number("capacity");
    if capacity > 0 {
        cluster = cluster.network(Network::unordered().capacity(capacity));
    }
    let mut check = Check::new(cluster.serializable())
        .always_compatible("agreement", chosen, agree)
        .always_for_each("validity", move |node| {
            record(node).is_none_or(|record| record.explains(&record) && record.is_of(nodes))
        })
        .always_compatible("validity", record, Record::justifies);
    if proposers > 0 && indexes > 0 {
        check = check.reachable_for_some("a value is chosen", |node| chosen(node).is_some());
    }
    let overlap: usize = setup.number("overlap");
    if overlap < proposers {
        check = check.within(
            format!("proposals in turn, at most {overlap} waiting for promises at once"),
            move |s| (0..indexes).all(|index| in_turn(s, proposers, Index(index), overlap)),
        );
    }
    check
}

/// `nodes` replicas of which the first `proposers` are called to propose their own value for each index.
pub fn cluster(nodes: usize, proposers: usize, indexes: u8, replica: Replica) -> Cluster<Replica> {
    (0..proposers).fold(Cluster::new(nodes, |_| replica), |cluster, proposer| {
        let value = Value(proposer as u8);
        let calls = (0..indexes).map(move |index| Msg::Propose {
            index: Index(index),
            value,
        });
        cluster.calls(proposer, calls)
    })
}

/// What a node remembers, when it is down as well.
fn memory(s: Snapshot<'_, Replica>, node: usize) -> Option<&Memory> {
    s.node(node).or_else(|| s.durable(node))
}

/// Whether nobody has proposed before those with smaller ids, and at most `overlap` proposers wait for promises.
fn in_turn(s: Snapshot<'_, Replica>, proposers: usize, index: Index, overlap: usize) -> bool {
    let memories = || (0..proposers).filter_map(|node| memory(s, node));
    memories()
        .map(|memory| memory.has_proposed(index))
        .is_sorted_by(|before, after| before >= after)
        && memories()
            .filter(|memory| memory.is_preparing(index))
            .count()
            <= overlap
}

/// What a node has learned, when it is down as well; `None` when that is nothing.
fn chosen(node: NodeView<'_, Replica>) -> Option<Vec<(Index, Value)>> {
    let choices: Vec<_> = node
        .memory()?
        .choices()
        .map(|(index, &value)| (index, value))
        .collect();
    (!choices.is_empty()).then_some(choices)
}

/// Whether no index has different values.
#[expect(
    clippy::ptr_arg,
    reason = "it is a relation between projections, which are lists"
)]
pub(crate) fn agree(one: &Vec<(Index, Value)>, two: &Vec<(Index, Value)>) -> bool {
    one.iter().all(|&(index, value)| {
        two.iter()
            .all(|&(other, another)| other != index || another == value)
    })
}

/// What a node has proposed and what it has learned: whether all that is chosen was proposed shows in these.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Record {
    node: NodeId,
    proposed: Vec<Index>,
    chosen: Vec<(Index, Value)>,
}

fn record(node: NodeView<'_, Replica>) -> Option<Record> {
    let memory = node.memory()?;
    Some(Record {
        node: node.id(),
        proposed: memory.proposed().collect(),
        chosen: chosen(node).unwrap_or_default(),
    })
}

impl Record {
    /// Whether this node has proposed whatever the other has chosen that is a value of this node.
    fn explains(&self, other: &Self) -> bool {
        let mine = |value: Value| usize::from(value.0) == self.node.0;
        let mut chosen = other.chosen.iter();
        chosen.all(|(index, value)| !mine(*value) || self.proposed.contains(index))
    }

    /// Whether it has chosen only values of one of so many nodes.
    fn is_of(&self, nodes: usize) -> bool {
        let mut chosen = self.chosen.iter();
        chosen.all(|(_, value)| usize::from(value.0) < nodes)
    }

    /// Whether each has proposed whatever is its own of what the other has chosen.
    fn justifies(&self, other: &Self) -> bool {
        self.explains(other) && other.explains(self)
    }
}

#[cfg(test)]
mod tests {
    use dragnet::duplicates;

    use super::*;
    use crate::testing::{bug_verdict, default_verdict, verdict};

    #[test]
    fn three_nodes_agree_on_one_proposal() {
        let verdict = default_verdict(&entry());
        verdict.assert_holds();
        assert_eq!(verdict.states(), 3_381);
    }

    #[test]
    fn two_proposers_agree() {
        let verdict = verdict(&entry(), |selection| {
            selection.with("proposers", "2")?.with("learners", "2")
        });
        verdict.assert_holds();
        assert_eq!(verdict.states(), 1_127_429);
    }

    #[test]
    fn decisions_on_two_indexes_do_not_touch_each_other() {
        let states = |indexes| {
            let verdict = verdict(&entry(), |selection| {
                selection.with("indexes", indexes)?.with("learners", "1")
            });
            verdict.assert_holds();
            verdict.states()
        };
        let one = states("1");
        // Every pair but those in which the second is called before the first.
        assert_eq!(states("2"), one * one - (one - 1));
    }

    #[test]
    fn a_node_by_itself_agrees_with_itself() {
        verdict(&entry(), |selection| selection.with("nodes", "1")).assert_holds();
    }

    #[test]
    fn a_crash_and_a_duplicate_do_no_harm() {
        let faults = crashes(1).and(duplicates(1));
        verdict(&entry(), |selection| Ok(selection.with_faults(faults))).assert_holds();
    }

    #[test]
    fn the_last_response_is_not_the_one_to_follow() {
        let verdict = bug_verdict(&entry(), "last-response");
        assert_eq!(verdict.counterexample().map(|steps| steps.len()), Some(18));
    }

    #[test]
    fn the_first_value_is_not_the_one_to_follow() {
        let verdict = bug_verdict(&entry(), "first-value");
        assert_eq!(verdict.counterexample().map(|steps| steps.len()), Some(25));
    }

    #[test]
    fn an_acceptor_must_remember_what_it_accepted() {
        let verdict = bug_verdict(&entry(), "forget-on-restart");
        assert_eq!(verdict.counterexample().map(|steps| steps.len()), Some(20));
    }

    #[test]
    fn an_acceptor_that_never_crashes_may_forget() {
        let verdict = verdict(&entry(), |selection| {
            Ok(selection
                .with_bug("forget-on-restart")?
                .with_faults(crashes(0)))
        });
        verdict.assert_holds();
    }
}
