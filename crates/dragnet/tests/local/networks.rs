//! Order, partitions and full links.

use dragnet::nodes::Network;
use dragnet::{crashes, drops, partitions};

use crate::table::{Rows, Send, Text, rows, table};
use crate::verdicts::{bad_happens, bad_never_happens, nothing_impossible_is_made};

#[test]
fn messages_overtake_each_other_only_on_an_unordered_network() {
    // A search that forgets the order of links takes what overtakes for possible; one that has it everywhere misses it.
    const ROWS: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "a"), Send(1, "b");
        1: "idle", "a" => "a";
        1: "idle", "b" => "bad";
    };
    bad_happens(|| table(2, ROWS).network(Network::unordered()));
    bad_never_happens(|| table(2, ROWS).network(Network::ordered()));
    nothing_impossible_is_made(|| table(2, ROWS).network(Network::ordered()));
    // Order is kept on one link, and not between two.
    const TWO_LINKS: Rows = rows! {
        0: "idle", "start" => "idle", Send(2, "a");
        1: "idle", "start" => "idle", Send(2, "b");
        2: "idle", "a" => "a";
        2: "idle", "b" => "bad";
    };
    bad_happens(|| table(3, TWO_LINKS).network(Network::ordered()));
    // What is ignored is out of the way of what comes behind it.
    const IGNORED: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "nothing"), Send(1, "b");
        1: "idle", "b" => "bad";
    };
    bad_happens(|| table(2, IGNORED).network(Network::ordered()));
}

#[test]
fn a_message_from_before_a_crash_is_lost_with_an_ordered_link() {
    // Over UDP it is still under way when node 1 is back.
    const ROWS: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "m");
        1: "idle", "crash" => "disk";
        1: "disk", "recover" => "back";
        1: "back", "m" => "bad";
    };
    bad_happens(|| table(2, ROWS).faults(crashes(1)));
    bad_never_happens(|| {
        table(2, ROWS)
            .network(Network::ordered())
            .faults(crashes(1))
    });
    // What is sent behind the lost one arrives.
    const SENT_LATER: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "m");
        0: "idle", "call go" => "gone", Send(1, "n");
        1: "idle", "m" => "over";
        1: "idle", "crash" => "disk";
        1: "disk", "recover" => "back";
        1: "back", "m" => "over";
        1: "back", "n" => "bad";
    };
    let ordered = || table(2, SENT_LATER).network(Network::ordered());
    bad_happens(|| ordered().calls(0, ["go"]).faults(crashes(1)));
    bad_never_happens(|| ordered().calls(0, ["go"]));
}

/// Node 1 is told that a link of its is back, and by the message from before.
const BACK_FROM_0: Rows = rows! {
    0: "idle", "start" => "idle", Send(1, "m");
    1: "idle", "back from n0" => "back";
    1: "back", "m" => "bad";
};

const BACK_FROM_2: Rows = rows! {
    0: "idle", "start" => "idle", Send(1, "m");
    1: "idle", "back from n2" => "back";
    1: "back", "m" => "bad";
};

#[test]
fn a_partition_loses_what_is_under_way_across_it_and_nothing_else() {
    // The message is from before the cut and arrives after it: never across the cut, but on the same side of it.
    for network in [Network::unordered, Network::ordered] {
        let with = |rows: Rows| {
            let links = move || network().reconnects_with("back");
            move || table(3, rows).network(links()).faults(partitions(1))
        };
        bad_never_happens(with(BACK_FROM_0));
        nothing_impossible_is_made(with(BACK_FROM_0));
        bad_happens(with(BACK_FROM_2));
    }
}

#[test]
fn what_is_sent_across_a_cut_is_lost() {
    // If the first is lost, then by the cut. The second, sent behind it and received before the notice that the link is
    // back, was sent while it was cut.
    const ROWS: Rows = rows! {
        0: "idle", "call one" => "idle", Send(1, "one");
        0: "idle", "call two" => "idle", Send(1, "two");
        1: "idle", "one" => "one";
        1: "idle", "two" => "early";
        1: "early", "back" => "bad";
    };
    let with = |network: Network<Text>| {
        let links = network.reconnects_with("back");
        let cluster = table(2, ROWS).network(links).calls(0, ["one", "two"]);
        cluster.faults(partitions(1))
    };
    bad_never_happens(|| with(Network::ordered()));
    nothing_impossible_is_made(|| with(Network::ordered()));
    // The first may also be overtaken, or lost otherwise.
    bad_happens(|| with(Network::unordered()));
    bad_happens(|| with(Network::ordered()).faults(drops(1)));
}

