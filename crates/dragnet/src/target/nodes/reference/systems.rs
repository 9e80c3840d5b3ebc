//! Random systems: clusters of random nodes, with what is asked of them, what goes wrong, and what must be true.

use std::fmt::{self, Debug};

use proptest::collection::vec;
use proptest::prelude::*;

use super::demands::{AnyNode, Demand, Limit, List, demand, limit};
use super::script::{
    Boxed, CALLS, Coarse, MESSAGES, Plain, Script, TIMERS, Word, forget_failures, script,
};
use crate::Check;
use crate::target::nodes::*;

#[derive(Clone)]
pub(super) struct RandomSystem {
    pub(super) scripts: Vec<Script>,
    /// How many of them, the last ones, are of the second kind.
    pub(super) boxed: usize,
    /// For each node, what is called, and whether each call waits for the answer to the one before.
    pub(super) calls: Vec<(Vec<u8>, bool)>,
    pub(super) ordered: bool,
    pub(super) capacity: Option<usize>,
    /// The capacity for messages of kind 0.
    pub(super) class: Option<usize>,
    /// What the ends of a link receive that comes back.
    pub(super) notice: Option<u8>,
    pub(super) budgets: [Option<u32>; TIMERS.len()],
    pub(super) faults: Faults,
    pub(super) coarse: Coarse,
    pub(super) demands: Vec<Demand>,
    pub(super) limits: Vec<Limit>,
}

impl Debug for RandomSystem {
    /// A listing that a person can turn into a test.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.scripts.len();
        writeln!(
            f,
            "{nodes} nodes, {}, faults {}",
            self.network(),
            self.faults
        )?;
        if let Some(notice) = self.notice {
            writeln!(f, "  a link that is back brings {notice}")?;
        }
        if self.coarse != Coarse::default() {
            writeln!(f, "  hashes are {:?}", self.coarse)?;
        }
        for (timer, budget) in TIMERS.iter().zip(self.budgets) {
            if let Some(times) = budget {
                writeln!(f, "  timer {timer} at most {times} times")?;
            }
        }
        for (id, script) in self.scripts.iter().enumerate() {
            let kind = if self.is_boxed(id) { " (boxed)" } else { "" };
            write!(f, "  n{id}{kind} {script:?}")?;
            let (calls, in_turn) = &self.calls[id];
            if !calls.is_empty() {
                let in_turn = if *in_turn { " in turn" } else { "" };
                writeln!(f, "      is called {calls:?}{in_turn}")?;
            }
        }
        writeln!(f, "  must satisfy {:?}", List(&self.demands))?;
        write!(f, "  within {:?}", List(&self.limits))
    }
}

fn faults() -> impl Strategy<Value = Faults> {
    let budget = || proptest::option::weighted(0.25, prop_oneof![4 => Just(1_u32), 1 => 2..4_u32]);
    let restarts_alone = proptest::option::weighted(0.15, 0..3_u32);
    (budget(), budget(), budget(), restarts_alone, budget()).prop_map(
        |(lost, copied, crashed, restarted, cut)| {
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
        },
    )
}

fn scripts() -> impl Strategy<Value = Vec<Script>> {
    let scripts = prop_oneof![
        1 => vec(script(), 1),
        4 => vec(script(), 2),
        4 => vec(script(), 3),
        2 => vec(script(), 4),
        1 => vec(script(), 5),
    ];
    let fails = proptest::bool::weighted(0.4);
    let fails_at_the_start = proptest::bool::weighted(0.03);
    (scripts, fails, fails_at_the_start).prop_map(|(mut scripts, fails, at_the_start)| {
        let nodes = scripts.len();
        for script in &mut scripts {
            if !fails {
                script.never_fails();
            }
            if !at_the_start {
                forget_failures(&mut script.start);
            }
            // The more nodes there are, the less each of them does.
            script.start.truncate(if nodes > 3 { 2 } else { 4 });
            script.rules.truncate([11, 11, 8, 5, 3][nodes - 1]);
        }
        scripts
    })
}

fn coarse() -> impl Strategy<Value = Coarse> {
    let coarse = || proptest::bool::weighted(0.1);
    (coarse(), coarse()).prop_map(|(states, messages)| Coarse { states, messages })
}

