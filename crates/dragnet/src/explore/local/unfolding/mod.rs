//! The refined level: histories of nodes, each with exactly what it depends on.
//!
//! A [point](Point) is one history of one node. Its *past* is everything that it depends on: for each node the last point
//! that is part of it. A message carries the past of its sender, and meets a point only when the two pasts can belong to
//! one execution: the histories of each node in them are one the beginning of the other, what the message depends on of
//! its receiver is behind the point, no copy is received twice and no budget is overdrawn. Histories that no execution
//! has are then never made, and two points whose pasts fit together are in some execution at once.
//!
//! Histories alone would be far too many, and without end where a system can go in circles. So points are made in the
//! order of the size of their past, and one is not followed when its past leads the whole system to where a smaller past
//! has led it: whatever happens after the one happens after the other. That this loses no state is the theory of
//! *unfoldings* (McMillan 1992; Esparza, Römer and Vogler 1996). It asks of the order of pasts that it is preserved when
//! both are continued in the same way, which size alone is not where two are equal: then the sequences of inputs decide,
//! node by node, the shorter first, then the one with the lesser first difference.
//!
//! Two copies of a message are told apart by their number: the sender's first is the receiver's first. That is no
//! restriction, as equal copies can change places.
//!
//! Where a limited link loses what it has no room for, where a crash empties ordered links, and where a bound looks at
//! several nodes at once, more is let through here than can happen ([`Unfolding::is_exact`]); what is found is then
//! verified. Where room on limited links changes by other means than sending and receiving, nothing is
//! [unfolded](can_unfold).

mod looks;
mod marks;
mod messages;
mod order;
mod pasts;

use std::collections::BTreeMap;

use super::epochs::{Epochs, WHOLE};
use super::graph::Graph;
use super::spread::Workers;
use crate::panics;
use crate::tables::{Domain, FlatTable, PRESENT, Single, Upsert, next_number};
use crate::target::nodes::FaultKind;
use crate::target::parts::{Beginning, Links, Parts, Sent};
use looks::{Failing, Look};

/// No point, no item.
const NONE: u32 = u32::MAX;

pub(super) struct Unfolding<'a> {
    parts: &'a dyn Parts,
    workers: Workers<'a>,
    inside: &'a (dyn Fn(u32) -> bool + Sync),
    nodes: usize,
    links: Links,
    /// How much room each pool of a link has: a message depends on those that made room for it.
    pools: Vec<u32>,
    budgets: [u32; SPENT],
    partitions: u32,
    has_notices: bool,
    beginnings: Vec<Vec<Beginning>>,
    points: Vec<Point>,
    /// The pasts of all points, one behind the other: for each node the last of its points.
    pasts: Vec<u32>,
    items: Vec<Item>,
    epochs: Epochs,
    /// What can be the next point of a history, by the size of its past.
    open: BTreeMap<u32, Vec<Extension>>,
    /// Where pasts have led the whole system.
    marks: FlatTable<Single>,
    /// When an input came up first, as the how manyeth.
    ranks: Vec<u32>,
    ranked: u32,
    /// How many steps an execution may have.
    longest: Option<u64>,
    pub(super) counts: Counts,
}

/// What there was to do.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    /// Steps of histories, followed or not.
    pub(super) steps: u64,
    /// The longest history.
    pub(super) depth: u64,
    /// Whether the depth bound cut a history that could be continued.
    pub(super) cut_deeper: bool,
}

/// One history of one node: another one and one more step.
struct Point {
    parent: u32,
    /// An earlier point of the history, so that ancestors are found in few jumps.
    jump: u32,
    /// How many steps the history has.
    depth: u32,
    local: u32,
    input: u32,
    /// The message that the last step received.
    item: u32,
    first_child: u32,
    next_sibling: u32,
    /// The first of the messages that the last step sent; the others follow.
    first_item: u32,
    items: u16,
    act: Act,
    node: u8,
    choice: u32,
    epoch: u32,
    spent: [u16; SPENT],
    /// The sum of the hashes of what the history sent without what it received.
    balance: u64,
    /// The messages that can still be received in this history.
    waiting: Vec<u32>,
}

/// The kinds of faults that a history spends.
const SPENT: usize = 4;

/// A kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    /// The node begins.
    Begin,
    /// A call, or a timer runs out.
    Own,
    /// A message is received.
    Deliver,
    /// A message is received, and another copy of it stays in flight.
    Keep,
    /// A message is lost.
    Lose,
    /// The sender takes note of room that was made on a link: it may need all of it for what it sends next.
    Credit,
    Crash,
    Restart,
    /// The network falls in two.
    Cut,
    /// It is whole again.
    Heal,
}

