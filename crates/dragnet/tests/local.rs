//! The local engine says what breadth first says: systems in which a shortcut would change the verdict.
//!
//! Local model checking as it was published cuts corners that it can afford as a hunter of bugs (*Model Checking a
//! Networked System Without the Network*, section 4.2), and what prunes impossible histories must not prune possible
//! ones. Here is the smallest system that we know for each such corner. Most of them are tables: a node in a state, what
//! happens to it, the state after it, and what it does. What no row speaks of changes nothing.
//!
//! Each system is checked at every level of pruning, by one thread and by two, and as three kinds of property. All must
//! come to the verdict of breadth first, with an execution that can be replayed, the same whatever the threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use dragnet::{
    Check, Cluster, Context, Engine, Failure, Faults, Network, Node, NodeId, Outcome, Pruning,
    System, Target, Timer, Verdict, ViolationKind, crashes, drops, duplicates, partitions,
    restarts,
};

// ---- Systems written as tables -----------------------------------------------------------------------------------

/// A node that does what the rows of a table say. It begins `idle`.
struct Table(Rows);

type Rows = &'static [Row];
type Text = &'static str;

/// On which node, in which state, what happens, in which state it then is, and what it does.
///
/// What happens is `start`, `call go`, `timer tick`, `crash` (the state is then what is on disk), `recover`, or a message,
/// with or without its sender: `m`, `m from n0`. A node whose next state is `fails` fails an assertion.
struct Row(usize, Text, Text, Text, &'static [Act]);

macro_rules! rows {
    ($($node:literal: $state:literal, $event:literal => $next:literal $(, $act:expr)*;)*) => {
        &[$(Row($node, $state, $event, $next, &[$($act),*])),*]
    };
}

#[derive(Clone, Copy)]
enum Act {
    Send(usize, Text),
    Set(Text),
    Cancel(Text),
}

use Act::{Cancel, Send, Set};

impl Table {
    fn row(&self, me: NodeId, state: Text, event: &str) -> Option<&'static Row> {
        let mut rows = self.0.iter();
        rows.find(|row| (row.0, row.1, row.2) == (me.0, state, event))
    }

    /// False when no row speaks of it.
    fn happens(&self, state: &mut Text, event: &str, cx: &mut Context<Text>) -> bool {
        let Some(&Row(_, _, _, next, acts)) = self.row(cx.me(), state, event) else {
            return false;
        };
        cx.assert(next != "fails", format!("{event} in {state}"));
        *state = next;
        for &act in acts {
            match act {
                Send(to, msg) => cx.send(to, msg),
                Set(timer) => cx.set_timer(Timer::new(timer), Duration::ZERO),
                Cancel(timer) => cx.cancel_timer(Timer::new(timer)),
            }
        }
        true
    }
}

impl Node for Table {
    type State = Text;
    type Msg = Text;

    fn on_start(&self, cx: &mut Context<Text>) -> Text {
        let mut state = "idle";
        self.happens(&mut state, "start", cx);
        state
    }

    fn on_message(&self, state: &mut Text, from: NodeId, msg: Text, cx: &mut Context<Text>) {
        if !self.happens(state, msg, cx) {
            self.happens(state, &format!("{msg} from {from}"), cx);
        }
    }

    fn on_timer(&self, state: &mut Text, timer: Timer, cx: &mut Context<Text>) {
        self.happens(state, &format!("timer {timer}"), cx);
    }

    fn on_call(&self, state: &mut Text, call: Text, cx: &mut Context<Text>) {
        self.happens(state, &format!("call {call}"), cx);
    }

    fn durable(&self, state: &Text) -> Option<Text> {
        // Which node it is, a crash need not know: the states that survive have names of their own.
        let mut rows = self.0.iter();
        let row = rows.find(|row| row.1 == *state && row.2 == "crash")?;
        Some(row.3)
    }

    fn on_recover(&self, state: &mut Text, cx: &mut Context<Text>) {
        self.happens(state, "recover", cx);
    }
}

fn table(nodes: usize, rows: Rows) -> Cluster<Table> {
    Cluster::new(nodes, |_| Table(rows))
}

/// Every engine finds that a node can be `bad`: whether a property speaks of each node, of all nodes or of a pair, and
/// whether it forbids it or asks for it.
fn bad_happens(cluster: impl Fn() -> Cluster<Table>) {
    bad_happens_in_a_space_without_end(&cluster);
    holds(|| sometimes_bad(cluster()));
}

