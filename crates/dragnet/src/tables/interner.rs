//! Values kept once each, under a small number.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Arena, Domain, FlatTable};

/// Keeps each distinct value once and names it by a `u32`. Numbers follow the order of arrival, which differs from run
/// to run with several threads, so they never reach a fingerprint, an order or a report.
pub(crate) struct Interner<T> {
    items: Arena<Item<T>>,
    index: FlatTable,
    distinct: AtomicUsize,
}

/// From the key of a value to the next one for a value with the same hash.
const NEXT: u64 = 0x9e37_79b9_7f4a_7c15;

struct Item<T> {
    hash: u64,
    value: T,
}

impl<T: Eq> Interner<T> {
    pub(crate) fn new(domain: &Arc<Domain>) -> Self {
        Self {
            items: Arena::new(),
            index: FlatTable::small(domain),
            distinct: AtomicUsize::new(0),
        }
    }

    /// The number of `value`, whose hash is `hash`, and whether it is new. Equality decides, never the hash: values
    /// with equal hashes take neighbouring keys.
    pub(crate) fn intern(&self, value: T, hash: u64) -> (u32, bool) {
        let mut wanted = Some(value);
        let mut pushed = None;
        let mut key = hash;
        loop {
            let found = self.index.get(key).unwrap_or_else(|| {
                let id = *pushed.get_or_insert_with(|| {
                    let value = wanted.take().expect("it is pushed only once");
                    self.items.push(Item { hash, value })
                });
                // What counts is whose number stands there: with two threads it may be the other's, and the item just
                // pushed stays behind, unused.
                self.index.settle(key, u64::from(id) + 1)
            });
            let id = (found - 1) as u32;
            if pushed == Some(id) {
                self.distinct.fetch_add(1, Ordering::Relaxed);
                return (id, true);
            }
            let value = match pushed {
                Some(id) => &self.items.get(id).value,
                None => wanted.as_ref().expect("it is not pushed yet"),
            };
            if self.items.get(id).value == *value {
                return (id, false);
            }
            key = key.wrapping_add(NEXT);
        }
    }

    /// The number of a value with this hash that `is` recognises.
    pub(crate) fn find(&self, hash: u64, is: impl Fn(&T) -> bool) -> Option<u32> {
        let mut key = hash;
        while let Some(found) = self.index.get(key) {
            let id = (found - 1) as u32;
            if is(&self.items.get(id).value) {
                return Some(id);
            }
            key = key.wrapping_add(NEXT);
        }
        None
    }

    /// Every value with its hash. With several threads some may appear twice.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.items.iter().map(|item| (item.hash, &item.value))
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> &T {
        &self.items.get(id).value
    }

    #[inline]
    pub(crate) fn hash(&self, id: u32) -> u64 {
        self.items.get(id).hash
    }

    pub(crate) fn len(&self) -> usize {
        self.distinct.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_hashes_do_not_make_values_equal() {
        let interner = Interner::new(&Domain::new(1));
        let (a, _) = interner.intern("a", 42);
        let (b, _) = interner.intern("b", 42);
        assert_ne!(a, b);
        assert_eq!(interner.intern("a", 42), (a, false));
        assert_eq!(interner.intern("b", 42), (b, false));
        assert_eq!((interner.get(a), interner.get(b)), (&"a", &"b"));
        assert_eq!(interner.len(), 2);
    }
}
