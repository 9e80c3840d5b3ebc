//! No copy is received twice, and nothing is spent twice.

use dragnet::nodes::Network;
use dragnet::{Check, Faults, crashes, drops, duplicates, restarts};

use crate::table::{Rows, Send, rows, table};
use crate::verdicts::{
    bad_happens, bad_never_happens, holds, nothing_impossible_is_made, violated,
};

#[test]
fn one_copy_is_received_once() {
    const ROWS: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "m");
        1: "idle", "m" => "one";
        1: "one", "m" => "fails";
    };
    holds(|| Check::new(table(2, ROWS)));
    nothing_impossible_is_made(|| table(2, ROWS));
    violated(|| Check::new(table(2, ROWS).faults(duplicates(1))));
    const STATES: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "m");
        1: "idle", "m" => "one";
        1: "one", "m" => "two";
        1: "two", "m" => "bad";
    };
    for network in [Network::unordered, Network::ordered] {
        let with = |faults: Faults| move || table(2, STATES).network(network()).faults(faults);
        nothing_impossible_is_made(with(Faults::none()));
        nothing_impossible_is_made(with(duplicates(1)));
        bad_never_happens(with(duplicates(1)));
        bad_happens(with(duplicates(2)));
    }
}

#[test]
fn two_nodes_do_not_crash_on_a_budget_of_one() {
    // Each crash by itself is within the budget, and so is each of the messages that tell of it.
    const ROWS: Rows = rows! {
        0: "idle", "crash" => "disk 0";
        1: "idle", "crash" => "disk 0";
        0: "disk 0", "recover" => "back", Send(2, "back");
        1: "disk 0", "recover" => "back", Send(2, "back");
        2: "idle", "back" => "one is back";
        2: "one is back", "back" => "bad";
    };
    let with = |budget| move || table(3, ROWS).faults(crashes(budget));
    bad_happens(with(2));
    bad_never_happens(with(1));
    nothing_impossible_is_made(with(1));
    let together = |budget| {
        move || {
            Check::new(with(budget)()).always_compatible(
                "never both back",
                |node| node.state().copied(),
                |one, two| (*one, *two) != ("back", "back"),
            )
        }
    };
    holds(together(1));
    violated(together(2));
    // Nor does a node crash that knows of the other's crash.
    const WARNED: Rows = rows! {
        0: "idle", "crash" => "disk";
        0: "disk", "recover" => "back", Send(1, "back");
        1: "idle", "back" => "warned";
        1: "warned", "crash" => "disk of one who was warned";
        1: "disk of one who was warned", "recover" => "bad";
    };
    bad_happens(|| table(2, WARNED).faults(crashes(2)));
    bad_never_happens(|| table(2, WARNED).faults(crashes(1)));
    nothing_impossible_is_made(|| table(2, WARNED).faults(crashes(1)));
    // Two crashes, but one restart.
    bad_never_happens(|| table(3, ROWS).faults(crashes(2).and(restarts(1))));
    nothing_impossible_is_made(|| table(3, ROWS).faults(crashes(2).and(restarts(1))));
}

#[test]
fn two_links_do_not_lose_on_a_budget_of_one() {
    // On an ordered link the second message arrives first only if the first is lost.
    const ROWS: Rows = rows! {
        0: "idle", "start" => "idle", Send(2, "a"), Send(2, "b");
        1: "idle", "start" => "idle", Send(2, "a"), Send(2, "b");
        2: "idle", "a" => "over";
        2: "idle", "b from n0" => "b0";
        2: "idle", "b from n1" => "b1";
        2: "b0", "a" => "over";
        2: "b1", "a" => "over";
        2: "b0", "b" => "bad";
        2: "b1", "b" => "bad";
    };
    let with = |budget| {
        let links = || Network::ordered();
        move || table(3, ROWS).network(links()).faults(drops(budget))
    };
    bad_never_happens(with(1));
    nothing_impossible_is_made(with(1));
    bad_happens(with(2));
}

#[test]
fn two_messages_are_not_doubled_on_a_budget_of_one() {
    const ROWS: Rows = rows! {
        0: "idle", "start" => "idle", Send(2, "a");
        1: "idle", "start" => "idle", Send(2, "b");
        2: "idle", "a" => "a";
        2: "a", "a" => "aa";
        2: "aa", "b" => "aab";
        2: "aab", "b" => "bad";
    };
    let with = |budget| move || table(3, ROWS).faults(duplicates(budget));
    bad_never_happens(with(1));
    nothing_impossible_is_made(with(1));
    bad_happens(with(2));
    // Nor on two nodes that know nothing of each other, whose news come together at node 0.
    const TOLD: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "m"), Send(2, "m");
        1: "idle", "m" => "one";
        2: "idle", "m" => "one";
        1: "one", "m" => "two", Send(0, "twice");
        2: "one", "m" => "two", Send(0, "twice");
        0: "idle", "twice" => "told";
        0: "told", "twice" => "bad";
    };
    let with = |budget| move || table(3, TOLD).faults(duplicates(budget));
    bad_never_happens(with(1));
    nothing_impossible_is_made(with(1));
    bad_happens(with(2));
}