/// The same for a system that breadth first never comes to the end of, so that it never says that something holds.
fn bad_happens_in_a_space_without_end(cluster: impl Fn() -> Cluster<Table>) {
    violated(|| never_bad(cluster()));
    violated(|| never_bad_in_whole(cluster()));
    violated(|| never_bad_beside_another(cluster()));
}

/// Every engine finds that no node is ever `bad`.
fn bad_never_happens(cluster: impl Fn() -> Cluster<Table>) {
    holds(|| never_bad(cluster()));
    holds(|| never_bad_in_whole(cluster()));
    holds(|| never_bad_beside_another(cluster()));
    violated(|| sometimes_bad(cluster()));
}

fn never_bad(cluster: Cluster<Table>) -> Check<Cluster<Table>> {
    Check::new(cluster).always_for_each("never bad", |node| node.state() != Some(&"bad"))
}

fn never_bad_in_whole(cluster: Cluster<Table>) -> Check<Cluster<Table>> {
    Check::new(cluster).always("never bad", |all| all.nodes().all(|state| *state != "bad"))
}

fn never_bad_beside_another(cluster: Cluster<Table>) -> Check<Cluster<Table>> {
    Check::new(cluster).always_compatible(
        "never bad beside another",
        |node| Some(node.state().copied() == Some("bad")),
        |one, two| !(one | two),
    )
}

fn sometimes_bad(cluster: Cluster<Table>) -> Check<Cluster<Table>> {
    Check::new(cluster).reachable_for_some("sometimes bad", |node| node.state() == Some(&"bad"))
}

// ---- Verdicts ----------------------------------------------------------------------------------------------------

fn violated<N: Node>(check: impl Fn() -> Check<Cluster<N>>) {
    violated_at(&Pruning::ALL, check);
}

fn violated_at<N: Node>(levels: &[Pruning], check: impl Fn() -> Check<Cluster<N>>) {
    let breadth = at_every_level(levels, check);
    assert!(
        breadth.violation().is_some(),
        "expected a violation: {breadth}"
    );
}

fn holds<N: Node>(check: impl Fn() -> Check<Cluster<N>>) {
    holds_at(&Pruning::ALL, check);
}

fn holds_at<N: Node>(levels: &[Pruning], check: impl Fn() -> Check<Cluster<N>>) {
    at_every_level(levels, check).assert_holds();
}

/// Checks that the local engine says what breadth first says, which it returns.
fn at_every_level<N: Node>(levels: &[Pruning], check: impl Fn() -> Check<Cluster<N>>) -> Verdict {
    // Every system here takes milliseconds. What does not is at fault, and is not to take the machine with it.
    let check = || {
        let check = check().named("system");
        check.time(Duration::from_secs(20)).memory(2 << 30)
    };
    let breadth = check().engine(Engine::Breadth).threads(1).run();
    for &level in levels {
        let local = |threads| {
            let check = check().engine(Engine::Local).pruning(level);
            check.threads(threads).run()
        };
        let (one, two) = (local(1), local(2));
        for verdict in [&one, &two] {
            match (&breadth.outcome, &verdict.outcome) {
                (Outcome::Holds, Outcome::Holds) => {}
                (Outcome::Violated(expected), Outcome::Violated(found)) => {
                    assert_eq!(expected.property, found.property, "{level}");
                    assert_eq!(expected.kind, found.kind, "{level}");
                    let trace = found.counterexample.as_ref().map(|found| &found.trace);
                    match trace {
                        Some(trace) => assert!(check().replay(trace).is_ok(), "{level}: {trace:?}"),
                        None => assert_eq!(found.kind, ViolationKind::Unreached, "{level}"),
                    }
                }
                _ => panic!("{level} is not of one mind with breadth first\n{breadth}\n{verdict}"),
            }
        }
        assert_eq!(trace_of(&one), trace_of(&two), "{level} depends on threads");
    }
    breadth
}

fn trace_of(verdict: &Verdict) -> Option<&dragnet::Trace> {
    verdict.counterexample().map(|found| &found.trace)
}

/// At the refined level nothing is made that cannot happen: it knows the local states that breadth first comes by.
fn nothing_impossible_is_made(cluster: impl Fn() -> Cluster<Table>) {
    let breadth = never_bad(cluster()).run();
    breadth.assert_holds();
    let refined = never_bad(cluster())
        .engine(Engine::Local)
        .pruning(Pruning::Refined)
        .run();
    let possible = breadth.statistics.nodes.map(|nodes| nodes.local_states);
    let made = refined.statistics.local.map(|local| local.local_states);
    assert_eq!(
        made, possible,
        "local states that cannot happen, or too few"
    );
}

