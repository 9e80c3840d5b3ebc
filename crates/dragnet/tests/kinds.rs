//! Node states that are not hashed: digested, opaque; and handlers that do not do the same twice.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use dragnet::engine::EngineName;
use dragnet::nodes::{ByDebug, Digest, Digested, Opaque, OpaqueNode};
use dragnet::trace::StableHasher;
use dragnet::{Check, Cluster, Context, Determinism, Node, NodeId, Outcome, Timer, crashes};

/// Adds up what it hears from the others, in a float.
#[derive(Clone, Debug)]
struct Sum {
    total: f64,
    heard: u32,
}

impl Digest for Sum {
    fn digest(&self, into: &mut StableHasher) {
        (self.total.to_bits(), self.heard).hash(into);
    }
}

struct Summing<By>(std::marker::PhantomData<fn() -> By>);

impl<By: dragnet::nodes::DigestOf<Sum> + 'static> Node for Summing<By> {
    type State = Digested<Sum, By>;
    type Msg = u32;

    fn on_start(&self, cx: &mut Context<u32>) -> Self::State {
        cx.broadcast_to_others(1 + cx.me().0 as u32 / 2);
        let sum = Sum {
            total: 0.0,
            heard: 0,
        };
        sum.into()
    }

    fn on_message(&self, sum: &mut Self::State, _from: NodeId, value: u32, _cx: &mut Context<u32>) {
        sum.total += f64::from(value);
        sum.heard += 1;
    }
}

/// The same with numbers that can be compared.
struct Hashed;

impl Node for Hashed {
    type State = (u32, u32);
    type Msg = u32;

    fn on_start(&self, cx: &mut Context<u32>) -> (u32, u32) {
        cx.broadcast_to_others(1 + cx.me().0 as u32 / 2);
        (0, 0)
    }

    fn on_message(&self, sum: &mut (u32, u32), _from: NodeId, value: u32, _cx: &mut Context<u32>) {
        sum.0 += value;
        sum.1 += 1;
    }
}

#[test]
fn a_digest_tells_states_apart_as_comparing_would() {
    let states = |verdict: dragnet::Verdict| {
        assert_eq!(verdict.outcome, Outcome::Holds);
        verdict.statistics.states
    };
    let hashed = states(Check::new(Cluster::new(4, |_| Hashed)).run());
    let summing = || Summing::<dragnet::nodes::Own>(std::marker::PhantomData);
    assert_eq!(
        states(Check::new(Cluster::new(4, |_| summing())).run()),
        hashed
    );
    let printing = || Summing::<ByDebug>(std::marker::PhantomData);
    assert_eq!(
        states(Check::new(Cluster::new(4, |_| printing())).run()),
        hashed
    );
    let exactly = Check::new(Cluster::new(4, |_| printing())).exact();
    assert_eq!(states(exactly.engine(EngineName::Depth).run()), hashed);
}

#[test]
fn a_verdict_says_so_when_it_stands_on_a_digest() {
    let digested = |verdict: &dragnet::Verdict| {
        let said = verdict.to_string().contains("equal digests counted as one");
        let work = verdict.statistics.nodes.expect("there are nodes");
        assert_eq!(work.digested, said, "{verdict}");
        said
    };
    let summing = || Summing::<ByDebug>(std::marker::PhantomData);
    assert!(digested(&Check::new(Cluster::new(2, |_| summing())).run()));
    let mixed = Cluster::new(1, |_| Hashed).and(1, |_| summing());
    assert!(digested(&Check::new(mixed).run()));
    assert!(!digested(&Check::new(Cluster::new(2, |_| Hashed)).run()));
    // What happened to a node is no digest of its state.
    let past = Cluster::new(1, |_| Opaque::new(Journal)).timer_budget(TICK, 2);
    assert!(!digested(&Check::new(past).run()));
}

/// Counts behind a shared reference.
struct Cellular(std::sync::Mutex<u32>);

impl Clone for Cellular {
    fn clone(&self) -> Self {
        Self(std::sync::Mutex::new(*self.0.lock().unwrap()))
    }
}

impl std::fmt::Debug for Cellular {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.lock().unwrap().fmt(f)
    }
}

#[test]
fn a_state_that_changes_behind_a_shared_reference_is_another_state() {
    struct Counting;

    impl Node for Counting {
        type State = Digested<Cellular, ByDebug>;
        type Msg = ();

        fn on_start(&self, cx: &mut Context<()>) -> Self::State {
            cx.broadcast_to_others(());
            Cellular(std::sync::Mutex::new(0)).into()
        }

        fn on_message(&self, count: &mut Self::State, _: NodeId, _: (), _: &mut Context<()>) {
            *count.0.lock().unwrap() += 1;
        }
    }

    let verdict = Check::new(Cluster::new(3, |_| Counting))
        .always("nobody counts to two", |s| {
            s.nodes().all(|count| *count.0.lock().unwrap() < 2)
        })
        .run();
    assert!(verdict.violation().is_some(), "{verdict}");
}

