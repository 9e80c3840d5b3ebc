//! Random systems: nodes whose handlers are tables.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::Check;
use crate::target::nodes::*;

/// What a table node does on one input in one state.
#[derive(Clone, Debug)]
struct Action {
    /// How far its state rises; nothing else happens when it does not.
    rise: u8,
    /// Where its state goes instead, and maybe back to.
    goes_to: Option<u8>,
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
pub(super) const TICK: Timer = Timer::new("tick");
const TOCK: Timer = Timer::new("tock");

/// A node whose handlers are tables: start, recover, then for each state a cell for each message, timer and call.
#[derive(Clone, Debug)]
pub(super) struct TableNode {
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
        if action.rise == 0 && action.fails.is_none() && action.goes_to.is_none() {
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
        let to = action.goes_to.unwrap_or(*state + action.rise);
        if to > STATES {
            return;
        }
        *state = to;
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
pub(super) struct RandomSystem {
    pub(super) nodes: Vec<TableNode>,
    pub(super) calls: Vec<(usize, Vec<u8>, bool)>,
    pub(super) ordered: bool,
    pub(super) capacity: Option<usize>,
    pub(super) class: Option<usize>,
    /// What the ends of a link receive that comes back.
    pub(super) notice: Option<u8>,
    pub(super) tick_budget: Option<u32>,
    pub(super) faults: Faults,
    pub(super) deadlock: bool,
    pub(super) watches_messages: bool,
    pub(super) forbidden: u8,
    pub(super) inside: u8,
}

/// What the properties of a check look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    Whole,
    WholeBound,
    Each,
    Pairs,
    PairsBound,
    Mixed,
    Reached,
    ReachedSome,
}

impl Judged {
    pub(super) const ALL: [Self; 8] = [
        Self::Whole,
        Self::WholeBound,
        Self::Each,
        Self::Pairs,
        Self::PairsBound,
        Self::Mixed,
        Self::Reached,
        Self::ReachedSome,
    ];

    /// Whether a bound looks at all nodes at once.
    pub(super) fn bounds_the_whole(self) -> bool {
        matches!(
            self,
            Self::Whole | Self::WholeBound | Self::PairsBound | Self::ReachedSome
        )
    }
}

fn action(failing: bool) -> impl Strategy<Value = Action> {
    (
        (0..3_u8, proptest::option::weighted(0.15, 0..STATES)),
        vec((0..3_usize, 0..MESSAGES), 0..3),
        proptest::option::weighted(0.3, any::<bool>()),
        proptest::bool::weighted(0.4),
        proptest::bool::weighted(0.1),
        proptest::option::weighted(if failing { 0.03 } else { 1e-9 }, any::<bool>()),
    )
        .prop_map(
            |((rise, goes_to), mut sends, set, answers, observes, fails)| {
                if goes_to.is_some() {
                    // What goes round and sends more than it receives has no end.
                    sends.truncate(1);
                }
                Action {
                    rise,
                    goes_to,
                    sends,
                    set,
                    answers,
                    observes,
                    fails,
                }
            },
        )
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
    let budget = || proptest::option::weighted(0.25, prop_oneof![3 => Just(1_u32), 1 => 2..4_u32]);
    (
        budget(),
        budget(),
        budget(),
        proptest::option::weighted(0.15, 0..3_u32),
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

pub(super) fn random_system() -> impl Strategy<Value = RandomSystem> {
    any::<bool>().prop_flat_map(|failing| {
        (
            vec(table_node(failing), 1..4),
            vec((0..3_usize, vec(0..2_u8, 0..3), any::<bool>()), 0..3),
            any::<bool>(),
            proptest::option::weighted(0.2, 1..3_usize),
            proptest::option::weighted(0.2, 0..2_usize),
            proptest::option::weighted(0.3, 0..2_u8),
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
                    notice,
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
                    notice,
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
    pub(super) fn network(&self) -> Network<u8> {
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
        if let Some(notice) = self.notice {
            network = network.reconnects_with(notice);
        }
        network
    }

    /// Whether the refined level makes no history that no execution has.
    pub(super) fn is_followed_exactly(&self) -> bool {
        let limited = self.capacity.is_some() || self.class.is_some();
        let crashes = self.faults.budget(FaultKind::Crash) > 0;
        self.inside == u8::MAX && !(limited || self.ordered && crashes)
    }

    fn cluster(&self) -> Cluster<TableNode> {
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
        cluster
    }

    pub(super) fn check(&self) -> Check<Cluster<TableNode>> {
        let cluster = self.cluster();
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

    /// A check of node states alone, with properties of every kind that a search of parts tells apart.
    pub(super) fn check_of_nodes(&self, judged: Judged) -> Check<Cluster<TableNode>> {
        let check = Check::new(self.cluster());
        let (forbidden, inside) = (self.forbidden, self.inside);
        match judged {
            Judged::Whole => check
                .always("not forbidden", move |s| {
                    s.nodes().all(|&state| state != forbidden)
                })
                .within("inside", move |s| s.nodes().all(|&state| state < inside)),
            Judged::WholeBound => check
                .always_for_each("not forbidden", move |node| {
                    node.state() != Some(&forbidden)
                })
                .within("not all far", move |s| {
                    s.nodes().any(|&state| state < inside)
                }),
            Judged::Each => check
                .always_for_each("not forbidden", move |node| {
                    node.state() != Some(&forbidden)
                })
                .within_for_each("inside", move |node| {
                    node.state().is_none_or(|&state| state < inside)
                })
                .reachable_for_some("somebody moves", |node| {
                    node.state().is_some_and(|&state| state > 0)
                }),
            Judged::Pairs => check
                .always_compatible(
                    "not both forbidden",
                    move |node| {
                        node.state()
                            .copied()
                            .filter(|&state| state + 1 >= forbidden)
                    },
                    move |one, two| (one, two) != (&forbidden, &(forbidden - 1)),
                )
                .within_for_each("inside", move |node| {
                    node.state().is_none_or(|&state| state < inside)
                }),
            Judged::PairsBound => check
                .always_agree("agree", move |node| {
                    node.state().copied().filter(|&state| state >= forbidden)
                })
                .within("not all far", move |s| {
                    s.nodes().any(|&state| state < inside)
                }),
            Judged::Mixed => check
                .always_agree("agree", |node| {
                    node.state().copied().filter(|&state| state >= STATES)
                })
                .always_for_each("not forbidden", move |node| {
                    node.state() != Some(&forbidden)
                })
                .reachable_for_some("all the way", |node| node.state() == Some(&STATES))
                .reachable("all move", |s| s.nodes().all(|&state| state > 0))
                .within_for_each("inside", move |node| {
                    node.state().is_none_or(|&state| state < inside)
                }),
            Judged::Reached => check.reachable("all move", |s| s.nodes().all(|&state| state > 0)),
            Judged::ReachedSome => check
                .reachable_for_some("down", |node| node.state().is_none())
                .within("not all far", move |s| {
                    s.nodes().any(|&state| state < inside)
                }),
        }
    }
}
