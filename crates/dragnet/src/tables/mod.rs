//! The floor that every room stands on: concurrent tables that only grow.

mod flat;
mod interner;

pub(crate) use flat::{FlatTable, Upsert};
pub(crate) use interner::Interner;