#[test]
fn a_digest_in_a_message_is_said_too() {
    struct Sending;

    impl Node for Sending {
        type State = u8;
        type Msg = Digested<u8, ByDebug>;

        fn on_start(&self, cx: &mut Context<Self::Msg>) -> u8 {
            cx.broadcast_to_others(1.into());
            0
        }

        fn on_message(&self, sum: &mut u8, _: NodeId, msg: Self::Msg, _: &mut Context<Self::Msg>) {
            *sum += *msg;
        }
    }

    let verdict = Check::new(Cluster::new(2, |_| Sending)).run();
    assert!(verdict.statistics.nodes.unwrap().digested, "{verdict}");
}

/// Why a check of this node is inconclusive.
fn objection<N: Node<Msg = u64>>(
    node: impl FnMut(NodeId) -> N,
    determinism: Determinism,
) -> Option<String> {
    let cluster = Cluster::new(3, node).calls(0, [0]);
    let verdict = Check::new(cluster).determinism(determinism).depth(4).run();
    match verdict.outcome {
        Outcome::Inconclusive(why) if why.contains("not deterministic") => Some(why),
        _ => None,
    }
}

const LOOKING: [Determinism; 2] = [Determinism::Sample, Determinism::Always];

/// What a handler does when it is called.
type Called = fn(&mut u64, &mut Context<u64>);

struct Calls(Called);

impl Node for Calls {
    type State = u64;
    type Msg = u64;

    fn on_start(&self, _cx: &mut Context<u64>) -> u64 {
        0
    }

    fn on_message(&self, _state: &mut u64, _from: NodeId, _msg: u64, _cx: &mut Context<u64>) {}

    fn on_call(&self, state: &mut u64, _call: u64, cx: &mut Context<u64>) {
        (self.0)(state, cx);
    }
}

#[track_caller]
fn is_caught(called: Called) {
    for determinism in LOOKING {
        let why = objection(|_| Calls(called), determinism).expect("it is caught");
        assert!(why.starts_with("Calls 0 is not deterministic"), "{why}");
        assert!(why.contains("is called: 0"), "{why}");
        for cause in ["HashMap", "a clock", "random numbers", "a static"] {
            assert!(why.contains(cause), "{why}");
        }
    }
    assert_eq!(objection(|_| Calls(called), Determinism::Off), None);
}

#[test]
fn a_node_that_iterates_a_map_into_its_messages_is_caught() {
    is_caught(|_, cx| {
        let map: HashMap<u64, ()> = (0..100).map(|n| (n, ())).collect();
        for key in map.keys() {
            cx.send(1, *key);
        }
    });
}

#[test]
fn a_node_that_reads_the_clock_is_caught() {
    is_caught(|state, _| {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        *state = START.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1;
    });
}

#[test]
fn a_node_that_draws_random_numbers_is_caught() {
    is_caught(|_, cx| cx.observe(RandomState::new().hash_one(7)));
}

#[test]
fn a_node_that_remembers_in_a_static_is_caught() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    is_caught(|_, cx| cx.answer(u64::from(RUNS.fetch_add(1, Ordering::Relaxed))));
}

#[test]
fn a_node_that_begins_differently_is_caught() {
    struct Begins;

    impl Node for Begins {
        type State = u64;
        type Msg = u64;

        fn on_start(&self, _cx: &mut Context<u64>) -> u64 {
            RandomState::new().hash_one(7)
        }

        fn on_message(&self, _state: &mut u64, _from: NodeId, _msg: u64, _cx: &mut Context<u64>) {}
    }

    let why = objection(|_| Begins, Determinism::Sample).expect("it is caught");
    assert!(
        why.contains("starts") && why.contains("its state is"),
        "{why}"
    );
}

#[test]
fn a_handler_whose_choices_differ_is_caught() {
    is_caught(|_, cx| {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        if RUNS.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) {
            cx.choose(2);
        }
    });
}

#[test]
fn the_guard_keeps_quiet_about_nodes_that_do_the_same_every_time() {
    for determinism in LOOKING {
        // With two threads, both may run a handler at the same moment.
        let check = || Check::new(Cluster::new(4, |_| Hashed)).threads(1);
        let verdict = check().determinism(determinism).run();
        assert_eq!(verdict.outcome, Outcome::Holds);
        let runs = verdict.statistics.nodes.unwrap().handler_runs;
        let unguarded = check().determinism(Determinism::Off);
        assert_eq!(unguarded.run().statistics.nodes.unwrap().handler_runs, runs);
    }
}

