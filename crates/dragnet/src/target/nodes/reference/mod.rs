//! Every engine against a naive explorer on random systems.
//!
//! A system is a cluster of nodes that follow random scripts. To the naive explorer a state is the list of local states,
//! the list of messages in flight, and the budgets. What it finds must be what every engine finds, with any number of
//! threads.
//!
//! `DRAGNET_CASES` sizes these tests. A system that fails is shrunk and printed as a listing.

mod demands;
mod naive;
mod script;
mod systems;

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::Value as Json;

use crate::engine::{Engine, EngineName, EngineOption, Pruning};
use crate::trace::{SavedState, Trace};
use crate::verdict::{Violation, ViolationKind};
use crate::{Check, Cluster, Outcome, Verdict};
use demands::{AnyNode, Demand, Limit, Seen, demand, limit};
use naive::{Naive, NaiveVerdict};
use script::{Do, Rule, Script, Trigger};
use systems::{RandomSystem, random_system, random_system_of_nodes};

/// Systems with more states than this are left out.
const MOST: usize = 1_500;

const THREADS: [usize; 3] = [1, 2, 4];

fn cases() -> u32 {
    std::env::var("DRAGNET_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(300)
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        max_shrink_iters: 20_000,
        max_shrink_time: 120_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// A way to search.
#[derive(Clone, Copy, Debug)]
struct Way {
    engine: EngineName,
    pruning: Pruning,
    seed: u64,
    threads: usize,
    exact: bool,
    depth: Option<u64>,
    /// The system may have infinitely many states.
    endless: bool,
}

impl Way {
    fn new(engine: EngineName, threads: usize) -> Self {
        Self {
            engine,
            pruning: Pruning::Adaptive,
            seed: 0,
            threads,
            exact: false,
            depth: None,
            endless: false,
        }
    }

    fn exact(self) -> Self {
        Self {
            exact: true,
            ..self
        }
    }

    fn pruning(self, pruning: Pruning) -> Self {
        Self { pruning, ..self }
    }

    /// The local engine at every level. Each uses another number of threads.
    fn local(turn: usize) -> impl Iterator<Item = Self> {
        let all = [
            Pruning::Plain,
            Pruning::Coarse,
            Pruning::Refined,
            Pruning::Adaptive,
        ];
        all.into_iter().enumerate().map(move |(at, pruning)| {
            Self::new(EngineName::Local, threads(turn + at)).pruning(pruning)
        })
    }

    /// Whether it may have too much to do: where little is pruned, what cannot happen may have no end.
    fn may_not_end(self) -> bool {
        match self.engine {
            EngineName::Local => {
                self.endless || matches!(self.pruning, Pruning::Plain | Pruning::Coarse)
            }
            EngineName::Depth => self.endless && self.depth.is_none(),
            _ => false,
        }
    }

    fn run(self, mut check: Check<Cluster<AnyNode>>) -> Verdict {
        let engine = Engine::from(self.engine);
        let options = [
            EngineOption::Pruning(self.pruning),
            EngineOption::Walks(20),
            EngineOption::Seed(self.seed.into()),
        ];
        let engine = options.into_iter().fold(engine, |engine, option| {
            engine.with(option).unwrap_or(engine)
        });
        check = check.engine(engine).threads(self.threads);
        if self.exact {
            check = check.exact();
        }
        if let Some(depth) = self.depth {
            check = check.depth(depth);
        }
        if self.engine.is_random() {
            check = check.depth(self.depth.unwrap_or(60));
        }
        let most = if self.may_not_end() { 50 } else { 60_000 };
        check.time(Duration::from_millis(most)).run()
    }
}

fn threads(turn: usize) -> usize {
    THREADS[turn % THREADS.len()]
}

/// The engines that search everything and can judge a system. Each uses another number of threads from turn to turn.
fn ways(system: &RandomSystem, turn: usize) -> Vec<Way> {
    let mut ways = vec![
        Way::new(EngineName::Breadth, threads(turn)),
        Way::new(EngineName::Breadth, threads(turn + 1)).exact(),
        Way::new(EngineName::Depth, threads(turn + 2)),
        Way::new(EngineName::Depth, threads(turn)).exact(),
        Way::new(EngineName::Auto, threads(turn + 1)),
    ];
    if !system.looks_at_the_network() {
        ways.extend(Way::local(turn));
    }
    ways
}

/// The counterexample of a violation that is replayed and found to be one again.
fn replays(
    check: Check<Cluster<AnyNode>>,
    violation: &Violation,
    way: Way,
) -> Result<&Trace, TestCaseError> {
    let Some(counterexample) = &violation.counterexample else {
        return Err(TestCaseError::fail(format!(
            "{way:?}: no counterexample for {:?}",
            violation.kind
        )));
    };
    if let Err(error) = check.replay(&counterexample.trace) {
        return Err(TestCaseError::fail(format!("{way:?}: {error}")));
    }
    Ok(&counterexample.trace)
}

/// Compares the verdict of an engine that searches everything with what the naive explorer found.
fn agrees(
    system: &RandomSystem,
    check: impl Fn() -> Check<Cluster<AnyNode>>,
    naive: &NaiveVerdict,
    mut way: Way,
) -> Result<Verdict, TestCaseError> {
    way.endless = !naive.is_complete;
    let verdict = way.run(check());
    match (&naive.wrong, &naive.unreached, &verdict.outcome) {
        (None, None, Outcome::Holds) => {
            if matches!(way.engine, EngineName::Breadth | EngineName::Depth) {
                let counted = (verdict.states(), verdict.statistics.transitions);
                let expected = (naive.states, naive.transitions);
                prop_assert_eq!(counted, expected, "{:?}: states and transitions", way);
            }
            if way.engine == EngineName::Breadth {
                prop_assert_eq!(verdict.statistics.depth, naive.depth, "{:?}: depth", way);
            }
        }
        (None, Some(property), Outcome::Violated(violation)) => {
            prop_assert_eq!(&violation.kind, &ViolationKind::Unreached, "{:?}", way);
            prop_assert_eq!(&violation.property, property, "{:?}", way);
        }
        (Some((_, what)), _, Outcome::Violated(violation)) if naive.fails_at_the_start => {
            prop_assert!(what.contains(&violation.property), "{way:?}: {violation:?}");
        }
        (Some((length, what)), _, Outcome::Violated(violation)) => {
            let steps = replays(check(), violation, way)?.steps.len() as u64;
            prop_assert!(steps >= *length, "{way:?}: {steps} steps, not {length}");
            // Where states share a fingerprint, a shorter way may be missed.
            let tells_apart = way.exact || system.coarse == Default::default();
            let is_shortest = violation.counterexample.as_ref().unwrap().shortest;
            if tells_apart && (way.engine == EngineName::Breadth || is_shortest) {
                prop_assert_eq!(steps, *length, "{:?}: the length of a shortest one", way);
            }
            if tells_apart && way.engine == EngineName::Breadth {
                prop_assert!(what.contains(&violation.property), "{way:?}: {violation:?}");
            }
        }
        (_, _, Outcome::Inconclusive(_)) if way.may_not_end() => {}
        (_, _, Outcome::Inconclusive(why)) if system.coarse != Default::default() && !way.exact => {
            prop_assert!(why.contains("Hash"), "{way:?}: {why}");
        }
        (wrong, unreached, found) => prop_assert!(
            false,
            "{way:?}: expected {wrong:?} and unreached {unreached:?}, found {found:?}"
        ),
    }
    Ok(verdict)
}

proptest! {
    #![proptest_config(config(cases()))]

    #[test]
    fn every_engine_finds_what_the_naive_explorer_finds(system in random_system(), turn in 0..3_usize) {
        let Some(naive) = Naive::new(&system).explore(MOST) else {
            return Ok(());
        };
        for way in ways(&system, turn) {
            let _ = agrees(&system, || system.check(), &naive, way)?;
        }
    }

    #[test]
    fn a_search_of_parts_finds_what_the_naive_explorer_finds(
        system in random_system_of_nodes(),
        turn in 0..3_usize,
    ) {
        let Some(naive) = Naive::new(&system).explore(MOST) else {
            return Ok(());
        };
        let breadth = agrees(&system, || system.check(), &naive, Way::new(EngineName::Breadth, 1))?;
        for way in Way::local(turn).chain([Way::new(EngineName::Auto, threads(turn))]) {
            let local = agrees(&system, || system.check(), &naive, way)?;
            // Nothing but what happens is made where the network and the faults can be followed exactly.
            let is_exact = way.pruning == Pruning::Refined && system.is_followed_exactly();
            if is_exact && local.holds() && system.coarse == Default::default() {
                let local = local.statistics.local.map(|local| local.local_states);
                let nodes = breadth.statistics.nodes.map(|nodes| nodes.local_states);
                prop_assert_eq!(local, nodes, "{:?}: local states", way);
            }
        }
    }

    #[test]
    fn random_walks_find_only_what_happens(system in random_system(), turn in 0..3_usize) {
        let Some(naive) = Naive::new(&system).explore(MOST) else {
            return Ok(());
        };
        for engine in [EngineName::Random, EngineName::Pct] {
            let way = Way::new(engine, threads(turn));
            let verdict = way.run(system.check());
            prop_assert!(!verdict.holds(), "{way:?}: walks are no proof");
            let Some(violation) = verdict.violation() else {
                prop_assert!(!naive.fails_at_the_start, "{way:?}: it fails at the start");
                continue;
            };
            let Some((length, _)) = &naive.wrong else {
                return Err(TestCaseError::fail(format!("{way:?}: found {violation:?}")));
            };
            if !naive.fails_at_the_start {
                let steps = replays(system.check(), violation, way)?.steps.len() as u64;
                prop_assert!(steps >= *length, "{way:?}: {steps} steps, not {length}");
            }
        }
    }

    #[test]
    fn a_depth_bound_cuts_exactly_what_lies_behind_it(
        system in random_system(),
        bound in 0..10_u64,
        turn in 0..3_usize,
    ) {
        let Some(naive) = Naive::new(&system).explore(MOST) else {
            return Ok(());
        };
        let is_local = |way: &Way| matches!(way.engine, EngineName::Local | EngineName::Auto);
        for mut way in ways(&system, turn) {
            way.depth = Some(bound);
            way.endless = !naive.is_complete;
            let verdict = way.run(system.check());
            let within = naive.wrong.as_ref().is_some_and(|(length, _)| *length <= bound);
            match &verdict.outcome {
                Outcome::Violated(violation) if naive.fails_at_the_start => {
                    prop_assert!(violation.counterexample.is_none(), "{way:?}");
                }
                Outcome::Violated(violation) if violation.kind == ViolationKind::Unreached => {
                    prop_assert!(naive.wrong.is_none(), "{way:?}: {violation:?}");
                    prop_assert_eq!(Some(&violation.property), naive.unreached.as_ref(), "{:?}", way);
                }
                Outcome::Violated(violation) => {
                    prop_assert!(within, "{way:?}: expected nothing up to {bound}: {violation:?}");
                    let steps = replays(system.check(), violation, way)?.steps.len() as u64;
                    prop_assert!(steps <= bound, "{way:?}: {steps} steps within {bound}");
                }
                Outcome::Holds => {
                    prop_assert!(naive.wrong.is_none(), "{way:?}: holds, not {:?}", naive.wrong);
                    prop_assert_eq!(&naive.unreached, &None, "{:?}: holds", way);
                    prop_assert!(naive.depth <= bound || is_local(&way), "{way:?}: holds");
                }
                Outcome::Inconclusive(why) => {
                    if system.coarse == Default::default() && !way.may_not_end() {
                        prop_assert!(!within, "{way:?}: missed {:?}: {why}", naive.wrong);
                    }
                    let complete = naive.wrong.is_none() && naive.depth <= bound;
                    if system.coarse == Default::default() && !is_local(&way) {
                        prop_assert!(!complete, "{way:?}: {why}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_search_from_a_saved_state_finds_what_the_naive_explorer_finds_there(
        system in random_system(),
        at in any::<prop::sample::Index>(),
        turn in 0..3_usize,
    ) {
        let naive = Naive::new(&system);
        let Some(from_the_start) = naive.explore(MOST) else {
            return Ok(());
        };
        if from_the_start.met.is_empty() {
            return Ok(());
        }
        let start = naive.afresh(at.get(&from_the_start.met));
        let saved = naive.save(&start);
        let Some(expected) = naive.explore_from(vec![start], MOST) else {
            return Ok(());
        };
        let check = || system.check().starting_from(&saved).expect("it is a state of the system");
        for way in ways(&system, turn) {
            let _ = agrees(&system, check, &expected, way)?;
        }
    }

    #[test]
    fn a_trace_replays_exactly_where_it_is_a_counterexample_of_the_check(
        system in random_system(),
        other_limits in prop::collection::vec(limit(), 0..3),
        other_demands in prop::collection::vec(demand(), 0..3),
        turn in 0..3_usize,
    ) {
        if Naive::new(&system).explore(MOST).is_none() {
            return Ok(());
        }
        let way = Way::new(EngineName::Breadth, threads(turn));
        let verdict = way.run(system.check());
        let Some(counterexample) = verdict.counterexample() else {
            return Ok(());
        };
        let trace = &counterexample.trace;
        let replay = system.check().replay(trace).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let states: Vec<Vec<Seen>> = replay.states.iter().map(seen).collect();
        let completes = trace.steps.last().is_none_or(|step| step.fingerprint.is_some());
        prop_assert_eq!(states.len(), trace.steps.len() + usize::from(completes));

        let mut bounded = system.clone();
        bounded.limits.clone_from(&other_limits);
        let inside = |limit: &Limit| states.iter().all(|state| limit.is_satisfied(state));
        let expected = other_limits.iter().all(inside);
        let replayed = bounded.check().replay(trace);
        prop_assert_eq!(replayed.is_ok(), expected, "within {:?}: {:?}", other_limits, replayed.err());

        // Failures of the program do not depend on properties; deadlock depends on which deliveries are taken.
        let mut demanding = system.clone();
        demanding.demands.retain(|demand| demand.looks_at_the_network());
        demanding.demands.extend(other_demands.iter().filter(|demand| !demand.looks_at_the_network()));
        demanding.demands.dedup();
        if demanding.looks_at_the_network() == system.looks_at_the_network() {
            let replayed = demanding.check().replay(trace);
            let last = states.last().expect("there is an initial state");
            let by_itself = demanding.demands.iter().find(|demand| {
                !demand.is_reachability() && !demand.looks_at_the_network() && !demand.is_satisfied(last, &[])
            });
            let is_of_nodes = system.demands.iter().any(|demand| {
                demand.name() == trace.property && !demand.looks_at_the_network()
            });
            if completes && is_of_nodes {
                let same = by_itself.is_some_and(|demand| demand.name() == trace.property);
                prop_assert!(same || replayed.is_err(), "{:?}: {:?}", other_demands, replayed);
            } else if !completes {
                prop_assert!(replayed.is_ok(), "{:?}: {:?}", other_demands, replayed);
            }
        }
    }
}

proptest! {
    #![proptest_config(config(cases() / 20 + 1))]

    #[test]
    fn twenty_runs_find_the_same_counterexample(system in random_system()) {
        let Some(naive) = Naive::new(&system).explore(MOST) else {
            return Ok(());
        };
        let mut ways = vec![Way::new(EngineName::Breadth, 1), Way::new(EngineName::Depth, 1)];
        if !system.looks_at_the_network() {
            ways.extend(Way::local(0));
        }
        let endless = !naive.is_complete;
        let ways = ways.into_iter().map(|way| Way { endless, ..way });
        for way in ways.filter(|way| !way.may_not_end()) {
            let mut first = None;
            for run in 0..20 {
                let way = Way { threads: threads(run), ..way };
                let verdict = way.run(system.check());
                let found = verdict.violation().cloned();
                let first = first.get_or_insert_with(|| found.clone());
                prop_assert_eq!(&found, first, "{:?}, run {}", way, run);
            }
        }
    }
}

/// The rule of a node at every level but the highest.
fn rule(on: Trigger, body: &[Do]) -> Rule {
    Rule {
        level: None,
        on,
        body: body.to_vec(),
    }
}

#[test]
fn a_search_of_parts_agrees_with_the_others_where_messages_hash_coarsely() {
    let sender = Script {
        start: vec![Do::Send(1, 1)],
        rules: vec![rule(Trigger::Message(2, None), &[Do::Send(1, 0)])],
        ..Script::idle()
    };
    let receiver = Script {
        rules: vec![
            Rule {
                level: Some(0),
                ..rule(Trigger::Message(0, None), &[Do::Rise(1)])
            },
            rule(Trigger::Call(1), &[Do::Send(2, 2)]),
            rule(Trigger::Message(0, None), &[Do::Assert]),
        ],
        ..Script::idle()
    };
    let mut system = RandomSystem::of([sender, receiver]);
    system.calls[1].0.push(1);
    system.faults = crate::duplicates(1);
    system.coarse.messages = true;
    let naive = Naive::new(&system).explore(MOST).unwrap();
    for way in ways(&system, 0) {
        let _ = agrees(&system, || system.check(), &naive, way).unwrap();
    }
}

/// A deadlock in which also too much is in flight is a violation of the latter.
#[test]
fn a_walk_is_not_shortened_to_an_execution_that_ends_otherwise() {
    let sender = Script {
        start: vec![Do::Send(0, 2), Do::Send(0, 0)],
        rules: vec![rule(
            Trigger::Message(0, None),
            &[Do::Send(1, 2), Do::Rise(1)],
        )],
        ..Script::idle()
    };
    let mut system = RandomSystem::of([sender, Script::idle()]);
    system.calls[1].0.push(0);
    system.demands = vec![Demand::AtMostInFlight(2, 1), Demand::NoDeadlock];
    for seed in 0..50 {
        let way = Way::new(EngineName::Random, 1);
        let verdict = Way { seed, ..way }.run(system.check());
        let violation = verdict.violation().expect("every walk ends in a violation");
        replays(system.check(), violation, way).unwrap();
    }
}

/// How many of so many systems have each trait that the tests are after.
fn counted(systems: u32) -> BTreeMap<&'static str, u32> {
    let mut runner = TestRunner::deterministic();
    let strategy = random_system();
    let mut counts = BTreeMap::new();
    for _ in 0..systems {
        let tree = strategy.new_tree(&mut runner).expect("a system");
        let system = tree.current();
        let mut count = |what| *counts.entry(what).or_default() += 1;
        let Some(naive) = Naive::new(&system).explore(MOST) else {
            count("too large");
            continue;
        };
        count(match (&naive.wrong, &naive.unreached) {
            (None, None) => "holds",
            (None, Some(_)) => "unreached",
            (Some(_), _) => "violated",
        });
        for what in naive.wrong.iter().flat_map(|(_, what)| what) {
            let kinds = [
                "panic",
                "assertion",
                "deadlock",
                "Disk",
                "InFlight",
                "Agree",
                "Boxed",
            ];
            for kind in kinds.into_iter().filter(|kind| what.contains(kind)) {
                count(kind);
            }
        }
        if naive.wrong.as_ref().is_some_and(|(length, _)| *length > 3) {
            count("deep violation");
        }
        if naive.states > 100 {
            count("over 100 states");
        }
        if system.scripts.len() > 3 && naive.states > 20 {
            count("over 3 nodes and 20 states");
        }
        if !system.looks_at_the_network() && naive.states > 20 {
            count("for a search of parts");
        }
        if !system.limits.is_empty() && naive.states > 10 {
            count("bounded");
        }
    }
    counts
}

#[test]
fn random_systems_show_what_they_are_meant_to() {
    let counts = counted(1_000);
    println!("{counts:#?}");
    for (what, least) in [
        ("holds", 150),
        ("violated", 150),
        ("over 100 states", 100),
        ("over 3 nodes and 20 states", 30),
        ("for a search of parts", 100),
        ("bounded", 30),
        ("unreached", 10),
        ("panic", 10),
        ("assertion", 10),
        ("deadlock", 10),
        ("Disk", 2),
        ("InFlight", 5),
        ("Agree", 2),
        ("Boxed", 2),
        ("deep violation", 2),
    ] {
        let count = counts.get(what).copied().unwrap_or_default();
        assert!(
            count >= least,
            "{what}: {count} of 1,000 systems, not {least}"
        );
    }
}

/// The nodes of a saved state as limits and demands see them.
fn seen(state: &SavedState) -> Vec<Seen> {
    let number = |value: &Json, field: &str| value[field].as_u64().expect(field) as u8;
    let nodes = state.nodes.iter().map(|node| {
        let value = |state: &Json| match state.get("Right") {
            Some(boxed) => boxed["inner"][0].clone(),
            None => state["Left"].clone(),
        };
        let either = node.state.as_ref().or(node.durable.as_ref());
        Seen {
            is_boxed: either.is_some_and(|state| state.get("Right").is_some()),
            up: node.state.as_ref().map(value).map(|value| {
                let of = |field| number(&value, field);
                (of("level"), of("mark"), of("below"))
            }),
            disk: node
                .durable
                .as_ref()
                .map(value)
                .map(|value| number(&value, "level")),
        }
    });
    nodes.collect()
}
