//! What the local engine cannot judge, it says so; what can only be judged of the whole system, it searches.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dragnet::{
    Check, Engine, Failure, Network, Outcome, Pruning, System, Target, ViolationKind, crashes,
    duplicates,
};

use crate::table::{Rows, Send, Set, Text, rows, table};
use crate::verdicts::{holds_at, violated, violated_at};

/// A message is under way, and then not.
const GREETING: Rows = rows! {
    0: "idle", "start" => "idle", Send(1, "hello");
    1: "idle", "hello" => "greeted";
};

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
        Check::new(table(2, GREETING))
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
        Check::new(table(2, GREETING))
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
    for engine in [Engine::Breadth, Engine::Local, Engine::Auto] {
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
            let check = check().engine(Engine::Local).pruning(level);
            check.depth(steps).run()
        };
        for steps in [1, 2] {
            let cut = within(steps).outcome;
            assert!(matches!(cut, Outcome::Inconclusive(_)), "{level}: {cut:?}");
        }
        assert!(within(3).violation().is_some(), "{level}");
    }
}
