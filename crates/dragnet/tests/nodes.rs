//! What a cluster of nodes can do, and what a check says of it.

use std::time::Duration;

use dragnet::engine::{EngineName, Random};
use dragnet::nodes::Network;
use dragnet::system::FailureKind;
use dragnet::verdict::ViolationKind;
use dragnet::{
    Check, Cluster, Context, Node, NodeId, Outcome, Timer, crashes, drops, duplicates, partitions,
    restarts,
};

/// A worker sleeps until it is woken, but ignores a wake-up that comes before it has gone to sleep.
struct Worker;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Sleep {
    Busy,
    Asleep,
    Awake,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Alarm {
    Sleep,
    Wake,
    Done,
}

impl Node for Worker {
    type State = Sleep;
    type Msg = Alarm;

    fn on_start(&self, cx: &mut Context<Alarm>) -> Sleep {
        if cx.me() == NodeId(1) {
            cx.send(NodeId(0), Alarm::Wake);
        }
        Sleep::Busy
    }

    fn on_message(&self, state: &mut Sleep, _from: NodeId, msg: Alarm, cx: &mut Context<Alarm>) {
        if msg == Alarm::Wake && *state == Sleep::Asleep {
            *state = Sleep::Awake;
            cx.answer(Alarm::Done);
        }
    }

    fn on_call(&self, state: &mut Sleep, _call: Alarm, _cx: &mut Context<Alarm>) {
        *state = Sleep::Asleep;
    }
}

fn sleepers() -> Check<Cluster<Worker>> {
    Check::new(Cluster::new(2, |_| Worker).calls(0, [Alarm::Sleep])).reachable("wakes up", |s| {
        s.nodes().any(|state| *state == Sleep::Awake)
    })
}

#[test]
fn a_wake_up_that_came_too_early_is_a_deadlock() {
    let verdict = sleepers().deadlock_free().run();
    let violation = verdict.violation().expect("the wake-up can be lost");
    let ViolationKind::Deadlock(waiting) = &violation.kind else {
        panic!("{verdict}");
    };
    let waiting: Vec<String> = waiting.iter().map(ToString::to_string).collect();
    assert_eq!(waiting, ["Worker 0 waits for an answer to Sleep"]);
    let steps: Vec<&str> = verdict
        .counterexample()
        .unwrap()
        .steps()
        .map(|s| s.action.as_str())
        .collect();
    assert_eq!(steps, ["receives Wake from Worker 1", "is called: Sleep"]);
}

#[test]
fn a_check_of_node_states_alone_leaves_the_early_wake_up_in_flight() {
    // The mode that leaves out deliveries that change nothing cannot lose the message, so it must never judge deadlock.
    let verdict = sleepers().run();
    verdict.assert_holds();
    assert_eq!(verdict.states(), 3);
    assert!(verdict.statistics.nodes.unwrap().skips_idle);
}

/// Node 0 counts the pings it gets; what happens on the third is up to the test.
struct Counter {
    on_third: fn(&mut Context<u8>),
}

impl Node for Counter {
    type State = u8;
    type Msg = u8;

    fn on_start(&self, cx: &mut Context<u8>) -> u8 {
        if cx.me() != NodeId(0) {
            cx.send(0, 1);
        }
        0
    }

