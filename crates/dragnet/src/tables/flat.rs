//! A lock-free open-addressing map from 64-bit keys to 63-bit values, or set of such keys.
//!
//! The set of visited fingerprints is one, and so are the memo tables of the node engine. Keys must be spread evenly:
//! their first half alone says where they belong, its top bits a shard and the rest a place in it, and collisions probe
//! onwards. Nothing is ever removed.
//!
//! # Protocol
//!
//! A slot is two words. `key` is `EMPTY`, then for ever one key; or `EMPTY`, then for ever `FROZEN`. `value` is
//! `UNSET`, then any sequence of values that the caller's merge allows, then for ever frozen (its top bit set). A set
//! leaves the value out: its slots are half as large, and each key has the value `PRESENT`.
//!
//! - *Insert*: probe from the key's home to its key or to an `EMPTY` slot, claim that by compare-and-swap, then merge
//!   the value in by compare-and-swap. Whoever claimed the slot inserted the key, even if another thread's merge comes
//!   first: `UNSET` merges with anything.
//! - *Grow*: under the shard's mutex, sweep the old array: freeze each empty slot; freeze the value of each full one and
//!   copy it. Then publish the new array. A claim that beats the sweep to a slot is copied; one that comes after finds
//!   the slot frozen. A merge that beats the freeze is copied; one that comes after fails its compare-and-swap.
//! - Whoever meets something frozen waits for the mutex, and so for the new array, and starts again there. All other
//!   shards go on, so that growing never stops the world for longer than a shard takes to copy.
//!
//! Shards start with staggered capacities, so that they do not all grow in the same moment and the table as a whole is
//! always about two thirds full.
//!
//! An old array is handed to the table's [`Domain`], which frees it when nobody can be looking at it any more.
//!
//! `Acquire` on every load and `Release` on every store of a value is enough: a value that names an object is written
//! after that object, and the two words of a slot need no order between them, since each says by itself whether it is set.

use std::ptr;
use std::sync::Arc;

use super::array::{Array, Probe, line};
use super::domain::{Domain, Padded};
use super::prefetch;
use super::slot::{
    EMPTY, FROZEN, FROZEN_BIT, Pair, Single, Slot, UNSET, claim, fill_alone, freeze_key,
    freeze_value, merge_alone, merge_into, value_of,
};
use crate::weave::{AtomicPtr, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering};

/// How much larger an array is than the one before: memory against time spent copying, which weighs more where slots are
/// small.
const fn growth<S>() -> f64 {
    if size_of::<S>() > size_of::<AtomicU64>() {
        1.7
    } else {
        2.0
    }
}

/// From this capacity on, one insertion in sixteen is counted: the counter is then no longer fought over.
const SAMPLED_FROM: usize = 4096;
const SAMPLE: u64 = 16;

pub(crate) struct FlatTable<S = Pair> {
    shards: Box<[Shard<S>]>,
    shard_bits: u32,
    /// Only one thread uses the table at a time, and plain stores do where otherwise an exchange is needed.
    alone: bool,
    domain: Arc<Domain>,
}

/// Keeps what every operation reads away from what only insertions write.
struct Shard<S> {
    array: Padded<AtomicPtr<Array<S>>>,
    inserted: Padded<AtomicUsize>,
    growing: Mutex<()>,
}

/// What [`FlatTable::upsert`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upsert {
    /// The key was not there before.
    New,
    /// The key was there, with this value before the merge; `None` when another thread has claimed it this very moment
    /// and its own value is still on its way.
    Old(Option<u64>),
}

impl Upsert {
    #[inline]
    fn from_put((new, old): (bool, u64)) -> Self {
        if new {
            Self::New
        } else {
            Self::Old((old != UNSET).then_some(old))
        }
    }
}

/// What an insertion does when it meets a shard that is being made larger.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meeting {
    Waits,
    GivesUp,
}

impl<S: Slot> FlatTable<S> {
    /// A table for thousands of keys.
    pub(crate) fn small(domain: &Arc<Domain>) -> Self {
        Self::new(3, 16, domain)
    }

    /// A table for very many keys.
    pub(crate) fn large(domain: &Arc<Domain>) -> Self {
        Self::new(6, 64, domain)
    }

