//! RandTree, the random overlay tree of Mace, as *CrystalBall: Predicting and Preventing Inconsistencies in Deployed
//! Distributed Systems* (Yabandeh, Knežević, Kostić and Kuncak, NSDI 2009) describes and checks it.
//!
//! Node 0 is the root. Every other node asks it to join as soon as it starts. A node with fewer children than the degree
//! allows takes the new one: it replies, so that the child knows its parent and its siblings, and tells these of the new
//! one. A full node passes the request on to one of its children, any of them. A node that leaves tells its parent, which
//! tells the siblings, and its children, which ask the root again and keep what is below them. A request that a node gets
//! from anybody but its parent goes back to the root: who passed it on has a child that is none.
//!
//! Nothing is on disk. A node that crashes and comes back has been *reset*: it has forgotten its place and joins again,
//! and nobody has told the others, so that its old parent has a stale child. (Here that lasts until the two meet again;
//! the original has timers that find out.) Connections are like those of TCP: in order, and what was on its way to a node
//! is lost when that crashes.
//!
//! What must hold is said of each node by itself: its parent, its children and its siblings are different nodes. What it
//! hears of others may be old, but what it hears last counts, so whoever becomes one of the three stops being
//! another.
//!
//! | parameter | means |
//! |---|---|
//! | `nodes` | how many nodes there are, with the root |
//! | `degree` | how many children a node has at most |
//! | `leavers` | how many nodes, from node 1 on, leave at some moment |
//!
//! | bug | what is wrong |
//! |---|---|
//! | `stale-child` | who hears of a sibling does not look whether it is a stale child. A node below a child of the root is reset, and the root has room for it by now because another has left: its old parent is told of a new sibling that it takes for its child too. (The example in the introduction of CrystalBall, which found it in the Mace implementation; the remedy there is to remove the stale child where `UpdateSibling` is handled) |
//!
//! The bug comes with the crash that it needs; without it the tree stands that as well.

use std::collections::BTreeSet;

use dragnet::catalog::{Entry, Setup};
use dragnet::nodes::Network;
use dragnet::{Check, Cluster, Context, Node, NodeId, crashes};
use serde::{Deserialize, Serialize};

/// RandTree under the name `rand-tree`.
pub fn entry() -> Entry {
    Entry::new(
        "rand-tree",
        "RandTree: nodes that join a random overlay tree and leave it",
        check,
    )
    .parameter("nodes", 4, 1..=9, "how many nodes there are, with the root")
    .parameter("degree", 2, 1..=8, "how many children a node has at most")
    .parameter("leavers", 1, 0..=8, "how many nodes leave")
    .bug(
        "stale-child",
        "does not look whether a new sibling is still among its children",
        |bug| bug.faults(crashes(1)),
    )
}

fn check(setup: &Setup<'_>) -> Check<Cluster<Peer>> {
    let nodes: usize = setup.number("nodes");
    let degree: usize = setup.number("degree");
    let leavers: usize = setup.number("leavers");
    setup.require(leavers < nodes, "the root does not leave");
    let cluster = cluster(nodes, degree, leavers, setup.has_bug("stale-child"));
    let mut check = Check::new(cluster.serializable())
        .always_for_each("children and siblings are disjoint", |node| {
            node.state()
                .is_none_or(|links| links.children.is_disjoint(&links.siblings))
        })
        .always_for_each("a parent is neither child nor sibling", |node| {
            let parent = node.state().and_then(|links| Some((links, links.parent?)));
            parent.is_none_or(|(links, parent)| {
                !links.children.contains(&parent) && !links.siblings.contains(&parent)
            })
        })
        .always_for_each("nobody is its own parent, child or sibling", |node| {
            let me = node.id();
            node.state().is_none_or(|links| {
                links.parent != Some(me)
                    && !links.children.contains(&me)
                    && !links.siblings.contains(&me)
            })
        })
        .reachable("everybody is in the tree", |s| {
            s.each()
                .all(|(id, links)| id == ROOT || links.parent.is_some())
        });
    if nodes - 1 > degree {
        check = check.reachable_for_some("somebody is below a child of the root", |node| {
            node.state()
                .is_some_and(|links| links.parent.is_some() && !links.children.is_empty())
        });
    }
    check
}

/// `nodes` nodes of which those from node 1 on leave. When `trusting`, they take siblings as they come.
pub fn cluster(nodes: usize, degree: usize, leavers: usize, trusting: bool) -> Cluster<Peer> {
    let peers = Cluster::new(nodes, |_| Peer { degree, trusting }).network(Network::ordered());
    (1..=leavers).fold(peers, |cluster, leaver| cluster.calls(leaver, [Msg::Leave]))
}

const ROOT: NodeId = NodeId(0);

/// A node of the tree.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// How many children it has at most.
    pub degree: usize,
    /// Whether it believes that a new sibling is not one of its children.
    pub trusting: bool,
}

/// What nodes say to each other. The application calls a node with `Leave`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// This node wants to be somebody's child.
    Join(NodeId),
    /// The sender is the parent of the receiver.
    JoinReply {
        /// The sender's other children.
        siblings: BTreeSet<NodeId>,
    },
    /// The sender, the parent, has another child.
    UpdateSibling(NodeId),
    /// The sender, the parent, has lost a child.
    RemoveSibling(NodeId),
    /// The sender is no longer parent or child of the receiver.
    Leave,
}

/// What a node knows of its place in the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Links {
    parent: Option<NodeId>,
    children: BTreeSet<NodeId>,
    /// The other children of the parent.
    siblings: BTreeSet<NodeId>,
    /// Whether it has left and wants no parent any more.
    left: bool,
}

