//! Values kept once each, under a small number.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::{Arena, Domain, Ids};

/// Keeps each distinct value once and names it by a `u32`. Numbers follow the order of arrival, which differs from run
/// to run with several threads, so they never reach a fingerprint, an order or a report.
pub(crate) struct Interner<T> {
    items: Arena<Item<T>>,
    index: Ids,
    distinct: AtomicUsize,
    /// The first two values that are unequal and have the same hash.
    collision: OnceLock<(u32, u32)>,
}

struct Item<T> {
    hash: u64,
    value: T,
}

impl<T: Eq> Interner<T> {
    pub(crate) fn new(domain: &Arc<Domain>) -> Self {
        Self {
            items: Arena::new(),
            index: Ids::new(domain),
            distinct: AtomicUsize::new(0),
            collision: OnceLock::new(),
        }
    }

    /// The number of `value`, whose hash is `hash`, and whether it is new. Equality decides, never the hash.
    pub(crate) fn intern(&self, value: T, hash: u64) -> (u32, bool) {
        if let Some(known) = self.find(hash, |known| *known == value) {
            return (known, false);
        }
        let pushed = self.items.push(Item { hash, value });
        let value = self.get(pushed);
        // With two threads it may be the other's number that stands there, and the item just pushed stays behind,
        // unused.
        let collides = Cell::new(None);
        let id = self.index.enter(hash, pushed, |id| {
            let known = self.items.get(id);
            let equal = known.value == *value;
            if !equal && known.hash == hash {
                collides.set(Some(id));
            }
            equal
        });
        let new = id == pushed;
        if let (true, Some(other)) = (new, collides.get()) {
            let _ = self.collision.set((other, id));
        }
        self.distinct.fetch_add(usize::from(new), Ordering::Relaxed);
        (id, new)
    }

    /// Two values that are unequal and have the same hash, if there are any.
    pub(crate) fn collision(&self) -> Option<(&T, &T)> {
        let &(one, other) = self.collision.get()?;
        Some((self.get(one), self.get(other)))
    }

    /// The number of a value with this hash that `is` recognises.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is: impl Fn(&T) -> bool) -> Option<u32> {
        self.index.find(hash, |id| is(self.get(id)))
    }

    /// Every value whose hash has the same first half as `hash`, with its own hash.
    pub(crate) fn near(&self, hash: u64) -> impl Iterator<Item = (u64, &T)> {
        self.index.near(hash).map(|id| {
            let item = self.items.get(id);
            (item.hash, &item.value)
        })
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

    #[test]
    fn unequal_values_with_one_hash_are_remembered() {
        let interner = Interner::new(&Domain::new(1));
        interner.intern("a", 42);
        // The same first half of the hash is nothing unusual.
        interner.intern("b", 43);
        interner.intern("a", 42);
        assert_eq!(interner.collision(), None);
        interner.intern("c", 42);
        interner.intern("d", 43);
        assert_eq!(interner.collision(), Some((&"a", &"c")));
    }
}
