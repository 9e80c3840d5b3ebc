//! Marks: where a past leads the whole system, as a hash.

use super::{Act, Extension, Item, NONE, SPENT, Unfolding};
use crate::trace::scatter;

impl Unfolding<'_> {
    /// A hash of where a past, and perhaps a step behind it, leads the whole system: local states, what is in flight, and
    /// what is left of budgets.
    pub(super) fn mark_of(&self, past: &[u32], extension: Option<&Extension>) -> u64 {
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
            add(scatter((spent << 8) + kind as u64 + 1));
        }
        scatter(sum)
    }

    /// A hash of what is in flight on ordered links: each message with its place behind what was received.
    pub(super) fn mark_of_links(&self, past: &[u32], extension: Option<&Extension>) -> u64 {
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
    pub(super) fn sent_on(
        &self,
        mut point: u32,
        from: usize,
        to: usize,
    ) -> Vec<(u32, u32, u64, Option<u32>)> {
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
}
