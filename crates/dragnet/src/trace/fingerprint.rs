//! Stable hashes of states.
//!
//! `std`'s hashers are keyed at random or may change with a release, so fingerprints are made with XXH3, fed through
//! `Hash` by a hasher that fixes the width and byte order of every integer it is told about. Slices of integers reach a
//! hasher as raw memory, which is why a fingerprint is the same on every 64-bit little-endian machine and promised on no
//! other.

use std::fmt::{self, Display};
use std::hash::{Hash, Hasher};

use xxhash_rust::xxh3::Xxh3;

/// Selects one of many independent hash functions, so that a search can be repeated with fresh luck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key(pub u64);

/// The 64-bit hash of a state.
///
/// ```
/// use dragnet::trace::{Fingerprint, Key};
///
/// let state = ("leader", 7_u32);
/// assert_eq!(Fingerprint::of(&state, Key(1)), Fingerprint::of(&state, Key(1)));
/// assert_ne!(Fingerprint::of(&state, Key(1)), Fingerprint::of(&state, Key(2)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// The stable hash of anything that implements `Hash`.
    pub fn of<T: Hash + ?Sized>(value: &T, key: Key) -> Self {
        let mut hasher = StableHasher::new(key);
        value.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// Reads what [`Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        u64::from_str_radix(text, 16).ok().map(Self)
    }
}

impl Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Feeds `Hash` into XXH3 with every integer in little-endian order and `usize` as 64 bits.
#[derive(Clone)]
pub struct StableHasher(Xxh3);

impl StableHasher {
    /// A hasher of the family that `key` selects.
    pub fn new(key: Key) -> Self {
        Self(Xxh3::with_seed(key.0))
    }

    /// All 128 bits of the hash.
    pub fn finish_128(&self) -> u128 {
        self.0.digest128()
    }
}

macro_rules! little_endian {
    ($($write:ident($int:ty)),* $(,)?) => {
        $(fn $write(&mut self, value: $int) {
            self.0.update(&value.to_le_bytes());
        })*
    };
}

impl Hasher for StableHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    little_endian!(
        write_u8(u8),
        write_u16(u16),
        write_u32(u32),
        write_u64(u64),
        write_u128(u128),
        write_i8(i8),
        write_i16(i16),
        write_i32(i32),
        write_i64(i64),
        write_i128(i128),
    );

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_i64(value as i64);
    }

    fn finish(&self) -> u64 {
        self.0.digest()
    }
}

/// Binds the hash of an element to the slot that holds it, so that slots can be summed in any order.
///
/// The product of two 64-bit numbers folded in half: a bijection it is not, but uniform enough that sums of such values
/// collide no more often than chance.
#[inline]
pub(crate) fn bind(hash: u64, slot: u64) -> u64 {
    fold(hash ^ 0x9e37_79b9_7f4a_7c15, slot | 1)
}

/// The last step of a fingerprint made of a sum.
#[inline]
pub(crate) fn finish(sum: u64) -> u64 {
    scatter(sum)
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// The odd number nearest to 2^64 by the golden ratio: its multiples, scattered, are the generator SplitMix64.
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A bijection of 64-bit words that spreads dense keys evenly.
#[inline]
pub(crate) fn scatter(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_pinned_for_ever() {
        // A change of these values would make every recorded trace unreadable.
        assert_eq!(
            Fingerprint::of(&(1_u32, "paxos", Some(3_usize)), Key(0)).to_string(),
            Fingerprint::parse(PINNED)
                .expect("sixteen hexadecimal digits")
                .to_string(),
        );
    }

    const PINNED: &str = "6e05614826ea4443";

    #[test]
    fn scatter_is_reversible_on_dense_keys() {
        let mut seen: Vec<u64> = (0..10_000).map(scatter).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 10_000);
    }
}
