//! What the local engine cannot judge, it says so; what can only be judged of the whole system, it searches.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use dragnet::engine::{EngineName, Local, Pruning};
use dragnet::extend::Checkable;
use dragnet::nodes::Network;
use dragnet::verdict::ViolationKind;
use dragnet::{
    Check, Cluster, Context, Failure, Node, NodeId, Outcome, System, Timer, Verdict, crashes,
    duplicates, partitions,
};

use crate::table::{Cancel, Rows, Send, Set, Text, rows, table};
use crate::verdicts::{holds_at, violated, violated_at};

/// A message is under way, and then not.
const GREETING: Rows = rows! {
    0: "idle", "start" => "idle", Send(1, "hello");
    1: "idle", "hello" => "greeted";
};

/// What a check that cannot be run says.
pub fn refusal<T: Checkable>(check: Check<T>) -> String {
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
    let refused = refusal(check().engine(EngineName::Local));
    assert!(
        refused.starts_with("`deadlock` looks at what is in flight"),
        "{refused}"
    );
    names_engines_that_can(&refused);
    let verdict = check().engine(EngineName::Auto).run();
    let violation = verdict.violation().expect("nobody answers");
    assert!(matches!(violation.kind, ViolationKind::Deadlock(_)));
}

#[test]
fn messages_are_not_judged_node_by_node_and_auto_judges_them() {
    let check = || {
        Check::new(table(2, GREETING))
            .always_with_messages("the line is silent", |_, messages| messages.is_empty())
    };
    let refused = refusal(check().engine(EngineName::Local));
    assert!(
        refused.starts_with("`the line is silent` looks at"),
        "{refused}"
    );
    names_engines_that_can(&refused);
    let verdict = check().engine(EngineName::Auto).run();
    assert_eq!(verdict.violation().unwrap().property, "the line is silent");
    let wanted = || {
        Check::new(table(2, GREETING))
            .reachable_with_messages("the line is silent", |_, messages| messages.is_empty())
    };
    names_engines_that_can(&refusal(wanted().engine(EngineName::Local)));
    wanted().engine(EngineName::Auto).run().assert_holds();
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
    let refused = refusal(check(3).engine(EngineName::Local));
    assert!(refused.contains("this is no cluster"), "{refused}");
    names_engines_that_can(&refused);
    check(3).engine(EngineName::Auto).run().assert_holds();
    let verdict = check(2).engine(EngineName::Auto).run();
    assert_eq!(verdict.counterexample().unwrap().len(), 3);
}

#[test]
fn a_bound_on_all_nodes_that_fails_is_a_violation() {
    violated(|| {
        Check::new(table(2, GREETING)).within("nobody is greeted", |all| {
            assert!(all.nodes().all(|state| *state != "greeted"));
            true
        })
    });
}

#[test]
fn a_projection_that_fails_is_a_violation_even_where_nobody_else_has_anything() {
    for nodes in [2, 3] {
        violated(|| {
            Check::new(table(nodes, GREETING)).always_agree("nobody is greeted", |node| {
                assert!(node.state() != Some(&"greeted"));
                None::<Text>
            })
        });
    }
}

#[test]
fn a_cluster_of_nobody_is_judged_as_well() {
    let check =
        || Check::new(table(0, &[])).always("somebody is there", |all| all.nodes().count() > 0);
    for engine in [EngineName::Breadth, EngineName::Local, EngineName::Auto] {
        assert!(
            check().engine(engine).run().violation().is_some(),
            "{engine}"
        );
    }
}

/// Says hello for ever, which nobody hears twice.
const CHATTER: Rows = rows! {
    0: "idle", "start" => "idle", Set("again");
    0: "idle", "timer again" => "idle", Set("again"), Send(1, "hello");
    1: "idle", "hello" => "greeted";
};

#[test]
fn links_with_little_room_stay_finite_when_messages_are_copied_or_lost() {
    for network in [Network::unordered(), Network::ordered()] {
        for faults in [duplicates(1), crashes(1), duplicates(1).and(crashes(1))] {
            let cluster = || {
                table(2, CHATTER)
                    .network(network.clone().capacity(1))
                    .faults(faults)
            };
            let check = || {
                Check::new(cluster())
                    .always_for_each("nobody is bad", |node| node.state() != Some(&"bad"))
            };
            holds_at(&[Pruning::Refined, Pruning::Adaptive], check);
            violated_at(&[Pruning::Refined, Pruning::Adaptive], || {
                Check::new(cluster())
                    .always_for_each("nobody is greeted", |node| node.state() != Some(&"greeted"))
            });
        }
    }
}

#[test]
fn nothing_is_told_that_takes_more_steps_than_allowed() {
    // Three steps, at most two of them on one node.
    const RELAY: Rows = rows! {
        0: "idle", "call go" => "called", Send(1, "one");
        1: "idle", "one" => "passed", Send(0, "two");
        0: "called", "two" => "bad";
    };
    let check = || {
        Check::new(table(2, RELAY).calls(0, ["go"]))
            .always_for_each("never bad", |node| node.state() != Some(&"bad"))
    };
    for level in Pruning::ALL {
        let within = |steps| {
            let check = check().engine(Local::new().pruning(level));
            check.depth(steps).run()
        };
        for steps in [1, 2] {
            let cut = within(steps).outcome;
            assert!(matches!(cut, Outcome::Inconclusive(_)), "{level}: {cut:?}");
        }
        assert!(within(3).violation().is_some(), "{level}");
    }
}

