//! Messages: which copy of what a history can receive, what becomes of what it sends, and the room that it takes up.

use std::cmp::Ordering;

use super::{Act, Extension, Item, NONE, Point, Unfolding, one_more};
use crate::tables::next_number;
use crate::target::parts::Sent;
use crate::trace::scatter;

/// Whether a message can be received in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    Now,
    /// After something else.
    Later,
    /// Not in this history nor in any that continues it.
    Never,
}

impl Unfolding<'_> {
    /// Whether two messages to one node are copies of the same, or on the same link.
    pub(super) fn alike(&self, one: &Item, two: &Item) -> bool {
        if one.room || two.room {
            one.room == two.room && one.from == two.from
        } else if self.links.ordered {
            one.from == two.from
        } else {
            one.envelope == two.envelope
        }
    }

    /// The number of the copy, or of the message on its link, that a history receives next.
    pub(super) fn expected(&self, mut point: u32, item: &Item) -> u32 {
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
    pub(super) fn next_index(&self, mut point: u32, sent: Sent) -> u32 {
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

    pub(super) fn items_of(&self, point: u32) -> std::ops::Range<u32> {
        let point = self.point(point);
        point.first_item..point.first_item + u32::from(point.items)
    }

    /// Whether a message can be received at a point, whose past it fits, now, later, or never again.
    pub(super) fn meeting(&self, point: u32, item: u32) -> Meeting {
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
    pub(super) fn may_skip(&self, point: &Point) -> bool {
        self.links.ordered && point.spent[2] > 0
    }

    /// The number of the next item.
    fn next_item(&self) -> u32 {
        next_number(self.items.len(), "messages in histories")
    }

    /// Adds an item to those of the point that sends it, which is the last that has sent any.
    fn push_item(&mut self, item: Item) {
        self.next_item();
        let sender = &mut self.points[item.sender as usize];
        sender.items = one_more(sender.items, "messages are sent in one step");
        self.items.push(item);
    }

    /// Takes note of what the last step of a point sends.
    pub(super) fn post(&mut self, point: u32, sent: &[Sent]) {
        let this = self.point(point);
        let (epoch, from) = (this.epoch, this.node);
        self.points[point as usize].first_item = self.next_item();
        for &sent in sent {
            let to = sent.to as usize;
            let index = self.next_index(point, sent);
            self.rank(sent.envelope);
            self.push_item(Item {
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
            this.balance = this.balance.wrapping_add(hash);
        }
    }

    /// What of `sent` a step behind a point puts on its way: a link that is cut or full loses it.
    ///
    /// What a node sends itself makes room before the step that receives it sends more.
    pub(super) fn kept(&self, point: u32, received: u32, sent: &[Sent]) -> Vec<Sent> {
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
    pub(super) fn leaves_room(&self, extension: &Extension) -> bool {
        !self.pools.is_empty()
            && matches!(extension.act, Act::Deliver | Act::Lose)
            && usize::from(self.item(extension.item).from) != self.node(extension.point)
    }

    /// Takes note of the room that a message leaves behind which a point has received.
    pub(super) fn post_room(&mut self, point: u32, received: Item) {
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
        self.push_item(Item {
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
        this.balance = this.balance.wrapping_add(hash);
    }

    /// What room that nobody has taken note of adds to where a past leads.
    pub(super) fn left_behind(&self, envelope: u32) -> u64 {
        scatter(scatter(self.parts.input_hash(envelope)))
    }

    /// Takes note of what is on the links that come back to the node of a point.
    pub(super) fn post_notices(&mut self, point: u32, cut: u64) {
        self.points[point as usize].first_item = self.next_item();
        let this = self.point(point);
        let (to, epoch) = (usize::from(this.node), this.epoch);
        for from in 0..self.nodes {
            if (cut >> from ^ cut >> to) & 1 == 0 {
                continue;
            }
            let Some(notice) = self.parts.notice(from, to) else {
                continue;
            };
            self.push_item(Item {
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
            this.balance = this.balance.wrapping_add(hash);
        }
    }

    /// What a message in flight adds to where a past leads; on ordered links that is computed from all of them.
    pub(super) fn in_flight(&self, envelope: u32, epoch: u32) -> u64 {
        if self.links.ordered {
            return 0;
        }
        scatter(self.parts.input_hash(envelope) ^ self.epochs.hash(epoch))
    }
}
