//! The distributed tree of section 2 of *Model Checking a Networked System Without the Network* (Guerraoui and
//! Yabandeh, NSDI 2011).
//!
//! Five nodes form a tree: node 0 is the root, nodes 1 and 2 are its children, nodes 3 and 4 those of node 1. Node 0 has a
//! message for node 4; each node hands it on to its children. Only node 0, which becomes *sent*, and node 4, which
//! becomes *received*, change their state, so that the system passes through three states (`-----`, `s----`, `s---r`)
//! while the global state, which counts what is in flight, passes through eleven. (The paper's Figure 3 draws some of
//! them twice and counts 12.)
//!
//! There are no parameters. With the bug `forwards-early` node 1 hands on a message that it has not received.

use dragnet::catalog::Entry;
use dragnet::{Check, Cluster, Context, Node, NodeId};
use serde::{Deserialize, Serialize};

/// The tree under the name `tree`.
pub fn entry() -> Entry {
    Entry::new(
        "tree",
        "a message handed down a tree of five nodes",
        |setup| check(cluster(setup.has_bug("forwards-early"))),
    )
    .bug(
        "forwards-early",
        "node 1 hands on a message before it has received it",
        |bug| bug,
    )
}

const ROOT: usize = 0;
const GOAL: usize = 4;

fn check(cluster: Cluster<Branch>) -> Check<Cluster<Branch>> {
    Check::new(cluster.serializable())
        .always("nothing is received before it is sent", |s| {
            s.node(GOAL) != Some(&Progress::Received) || s.node(ROOT) == Some(&Progress::Sent)
        })
        .reachable_with_messages("everything has arrived", |s, in_flight| {
            s.node(GOAL) == Some(&Progress::Received) && in_flight.is_empty()
        })
}

/// The five nodes. When `early`, node 1 does not wait for the message before it hands it on.
pub fn cluster(early: bool) -> Cluster<Branch> {
    let children = [&[1, 2][..], &[3, 4], &[], &[], &[]];
    let branch = |id: NodeId| Branch {
        children: children[id.0].iter().copied().map(NodeId).collect(),
        early: early && id == NodeId(1),
    };
    Cluster::new(children.len(), branch).calls(ROOT, [Message])
}

/// A node of the tree.
#[derive(Clone, Debug)]
pub struct Branch {
    /// Whom it hands messages on to.
    pub children: Vec<NodeId>,
    /// Whether it does so at the start.
    pub early: bool,
}

/// The message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Message;

/// What a node has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Progress {
    /// Nothing that it remembers.
    Nothing,
    /// It has sent the message.
    Sent,
    /// The message has reached its goal.
    Received,
}

impl Branch {
    fn hand_on(&self, cx: &mut Context<Message>) {
        for &child in &self.children {
            cx.send(child, Message);
        }
    }
}

impl Node for Branch {
    type State = Progress;
    type Msg = Message;

    fn on_start(&self, cx: &mut Context<Message>) -> Progress {
        if self.early {
            self.hand_on(cx);
        }
        Progress::Nothing
    }

    fn on_call(&self, state: &mut Progress, _call: Message, cx: &mut Context<Message>) {
        *state = Progress::Sent;
        self.hand_on(cx);
        cx.answer(Message);
    }

    fn on_message(
        &self,
        state: &mut Progress,
        _from: NodeId,
        _msg: Message,
        cx: &mut Context<Message>,
    ) {
        if cx.me() == NodeId(GOAL) {
            *state = Progress::Received;
        }
        self.hand_on(cx);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::testing::{bug_verdict, default_verdict};

    #[test]
    fn the_tree_has_eleven_global_states() {
        let verdict = default_verdict(&entry());
        verdict.assert_holds();
        assert_eq!(verdict.states(), 11);
    }

    #[test]
    fn the_tree_has_the_three_valid_system_states_of_figure_4() {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let notes = Arc::clone(&seen);
        check(cluster(false))
            .always("every state is noted", move |s| {
                let letters = s.nodes().map(|progress| match progress {
                    Progress::Nothing => '-',
                    Progress::Sent => 's',
                    Progress::Received => 'r',
                });
                notes.lock().unwrap().insert(letters.collect::<String>());
                true
            })
            .run()
            .assert_holds();
        let seen: Vec<String> = seen.lock().unwrap().iter().cloned().collect();
        assert_eq!(seen, ["-----", "s----", "s---r"]);
    }

    #[test]
    fn a_message_that_is_handed_on_early_is_received_before_it_is_sent() {
        assert!(!bug_verdict(&entry(), "forwards-early").holds());
    }
}
