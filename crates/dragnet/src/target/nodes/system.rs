//! A cluster as a [`System`], whatever its nodes are.
//!
//! States are [rows](Row) of numbers, and so are events: an explorer needs no type of the program under test. So the tables of
//! a cluster stand behind a trait object here, and every engine is compiled once for all clusters, and not once for each kind
//! of node. All successors of a state take one call.

use std::any::Any;

use super::cluster::Cluster;
use super::engine::Interned;
use super::{Node, NodeEvent, Row};
use crate::coarse_hash::CoarseHash;
use crate::run::Run;
use crate::system::{Actor, EventKind, Failure, Successor, System, Task};
use crate::target::parts::Parts;
use crate::target::{NodeWork, Setting};
use crate::trace::{Fingerprint, Key, SavedState, Step, finish};

/// A cluster, ready to be explored.
pub struct Nodes {
    cluster: Box<dyn AnyCluster>,
    key: Key,
}

/// What a cluster of any nodes offers: the methods of [`System`] that depend on what its nodes are, and what only clusters
/// have.
pub(super) trait AnyCluster: Parts + Any + Send + Sync {
    fn initial(&self) -> Vec<Row>;
    fn events(&self, row: &Row, out: &mut Vec<NodeEvent>);
    fn next(&self, row: &Row, event: &NodeEvent) -> Result<Row, Failure>;
    fn successors(&self, row: &Row, scratch: &mut Vec<NodeEvent>, out: &mut Vec<Successor<Row>>);
    fn anticipate(&self, row: &Row);
    /// The sum of a row from the contents of its parts alone, under any key.
    fn sum_from_contents(&self, row: &Row, key: Key) -> u64;
    fn start_run<'a>(&'a self, start: &Row) -> Result<Box<dyn Run<Nodes> + 'a>, Failure>;
    fn coarse_hash(&self) -> Option<CoarseHash>;
    /// The same cluster with empty tables.
    fn afresh(&self) -> Nodes;
    fn kind(&self, event: &NodeEvent) -> EventKind;
    fn waiting(&self, row: &Row) -> Vec<Actor>;
    fn awaits(&self, row: &Row, actor: Actor) -> Option<String>;
    fn task(&self, event: &NodeEvent) -> Task;
    fn identity(&self, event: &NodeEvent) -> Fingerprint;
    fn components(&self) -> Vec<String>;
    fn explain(&self, before: &Row, event: &NodeEvent, after: Option<&Row>) -> Step;
    fn execute(&self, row: &Row, event: &NodeEvent);
    fn introduce(&self, row: &Row) -> Vec<String>;
    /// The local state of a node in a row.
    fn local_in(&self, row: &Row, node: usize) -> u32;
    /// The row with these local states and nothing in flight.
    fn assemble(&self, locals: &[u32]) -> Row;
    /// What there was to do so far.
    fn work(&self) -> NodeWork;
    /// A state as a file has it, if states can be written.
    fn save(&self, system: &str, row: &Row) -> Option<SavedState>;
    fn key(&self) -> Key;
}

impl Nodes {
    pub(crate) fn new<N: Node>(cluster: Cluster<N>, setting: &Setting) -> Self {
        Self::of(Interned::new(cluster, setting))
    }

    pub(super) fn of<N: Node>(interned: Interned<N>) -> Self {
        Self {
            key: AnyCluster::key(&interned),
            cluster: Box::new(interned),
        }
    }

    /// The tables of the cluster, whose nodes are of type `N`.
    #[inline]
    pub(super) fn interned<N: Node>(&self) -> &Interned<N> {
        let cluster: &dyn Any = &*self.cluster;
        cluster.downcast_ref().expect("the type of the nodes")
    }

    pub(crate) fn parts(&self) -> &dyn Parts {
        &*self.cluster
    }

    /// The local state of a node in a row.
    pub(crate) fn local_in(&self, row: &Row, node: usize) -> u32 {
        self.cluster.local_in(row, node)
    }

    /// The row with these local states and nothing in flight.
    pub(crate) fn assemble(&self, locals: &[u32]) -> Row {
        self.cluster.assemble(locals)
    }

    /// What there was to do so far.
    pub(crate) fn work(&self) -> NodeWork {
        self.cluster.work()
    }

    /// A state as a file has it, if states can be written.
    pub(crate) fn save(&self, system: &str, row: &Row) -> Option<SavedState> {
        self.cluster.save(system, row)
    }
}

impl System for Nodes {
    const COMPARES_PARTS: bool = true;

    type State = Row;
    type Event = NodeEvent;

    fn initial(&self) -> Vec<Row> {
        self.cluster.initial()
    }

    #[inline]
    fn events(&self, row: &Row, out: &mut Vec<NodeEvent>) {
        self.cluster.events(row, out);
    }

    #[inline]
    fn next(&self, row: &Row, event: &NodeEvent) -> Result<Row, Failure> {
        self.cluster.next(row, event)
    }

    #[inline]
    fn successors(&self, row: &Row, scratch: &mut Vec<NodeEvent>, out: &mut Vec<Successor<Row>>) {
        self.cluster.successors(row, scratch, out);
    }

    #[inline]
    fn anticipate(&self, row: &Row) {
        self.cluster.anticipate(row);
    }

    #[inline]
    fn fingerprint(&self, row: &Row, key: Key) -> Fingerprint {
        let sum = if key == self.key {
            row.sum
        } else {
            self.cluster.sum_from_contents(row, key)
        };
        Fingerprint(finish(sum))
    }

    fn run(&self, start: &Row) -> Result<Box<dyn Run<Self> + '_>, Failure> {
        self.cluster.start_run(start)
    }

    fn coarse_hash(&self) -> Option<CoarseHash> {
        self.cluster.coarse_hash()
    }

    fn afresh(&self) -> Option<Self> {
        Some(self.cluster.afresh())
    }

    fn kind(&self, _row: &Row, event: &NodeEvent) -> EventKind {
        self.cluster.kind(event)
    }

    fn waiting(&self, row: &Row) -> Vec<Actor> {
        self.cluster.waiting(row)
    }

    fn awaits(&self, row: &Row, actor: Actor) -> Option<String> {
        self.cluster.awaits(row, actor)
    }

    fn task(&self, _row: &Row, event: &NodeEvent) -> Task {
        self.cluster.task(event)
    }

    fn identity(&self, _row: &Row, event: &NodeEvent) -> Fingerprint {
        self.cluster.identity(event)
    }

    fn components(&self) -> Vec<String> {
        self.cluster.components()
    }

    fn explain(&self, before: &Row, event: &NodeEvent, after: Option<&Row>) -> Step {
        self.cluster.explain(before, event, after)
    }

    fn execute(&self, row: &Row, event: &NodeEvent) {
        self.cluster.execute(row, event);
    }

    fn guards_steps(&self) -> bool {
        true
    }

    fn introduce(&self, row: &Row) -> Vec<String> {
        self.cluster.introduce(row)
    }
}
