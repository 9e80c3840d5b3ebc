//! A state of a cluster as properties see it.

use super::interned::Interned;
use super::local::{Input, Life};
use super::row::Row;
use super::{Node, NodeId, Nodes, Role};

/// The node states of one global state: what a property of a cluster reads.
///
/// A node that has crashed has no state until it restarts; what is on its disk is in
/// [`durable`](Snapshot::durable).
pub struct Snapshot<'a, N: Node> {
    system: &'a Nodes,
    nodes: &'a Interned<N>,
    row: &'a Row,
}

impl<N: Node> Clone for Snapshot<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N: Node> Copy for Snapshot<'_, N> {}

impl<'a, N: Node> Snapshot<'a, N> {
    /// Of a system whose nodes are of type `N`.
    #[inline]
    pub(crate) fn new(system: &'a Nodes, row: &'a Row) -> Self {
        let nodes = system.interned();
        Self { system, nodes, row }
    }

    #[inline]
    fn life(&self, node: usize) -> &'a Life<N::State> {
        let nodes = self.system.len();
        assert!(
            node < nodes,
            "there is no node {node}: the cluster has {nodes}, counted from 0"
        );
        self.life_of(node)
    }

    /// The same for a node that is there.
    #[inline]
    fn life_of(&self, node: usize) -> &'a Life<N::State> {
        &self.nodes.local(self.system.local_in(self.row, node)).life
    }

    /// The states of all nodes that are up, in the order of their ids.
    #[inline]
    pub fn nodes(self) -> impl Iterator<Item = &'a N::State> {
        self.each().map(|(_, state)| state)
    }

    /// The states of all nodes that are up, each with its id.
    #[inline]
    pub fn each(self) -> impl Iterator<Item = (NodeId, &'a N::State)> {
        (0..self.system.len()).filter_map(move |node| match self.life_of(node) {
            Life::Up(state) => Some((NodeId(node), state)),
            Life::Down(_) => None,
        })
    }

    /// The state of one node, if it is up.
    #[inline]
    pub fn node(self, id: impl Into<NodeId>) -> Option<&'a N::State> {
        match self.life(id.into().0) {
            Life::Up(state) => Some(state),
            Life::Down(_) => None,
        }
    }

    /// What a crashed node has on its disk; `None` for a node that is up or kept nothing.
    #[inline]
    pub fn durable(self, id: impl Into<NodeId>) -> Option<&'a N::State> {
        match self.life(id.into().0) {
            Life::Up(_) => None,
            Life::Down(durable) => durable.as_ref(),
        }
    }

    /// Every two different nodes that are up, the one with the smaller id first.
    #[inline]
    pub fn pairs(self) -> impl Iterator<Item = (&'a N::State, &'a N::State)> {
        self.each().flat_map(move |(id, one)| {
            self.each()
                .filter(move |&(other, _)| other > id)
                .map(move |(_, two)| (one, two))
        })
    }

    /// The states of all nodes of kind `R` that are up, each with its id, in a cluster of several kinds.
    ///
    /// Write `s.role::<Server, _>()`; the second parameter is found by the compiler, and a kind that the cluster does
    /// not have is refused by it.
    #[inline]
    pub fn role<R, At>(self) -> impl Iterator<Item = (NodeId, &'a R::State)>
    where
        R: Node,
        N: Role<R, At>,
    {
        let nodes = self.nodes.nodes.iter().enumerate();
        nodes
            .filter(|(_, node)| node.is())
            .filter_map(move |(id, _)| {
                let state = N::of(self.node(id)?)?;
                Some((NodeId(id), state))
            })
    }
}

/// The messages in flight in one global state.
pub struct InFlight<'a, N: Node> {
    system: &'a Nodes,
    nodes: &'a Interned<N>,
    row: &'a Row,
}

impl<N: Node> Clone for InFlight<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N: Node> Copy for InFlight<'_, N> {}

impl<'a, N: Node> InFlight<'a, N> {
    /// Of a system whose nodes are of type `N`.
    #[inline]
    pub(crate) fn new(system: &'a Nodes, row: &'a Row) -> Self {
        let nodes = system.interned();
        Self { system, nodes, row }
    }

    /// Every message in flight with its sender and its receiver, each copy by itself.
    pub fn iter(self) -> impl Iterator<Item = (NodeId, NodeId, &'a N::Msg)> {
        (0..self.system.len()).flat_map(move |node| {
            self.system
                .in_flight_to(self.row, node)
                .iter()
                .map(move |&input| match self.nodes.input(input) {
                    Input::Deliver(envelope) => (envelope.from, envelope.to, &envelope.msg),
                    _ => unreachable!("only messages are in flight"),
                })
        })
    }

    /// How many messages are in flight.
    pub fn len(self) -> usize {
        (0..self.system.len())
            .map(|node| self.system.in_flight_to(self.row, node).len())
            .sum()
    }

    /// Whether nothing is in flight.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}
