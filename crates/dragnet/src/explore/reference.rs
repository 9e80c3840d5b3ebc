//! Every engine against a naive explorer on random direct systems: small graphs, some of whose states share a hash.
//!
//! `DRAGNET_CASES` sizes these tests. A system that fails is shrunk and printed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};

use proptest::collection::vec;
use proptest::prelude::*;

use crate::engine::{Engine, EngineName, EngineOption};
use crate::system::{Actor, ComponentId, EventKind};
use crate::verdict::ViolationKind;
use crate::{Check, Failure, Outcome, System, Verdict};

const PLACES: u8 = 12;

/// A state: a place in a graph. Where its hash is coarse, three places share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    at: u8,
    coarse: bool,
}

impl Hash for Place {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match self.coarse {
            true => (self.at / 3).hash(hasher),
            false => self.at.hash(hasher),
        }
    }
}

/// A step of the graph; without a place that it leads to, the program fails in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edge {
    from: u8,
    kind: EventKind,
    to: Option<u8>,
    panics: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demand {
    Never(u8),
    PanicsAt(u8),
    NoDeadlock,
    Reaches(u8),
}

#[derive(Clone, Debug)]
struct Graph {
    initial: Vec<u8>,
    edges: Vec<Edge>,
    /// Where somebody waits.
    waiting: BTreeSet<u8>,
    demands: Vec<Demand>,
    outside: BTreeSet<u8>,
    /// Where the bound panics.
    bound_panics_at: Option<u8>,
    coarse: bool,
}

fn graph() -> impl Strategy<Value = Graph> {
    let place = || 0..PLACES;
    let kind = prop_oneof![
        6 => Just(EventKind::Progress),
        1 => Just(EventKind::Idle),
        1 => Just(EventKind::Fault),
    ];
    let to = prop_oneof![15 => place().prop_map(Some), 1 => Just(None)];
    let edge = (place(), kind, to, any::<bool>()).prop_map(|(from, kind, to, panics)| Edge {
        from,
        kind,
        to,
        panics,
    });
    let demand = prop_oneof![
        4 => place().prop_map(Demand::Never),
        1 => place().prop_map(Demand::PanicsAt),
        2 => Just(Demand::NoDeadlock),
        2 => place().prop_map(Demand::Reaches),
    ];
    (
        vec(place(), 0..3),
        vec(edge, 0..25),
        prop::collection::btree_set(place(), 0..4),
        vec(demand, 0..4),
        prop::collection::btree_set(place(), 0..3),
        prop::option::weighted(0.1, place()),
        prop::bool::weighted(0.3),
    )
        .prop_map(
            |(initial, edges, waiting, mut demands, outside, bound_panics_at, coarse)| {
                let mut known = Vec::new();
                demands.retain(|demand| {
                    let new = !known.contains(demand);
                    known.push(*demand);
                    new
                });
                Graph {
                    initial,
                    edges,
                    waiting,
                    demands,
                    outside,
                    bound_panics_at,
                    coarse,
                }
            },
        )
}

impl System for Graph {
    type State = Place;
    /// The place of an edge in the list.
    type Event = usize;

    fn initial(&self) -> Vec<Place> {
        let initial = self.initial.iter();
        initial.map(|&at| self.place(at)).collect()
    }

    fn events(&self, state: &Place, out: &mut Vec<usize>) {
        let edges = self.edges.iter().enumerate();
        out.extend(
            edges
                .filter(|(_, edge)| edge.from == state.at)
                .map(|(at, _)| at),
        );
    }

    fn next(&self, _state: &Place, event: &usize) -> Result<Place, Failure> {
        let Edge { to, panics, .. } = self.edges[*event];
        match to {
            Some(at) => Ok(self.place(at)),
            None if panics => panic!("the graph says so"),
            None => Err(Failure::assertion("the graph says so")),
        }
    }

    fn kind(&self, _state: &Place, event: &usize) -> EventKind {
        self.edges[*event].kind
    }

    fn waiting(&self, state: &Place) -> Vec<Actor> {
        let waits = self.waiting.contains(&state.at);
        waits.then_some(ComponentId(0).into()).into_iter().collect()
    }
}

impl Demand {
    fn name(self) -> String {
        match self {
            Self::NoDeadlock => "deadlock".to_owned(),
            _ => format!("{self:?}"),
        }
    }
}

impl Graph {
    fn place(&self, at: u8) -> Place {
        Place {
            at,
            coarse: self.coarse,
        }
    }

    fn check(&self) -> Check<Self> {
        let mut check = Check::new(self.clone()).named("graph");
        for &demand in &self.demands {
            let name = demand.name();
            check = match demand {
                Demand::Never(place) => check.always(name, move |state| state.at != place),
                Demand::PanicsAt(place) => check.always(name, move |state| {
                    assert_ne!(state.at, place, "the property is not defined here");
                    true
                }),
                Demand::NoDeadlock => check.deadlock_free(),
                Demand::Reaches(place) => check.reachable(name, move |state| state.at == place),
            };
        }
        let (outside, panics_at) = (self.outside.clone(), self.bound_panics_at);
        check.within("inside", move |state| {
            assert_ne!(Some(state.at), panics_at, "the bound is not defined here");
            !outside.contains(&state.at)
        })
    }