// ---- The published shortcuts -------------------------------------------------------------------------------------

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
    // Two senders of the same content to a third are no duplicates either, nor are two copies from one step.
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

// ---- Labels ------------------------------------------------------------------------------------------------------

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
        let check = check.engine(Engine::Local).pruning(level);
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

// ---- Copies and budgets ------------------------------------------------------------------------------------------

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

// ---- Networks ----------------------------------------------------------------------------------------------------

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
        1: "idle", "crash" => "disk";
        1: "disk", "recover" => "back";
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
fn what_is_sent_across_a_cut_is_lost_and_after_it_arrives() {
    // Node 2 is cut off from node 0 alone: it knows that by a message from node 1, which got one from node 0.
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
        bad_happens(with(AT_ONCE, 2));
        bad_happens(with(IN_TIME, 1));
        bad_never_happens(with(TOO_EARLY, 1));
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
fn a_notice_takes_no_room_from_what_is_said_after_it() {
    // Whatever notices and full links do to each other, all engines are of one mind on it.
    const ROWS: Rows = rows! {
        0: "idle", "back" => "back", Send(1, "m"), Send(1, "n");
        1: "idle", "m" => "m";
        1: "idle", "n" => "bad";
        1: "m", "n" => "bad";
    };
    for network in [Network::unordered, Network::ordered] {
        for room in [1, 2, 3] {
            at_every_level(&Pruning::ALL, || {
                let links = network().capacity(room).reconnects_with("back");
                never_bad(table(2, ROWS).network(links).faults(partitions(1)))
            });
        }
    }
}

// ---- Limits ------------------------------------------------------------------------------------------------------

/// What a check that cannot be run says.
fn refusal<T: Target>(check: Check<T>) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| check.run()));
    let panic = panic.expect_err("the local engine cannot judge this");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<Text>().map(|text| (*text).to_owned()))
        .expect("it says why")
}

#[track_caller]
fn names_engines_that_can(refusal: &str) {
    assert!(
        refusal.contains("use the engine breadth, depth or random, or auto"),
        "{refusal}"
    );
    assert!(!refusal.contains('\n'), "{refusal}");
}

#[test]
fn deadlock_is_not_judged_node_by_node_and_auto_finds_it() {
    // Node 0 waits for an answer to its call for ever.
    let check = || Check::new(table(1, &[]).calls(0, ["go"])).deadlock_free();
    let refused = refusal(check().engine(Engine::Local));
    assert!(
        refused.starts_with("`deadlock` looks at what is in flight"),
        "{refused}"
    );
    names_engines_that_can(&refused);
    let verdict = check().engine(Engine::Auto).run();
    let violation = verdict.violation().expect("nobody answers");
    assert!(matches!(violation.kind, ViolationKind::Deadlock(_)));
}

#[test]
fn messages_are_not_judged_node_by_node_and_auto_judges_them() {
    let check = || {
        Check::new(table(2, USES_IN_TIME))
            .always_with_messages("the line is silent", |_, messages| messages.is_empty())
    };
    let refused = refusal(check().engine(Engine::Local));
    assert!(
        refused.starts_with("`the line is silent` looks at"),
        "{refused}"
    );
    names_engines_that_can(&refused);
    let verdict = check().engine(Engine::Auto).run();
    assert_eq!(verdict.violation().unwrap().property, "the line is silent");
    let wanted = || {
        Check::new(table(2, USES_IN_TIME))
            .reachable_with_messages("the line is silent", |_, messages| messages.is_empty())
    };
    names_engines_that_can(&refusal(wanted().engine(Engine::Local)));
    wanted().engine(Engine::Auto).run().assert_holds();
}

/// Counts to three, and is no cluster.
struct Three;

impl System for Three {
    type State = u8;
    type Event = ();

    fn initial(&self) -> Vec<u8> {
        vec![0]
    }

    fn events(&self, state: &u8, out: &mut Vec<()>) {
        if *state < 3 {
            out.push(());
        }
    }

    fn next(&self, state: &u8, (): &()) -> Result<u8, Failure> {
        Ok(state + 1)
    }
}

#[test]
fn a_direct_system_has_no_nodes_and_auto_checks_it() {
    let check = |most| Check::new(Three).always("small", move |state| *state <= most);
    let refused = refusal(check(3).engine(Engine::Local));
    assert!(refused.contains("this is no cluster"), "{refused}");
    names_engines_that_can(&refused);
    check(3).engine(Engine::Auto).run().assert_holds();
    let verdict = check(2).engine(Engine::Auto).run();
    assert_eq!(verdict.counterexample().unwrap().len(), 3);
}
