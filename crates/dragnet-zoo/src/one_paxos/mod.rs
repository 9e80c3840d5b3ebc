//! 1Paxos, the variant of Multi-Paxos with a single acceptor, as section 5.6 of *Model Checking a Networked System
//! Without the Network* (Guerraoui and Yabandeh, NSDI 2011) describes it.
//!
//! Every node can be leader, acceptor and learner. The leader asks the acceptor to accept a value for an index; the
//! acceptor accepts and sends `Learn` to everybody; whoever hears that knows the value to be chosen, since one acceptor is
//! a majority of one. Who leads and who accepts is decided by a log, the *PaxosUtility*, whose every entry
//! changes the one or the other: `LeaderChange` or `AcceptorChange`. Position *k* of the log is index *k* of the zoo's own
//! [`paxos`], which runs in each node as the layer below. At first node 0 leads and node 1 accepts.
//!
//! The application proposes values, and is the fault detector. A node whose application takes the leader for failed has
//! itself entered as leader in the log. Then it *prepares*: it asks the acceptor for the promise to ignore those who led
//! before, and for everything that it has accepted. A leader whose application takes the acceptor for failed has the
//! next node entered in its place, and prepares there. With the promise it proposes what may have been accepted before,
//! and after that what its application wants.
//!
//! Why no two nodes choose differently:
//!
//! - *An epoch has one leader and one acceptor.* Each entry of the log begins one, and its number is how many entries there
//!   are. Whoever proposes an entry knows all before it, so that every entry fits its place: a node does not become leader
//!   while it accepts, and only the node that leads there changes the acceptor.
//! - *A leader knows what its acceptor may have accepted.* An acceptor that has promised itself to an epoch accepts
//!   nothing of an earlier one, and has told the leader the rest.
//! - *A new acceptor begins with nothing, and nothing is lost by that.* The entry that changes it carries everything that
//!   the one before may have accepted. So it is made only by a leader that has the promise, and that leader proposes
//!   nothing more from then on until the log has gone on, not even after a crash. When leader and acceptor are gone at
//!   once nobody can do that, and 1Paxos waits for one of them to come back.
//!
//! So what was accepted once for an index is all that is ever proposed for it. Everything that this takes is on disk:
//! the log, roles, proposals, promises, and what was accepted and chosen.
//!
//! | parameter | means |
//! |---|---|
//! | `nodes` | how many replicas there are |
//! | `contenders` | how many nodes, from node 2 on, take the leader for failed, once each. They and node 0 propose: node *p* wants the value *p* for every index |
//! | `indexes` | how many independent decisions there are |
//! | `suspicions` | how often each of those who propose takes the acceptor for failed, after a proposal each time. A call that finds another node leading, or a leader without the promise, changes nothing |
//! | `capacity` | how many messages a link carries at once, from one node to another; what is sent beyond that is lost. Any number unless said otherwise |
//!
//! | bug | what is wrong |
//! |---|---|
//! | `shared-initial-role` | at the start every node takes the leader for the acceptor too: a `++` behind its operand instead of before it, in the initialisation (section 5.6 of the paper). The log knows better, so that a new leader has its value accepted by node 1, and node 0, which knows nothing of it, has another accepted by itself |
//!
//! Two changes of roles are two instances of Paxos with all their stray messages. One `suspicion` without contenders
//! makes 92,440 states, two make 17,094,233 even with a capacity of 1, and one with a contender more than a hundred
//! million. The tests search what becomes of both kinds of changes in a smaller space.

mod node;

use dragnet::catalog::Setup;
use dragnet::nodes::{Network, NodeView};
use dragnet::{Check, Cluster};

pub use node::{Accepted, Entry, Epoch, Memory, Mistake, Msg, Replica, Roles, Values};

use crate::paxos::{self, Index, Value, agree};

/// The most nodes that a cluster of replicas can have here.
const MOST: u64 = 9;

