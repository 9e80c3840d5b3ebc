//! One array of a [flat table](super::flat): where a key belongs in it, and how it is looked for.

use super::domain::Domain;
use super::slot::{EMPTY, FROZEN, Slot, fill_alone};
use super::slots::Slots;
use crate::weave::{AtomicU64, Ordering};

/// The part of a key that says where it belongs.
const PLACE: u64 = u64::MAX << 32;

/// How many slots share a cache line. Probing starts at the first of them: a line that has been fetched is looked at
/// whole before the next one is.
pub(super) const fn line<S>() -> usize {
    64 / size_of::<u64>() / (size_of::<S>() / size_of::<AtomicU64>())
}

/// How many slots are looked at before it is asked whether one of them ends a search.
const TOGETHER: usize = 4;

/// An array of slots, and where keys stand in it.
pub(super) struct Array<S> {
    pub(super) slots: Slots<S>,
    pub(super) full_at: usize,
}

/// Where a probe ends.
pub(super) enum Probe<'a, S> {
    Found(&'a S),
    Free(&'a S),
    /// The array is being replaced.
    Frozen,
    Full,
}

impl<S: Slot> Array<S> {
    pub(super) fn new(capacity: usize, domain: &Domain) -> Self {
        let capacity = capacity.next_multiple_of(line::<S>());
        Self {
            slots: Slots::empty(capacity, domain.blocks()),
            full_at: capacity * 13 / 15,
        }
    }

    #[inline]
    pub(super) fn home(&self, key: u64, shard_bits: u32) -> usize {
        let place = (key & PLACE) << shard_bits >> 32;
        let exact = ((place * self.slots.len() as u64) >> 32) as usize;
        exact & !(line::<S>() - 1)
    }

    /// The line behind the one at `at`; behind the last is the first.
    #[inline]
    pub(super) fn behind(&self, at: usize) -> usize {
        if at + line::<S>() == self.slots.len() {
            0
        } else {
            at + line::<S>()
        }
    }

    /// Looks for `key`, or for where it would be put.
    ///
    /// Several slots are looked at together: that costs less than to guess wrongly in which of them the search ends.
    #[inline]
    pub(super) fn probe_for(&self, key: u64, shard_bits: u32) -> Probe<'_, S> {
        let home = self.home(key, shard_bits);
        let mut at = home;
        loop {
            for some in self.slots.line(at).chunks_exact(TOGETHER) {
                // From the back, since lines fill and freeze from the front: if the last slot was taken when it was looked
                // at, then so were all before it.
                let mut same = TOGETHER;
                let mut full = 0;
                let mut frozen = false;
                let mut last_is_free = false;
                for (place, slot) in some.iter().enumerate().rev() {
                    let seen = slot.key().load(Ordering::Acquire);
                    same = if seen == key { place } else { same };
                    full += usize::from(!is_mark(seen));
                    frozen |= seen == FROZEN;
                    if place == TOGETHER - 1 {
                        last_is_free = is_mark(seen);
                    }
                }
                if let Some(slot) = some.get(same) {
                    return Probe::Found(slot);
                }
                // Only empty slots are frozen.
                if last_is_free {
                    // The first slot that was free when it was looked at: if another thread has put the key there since,
                    // it cannot be claimed any more.
                    return if frozen {
                        Probe::Frozen
                    } else {
                        Probe::Free(&some[full % TOGETHER])
                    };
                }
            }
            at = self.behind(at);
            if at == home {
                return Probe::Full;
            }
        }
    }

    /// Looks for a key that `is` recognises where `key` belongs, or for where that would be put.
    #[inline]
    pub(super) fn probe(
        &self,
        key: u64,
        shard_bits: u32,
        is: impl Fn(u64) -> bool,
    ) -> Probe<'_, S> {
        let home = self.home(key, shard_bits);
        let mut at = home;
        loop {
            for slot in self.slots.line(at) {
                let found = slot.key().load(Ordering::Acquire);
                if is_mark(found) {
                    return if found == EMPTY {
                        Probe::Free(slot)
                    } else {
                        Probe::Frozen
                    };
                }
                if is(found) {
                    return Probe::Found(slot);
                }
            }
            at = self.behind(at);
            if at == home {
                return Probe::Full;
            }
        }
    }

    /// Inserts a new key while no other thread can see this array.
    #[inline]
    pub(super) fn put_alone(&self, key: u64, value: u64, shard_bits: u32) {
        let mut at = self.home(key, shard_bits);
        loop {
            // Lines fill from the front. Counting costs less than to guess wrongly where the first free slot is.
            let line = self.slots.line(at);
            let is_full = |slot: &S| slot.key().load(Ordering::Relaxed) != EMPTY;
            let full: usize = line.iter().map(|slot| usize::from(is_full(slot))).sum();
            if let Some(slot) = line.get(full) {
                fill_alone(slot, key, value);
                return;
            }
            at = self.behind(at);
        }
    }
}

/// Whether this is a mark of a slot and no key, in one comparison.
#[inline]
fn is_mark(key: u64) -> bool {
    key.wrapping_add(1) <= EMPTY + 1
}
