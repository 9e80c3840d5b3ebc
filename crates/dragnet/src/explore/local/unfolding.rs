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
//! verified.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::epochs::{Epochs, WHOLE};
use super::graph::{Cone, Graph};
use super::spread::Workers;
use crate::tables::{Domain, FlatTable, PRESENT, Single, Upsert};
use crate::target::nodes::FaultKind;
use crate::target::parts::{Beginning, Links, Parts, Ran, Sent};
use crate::trace::scatter;

/// No point, no item.
const NONE: u32 = u32::MAX;

pub(super) struct Unfolding<'a> {
    parts: &'a dyn Parts,
    workers: Workers<'a>,
    inside: &'a (dyn Fn(u32) -> bool + Sync),
    nodes: usize,
    links: Links,
    /// How much room each pool of a link has, where a message depends on those that made room for it; none otherwise.
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
    /// How long a history may be.
    longest: u64,
    pub(super) counts: Counts,
}

/// What there was to do.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    /// Steps of histories, followed or not.
    pub(super) steps: u64,
    /// The longest history.
    pub(super) depth: u64,
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
    choice: u16,
    act: Act,
    node: u8,
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
    /// The sender takes note of room on a link that was full.
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
    choice: u16,
    act: Act,
    mark: u64,
}

/// What a look at some points brought up.
#[derive(Default)]
struct Look {
    extensions: Vec<(u32, Extension)>,
    runs: Vec<(u32, Option<u32>, Ran)>,
    failing: Vec<Failing>,
    /// A message that can be received at a point.
    met: Vec<(u32, u32)>,
    steps: u64,
    cut_deeper: bool,
}

/// A handler that fails when a history is continued.
struct Failing {
    point: u32,
    item: u32,
}