#[test]
fn what_is_sent_when_a_link_is_back_is_behind_the_notice_on_an_ordered_one() {
    const AFTER: Rows = rows! {
        0: "idle", "back from n1" => "back", Send(1, "m");
        1: "idle", "back from n0" => "back";
        1: "back", "m" => "bad";
    };
    // A message that is sent once the link is back is behind the notice only on an ordered network.
    const BEFORE_THE_NOTICE: Rows = rows! {
        0: "idle", "back from n1" => "back", Send(1, "m");
        1: "idle", "back from n0" => "back";
        1: "idle", "m" => "bad";
    };
    let with = |rows: Rows, network: fn() -> Network<Text>| {
        let links = move || network().reconnects_with("back");
        move || table(2, rows).network(links()).faults(partitions(1))
    };
    bad_happens(with(AFTER, Network::unordered));
    bad_happens(with(AFTER, Network::ordered));
    bad_happens(with(BEFORE_THE_NOTICE, Network::unordered));
    bad_never_happens(with(BEFORE_THE_NOTICE, Network::ordered));
    nothing_impossible_is_made(with(BEFORE_THE_NOTICE, Network::ordered));
    // Without a partition there is nothing to come back from.
    bad_never_happens(|| table(2, AFTER).network(Network::ordered().reconnects_with("back")));
}

#[test]
fn two_notices_of_one_link_take_two_partitions() {
    const ROWS: Rows = rows! {
        1: "idle", "back" => "one";
        1: "one", "back" => "bad";
    };
    for network in [Network::unordered, Network::ordered] {
        let with = |budget| {
            let links = move || network().reconnects_with("back");
            move || table(2, ROWS).network(links()).faults(partitions(budget))
        };
        bad_never_happens(with(1));
        nothing_impossible_is_made(with(1));
        bad_happens(with(2));
    }
}

#[test]
fn what_is_sent_on_a_full_link_is_lost_until_a_receipt_makes_room() {
    const AT_ONCE: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "a"), Send(1, "b");
        1: "idle", "a" => "a";
        1: "a", "b" => "bad";
        1: "idle", "b" => "bad";
    };
    // The second is sent when it may be: then there is room if and only if the first has been received.
    const IN_TIME: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "a");
        0: "idle", "call go" => "gone", Send(1, "b");
        1: "idle", "a" => "a";
        1: "a", "b" => "bad";
    };
    const TOO_EARLY: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "a");
        0: "idle", "call go" => "gone", Send(1, "b");
        1: "idle", "a" => "a";
        1: "idle", "b" => "bad";
    };
    for network in [Network::unordered, Network::ordered] {
        let with = |rows: Rows, room: usize| {
            move || {
                table(2, rows)
                    .network(network().capacity(room))
                    .calls(0, ["go"])
            }
        };
        // No row speaks of the call where both are sent at once.
        bad_never_happens(with(AT_ONCE, 1));
        nothing_impossible_is_made(with(AT_ONCE, 1));
        bad_happens(with(AT_ONCE, 2));
        bad_happens(with(IN_TIME, 1));
        bad_never_happens(with(TOO_EARLY, 1));
        nothing_impossible_is_made(with(TOO_EARLY, 1));
        // A loss makes room as well.
        bad_happens(|| with(TOO_EARLY, 1)().faults(drops(1)));
    }
    let with = |rows: Rows, room: usize| {
        let links = Network::unordered().capacity_of("all", room, |_| true);
        table(2, rows).network(links).calls(0, ["go"])
    };
    bad_happens(|| with(TOO_EARLY, 2));
    bad_never_happens(|| with(TOO_EARLY, 1));
    bad_happens(|| with(IN_TIME, 1));
}

#[test]
fn what_is_sent_at_once_has_all_the_room_that_was_made() {
    // There is room for b when it is sent, and for c behind it only if a has been received, which changes nothing else.
    const ROWS: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "a");
        0: "idle", "call go" => "gone", Send(1, "b"), Send(1, "c");
        1: "idle", "b" => "b";
        1: "b", "c" => "bad";
    };
    for network in [Network::unordered, Network::ordered] {
        let with = |room: usize| {
            move || {
                table(2, ROWS)
                    .network(network().capacity(room))
                    .calls(0, ["go"])
            }
        };
        bad_never_happens(with(1));
        bad_happens(with(2));
    }
}

#[test]
fn room_is_made_on_one_link_and_not_on_another() {
    // Node 0 learns from node 2 that its message there has arrived. That makes no room on the way to node 1.
    const ROWS: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "a"), Send(2, "a");
        2: "idle", "a" => "a", Send(0, "arrived");
        0: "idle", "arrived" => "arrived", Send(1, "b");
        1: "idle", "a" => "a";
        1: "idle", "b" => "bad";
    };
    for network in [Network::unordered, Network::ordered] {
        bad_never_happens(|| table(3, ROWS).network(network().capacity(1)));
    }
    bad_happens(|| table(3, ROWS).network(Network::unordered().capacity(2)));
    bad_never_happens(|| table(3, ROWS).network(Network::ordered().capacity(2)));
}

#[test]
fn a_notice_takes_up_room_until_it_is_received() {
    // Node 0 answers the notice from node 1, which has one from node 0 under way. With room for two, n is lost unless
    // that has been received, and node 1 is then no longer idle.
    const ROWS: Rows = rows! {
        0: "idle", "back" => "back", Send(1, "m"), Send(1, "n");
        1: "idle", "back" => "told";
        1: "idle", "n" => "bad";
    };
    for (room, happens) in [(1, false), (2, false), (3, true)] {
        let cluster = || {
            let links = Network::unordered().capacity(room).reconnects_with("back");
            table(2, ROWS).network(links).faults(partitions(1))
        };
        if happens {
            bad_happens(cluster);
        } else {
            bad_never_happens(cluster);
        }
    }
}
