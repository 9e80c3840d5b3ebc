//! A number for each small number, found out when it is first asked for.

use std::sync::OnceLock;

use crate::weave::{AtomicU32, Ordering};

/// A lock-free list that grows as far as it is asked: 0 where nothing is known.
pub(crate) struct Numbers {
    /// Each twice as long as the one before.
    chunks: [OnceLock<Box<[AtomicU32]>>; CHUNKS],
}

const CHUNKS: usize = 33 - FIRST as usize;
/// How long the first chunk is, as a power of two. Loom tracks every number.
const FIRST: u32 = if cfg!(loom) { 1 } else { 7 };

impl Numbers {
    pub(crate) fn new() -> Self {
        Self {
            chunks: Default::default(),
        }
    }

    /// The number at `index`, which `find` finds out when it is not known. It must never be 0, and always the same.
    #[inline]
    pub(crate) fn get_or(&self, index: u32, find: impl FnOnce() -> u32) -> u32 {
        let place = self.place(index);
        match place.load(Ordering::Acquire) {
            0 => {
                let found = find();
                place.store(found, Ordering::Release);
                found
            }
            known => known,
        }
    }

    #[inline]
    fn place(&self, index: u32) -> &AtomicU32 {
        let (chunk, at) = place(index);
        let length = 1_u64 << (chunk + FIRST);
        let chunk = self.chunks[chunk as usize]
            .get_or_init(|| (0..length).map(|_| AtomicU32::new(0)).collect());
        &chunk[at as usize]
    }
}

/// The chunk that holds an index, and where in it that stands.
#[inline]
fn place(index: u32) -> (u32, u64) {
    let at = u64::from(index) + (1 << FIRST);
    let chunk = at.ilog2() - FIRST;
    (chunk, at - (1 << (chunk + FIRST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_index_has_a_place() {
        let (chunk, at) = place(u32::MAX);
        assert_eq!((chunk as usize, at), (CHUNKS - 1, (1 << FIRST) - 1));
    }

    #[test]
    fn each_number_is_found_out_once() {
        let numbers = Numbers::new();
        let indexes = [0, 1, 127, 128, 129, 383, 384, 1_000_000];
        for index in indexes {
            assert_eq!(numbers.get_or(index, || index + 1), index + 1);
        }
        for index in indexes {
            assert_eq!(numbers.get_or(index, || panic!("it is known")), index + 1);
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::Arc;

    use loom::thread;

    use super::*;
    use crate::tables::Arena;
    use crate::weave::tracked::Tracked;

    /// Two threads find out a number that stands for an item: whoever takes the other's finds the item made.
    #[test]
    fn whoever_gets_a_number_finds_what_it_stands_for() {
        loom::model(|| {
            let shared = Arc::new((Numbers::new(), Arena::new()));
            // The chunk is made: loom does not see how the `OnceLock` of `std` synchronises.
            shared.0.get_or(0, || 1);
            let get = |(numbers, items): &(Numbers, Arena<Tracked>)| {
                let number = numbers.get_or(1, || items.push(Tracked::new(7)) + 1);
                assert_eq!(items.get(number - 1).read(), 7);
            };
            let others = Arc::clone(&shared);
            let thread = thread::spawn(move || get(&others));
            get(&shared);
            thread.join().unwrap();
        });
    }
}