    /// Breadth first, place by place.
    fn explore(&self) -> Naive {
        let mut naive = Naive::default();
        let mut depths: BTreeMap<u8, u64> = BTreeMap::new();
        let mut queue = VecDeque::new();
        if let Some(bad) = self.bound_panics_at
            && self.initial.contains(&bad)
        {
            naive.note(0, "panic");
            return naive;
        }
        for &at in &self.initial {
            self.arrive(at, 0, &mut depths, &mut queue, &mut naive);
        }
        while let Some(at) = queue.pop_front() {
            let depth = depths[&at];
            naive.depth = depth;
            let edges: Vec<&Edge> = self.edges.iter().filter(|edge| edge.from == at).collect();
            let stuck = edges.iter().all(|edge| edge.kind != EventKind::Progress);
            if self.demands.contains(&Demand::NoDeadlock) && stuck && self.waiting.contains(&at) {
                naive.note(depth, "deadlock");
            }
            for edge in edges {
                match edge.to {
                    None => {
                        naive.transitions += 1;
                        let failure = if edge.panics { "panic" } else { "assertion" };
                        naive.note(depth + 1, failure);
                    }
                    Some(to) if Some(to) == self.bound_panics_at => {
                        naive.transitions += 1;
                        naive.note(depth + 1, "panic");
                    }
                    Some(to) if self.outside.contains(&to) => {}
                    Some(to) => {
                        naive.transitions += 1;
                        self.arrive(to, depth + 1, &mut depths, &mut queue, &mut naive);
                    }
                }
            }
        }
        naive.states = depths.len() as u64;
        let reached = |place: &u8| depths.contains_key(place);
        let unreached = self.demands.iter().find(|demand| match demand {
            Demand::Reaches(place) => !reached(place),
            _ => false,
        });
        naive.unreached = unreached.map(|demand| demand.name());
        naive
    }

    fn arrive(
        &self,
        at: u8,
        depth: u64,
        depths: &mut BTreeMap<u8, u64>,
        queue: &mut VecDeque<u8>,
        naive: &mut Naive,
    ) {
        if self.outside.contains(&at) || depths.contains_key(&at) {
            return;
        }
        depths.insert(at, depth);
        queue.push_back(at);
        let violated = self.demands.iter().find(
            |demand| matches!(demand, Demand::Never(bad) | Demand::PanicsAt(bad) if *bad == at),
        );
        if let Some(demand) = violated {
            naive.note(depth, &demand.name());
        }
    }
}

#[derive(Debug, Default)]
struct Naive {
    states: u64,
    transitions: u64,
    depth: u64,
    /// How short an execution to something wrong can be, and what can be wrong at its end.
    wrong: Option<(u64, BTreeSet<String>)>,
    unreached: Option<String>,
}