    fn new(shard_bits: u32, capacity: usize, domain: &Arc<Domain>) -> Self {
        let count = 1_usize << shard_bits;
        let shards = (0..count)
            .map(|index| {
                let stagger = growth::<S>().powf(index as f64 / count as f64);
                let array = Array::new((capacity as f64 * stagger) as usize, domain);
                Shard {
                    array: Padded(AtomicPtr::new(Box::into_raw(Box::new(array)))),
                    inserted: Padded(AtomicUsize::new(0)),
                    growing: Mutex::new(()),
                }
            })
            .collect();
        Self {
            shards,
            shard_bits,
            alone: domain.is_for_one(),
            domain: Arc::clone(domain),
        }
    }

    /// Brings the home of `key` into the cache, for an operation that follows shortly.
    #[inline]
    pub(crate) fn prefetch(&self, key: u64) {
        let key = usable(key);
        let array = self.array(self.shard(key));
        prefetch(&array.slots.line(array.home(key, self.shard_bits))[0]);
    }

    /// The value of `key`, once it is set.
    #[inline(always)]
    pub(crate) fn get(&self, key: u64) -> Option<u64> {
        let key = usable(key);
        let shard = self.shard(key);
        loop {
            let array = self.array(shard);
            match array.probe_for(key, self.shard_bits) {
                Probe::Found(slot) => {
                    let value = value_of(slot, Ordering::Acquire) & !FROZEN_BIT;
                    return (value != UNSET).then_some(value);
                }
                Probe::Free(_) | Probe::Full => return None,
                Probe::Frozen => self.wait_for_growth(shard, array),
            }
        }
    }

    /// Inserts `key` with `value`, or merges `value` into what is there. `merge(old, new)` says what stays; with one
    /// fixed `value` for each key it can simply keep the old one.
    #[inline]
    pub(crate) fn upsert(&self, key: u64, value: u64, merge: impl Fn(u64, u64) -> u64) -> Upsert {
        let put = self.put(key, value, merge, Meeting::Waits);
        Upsert::from_put(put.expect("it waits until it is done"))
    }

    /// Like [`upsert`](Self::upsert), unless it would have to wait for another thread that makes the shard larger: then
    /// nothing has happened, and the caller can do something else first.
    #[inline]
    pub(crate) fn try_upsert(
        &self,
        key: u64,
        value: u64,
        merge: impl Fn(u64, u64) -> u64,
    ) -> Option<Upsert> {
        let put = self.put(key, value, merge, Meeting::GivesUp);
        put.map(Upsert::from_put)
    }

    /// Gives `key` this value unless it has one, and returns the one that it has for ever.
    pub(crate) fn settle(&self, key: u64, value: u64) -> u64 {
        // Another thread's value may come first even where the key is new.
        match self.put(key, value, |old, _| old, Meeting::Waits) {
            Some((_, old)) if old != UNSET => old,
            _ => value,
        }
    }

    /// Whether `key` is new, and its value before `value` was merged in; `None` when it gave up.
    #[inline]
    fn put(
        &self,
        key: u64,
        value: u64,
        merge: impl Fn(u64, u64) -> u64,
        meeting: Meeting,
    ) -> Option<(bool, u64)> {
        debug_assert!(value != UNSET && value & FROZEN_BIT == 0);
        let key = usable(key);
        let shard = self.shard(key);
        let mut inserted = false;
        loop {
            let array = self.array(shard);
            let slot = match array.probe_for(key, self.shard_bits) {
                Probe::Found(slot) => slot,
                Probe::Free(slot) if self.alone => {
                    fill_alone(slot, key, value);
                    if count_insertion(shard, array, key) {
                        self.grow(shard, array);
                    }
                    return Some((true, UNSET));
                }
                Probe::Free(slot) => {
                    if !claim(slot, key) {
                        continue;
                    }
                    inserted = true;
                    slot
                }
                Probe::Frozen if meeting == Meeting::GivesUp => return None,
                Probe::Frozen => {
                    self.wait_for_growth(shard, array);
                    continue;
                }
                Probe::Full => {
                    self.grow(shard, array);
                    continue;
                }
            };
            if self.alone {
                return Some((false, merge_alone(slot, value, merge)));
            }
            let Some(old) = merge_into(slot, value, &merge) else {
                // A key of ours that is in must get its value now: later it would not be new any more.
                if meeting == Meeting::GivesUp && !inserted {
                    return None;
                }
                self.wait_for_growth(shard, array);
                continue;
            };
            if inserted && count_insertion(shard, array, key) {
                self.grow_unless_others_do(shard, array);
            }
            return Some((inserted, old));
        }
    }

