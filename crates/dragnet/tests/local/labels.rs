//! What the coarse level must know of the past, and must not.

use std::time::Duration;

use dragnet::engine::{Local, Pruning};
use dragnet::nodes::Network;
use dragnet::{Check, Cluster, Context, Faults, Node, NodeId, Timer, crashes, restarts};

use crate::table::{Cancel, Rows, Send, Set, Text, rows, table};
use crate::verdicts::{
    bad_happens, bad_happens_in_a_space_without_end, bad_never_happens, holds_at, never_bad,
    nothing_impossible_is_made, violated,
};

#[test]
fn a_content_that_is_sent_with_two_pasts_meets_whatever_either_lets_it() {
    // m is first sent after node 1's call, and then also without it, after two calls of node 2 and so later. Node 1 is
    // bad if it receives m before its call: only the second past lets it.
    const ROWS: Rows = rows! {
        1: "idle", "call go" => "called", Send(0, "x");
        2: "idle", "call first" => "first";
        2: "first", "call second" => "second", Send(0, "y");
        0: "idle", "x" => "x", Send(1, "m");
        0: "idle", "y" => "y", Send(1, "m");
        1: "idle", "m" => "bad";
    };
    bad_happens(|| {
        table(3, ROWS)
            .calls(1, ["go"])
            .calls(2, ["first", "second"])
    });
    bad_never_happens(|| table(3, ROWS).calls(1, ["go"]).calls(2, ["first"]));
    nothing_impossible_is_made(|| table(3, ROWS).calls(1, ["go"]).calls(2, ["first"]));
}

#[test]
fn a_pair_that_was_refused_is_offered_again_when_the_past_of_the_message_weakens() {
    // m is first sent after the calls of nodes 1 and 2; after a detour also after that of node 2 alone.
    const ROWS: Rows = rows! {
        1: "idle", "call go" => "called", Send(0, "x");
        2: "idle", "call go" => "called", Send(0, "y"), Send(3, "a");
        0: "idle", "x" => "x";
        0: "x", "y" => "xy", Send(1, "m");
        3: "idle", "a" => "a", Send(2, "b");
        2: "called", "b" => "b", Send(3, "c");
        3: "a", "c" => "c", Send(0, "z");
        0: "idle", "z" => "z", Send(1, "m");
        1: "idle", "m" => "bad";
    };
    bad_happens(|| table(4, ROWS).calls(1, ["go"]).calls(2, ["go"]));
    bad_never_happens(|| table(4, ROWS).calls(1, ["go"]));
}

#[test]
fn what_follows_from_a_state_follows_again_when_a_weaker_past_of_it_comes_up() {
    // Node 0 is `ready` first because of node 1's call, and after a detour without it. What it does there has no news of
    // its own: m is the same, and so is the state after it.
    const ROWS: Rows = rows! {
        1: "idle", "call go" => "called", Send(0, "x");
        2: "idle", "call go" => "called", Send(3, "a");
        3: "idle", "a" => "a", Send(2, "b");
        2: "called", "b" => "b", Send(0, "x2");
        0: "idle", "x" => "ready", Set("now");
        0: "idle", "x2" => "ready", Set("now");
        0: "ready", "timer now" => "done", Send(1, "m");
        1: "idle", "m" => "bad";
    };
    bad_happens(|| table(4, ROWS).calls(1, ["go"]).calls(2, ["go"]));
    bad_never_happens(|| table(4, ROWS).calls(1, ["go"]));
    nothing_impossible_is_made(|| table(4, ROWS).calls(1, ["go"]));
    // The same where all of the weaker past is in the stronger: to correct the label of the state is not enough.
    const LESS: Rows = rows! {
        1: "idle", "call go" => "called", Send(0, "x");
        2: "idle", "call go" => "called", Send(0, "y"), Send(3, "a");
        0: "idle", "x" => "x";
        0: "x", "y" => "ready", Set("now");
        3: "idle", "a" => "a", Send(2, "b");
        2: "called", "b" => "b", Send(3, "c");
        3: "a", "c" => "c", Send(2, "d");
        2: "b", "d" => "d", Send(0, "z");
        0: "idle", "z" => "ready", Set("now");
        0: "ready", "timer now" => "done", Send(1, "m");
        1: "idle", "m" => "bad";
    };
    bad_happens(|| table(4, LESS).calls(1, ["go"]).calls(2, ["go"]));
    bad_never_happens(|| table(4, LESS).calls(1, ["go"]));
}

#[test]
fn a_state_is_offered_what_was_refused_when_more_has_happened_to_its_node() {
    // After its timer node 1 is as it was before. The answer depends on the timer, so it is refused by node 1's state as
    // it was first reached, and must not be by the same state after the timer.
    const ROWS: Rows = rows! {
        1: "idle", "start" => "idle", Set("tick");
        1: "idle", "timer tick" => "idle", Set("tick"), Send(0, "ask");
        0: "idle", "ask" => "asked", Send(1, "answer");
        1: "idle", "answer" => "bad";
    };
    bad_happens_in_a_space_without_end(|| table(2, ROWS));
    bad_happens(|| table(2, ROWS).network(Network::unordered().capacity(1)));
    bad_never_happens(|| table(2, ROWS).timer_budget(Timer::new("tick"), 0));
}