    fn on_message(&self, count: &mut u8, _from: NodeId, _msg: u8, cx: &mut Context<u8>) {
        *count += 1;
        if *count == 3 {
            (self.on_third)(cx);
        }
    }
}

fn counters(on_third: fn(&mut Context<u8>)) -> Check<Cluster<Counter>> {
    Check::new(Cluster::new(4, |_| Counter { on_third }))
}

#[test]
fn a_panic_in_a_handler_is_a_violation_with_its_message_and_place() {
    let verdict = counters(|_| panic!("three is too many")).run();
    let violation = verdict.violation().expect("it panics");
    let ViolationKind::Failure(failure) = &violation.kind else {
        panic!("{violation:?}");
    };
    assert_eq!(violation.property, "panic");
    assert_eq!(failure.kind(), FailureKind::Panic);
    assert_eq!(failure.message(), "three is too many");
    assert!(failure.location().unwrap().contains("tests/nodes.rs"));
    assert_eq!(verdict.counterexample().unwrap().len(), 3);
}

#[test]
fn an_assertion_in_a_handler_is_a_violation() {
    let verdict = counters(|cx| cx.assert(false, "at most two")).run();
    let violation = verdict.violation().expect("it asserts");
    assert_eq!(violation.property, "assertion");
    assert!(
        violation
            .describe()
            .starts_with("assertion failed: at most two (crates/dragnet/tests/nodes.rs:")
    );
}

#[test]
fn a_panic_at_the_start_is_a_violation_without_steps() {
    struct Broken;
    impl Node for Broken {
        type State = ();
        type Msg = ();
        fn on_start(&self, _cx: &mut Context<()>) {
            panic!("no configuration");
        }
        fn on_message(&self, _: &mut (), _: NodeId, _: (), _: &mut Context<()>) {}
    }
    let engines = EngineName::ALL.into_iter();
    for engine in engines.filter(|&engine| engine != EngineName::Dpor) {
        let verdict = Check::new(Cluster::new(1, |_| Broken)).engine(engine).run();
        let violation = verdict.violation().expect("it cannot start");
        assert!(
            violation.describe().contains("no configuration"),
            "{}",
            violation.describe()
        );
    }
}

#[test]
fn a_property_that_panics_is_named() {
    let verdict = counters(|_| {})
        .always("fragile", |s| {
            s.nodes().all(|&n| if n == 2 { panic!("oh") } else { true })
        })
        .run();
    let violation = verdict.violation().expect("it panics");
    assert_eq!(violation.property, "fragile");
    assert!(matches!(violation.kind, ViolationKind::PropertyPanicked(_)));
}

#[test]
fn a_bound_that_panics_ends_the_check() {
    let verdict = counters(|_| {})
        .within("fragile", |s| {
            s.nodes().all(|&n| if n == 2 { panic!("oh") } else { true })
        })
        .run();
    assert_eq!(
        verdict
            .violation()
            .map(|violation| violation.property.as_str()),
        Some("panic")
    );
}

#[test]
fn what_nothing_reaches_is_a_violation() {
    let verdict = counters(|_| {})
        .reachable("four", |s| s.nodes().any(|&count| count == 4))
        .run();
    let violation = verdict.violation().expect("there are three pings only");
    assert_eq!(violation.kind, ViolationKind::Unreached);
    assert!(violation.counterexample.is_none());
}

#[test]
fn a_lost_message_may_be_missing_and_a_duplicate_counts_twice() {
    let reaches = |faults, count| {
        counters(|_| {})
            .reachable("count", move |s| s.node(0) == Some(&count))
            .faults(faults)
            .run()
            .holds()
    };
    assert!(reaches(duplicates(1), 4) && !reaches(duplicates(1), 5));
    assert!(reaches(drops(1), 3), "a fault may happen, it need not");
    let lost = counters(|_| {})
        .always_with_messages("somebody is counted", |s, messages| {
            s.node(0) != Some(&0) || !messages.is_empty()
        })
        .faults(drops(2))
        .run();
    lost.assert_holds();
    let all_lost = counters(|_| {})
        .always_with_messages("somebody is counted", |s, messages| {
            s.node(0) != Some(&0) || !messages.is_empty()
        })
        .faults(drops(3))
        .run();
    assert_eq!(all_lost.counterexample().unwrap().len(), 3);
}

/// Writes what it is told to disk only when asked to.
struct Disk;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Files {
    cached: u8,
    synced: u8,
    restarts: u8,
}

impl Node for Disk {
    type State = Files;
    type Msg = &'static str;

    fn on_start(&self, _cx: &mut Context<&'static str>) -> Files {
        Files::default()
    }

    fn on_message(&self, _: &mut Files, _: NodeId, _: &'static str, _: &mut Context<&'static str>) {
    }

    fn on_call(&self, files: &mut Files, call: &'static str, cx: &mut Context<&'static str>) {
        match call {
            "write" => files.cached += 1,
            _ => files.synced = files.cached,
        }
        cx.answer("ok");
    }

    fn durable(&self, files: &Files) -> Option<Files> {
        Some(Files {
            cached: files.synced,
            ..files.clone()
        })
    }