impl Naive {
    fn note(&mut self, length: u64, what: &str) {
        if self.wrong.as_ref().is_none_or(|(known, _)| length < *known) {
            self.wrong = Some((length, BTreeSet::new()));
        }
        if let Some((known, all)) = &mut self.wrong
            && *known == length
        {
            all.insert(what.to_owned());
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Way {
    engine: EngineName,
    threads: usize,
    exact: bool,
    depth: Option<u64>,
}

impl Way {
    /// Every engine, with fingerprints and whole states.
    fn all(turn: usize) -> impl Iterator<Item = Self> {
        let engines = [EngineName::Breadth, EngineName::Depth, EngineName::Auto];
        let all = engines
            .into_iter()
            .flat_map(|engine| [(engine, false), (engine, true)]);
        all.enumerate().map(move |(at, (engine, exact))| Self {
            engine,
            threads: [1, 2, 4][(turn + at) % 3],
            exact,
            depth: None,
        })
    }

    fn run(self, graph: &Graph) -> Verdict {
        let mut check = graph.check().engine(self.engine).threads(self.threads);
        if self.exact {
            check = check.exact();
        }
        if let Some(depth) = self.depth {
            check = check.depth(depth);
        }
        if self.engine.is_random() {
            let engine = Engine::from(self.engine).with(EngineOption::Walks(20));
            let engine = engine.expect("it makes walks");
            check = check.engine(engine).depth(self.depth.unwrap_or(40));
        }
        check.run()
    }
}

/// The length of the counterexample, which replays.
fn replayed(graph: &Graph, verdict: &Verdict, way: Way) -> Result<u64, TestCaseError> {
    let fail = |what: String| TestCaseError::fail(format!("{way:?}: {what}"));
    let counterexample = verdict.counterexample();
    let counterexample = counterexample.ok_or_else(|| fail(format!("{:?}", verdict.outcome)))?;
    let replay = graph.check().replay(&counterexample.trace);
    replay.map_err(|error| fail(error.to_string()))?;
    Ok(counterexample.len() as u64)
}

fn cases() -> u32 {
    let cases = std::env::var("DRAGNET_CASES").ok();
    let cases = cases.and_then(|text| text.parse().ok());
    cases.unwrap_or(300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_engine_finds_what_the_naive_explorer_finds_in_a_graph(graph in graph(), turn in 0..3_usize) {
        let naive = graph.explore();
        for way in Way::all(turn) {
            let verdict = way.run(&graph);
            let breadth = matches!(way.engine, EngineName::Breadth | EngineName::Auto);
            match (&naive.wrong, &naive.unreached, &verdict.outcome) {
                (None, None, Outcome::Holds) => {
                    let counted = (verdict.states(), verdict.statistics.transitions);
                    prop_assert_eq!(counted, (naive.states, naive.transitions), "{:?}", way);
                    if breadth {
                        prop_assert_eq!(verdict.statistics.depth, naive.depth, "{:?}", way);
                    }
                }
                (None, Some(property), Outcome::Violated(violation)) => {
                    prop_assert_eq!(&violation.kind, &ViolationKind::Unreached, "{:?}", way);
                    prop_assert_eq!(&violation.property, property, "{:?}", way);
                }
                (Some((length, what)), _, Outcome::Violated(violation)) => {
                    let steps = replayed(&graph, &verdict, way)?;
                    prop_assert!(steps >= *length, "{way:?}: {steps} steps, not {length}");
                    // Where states share a fingerprint, a shorter way may be missed.
                    let tells_apart = way.exact || !graph.coarse;
                    if tells_apart && (breadth || verdict.counterexample().unwrap().shortest) {
                        prop_assert_eq!(steps, *length, "{:?}", way);
                    }
                    if tells_apart && breadth {
                        prop_assert!(what.contains(&violation.property), "{way:?}: {violation:?}");
                    }
                }
                (_, _, Outcome::Inconclusive(why)) if graph.coarse && !way.exact => {
                    prop_assert!(why.contains("Hash"), "{way:?}: {why}");
                }
                (wrong, unreached, found) => prop_assert!(
                    false,
                    "{way:?}: expected {wrong:?} and unreached {unreached:?}, found {found:?}"
                ),
            }
        }
    }

    #[test]
    fn a_depth_bound_cuts_exactly_what_lies_behind_it_in_a_graph(
        graph in graph(),
        bound in 0..6_u64,
        turn in 0..3_usize,
    ) {
        let naive = graph.explore();
        for mut way in Way::all(turn) {
            way.depth = Some(bound);
            let verdict = way.run(&graph);
            let within = naive.wrong.as_ref().is_some_and(|(length, _)| *length <= bound);
            let complete = naive.wrong.is_none() && naive.depth <= bound;
            match &verdict.outcome {
                Outcome::Violated(violation) if violation.kind == ViolationKind::Unreached => {
                    prop_assert!(complete, "{way:?}: {violation:?}");
                    prop_assert_eq!(Some(&violation.property), naive.unreached.as_ref(), "{:?}", way);
                }
                Outcome::Violated(violation) => {
                    prop_assert!(within, "{way:?}: expected nothing up to {bound}: {violation:?}");
                    let steps = replayed(&graph, &verdict, way)?;
                    prop_assert!(steps <= bound, "{way:?}: {steps} steps within {bound}");
                }
                Outcome::Holds => {
                    prop_assert!(complete && naive.unreached.is_none(), "{way:?}: holds, not {naive:?}");
                }
                Outcome::Inconclusive(why) if graph.coarse && !way.exact && why.contains("Hash") => {}
                Outcome::Inconclusive(why) => {
                    prop_assert!(!within && !complete, "{way:?}: {why}, not {naive:?}");
                }
            }
        }
    }

    #[test]
    fn random_walks_find_only_what_happens_in_a_graph(graph in graph(), turn in 0..3_usize) {
        let naive = graph.explore();
        for engine in [EngineName::Random, EngineName::Pct] {
            let way = Way { engine, threads: [1, 2, 4][turn], exact: false, depth: None };
            let verdict = way.run(&graph);
            prop_assert!(!verdict.holds(), "{way:?}: walks are no proof");
            if verdict.violation().is_some() {
                let steps = replayed(&graph, &verdict, way)?;
                let shortest = naive.wrong.as_ref().map(|(length, _)| *length);
                prop_assert!(shortest.is_some_and(|length| length <= steps), "{way:?}: not {naive:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases() / 20 + 1, max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn twenty_runs_find_the_same_counterexample_in_a_graph(graph in graph()) {
        for engine in [EngineName::Breadth, EngineName::Depth] {
            let mut first = None;
            for run in 0..20 {
                let way = Way { engine, threads: [1, 2, 4][run % 3], exact: true, depth: None };
                let found = way.run(&graph).violation().cloned();
                let first = first.get_or_insert_with(|| found.clone());
                prop_assert_eq!(&found, first, "{:?}, run {}", way, run);
            }
        }
    }
}
