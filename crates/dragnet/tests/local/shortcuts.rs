//! The corners that the published algorithm cuts (section 4.2).

use dragnet::nodes::Network;
use dragnet::{Check, Cluster, Context, Node, NodeId, Timer};

use crate::table::{Rows, Send, Set, rows, table};
use crate::verdicts::{
    bad_happens, bad_happens_in_a_space_without_end, bad_never_happens, holds,
    nothing_impossible_is_made, violated,
};

#[test]
fn a_state_with_two_histories_receives_what_one_of_them_has_not() {
    // `both` is first reached by m. A history kept for that way alone says that m has been received there, but by way
    // of n it has not.
    const ROWS: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "m"), Send(1, "n");
        1: "idle", "m" => "both";
        1: "idle", "n" => "both";
        1: "both", "m" => "bad";
    };
    bad_happens(|| table(2, ROWS));
    // Without n the state has one history, and m has one copy.
    const ONE_WAY: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "m");
        1: "idle", "m" => "both";
        1: "idle", "n" => "both";
        1: "both", "m" => "bad";
    };
    bad_never_happens(|| table(2, ONE_WAY));
    nothing_impossible_is_made(|| table(2, ONE_WAY));
}

#[test]
fn a_message_that_is_sent_twice_is_received_twice_in_one_history() {
    // With a limit of no duplicates the second m is never sent; with a history of contents it is never received.
    const ROWS: Rows = rows! {
        0: "idle", "call go" => "idle", Send(1, "m");
        1: "idle", "m" => "one";
        1: "one", "m" => "bad";
    };
    bad_happens(|| table(2, ROWS).calls(0, ["go", "go"]));
    bad_never_happens(|| table(2, ROWS).calls(0, ["go"]));
    nothing_impossible_is_made(|| table(2, ROWS).calls(0, ["go"]));
    // Two copies from one step are no duplicates either.
    const AT_ONCE: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "m"), Send(1, "m");
        1: "idle", "m" => "one";
        1: "one", "m" => "bad";
    };
    bad_happens(|| table(2, AT_ONCE));
}

#[test]
fn a_step_that_changes_nothing_but_sends_is_part_of_an_execution() {
    // Node 0 answers and stays as it is. Who follows predecessors without self-references finds no answer in its
    // history, and takes what it leads to for impossible.
    const ONE_ANSWER: Rows = rows! {
        1: "idle", "start" => "idle", Send(0, "ask");
        0: "idle", "ask" => "idle", Send(1, "answer");
        1: "idle", "answer" => "bad";
    };
    bad_happens(|| table(2, ONE_ANSWER));
    // It can be needed more than once, and happens as often as it is asked for.
    const TWO_ANSWERS: Rows = rows! {
        1: "idle", "call ask" => "idle", Send(0, "ask");
        0: "idle", "ask" => "idle", Send(1, "answer");
        1: "idle", "answer" => "answered";
        1: "answered", "answer" => "bad";
    };
    bad_happens(|| table(2, TWO_ANSWERS).calls(1, ["ask", "ask"]));
    bad_never_happens(|| table(2, TWO_ANSWERS).calls(1, ["ask"]));
    nothing_impossible_is_made(|| table(2, TWO_ANSWERS).calls(1, ["ask"]));
}

#[test]
fn a_timer_that_changes_nothing_but_sends_runs_out_as_often_as_it_takes() {
    // The timer sets itself again: the local state after it is the one before it.
    const ROWS: Rows = rows! {
        0: "idle", "start" => "idle", Set("tick");
        0: "idle", "timer tick" => "idle", Send(1, "m"), Set("tick");
        1: "idle", "m" => "one";
        1: "one", "m" => "two";
        1: "two", "m" => "bad";
    };
    bad_happens_in_a_space_without_end(|| table(2, ROWS));
    bad_happens(|| table(2, ROWS).network(Network::ordered().capacity(1)));
    bad_never_happens(|| table(2, ROWS).timer_budget(Timer::new("tick"), 2));
    nothing_impossible_is_made(|| table(2, ROWS).timer_budget(Timer::new("tick"), 2));
}

