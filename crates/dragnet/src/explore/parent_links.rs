//! Links from visited states to their parents, which breadth first rebuilds counterexamples from.
//!
//! A link is a number that the search gives to a state and can lower by merging another in. A search that keeps links
//! needs all of them: a set that evicts states has none.

use super::visited::Visited;
use crate::system::{Failure, System};
use crate::tables::Upsert;
use crate::trace::Fingerprint;

/// A set of visited states, each with a link.
pub(crate) trait ParentLinks<S: System>: Visited<S> {
    /// Adds a state with `link`, or merges `link` into the one that it has. Fails where the state cannot be compared,
    /// because its `Eq` panics.
    fn link(
        &self,
        state: &S::State,
        fingerprint: Fingerprint,
        link: u64,
        merge: impl Fn(u64, u64) -> u64,
    ) -> Result<Upsert, Failure>;

    /// The same without waiting for other threads: `None` when it would have to, and nothing has happened.
    #[inline]
    fn try_link(
        &self,
        state: &S::State,
        fingerprint: Fingerprint,
        link: u64,
        merge: impl Fn(u64, u64) -> u64,
    ) -> Result<Option<Upsert>, Failure> {
        self.link(state, fingerprint, link, merge).map(Some)
    }

    /// Every visited fingerprint with these top bits (at least 40), with its link.
    fn with_prefix(&self, prefix: u64, bits: u32) -> Vec<(Fingerprint, u64)>;
}
