//! Unequal values with one hash: the sign of a `Hash` that leaves out fields that `Eq` compares.

use std::fmt::{self, Debug, Display};

use crate::trace::{debug, short_type_name, shorten_apart};

/// Two unequal values of one type with equal 64-bit hashes.
///
/// `Hash` may be coarser than `Eq` by its contract, and a hash table stands that. A search that recognises states by their
/// fingerprints does not: it takes unequal states for one and misses what follows from the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoarseHash {
    /// The type whose `Hash` it is.
    pub(crate) type_name: String,
    one: String,
    other: String,
}

impl CoarseHash {
    /// Two values that are unequal and have the same hash.
    pub(crate) fn of<T: Debug>(one: &T, other: &T) -> Self {
        let (one, other) = shorten_apart(&debug(one), &debug(other));
        Self {
            type_name: short_type_name::<T>(),
            one,
            other,
        }
    }
}

impl Display for CoarseHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            type_name,
            one,
            other,
        } = self;
        writeln!(
            f,
            "unequal values of {type_name} have the same hash: its `Hash` leaves out fields that `Eq` compares, and states \
             were taken for others"
        )?;
        writeln!(f, "  {:<8} {one}", "one")?;
        writeln!(f, "  {:<8} {other}", "other")?;
        write!(
            f,
            "  {:<8} hash every field that `Eq` compares, or compare whole states (`exact`)",
            "cure"
        )
    }
}