impl Act {
    /// The budget that it spends.
    fn spends(self) -> Option<usize> {
        match self {
            Self::Lose => Some(0),
            Self::Keep => Some(1),
            Self::Crash => Some(2),
            Self::Restart => Some(3),
            _ => None,
        }
    }
}

const SPENT_KINDS: [FaultKind; SPENT] = [
    FaultKind::Drop,
    FaultKind::Duplicate,
    FaultKind::Crash,
    FaultKind::Restart,
];

/// A message that some history has sent.
#[derive(Clone, Copy)]
struct Item {
    envelope: u32,
    from: u8,
    to: u8,
    /// Which copy of the same message from the same history it is, or which message on its link.
    index: u32,
    /// The point that has sent it.
    sender: u32,
    epoch: u32,
    era: u32,
    /// It is no message, but the room that one has left behind on its link.
    room: bool,
}

/// What can be the next point of a history.
struct Extension {
    point: u32,
    item: u32,
    input: u32,
    run: u32,
    choice: u32,
    act: Act,
    mark: u64,
}

/// What a round brought up.
#[derive(Default)]
pub(super) struct Round {
    /// The first new point.
    pub(super) first: u32,
    /// Pasts after which a handler fails.
    pub(super) failing: Vec<Box<[u32]>>,
}

/// Whether the nodes can be unfolded. They cannot where links are limited, and copies, notices or what a crash throws away
/// take up and make room without anybody's doing: room could then not be followed, and without that there may be no end
/// of messages. Nor can they where links are limited and the depth is bounded: of two pasts that lead to the same state
/// the smaller one is kept, and where senders take note of room that need not be the one with fewer steps.
pub(super) fn can_unfold(parts: &dyn Parts, longest: Option<u64>) -> bool {
    let links = parts.links();
    let may = |kind| parts.budget(kind) > 0;
    let room_changes =
        may(FaultKind::Duplicate) || has_notices(parts) || links.ordered && may(FaultKind::Crash);
    !(links.limited && (room_changes || longest.is_some()))
}

/// Whether nodes are told when a partition is over.
fn has_notices(parts: &dyn Parts) -> bool {
    parts.nodes() > 1 && parts.budget(FaultKind::Partition) > 0 && parts.notice(0, 1).is_some()
}

impl<'a> Unfolding<'a> {
    pub(super) fn new(
        parts: &'a dyn Parts,
        workers: Workers<'a>,
        inside: &'a (dyn Fn(u32) -> bool + Sync),
        domain: &std::sync::Arc<Domain>,
        longest: Option<u64>,
    ) -> Self {
        let nodes = parts.nodes();
        let links = parts.links();
        Self {
            pools: parts.pools(),
            parts,
            workers,
            inside,
            nodes,
            links,
            budgets: SPENT_KINDS.map(|kind| parts.budget(kind)),
            partitions: if nodes > 1 {
                parts.budget(FaultKind::Partition)
            } else {
                0
            },
            has_notices: has_notices(parts),
            beginnings: Vec::new(),
            points: Vec::new(),
            pasts: Vec::new(),
            items: Vec::new(),
            epochs: Epochs::new(),
            open: BTreeMap::new(),
            marks: FlatTable::small(domain),
            ranks: Vec::new(),
            ranked: 0,
            longest,
            counts: Counts::default(),
        }
    }

    /// Whether every two points whose pasts fit together are in some execution at once, as far as the network and the
    /// faults go.
    pub(super) fn is_exact(&self) -> bool {
        !(self.links.limited || self.links.ordered && self.budget(Act::Crash) > 0)
    }

    fn budget(&self, act: Act) -> u32 {
        act.spends().map_or(u32::MAX, |kind| self.budgets[kind])
    }

    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    pub(super) fn local(&self, point: u32) -> u32 {
        self.point(point).local
    }

    pub(super) fn node(&self, point: u32) -> usize {
        usize::from(self.point(point).node)
    }

    pub(super) fn parent(&self, point: u32) -> Option<u32> {
        Some(self.point(point).parent).filter(|&parent| parent != NONE)
    }

    /// How many extensions are open.
    pub(super) fn open(&self) -> usize {
        self.open.values().map(Vec::len).sum()
    }

    fn point(&self, point: u32) -> &Point {
        &self.points[point as usize]
    }

    fn item(&self, item: u32) -> &Item {
        &self.items[item as usize]
    }

    /// The past of a point: for each node the last of its points, the point itself on its own node.
    pub(super) fn past(&self, point: u32) -> &[u32] {
        let at = point as usize * self.nodes;
        &self.pasts[at..at + self.nodes]
    }