    /// Every key whose top bits are those of `prefix`, with its value. `bits` must be at least 32.
    pub(crate) fn with_prefix(&self, prefix: u64, bits: u32) -> Vec<(u64, u64)> {
        debug_assert!(bits >= 32);
        let array = self.array(self.shard(prefix));
        let mut at = array.home(prefix, self.shard_bits);
        let mut found = Vec::new();
        for _ in 0..array.slots.len() / line::<S>() {
            for slot in array.slots.line(at) {
                let key = slot.key().load(Ordering::Acquire);
                if key == EMPTY {
                    return found;
                }
                if key >> (64 - bits) == prefix >> (64 - bits) {
                    found.push((key, value_of(slot, Ordering::Acquire) & !FROZEN_BIT));
                }
            }
            at = array.behind(at);
        }
        found
    }

    #[inline]
    fn shard(&self, key: u64) -> &Shard<S> {
        &self.shards[(key >> (64 - self.shard_bits)) as usize]
    }

    #[inline]
    fn array<'t>(&'t self, shard: &'t Shard<S>) -> &'t Array<S> {
        // SAFETY: the pointer comes from a `Box`. The array is freed only by its domain, when no worker can
        // hold a reference from before, or by `drop`, which has the table to itself.
        unsafe { &*shard.array.0.load(Ordering::Acquire) }
    }

    #[cold]
    fn wait_for_growth(&self, shard: &Shard<S>, old: &Array<S>) {
        loop {
            drop(shard.growing.lock().unwrap());
            if !ptr::eq(shard.array.0.load(Ordering::Acquire), old) {
                return;
            }
            crate::weave::yield_now();
        }
    }

    /// Makes room in a shard that still has some.
    #[cold]
    fn grow_unless_others_do(&self, shard: &Shard<S>, old: &Array<S>) {
        if let Ok(growing) = shard.growing.try_lock() {
            self.grow_holding(growing, shard, old);
        }
    }

    /// Sees to it that `old` is replaced by a larger array.
    #[cold]
    fn grow(&self, shard: &Shard<S>, old: &Array<S>) {
        self.grow_holding(shard.growing.lock().unwrap(), shard, old);
    }

    fn grow_holding(&self, growing: MutexGuard<'_, ()>, shard: &Shard<S>, old: *const Array<S>) {
        let current = self.array(shard);
        if !ptr::eq(current, old) {
            return;
        }
        let capacity = current.slots.len();
        let new = Array::new((capacity as f64 * growth::<S>()) as usize + 1, &self.domain);
        for at in (0..capacity).step_by(line::<S>()) {
            for slot in current.slots.line(at) {
                // Alone there is nobody to freeze anything for.
                let (key, value) = if self.alone {
                    let key = slot.key().load(Ordering::Relaxed);
                    (key, value_of(slot, Ordering::Relaxed))
                } else {
                    match freeze_key(slot) {
                        EMPTY => continue,
                        key => (key, freeze_value(slot)),
                    }
                };
                if key != EMPTY {
                    new.put_alone(key, value & !FROZEN_BIT, self.shard_bits);
                }
            }
        }
        let old = shard
            .array
            .0
            .swap(Box::into_raw(Box::new(new)), Ordering::AcqRel);
        drop(growing);
        // SAFETY: the pointer comes from a `Box` and has just left the shard; only the swap above can take it out.
        self.domain.retire(unsafe { Box::from_raw(old) });
    }
}

impl FlatTable<Single> {
    /// The key that `is` recognises, among those that belong where `key` does.
    #[inline]
    pub(super) fn find(&self, key: u64, is: impl Fn(u64) -> bool) -> Option<u64> {
        let shard = self.shard(key);
        loop {
            let array = self.array(shard);
            match array.probe(key, self.shard_bits, &is) {
                Probe::Found(slot) => return Some(slot.key.load(Ordering::Acquire)),
                Probe::Free(_) | Probe::Full => return None,
                Probe::Frozen => self.wait_for_growth(shard, array),
            }
        }
    }

