//! Random properties and bounds: what a check says of its states, as data that the naive explorer can judge too.

use std::fmt::{self, Debug};

use proptest::prelude::*;

use super::script::{Boxed, BoxedState, MARKS, MESSAGES, Plain, TOP, Value};
use crate::Check;
use crate::target::nodes::{Cluster, Either, NodeView};

/// The nodes of a random cluster.
pub(super) type AnyNode = Either<Plain, Boxed>;
type AnyState = Either<Value, BoxedState>;

/// What a check demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    /// No node has this level, as a property of the whole state.
    NobodyAt(u8),
    /// The same as a property of each node.
    EachNotAt(u8),
    /// No node has this level with this mark.
    EachNotMarked(u8, u8),
    /// Nodes at or above this level have the same mark.
    AgreeFrom(u8),
    /// No node has this level while one with a greater id has the level below.
    NotBefore(u8),
    /// The levels of no two nodes that are up come to this.
    NoPairOf(u8),
    /// No crashed node has this level on its disk, as a property of the whole state.
    NoDiskAt(u8),
    /// The same as a property of each node.
    EachDiskNotAt(u8),
    /// Neither the state of a node nor its disk has this level.
    EachMemoryNotAt(u8),
    /// No node of the second kind has heard so many answers from below.
    NoBoxedBelow(u8),
    /// No more than so many messages of a kind are in flight.
    AtMostInFlight(u8, usize),
    /// No message of a kind is in flight to a node of this level.
    NoneInFlightTo(u8, u8),
    /// Nobody who is alive waits in vain.
    NoDeadlock,
    /// Some state has a node of this level.
    SomebodyAt(u8),
    /// Some state has no node at level 0.
    AllMove,
    /// Some state has a node that is down.
    SomebodyDown,
    /// Some state has a message of this kind in flight.
    SometimesInFlight(u8),
}

/// What bounds a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// Every node is below this level, as a bound on each node.
    EachBelow(u8),
    /// The same as a bound on the whole state.
    AllBelow(u8),
    /// Some node is up and below this level.
    SomeBelow(u8),
    /// The levels of all nodes that are up come to no more than this.
    SumUpTo(u8),
    /// No node has this mark.
    EachUnmarked(u8),
}

/// A node as demands and limits see it.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) is_boxed: bool,
    /// Its level, its mark and what it heard from below, if it is up.
    pub(super) up: Option<(u8, u8, u8)>,
    /// The level on its disk, if it is down and kept something.
    pub(super) disk: Option<u8>,
}

impl Demand {
    /// Whether it is about one reachable state, and not about all of them.
    pub(super) fn is_reachability(self) -> bool {
        use Demand::*;
        matches!(
            self,
            SomebodyAt(_) | AllMove | SomebodyDown | SometimesInFlight(_)
        )
    }

    /// Whether it is about more than the states of nodes.
    pub(super) fn looks_at_the_network(self) -> bool {
        use Demand::*;
        matches!(
            self,
            AtMostInFlight(..) | NoneInFlightTo(..) | SometimesInFlight(_) | NoDeadlock
        )
    }

