//! What is in flight to one node, interned.
//!
//! An inbox is the list of the envelopes on their way to a node, sorted so that equal contents are equal lists: by
//! sender and content on an unordered network, by sender alone, oldest first, on an ordered one.

use std::sync::atomic::{AtomicU32, Ordering};

use super::network::Order;
use crate::tables::{FlatTable, Interner};
use crate::trace::{Fingerprint, Key, scatter};

pub(super) struct Inboxes {
    order: Order,
    key: Key,
    inboxes: Interner<Inbox>,
    additions: FlatTable,
}

struct Inbox {
    envelopes: Box<[u32]>,
    heads: Box<[Head]>,
}

/// An envelope that can be delivered next: each distinct one, or the oldest of each sender.
struct Head {
    at: u32,
    /// The inbox that is left when this envelope has gone, plus one; 0 until it is known.
    rest: AtomicU32,
}

impl PartialEq for Inbox {
    fn eq(&self, other: &Self) -> bool {
        self.envelopes == other.envelopes
    }
}

impl Eq for Inbox {}

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

    pub(super) fn new(order: Order, key: Key) -> Self {
        let inboxes = Interner::new();
        let empty = Inbox {
            envelopes: Box::default(),
            heads: Box::default(),
        };
        let (id, _) = inboxes.intern(empty, Fingerprint::of(&[0_u64; 0], key).0);
        assert_eq!(id, Self::EMPTY);
        Self {
            order,
            key,
            inboxes,
            additions: FlatTable::memo(),
        }
    }

    #[inline]
    pub(super) fn hash(&self, inbox: u32) -> u64 {
        self.inboxes.hash(inbox)
    }

    pub(super) fn envelopes(&self, inbox: u32) -> &[u32] {
        &self.inboxes.get(inbox).envelopes
    }

    /// The envelopes that can be delivered next, in a fixed order.
    #[inline]
    pub(super) fn heads(&self, inbox: u32) -> impl Iterator<Item = u32> {
        let inbox = self.inboxes.get(inbox);
        inbox
            .heads
            .iter()
            .map(|head| inbox.envelopes[head.at as usize])
    }

    /// The inbox without one copy of its `head`th deliverable envelope.
    #[inline]
    pub(super) fn without(&self, inbox: u32, head: usize, all: &impl Envelopes) -> u32 {
        let known = &self.inboxes.get(inbox).heads[head];
        match known.rest.load(Ordering::Acquire) {
            0 => {
                let mut rest = self.envelopes(inbox).to_vec();
                rest.remove(known.at as usize);
                let id = self.intern(rest, all);
                known.rest.store(id + 1, Ordering::Release);
                id
            }
            id => id - 1,
        }
    }

    /// The inbox with one more envelope, unless there is no room for it.
    #[inline]
    pub(super) fn with(&self, inbox: u32, envelope: u32, all: &impl Envelopes) -> u32 {
        let key = scatter(((u64::from(inbox)) << 32 | u64::from(envelope)).wrapping_add(1));
        if let Some(known) = self.additions.get(key) {
            return (known - 1) as u32;
        }
        let envelopes = self.envelopes(inbox);
        let more = if all.fits(envelope, envelopes) {
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
            let mut more = envelopes.to_vec();
            more.insert(at, envelope);
            self.intern(more, all)
        } else {
            inbox
        };
        self.additions
            .upsert(key, u64::from(more) + 1, |old, _| old);
        more
    }

    /// The inbox with a second copy of its `head`th deliverable envelope, right behind the first, unless there is no
    /// room for it.
    pub(super) fn with_copy(&self, inbox: u32, head: usize, all: &impl Envelopes) -> u32 {
        let at = self.inboxes.get(inbox).heads[head].at as usize;
        let envelopes = self.envelopes(inbox);
        if !all.fits(envelopes[at], envelopes) {
            return inbox;
        }
        let mut more = envelopes.to_vec();
        more.insert(at, envelopes[at]);
        self.intern(more, all)
    }

    /// The inbox with only the envelopes that `keep` picks.
    pub(super) fn only(&self, inbox: u32, all: &impl Envelopes, keep: impl Fn(u32) -> bool) -> u32 {
        let envelopes = self.envelopes(inbox);
        self.intern(
            envelopes.iter().copied().filter(|&e| keep(e)).collect(),
            all,
        )
    }

    fn intern(&self, envelopes: Vec<u32>, all: &impl Envelopes) -> u32 {
        let mut heads: Vec<Head> = Vec::new();
        for (at, &envelope) in envelopes.iter().enumerate() {
            let behind = heads.last().is_some_and(|head| {
                let last = envelopes[head.at as usize];
                match self.order {
                    Order::Any => last == envelope,
                    Order::PerLink => all.place(last).0 == all.place(envelope).0,
                }
            });
            if !behind {
                heads.push(Head {
                    at: at as u32,
                    rest: AtomicU32::new(0),
                });
            }
        }
        let hashes: Vec<u64> = envelopes.iter().map(|&e| all.hash(e)).collect();
        let inbox = Inbox {
            envelopes: envelopes.into(),
            heads: heads.into(),
        };
        self.inboxes
            .intern(inbox, Fingerprint::of(&hashes[..], self.key).0)
            .0
    }
}
