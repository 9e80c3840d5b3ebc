//! The floor that every room stands on: concurrent tables that only grow.

mod arena;
mod array;
mod blocks;
mod chunk;
mod domain;
mod flat;
mod id_map;
mod ids;
mod interner;
mod numbers;
mod once;
mod pages;
mod sketch;
mod slot;
mod slots;

pub(crate) use arena::Arena;
pub(crate) use chunk::Chunk;
pub(crate) use domain::Domain;
pub(crate) use flat::{FlatTable, Upsert};
pub(crate) use id_map::{DenseIds, FingerprintMap, IdMap, IdSet};
pub(crate) use ids::Ids;
pub(crate) use interner::Interner;
pub(crate) use numbers::Numbers;
pub(crate) use once::OnceSlice;
pub(crate) use sketch::Sketch;
pub(crate) use slot::{PRESENT, Pair, Single, Slot};

use crate::panics;

/// The number of the next item of a list with so many. Numbers have 32 bits, and the greatest stands for none: one item more
/// is a [limit](panics::limit).
#[inline]
pub(crate) fn next_number(len: usize, what: &str) -> u32 {
    number_below(len, u32::MAX, what)
}

/// `number` in 32 bits, if it is below `end`; otherwise there are too many of `what`.
#[inline]
pub(crate) fn number_below(number: usize, end: u32, what: &str) -> u32 {
    match u32::try_from(number) {
        Ok(number) if number < end => number,
        _ => too_many(end, what),
    }
}

#[cold]
fn too_many(most: u32, what: &str) -> ! {
    panics::limit(format!("the search has more than {most} {what}"))
}

/// Brings what is at `place` into the cache, for an access that follows shortly.
#[inline]
pub(crate) fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect on memory, and SSE is part of x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch(std::ptr::from_ref(place).cast::<i8>(), _MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::FailureKind;

    #[test]
    fn a_number_beyond_the_last_is_a_limit() {
        let last = u32::MAX - 1;
        assert_eq!(next_number(last as usize, "items"), last);
        for number in [u32::MAX as usize, 1 << 32, usize::MAX] {
            let failure = panics::catch(|| next_number(number, "items")).unwrap_err();
            assert_eq!(failure.kind(), FailureKind::Limit);
            assert_eq!(
                failure.message(),
                "the search has more than 4294967295 items"
            );
        }
    }
}