#[test]
fn what_was_rejected_is_verified_again_when_another_way_to_it_comes_up() {
    // `bad` is met at once by receiving the only m twice, which is rejected. What makes it possible comes much later,
    // and brings no new local state: the last is that of node 0 or 2 before `late` is on its way.
    const ROWS: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "m"), Send(2, "a");
        1: "idle", "m" => "one";
        1: "one", "m" => "bad";
        2: "idle", "a" => "a", Send(0, "b");
        0: "idle", "b" => "b", Send(2, "c");
        2: "a", "c" => "c", Send(0, "d");
        0: "b", "d" => "d", Send(2, "e");
        2: "c", "e" => "e", Send(1, "late");
        1: "one", "late" => "bad";
    };
    bad_happens(|| table(3, ROWS));
    // Two local states each of which can happen: only together they are bad. That node 1 is `over` while node 2 is
    // `early` is met through the m that node 1 receives twice; what makes it possible is the same late message, which
    // node 0 sends whether or not node 2 has moved.
    const PAIR: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "m"), Send(3, "a");
        1: "idle", "m" => "one";
        1: "one", "m" => "over";
        3: "idle", "a" => "a", Send(0, "b");
        0: "idle", "b" => "b", Send(3, "c");
        3: "a", "c" => "c", Send(1, "late");
        1: "one", "late" => "over";
        2: "idle", "call go" => "early";
    };
    let apart = || {
        Check::new(table(4, PAIR).calls(2, ["go"])).always_compatible(
            "never over and early",
            |node| node.state().copied(),
            |one, two| (*one, *two) != ("over", "early"),
        )
    };
    violated(apart);
    violated(|| {
        Check::new(table(4, PAIR).calls(2, ["go"])).always("never over and early", |all| {
            (all.node(1), all.node(2)) != (Some(&"over"), Some(&"early"))
        })
    });
    // Where the late message never comes, it stays rejected.
    const NEVER: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "m"), Send(2, "a");
        1: "idle", "m" => "one";
        1: "one", "m" => "bad";
        2: "idle", "a" => "a", Send(0, "b");
        1: "one", "late" => "bad";
    };
    bad_never_happens(|| table(3, NEVER));
    nothing_impossible_is_made(|| table(3, NEVER));
}

/// Node 1 fails when it is to use what it has not been granted.
const USES_TOO_EARLY: Rows = rows! {
    0: "idle", "start" => "idle", Send(1, "grant"), Send(1, "use");
    1: "idle", "use" => "fails";
    1: "idle", "grant" => "granted";
    1: "granted", "use" => "used";
};

/// The same, but only what is granted is used.
const USES_IN_TIME: Rows = rows! {
    0: "idle", "start" => "idle", Send(1, "grant");
    1: "idle", "grant" => "granted", Send(0, "thanks");
    0: "idle", "thanks" => "thanked", Send(1, "use");
    1: "idle", "use" => "fails";
    1: "granted", "use" => "used";
};

#[test]
fn an_assertion_that_fails_is_reported_even_where_others_fail_on_what_cannot_arrive() {
    // Both systems have `use` meet node 1 in a state that asserts. Dropping the states in which assertions fail loses
    // the failure of the one, reporting all of them accuses the other.
    violated(|| Check::new(table(2, USES_TOO_EARLY)));
    holds(|| Check::new(table(2, USES_IN_TIME)));
    // The late failure of one that fails on impossible inputs as well.
    const BOTH: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "grant");
        1: "idle", "grant" => "granted", Send(0, "thanks");
        0: "idle", "thanks" => "thanked", Send(1, "use");
        1: "idle", "use" => "fails";
        1: "granted", "use" => "used", Send(0, "done");
        0: "thanked", "done" => "fails";
    };
    violated(|| Check::new(table(2, BOTH)));
}

/// Node 0 asks node 1 for a number and takes away one for each answer that it gets.
struct Asker {
    answers: usize,
}

impl Node for Asker {
    type State = Option<u8>;
    type Msg = u8;

    fn on_start(&self, cx: &mut Context<u8>) -> Option<u8> {
        if cx.me() == NodeId(0) {
            cx.send(1, 0);
        }
        None
    }

    fn on_message(&self, number: &mut Option<u8>, from: NodeId, msg: u8, cx: &mut Context<u8>) {
        match msg {
            0 => {
                *number = Some(7);
                cx.send(from, 1);
            }
            1 => {
                *number = Some(1);
                for _ in 0..self.answers {
                    cx.send(0, 2);
                }
            }
            // No real execution comes here without a number, or more often than there are answers.
            _ => *number = number.unwrap().checked_sub(1),
        }
    }
}

#[test]
fn an_unwrap_that_no_execution_fails_on_is_no_violation() {
    // The answer also meets a node that has no number yet, and again one that has had it.
    let asker = |answers| move || Check::new(Cluster::new(2, move |_| Asker { answers }));
    holds(asker(2));
    violated(asker(3));
}