pub(super) fn random_system() -> impl Strategy<Value = RandomSystem> {
    let budget = || proptest::option::weighted(0.25, 0..3_u32);
    let network = (
        any::<bool>(),
        proptest::option::weighted(0.15, 1..3_usize),
        proptest::option::weighted(0.15, 0..2_usize),
        proptest::option::weighted(0.3, 0..MESSAGES),
    );
    (
        (scripts(), 0..3_usize),
        vec((vec(0..CALLS, 0..3), any::<bool>()), 5),
        network,
        [budget(), budget(), budget(), budget()],
        faults(),
        coarse(),
        prop_oneof![3 => vec(demand(), 0..3), 1 => vec(demand(), 3..6)],
        prop_oneof![3 => Just(Vec::new()), 1 => vec(limit(), 1..3)],
    )
        .prop_map(
            |(
                (scripts, boxed),
                mut calls,
                (ordered, capacity, class, notice),
                budgets,
                faults,
                coarse,
                mut demands,
                limits,
            )| {
                calls.truncate(scripts.len());
                if scripts.len() > 2 {
                    calls.iter_mut().skip(1).for_each(|calls| calls.0.clear());
                }
                let mut known = Vec::new();
                demands.retain(|demand| {
                    let new = !known.contains(demand);
                    known.push(*demand);
                    new
                });
                RandomSystem {
                    boxed: boxed.min(scripts.len()),
                    scripts,
                    calls,
                    ordered,
                    capacity,
                    class,
                    notice,
                    budgets,
                    faults,
                    coarse,
                    demands,
                    limits,
                }
            },
        )
}

/// The same with properties of node states alone: those that a search of parts can judge.
pub(super) fn random_system_of_nodes() -> impl Strategy<Value = RandomSystem> {
    random_system().prop_map(|mut system| {
        system
            .demands
            .retain(|demand| !demand.looks_at_the_network());
        system
    })
}

impl RandomSystem {
    /// Nodes on an unordered network, where nothing is called, nothing goes wrong, and nothing is asked of them.
    pub(super) fn of(scripts: impl Into<Vec<Script>>) -> Self {
        let scripts = scripts.into();
        Self {
            boxed: 0,
            calls: vec![(Vec::new(), false); scripts.len()],
            scripts,
            ordered: false,
            capacity: None,
            class: None,
            notice: None,
            budgets: Default::default(),
            faults: Faults::none(),
            coarse: Coarse::default(),
            demands: Vec::new(),
            limits: Vec::new(),
        }
    }

    pub(super) fn is_boxed(&self, node: usize) -> bool {
        node >= self.scripts.len() - self.boxed
    }

    /// Whether deadlock or a property of messages is judged.
    pub(super) fn looks_at_the_network(&self) -> bool {
        self.demands
            .iter()
            .any(|demand| demand.looks_at_the_network())
    }

    pub(super) fn word(&self, kind: u8) -> Word {
        Word {
            kind,
            coarse: self.coarse.messages,
        }
    }

    fn network(&self) -> Network<Word> {
        let mut network = if self.ordered {
            Network::ordered()
        } else {
            Network::unordered()
        };
        if let Some(capacity) = self.capacity {
            network = network.capacity(capacity);
        }
        if let Some(capacity) = self.class {
            network = network.capacity_of("zeros", capacity, |word: &Word| word.kind == 0);
        }
        if let Some(notice) = self.notice {
            network = network.reconnects_with(self.word(notice));
        }
        network
    }

    /// Whether the refined level makes no history that no execution has.
    pub(super) fn is_followed_exactly(&self) -> bool {
        let limited = self.capacity.is_some() || self.class.is_some();
        let crashes = self.faults.budget(FaultKind::Crash) > 0;
        self.limits.is_empty() && !(limited || self.ordered && crashes)
    }

    fn cluster(&self) -> Cluster<AnyNode> {
        let node = |id: NodeId| Plain {
            script: self.scripts[id.0].clone(),
            coarse: self.coarse,
        };
        let mut cluster = Cluster::new(self.scripts.len() - self.boxed, node)
            .and(self.boxed, |id| Boxed(node(id)))
            .network(self.network())
            .faults(self.faults);
        for (id, (calls, in_turn)) in self.calls.iter().enumerate() {
            let calls = calls.iter().map(|&call| self.word(call));
            cluster = if *in_turn {
                cluster.calls_in_turn(id, calls)
            } else {
                cluster.calls(id, calls)
            };
        }
        for (timer, budget) in TIMERS.into_iter().zip(self.budgets) {
            if let Some(times) = budget {
                cluster = cluster.timer_budget(timer, times);
            }
        }
        cluster.serializable()
    }

    pub(super) fn check(&self) -> Check<Cluster<AnyNode>> {
        let mut check = Check::new(self.cluster()).named("random");
        for demand in &self.demands {
            check = demand.add_to(check, self.scripts.len());
        }
        for limit in &self.limits {
            check = limit.add_to(check);
        }
        check
    }
}
