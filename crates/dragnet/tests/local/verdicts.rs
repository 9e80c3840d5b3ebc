//! What all engines must be of one mind on.

use std::time::Duration;

use dragnet::engine::{EngineName, Local, Pruning};
use dragnet::trace::Trace;
use dragnet::verdict::ViolationKind;
use dragnet::{Check, Cluster, Node, Outcome, Verdict};

use crate::table::Table;

/// Every engine finds that a node can be `bad`: whether a property speaks of each node, of all nodes or of a pair, and
/// whether it forbids it or asks for it.
pub fn bad_happens(cluster: impl Fn() -> Cluster<Table>) {
    bad_happens_in_a_space_without_end(&cluster);
    holds(|| sometimes_bad(cluster()));
}

/// The same for a system that breadth first never comes to the end of, so that it never says that something holds.
pub fn bad_happens_in_a_space_without_end(cluster: impl Fn() -> Cluster<Table>) {
    violated(|| never_bad(cluster()));
    violated(|| never_bad_in_whole(cluster()));
    violated(|| never_bad_beside_another(cluster()));
}

/// Every engine finds that no node is ever `bad`.
pub fn bad_never_happens(cluster: impl Fn() -> Cluster<Table>) {
    holds(|| never_bad(cluster()));
    holds(|| never_bad_in_whole(cluster()));
    holds(|| never_bad_beside_another(cluster()));
    violated(|| sometimes_bad(cluster()));
}

pub fn never_bad(cluster: Cluster<Table>) -> Check<Cluster<Table>> {
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

pub fn sometimes_bad(cluster: Cluster<Table>) -> Check<Cluster<Table>> {
    Check::new(cluster).reachable_for_some("sometimes bad", |node| node.state() == Some(&"bad"))
}

pub fn violated<N: Node>(check: impl Fn() -> Check<Cluster<N>>) {
    violated_at(&Pruning::ALL, check);
}

pub fn violated_at<N: Node>(levels: &[Pruning], check: impl Fn() -> Check<Cluster<N>>) {
    let breadth = at_every_level(levels, check);
    assert!(
        breadth.violation().is_some(),
        "expected a violation: {breadth}"
    );
}

pub fn holds<N: Node>(check: impl Fn() -> Check<Cluster<N>>) {
    holds_at(&Pruning::ALL, check);
}

pub fn holds_at<N: Node>(levels: &[Pruning], check: impl Fn() -> Check<Cluster<N>>) {
    at_every_level(levels, check).assert_holds();
}

/// Checks that the local engine says what breadth first says, which it returns.
pub fn at_every_level<N: Node>(
    levels: &[Pruning],
    check: impl Fn() -> Check<Cluster<N>>,
) -> Verdict {
    // Every system here takes milliseconds. What does not is at fault, and is not to take the machine with it.
    let check = || {
        let check = check().named("system");
        check.time(Duration::from_secs(20)).memory(2 << 30)
    };
    let breadth = check().engine(EngineName::Breadth).threads(1).run();
    for &level in levels {
        let local = |threads| {
            let check = check().engine(Local::new().pruning(level));
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

pub fn trace_of(verdict: &Verdict) -> Option<&Trace> {
    verdict.counterexample().map(|found| &found.trace)
}

/// At the refined level nothing is made that cannot happen: it knows the local states that breadth first comes by.
pub fn nothing_impossible_is_made(cluster: impl Fn() -> Cluster<Table>) {
    let breadth = never_bad(cluster()).run();
    breadth.assert_holds();
    let refined = never_bad(cluster())
        .engine(Local::new().pruning(Pruning::Refined))
        .run();
    let possible = breadth.statistics.nodes.map(|nodes| nodes.local_states);
    let made = refined.statistics.local.map(|local| local.local_states);
    assert_eq!(
        made, possible,
        "local states that cannot happen, or too few"
    );
}
