//! The core against a recursive depth-first search on random graphs. `DRAGNET_CASES` sizes these tests.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::ops::ControlFlow;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::{Advance, Branch, Decision, DepthFirst, Edge, End, Stack, StateAt, Visitor};
use crate::explore::path::{Path, Wrong};
use crate::explore::visited::{Exact, Fingerprints, Visit, Visited};
use crate::explore::walk::{Next, Space};
use crate::property::{Bound, Properties};
use crate::tables::{Domain, Pair, Single};
use crate::trace::{Fingerprint, Key, scatter};
use crate::{Failure, System};

const VERTICES: u8 = 12;

/// A state of a graph. Where its hash is coarse, three share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Vertex {
    at: u8,
    coarse: bool,
}

impl Hash for Vertex {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match self.coarse {
            true => (self.at / 3).hash(hasher),
            false => self.at.hash(hasher),
        }
    }
}

#[derive(Clone, Debug)]
struct Graph {
    initial: Vec<u8>,
    edges: Vec<(u8, u8)>,
    /// What a bound of the system leaves out.
    outside: BTreeSet<u8>,
    coarse: bool,
}

fn graph() -> impl Strategy<Value = Graph> {
    let vertex = || 0..VERTICES;
    (
        vec(vertex(), 1..3),
        vec((vertex(), vertex()), 0..40),
        btree_set(vertex(), 0..3),
        prop::bool::weighted(0.3),
    )
        .prop_map(|(initial, edges, outside, coarse)| Graph {
            initial,
            edges,
            outside,
            coarse,
        })
}

impl System for Graph {
    type State = Vertex;
    /// The place of an edge in the list.
    type Event = usize;

    fn initial(&self) -> Vec<Vertex> {
        self.initial.iter().map(|&at| self.vertex(at)).collect()
    }

    fn events(&self, state: &Vertex, out: &mut Vec<usize>) {
        let edges = self.edges.iter().enumerate();
        out.extend(
            edges
                .filter(|(_, edge)| edge.0 == state.at)
                .map(|(at, _)| at),
        );
    }

    fn next(&self, _state: &Vertex, event: &usize) -> Result<Vertex, Failure> {
        Ok(self.vertex(self.edges[*event].1))
    }
}

impl Graph {
    fn vertex(&self, at: u8) -> Vertex {
        Vertex {
            at,
            coarse: self.coarse,
        }
    }

    fn successors(&self, at: u8) -> impl Iterator<Item = u8> {
        let edges = self.edges.iter().filter(move |edge| edge.0 == at);
        edges.map(|edge| edge.1)
    }

    fn reachable(&self) -> BTreeSet<u8> {
        let mut open: Vec<u8> = self.initial.clone();
        let mut reachable = BTreeSet::new();
        while let Some(at) = open.pop() {
            if !self.outside.contains(&at) && reachable.insert(at) {
                open.extend(self.successors(at));
            }
        }
        reachable
    }

    /// Where a path leads.
    fn end_of(&self, path: &Path) -> u8 {
        let mut at = self.initial[path.start];
        for &position in &path.events {
            at = self.successors(at).nth(position).expect("an enabled event");
        }
        at
    }

    /// Runs `test` with the space of this graph, and a branch for each initial state.
    fn explored<R>(&self, test: impl FnOnce(&Space<'_, Self>, Vec<Branch<Vertex>>) -> R) -> R {
        let outside = self.outside.clone();
        let within = [Bound {
            name: "inside".to_owned(),
            inside: Box::new(move |_: &Self, state: &Vertex| !outside.contains(&state.at)),
            local: None,
        }];
        let space = Space {
            system: self,
            properties: &Properties::new(Vec::new()),
            within: &within,
            restriction: None,
            key: Key::default(),
            domain: &Domain::new(1),
            first_worker: 0,
            ends_at_first: false,
        };
        let initial = space.initial();
        let initial = initial.unwrap_or_else(|_| panic!("nothing fails in a graph"));
        let root = |(start, state): (usize, Vertex)| {
            let fingerprint = self.fingerprint(&state, space.key);
            Branch::rooted(Path::starting(start), state, fingerprint)
        };
        let roots = initial.into_iter().map(root).collect();
        test(&space, roots)
    }
}

/// What happens on a depth-first walk.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Enter(u8, u64),
    /// From one state to another, with the depth of that where it is on the stack.
    Edge(u8, u8, Edge, Option<u64>),
    Cut(u8),
    Leave(u8, End),
}

/// The obvious depth-first search.
struct Recursive<'a> {
    graph: &'a Graph,
    bound: Option<u64>,
    /// Whether states with one hash are one.
    merges: bool,
    /// The least depth of each state so far.
    depths: BTreeMap<u8, u64>,
    stack: Vec<u8>,
    steps: Vec<Step>,
}