    fn on_recover(&self, files: &mut Files, _cx: &mut Context<&'static str>) {
        files.restarts += 1;
    }
}

#[test]
fn a_crash_loses_what_is_not_durable_and_keeps_what_is() {
    let disk =
        || Check::new(Cluster::new(1, |_| Disk).calls_in_turn(0, ["write", "sync", "write"]));
    disk()
        .faults(crashes(1))
        .always("what is synced stays", |s| {
            s.nodes().all(|f| f.cached >= f.synced)
        })
        .reachable("comes back with what was synced", |s| {
            s.nodes().any(|f| f.restarts == 1 && f.cached == 1)
        })
        .run()
        .assert_holds();
    let stays_down = disk()
        .faults(crashes(1).and(restarts(0)))
        .reachable("comes back", |s| s.nodes().any(|f| f.restarts == 1))
        .run();
    assert_eq!(
        stays_down.violation().unwrap().kind,
        ViolationKind::Unreached
    );
}

/// Sends three numbered messages to node 1, which keeps the order of arrival.
struct Stream;

impl Node for Stream {
    type State = Vec<u8>;
    type Msg = u8;

    fn on_start(&self, cx: &mut Context<u8>) -> Vec<u8> {
        if cx.me() == NodeId(0) {
            for number in 1..=3 {
                cx.send(1, number);
            }
        }
        Vec::new()
    }

    fn on_message(&self, seen: &mut Vec<u8>, _from: NodeId, number: u8, _cx: &mut Context<u8>) {
        seen.push(number);
    }
}

#[test]
fn only_an_ordered_network_keeps_order() {
    let stream = |network| {
        Check::new(Cluster::new(2, |_| Stream).network(network))
            .always("in order", |s| s.nodes().all(|seen| seen.is_sorted()))
            .run()
    };
    stream(Network::ordered()).assert_holds();
    assert_eq!(
        stream(Network::unordered()).counterexample().unwrap().len(),
        2
    );
}

#[test]
fn what_is_sent_on_a_full_link_is_lost() {
    let reaches = |network: Network<u8>, number: u8| {
        Check::new(Cluster::new(2, |_| Stream).network(network))
            .reachable("arrives", move |s| {
                s.nodes().any(|seen| seen.contains(&number))
            })
            .run()
            .holds()
    };
    assert!(reaches(Network::ordered().capacity(2), 2));
    assert!(!reaches(Network::ordered().capacity(2), 3));
    let odd = || Network::unordered().capacity_of("odd numbers", 1, |n: &u8| n % 2 == 1);
    assert!(reaches(odd(), 1) && reaches(odd(), 2) && !reaches(odd(), 3));
}

/// Pings node 1 again and again on a timer; a pong stops it.
struct Pinger;

const AGAIN: Timer = Timer::new("again");

impl Node for Pinger {
    type State = (u8, bool);
    type Msg = bool;

    fn on_start(&self, cx: &mut Context<bool>) -> (u8, bool) {
        if cx.me() == NodeId(0) {
            cx.set_timer(AGAIN, Duration::from_millis(10));
        }
        (0, false)
    }

    fn on_timer(&self, state: &mut (u8, bool), _timer: Timer, cx: &mut Context<bool>) {
        state.0 += 1;
        cx.send(1, false);
        cx.set_timer(AGAIN, Duration::from_millis(10));
    }