    /// Whether a state satisfies it: `nodes`, and messages in flight as their kind and receiver.
    pub(super) fn is_satisfied(self, nodes: &[Seen], in_flight: &[(u8, usize)]) -> bool {
        let levels = || nodes.iter().filter_map(|node| node.up).map(|up| up.0);
        let disks = || nodes.iter().filter_map(|node| node.disk);
        let copies = |kind| in_flight.iter().filter(move |sent| sent.0 == kind);
        match self {
            Self::NobodyAt(level) | Self::EachNotAt(level) => levels().all(|l| l != level),
            Self::EachNotMarked(level, mark) => nodes
                .iter()
                .filter_map(|node| node.up)
                .all(|(l, m, _)| (l, m) != (level, mark)),
            Self::AgreeFrom(level) => {
                let marks = nodes.iter().filter_map(|node| node.up);
                let mut marks = marks.filter(|up| up.0 >= level).map(|up| up.1);
                let first = marks.next();
                marks.all(|mark| Some(mark) == first)
            }
            Self::NotBefore(level) => (0..nodes.len()).all(|two| {
                (0..two).all(|one| {
                    let level_of = |node: usize| nodes[node].up.map(|up| up.0);
                    (level_of(one), level_of(two)) != (Some(level), Some(level - 1))
                })
            }),
            Self::NoPairOf(sum) => (0..nodes.len()).all(|two| {
                (0..two).all(|one| match (nodes[one].up, nodes[two].up) {
                    (Some(one), Some(two)) => one.0 + two.0 != sum,
                    _ => true,
                })
            }),
            Self::NoDiskAt(level) | Self::EachDiskNotAt(level) => disks().all(|l| l != level),
            Self::EachMemoryNotAt(level) => levels().chain(disks()).all(|l| l != level),
            Self::NoBoxedBelow(times) => nodes
                .iter()
                .filter(|node| node.is_boxed)
                .filter_map(|node| node.up)
                .all(|(_, _, below)| below != times),
            Self::AtMostInFlight(kind, most) => copies(kind).count() <= most,
            Self::NoneInFlightTo(kind, level) => {
                copies(kind).all(|&(_, to)| nodes[to].up.is_none_or(|up| up.0 != level))
            }
            // Judged by what can happen next.
            Self::NoDeadlock => true,
            Self::SomebodyAt(level) => levels().any(|l| l == level),
            Self::AllMove => levels().all(|level| level > 0),
            Self::SomebodyDown => nodes.iter().any(|node| node.up.is_none()),
            Self::SometimesInFlight(kind) => copies(kind).count() > 0,
        }
    }

    /// The name of the property: no two of a check have the same.
    pub(super) fn name(self) -> String {
        match self {
            Self::NoDeadlock => "deadlock".to_owned(),
            _ => format!("{self:?}"),
        }
    }

    /// Adds it to a check of a cluster of so many nodes.
    pub(super) fn add_to(
        self,
        check: Check<Cluster<AnyNode>>,
        nodes: usize,
    ) -> Check<Cluster<AnyNode>> {
        let name = self.name();
        match self {
            Self::NobodyAt(level) => check.always(name, move |s| {
                s.nodes().all(|state| of(state).level != level)
            }),
            Self::EachNotAt(level) => {
                check.always_for_each(name, move |node| up(node).is_none_or(|v| v.level != level))
            }
            Self::EachNotMarked(level, mark) => check.always_for_each(name, move |node| {
                up(node).is_none_or(|v| (v.level, v.mark) != (level, mark))
            }),
            Self::AgreeFrom(level) => check.always_agree(name, move |node| {
                up(node).filter(|v| v.level >= level).map(|v| v.mark)
            }),
            Self::NotBefore(level) => check.always_compatible(
                name,
                move |node| {
                    let near = up(node).filter(|v| v.level == level || v.level + 1 == level);
                    near.map(|v| v.level)
                },
                move |one, two| (*one, *two) != (level, level - 1),
            ),
            Self::NoPairOf(sum) => check.always(name, move |s| {
                s.pairs()
                    .all(|(one, two)| of(one).level + of(two).level != sum)
            }),
            Self::NoDiskAt(level) => check.always(name, move |s| {
                let mut disks = (0..nodes).filter_map(|id| s.durable(id));
                disks.all(|state| of(state).level != level)
            }),
            Self::EachDiskNotAt(level) => check.always_for_each(name, move |node| {
                node.durable().is_none_or(|state| of(state).level != level)
            }),
            Self::EachMemoryNotAt(level) => check.always_for_each(name, move |node| {
                node.memory().is_none_or(|state| of(state).level != level)
            }),
            Self::NoBoxedBelow(times) => check.always(name, move |s| {
                s.role::<Boxed, _>()
                    .all(|(_, state)| state.inner.0.below != times)
            }),
            Self::AtMostInFlight(kind, most) => {
                check.always_with_messages(name, move |_, flight| {
                    flight
                        .iter()
                        .filter(|(_, _, word)| word.kind == kind)
                        .count()
                        <= most
                })
            }
            Self::NoneInFlightTo(kind, level) => {
                check.always_with_messages(name, move |s, flight| {
                    let mut all = flight.iter().filter(|(_, _, word)| word.kind == kind);
                    all.all(|(_, to, _)| s.node(to).is_none_or(|state| of(state).level != level))
                })
            }
            Self::NoDeadlock => check.deadlock_free(),
            Self::SomebodyAt(level) => check
                .reachable_for_some(name, move |node| up(node).is_some_and(|v| v.level == level)),
            Self::AllMove => check.reachable(name, |s| s.nodes().all(|state| of(state).level > 0)),
            Self::SomebodyDown => check.reachable_for_some(name, |node| node.state().is_none()),
            Self::SometimesInFlight(kind) => check
                .reachable_with_messages(name, move |_, flight| {
                    flight.iter().any(|(_, _, word)| word.kind == kind)
                }),
        }
    }
}

