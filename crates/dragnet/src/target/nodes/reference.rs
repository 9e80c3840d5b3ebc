//! The engine against a naive explorer on random systems.
//!
//! The naive explorer clones everything, interns nothing and hashes no fingerprints: a state is the list of local
//! states, the list of messages in flight, the budgets. What it finds must be what every explorer finds.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::context::{Context, TimerChange};
use super::faults::FaultKind;
use super::local::Envelope;
use super::network::Order;
use super::*;
use crate::{Check, Engine, Outcome, Verdict, ViolationKind};

/// What a table node does on one input in one state.
#[derive(Clone, Debug)]
struct Action {
    /// How far its state rises; nothing else happens when it does not.
    rise: u8,
    sends: Vec<(usize, u8)>,
    set: Option<bool>,
    answers: bool,
    observes: bool,
    fails: Option<bool>,
}

/// What a table node does on one input in one state, for each choice that it offers.
type Cell = Vec<Action>;

const STATES: u8 = 3;
const MESSAGES: u8 = 3;
const TICK: Timer = Timer::new("tick");
const TOCK: Timer = Timer::new("tock");

/// A node whose handlers are tables: start, recover, then for each state a cell for each message, timer and call.
#[derive(Clone, Debug)]
struct TableNode {
    start: Cell,
    recover: Action,
    cells: Vec<Cell>,
    durable: Option<u8>,
}

impl TableNode {
    fn cell(&self, state: u8, input: u8) -> &Cell {
        &self.cells[usize::from(state.min(STATES) * INPUTS + input)]
    }

    fn act(&self, state: &mut u8, cell: &Cell, cx: &mut Context<u8>) {
        let action = if cell.len() > 1 {
            &cell[cx.choose(cell.len())]
        } else {
            &cell[0]
        };
        if action.rise == 0 && action.fails.is_none() {
            if action.observes {
                cx.observe("nothing new");
            }
            return;
        }
        self.apply(state, action, cx);
    }

    fn apply(&self, state: &mut u8, action: &Action, cx: &mut Context<u8>) {
        match action.fails {
            Some(true) => panic!("table says so"),
            Some(false) => cx.assert(false, "table says so"),
            None => {}
        }
        if *state + action.rise > STATES {
            return;
        }
        *state += action.rise;
        for &(to, msg) in &action.sends {
            cx.send(to % cx.nodes(), msg);
        }
        match action.set {
            Some(true) => cx.set_timer(TICK, Duration::ZERO),
            Some(false) => {
                cx.cancel_timer(TICK);
                cx.set_timer(TOCK, Duration::ZERO);
            }
            None => {}
        }
        if action.answers {
            cx.answer(0);
        }
    }
}

/// Messages, two timers, a call.
const INPUTS: u8 = MESSAGES + 3;

impl Node for TableNode {
    type State = u8;
    type Msg = u8;

    fn on_start(&self, cx: &mut Context<u8>) -> u8 {
        let mut state = 0;
        self.act(&mut state, &self.start, cx);
        state
    }

    fn on_message(&self, state: &mut u8, from: NodeId, msg: u8, cx: &mut Context<u8>) {
        let input = (msg + from.0 as u8) % MESSAGES;
        self.act(state, self.cell(*state, input), cx);
    }

    fn on_timer(&self, state: &mut u8, timer: Timer, cx: &mut Context<u8>) {
        let input = MESSAGES + u8::from(timer == TOCK);
        self.act(state, self.cell(*state, input), cx);
    }

    fn on_call(&self, state: &mut u8, call: u8, cx: &mut Context<u8>) {
        self.act(state, self.cell(*state, MESSAGES + 2), cx);
        *state = (*state).max(call);
    }

    fn durable(&self, state: &u8) -> Option<u8> {
        self.durable.map(|kept| kept.min(*state))
    }

    fn on_recover(&self, state: &mut u8, cx: &mut Context<u8>) {
        self.apply(state, &self.recover, cx);
    }
}

#[derive(Clone, Debug)]
struct RandomSystem {
    nodes: Vec<TableNode>,
    calls: Vec<(usize, Vec<u8>, bool)>,
    ordered: bool,
    capacity: Option<usize>,
    class: Option<usize>,
    tick_budget: Option<u32>,
    faults: Faults,
    deadlock: bool,
    watches_messages: bool,
    forbidden: u8,
    inside: u8,
}