    fn on_message(&self, state: &mut (u8, bool), from: NodeId, pong: bool, cx: &mut Context<bool>) {
        state.1 = true;
        if pong {
            cx.cancel_timer(AGAIN);
        } else {
            cx.send(from, true);
        }
    }
}

#[test]
fn a_timer_runs_out_as_often_as_its_budget_allows_and_not_once_it_is_cancelled() {
    let verdict = Check::new(Cluster::new(2, |_| Pinger).timer_budget(AGAIN, 3))
        .always("at most three", |s| s.nodes().all(|(pings, _)| *pings <= 3))
        .reachable("three", |s| s.nodes().any(|(pings, _)| *pings == 3))
        .reachable("answered at the first", |s| s.node(0) == Some(&(1, true)))
        .run();
    verdict.assert_holds();
    assert!(
        verdict
            .within
            .iter()
            .any(|bound| bound == "timer again at most 3 times a node")
    );
}

#[test]
fn a_partition_loses_what_crosses_it_until_it_heals() {
    let verdict = Check::new(Cluster::new(2, |_| Pinger).timer_budget(AGAIN, 2))
        .reachable("the first ping is lost and the second arrives", |s| {
            s.node(0) == Some(&(2, true)) && s.node(1) == Some(&(0, true))
        })
        .always_with_messages("a ping is in flight or has arrived", |s, messages| {
            s.node(0).is_none_or(|(pings, _)| *pings == 0)
                || s.node(1).is_some_and(|(_, heard)| *heard)
                || !messages.is_empty()
        })
        .faults(partitions(1))
        .run();
    let steps: Vec<String> = verdict
        .counterexample()
        .unwrap()
        .steps()
        .map(|s| s.action.clone())
        .collect();
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert!(
        steps.iter().any(|step| step.starts_with("falls in two")),
        "{steps:?}"
    );
}

#[test]
fn every_choice_is_explored() {
    struct Dice;
    impl Node for Dice {
        type State = usize;
        type Msg = ();
        fn on_start(&self, cx: &mut Context<()>) -> usize {
            cx.send(0, ());
            0
        }
        fn on_message(&self, sum: &mut usize, _: NodeId, _: (), cx: &mut Context<()>) {
            *sum = 2 + cx.choose(6) + cx.choose(6);
        }
    }
    let verdict = Check::new(Cluster::new(1, |_| Dice)).run();
    assert_eq!(verdict.states(), 12, "the start, and eleven sums");
    assert_eq!(verdict.statistics.transitions, 36);
}

#[test]
fn a_state_outside_the_bounds_is_not_part_of_the_space() {
    let verdict = counters(|_| panic!("beyond the bound"))
        .within("at most two", |s| s.nodes().all(|&count| count <= 2))
        .run();
    assert!(
        matches!(verdict.outcome, Outcome::Violated(_)),
        "the failing step itself is taken"
    );
    let verdict = counters(|_| {})
        .within("at most one", |s| s.nodes().all(|&count| count <= 1))
        .always("at most one", |s| s.nodes().all(|&count| count <= 1))
        .run();
    verdict.assert_holds();
    assert!(verdict.within.contains(&"at most one".to_owned()));
}

#[test]
fn random_walks_are_the_same_for_the_same_seed_and_any_number_of_threads() {
    let found = |threads, seed| {
        let verdict = counters(|cx| cx.assert(false, "three"))
            .named("counters")
            .engine(Random::new().seed(seed))
            .threads(threads)
            .run();
        verdict
            .counterexample()
            .map(|found| found.trace.clone())
            .expect("every walk fails")
    };
    assert_eq!(found(1, 7), found(2, 7));
    assert_eq!(found(2, 7), found(2, 7));
}

#[test]
fn a_long_counterexample_is_shortened() {
    let verdict = Check::new(Cluster::new(2, |_| Pinger).timer_budget(AGAIN, 20))
        .always("never answered", |s| {
            s.node(0).is_none_or(|(_, heard)| !heard)
        })
        .engine(EngineName::Depth)
        .threads(1)
        .run();
    let counterexample = verdict.counterexample().unwrap();
    assert_eq!(counterexample.len(), 3, "ping, arrival, answer");
    assert!(counterexample.shortest);
    assert!(counterexample.found_length > 3);
}

#[test]
fn a_counterexample_of_very_many_steps_is_found_and_replayed() {
    struct Long;
    impl Node for Long {
        type State = u32;
        type Msg = ();
        fn on_start(&self, cx: &mut Context<()>) -> u32 {
            cx.send(0, ());
            0
        }
        fn on_message(&self, count: &mut u32, _: NodeId, _: (), cx: &mut Context<()>) {
            *count += 1;
            cx.send(0, ());
        }
    }
    let long = || {
        Check::new(Cluster::new(1, |_| Long))
            .named("long")
            .always("short", |s| s.nodes().all(|&n| n < 30_000))
    };
    for engine in [EngineName::Breadth, EngineName::Depth] {
        let verdict = long().engine(engine).run();
        let counterexample = verdict.counterexample().expect("it counts on");
        assert_eq!(counterexample.len(), 30_000);
        assert!(long().replay(&counterexample.trace).is_ok());
    }
}

/// Tries for ever, and nobody answers.
struct Retrier;

const RETRY: Timer = Timer::new("retry");

impl Node for Retrier {
    type State = ();
    type Msg = &'static str;