    /// The points that a history can continue with, in the order in which they were made, last first.
    pub(super) fn children(&self, point: u32) -> impl Iterator<Item = u32> + '_ {
        let mut next = self.point(point).first_child;
        std::iter::from_fn(move || {
            let this = next;
            (this != NONE).then(|| {
                next = self.point(this).next_sibling;
                this
            })
        })
    }

    /// Begins all histories.
    pub(super) fn begin(&mut self, beginnings: Vec<Vec<Beginning>>, graph: &mut Graph) -> Round {
        self.beginnings = beginnings;
        for node in 0..self.nodes {
            for beginning in &self.beginnings[node] {
                graph.begin(node, beginning);
            }
        }
        for node in 0..self.nodes {
            let [only] = &self.beginnings[node][..] else {
                self.push_root(node, NONE);
                continue;
            };
            self.push_root(node, only.local);
        }
        self.pasts = (0..self.nodes).flat_map(|_| 0..self.nodes as u32).collect();
        for node in 0..self.nodes {
            if let [only] = &self.beginnings[node][..] {
                let sent = self.kept(node as u32, NONE, &only.sent);
                self.post(node as u32, &sent);
            }
        }
        let mark = self.mark_of(self.past(0), None);
        self.marks.upsert(mark, PRESENT, |old, _| old);
        let first_items = 0..self.items.len() as u32;
        self.follow(0, first_items, graph)
    }

    fn push_root(&mut self, node: usize, local: u32) {
        let id = self.points.len() as u32;
        self.points.push(Point {
            parent: NONE,
            jump: id,
            depth: 0,
            local,
            input: 0,
            item: NONE,
            first_child: NONE,
            next_sibling: NONE,
            first_item: 0,
            items: 0,
            choice: 0,
            act: Act::Begin,
            node: node as u8,
            epoch: WHOLE,
            spent: [0; SPENT],
            balance: 0,
            waiting: Vec::new(),
        });
    }

    /// Follows the new points and messages: what can come next in every history.
    fn follow(
        &mut self,
        first_point: u32,
        new_items: std::ops::Range<u32>,
        graph: &mut Graph,
    ) -> Round {
        let mut round = Round {
            first: first_point,
            failing: Vec::new(),
        };
        let new_points = self.points.len() - first_point as usize;
        let (this, known) = (&*self, &*graph);
        let inherited = this.workers.spread_each(new_points, |at, look: &mut Look| {
            this.look_at(first_point + at as u32, known, look);
        });
        self.take_in(inherited, graph, &mut round);
        let (this, known) = (&*self, &*graph);
        let met = this
            .workers
            .spread_each(new_items.len(), |at, look: &mut Look| {
                this.hand_round(new_items.start + at as u32, known, look);
            });
        self.take_in(met, graph, &mut round);
        round
    }

    fn take_in(&mut self, looks: Vec<Look>, graph: &mut Graph, round: &mut Round) {
        for look in looks {
            for (size, extension) in look.extensions {
                if !matches!(extension.act, Act::Begin | Act::Cut | Act::Heal) {
                    self.rank(extension.input);
                }
                self.open.entry(size).or_default().push(extension);
            }
            for (point, item) in look.met {
                self.points[point as usize].waiting.push(item);
            }
            for (point, received, ran) in look.runs {
                let this = &self.points[point as usize];
                let (node, local) = (usize::from(this.node), this.local);
                graph.learn(self.parts, node, local, received, ran, self.inside);
            }
            for Failing { point, item } in look.failing {
                let past = match item {
                    NONE => self.past(point).into(),
                    item => self.joined(point, self.item(item).sender),
                };
                round.failing.push(past);
            }
            self.counts.steps += look.steps;
            self.counts.cut_deeper |= look.cut_deeper;
        }
    }

    /// The local state, the epoch and the messages sent after an extension.
    fn after(&self, extension: &Extension) -> (u32, &[Sent]) {
        let point = self.point(extension.point);
        match extension.act {
            Act::Begin => {
                let choice = extension.choice as usize;
                let beginning = &self.beginnings[usize::from(point.node)][choice];
                (beginning.local, &beginning.sent)
            }
            Act::Lose | Act::Credit | Act::Cut | Act::Heal => (point.local, &[]),
            _ => {
                let choice = extension.choice as usize;
                let outcome = self.parts.outcome(extension.run, choice);
                (outcome.local, outcome.sent)
            }
        }
    }

    /// Takes the extensions with the smallest pasts. `None` when there are no more.
    pub(super) fn round(&mut self, graph: &mut Graph) -> Option<Round> {
        let (_, extensions) = self.open.pop_first()?;
        next_number(extensions.len(), "histories of one size");
        let this = &*self;
        // Where no smaller past has led, by where that is.
        let new = this.workers.spread(extensions.len(), |range| {
            let marks = range.map(|at| (extensions[at].mark, at as u32));
            marks
                .filter(|&(mark, _)| this.marks.get(mark).is_none())
                .collect::<Vec<_>>()
        });
        let mut new: Vec<(u64, u32)> = new.into_iter().flatten().collect();
        new.sort_unstable();
        let alike: Vec<&[(u64, u32)]> = new.chunk_by(|one, two| one.0 == two.0).collect();
        let least = |one: u32, two: u32| {
            let (that, this_one) = (&extensions[two as usize], &extensions[one as usize]);
            if this.compare(that, this_one).is_lt() {
                two
            } else {
                one
            }
        };
        let followed = this.workers.spread(alike.len(), |range| {
            let least = |alike: &&[(u64, u32)]| alike.iter().map(|&(_, at)| at).reduce(least);
            alike[range].iter().filter_map(least).collect::<Vec<_>>()
        });
        let mut followed: Vec<u32> = followed.into_iter().flatten().collect();
        followed.sort_unstable();
        let first_point = self.points.len() as u32;
        let first_item = self.items.len() as u32;
        for at in followed {
            let extension = &extensions[at as usize];
            let new = self.marks.upsert(extension.mark, PRESENT, |old, _| old);
            debug_assert_eq!(new, Upsert::New);
            self.push(extension);
        }
        let items = first_item..self.items.len() as u32;
        Some(self.follow(first_point, items, graph))
    }

    fn push(&mut self, extension: &Extension) {
        let id = next_number(self.points.len(), "histories");
        let past = self.past_behind(extension);
        let (local, sent) = self.after(extension);
        let sent = self.kept(extension.point, extension.item, sent);
        let parent = self.point(extension.point);
        let node = parent.node;
        // Jumps as in a skew-binary list: any ancestor is a logarithmic number of them away.
        let long = self.point(parent.jump);
        let longer = self.point(long.jump);
        let jump = if parent.depth - long.depth == long.depth - longer.depth {
            long.jump
        } else {
            extension.point
        };
        let mut spent = parent.spent;
        if let Some(kind) = extension.act.spends() {
            spent[kind] = one_more(spent[kind], "faults of a kind happen to a node");
        }
        let mut balance = parent.balance;
        if matches!(extension.act, Act::Deliver | Act::Lose) {
            let item = self.item(extension.item);
            balance = balance.wrapping_sub(self.in_flight(item.envelope, item.epoch));
        }
        if extension.act == Act::Credit {
            let envelope = self.item(extension.item).envelope;
            balance = balance.wrapping_sub(self.left_behind(envelope));
        }
        let (depth, sibling, before) = (parent.depth + 1, parent.first_child, parent.epoch);
        let epoch = match extension.act {
            Act::Cut => self.epochs.after(before, Some(u64::from(extension.input))),
            Act::Heal => self.epochs.after(before, None),
            _ => before,
        };
        self.points.push(Point {
            parent: extension.point,
            jump,
            depth,
            local,
            input: extension.input,
            item: extension.item,
            first_child: NONE,
            next_sibling: sibling,
            first_item: 0,
            items: 0,
            choice: extension.choice,
            act: extension.act,
            node,
            epoch,
            spent,
            balance,
            waiting: Vec::new(),
        });
        self.points[extension.point as usize].first_child = id;
        self.pasts.extend_from_slice(&past);
        let own = self.pasts.len() - self.nodes + usize::from(node);
        self.pasts[own] = id;
        self.counts.depth = self.counts.depth.max(u64::from(depth));
        match (extension.act, self.epochs.cut(before)) {
            (Act::Heal, Some(cut)) if self.has_notices => self.post_notices(id, cut),
            _ => self.post(id, &sent),
        }
        if self.leaves_room(extension) {
            let received = *self.item(extension.item);
            self.post_room(id, received);
        }
    }
}

/// Counts one more of what a history has; more than 65,535 are a [limit](panics::limit).
fn one_more(count: u16, what: &str) -> u16 {
    let more = count.checked_add(1);
    more.unwrap_or_else(|| panics::limit(format!("more than {} {what} in one history", u16::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::FailureKind;

    #[test]
    fn a_count_beyond_the_last_is_a_limit() {
        assert_eq!(one_more(u16::MAX - 1, "things"), u16::MAX);
        let failure = panics::catch(|| one_more(u16::MAX, "things")).unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Limit);
        assert_eq!(failure.message(), "more than 65535 things in one history");
    }

    #[test]
    fn a_point_and_an_extension_stay_small() {
        assert_eq!(size_of::<Point>(), 88);
        assert_eq!(size_of::<Extension>(), 32);
    }
}