/// What a round brought up.
#[derive(Default)]
pub(super) struct Round {
    /// The first new point.
    pub(super) first: u32,
    /// Pasts after which a handler fails.
    pub(super) failing: Vec<Box<[u32]>>,
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
        let may = |kind| parts.budget(kind) > 0;
        let has_notices = nodes > 1 && may(FaultKind::Partition) && parts.notice(0, 1).is_some();
        // Copies, notices and what a crash throws away take up and make room without anybody's doing. Messages are then let
        // through however many there are.
        let follows_room = !may(FaultKind::Duplicate)
            && !has_notices
            && !(links.ordered && may(FaultKind::Crash));
        Self {
            pools: if follows_room {
                parts.pools()
            } else {
                Vec::new()
            },
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
            has_notices,
            beginnings: Vec::new(),
            points: Vec::new(),
            pasts: Vec::new(),
            items: Vec::new(),
            epochs: Epochs::new(),
            open: BTreeMap::new(),
            marks: FlatTable::small(domain),
            ranks: Vec::new(),
            ranked: 0,
            longest: longest.unwrap_or(u64::MAX),
            counts: Counts::default(),
        }
    }

    /// Whether every two points whose pasts fit together are in some execution at once, as far as the network and the
    /// faults go.
    pub(super) fn is_exact(&self) -> bool {
        !self.links.limited && !(self.links.ordered && self.budget(Act::Crash) > 0)
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

    /// The local states that the histories of a past go through.
    pub(super) fn cone(&self, past: &[u32]) -> Cone {
        let mut locals = Vec::new();
        for (node, &last) in past.iter().enumerate() {
            let mut point = last;
            while point != NONE {
                if self.has_begun(point) {
                    locals.push(self.point(point).local);
                }
                point = self.point(point).parent;
            }
            if !self.has_begun(last) {
                locals.extend(self.beginnings[node].iter().map(|start| start.local));
            }
        }
        Cone::of(locals)
    }

    /// Whether a node has begun at a point. Those with several ways to begin start with a choice.
    fn has_begun(&self, point: u32) -> bool {
        self.point(point).local != NONE
    }

    /// Whether the history of `early` is a beginning of that of `late`, which is on the same node.
    fn leads_to(&self, early: u32, late: u32) -> bool {
        let depth = self.point(early).depth;
        let mut at = late;
        loop {
            let point = self.point(at);
            if point.depth <= depth {
                return at == early;
            }
            at = if self.point(point.jump).depth >= depth {
                point.jump
            } else {
                point.parent
            };
        }
    }

    /// The longer of two histories of one node, if the other is a beginning of it.
    fn join(&self, one: u32, two: u32) -> Option<u32> {
        if one == two {
            return Some(one);
        }
        let (short, long) = if self.point(one).depth <= self.point(two).depth {
            (one, two)
        } else {
            (two, one)
        };
        self.leads_to(short, long).then_some(long)
    }

    /// Whether `point` can be in one execution with what the past of `other` has, as the last point of its node.
    fn fits(&self, point: u32, other: u32) -> bool {
        let node = self.node(point);
        let (mine, theirs) = (self.past(point), self.past(other));
        if !(self.point(theirs[node]).depth <= self.point(point).depth
            && self.leads_to(theirs[node], point))
        {
            return false;
        }
        let mut spent = [0_u32; SPENT];
        let faulty = self.budgets != [0; SPENT];
        for (&mine, &theirs) in mine.iter().zip(theirs) {
            let Some(joined) = self.join(mine, theirs) else {
                return false;
            };
            if faulty {
                for (all, &more) in spent.iter_mut().zip(&self.point(joined).spent) {
                    *all += u32::from(more);
                }
            }
        }
        if faulty && spent.iter().zip(self.budgets).any(|(&all, most)| all > most) {
            return false;
        }
        self.epochs
            .comparable(self.point(point).epoch, self.point(other).epoch)
    }

    /// Whether two points of different nodes can be the last of their nodes in one execution.
    pub(super) fn meet(&self, one: u32, two: u32) -> bool {
        self.fits(one, two) && {
            let node = self.node(two);
            let known = self.past(one)[node];
            self.point(known).depth <= self.point(two).depth && self.leads_to(known, two)
        }
    }

    /// The past of two points that meet.
    pub(super) fn joined(&self, one: u32, two: u32) -> Box<[u32]> {
        let pairs = self.past(one).iter().zip(self.past(two));
        pairs
            .map(|(&one, &two)| self.join(one, two).expect("they meet"))
            .collect()
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

    /// Whether two messages to one node are copies of the same, or on the same link.
    fn alike(&self, one: &Item, two: &Item) -> bool {
        if one.room || two.room {
            one.room == two.room && one.from == two.from
        } else if self.links.ordered {
            one.from == two.from
        } else {
            one.envelope == two.envelope
        }
    }

    /// The number of the copy, or of the message on its link, that a history receives next.
    fn expected(&self, mut point: u32, item: &Item) -> u32 {
        loop {
            let this = self.point(point);
            match this.act {
                Act::Deliver | Act::Keep | Act::Lose | Act::Credit => {
                    let received = self.item(this.item);
                    if self.alike(received, item) {
                        return received.index + u32::from(this.act != Act::Keep);
                    }
                }
                Act::Cut
                    if self.epochs.separates(
                        this.epoch,
                        usize::from(item.from),
                        usize::from(this.node),
                    ) =>
                {
                    return 0;
                }
                _ => {}
            }
            if this.parent == NONE {
                return 0;
            }
            point = this.parent;
        }
    }

    /// The number that the next copy, or the next message on the link, has which a history sends.
    fn next_index(&self, mut point: u32, sent: Sent) -> u32 {
        let me = self.node(point);
        let to = sent.to as usize;
        loop {
            let this = self.point(point);
            let last = self.items_of(point).rev().find(|&item| {
                let item = self.item(item);
                !item.room
                    && usize::from(item.to) == to
                    && usize::from(item.from) == me
                    && (self.links.ordered || item.envelope == sent.envelope)
            });
            if let Some(last) = last {
                return self.item(last).index + 1;
            }
            if this.act == Act::Cut && self.epochs.separates(this.epoch, me, to) {
                // When the link came back, its first message was the notice of that.
                let notice = self.has_notices.then(|| self.parts.notice(me, to));
                let comes_first = notice
                    .flatten()
                    .is_some_and(|notice| self.links.ordered || notice.envelope == sent.envelope);
                return u32::from(comes_first);
            }
            if this.parent == NONE {
                return 0;
            }
            point = this.parent;
        }
    }

    fn items_of(&self, point: u32) -> std::ops::Range<u32> {
        let point = self.point(point);
        point.first_item..point.first_item + u32::from(point.items)
    }

    /// Whether a message can be received at a point, whose past it fits, now, later, or never again.
    fn meeting(&self, point: u32, item: u32) -> Meeting {
        let (item, this) = (self.item(item), self.point(point));
        if item.epoch != this.epoch {
            if !self.epochs.leads_to(item.epoch, this.epoch) {
                return Meeting::Later;
            }
            let (from, to) = (usize::from(item.from), usize::from(item.to));
            if self.epochs.era(this.epoch, from, to) != item.era {
                return Meeting::Never;
            }
        }
        let expected = self.expected(point, item);
        match expected.cmp(&item.index) {
            Ordering::Greater => Meeting::Never,
            Ordering::Equal => Meeting::Now,
            Ordering::Less if self.may_skip(this) => Meeting::Now,
            Ordering::Less => Meeting::Later,
        }
    }

    /// Whether messages on ordered links to a history may have been lost before others.
    fn may_skip(&self, point: &Point) -> bool {
        let loses = self.links.limited && self.pools.is_empty();
        self.links.ordered && (loses || point.spent[2] > 0)
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
        self.pasts = (0..self.nodes)
            .flat_map(|_| 0..self.nodes as u32)
            .collect();
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

    /// Takes note of what the last step of a point sends.
    fn post(&mut self, point: u32, sent: &[Sent]) {
        let this = self.point(point);
        let (epoch, from) = (this.epoch, this.node);
        self.points[point as usize].first_item = self.items.len() as u32;
        for &sent in sent {
            let to = sent.to as usize;
            let index = self.next_index(point, sent);
            self.rank(sent.envelope);
            self.items.push(Item {
                envelope: sent.envelope,
                from,
                to: to as u8,
                index,
                sender: point,
                epoch,
                era: self.epochs.era(epoch, usize::from(from), to),
                room: false,
            });
            let hash = self.in_flight(sent.envelope, epoch);
            let this = &mut self.points[point as usize];
            this.items += 1;
            this.balance = this.balance.wrapping_add(hash);
        }
    }

    /// What of `sent` a step behind a point puts on its way: a link that is cut or full loses it.
    ///
    /// What a node sends itself makes room before the step that receives it sends more.
    fn kept(&self, point: u32, received: u32, sent: &[Sent]) -> Vec<Sent> {
        let this = self.point(point);
        let me = usize::from(this.node);
        let mut kept: Vec<Sent> = Vec::new();
        for &sent in sent {
            let to = sent.to as usize;
            if self.epochs.separates(this.epoch, me, to) {
                continue;
            }
            let fits = self.pools.iter().enumerate().all(|(pool, _)| {
                let uses = |envelope| self.parts.pools_of(envelope) >> pool & 1 == 1;
                let before = kept.iter().filter(|other| other.to == sent.to);
                let before = before.filter(|other| uses(other.envelope)).count() as i64;
                let made = (received != NONE).then(|| self.item(received));
                let made = made.filter(|item| to == me && usize::from(item.from) == me);
                let made = i64::from(made.is_some_and(|item| !item.room && uses(item.envelope)));
                !uses(sent.envelope) || self.room(point, to, pool) + made > before
            });
            if fits {
                kept.push(sent);
            }
        }
        kept
    }

    /// How much room a pool of the link to another node has, as far as a history knows.
    fn room(&self, mut point: u32, to: usize, pool: usize) -> i64 {
        let me = self.node(point);
        let mut room = i64::from(self.pools[pool]);
        let uses = |item: &Item| self.parts.pools_of(item.envelope) >> pool & 1 == 1;
        loop {
            let this = self.point(point);
            let sent = self.items_of(point).map(|item| self.item(item));
            let sent = sent.filter(|item| {
                !item.room && usize::from(item.to) == to && usize::from(item.from) == me
            });
            room -= sent.filter(|item| uses(item)).count() as i64;
            let makes_room = match this.act {
                Act::Credit => true,
                Act::Deliver | Act::Lose => to == me,
                _ => false,
            };
            if makes_room {
                let made = self.item(this.item);
                room += i64::from(usize::from(made.from) == to && uses(made));
            }
            let lost = this.act == Act::Cut && self.epochs.separates(this.epoch, me, to);
            if lost || this.parent == NONE {
                return room;
            }
            point = this.parent;
        }
    }

    /// Whether a step makes room on a limited link that another node sends on.
    fn leaves_room(&self, extension: &Extension) -> bool {
        !self.pools.is_empty()
            && matches!(extension.act, Act::Deliver | Act::Lose)
            && usize::from(self.item(extension.item).from) != self.node(extension.point)
    }

    /// Takes note of the room that a message leaves behind which a point has received.
    fn post_room(&mut self, point: u32, received: Item) {
        let mut index = 0;
        let mut at = self.point(point).parent;
        // Rooms are numbered in the order of receipt, since the link was last cut.
        while at != NONE {
            let this = self.point(at);
            let cut = this.act == Act::Cut
                && self.epochs.separates(
                    this.epoch,
                    usize::from(received.from),
                    usize::from(this.node),
                );
            if cut {
                break;
            }
            if matches!(this.act, Act::Deliver | Act::Lose)
                && self.item(this.item).from == received.from
            {
                index += 1;
            }
            at = this.parent;
        }
        let this = self.point(point);
        let (me, epoch) = (this.node, this.epoch);
        let era = self
            .epochs
            .era(epoch, usize::from(received.from), usize::from(me));
        self.items.push(Item {
            envelope: received.envelope,
            from: me,
            to: received.from,
            index,
            sender: point,
            epoch,
            era,
            room: true,
        });
        let hash = self.left_behind(received.envelope);
        let this = &mut self.points[point as usize];
        this.items += 1;
        this.balance = this.balance.wrapping_add(hash);
    }

    /// What room that nobody has taken note of adds to where a past leads.
    fn left_behind(&self, envelope: u32) -> u64 {
        scatter(scatter(self.parts.input_hash(envelope)))
    }

    /// Takes note of what is on the links that come back to the node of a point.
    fn post_notices(&mut self, point: u32, cut: u64) {
        self.points[point as usize].first_item = self.items.len() as u32;
        let this = self.point(point);
        let (to, epoch) = (usize::from(this.node), this.epoch);
        for from in 0..self.nodes {
            if (cut >> from ^ cut >> to) & 1 == 0 {
                continue;
            }
            let Some(notice) = self.parts.notice(from, to) else {
                continue;
            };
            self.items.push(Item {
                envelope: notice.envelope,
                from: from as u8,
                to: to as u8,
                index: 0,
                sender: point,
                epoch,
                era: self.epochs.era(epoch, from, to),
                room: false,
            });
            let hash = self.in_flight(notice.envelope, epoch);
            let this = &mut self.points[point as usize];
            this.items += 1;
            this.balance = this.balance.wrapping_add(hash);
        }
    }

    /// What a message in flight adds to where a past leads; on ordered links that is computed from all of them.
    fn in_flight(&self, envelope: u32, epoch: u32) -> u64 {
        if self.links.ordered {
            return 0;
        }
        scatter(self.parts.input_hash(envelope) ^ self.epochs.hash(epoch))
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
        let inherited = this.workers.spread(new_points, |range| {
            let mut look = Look::default();
            for at in range {
                this.look_at(first_point + at as u32, known, &mut look);
            }
            look
        });
        self.take_in(inherited, graph, &mut round);
        let (this, known) = (&*self, &*graph);
        let met = this.workers.spread(new_items.len(), |range| {
            let mut look = Look::default();
            for at in range {
                this.hand_round(new_items.start + at as u32, known, &mut look);
            }
            look
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

    /// What can come after a new point, but for messages that are new as well.
    fn look_at(&self, point: u32, graph: &Graph, look: &mut Look) {
        let this = self.point(point);
        let node = usize::from(this.node);
        if u64::from(this.depth) >= self.longest {
            look.cut_deeper = true;
            return;
        }
        if this.local == NONE {
            for choice in 0..self.beginnings[node].len() {
                self.extend(point, NONE, Act::Begin, 0, None, choice, look);
            }
            return;
        }
        let (crash, restart) = self.parts.crash_and_restart(node);
        if self.parts.is_up(this.local) {
            for &input in self.parts.own_inputs(this.local) {
                self.try_input(point, NONE, Act::Own, input, graph, look);
            }
            if self.affords(self.past(point), Act::Crash) {
                self.try_input(point, NONE, Act::Crash, crash, graph, look);
            }
        } else if self.affords(self.past(point), Act::Restart) {
            self.try_input(point, NONE, Act::Restart, restart, graph, look);
        }
        if self.partitions > 0 {
            if self.epochs.cut(this.epoch).is_some() {
                self.extend(point, NONE, Act::Heal, 0, None, 0, look);
            } else if self.epochs.partitions(this.epoch) < self.partitions {
                // Node 0 stays on the near side, so that each way to fall in two comes up once.
                for far in (2..1_u32 << self.nodes).step_by(2) {
                    self.extend(point, NONE, Act::Cut, far, None, 0, look);
                }
            }
        }
        if this.parent == NONE {
            return;
        }
        for &item in &self.point(this.parent).waiting {
            if self.fits(point, self.item(item).sender) {
                self.offer(point, item, graph, look);
            }
        }
    }

    /// Offers a new message to every point that it fits.
    fn hand_round(&self, item: u32, graph: &Graph, look: &mut Look) {
        let &Item { sender, to, .. } = self.item(item);
        let mut open = vec![self.past(sender)[usize::from(to)]];
        while let Some(point) = open.pop() {
            // What does not fit a history fits none that continues it.
            if self.fits(point, sender) && self.offer(point, item, graph, look) {
                open.extend(self.children(point));
            }
        }
    }

    /// Offers a message to a point that it fits; false when no history that continues it can receive it either.
    fn offer(&self, point: u32, item: u32, graph: &Graph, look: &mut Look) -> bool {
        let meeting = self.meeting(point, item);
        if meeting == Meeting::Never {
            return false;
        }
        look.met.push((point, item));
        let this = self.point(point);
        if u64::from(this.depth) >= self.longest {
            look.cut_deeper = true;
        } else if meeting == Meeting::Now && this.local != NONE {
            let &Item {
                envelope,
                from,
                room,
                ..
            } = self.item(item);
            if room {
                let from = usize::from(from);
                let mut pools = 0..self.pools.len();
                if pools.any(|pool| self.room(point, from, pool) <= 0) {
                    self.extend(point, item, Act::Credit, envelope, None, 0, look);
                }
                return true;
            }
            if self.parts.is_up(this.local) {
                self.try_input(point, item, Act::Deliver, envelope, graph, look);
            }
            if (self.links.ordered || self.links.limited) && self.budget(Act::Lose) > 0 {
                self.extend(point, item, Act::Lose, envelope, None, 0, look);
            }
        }
        true
    }

    fn try_input(
        &self,
        point: u32,
        item: u32,
        act: Act,
        input: u32,
        graph: &Graph,
        look: &mut Look,
    ) {
        let ran = self.parts.run(self.point(point).local, input);
        let delivered = act == Act::Deliver;
        if !graph.knows(ran) {
            look.runs.push((point, delivered.then_some(input), ran));
        }
        // On an unordered network a delivery that changes nothing need not happen.
        if delivered && ran.idle && !self.links.ordered && self.pools.is_empty() {
            return;
        }
        for choice in 0..ran.choices {
            let outcome = self.parts.outcome(ran.number, choice);
            if outcome.fails {
                look.failing.push(Failing { point, item });
                continue;
            }
            if !(self.inside)(outcome.local) {
                continue;
            }
            self.extend(point, item, act, input, Some(ran.number), choice, look);
            if delivered && !ran.idle && self.budget(Act::Keep) > 0 {
                self.extend(
                    point,
                    item,
                    Act::Keep,
                    input,
                    Some(ran.number),
                    choice,
                    look,
                );
            }
        }
    }

    /// Takes note of what can be the next point of a history, unless a budget is overdrawn.
    #[expect(clippy::too_many_arguments, reason = "a step has so many parts")]
    fn extend(
        &self,
        point: u32,
        item: u32,
        act: Act,
        input: u32,
        run: Option<u32>,
        choice: usize,
        look: &mut Look,
    ) {
        let extension = Extension {
            point,
            item,
            input,
            run: run.unwrap_or(NONE),
            choice: choice as u16,
            act,
            mark: 0,
        };
        let past = self.past_behind(&extension);
        if !self.affords(&past, act) {
            return;
        }
        let size = 1 + past.iter().map(|&last| self.point(last).depth).sum::<u32>();
        let mark = self.mark_of(&past, Some(&extension));
        look.steps += 1;
        look.extensions.push((size, Extension { mark, ..extension }));
    }

    /// Whether what a past has left of the budgets is enough for a step.
    fn affords(&self, past: &[u32], act: Act) -> bool {
        act.spends().is_none_or(|kind| {
            let spent = past.iter().map(|&last| u32::from(self.point(last).spent[kind]));
            spent.sum::<u32>() < self.budgets[kind]
        })
    }

    /// What an extension depends on besides itself.
    fn past_behind(&self, extension: &Extension) -> Past {
        let mut past = Past::of(self.past(extension.point));
        if extension.item != NONE {
            let sender = self.item(extension.item).sender;
            for (mine, &theirs) in past.iter_mut().zip(self.past(sender)) {
                if self.point(theirs).depth > self.point(*mine).depth {
                    *mine = theirs;
                }
            }
        }
        past
    }

    /// The local state, the epoch and the messages sent after an extension.
    fn after(&self, extension: &Extension) -> (u32, &[Sent]) {
        let point = self.point(extension.point);
        match extension.act {
            Act::Begin => {
                let choice = usize::from(extension.choice);
                let beginning = &self.beginnings[usize::from(point.node)][choice];
                (beginning.local, &beginning.sent)
            }
            Act::Lose | Act::Credit | Act::Cut | Act::Heal => (point.local, &[]),
            _ => {
                let choice = usize::from(extension.choice);
                let outcome = self.parts.outcome(extension.run, choice);
                (outcome.local, outcome.sent)
            }
        }
    }

    /// A hash of where a past, and perhaps a step behind it, leads the whole system: local states, what is in flight, and
    /// what is left of budgets.
    fn mark_of(&self, past: &[u32], extension: Option<&Extension>) -> u64 {
        let acting = extension.map(|extension| self.node(extension.point));
        let mut sum = 0_u64;
        let mut add = |hash: u64| sum = sum.wrapping_add(hash);
        let mut spent = [0_u64; SPENT];
        for (node, &last) in past.iter().enumerate() {
            let point = self.point(last);
            add(point.balance);
            for (all, &more) in spent.iter_mut().zip(&point.spent) {
                *all += u64::from(more);
            }
            let (mut local, mut epoch) = (point.local, self.epochs.hash(point.epoch));
            let mut crashed = point.spent[2] > 0;
            if let Some(extension) = extension
                && acting == Some(node)
            {
                local = self.after(extension).0;
                epoch = match extension.act {
                    Act::Cut => scatter(epoch ^ scatter(u64::from(extension.input))),
                    Act::Heal => scatter(epoch ^ scatter(1)),
                    _ => epoch,
                };
                crashed |= extension.act == Act::Crash;
            }
            let place = (node as u64 + 1) << 32;
            if local != NONE {
                add(self.parts.local_hash(local));
            }
            if self.partitions > 0 {
                add(scatter(epoch ^ scatter(place)));
            }
            if self.links.ordered && crashed {
                add(scatter(place + 1));
            }
        }
        if let Some(extension) = extension {
            if let Some(kind) = extension.act.spends() {
                spent[kind] += 1;
            }
            if !self.links.ordered {
                if matches!(extension.act, Act::Deliver | Act::Lose) {
                    let item = self.item(extension.item);
                    add(self.in_flight(item.envelope, item.epoch).wrapping_neg());
                }
                let from = self.point(extension.point);
                if extension.act == Act::Heal {
                    let cut = self.epochs.cut(from.epoch).expect("only then it heals");
                    let epoch = scatter(self.epochs.hash(from.epoch) ^ scatter(1));
                    for other in 0..self.nodes {
                        if (cut >> other ^ cut >> from.node) & 1 == 1
                            && let Some(notice) = self.parts.notice(other, usize::from(from.node))
                        {
                            let hash = self.parts.input_hash(notice.envelope);
                            add(scatter(hash ^ epoch));
                        }
                    }
                }
                for sent in self.kept(extension.point, extension.item, self.after(extension).1) {
                    add(self.in_flight(sent.envelope, from.epoch));
                }
            }
            if self.leaves_room(extension) {
                add(self.left_behind(self.item(extension.item).envelope));
            }
            if extension.act == Act::Credit {
                let envelope = self.item(extension.item).envelope;
                add(self.left_behind(envelope).wrapping_neg());
            }
        }
        if self.links.ordered {
            add(self.mark_of_links(past, extension));
        }
        for (kind, spent) in spent.into_iter().enumerate() {
            add(scatter(spent << 8 | kind as u64 + 1));
        }
        scatter(sum)
    }

    /// A hash of what is in flight on ordered links: each message with its place behind what was received.
    fn mark_of_links(&self, past: &[u32], extension: Option<&Extension>) -> u64 {
        let mut sum = 0_u64;
        for (to, &receiver) in past.iter().enumerate() {
            for (from, &sender) in past.iter().enumerate() {
                let mut messages = self.sent_on(sender, from, to);
                // Notices are sent by the receiver's own history.
                if self.has_notices && from != to {
                    messages.extend(self.sent_on(receiver, from, to));
                }
                let probe = Item {
                    envelope: 0,
                    from: from as u8,
                    to: to as u8,
                    index: 0,
                    sender: 0,
                    epoch: 0,
                    era: 0,
                    room: false,
                };
                let mut expected = self.expected(receiver, &probe);
                let epoch = self.point(receiver).epoch;
                let mut lost = false;
                if let Some(extension) = extension {
                    let acting = self.point(extension.point);
                    if usize::from(acting.node) == to {
                        if matches!(extension.act, Act::Deliver | Act::Keep | Act::Lose)
                            && usize::from(self.item(extension.item).from) == from
                        {
                            let received = u32::from(extension.act != Act::Keep);
                            expected = self.item(extension.item).index + received;
                        }
                        if extension.act == Act::Cut
                            && (extension.input >> from ^ extension.input >> to) & 1 == 1
                        {
                            // All that is there is lost, whenever it was sent up to here.
                            lost = true;
                        }
                        if extension.act == Act::Heal
                            && self.epochs.separates(epoch, from, to)
                            && let Some(notice) = self.parts.notice(from, to)
                        {
                            let after = scatter(self.epochs.hash(epoch) ^ scatter(1));
                            messages.push((notice.envelope, 0, after, None));
                        }
                    }
                    if usize::from(acting.node) == from {
                        let sent =
                            self.kept(extension.point, extension.item, self.after(extension).1);
                        let mut index = None;
                        for sent in sent.into_iter().filter(|sent| sent.to as usize == to) {
                            let at =
                                index.unwrap_or_else(|| self.next_index(extension.point, sent));
                            let epoch = self.epochs.hash(acting.epoch);
                            messages.push((sent.envelope, at, epoch, Some(acting.epoch)));
                            index = Some(at + 1);
                        }
                    }
                }
                for (envelope, index, hash, sent_in) in messages {
                    let mut place = u64::from(index) + (1 << 40);
                    if let Some(sent_in) = sent_in
                        && self.epochs.leads_to(sent_in, epoch)
                    {
                        let era = |epoch| self.epochs.era(epoch, from, to);
                        if lost || era(epoch) != era(sent_in) || index < expected {
                            continue;
                        }
                        place = u64::from(index - expected);
                    }
                    let link = (from * self.nodes + to) as u64;
                    let hash = self.parts.input_hash(envelope) ^ scatter(hash ^ scatter(place));
                    sum = sum.wrapping_add(scatter(hash ^ scatter(link)));
                }
            }
        }
        sum
    }

    /// What a history has put on a link: each envelope with its number, the hash of its epoch, and the epoch.
    fn sent_on(&self, mut point: u32, from: usize, to: usize) -> Vec<(u32, u32, u64, Option<u32>)> {
        let mut sent = Vec::new();
        loop {
            for item in self.items_of(point) {
                let item = self.item(item);
                if !item.room && (usize::from(item.from), usize::from(item.to)) == (from, to) {
                    let hash = self.epochs.hash(item.epoch);
                    sent.push((item.envelope, item.index, hash, Some(item.epoch)));
                }
            }
            match self.point(point).parent {
                NONE => return sent,
                parent => point = parent,
            }
        }
    }

    /// Takes the extensions with the smallest pasts. `None` when there are no more.
    pub(super) fn round(&mut self, graph: &mut Graph) -> Option<Round> {
        let (_, extensions) = self.open.pop_first()?;
        let mut order: Vec<u32> = (0..extensions.len() as u32)
            .filter(|&at| self.marks.get(extensions[at as usize].mark).is_none())
            .collect();
        order.sort_unstable_by_key(|&at| (extensions[at as usize].mark, at));
        let least = |group: &[u32]| {
            let least = |one: u32, two: u32| {
                let (this, that) = (&extensions[one as usize], &extensions[two as usize]);
                if self.compare(that, this).is_lt() { two } else { one }
            };
            group.iter().copied().reduce(least)
        };
        let groups = order.chunk_by(|&one, &two| {
            extensions[one as usize].mark == extensions[two as usize].mark
        });
        let mut followed: Vec<u32> = groups.filter_map(least).collect();
        followed.sort_unstable();
        let first_point = self.points.len() as u32;
        let first_item = self.items.len() as u32;
        for at in followed {
            let extension = &extensions[at as usize];
            let new = self
                .marks
                .upsert(extension.mark, PRESENT, |old, _| old);
            debug_assert_eq!(new, Upsert::New);
            self.push(extension);
        }
        let items = first_item..self.items.len() as u32;
        Some(self.follow(first_point, items, graph))
    }

    /// The order of two extensions with pasts of the same size, which is preserved when both are continued alike.
    fn compare(&self, one: &Extension, two: &Extension) -> Ordering {
        let (ones, twos) = (self.past_behind(one), self.past_behind(two));
        for node in 0..self.nodes {
            let own = |extension: &Extension| self.node(extension.point) == node;
            let order = self.compare_histories(
                (ones[node], own(one).then_some(one)),
                (twos[node], own(two).then_some(two)),
            );
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }

    /// The shorter history first, then the one with the lesser first difference.
    fn compare_histories(
        &self,
        (one, one_step): (u32, Option<&Extension>),
        (two, two_step): (u32, Option<&Extension>),
    ) -> Ordering {
        let length = |point, step: Option<&Extension>| {
            self.point(point).depth + u32::from(step.is_some())
        };
        let lengths = length(one, one_step).cmp(&length(two, two_step));
        if lengths.is_ne() {
            return lengths;
        }
        let step_word = |step: &Extension| {
            self.word(step.act, step.input, step.choice, step.item)
        };
        let point_word = |point: u32| {
            let point = self.point(point);
            self.word(point.act, point.input, point.choice, point.item)
        };
        // From the end: what differs first is what is compared last.
        let (mut one, mut two) = (one, two);
        let mut order = match (one_step, two_step) {
            (Some(one), Some(two)) => step_word(one).cmp(&step_word(two)),
            (Some(step), None) => {
                let order = step_word(step).cmp(&point_word(two));
                two = self.point(two).parent;
                order
            }
            (None, Some(step)) => {
                let order = point_word(one).cmp(&step_word(step));
                one = self.point(one).parent;
                order
            }
            (None, None) => Ordering::Equal,
        };
        while one != two {
            let here = point_word(one).cmp(&point_word(two));
            if here.is_ne() {
                order = here;
            }
            (one, two) = (self.point(one).parent, self.point(two).parent);
        }
        order
    }

    /// What a step is, whatever the history. What came up first is least: of two histories that differ only in the order
    /// of steps, the one is kept that does the earlier thing first, and so sends with less in its past.
    fn word(&self, act: Act, input: u32, choice: u16, item: u32) -> (u32, Act, u16, u32) {
        let rank = match act {
            Act::Begin | Act::Heal | Act::Cut => input,
            _ => self.ranks[input as usize],
        };
        let index = if item == NONE { 0 } else { self.item(item).index };
        (rank, act, choice, index)
    }

    /// Takes note of an input that has come up.
    fn rank(&mut self, input: u32) {
        let input = input as usize;
        if self.ranks.len() <= input {
            self.ranks.resize(input + 1, NONE);
        }
        if self.ranks[input] == NONE {
            self.ranks[input] = self.ranked;
            self.ranked += 1;
        }
    }

    fn push(&mut self, extension: &Extension) {
        let id = self.points.len() as u32;
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
            spent[kind] += 1;
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

/// Whether a message can be received in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meeting {
    Now,
    /// After something else.
    Later,
    /// Not in this history nor in any that continues it.
    Never,
}

/// The past of a point that is not there yet: no more than a few numbers.
type Past = smallpast::Past;

mod smallpast {
    use std::ops::{Deref, DerefMut};

    const NEAR: usize = 8;

    /// A short list that needs no heap while it is short.
    pub(super) enum Past {
        Near([u32; NEAR], usize),
        Far(Vec<u32>),
    }

    impl Past {
        pub(super) fn of(points: &[u32]) -> Self {
            if points.len() <= NEAR {
                let mut near = [0; NEAR];
                near[..points.len()].copy_from_slice(points);
                Self::Near(near, points.len())
            } else {
                Self::Far(points.to_vec())
            }
        }
    }

    impl Deref for Past {
        type Target = [u32];

        fn deref(&self) -> &[u32] {
            match self {
                Self::Near(near, len) => &near[..*len],
                Self::Far(far) => far,
            }
        }
    }

    impl DerefMut for Past {
        fn deref_mut(&mut self) -> &mut [u32] {
            match self {
                Self::Near(near, len) => &mut near[..*len],
                Self::Far(far) => far,
            }
        }
    }
}