impl Links {
    fn tell_children_but(&self, child: NodeId, msg: &Msg, cx: &mut Context<Msg>) {
        for &other in self.children.iter().filter(|&&other| other != child) {
            cx.send(other, msg.clone());
        }
    }

    /// Another node is no longer what it was to this one, if it was anything.
    fn part_with(&mut self, other: NodeId, cx: &mut Context<Msg>) {
        self.siblings.remove(&other);
        if self.children.remove(&other) {
            self.tell_children_but(other, &Msg::RemoveSibling(other), cx);
        }
        if self.parent == Some(other) {
            self.parent = None;
            self.siblings.clear();
            cx.send(ROOT, Msg::Join(cx.me()));
        }
    }
}

impl Peer {
    fn join(&self, links: &mut Links, from: NodeId, who: NodeId, cx: &mut Context<Msg>) {
        if cx.me() != ROOT && links.parent != Some(from) {
            cx.send(ROOT, Msg::Join(who));
        } else if links.children.contains(&who) {
            // It has been reset: its siblings know of it, it does not know of them.
            Self::reply(links, who, cx);
        } else if links.children.len() < self.degree {
            links.part_with(who, cx);
            links.children.insert(who);
            links.tell_children_but(who, &Msg::UpdateSibling(who), cx);
            Self::reply(links, who, cx);
        } else {
            let chosen = cx.choose(links.children.len());
            let child = links.children.iter().nth(chosen);
            cx.send(*child.expect("one of them"), Msg::Join(who));
        }
    }

    fn reply(links: &Links, child: NodeId, cx: &mut Context<Msg>) {
        let mut siblings = links.children.clone();
        siblings.remove(&child);
        cx.send(child, Msg::JoinReply { siblings });
    }

    fn hear_reply(
        &self,
        links: &mut Links,
        from: NodeId,
        siblings: BTreeSet<NodeId>,
        cx: &mut Context<Msg>,
    ) {
        if links.left || links.parent.is_some_and(|parent| parent != from) {
            // It has asked before a reset and after it, and was taken twice; or it has changed its mind.
            cx.send(from, Msg::Leave);
            return;
        }
        if links.parent.is_none() {
            links.part_with(from, cx);
            links.parent = Some(from);
        }
        links.siblings.clear();
        for sibling in siblings {
            self.meet(links, sibling, cx);
        }
    }

    /// The parent says who is a sibling now.
    fn meet(&self, links: &mut Links, sibling: NodeId, cx: &mut Context<Msg>) {
        if !self.trusting {
            links.part_with(sibling, cx);
        }
        links.siblings.insert(sibling);
    }
}

impl Node for Peer {
    type State = Links;
    type Msg = Msg;

    fn on_start(&self, cx: &mut Context<Msg>) -> Links {
        if cx.me() != ROOT {
            cx.send(ROOT, Msg::Join(cx.me()));
        }
        Links::default()
    }

    fn on_message(&self, links: &mut Links, from: NodeId, msg: Msg, cx: &mut Context<Msg>) {
        match msg {
            Msg::Join(who) => self.join(links, from, who, cx),
            Msg::JoinReply { siblings } => self.hear_reply(links, from, siblings, cx),
            Msg::UpdateSibling(sibling) if links.parent == Some(from) => {
                self.meet(links, sibling, cx);
            }
            Msg::RemoveSibling(sibling) if links.parent == Some(from) => {
                links.siblings.remove(&sibling);
            }
            Msg::UpdateSibling(_) | Msg::RemoveSibling(_) => {}
            Msg::Leave => links.part_with(from, cx),
        }
    }

    fn on_call(&self, links: &mut Links, _leave: Msg, cx: &mut Context<Msg>) {
        for neighbour in links.parent.into_iter().chain(links.children.clone()) {
            cx.send(neighbour, Msg::Leave);
        }
        *links = Links {
            left: true,
            ..Links::default()
        };
        cx.answer(Msg::Leave);
    }
}

#[cfg(test)]
mod tests {
    use dragnet::{drops, duplicates};

    use super::*;
    use crate::testing::{bug_verdict, default_verdict, verdict};

    #[test]
    fn three_nodes_join_and_one_of_them_leaves() {
        let verdict = default_verdict(&entry());
        verdict.assert_holds();
        assert_eq!(verdict.states(), 452);
    }

    #[test]
    fn a_reset_does_no_harm() {
        let verdict = verdict(&entry(), |selection| Ok(selection.with_faults(crashes(1))));
        verdict.assert_holds();
        assert_eq!(verdict.states(), 10_496);
    }

    #[test]
    fn a_stale_child_becomes_a_sibling() {
        let verdict = bug_verdict(&entry(), "stale-child");
        assert_eq!(verdict.counterexample().map(|steps| steps.len()), Some(13));
    }

    #[test]
    fn a_child_that_is_not_stale_is_no_sibling() {
        verdict(&entry(), |selection| {
            Ok(selection.with_bug("stale-child")?.with_faults(crashes(0)))
        })
        .assert_holds();
    }

    #[test]
    fn losses_and_duplicates_do_no_harm() {
        let faults = crashes(1).and(drops(1)).and(duplicates(1));
        verdict(&entry(), |selection| Ok(selection.with_faults(faults))).assert_holds();
    }

    #[test]
    fn a_chain_stands_two_resets() {
        verdict(&entry(), |selection| {
            Ok(selection.with("degree", "1")?.with_faults(crashes(2)))
        })
        .assert_holds();
    }

    #[test]
    fn a_root_without_company_is_a_tree() {
        let verdict = verdict(&entry(), |selection| {
            selection.with("nodes", "1")?.with("leavers", "0")
        });
        verdict.assert_holds();
        assert_eq!(verdict.states(), 1);
    }
}
