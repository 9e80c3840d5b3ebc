//! What can be explored: the programs under test, each seen as a [`System`].

pub mod nodes;
pub(crate) mod parts;
#[cfg(feature = "threads")]
pub(crate) mod threads;

use std::sync::Arc;

use crate::engine::{Breadth, Engine};
use crate::named::named;
use crate::options::Determinism;
use crate::system::System;
use crate::tables::Domain;
use crate::trace::{Key, SavedState};
use nodes::{Cluster, Faults, Node, Nodes, Row, Snapshot};

/// Something that [`Check::new`](crate::Check::new) takes: a [`Cluster`], or any [`System`] itself.
pub trait Target: Sized + 'static {
    /// What is explored.
    type System: System;

    /// What a property sees of a state.
    type View<'a>;

    /// Makes the target ready for an exploration.
    fn prepare(self, setting: &Setting) -> Self::System;

    /// What a property sees of `state`.
    fn view<'a>(
        system: &'a Self::System,
        state: &'a <Self::System as System>::State,
    ) -> Self::View<'a>;

    /// What kind of target this is.
    fn kind(&self) -> TargetKind;

    /// The name of its kind, as lists of systems show it.
    fn kind_name(&self) -> &'static str {
        self.kind().name()
    }

    /// What bounds the system, a phrase each.
    fn bounds(&self) -> Vec<String> {
        Vec::new()
    }

    /// Why the target cannot be explored as it is, if it cannot.
    fn objection(&self) -> Option<String> {
        None
    }

    /// The fault budgets to change, if faults can happen to this target at all.
    fn faults_mut(&mut self) -> Option<&mut Faults> {
        None
    }

    /// Has every exploration start in a saved state, or says why it cannot.
    fn depart_from(&mut self, _state: &SavedState) -> Result<(), String> {
        Err("only the states of a cluster can be read".to_owned())
    }

    /// Whether states can be written.
    fn can_be_saved(&self) -> bool {
        false
    }

    /// The engine that explores it unless another one is asked for.
    fn preferred_engine(&self) -> Engine {
        Breadth::new().into()
    }

    /// Whether it is wrong that somebody waits and nothing can happen any more, without its being said.
    fn must_not_deadlock(&self) -> bool {
        false
    }
}

/// What kind of target something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetKind {
    /// A [`System`] itself.
    Direct,
    /// A [`Cluster`] of nodes.
    Nodes,
    /// A multithreaded program.
    Threads,
}

named!(
    TargetKind, "there is no kind of target",
    Direct: "direct",
    Nodes: "nodes",
    Threads: "threads",
);

/// What a target is made ready for.
pub struct Setting {
    pub(crate) watch: Watch,
    pub(crate) key: Key,
    pub(crate) determinism: Determinism,
    pub(crate) domain: Arc<Domain>,
}

/// What the properties of a check read. It decides whether deliveries that change nothing must be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Only the states of nodes.
    NodeStates,
    /// Also what is in flight, or whether anything can still happen.
    Everything,
}

/// What the interned engine had to do, and how it treats deliveries that change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeWork {
    /// Distinct local states of all nodes.
    pub local_states: u64,
    /// How often a handler ran.
    pub handler_runs: u64,
    /// Whether deliveries that change nothing were left out, and their messages stayed in flight.
    pub skips_idle: bool,
    /// Whether node states or messages were told apart by a digest: two with the same digest counted as one, and the
    /// verdict stands on their being alike.
    pub digested: bool,
}

impl<S: System + 'static> Target for S {
    type System = S;
    type View<'a> = &'a S::State;

    fn prepare(self, _setting: &Setting) -> S {
        self
    }

    fn view<'a>(_system: &'a S, state: &'a S::State) -> &'a S::State {
        state
    }

    fn kind(&self) -> TargetKind {
        TargetKind::Direct
    }
}

impl<N: Node> Target for Cluster<N> {
    type System = Nodes;
    type View<'a> = Snapshot<'a, N>;

    fn prepare(self, setting: &Setting) -> Nodes {
        Nodes::new(self, setting)
    }

    fn objection(&self) -> Option<String> {
        self.objection()
    }

    fn view<'a>(system: &'a Nodes, state: &'a Row) -> Snapshot<'a, N> {
        Snapshot::new(system, state)
    }

    fn kind(&self) -> TargetKind {
        TargetKind::Nodes
    }

    fn bounds(&self) -> Vec<String> {
        Cluster::bounds(self)
    }

    fn faults_mut(&mut self) -> Option<&mut Faults> {
        Some(&mut self.faults)
    }

    fn depart_from(&mut self, state: &SavedState) -> Result<(), String> {
        Cluster::depart_from(self, state)
    }

    fn can_be_saved(&self) -> bool {
        Cluster::can_be_saved(self)
    }
}