#[test]
fn two_pasts_of_one_content_are_not_taken_for_one() {
    // m follows from either timer of node 1, of which only one runs out. With the union of both pasts m would wait for
    // both.
    const ROWS: Rows = rows! {
        1: "idle", "start" => "idle", Set("p"), Set("q");
        1: "idle", "timer p" => "p", Cancel("q"), Send(0, "x");
        1: "idle", "timer q" => "q", Cancel("p"), Send(0, "y");
        0: "idle", "x" => "heard", Send(1, "m");
        0: "idle", "y" => "heard", Send(1, "m");
        1: "p", "m" => "bad";
    };
    bad_happens(|| table(2, ROWS));
    // Which of the two it was is in the state of node 0, and m carries it.
    const TOLD: Rows = rows! {
        1: "idle", "start" => "idle", Set("p"), Set("q");
        1: "idle", "timer p" => "p", Cancel("q"), Send(0, "x");
        1: "idle", "timer q" => "q", Cancel("p"), Send(0, "y");
        0: "idle", "y" => "heard", Send(1, "m");
        1: "p", "m" => "bad";
    };
    bad_never_happens(|| table(2, TOLD));
    nothing_impossible_is_made(|| table(2, TOLD));
}

#[test]
fn a_crash_does_not_undo_what_has_happened() {
    // m depends on the call that node 1 got before it crashed. A label that the crash clears would refuse m for ever.
    const ROWS: Rows = rows! {
        1: "idle", "call go" => "called", Send(0, "x");
        1: "called", "crash" => "disk";
        1: "disk", "recover" => "back";
        0: "idle", "x" => "x", Send(1, "m");
        1: "back", "m" => "bad";
    };
    let with = |faults: Faults| move || table(2, ROWS).calls(1, ["go"]).faults(faults);
    bad_happens(with(crashes(1)));
    bad_never_happens(with(crashes(1).and(restarts(0))));
    bad_never_happens(with(Faults::none()));
    nothing_impossible_is_made(with(crashes(1).and(restarts(0))));
}

#[test]
fn a_message_from_before_a_crash_is_received_after_a_second_crash() {
    // The first crash and restart are in the past of m, the second are not.
    const ROWS: Rows = rows! {
        1: "idle", "crash" => "disk";
        1: "disk", "recover" => "back", Send(0, "x");
        1: "back", "crash" => "disk again";
        1: "disk again", "recover" => "back again";
        0: "idle", "x" => "x", Send(1, "m");
        1: "back again", "m" => "bad";
    };
    let with = |faults: Faults| move || table(2, ROWS).faults(faults);
    bad_happens(with(crashes(2)));
    bad_never_happens(with(crashes(1)));
    nothing_impossible_is_made(with(crashes(1)));
}

#[test]
fn a_timer_without_a_budget_is_not_counted_for_ever() {
    // If each time that it runs out were an event of its own, labels would grow without end, and so would the search.
    const ROWS: Rows = rows! {
        0: "idle", "start" => "even", Set("tick");
        0: "even", "timer tick" => "odd", Set("tick");
        0: "odd", "timer tick" => "even", Set("tick");
        0: "even", "call say" => "said", Send(1, "even"), Cancel("tick");
        0: "odd", "call say" => "said", Send(1, "odd"), Cancel("tick");
        1: "idle", "even" => "even";
        1: "idle", "odd" => "odd";
        1: "even", "odd" => "bad";
        1: "odd", "even" => "bad";
    };
    bad_never_happens(|| table(2, ROWS).calls(0, ["say"]));
    nothing_impossible_is_made(|| table(2, ROWS).calls(0, ["say"]));
    const TWICE: Rows = rows! {
        0: "idle", "start" => "even", Set("tick");
        0: "even", "timer tick" => "odd", Set("tick");
        0: "odd", "timer tick" => "even", Set("tick");
        0: "even", "call say" => "even", Send(1, "even");
        0: "odd", "call say" => "odd", Send(1, "odd");
        1: "idle", "even" => "even";
        1: "idle", "odd" => "odd";
        1: "even", "odd" => "bad";
        1: "odd", "even" => "bad";
    };
    bad_happens(|| table(2, TWICE).calls(0, ["say", "say"]));
}

/// Counts what it receives; node 0 gets what it is told to send.
struct Counter {
    copies: usize,
}

impl Node for Counter {
    type State = u64;
    type Msg = Text;

    fn on_start(&self, cx: &mut Context<Text>) -> u64 {
        if cx.me() == NodeId(0) {
            for _ in 0..self.copies {
                cx.send(1, "m");
            }
        }
        0
    }

    fn on_message(&self, count: &mut u64, _from: NodeId, _msg: Text, _cx: &mut Context<Text>) {
        *count += 1;
    }
}

#[test]
fn what_is_sent_on_a_timer_for_ever_does_not_keep_a_search_of_local_states_from_its_end() {
    // There is no end to what can be in flight, so only the levels that look at no network come to an end.
    const ROWS: Rows = rows! {
        0: "idle", "start" => "idle", Set("tick");
        0: "idle", "timer tick" => "idle", Set("tick"), Send(1, "ping");
        1: "idle", "ping" => "idle", Send(0, "pong");
        0: "idle", "pong" => "heard";
    };
    for level in [Pruning::Plain, Pruning::Coarse, Pruning::Adaptive] {
        let check = never_bad(table(2, ROWS))
            .reachable_for_some("a pong is heard", |node| node.state() == Some(&"heard"));
        let check = check.engine(Local::new().pruning(level));
        check.time(Duration::from_secs(20)).run().assert_holds();
    }
}

#[test]
fn what_breeds_without_end_at_other_levels_ends_at_the_refined_one() {
    // Plain and coarse have one copy counted for ever, so they are left out. The adaptive level must notice that.
    let counted = |copies| {
        move || {
            Check::new(Cluster::new(2, move |_| Counter { copies }))
                .always_for_each("at most two", |node| {
                    node.state().is_none_or(|&count| count <= 2)
                })
        }
    };
    holds_at(&[Pruning::Refined, Pruning::Adaptive], counted(2));
    violated(counted(3));
}
