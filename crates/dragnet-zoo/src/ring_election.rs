//! Leader election on a ring that carries messages one way, after Le Lann, Chang and Roberts.
//!
//! Each member sends its id to the next. An id that is higher than a member's own is passed on, a lower one is swallowed,
//! and the member whose own id comes back is the leader, since every other has let it pass. It then sends its election
//! round the ring.
//!
//! The one parameter, `nodes`, says how many members there are. Their ids go up and down around the ring: 1, *n*, 2,
//! *n* - 1, and so on. With the bug `wrong-comparison` the member with the highest id compares the wrong way round.

use dragnet::catalog::Entry;
use dragnet::{Check, Cluster, Context, Node, NodeId};
use serde::{Deserialize, Serialize};

/// The election under the name `ring-election`.
pub fn entry() -> Entry {
    Entry::new(
        "ring-election",
        "leader election on a one-way ring",
        |setup| check(setup.number("nodes"), setup.has_bug("wrong-comparison")),
    )
    .parameter("nodes", 4, 2..=8, "how many members the ring has")
    .bug(
        "wrong-comparison",
        "the member with the highest id passes on lower ids",
        |bug| bug,
    )
}

fn check(nodes: usize, wrong: bool) -> Check<Cluster<Member>> {
    let highest = nodes as u8;
    Check::new(cluster(nodes, wrong).serializable())
        .always_compatible(
            "at most one leader",
            |node| node.state().filter(|member| member.leads()).map(|_| ()),
            |(), ()| false,
        )
        .always_for_each("the leader has the highest id", move |node| {
            let leader = node.state().and_then(|member| member.leader);
            leader.is_none_or(|leader| leader == highest)
        })
        .reachable("everybody knows the leader", |s| {
            s.nodes().all(|member| member.leader.is_some())
        })
}

/// A ring of members, of whom the one with the highest id may compare the wrong way round.
pub fn cluster(nodes: usize, wrong: bool) -> Cluster<Member> {
    Cluster::new(nodes, |node| {
        let id = id_at(node, nodes);
        let favours_lower = wrong && id == nodes as u8;
        Member { id, favours_lower }
    })
}

/// The id of a member: low ones at even places, rising, and high ones at odd places, falling.
fn id_at(node: NodeId, nodes: usize) -> u8 {
    let step = node.0 / 2;
    (if node.0.is_multiple_of(2) {
        step + 1
    } else {
        nodes - step
    }) as u8
}

/// A member of the ring.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// What it is known by; no two members have the same.
    pub id: u8,
    /// Whether it passes on lower ids instead of higher ones.
    pub favours_lower: bool,
}

/// What members tell their neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// This id wants to lead.
    Candidate(u8),
    /// This id leads.
    Elected(u8),
}

/// What a member knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Knowledge {
    /// Its own id.
    pub id: u8,
    /// The leader's id.
    pub leader: Option<u8>,
}

impl Knowledge {
    /// Whether this member is the leader, in its own opinion.
    pub fn leads(&self) -> bool {
        self.leader == Some(self.id)
    }
}

impl Member {
    fn tell_next(&self, msg: Msg, cx: &mut Context<Msg>) {
        let next = (cx.me().0 + 1) % cx.nodes();
        cx.send(next, msg);
    }
}

impl Node for Member {
    type State = Knowledge;
    type Msg = Msg;

    fn on_start(&self, cx: &mut Context<Msg>) -> Knowledge {
        self.tell_next(Msg::Candidate(self.id), cx);
        Knowledge {
            id: self.id,
            leader: None,
        }
    }

    fn on_message(&self, state: &mut Knowledge, _from: NodeId, msg: Msg, cx: &mut Context<Msg>) {
        match msg {
            Msg::Candidate(id) if id == self.id => {
                state.leader = Some(id);
                self.tell_next(Msg::Elected(id), cx);
            }
            Msg::Candidate(id) => {
                if (id > self.id) != self.favours_lower {
                    self.tell_next(msg, cx);
                }
            }
            Msg::Elected(id) => {
                if id != self.id {
                    state.leader = Some(id);
                    self.tell_next(msg, cx);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dragnet::duplicates;

    use super::*;
    use crate::testing::{bug_verdict, default_verdict, verdict};

    #[test]
    fn a_ring_of_four_elects_the_highest_id() {
        let verdict = default_verdict(&entry());
        verdict.assert_holds();
        assert_eq!(verdict.states(), 16);
    }

    #[test]
    fn a_message_that_arrives_twice_does_no_harm() {
        verdict(&entry(), |selection| {
            Ok(selection.with_faults(duplicates(1)))
        })
        .assert_holds();
    }

    #[test]
    fn one_wrong_comparison_elects_the_wrong_member() {
        assert!(!bug_verdict(&entry(), "wrong-comparison").holds());
    }

    #[test]
    fn ids_go_up_and_down_around_the_ring() {
        let ids: Vec<u8> = (0..5).map(|node| id_at(NodeId(node), 5)).collect();
        assert_eq!(ids, [1, 5, 2, 4, 3]);
    }
}