/// 1Paxos under the name `one-paxos`.
pub fn entry() -> dragnet::catalog::Entry {
    dragnet::catalog::Entry::new(
        "one-paxos",
        "1Paxos: Multi-Paxos with a single acceptor, above a log of who leads and who accepts",
        check,
    )
    .parameter("nodes", 3, 2..=MOST, "how many replicas there are")
    .parameter(
        "contenders",
        1,
        0..=MOST - 2,
        "how many nodes want to lead besides the first leader",
    )
    .parameter(
        "indexes",
        1,
        0..=MOST,
        "how many independent decisions there are",
    )
    .parameter(
        "suspicions",
        0,
        0..=MOST,
        "how often each of these nodes takes the acceptor for failed",
    )
    .parameter(
        "capacity",
        0,
        0..=99,
        "how many messages a link carries; 0 for any number",
    )
    .bug(
        "shared-initial-role",
        "takes the first leader for the first acceptor too",
        |bug| bug,
    )
}

fn check(setup: &Setup<'_>) -> Check<Cluster<Replica>> {
    let nodes: usize = setup.number("nodes");
    let contenders: usize = setup.number("contenders");
    setup.require(
        contenders + 2 <= nodes,
        "a leader, an acceptor and the contenders are more than there are nodes",
    );
    let indexes: u8 = setup.number("indexes");
    let suspicions: u8 = setup.number("suspicions");
    let mistake = setup
        .has_bug("shared-initial-role")
        .then_some(Mistake::SharedInitialRole);
    let mut cluster = cluster(nodes, mistake).calls(0, calls(0, indexes, suspicions));
    for contender in 2..contenders + 2 {
        let calls = calls(contender, indexes, suspicions);
        cluster = cluster.calls(contender, [Msg::LeaderFailed].into_iter().chain(calls));
    }
    let capacity = setup.number("capacity");
    if capacity > 0 {
        cluster = cluster.network(Network::unordered().capacity(capacity));
    }
    let proposes = move |node| node == 0 || (2..contenders + 2).contains(&node);
    let mut check = Check::new(cluster.serializable())
        .always_compatible("agreement", chosen, agree)
        .always_for_each("validity", move |node| {
            let mut choices = chosen(node).into_iter().flatten();
            choices.all(|(_, value)| proposes(usize::from(value.0)))
        });
    if indexes > 0 {
        check = check.reachable_for_some("a value is chosen", |node| chosen(node).is_some());
    }
    if contenders > 0 {
        check = check.reachable_for_some("another node leads", leads_after_another);
    }
    if suspicions > 0 && nodes > 2 {
        check = check.reachable_for_some("another node accepts", leads_with_another);
    }
    check
}

/// What the application of `node` asks for: its own value for each index, and another acceptor after each while there
/// are suspicions.
fn calls(node: usize, indexes: u8, suspicions: u8) -> impl Iterator<Item = Msg> {
    let propose = move |index| (index < indexes).then_some(propose(node, index));
    let suspect = move |round| (round < suspicions).then_some(Msg::AcceptorFailed);
    (0..indexes.max(suspicions))
        .flat_map(move |round| [propose(round), suspect(round)])
        .flatten()
}

/// The application of `node` wants the node's own value for an index.
fn propose(node: usize, index: u8) -> Msg {
    Msg::Propose {
        index: Index(index),
        value: Value(node as u8),
    }
}

/// `nodes` replicas, of whom nobody has asked anything yet.
pub fn cluster(nodes: usize, mistake: Option<Mistake>) -> Cluster<Replica> {
    let utility = paxos::Replica {
        learners: nodes,
        mistake: None,
    };
    Cluster::new(nodes, |_| Replica { utility, mistake })
}

/// What a node has learned, when it is down as well; `None` when that is nothing.
fn chosen(node: NodeView<'_, Replica>) -> Option<Vec<(Index, Value)>> {
    let choices: Vec<_> = node.memory()?.choices().collect();
    (!choices.is_empty()).then_some(choices)
}