const TICK: Timer = Timer::new("tick");

/// A log that lives in memory; every second entry reaches the disk.
struct Journal;

struct Entries(Vec<usize>);

impl OpaqueNode for Journal {
    type State = Entries;
    type Msg = ();
    type View = Vec<usize>;
    type Disk = Vec<usize>;

    fn on_start(&self, cx: &mut Context<()>) -> Entries {
        cx.set_timer(TICK, std::time::Duration::from_secs(1));
        Entries(Vec::new())
    }

    fn on_message(&self, _: &mut Entries, _from: NodeId, _: (), _cx: &mut Context<()>) {}

    fn on_timer(&self, entries: &mut Entries, timer: Timer, cx: &mut Context<()>) {
        entries.0.push(cx.choose(3));
        cx.set_timer(timer, std::time::Duration::from_secs(1));
    }

    fn view(&self, entries: &mut Entries) -> Vec<usize> {
        entries.0.clone()
    }

    fn disk(&self, entries: &mut Entries) -> Option<Vec<usize>> {
        Some(entries.0[..entries.0.len() / 2 * 2].to_vec())
    }

    fn on_recover(&self, disk: Vec<usize>, cx: &mut Context<()>) -> Entries {
        cx.set_timer(TICK, std::time::Duration::from_secs(1));
        Entries(disk)
    }
}

#[test]
fn what_was_chosen_is_chosen_again_when_a_state_is_rebuilt() {
    let cluster = || Cluster::new(1, |_| Opaque::new(Journal)).timer_budget(TICK, 4);
    for engine in [EngineName::Breadth, EngineName::Depth] {
        let verdict = Check::new(cluster())
            .engine(engine)
            .determinism(Determinism::Always)
            .reachable("2, 1, 0, 2", |s| s.nodes().all(|log| **log == [2, 1, 0, 2]))
            .run();
        assert_eq!(verdict.outcome, Outcome::Holds);
        // 1 + 3 + 9 + 27 + 81: each history of choices is a state.
        assert_eq!(verdict.statistics.states, 121);
    }
}

#[test]
fn an_opaque_node_is_called_what_is_inside() {
    let cluster = Cluster::new(1, |_| Opaque::new(Journal)).timer_budget(TICK, 1);
    let verdict = Check::new(cluster)
        .always("nothing is written", |s| {
            s.nodes().all(|log| log.is_empty())
        })
        .run();
    let counterexample = verdict.counterexample().expect("something is written");
    let names: Vec<&str> = counterexample
        .steps()
        .map(|step| &*step.component)
        .collect();
    assert_eq!(names, ["Journal 0"]);
}

#[test]
fn a_crash_leaves_what_is_on_disk() {
    let cluster = Cluster::new(1, |_| Opaque::new(Journal)).timer_budget(TICK, 3);
    let verdict = Check::new(cluster)
        .faults(crashes(1))
        .always("only whole pairs are on disk", |s| {
            let disk = s.durable(0).and_then(|past| past.disk());
            disk.is_none_or(|entries| entries.len().is_multiple_of(2))
        })
        .reachable("a pair survives", |s| {
            let disk = s.durable(0).and_then(|past| past.disk());
            disk.is_some_and(|entries| *entries == [1, 2])
        })
        .reachable("goes on after the crash", |s| {
            s.nodes().any(|log| **log == [1, 2, 0])
        })
        .run();
    assert_eq!(verdict.outcome, Outcome::Holds);
}

#[test]
fn a_long_history_is_forgotten_without_running_out_of_stack() {
    struct Ticking;

    struct Count(u32);

    impl OpaqueNode for Ticking {
        type State = Count;
        type Msg = ();
        type View = u32;
        type Disk = ();

        fn on_start(&self, cx: &mut Context<()>) -> Count {
            cx.set_timer(TICK, std::time::Duration::from_secs(1));
            Count(0)
        }

        fn on_message(&self, _: &mut Count, _from: NodeId, _: (), _cx: &mut Context<()>) {}

        fn on_timer(&self, count: &mut Count, timer: Timer, cx: &mut Context<()>) {
            count.0 += 1;
            cx.set_timer(timer, std::time::Duration::from_secs(1));
        }

        fn view(&self, count: &mut Count) -> u32 {
            count.0
        }
    }

    let verdict = Check::new(Cluster::new(1, |_| Opaque::new(Ticking)))
        .determinism(Determinism::Off)
        .within("100,000 ticks", |s| {
            s.nodes().all(|count| **count <= 100_000)
        })
        .run();
    assert_eq!(verdict.statistics.states, 100_001);
}
