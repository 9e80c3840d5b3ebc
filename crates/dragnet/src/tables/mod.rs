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
mod slot;
mod slots;

pub(crate) use arena::Arena;
pub(crate) use chunk::Chunk;
pub(crate) use domain::Domain;
pub(crate) use flat::{FlatTable, Upsert};
pub(crate) use id_map::{DenseIds, IdMap, IdSet};
pub(crate) use ids::Ids;
pub(crate) use interner::Interner;
pub(crate) use numbers::Numbers;
pub(crate) use once::OnceSlice;
pub(crate) use slot::{PRESENT, Pair, Single, Slot};

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
