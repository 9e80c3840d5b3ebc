//! The floor that every room stands on: concurrent tables that only grow.

mod domain;
mod flat;
mod interner;
mod slots;

pub(crate) use domain::Domain;
pub(crate) use flat::{FlatTable, Upsert};
pub(crate) use interner::Interner;
