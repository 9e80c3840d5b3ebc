//! omnipaxos 0.2.4, in the search that finds a decided index going back in 0.2.3.

use dragnet::Verdict;
use dragnet::catalog::Selection;

/// The verdict on the log with so many elections.
fn verdict(elections: &str) -> Verdict {
    let entry = dragnet_wild::omnipaxos::entry();
    let selection = Selection::of(&entry).with("elections", elections);
    let check = entry.check(&selection.expect("the entry knows elections"));
    let check = check.expect("these go together");
    check.run_under(&Default::default())
}

#[test]
fn a_late_promise_takes_no_decided_index_back() {
    let verdict = verdict("2");
    verdict.assert_holds();
    assert_eq!(verdict.states(), 1_459_677);
}

#[test]
fn without_an_election_nothing_is_decided() {
    let verdict = verdict("0");
    let violation = verdict.violation().expect("there is no leader");
    assert_eq!(violation.property, "an entry is decided everywhere");
}
