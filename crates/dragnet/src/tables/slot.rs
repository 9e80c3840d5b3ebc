//! One slot of a [flat table](super::flat), and what may be done to it: the steps that the table's protocol is made of.

use crate::weave::{AtomicU64, Ordering};

pub(super) const EMPTY: u64 = 0;
pub(super) const FROZEN: u64 = u64::MAX;
pub(super) const UNSET: u64 = 0;
/// The value of every key of a set.
pub(crate) const PRESENT: u64 = 1;
pub(super) const FROZEN_BIT: u64 = 1 << 63;

/// A slot of a table: atomics, all zero when it is empty.
pub(crate) trait Slot: Send + Sync + 'static {
    #[cfg(loom)]
    fn empty() -> Self;
    fn key(&self) -> &AtomicU64;
    /// Where the value is, if there is one.
    fn value(&self) -> Option<&AtomicU64>;
}

/// A slot of a map.
pub(crate) struct Pair {
    pub(super) key: AtomicU64,
    value: AtomicU64,
}

/// A slot of a set.
pub(crate) struct Single {
    pub(super) key: AtomicU64,
}

impl Slot for Pair {
    #[cfg(loom)]
    fn empty() -> Self {
        Self {
            key: AtomicU64::new(EMPTY),
            value: AtomicU64::new(UNSET),
        }
    }

    #[inline]
    fn key(&self) -> &AtomicU64 {
        &self.key
    }

    #[inline]
    fn value(&self) -> Option<&AtomicU64> {
        Some(&self.value)
    }
}

impl Slot for Single {
    #[cfg(loom)]
    fn empty() -> Self {
        Self {
            key: AtomicU64::new(EMPTY),
        }
    }

    #[inline]
    fn key(&self) -> &AtomicU64 {
        &self.key
    }

    #[inline]
    fn value(&self) -> Option<&AtomicU64> {
        None
    }
}

/// Takes an empty slot for `key`, unless another thread has been faster.
#[inline]
pub(super) fn claim(slot: &impl Slot, key: u64) -> bool {
    slot.key()
        .compare_exchange(EMPTY, key, Ordering::AcqRel, Ordering::Acquire)
        .is_ok()
}

#[inline]
pub(super) fn value_of(slot: &impl Slot, ordering: Ordering) -> u64 {
    slot.value().map_or(PRESENT, |value| value.load(ordering))
}

/// Lets nobody claim a slot any more if it is empty, and returns its key.
pub(super) fn freeze_key(slot: &impl Slot) -> u64 {
    match slot.key().load(Ordering::Acquire) {
        EMPTY => {
            let frozen =
                slot.key()
                    .compare_exchange(EMPTY, FROZEN, Ordering::AcqRel, Ordering::Acquire);
            frozen.unwrap_or_else(|key| key)
        }
        key => key,
    }
}

/// Lets nobody change the value of a slot any more, and returns it.
pub(super) fn freeze_value(slot: &impl Slot) -> u64 {
    slot.value().map_or(PRESENT, |value| {
        value.fetch_or(FROZEN_BIT, Ordering::AcqRel)
    })
}

/// Fills an empty slot that no other thread can see.
#[inline]
pub(super) fn fill_alone(slot: &impl Slot, key: u64, value: u64) {
    slot.key().store(key, Ordering::Relaxed);
    if let Some(place) = slot.value() {
        place.store(value, Ordering::Relaxed);
    }
}

/// Merges `value` into a slot that no other thread can see, and returns what was there before.
#[inline]
pub(super) fn merge_alone(slot: &impl Slot, value: u64, merge: impl Fn(u64, u64) -> u64) -> u64 {
    let old = value_of(slot, Ordering::Relaxed);
    if let Some(place) = slot.value() {
        // Stored even where it stays the same: that costs less than to guess wrongly whether it does.
        place.store(merge(old, value), Ordering::Relaxed);
    }
    old
}

/// Merges `value` in, and returns what was there before; `None` when the slot is frozen.
#[inline]
pub(super) fn merge_into(
    slot: &impl Slot,
    value: u64,
    merge: impl Fn(u64, u64) -> u64,
) -> Option<u64> {
    let Some(place) = slot.value() else {
        return Some(PRESENT);
    };
    let mut old = place.load(Ordering::Acquire);
    loop {
        if old & FROZEN_BIT != 0 {
            return None;
        }
        let merged = if old == UNSET {
            value
        } else {
            merge(old, value)
        };
        if merged == old {
            return Some(old);
        }
        match place.compare_exchange_weak(old, merged, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(old),
            Err(now) => old = now,
        }
    }
}