impl Limit {
    pub(super) fn is_satisfied(self, nodes: &[Seen]) -> bool {
        let mut up = nodes.iter().filter_map(|node| node.up);
        match self {
            Self::EachBelow(level) | Self::AllBelow(level) => up.all(|up| up.0 < level),
            Self::SomeBelow(level) => up.any(|up| up.0 < level),
            Self::SumUpTo(most) => up.map(|up| up.0).sum::<u8>() <= most,
            Self::EachUnmarked(mark) => up.all(|up| up.1 != mark),
        }
    }

    /// Adds it to a check.
    pub(super) fn add_to(self, check: Check<Cluster<AnyNode>>) -> Check<Cluster<AnyNode>> {
        let name = format!("{self:?}");
        match self {
            Self::EachBelow(level) => {
                check.within_for_each(name, move |node| up(node).is_none_or(|v| v.level < level))
            }
            Self::AllBelow(level) => check.within(name, move |s| {
                s.nodes().all(|state| of(state).level < level)
            }),
            Self::SomeBelow(level) => check.within(name, move |s| {
                s.nodes().any(|state| of(state).level < level)
            }),
            Self::SumUpTo(most) => check.within(name, move |s| {
                s.nodes().map(|state| of(state).level).sum::<u8>() <= most
            }),
            Self::EachUnmarked(mark) => {
                check.within_for_each(name, move |node| up(node).is_none_or(|v| v.mark != mark))
            }
        }
    }
}

fn of(state: &AnyState) -> &Value {
    match state {
        Either::Left(value) => value,
        Either::Right(boxed) => &boxed.inner.0,
    }
}

fn up<'a>(node: NodeView<'a, AnyNode>) -> Option<&'a Value> {
    node.state().map(of)
}

/// A level that takes some steps to get to, as a rule.
fn high() -> impl Strategy<Value = u8> {
    prop_oneof![2 => Just(TOP), 1 => 1..=TOP]
}

pub(super) fn demand() -> impl Strategy<Value = Demand> {
    use Demand::*;
    prop_oneof![
        2 => high().prop_map(NobodyAt),
        2 => high().prop_map(EachNotAt),
        2 => (high(), 1..MARKS).prop_map(|(level, mark)| EachNotMarked(level, mark)),
        2 => (0..=TOP).prop_map(AgreeFrom),
        2 => high().prop_map(NotBefore),
        2 => (TOP..=2 * TOP).prop_map(NoPairOf),
        2 => (0..=TOP).prop_map(NoDiskAt),
        2 => (0..=TOP).prop_map(EachDiskNotAt),
        2 => (1..=TOP).prop_map(EachMemoryNotAt),
        2 => (1..=2_u8).prop_map(NoBoxedBelow),
        2 => (0..MESSAGES, 1..5_usize).prop_map(|(kind, most)| AtMostInFlight(kind, most)),
        2 => (0..MESSAGES, high()).prop_map(|(kind, level)| NoneInFlightTo(kind, level)),
        3 => Just(NoDeadlock),
        1 => (0..=TOP).prop_map(SomebodyAt),
        1 => Just(AllMove),
        1 => Just(SomebodyDown),
        1 => (0..MESSAGES).prop_map(SometimesInFlight),
    ]
}

pub(super) fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (1..=TOP).prop_map(Limit::EachBelow),
        (1..=TOP).prop_map(Limit::AllBelow),
        (1..=TOP).prop_map(Limit::SomeBelow),
        (0..2 * TOP).prop_map(Limit::SumUpTo),
        (1..MARKS).prop_map(Limit::EachUnmarked),
    ]
}

/// Demands or limits in a line.
pub(super) struct List<'a, T>(pub(super) &'a [T]);

impl<T: Debug> Debug for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(|item| format!("{item:?}")).collect();
        f.write_str(&texts.join(", "))
    }
}
