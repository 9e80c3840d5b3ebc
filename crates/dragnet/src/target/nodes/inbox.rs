//! What is in flight to one node, interned.
//!
//! An inbox is the list of the envelopes on their way to a node, sorted so that equal contents are equal lists: by
//! sender and content on an unordered network, by sender alone, oldest first, on an ordered one.

use std::sync::Arc;

use super::network::Order;
use crate::step_guard;
use crate::tables::{Domain, Interner};
use crate::trace::scatter;

pub(super) struct Inboxes {
    order: Order,
    inboxes: Interner<Box<[u32]>>,
}

/// What an inbox must know of an envelope, by its number.
pub(super) trait Envelopes {
    /// What it is sorted by: its sender and a stable hash of its content.
    fn place(&self, envelope: u32) -> (usize, u64);
    /// The hash of its content under the key of the search.
    fn hash(&self, envelope: u32) -> u64;
    /// Whether one more such envelope fits beside these.
    fn fits(&self, envelope: u32, among: &[u32]) -> bool;
}

impl Inboxes {
    pub(super) const EMPTY: u32 = 0;

    pub(super) fn new(order: Order, domain: &Arc<Domain>) -> Self {
        let inboxes = Interner::new(domain);
        let (id, _) = inboxes.intern(Box::default(), hash_of(order, []));
        assert_eq!(id, Self::EMPTY);
        Self { order, inboxes }
    }

    pub(super) fn hash(&self, inbox: u32) -> u64 {
        self.inboxes.hash(inbox)
    }

    pub(super) fn envelopes(&self, inbox: u32) -> &[u32] {
        self.inboxes.get(inbox)
    }

    /// Where in the inbox the envelopes stand that can be delivered next, in a fixed order: each distinct one, or the
    /// oldest of each sender.
    pub(super) fn heads<'a>(
        &'a self,
        inbox: u32,
        all: &'a impl Envelopes,
    ) -> impl Iterator<Item = (usize, u32)> + 'a {
        let envelopes = self.envelopes(inbox);
        (0..envelopes.len())
            .filter(move |&at| {
                at == 0 || {
                    let (before, this) = (envelopes[at - 1], envelopes[at]);
                    match self.order {
                        Order::Any => before != this,
                        Order::PerLink => all.place(before).0 != all.place(this).0,
                    }
                }
            })
            .map(|at| (at, envelopes[at]))
    }

    /// The inbox with these envelopes, which are sorted already.
    pub(super) fn of(&self, envelopes: &[u32], all: &impl Envelopes) -> u32 {
        self.intern(envelopes.iter(), all)
    }

    /// The inbox without the envelope at `at`.
    pub(super) fn without(&self, inbox: u32, at: usize, all: &impl Envelopes) -> u32 {
        let (before, rest) = self.envelopes(inbox).split_at(at);
        self.intern(before.iter().chain(&rest[1..]), all)
    }

    /// The inbox with one more envelope, unless there is no room for it.
    pub(super) fn with(&self, inbox: u32, envelope: u32, all: &impl Envelopes) -> u32 {
        let envelopes = self.envelopes(inbox);
        let at = match self.order {
            Order::Any => {
                let place = (all.place(envelope), envelope);
                envelopes.partition_point(|&other| (all.place(other), other) <= place)
            }
            Order::PerLink => {
                let from = all.place(envelope).0;
                envelopes.partition_point(|&other| all.place(other).0 <= from)
            }
        };
        self.insert(inbox, at, envelope, all)
    }

    /// The inbox with more envelopes, one after the other, each unless there is no room for it.
    pub(super) fn with_all(&self, inbox: u32, arriving: &[u32], all: &impl Envelopes) -> u32 {
        let mut envelopes = self.envelopes(inbox).to_vec();
        for &envelope in arriving {
            step_guard::give_up_if_interrupted(|| {
                format!("{} messages were on their way to one node", envelopes.len())
            });
            if all.fits(envelope, &envelopes) {
                envelopes.push(envelope);
            }
        }
        // Those that were there stand in front of their like, and the sort is stable: the oldest of a sender stays first.
        match self.order {
            Order::Any => envelopes.sort_by_key(|&envelope| (all.place(envelope), envelope)),
            Order::PerLink => envelopes.sort_by_key(|&envelope| all.place(envelope).0),
        }
        self.intern(envelopes.iter(), all)
    }

    /// The inbox with a second copy of the envelope at `at`, right behind the first, unless there is no room for it.
    pub(super) fn with_copy(&self, inbox: u32, at: usize, all: &impl Envelopes) -> u32 {
        self.insert(inbox, at, self.envelopes(inbox)[at], all)
    }

    /// The inbox with only the envelopes that `keep` picks.
    pub(super) fn only(&self, inbox: u32, all: &impl Envelopes, keep: impl Fn(u32) -> bool) -> u32 {
        let kept = self.envelopes(inbox).iter().filter(|&&e| keep(e));
        self.intern(kept, all)
    }

    fn insert(&self, inbox: u32, at: usize, envelope: u32, all: &impl Envelopes) -> u32 {
        let envelopes = self.envelopes(inbox);
        if !all.fits(envelope, envelopes) {
            return inbox;
        }
        let (before, behind) = envelopes.split_at(at);
        self.intern(before.iter().chain([&envelope]).chain(behind), all)
    }

    fn intern<'a>(
        &self,
        envelopes: impl Iterator<Item = &'a u32> + Clone,
        all: &impl Envelopes,
    ) -> u32 {
        let senders_and_hashes = envelopes.clone().map(|&e| (all.place(e).0, all.hash(e)));
        let hash = hash_of(self.order, senders_and_hashes);
        // Most are known, and those are recognised without a copy.
        let known = self
            .inboxes
            .find(hash, |known| known.iter().eq(envelopes.clone()));
        known.unwrap_or_else(|| self.inboxes.intern(envelopes.copied().collect(), hash).0)
    }
}

/// The hash of an inbox whose envelopes have these senders and hashes.
pub(super) fn hash_of(
    order: Order,
    senders_and_hashes: impl IntoIterator<Item = (usize, u64)>,
) -> u64 {
    let mut sum = 0_u64;
    let mut last = None;
    let mut rank = 0_u64;
    for (sender, hash) in senders_and_hashes {
        // On an ordered network it counts how many of its sender's stand before an envelope.
        rank = if order == Order::PerLink && last == Some(sender) {
            rank + 1
        } else {
            0
        };
        last = Some(sender);
        sum = sum.wrapping_add(scatter(hash ^ scatter(rank)));
    }
    sum
}