    fn on_start(&self, _cx: &mut Context<&'static str>) {}

    fn on_message(&self, _: &mut (), _: NodeId, _: &'static str, _: &mut Context<&'static str>) {}

    fn on_call(&self, _: &mut (), _call: &'static str, cx: &mut Context<&'static str>) {
        cx.set_timer(RETRY, Duration::from_secs(1));
    }

    fn on_timer(&self, _: &mut (), timer: Timer, cx: &mut Context<&'static str>) {
        cx.set_timer(timer, Duration::from_secs(1));
    }
}

#[test]
fn a_deadlock_that_a_timer_budget_makes_says_so() {
    let cluster = Cluster::new(1, |_| Retrier)
        .calls(0, ["order"])
        .timer_budget(RETRY, 2);
    let verdict = Check::new(cluster).deadlock_free().run();
    assert_eq!(
        verdict.violation().unwrap().describe(),
        "deadlock: Retrier 0 waits for an answer to \"order\" (its timer retry is set, but its budget of 2 is spent), \
         and nothing can happen any more"
    );
}

/// Asserts in its first handler what is false.
struct Hasty;

impl Node for Hasty {
    type State = u8;
    type Msg = ();

    fn on_start(&self, cx: &mut Context<()>) -> u8 {
        cx.assert(false, "there is nothing to start with");
        0
    }

    fn on_message(&self, _: &mut u8, _: NodeId, (): (), _: &mut Context<()>) {}
}

#[test]
fn a_false_assertion_in_the_first_handler_is_a_violation() {
    let verdict = Check::new(Cluster::new(1, |_| Hasty)).run();
    let ViolationKind::Failure(failure) = &verdict.violation().unwrap().kind else {
        panic!("{verdict}");
    };
    assert_eq!(failure.kind(), FailureKind::Assertion);
    assert_eq!(failure.message(), "there is nothing to start with");
    assert!(failure.location().unwrap().contains("nodes.rs"));
}

#[test]
fn an_invariant_that_asks_for_a_node_that_is_not_there_is_told_so() {
    let check = sleepers().always("asks for node 5", |s| s.node(5).is_none());
    let verdict = check.run();
    assert_eq!(
        verdict.violation().unwrap().describe(),
        "the property `asks for node 5` itself panicked: there is no node 5: the cluster has 2, counted from 0"
            .to_owned()
            + &location_of(&verdict)
    );
}

fn location_of(verdict: &dragnet::Verdict) -> String {
    let described = verdict.violation().unwrap().describe();
    let at = described.find(" (").or_else(|| described.find(", at"));
    at.map_or(String::new(), |at| described[at..].to_owned())
}

/// Two timers with many choices each: more moves than sixteen bits count.
struct Chooser;

const ONE: Timer = Timer::new("one");
const TWO: Timer = Timer::new("two");

impl Node for Chooser {
    type State = u32;
    type Msg = ();

    fn on_start(&self, cx: &mut Context<()>) -> u32 {
        cx.set_timer(ONE, Duration::ZERO);
        cx.set_timer(TWO, Duration::ZERO);
        0
    }

    fn on_message(&self, _: &mut u32, _: NodeId, (): (), _: &mut Context<()>) {}

    fn on_timer(&self, state: &mut u32, timer: Timer, cx: &mut Context<()>) {
        cx.cancel_timer(ONE);
        cx.cancel_timer(TWO);
        let chosen = cx.choose(40_000);
        *state = if timer == TWO && chosen == 39_999 {
            77
        } else {
            1
        };
    }
}

#[test]
fn the_last_of_very_many_moves_is_found_and_shown() {
    for engine in [EngineName::Breadth, EngineName::Depth] {
        let verdict = Check::new(Cluster::new(1, |_| Chooser))
            .always("never 77", |s| s.nodes().all(|state| *state != 77))
            .engine(engine)
            .run();
        let counterexample = verdict.counterexample().expect("77 can be chosen");
        let step = counterexample.steps().next().unwrap();
        assert_eq!(step.changed, ["0 → 77"], "{engine:?}");
    }
}

/// Waits for a message that nobody sends.
struct Listener;

impl Node for Listener {
    type State = bool;
    type Msg = ();

    fn on_start(&self, _cx: &mut Context<()>) -> bool {
        false
    }

    fn on_message(&self, heard: &mut bool, _: NodeId, (): (), _: &mut Context<()>) {
        *heard = true;
    }

    fn waiting(&self, heard: &bool) -> bool {
        !heard
    }
}

#[test]
fn a_node_may_say_itself_that_it_waits() {
    let verdict = Check::new(Cluster::new(1, |_| Listener))
        .deadlock_free()
        .run();
    assert_eq!(
        verdict.violation().unwrap().describe(),
        "deadlock: Listener 0 waits, and nothing can happen any more"
    );
}