impl Recursive<'_> {
    fn of(graph: &Graph, bound: Option<u64>, is_exact: bool) -> Vec<Step> {
        let mut search = Recursive {
            graph,
            bound,
            merges: graph.coarse && !is_exact,
            depths: BTreeMap::new(),
            stack: Vec::new(),
            steps: Vec::new(),
        };
        for &root in &graph.initial {
            if !graph.outside.contains(&root) && !search.is_visited(root, 0) {
                search.visit(root, 0);
            }
        }
        search.steps
    }

    fn identity(&self, at: u8) -> u8 {
        if self.merges { at / 3 } else { at }
    }

    fn is_visited(&self, at: u8, depth: u64) -> bool {
        let known = self.depths.get(&self.identity(at));
        known.is_some_and(|&known| self.bound.is_none() || known <= depth)
    }

    fn visit(&mut self, at: u8, depth: u64) {
        let identity = self.identity(at);
        self.depths.insert(identity, depth);
        self.stack.push(identity);
        self.steps.push(Step::Enter(at, depth));
        let all: Vec<u8> = self.graph.successors(at).collect();
        let inside = |to: &u8| !self.graph.outside.contains(to);
        let successors: Vec<u8> = all.iter().copied().filter(inside).collect();
        let is_cut = self.bound == Some(depth);
        for &to in &successors {
            if is_cut {
                if !self.depths.contains_key(&self.identity(to)) {
                    self.steps.push(Step::Cut(to));
                }
                continue;
            }
            let mut stack = self.stack.iter();
            let place = stack.position(|&known| known == self.identity(to));
            let edge = match self.is_visited(to, depth + 1) {
                true if place.is_some() => Edge::OnStack,
                true => Edge::Visited,
                false => Edge::New,
            };
            let place = place.map(|place| place as u64);
            let place = place.filter(|_| edge == Edge::OnStack);
            self.steps.push(Step::Edge(at, to, edge, place));
            if edge == Edge::New {
                self.visit(to, depth + 1);
            }
        }
        self.stack.pop();
        let end = match () {
            () if all.is_empty() => End::NothingEnabled,
            () if is_cut || successors.is_empty() => End::Cut,
            () => End::Expanded,
        };
        self.steps.push(Step::Leave(at, end));
    }
}

/// Records a walk of the core, and follows each path that it reports.
struct Recorder<'a> {
    graph: &'a Graph,
    bound: Option<u64>,
    steps: Vec<Step>,
}

impl Visitor<Graph> for Recorder<'_> {
    const SEES_EDGES: bool = true;
    const TRACKS_STACK: bool = true;

    fn enter(&mut self, stack: &Stack<Vertex>, _visit: Visit) -> ControlFlow<Wrong, Decision> {
        let at = stack.top();
        assert_eq!(self.graph.end_of(&stack.path()), at.state.at);
        let place = stack.place(at.state, at.fingerprint);
        assert_eq!(place, Some(stack.len() - 1), "the top is on the stack");
        self.steps.push(Step::Enter(at.state.at, at.depth));
        let is_at_bound = self.bound == Some(at.depth);
        ControlFlow::Continue(match is_at_bound {
            true => Decision::Cut,
            false => Decision::Expand,
        })
    }

    fn edge(
        &mut self,
        stack: &Stack<Vertex>,
        to: StateAt<'_, Vertex>,
        position: usize,
        edge: Edge,
    ) -> ControlFlow<Wrong> {
        let from = stack.top().state.at;
        let taken = self.graph.successors(from).nth(position);
        assert_eq!(taken, Some(to.state.at));
        let place = (edge == Edge::OnStack).then_some(to.depth);
        self.steps.push(Step::Edge(from, to.state.at, edge, place));
        ControlFlow::Continue(())
    }

    fn cut(&mut self, to: Next<Vertex>, _fingerprint: Fingerprint) {
        let to = to.expect("nothing fails in a graph");
        self.steps.push(Step::Cut(to.at));
    }

    fn leave(&mut self, stack: &Stack<Vertex>, end: End) -> ControlFlow<Wrong> {
        self.steps.push(Step::Leave(stack.top().state.at, end));
        ControlFlow::Continue(())
    }
}

/// A plain search: it only counts.
#[derive(Default)]
struct Entered(Vec<u8>);

impl Visitor<Graph> for Entered {
    fn enter(&mut self, stack: &Stack<Vertex>, _visit: Visit) -> ControlFlow<Wrong, Decision> {
        self.0.push(stack.top().state.at);
        ControlFlow::Continue(Decision::Expand)
    }
}