    /// Inserts `key` unless there is one that `is` recognises, and returns the one that is there.
    pub(super) fn enter(&self, key: u64, is: impl Fn(u64) -> bool) -> u64 {
        debug_assert!(key != EMPTY && key != FROZEN);
        let shard = self.shard(key);
        loop {
            let array = self.array(shard);
            match array.probe(key, self.shard_bits, &is) {
                Probe::Found(slot) => return slot.key.load(Ordering::Acquire),
                Probe::Free(slot) => {
                    if claim(slot, key) {
                        if count_insertion(shard, array, key) {
                            self.grow_unless_others_do(shard, array);
                        }
                        return key;
                    }
                }
                Probe::Frozen => self.wait_for_growth(shard, array),
                Probe::Full => self.grow(shard, array),
            }
        }
    }
}

impl<S> Drop for FlatTable<S> {
    fn drop(&mut self) {
        for shard in &mut self.shards {
            let array = shard.array.0.load(Ordering::Acquire);
            // SAFETY: the pointer comes from a `Box`, and nobody else can have the table any more.
            drop(unsafe { Box::from_raw(array) });
        }
    }
}

/// Counts an insertion into `array`, and says whether it is now full.
#[inline]
fn count_insertion<S: Slot>(shard: &Shard<S>, array: &Array<S>, key: u64) -> bool {
    let sampled = array.slots.len() >= SAMPLED_FROM;
    if sampled && !key.is_multiple_of(SAMPLE) {
        return false;
    }
    let weight = if sampled { SAMPLE as usize } else { 1 };
    shard.inserted.0.fetch_add(weight, Ordering::Relaxed) + weight >= array.full_at
}

