//! What the tests of all systems share.

use dragnet::Verdict;
use dragnet::catalog::{Entry, Selection, SelectionError};

/// The verdict on a system as it is.
pub(crate) fn default_verdict(entry: &Entry) -> Verdict {
    verdict(entry, |selection| Ok(selection))
}

/// The verdict on a system with the bug `name` and what it needs.
pub(crate) fn bug_verdict(entry: &Entry, name: &str) -> Verdict {
    verdict(entry, |selection| selection.with_bug(name))
}

/// The verdict on a system as `choose` sets it up.
pub(crate) fn verdict(
    entry: &Entry,
    choose: impl for<'e> FnOnce(Selection<'e>) -> Result<Selection<'e>, SelectionError>,
) -> Verdict {
    let selection = choose(Selection::of(entry)).expect("a selection that the entry knows");
    let check = entry
        .check(&selection)
        .expect("faults that the system knows");
    check.run_under(&Default::default())
}
