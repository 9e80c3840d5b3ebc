//! From the hash of an item to its number.
//!
//! A slot is one word: the first half of the item's hash, which says where it stands, and its number plus one. Whether an
//! item is the one that is looked for is asked of the item itself, so that equal hashes do no harm.

use std::sync::Arc;

use super::Domain;
use super::flat::FlatTable;
use super::slot::Single;

pub(crate) struct Ids(FlatTable<Single>);

impl Ids {
    pub(crate) fn new(domain: &Arc<Domain>) -> Self {
        Self(FlatTable::small(domain))
    }

    /// The number of the item with this hash that `is` recognises.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let found = self.0.find(hash, |word| matches(word, hash, &is))?;
        Some(number(found))
    }

    /// The numbers of all items whose hash has the same first half as `hash`.
    pub(crate) fn near(&self, hash: u64) -> impl Iterator<Item = u32> + use<> {
        let words = self.0.with_prefix(hash, 32).into_iter();
        words.map(|(word, _)| number(word))
    }

    /// Enters the number of an item that was not there before. If another thread has entered an equal one meanwhile, it
    /// is that one's number that comes back, and stays.
    pub(crate) fn enter(&self, hash: u64, id: u32, is: impl Fn(u32) -> bool) -> u32 {
        let word = hash >> 32 << 32 | u64::from(id + 1);
        let stays = self.0.enter(word, |other| matches(other, hash, &is));
        number(stays)
    }
}

#[inline]
fn matches(word: u64, hash: u64, is: impl Fn(u32) -> bool) -> bool {
    (word ^ hash) >> 32 == 0 && is(number(word))
}

#[inline]
fn number(word: u64) -> u32 {
    word as u32 - 1
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::tables::Arena;
    use crate::trace::scatter;

    #[test]
    fn equal_hashes_are_told_apart_by_their_items() {
        let ids = Ids::new(&Domain::new(1));
        let items = ["a", "b"];
        assert_eq!(ids.enter(7, 0, |id| items[id as usize] == "a"), 0);
        assert_eq!(ids.enter(7, 1, |id| items[id as usize] == "b"), 1);
        assert_eq!(ids.find(7, |id| items[id as usize] == "b"), Some(1));
        assert_eq!(ids.find(7, |id| items[id as usize] == "c"), None);
    }

    #[test]
    fn threads_that_enter_equal_items_agree_on_one_number() {
        let workers = 4;
        let domain = Domain::new(workers);
        let (ids, items) = (Ids::new(&domain), Arena::new());
        let numbers: Vec<Vec<u32>> = thread::scope(|scope| {
            let enter = |worker: usize| {
                let (ids, items, domain) = (&ids, &items, &domain);
                scope.spawn(move || {
                    let number = |n: u64| {
                        domain.quiesce(worker);
                        let is = |id| *items.get(id) == n;
                        // Few distinct hashes, so that most items share theirs with others.
                        let hash = scatter(n % 97);
                        let found = ids.find(hash, is);
                        found.unwrap_or_else(|| ids.enter(hash, items.push(n), is))
                    };
                    let numbers = (0..2_000).map(number).collect();
                    domain.leave(worker);
                    numbers
                })
            };
            let handles: Vec<_> = (0..workers).map(enter).collect();
            handles.into_iter().map(|h| h.join().unwrap()).collect()
        });
        assert!(numbers.iter().all(|other| *other == numbers[0]));
        assert!((0..2_000).all(|n| *items.get(numbers[0][n]) == n as u64));
    }
}