/// The two keys that mark slots are given to their neighbours.
#[inline]
fn usable(key: u64) -> u64 {
    key.clamp(EMPTY + 1, FROZEN - 1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::HashMap;
    use std::thread;

    use super::*;
    use crate::tables::PRESENT;
    use crate::trace::scatter;

    #[test]
    fn every_key_of_a_set_is_new_once_whatever_the_number_of_threads() {
        let (keys, workers) = (100_000_u64, 4);
        let domain = Domain::new(workers);
        let table = FlatTable::<Single>::large(&domain);
        let new: usize = thread::scope(|scope| {
            let insert = |worker: usize| {
                let (table, domain) = (&table, &domain);
                scope.spawn(move || {
                    domain.quiesce(worker);
                    let is_new = |n: &u64| {
                        if n.is_multiple_of(64) {
                            domain.quiesce(worker);
                        }
                        table.upsert(scatter(*n), PRESENT, |old, _| old) == Upsert::New
                    };
                    let new = (1..=keys).filter(is_new).count();
                    domain.leave(worker);
                    new
                })
            };
            let handles: Vec<_> = (0..workers).map(insert).collect();
            handles.into_iter().map(|h| h.join().unwrap()).sum()
        });
        assert_eq!(new as u64, keys);
        assert!((1..=keys).all(|n| table.get(scatter(n)) == Some(PRESENT)));
        assert_eq!(table.get(scatter(keys + 1)), None);
    }

    #[test]
    fn every_key_stays_findable_through_many_growths() {
        let table = FlatTable::<Pair>::large(&Domain::new(1));
        for n in 1..200_000_u64 {
            assert_eq!(table.upsert(scatter(n), n, |old, _| old), Upsert::New);
        }
        for n in 1..200_000_u64 {
            assert_eq!(table.get(scatter(n)), Some(n));
            assert_eq!(
                table.upsert(scatter(n), 1, |old, _| old),
                Upsert::Old(Some(n))
            );
        }
        assert_eq!(table.get(scatter(200_001)), None);
    }

    #[test]
    fn keys_that_look_like_marks_are_kept() {
        let table = FlatTable::<Pair>::small(&Domain::new(1));
        assert_eq!(table.upsert(0, 7, |old, _| old), Upsert::New);
        assert_eq!(table.upsert(u64::MAX, 8, |old, _| old), Upsert::New);
        assert_eq!((table.get(0), table.get(u64::MAX)), (Some(7), Some(8)));
    }

    #[test]
    fn a_prefix_finds_its_keys() {
        let table = FlatTable::<Pair>::large(&Domain::new(1));
        for n in 1..50_000_u64 {
            table.upsert(scatter(n), n, |old, _| old);
        }
        for n in 1..50_000_u64 {
            let found = table.with_prefix(scatter(n) >> 20 << 20, 44);
            assert!(found.contains(&(scatter(n), n)));
        }
    }

    #[test]
    fn threads_agree_on_who_was_first_and_on_the_least_value() {
        let workers = 4;
        let domain = Domain::new(workers);
        let table = FlatTable::<Pair>::large(&domain);
        let keys = 60_000_u64;
        let firsts: Vec<HashMap<u64, ()>> = thread::scope(|scope| {
            let handles: Vec<_> = (0..workers)
                .map(|worker| {
                    let (table, domain) = (&table, &domain);
                    scope.spawn(move || {
                        domain.quiesce(worker);
                        let mut first = HashMap::new();
                        for n in 1..=keys {
                            let key = scatter(n);
                            let value = 1 + (n + worker as u64) % 7;
                            let mut put = None;
                            while put.is_none() {
                                put = match worker % 2 {
                                    0 => Some(table.upsert(key, value, u64::min)),
                                    _ => table.try_upsert(key, value, u64::min),
                                };
                            }
                            if put == Some(Upsert::New) {
                                first.insert(n, ());
                            }
                            if n % 64 == 1 {
                                domain.quiesce(worker);
                            }
                        }
                        domain.leave(worker);
                        first
                    })
                })
                .collect();
            handles.into_iter().map(|h| h.join().unwrap()).collect()
        });
        assert_eq!(firsts.iter().map(HashMap::len).sum::<usize>() as u64, keys);
        for n in 1..=keys {
            let least = (0..workers as u64).map(|w| 1 + (n + w) % 7).min();
            assert_eq!(table.get(scatter(n)), least);
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::thread;

    use super::*;

    /// Three keys meet in one shard of two slots, so that it must grow while both threads insert.
    #[test]
    fn a_growth_loses_no_insertion_and_no_merge() {
        loom::model(|| {
            let domain = Domain::new(2);
            let table = Arc::new(FlatTable::<Pair>::new(1, 2, &domain));
            let (other, others) = (Arc::clone(&table), Arc::clone(&domain));
            let thread = thread::spawn(move || {
                others.quiesce(1);
                // Whoever gives up has changed nothing, and may come again.
                let put = other.try_upsert(1 << 40, 5, u64::min);
                let put = put.unwrap_or_else(|| other.upsert(1 << 40, 5, u64::min));
                let first = put == Upsert::New;
                other.upsert(2 << 40, 9, u64::min);
                others.leave(1);
                first
            });
            domain.quiesce(0);
            let first = table.upsert(1 << 40, 3, u64::min) == Upsert::New;
            domain.quiesce(0);
            table.upsert(3 << 40, 4, u64::min);
            domain.leave(0);
            let theirs = thread.join().unwrap();
            assert!(first ^ theirs, "exactly one thread inserted the key");
            assert_eq!(table.get(1 << 40), Some(3));
            assert_eq!(table.get(2 << 40), Some(9));
            assert_eq!(table.get(3 << 40), Some(4));
        });
    }

    /// One thread fills a line while the other looks at it: whoever finds it full finds what is in it.
    #[test]
    fn a_line_that_fills_up_hides_no_key() {
        loom::model(|| {
            let domain = Domain::new(2);
            let table = Arc::new(FlatTable::<Pair>::new(1, 8, &domain));
            let other = Arc::clone(&table);
            let thread = thread::spawn(move || other.upsert(1 << 40, 1, u64::min) == Upsert::New);
            let first = table.upsert(1 << 40, 1, u64::min) == Upsert::New;
            for key in 2..=4 {
                table.upsert(key << 40, 1, u64::min);
            }
            let theirs = thread.join().unwrap();
            assert!(first ^ theirs, "exactly one thread inserted the key");
        });
    }
}