/// Walks branches one after the other, `states` at a time.
fn walk<V: Visited<Graph>>(
    space: &Space<'_, Graph>,
    visited: &V,
    roots: Vec<Branch<Vertex>>,
    is_bounded: bool,
    states: u32,
    visitor: &mut impl Visitor<Graph>,
) {
    let mut walk = DepthFirst::new(space, visited, is_bounded);
    for root in roots {
        walk.begin(root);
        while !matches!(walk.advance(visitor, states), Advance::Finished) {}
    }
}

/// Keeps some states besides those on the stack, and forgets others at random.
struct Cache {
    capacity: usize,
    /// Whether each state is on the stack.
    states: RefCell<HashMap<Fingerprint, bool>>,
    draws: Cell<u64>,
}

impl Cache {
    fn below(&self, end: usize) -> usize {
        self.draws.set(self.draws.get() + 1);
        scatter(self.draws.get()) as usize % end
    }
}

impl Visited<Graph> for Cache {
    const IS_EXACT: bool = false;
    const EVICTS: bool = true;

    fn prefetch(&self, _fingerprint: Fingerprint) {}

    fn examine(&self, _state: &Vertex, _fingerprint: Fingerprint) {}

    fn examines_any(&self, _fingerprints: &[Fingerprint]) -> bool {
        false
    }

    fn visit(
        &self,
        _state: &Vertex,
        fingerprint: Fingerprint,
        _depth: u64,
    ) -> Result<Visit, Failure> {
        let mut states = self.states.borrow_mut();
        if states.contains_key(&fingerprint) {
            return Ok(Visit::Known);
        }
        states.insert(fingerprint, true);
        Ok(Visit::New)
    }

    fn contains(&self, _state: &Vertex, fingerprint: Fingerprint, _depth: u64) -> bool {
        self.contains_fingerprint(fingerprint)
    }

    fn contains_fingerprint(&self, fingerprint: Fingerprint) -> bool {
        self.states.borrow().contains_key(&fingerprint)
    }

    fn release(&self, _state: &Vertex, fingerprint: Fingerprint) {
        let mut states = self.states.borrow_mut();
        let on_stack = states.insert(fingerprint, false);
        assert_eq!(on_stack, Some(true), "it was on the stack until now");
        let left = states.iter().filter(|(_, on_stack)| !**on_stack);
        let mut left: Vec<Fingerprint> = left.map(|(fingerprint, _)| *fingerprint).collect();
        left.sort_unstable();
        while left.len() > self.capacity {
            let evicted = left.swap_remove(self.below(left.len()));
            states.remove(&evicted);
        }
    }
}