/// The verdicts of every engine and every level of pruning under a depth bound.
fn with_depth_bound<N: Node>(
    check: impl Fn() -> Check<Cluster<N>>,
    bound: u64,
) -> Vec<(String, Verdict)> {
    let engines = [EngineName::Breadth, EngineName::Depth, EngineName::Auto];
    let engines = engines.map(|engine| (engine.to_string(), check().engine(engine)));
    let levels = Pruning::ALL.map(|level| {
        let check = check().engine(Local::new().pruning(level));
        (level.to_string(), check)
    });
    let checks = engines.into_iter().chain(levels);
    checks
        .map(|(engine, check)| (engine, check.depth(bound).run()))
        .collect()
}

/// Every engine finds a violation of `length` steps if the depth bound allows that many, and is inconclusive otherwise.
fn violated_within_bound<N: Node>(check: impl Fn() -> Check<Cluster<N>>, length: u64) {
    for bound in 0..length + 2 {
        for (engine, verdict) in with_depth_bound(&check, bound) {
            let found = verdict.counterexample().map(|found| found.len() as u64);
            let expected = (bound >= length).then_some(length);
            assert_eq!(found, expected, "{engine} with depth {bound}: {verdict}");
            assert!(
                !matches!(verdict.outcome, Outcome::Holds),
                "{engine} with depth {bound}"
            );
        }
    }
}

/// Begins in one of two ways, and panics when its timer runs out for the last time.
struct Countdown {
    timeouts: u64,
}

impl Node for Countdown {
    type State = u64;
    type Msg = ();

    fn on_start(&self, cx: &mut Context<()>) -> u64 {
        cx.choose(2);
        cx.set_timer(Timer::new("tick"), Duration::ZERO);
        0
    }

    fn on_message(&self, _: &mut u64, _: NodeId, (): (), _: &mut Context<()>) {}

    fn on_timer(&self, timeouts: &mut u64, timer: Timer, cx: &mut Context<()>) {
        *timeouts += 1;
        assert!(*timeouts < self.timeouts, "time is up");
        cx.set_timer(timer, Duration::ZERO);
    }
}

#[test]
fn the_beginning_of_a_node_is_no_step() {
    for timeouts in 1..4 {
        for nodes in 1..3 {
            let cluster = || Cluster::new(nodes, move |_| Countdown { timeouts });
            violated_within_bound(|| Check::new(cluster()), timeouts);
        }
    }
}

#[test]
fn a_verification_that_the_depth_bound_cuts_rejects_nothing() {
    // A partition, its end, and the notice of that.
    const NOTIFIED: Rows = rows! {
        1: "idle", "back" => "fails";
    };
    let network = || Network::ordered().reconnects_with("back");
    let cluster = || table(2, NOTIFIED).network(network()).faults(partitions(1));
    violated_within_bound(|| Check::new(cluster()), 3);
}

#[test]
fn a_depth_bound_that_cuts_nothing_that_can_happen_lets_a_check_hold() {
    // Node 0 is called before it can receive "done", so that "again" is never sent.
    const TWO_STEPS: Rows = rows! {
        0: "idle", "call go" => "called", Send(1, "go");
        1: "idle", "go" => "gone", Send(0, "done");
        0: "idle", "done" => "early", Send(1, "again");
        1: "gone", "again" => "far";
        1: "far", "again" => "farther";
    };
    let check = || {
        Check::new(table(2, TWO_STEPS).calls(0, ["go"]))
            .always_for_each("never far", |node| node.state() != Some(&"farther"))
    };
    for (engine, verdict) in with_depth_bound(check, 2) {
        assert!(
            matches!(verdict.outcome, Outcome::Holds),
            "{engine}: {verdict}"
        );
    }
}

#[test]
fn the_shortest_history_to_a_local_state_counts() {
    // By messages alone node 1 takes four steps to be ready; when its timer runs out, one.
    const TWO_WAYS: Rows = rows! {
        0: "idle", "start" => "idle", Send(1, "one"), Send(1, "two"), Send(1, "three"), Send(1, "four");
        1: "idle", "start" => "idle", Set("skip");
        1: "idle", "one" => "first";
        1: "first", "two" => "second";
        1: "second", "three" => "third";
        1: "third", "four" => "ready", Cancel("skip");
        1: "idle", "timer skip" => "ready";
        1: "ready", "two" => "steady";
        1: "steady", "three" => "bad";
    };
    let check = || {
        Check::new(table(2, TWO_WAYS))
            .always_for_each("never bad", |node| node.state() != Some(&"bad"))
    };
    violated_within_bound(check, 3);
}
