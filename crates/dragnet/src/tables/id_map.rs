//! Maps and sets of ids and fingerprints: numbers that nobody chooses to collide.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::trace::{Fingerprint, scatter};

pub(crate) type IdMap<V> = HashMap<u32, V, BuildHasherDefault<IdHasher>>;
pub(crate) type IdSet = HashSet<u32, BuildHasherDefault<IdHasher>>;

pub(crate) type FingerprintMap<V> = HashMap<Fingerprint, V, BuildHasherDefault<FingerprintHasher>>;

/// The hash of a fingerprint, which is one already.
#[derive(Default)]
pub(crate) struct FingerprintHasher(u64);

impl Hasher for FingerprintHasher {
    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a fingerprint is one word");
    }

    fn finish(&self) -> u64 {
        // The lowest bits may have chosen which fingerprints there are.
        self.0.rotate_left(32)
    }
}

/// Hashes one number.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write_u32(&mut self, id: u32) {
        self.0 = scatter(u64::from(id));
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("ids are numbers of 32 bits");
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A set of ids of which most of those below the largest are in it.
#[derive(Default)]
pub(crate) struct DenseIds {
    words: Vec<u64>,
}

impl DenseIds {
    /// False when it was there.
    pub(crate) fn insert(&mut self, id: u32) -> bool {
        let (word, bit) = (id as usize / 64, 1 << (id % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    pub(crate) fn contains(&self, id: u32) -> bool {
        let word = self.words.get(id as usize / 64);
        word.is_some_and(|word| word >> (id % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once() {
        let mut ids = DenseIds::default();
        for id in [0, 63, 64, 1_000] {
            assert!(!ids.contains(id));
            assert!(ids.insert(id));
            assert!(!ids.insert(id));
            assert!(ids.contains(id));
        }
        assert!(!ids.contains(65) && !ids.contains(1_000_000));
    }
}