fn cases() -> u32 {
    let cases = std::env::var("DRAGNET_CASES").ok();
    let cases = cases.and_then(|text| text.parse().ok());
    cases.unwrap_or(2_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_walk_takes_the_steps_of_a_recursive_search(
        graph in graph(),
        bound in prop::option::of(0..6_u64),
        states in 1..5_u32,
    ) {
        let record = |is_exact: bool| graph.explored(|space, roots| {
            let mut recorder = Recorder { graph: &graph, bound, steps: Vec::new() };
            let domain = Domain::new(1);
            let is_bounded = bound.is_some();
            match (is_exact, is_bounded) {
                (true, _) => {
                    let visited = Exact::new(&domain);
                    walk(space, &visited, roots, is_bounded, states, &mut recorder);
                }
                (false, true) => {
                    let visited = Fingerprints::<Graph, Pair>::new(&domain, None);
                    walk(space, &visited, roots, is_bounded, states, &mut recorder);
                }
                (false, false) => {
                    let visited = Fingerprints::<Graph, Single>::new(&domain, None);
                    walk(space, &visited, roots, is_bounded, states, &mut recorder);
                }
            }
            recorder.steps
        });
        for is_exact in [false, true] {
            prop_assert_eq!(record(is_exact), Recursive::of(&graph, bound, is_exact));
        }
    }

    #[test]
    fn a_plain_search_enters_the_same_states_in_the_same_order(graph in graph()) {
        let domain = Domain::new(1);
        let visited = Fingerprints::<Graph, Single>::new(&domain, None);
        let mut entered = Entered::default();
        graph.explored(|space, roots| walk(space, &visited, roots, false, 100, &mut entered));
        let steps = Recursive::of(&graph, None, false);
        let expected = steps.iter().filter_map(|step| match step {
            Step::Enter(at, _) => Some(*at),
            _ => None,
        });
        prop_assert_eq!(entered.0, expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_set_that_evicts_states_misses_none_and_keeps_those_on_the_stack(
        graph in graph(),
        capacity in 0..6_usize,
        seed in any::<u64>(),
    ) {
        let graph = Graph { coarse: false, edges: graph.edges.into_iter().take(20).collect(), ..graph };
        let cache = Cache { capacity, states: RefCell::default(), draws: Cell::new(seed >> 1) };
        let mut recorder = Recorder { graph: &graph, bound: None, steps: Vec::new() };
        graph.explored(|space, roots| walk(space, &cache, roots, false, 7, &mut recorder));
        let mut stack = Vec::new();
        let mut entered = BTreeSet::new();
        for step in recorder.steps {
            match step {
                Step::Enter(at, depth) => {
                    prop_assert_eq!(depth, stack.len() as u64);
                    prop_assert!(!stack.contains(&at), "{} is entered twice on {:?}", at, stack);
                    entered.insert(at);
                    stack.push(at);
                }
                Step::Edge(from, to, edge, place) => {
                    prop_assert_eq!(stack.last(), Some(&from));
                    let on_stack = stack.iter().position(|&at| at == to);
                    prop_assert_eq!(on_stack.map(|place| place as u64), place);
                    prop_assert_eq!(on_stack.is_some(), edge == Edge::OnStack);
                }
                Step::Leave(at, _) => prop_assert_eq!(stack.pop(), Some(at)),
                Step::Cut(_) => prop_assert!(false, "there is no bound"),
            }
        }
        prop_assert_eq!(entered, graph.reachable());
    }

    #[test]
    fn walks_that_share_branches_enter_every_state_once(graph in graph(), splits in vec(any::<bool>(), 40)) {
        let graph = Graph { coarse: false, ..graph };
        let domain = Domain::new(1);
        let visited = Fingerprints::<Graph, Single>::new(&domain, None);
        let mut recorder = Recorder { graph: &graph, bound: None, steps: Vec::new() };
        let mut splits = splits.into_iter();
        graph.explored(|space, mut branches| {
            let mut walk = DepthFirst::new(space, &visited, false);
            while let Some(branch) = branches.pop() {
                walk.begin(branch);
                while !matches!(walk.advance(&mut recorder, 1), Advance::Finished) {
                    if splits.next().unwrap_or(false) {
                        branches.extend(walk.split());
                    }
                }
            }
        });
        let entered: Vec<u8> = recorder.steps.iter().filter_map(|step| match step {
            Step::Enter(at, _) => Some(*at),
            _ => None,
        }).collect();
        prop_assert_eq!(entered.len(), graph.reachable().len());
        prop_assert_eq!(entered.into_iter().collect::<BTreeSet<_>>(), graph.reachable());
    }
}

/// The steps in a graph without anything special, from its vertex 0.
fn steps(edges: &[(u8, u8)], outside: &[u8], bound: Option<u64>) -> Vec<Step> {
    let graph = Graph {
        initial: vec![0],
        edges: edges.to_vec(),
        outside: outside.iter().copied().collect(),
        coarse: false,
    };
    let mut recorder = Recorder {
        graph: &graph,
        bound,
        steps: Vec::new(),
    };
    let domain = Domain::new(1);
    let visited = Fingerprints::<Graph, Pair>::new(&domain, None);
    graph.explored(|space, roots| {
        walk(space, &visited, roots, bound.is_some(), 1, &mut recorder);
    });
    recorder.steps
}

#[test]
fn states_are_left_in_post_order_and_edges_say_where_they_lead() {
    use Step::{Enter, Leave};
    let edge = |from, to, edge, depth| Step::Edge(from, to, edge, depth);
    assert_eq!(
        steps(&[(0, 1), (1, 2), (2, 0), (1, 3), (0, 3)], &[], None),
        [
            Enter(0, 0),
            edge(0, 1, Edge::New, None),
            Enter(1, 1),
            edge(1, 2, Edge::New, None),
            Enter(2, 2),
            edge(2, 0, Edge::OnStack, Some(0)),
            Leave(2, End::Expanded),
            edge(1, 3, Edge::New, None),
            Enter(3, 2),
            Leave(3, End::NothingEnabled),
            Leave(1, End::Expanded),
            edge(0, 3, Edge::Visited, None),
            Leave(0, End::Expanded),
        ]
    );
}

#[test]
fn a_state_whose_successors_a_bound_left_out_is_no_state_without_any() {
    let ends = |outside: &[u8], bound| {
        let steps = steps(&[(0, 1), (0, 2), (2, 3)], outside, bound);
        let ends = steps.into_iter().filter_map(|step| match step {
            Step::Leave(at, end) => Some((at, end)),
            _ => None,
        });
        ends.collect::<Vec<_>>()
    };
    let (nothing, cut, expanded) = (End::NothingEnabled, End::Cut, End::Expanded);
    let unbounded = [(1, nothing), (3, nothing), (2, expanded), (0, expanded)];
    assert_eq!(ends(&[], None), unbounded);
    assert_eq!(ends(&[], Some(1)), [(1, nothing), (2, cut), (0, expanded)]);
    assert_eq!(ends(&[3], None), [(1, nothing), (2, cut), (0, expanded)]);
    assert_eq!(ends(&[1, 2], None), [(0, cut)]);
}