/// Whether a node other than the first leader leads and may propose.
fn leads_after_another(node: NodeView<'_, Replica>) -> bool {
    node.id() != Roles::FIRST.leader && node.state().is_some_and(Memory::leads)
}

/// Whether a node leads with another acceptor than the first.
fn leads_with_another(node: NodeView<'_, Replica>) -> bool {
    node.state()
        .is_some_and(|memory| memory.leads() && memory.roles().acceptor != Roles::FIRST.acceptor)
}

#[cfg(test)]
mod tests {
    use dragnet::crashes;

    use super::*;
    use crate::testing::{bug_verdict, default_verdict, verdict};

    #[test]
    fn an_old_leader_and_a_new_one_agree() {
        let verdict = default_verdict(&entry());
        verdict.assert_holds();
        assert_eq!(verdict.states(), 162_470);
    }

    #[test]
    fn a_leader_that_accepts_for_itself_disagrees_with_the_next() {
        // It needs nothing that is not there by default: without it, the test before this one holds.
        let verdict = bug_verdict(&entry(), "shared-initial-role");
        assert_eq!(verdict.counterexample().map(|steps| steps.len()), Some(17));
    }

    #[test]
    fn an_old_acceptor_and_a_new_one_agree() {
        let verdict = verdict(&entry(), |selection| {
            selection.with("contenders", "0")?.with("suspicions", "1")
        });
        verdict.assert_holds();
        assert_eq!(verdict.states(), 92_440);
    }

    #[test]
    fn a_crash_does_no_harm() {
        let verdict = verdict(&entry(), |selection| {
            Ok(selection.with("capacity", "1")?.with_faults(crashes(1)))
        });
        verdict.assert_holds();
    }

    /// A check in which node 0 is called as said and node 1, the acceptor, wants to lead, which it can when it has been
    /// replaced. Only these two hear what becomes of the log, which keeps the space small.
    fn old_acceptor_leads(first: [Msg; 2]) -> Check<Cluster<Replica>> {
        let cluster = cluster(3, None)
            .map(|mut replica| {
                replica.utility.learners = 2;
                replica
            })
            .network(Network::unordered().capacity(1))
            .calls(0, first)
            .calls(1, [Msg::LeaderFailed, propose(1, 0)]);
        Check::new(cluster)
            .always_compatible("agreement", chosen, agree)
            .reachable_for_some("the old acceptor leads", leads_after_another)
    }

    fn chooses(node: NodeView<'_, Replica>, value: u8) -> bool {
        let mut choices = chosen(node).into_iter().flatten();
        choices.any(|(_, chosen)| chosen == Value(value))
    }

    #[test]
    fn who_leads_after_a_change_of_acceptor_knows_what_was_proposed_before() {
        let verdict = old_acceptor_leads([propose(0, 0), Msg::AcceptorFailed])
            .always_for_each("the new leader's value is not chosen", |node| {
                !chooses(node, 1)
            })
            .run();
        verdict.assert_holds();
        assert_eq!(verdict.states(), 711_279);
    }

    #[test]
    fn who_has_asked_for_another_acceptor_proposes_nothing_until_it_is_there() {
        let verdict = old_acceptor_leads([Msg::AcceptorFailed, propose(0, 0)])
            .reachable_for_some("the old leader's value is chosen", |node| chooses(node, 0))
            .reachable_for_some("the new leader's value is chosen", |node| chooses(node, 1))
            .run();
        verdict.assert_holds();
        assert_eq!(verdict.states(), 1_030_475);
    }

    #[test]
    fn a_node_that_accepts_does_not_lead() {
        let cluster = cluster(3, None).calls(1, [Msg::LeaderFailed]);
        Check::new(cluster)
            .always_for_each("node 1 does not lead", |node| !leads_after_another(node))
            .deadlock_free()
            .run()
            .assert_holds();
    }
}