fn action(failing: bool) -> impl Strategy<Value = Action> {
    (
        0..3_u8,
        vec((0..3_usize, 0..MESSAGES), 0..3),
        proptest::option::weighted(0.3, any::<bool>()),
        proptest::bool::weighted(0.4),
        proptest::bool::weighted(0.1),
        proptest::option::weighted(if failing { 0.03 } else { 1e-9 }, any::<bool>()),
    )
        .prop_map(|(rise, sends, set, answers, observes, fails)| Action {
            rise,
            sends,
            set,
            answers,
            observes,
            fails,
        })
}

fn cell(failing: bool) -> impl Strategy<Value = Cell> {
    prop_oneof![4 => vec(action(failing), 1), 1 => vec(action(failing), 2..4)]
}

fn table_node(failing: bool) -> impl Strategy<Value = TableNode> {
    (
        cell(false),
        action(failing),
        vec(cell(failing), usize::from((STATES + 1) * INPUTS)),
        proptest::option::of(0..STATES),
    )
        .prop_map(|(start, recover, cells, durable)| TableNode {
            start,
            recover,
            cells,
            durable,
        })
}

fn faults() -> impl Strategy<Value = Faults> {
    let budget = || proptest::option::weighted(0.25, 1..2_u32);
    (
        budget(),
        budget(),
        budget(),
        proptest::option::weighted(0.1, 0..2_u32),
        budget(),
    )
        .prop_map(|(lost, copied, crashed, restarted, cut)| {
            let mut all = Faults::none();
            for (budget, make) in [
                (lost, drops as fn(u32) -> Faults),
                (copied, duplicates),
                (crashed, crashes),
                (restarted, restarts),
                (cut, partitions),
            ] {
                if let Some(budget) = budget {
                    all = all.and(make(budget));
                }
            }
            all
        })
}

fn random_system() -> impl Strategy<Value = RandomSystem> {
    any::<bool>().prop_flat_map(|failing| {
        (
            vec(table_node(failing), 1..4),
            vec((0..3_usize, vec(0..2_u8, 0..3), any::<bool>()), 0..3),
            any::<bool>(),
            proptest::option::weighted(0.2, 1..3_usize),
            proptest::option::weighted(0.2, 0..2_usize),
            proptest::option::weighted(0.3, 0..2_u32),
            faults(),
            any::<bool>(),
            any::<bool>(),
            prop_oneof![3 => Just(u8::MAX), 1 => 1..=STATES],
            prop_oneof![4 => Just(u8::MAX), 1 => 1..=STATES],
        )
            .prop_map(
                |(
                    nodes,
                    calls,
                    ordered,
                    capacity,
                    class,
                    tick_budget,
                    faults,
                    deadlock,
                    watches_messages,
                    forbidden,
                    inside,
                )| RandomSystem {
                    nodes,
                    calls,
                    ordered,
                    capacity,
                    class,
                    tick_budget,
                    faults,
                    deadlock,
                    watches_messages,
                    forbidden,
                    inside,
                },
            )
    })
}

impl RandomSystem {
    fn network(&self) -> Network<u8> {
        let mut network = if self.ordered {
            Network::ordered()
        } else {
            Network::unordered()
        };
        if let Some(capacity) = self.capacity {
            network = network.capacity(capacity);
        }
        if let Some(capacity) = self.class {
            network = network.capacity_of("zeros", capacity, |msg| *msg == 0);
        }
        network
    }

