//! One node of a state as properties see it.

use std::collections::HashMap;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use super::interned::Interned;
use super::local::Life;
use super::row::Row;
use super::{Node, NodeId, Nodes, Role};
use crate::property::{LocalPredicate, Pairs, Predicate};
use crate::tables::{Arena, Numbers};

/// One node in one state: what a property of single nodes, or of pairs of nodes, reads.
pub struct NodeView<'a, N: Node> {
    system: &'a Interned<N>,
    local: u32,
}

impl<N: Node> Clone for NodeView<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N: Node> Copy for NodeView<'_, N> {}

impl<'a, N: Node> NodeView<'a, N> {
    fn new(system: &'a Interned<N>, local: u32) -> Self {
        Self { system, local }
    }

    fn life(self) -> &'a Life<N::State> {
        &self.system.locals.get(self.local).local.life
    }

    /// Which node it is.
    pub fn id(self) -> NodeId {
        NodeId(self.system.locals.get(self.local).node)
    }

    /// Its state, if it is up.
    pub fn state(self) -> Option<&'a N::State> {
        match self.life() {
            Life::Up(state) => Some(state),
            Life::Down(_) => None,
        }
    }

    /// What it has on its disk, if it has crashed and kept something.
    pub fn durable(self) -> Option<&'a N::State> {
        match self.life() {
            Life::Up(_) => None,
            Life::Down(durable) => durable.as_ref(),
        }
    }

    /// What it remembers: its state while it is up, what is on its disk while it is down.
    pub fn memory(self) -> Option<&'a N::State> {
        self.state().or_else(|| self.durable())
    }

    /// Its state, if it is up and of kind `R`, in a cluster of several kinds: write `node.role::<Server, _>()`.
    pub fn role<R, At>(self) -> Option<&'a R::State>
    where
        R: Node,
        N: Role<R, At>,
    {
        N::of(self.state()?)
    }
}

/// A condition on one node, as one on a local state.
pub(crate) fn on_local<N, F>(condition: Arc<F>) -> LocalPredicate<Nodes>
where
    N: Node,
    F: for<'a> Fn(NodeView<'a, N>) -> bool + Send + Sync + 'static,
{
    Box::new(move |system, local| condition(NodeView::new(system.interned(), local)))
}

/// The nodes of a row.
fn views<'a, N: Node>(
    system: &'a Nodes,
    row: &'a Row,
) -> impl Iterator<Item = NodeView<'a, N>> + Clone {
    let nodes = system.interned();
    (0..system.len()).map(move |node| NodeView::new(nodes, system.local_in(row, node)))
}

/// True of a state when `condition` is true of each of its nodes.
pub(crate) fn for_each<N, F>(condition: Arc<F>) -> Predicate<Nodes>
where
    N: Node,
    F: for<'a> Fn(NodeView<'a, N>) -> bool + Send + Sync + 'static,
{
    Box::new(move |system, row| views(system, row).all(&*condition))
}

/// True of a state when `condition` is true of one of its nodes.
pub(crate) fn for_some<N, F>(condition: Arc<F>) -> Predicate<Nodes>
where
    N: Node,
    F: for<'a> Fn(NodeView<'a, N>) -> bool + Send + Sync + 'static,
{
    Box::new(move |system, row| views(system, row).any(&*condition))
}

/// True of a state when every two of its nodes that have a class go together.
pub(crate) fn for_pairs<N, P, F, G>(classes: Arc<Classes<N, P, F, G>>) -> Predicate<Nodes>
where
    N: Node,
    P: Clone + Eq + Hash + Send + Sync + 'static,
    F: for<'a> Fn(NodeView<'a, N>) -> Option<P> + Send + Sync + 'static,
    G: Fn(&P, &P) -> bool + Send + Sync + 'static,
{
    Box::new(move |system, row| {
        if !system.runs.shares_tables() {
            return classes.agree(views(system, row));
        }
        let interned = system.interned();
        let class = |node| classes.class_of(interned, system.local_in(row, node));
        let nodes = 0..system.len();
        nodes.clone().all(|node| {
            let Some(two) = class(node) else { return true };
            let mut before = nodes.start..node;
            before.all(|other| class(other).is_none_or(|one| !classes.clash(one, two)))
        })
    })
}

/// Projections as classes, numbered as they come up. Each local state is projected once.
pub(crate) struct Classes<N, P, F, G> {
    project: F,
    compatible: G,
    /// Boxed, since an arena keeps nothing of no size.
    classes: Arena<Box<P>>,
    numbers: Mutex<HashMap<P, u32>>,
    /// For each local state: 0 until it is known, then 1 for no class, otherwise its class and 2.
    of_local: Numbers,
    nodes: PhantomData<fn(N)>,
}

impl<N, P, F, G> Classes<N, P, F, G> {
    pub(crate) fn new(project: F, compatible: G) -> Self {
        Self {
            project,
            compatible,
            classes: Arena::new(),
            numbers: Mutex::default(),
            of_local: Numbers::new(),
            nodes: PhantomData,
        }
    }
}

impl<N, P, F, G> Classes<N, P, F, G>
where
    N: Node,
    P: Clone + Eq + Hash,
    F: for<'a> Fn(NodeView<'a, N>) -> Option<P>,
    G: Fn(&P, &P) -> bool,
{
    #[inline]
    fn class_of(&self, system: &Interned<N>, local: u32) -> Option<u32> {
        let known = self.of_local.get_or(local, || {
            let Some(projected) = (self.project)(NodeView::new(system, local)) else {
                return 1;
            };
            // What it has is right even where a comparison panicked.
            let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
            let number = numbers
                .entry(projected)
                .or_insert_with_key(|class| self.classes.push(Box::new(class.clone())));
            *number + 2
        });
        known.checked_sub(2)
    }

    /// Whether every two of some nodes that have a class go together. Local states that belong to a run have numbers of
    /// their own: nothing is remembered of them.
    fn agree<'a>(&self, nodes: impl Iterator<Item = NodeView<'a, N>>) -> bool {
        let projected: Vec<P> = nodes.filter_map(&self.project).collect();
        let mut pairs = (1..).zip(&projected);
        pairs.all(|(later, one)| {
            let mut later = projected[later..].iter();
            later.all(|two| (self.compatible)(one, two))
        })
    }
}

impl<N, P, F, G> Pairs<Nodes> for Classes<N, P, F, G>
where
    N: Node,
    P: Clone + Eq + Hash + Send + Sync,
    F: for<'a> Fn(NodeView<'a, N>) -> Option<P> + Send + Sync,
    G: Fn(&P, &P) -> bool + Send + Sync,
{
    fn class(&self, system: &Nodes, local: u32) -> Option<u32> {
        self.class_of(system.interned(), local)
    }

    #[inline]
    fn clash(&self, one: u32, two: u32) -> bool {
        !(self.compatible)(self.classes.get(one), self.classes.get(two))
    }
}
