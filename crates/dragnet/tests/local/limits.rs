//! What the local engine cannot judge, it says so.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dragnet::{Check, Engine, Failure, System, Target, ViolationKind};

use crate::table::{Rows, Send, Text, rows, table};

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