    fn check(&self) -> Check<Cluster<TableNode>> {
        let mut cluster = Cluster::new(self.nodes.len(), |id| self.nodes[id.0].clone())
            .network(self.network())
            .faults(self.faults);
        for (node, calls, in_turn) in &self.calls {
            let node = node % self.nodes.len();
            cluster = if *in_turn {
                cluster.calls_in_turn(node, calls.clone())
            } else {
                cluster.calls(node, calls.clone())
            };
        }
        if let Some(budget) = self.tick_budget {
            cluster = cluster.timer_budget(TICK, budget);
        }
        let (forbidden, inside) = (self.forbidden, self.inside);
        let mut check = Check::new(cluster)
            .always("not forbidden", move |s| {
                s.nodes().all(|&state| state != forbidden)
            })
            .within("inside", move |s| s.nodes().all(|&state| state < inside));
        if self.deadlock {
            check = check.deadlock_free();
        }
        if self.watches_messages {
            check = check.always_with_messages("anything goes", |_, _| true);
        }
        check
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct NaiveNode {
    /// The state of a node that is up, or what a crashed one kept.
    state: Result<u8, Option<u8>>,
    timers: Vec<Timer>,
    ticks: u32,
    called: usize,
    answered: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct NaiveState {
    nodes: Vec<NaiveNode>,
    /// In the order in which they were sent; sorted where the network has no order.
    flight: Vec<Envelope<u8>>,
    left: BTreeMap<u8, u32>,
    cut: Option<Vec<bool>>,
}

/// One thing that can happen, by itself or with one combination of choices.
struct NaiveStep {
    progress: bool,
    next: Result<NaiveState, String>,
}

#[derive(Debug, PartialEq)]
struct NaiveVerdict {
    states: u64,
    transitions: u64,
    depth: u64,
    /// How short an execution to something wrong can be, and what can be wrong at its end.
    wrong: Option<(u64, Vec<String>)>,
}

/// The node after a handler, or how it failed; what it sent; whether that was nothing at all.
type NaiveOutcome = (Result<NaiveNode, String>, Vec<Envelope<u8>>, bool);

struct Naive<'a> {
    system: &'a RandomSystem,
    calls: Vec<(Vec<u8>, bool)>,
    network: Network<u8>,
    skips_idle: bool,
}

impl<'a> Naive<'a> {
    fn new(system: &'a RandomSystem) -> Self {
        let mut calls = vec![(Vec::new(), false); system.nodes.len()];
        for (node, list, in_turn) in &system.calls {
            calls[node % system.nodes.len()] = (list.clone(), *in_turn);
        }
        let network = system.network();
        Self {
            system,
            calls,
            skips_idle: !system.deadlock
                && !system.watches_messages
                && network.order == Order::Any
                && !network.is_limited(),
            network,
        }
    }

    /// Everything that a handler can come to, for every combination of choices.
    fn outcomes(
        &self,
        node: usize,
        before: &NaiveNode,
        handler: impl Fn(&mut NaiveNode, &mut Context<u8>),
    ) -> Vec<NaiveOutcome> {
        let mut all = Vec::new();
        let mut combination = Some(Context::new(NodeId(node), self.system.nodes.len()));
        while let Some(mut cx) = combination {
            let mut after = before.clone();
            let ran = crate::panics::catch(|| handler(&mut after, &mut cx));
            for &(timer, change) in &cx.timers {
                after.timers.retain(|known| *known != timer);
                if change == TimerChange::Set {
                    after.timers.push(timer);
                }
            }
            after.timers.sort();
            after.answered = after.called.min(after.answered + cx.answers.len());
            let sent: Vec<Envelope<u8>> = cx
                .sent
                .iter()
                .map(|&(to, msg)| Envelope {
                    from: NodeId(node),
                    to,
                    msg,
                })
                .collect();
            let result = match (ran, &cx.failure) {
                (Err(_), _) => Err("panic".to_owned()),
                (Ok(()), Some(_)) => Err("assertion".to_owned()),
                (Ok(()), None) => Ok(after),
            };
            let idle =
                result.as_ref() == Ok(before) && sent.is_empty() && cx.observations.is_empty();
            all.push((result, sent, idle));
            combination = cx.next_combination();
        }
        all
    }

    fn send(&self, state: &mut NaiveState, sent: &[Envelope<u8>]) {
        for envelope in sent {
            let cut = state
                .cut
                .as_ref()
                .is_some_and(|far| far[envelope.from.0] != far[envelope.to.0]);
            if !cut && self.fits(state, envelope) {
                state.flight.push(envelope.clone());
            }
        }
        self.sort(state);
    }

    fn fits(&self, state: &NaiveState, envelope: &Envelope<u8>) -> bool {
        let link: Vec<&Envelope<u8>> = state
            .flight
            .iter()
            .filter(|other| (other.from, other.to) == (envelope.from, envelope.to))
            .collect();
        let zeros = link.iter().filter(|other| other.msg == 0).count();
        self.system
            .capacity
            .is_none_or(|capacity| link.len() < capacity)
            && (envelope.msg != 0 || self.system.class.is_none_or(|capacity| zeros < capacity))
    }

    fn sort(&self, state: &mut NaiveState) {
        match self.network.order {
            Order::Any => state.flight.sort_by_key(|e| (e.to, e.from, e.msg)),
            Order::PerLink => state.flight.sort_by_key(|e| (e.to, e.from)),
        }
    }

    fn initial(&self) -> Vec<NaiveState> {
        let mut states = vec![NaiveState {
            nodes: Vec::new(),
            flight: Vec::new(),
            left: FaultKind::ALL
                .into_iter()
                .map(|kind| (kind as u8, self.system.faults.budget(kind)))
                .collect(),
            cut: None,
        }];
        for (index, node) in self.system.nodes.iter().enumerate() {
            let blank = NaiveNode {
                state: Ok(0),
                timers: Vec::new(),
                ticks: 0,
                called: 0,
                answered: 0,
            };
            let starts = self.outcomes(index, &blank, |local, cx| {
                local.state = Ok(node.on_start(cx))
            });
            states = states
                .iter()
                .flat_map(|state| {
                    starts.iter().map(|(local, sent, _)| {
                        let mut state = state.clone();
                        state.nodes.push(local.clone().expect("starts do not fail"));
                        self.send(&mut state, sent);
                        state
                    })
                })
                .collect();
        }
        states
    }

    /// Positions in `flight` of what can be delivered, lost or duplicated next.
    fn heads(&self, state: &NaiveState) -> Vec<usize> {
        (0..state.flight.len())
            .filter(|&at| {
                let before = &state.flight[..at];
                let envelope = &state.flight[at];
                match self.network.order {
                    Order::Any => !before.contains(envelope),
                    Order::PerLink => !before
                        .iter()
                        .any(|other| (other.from, other.to) == (envelope.from, envelope.to)),
                }
            })
            .collect()
    }

    fn with_outcomes(
        &self,
        progress: bool,
        base: &NaiveState,
        node: usize,
        outcomes: Vec<NaiveOutcome>,
    ) -> impl Iterator<Item = NaiveStep> {
        outcomes.into_iter().map(move |(result, sent, _)| {
            let next = result.map(|local| {
                let mut next = base.clone();
                next.nodes[node] = local;
                self.send(&mut next, &sent);
                next
            });
            NaiveStep { progress, next }
        })
    }

    fn steps(&self, state: &NaiveState) -> Vec<NaiveStep> {
        let mut steps = Vec::new();
        for (index, local) in state.nodes.iter().enumerate() {
            let table = &self.system.nodes[index];
            let Ok(_) = local.state else {
                if state.left[&(FaultKind::Restart as u8)] > 0 {
                    let mut base = state.clone();
                    *base.left.get_mut(&(FaultKind::Restart as u8)).unwrap() -= 1;
                    let outcomes = self.outcomes(index, local, |local, cx| match local.state {
                        Err(Some(kept)) => {
                            let mut state = kept;
                            table.on_recover(&mut state, cx);
                            local.state = Ok(state);
                        }
                        _ => local.state = Ok(table.on_start(cx)),
                    });
                    steps.extend(self.with_outcomes(false, &base, index, outcomes));
                }
                continue;
            };
            fn up(local: &mut NaiveNode) -> &mut u8 {
                local.state.as_mut().expect("it is up")
            }
            let (calls, in_turn) = &self.calls[index];
            if local.called < calls.len() && !(*in_turn && local.called > local.answered) {
                let call = calls[local.called];
                let outcomes = self.outcomes(index, local, |local, cx| {
                    local.called += 1;
                    table.on_call(up(local), call, cx);
                });
                steps.extend(self.with_outcomes(true, state, index, outcomes));
            }
            for &timer in &local.timers {
                let spent =
                    timer == TICK && self.system.tick_budget.is_some_and(|b| local.ticks >= b);
                if spent {
                    continue;
                }
                let outcomes = self.outcomes(index, local, |local, cx| {
                    local.timers.retain(|known| *known != timer);
                    if timer == TICK && self.system.tick_budget.is_some() {
                        local.ticks += 1;
                    }
                    table.on_timer(up(local), timer, cx);
                });
                steps.extend(self.with_outcomes(true, state, index, outcomes));
            }
            if state.left[&(FaultKind::Crash as u8)] > 0 {
                let mut base = state.clone();
                *base.left.get_mut(&(FaultKind::Crash as u8)).unwrap() -= 1;
                if self.network.order == Order::PerLink {
                    base.flight.retain(|envelope| envelope.to.0 != index);
                }
                let outcomes = self.outcomes(index, local, |local, _| {
                    local.state = Err(table.durable(up(local)));
                    local.timers.clear();
                    local.answered = local.called;
                });
                steps.extend(self.with_outcomes(false, &base, index, outcomes));
            }
        }
        for at in self.heads(state) {
            let envelope = &state.flight[at];
            let to = envelope.to.0;
            let mut without = state.clone();
            without.flight.remove(at);
            if state.nodes[to].state.is_ok() {
                let outcomes = self.outcomes(to, &state.nodes[to], |local, cx| {
                    let state = local.state.as_mut().expect("it is up");
                    self.system.nodes[to].on_message(state, envelope.from, envelope.msg, cx);
                });
                let idle = outcomes.iter().all(|(_, _, idle)| *idle);
                if !(idle && self.skips_idle) {
                    steps.extend(self.with_outcomes(!idle, &without, to, outcomes));
                }
            }
            if state.left[&(FaultKind::Drop as u8)] > 0 {
                let mut next = without.clone();
                *next.left.get_mut(&(FaultKind::Drop as u8)).unwrap() -= 1;
                steps.push(NaiveStep {
                    progress: false,
                    next: Ok(next),
                });
            }
            if state.left[&(FaultKind::Duplicate as u8)] > 0 {
                let mut next = state.clone();
                *next.left.get_mut(&(FaultKind::Duplicate as u8)).unwrap() -= 1;
                if self.fits(state, envelope) {
                    next.flight.insert(at, envelope.clone());
                }
                steps.push(NaiveStep {
                    progress: false,
                    next: Ok(next),
                });
            }
        }
        if state.cut.is_some() {
            let mut next = state.clone();
            next.cut = None;
            steps.push(NaiveStep {
                progress: true,
                next: Ok(next),
            });
        } else if state.left[&(FaultKind::Partition as u8)] > 0 {
            let nodes = state.nodes.len();
            for mask in 1..1_usize << (nodes - 1) {
                let far: Vec<bool> = (0..nodes)
                    .map(|n| n > 0 && mask >> (n - 1) & 1 == 1)
                    .collect();
                let mut next = state.clone();
                *next.left.get_mut(&(FaultKind::Partition as u8)).unwrap() -= 1;
                next.flight.retain(|e| far[e.from.0] == far[e.to.0]);
                next.cut = Some(far);
                steps.push(NaiveStep {
                    progress: false,
                    next: Ok(next),
                });
            }
        }
        steps
    }

    fn is_inside(&self, state: &NaiveState) -> bool {
        state
            .nodes
            .iter()
            .all(|node| node.state.is_err() || node.state.unwrap() < self.system.inside)
    }

    fn is_forbidden(&self, state: &NaiveState) -> bool {
        state
            .nodes
            .iter()
            .any(|node| node.state == Ok(self.system.forbidden))
    }

    /// Breadth first; `None` when there are more than `most` states.
    fn explore(&self, most: usize) -> Option<NaiveVerdict> {
        let mut level: HashMap<NaiveState, u64> = HashMap::new();
        let mut queue = VecDeque::new();
        let mut verdict = NaiveVerdict {
            states: 0,
            transitions: 0,
            depth: 0,
            wrong: None,
        };
        let wrong = |verdict: &mut NaiveVerdict, length: u64, what: &str| match &mut verdict.wrong {
            Some((known, all)) if *known == length => all.push(what.to_owned()),
            Some((known, _)) if *known < length => {}
            other => *other = Some((length, vec![what.to_owned()])),
        };
        for state in self.initial() {
            if self.is_inside(&state) && level.insert(state.clone(), 0).is_none() {
                if self.is_forbidden(&state) {
                    wrong(&mut verdict, 0, "not forbidden");
                }
                queue.push_back(state);
            }
        }
        while let Some(state) = queue.pop_front() {
            if level.len() > most {
                return None;
            }
            let depth = level[&state];
            verdict.depth = verdict.depth.max(depth);
            let steps = self.steps(&state);
            let waits = state
                .nodes
                .iter()
                .any(|n| n.state.is_ok() && n.called > n.answered);
            if self.system.deadlock && waits && steps.iter().all(|step| !step.progress) {
                wrong(&mut verdict, depth, "deadlock");
            }
            for step in steps {
                match step.next {
                    Err(failure) => {
                        verdict.transitions += 1;
                        wrong(&mut verdict, depth + 1, &failure);
                    }
                    Ok(next) => {
                        if !self.is_inside(&next) {
                            continue;
                        }
                        verdict.transitions += 1;
                        if !level.contains_key(&next) {
                            if self.is_forbidden(&next) {
                                wrong(&mut verdict, depth + 1, "not forbidden");
                            }
                            level.insert(next.clone(), depth + 1);
                            queue.push_back(next);
                        }
                    }
                }
            }
        }
        verdict.states = level.len() as u64;
        Some(verdict)
    }
}

fn compare(
    system: &RandomSystem,
    naive: &NaiveVerdict,
    verdict: &Verdict,
) -> Result<(), TestCaseError> {
    match (&naive.wrong, &verdict.outcome) {
        (None, Outcome::Holds) => {
            prop_assert_eq!(naive.states, verdict.states(), "states, {}", verdict.engine);
            prop_assert_eq!(
                naive.transitions,
                verdict.statistics.transitions,
                "transitions, {}",
                verdict.engine
            );
            if verdict.engine == Engine::Breadth {
                prop_assert_eq!(naive.depth, verdict.statistics.depth);
            }
        }
        (Some((length, what)), Outcome::Violated(violation)) => {
            let counterexample = violation
                .counterexample
                .as_ref()
                .expect("it was found on a path");
            if verdict.engine == Engine::Breadth {
                prop_assert!(
                    what.contains(&violation.property),
                    "{what:?} against {violation:?}"
                );
            }
            if verdict.engine == Engine::Breadth || counterexample.shortest {
                prop_assert_eq!(
                    *length,
                    counterexample.len() as u64,
                    "length, {}",
                    verdict.engine
                );
            }
            prop_assert!(!matches!(
                violation.kind,
                ViolationKind::PropertyPanicked(_)
            ));
            let replayed = system
                .check()
                .named(verdict.system.clone())
                .replay(&counterexample.trace);
            prop_assert!(replayed.is_ok(), "{:?}", replayed);
        }
        (expected, found) => prop_assert!(false, "expected {expected:?}, found {found:?}"),
    }
    Ok(())
}

fn cases() -> u32 {
    std::env::var("DRAGNET_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_explorer_finds_what_the_naive_one_finds(system in random_system()) {
        let Some(naive) = Naive::new(&system).explore(4_000) else {
            return Ok(());
        };
        let mut counterexamples = Vec::new();
        for (engine, threads, exact) in [
            (Engine::Breadth, 1, false),
            (Engine::Breadth, 2, false),
            (Engine::Breadth, 2, true),
            (Engine::Depth, 1, false),
            (Engine::Depth, 2, false),
            (Engine::Depth, 1, true),
        ] {
            let mut check = system.check().engine(engine).threads(threads);
            if exact {
                check = check.exact();
            }
            let verdict = check.run();
            compare(&system, &naive, &verdict)?;
            if engine == Engine::Breadth {
                counterexamples.push(verdict.counterexample().map(|found| found.trace.clone()));
            }
        }
        prop_assert!(counterexamples.windows(2).all(|pair| pair[0] == pair[1]), "breadth first is not deterministic");
    }

    #[test]
    fn a_depth_bound_cuts_exactly_what_lies_behind_it(system in random_system(), bound in 0..12_u64) {
        let Some(naive) = Naive::new(&system).explore(2_000) else {
            return Ok(());
        };
        for engine in [Engine::Breadth, Engine::Depth] {
            let verdict = system.check().engine(engine).depth(bound).threads(2).run();
            match (&naive.wrong, &verdict.outcome) {
                (Some((length, _)), Outcome::Violated(violation)) => {
                    prop_assert!(*length <= bound);
                    let counterexample = violation.counterexample.as_ref().expect("it was found on a path");
                    prop_assert!(counterexample.len() as u64 <= bound);
                }
                (Some((length, _)), outcome) => {
                    prop_assert!(*length > bound, "{engine} missed a violation of {length} steps: {outcome:?}");
                    prop_assert!(matches!(outcome, Outcome::Inconclusive(_)));
                }
                (None, Outcome::Holds) => {
                    prop_assert!(naive.depth <= bound, "{engine}");
                    prop_assert_eq!(naive.states, verdict.states());
                }
                (None, Outcome::Inconclusive(_)) => prop_assert!(naive.depth > bound, "{engine}"),
                (None, Outcome::Violated(violation)) => prop_assert!(false, "{violation:?}"),
            }
        }
    }
}
