//! The naive explorer: it clones everything, interns nothing and hashes no fingerprints.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::systems::{RandomSystem, TICK};
use crate::target::nodes::context::TimerChange;
use crate::target::nodes::faults::FaultKind;
use crate::target::nodes::local::Envelope;
use crate::target::nodes::network::Order;
use crate::target::nodes::*;

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
pub(super) struct NaiveVerdict {
    pub(super) states: u64,
    pub(super) transitions: u64,
    pub(super) depth: u64,
    /// How short an execution to something wrong can be, and what can be wrong at its end.
    pub(super) wrong: Option<(u64, Vec<String>)>,
}

/// The node after a handler, or how it failed; what it sent; whether that was nothing at all.
type NaiveOutcome = (Result<NaiveNode, String>, Vec<Envelope<u8>>, bool);

pub(super) struct Naive<'a> {
    system: &'a RandomSystem,
    calls: Vec<(Vec<u8>, bool)>,
    network: Network<u8>,
    skips_idle: bool,
}

impl<'a> Naive<'a> {
    pub(super) fn new(system: &'a RandomSystem) -> Self {
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
        if let Some(far) = &state.cut {
            let mut next = state.clone();
            next.cut = None;
            if let Some(msg) = self.system.notice {
                let ids = 0..state.nodes.len();
                for (from, to) in ids.clone().flat_map(|a| ids.clone().map(move |b| (a, b))) {
                    if far[from] != far[to] {
                        let (from, to) = (NodeId(from), NodeId(to));
                        self.send(&mut next, &[Envelope { from, to, msg }]);
                    }
                }
            }
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
    pub(super) fn explore(&self, most: usize) -> Option<NaiveVerdict> {
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
