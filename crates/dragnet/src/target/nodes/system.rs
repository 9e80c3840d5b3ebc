//! A cluster, ready to be explored.
//!
//! Local states and inputs are interned, and so are inboxes: a node's local state with what is in flight to it is a
//! [cell](super::cell), a global state is a [`Row`] of the numbers of cells, and a successor is a few table look-ups, whatever
//! the size of the node states. What depends on the types of the program stands behind [`Handlers`], and is called where a
//! handler has to run, or a person reads something. So everything else, the engines among it, is compiled once for all
//! clusters.
//!
//! All tables are shared by all threads and only grow.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Node;
use super::cell::{Cell, Cells};
use super::cluster::Cluster;
use super::environment::Environment;
use super::handlers::Handlers;
use super::inbox::{self, Envelopes, Inboxes};
use super::interned::Interned;
use super::network::Order;
use super::row::{ENVIRONMENT, Row, inbox_slot, local_slot, slot};
use super::run::Runs;
use crate::tables::{Domain, Interner};
use crate::target::parts::Parts;
use crate::target::{NodeWork, Setting, Watch};
use crate::trace::{Fingerprint, Key, SavedState, bind};

/// A cluster with its tables.
pub struct Nodes {
    pub(super) handlers: Box<dyn Handlers>,
    pub(super) order: Order,
    /// How many messages each pool of a link has room for.
    pools: Arc<[u32]>,
    pub(super) has_faults: bool,
    /// Deliveries that change nothing are left out, and their envelopes stay in flight.
    pub(super) skips_idle: bool,
    pub(super) key: Key,
    /// What hashes are bound with: the environment's, then for each node its local state's and its inbox's.
    pub(super) slots: Arc<[u64]>,
    pub(super) inboxes: Inboxes,
    pub(super) cells: Cells,
    pub(super) environments: Interner<Environment>,
    pub(super) runs: Runs,
}

impl Nodes {
    pub(crate) fn new<N: Node>(cluster: Cluster<N>, setting: &Setting) -> Self {
        if let Some(objection) = cluster.objection() {
            panic!("{objection}");
        }
        let (order, is_limited) = (cluster.network.order, cluster.network.is_limited());
        let has_faults = !cluster.faults.is_none();
        let handlers: Box<dyn Handlers> = Box::new(Interned::new(cluster, setting));
        let (domain, key) = (&setting.domain, setting.key);
        Self {
            order,
            pools: handlers.pools().into(),
            has_faults,
            // An envelope that is left in flight takes up room on a link with a capacity, and stands before others on an
            // ordered one: there, deliveries that change nothing are always taken.
            skips_idle: setting.watch == Watch::NodeStates && order == Order::Any && !is_limited,
            key,
            slots: (0..2 * handlers.nodes() + 1)
                .map(|part| slot(key, part))
                .collect(),
            inboxes: Inboxes::new(order, domain),
            cells: Cells::new(domain),
            environments: Interner::new(domain),
            runs: Runs::new(),
            handlers,
        }
    }

    /// The same cluster with empty tables, which one OS thread at a time uses.
    pub(super) fn with_empty_tables(&self) -> Self {
        let domain = &Domain::new(1);
        Self {
            handlers: self.handlers.afresh(domain),
            order: self.order,
            pools: Arc::clone(&self.pools),
            has_faults: self.has_faults,
            skips_idle: self.skips_idle,
            key: self.key,
            slots: Arc::clone(&self.slots),
            inboxes: Inboxes::new(self.order, domain),
            cells: Cells::new(domain),
            environments: Interner::new(domain),
            runs: Runs::within_a_run(),
        }
    }

    /// The local states and inputs of the cluster, whose nodes are of type `N`.
    #[inline]
    pub(super) fn interned<N: Node>(&self) -> &Interned<N> {
        let handlers: &dyn Any = &*self.handlers;
        handlers.downcast_ref().expect("the type of the nodes")
    }

    pub(crate) fn parts(&self) -> &dyn Parts {
        &*self.handlers
    }

    /// How many nodes there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        // Two slots for each node, and one for the environment.
        self.slots.len() / 2
    }

    #[inline]
    pub(super) fn cell(&self, row: &Row, node: usize) -> &Cell {
        self.cells.get(row.cell(node))
    }

    pub(super) fn find_cell(&self, node: usize, local: u32, inbox: u32) -> u32 {
        self.cells.find(local, inbox, || {
            let inbox = bind(self.inboxes.hash(inbox), self.slots[inbox_slot(node)]);
            self.handlers.local_hash(local).wrapping_add(inbox)
        })
    }

    #[inline]
    pub(super) fn in_flight_to(&self, row: &Row, node: usize) -> &[u32] {
        self.inboxes.envelopes(self.cell(row, node).inbox)
    }

    pub(super) fn intern_environment(&self, environment: Environment) -> u32 {
        let hash = Fingerprint::of(&environment, self.key).0;
        self.environments.intern(environment, hash).0
    }

    /// The local state of a node in a row.
    #[inline]
    pub(crate) fn local_in(&self, row: &Row, node: usize) -> u32 {
        self.cell(row, node).local
    }

    /// The row with these local states and nothing in flight.
    pub(crate) fn assemble(&self, locals: &[u32]) -> Row {
        let mut row = Row::new(0, 0, locals.len());
        for (node, &local) in locals.iter().enumerate() {
            row.set_cell(node, self.find_cell(node, local, Inboxes::EMPTY));
        }
        row
    }

    /// What there was to do so far.
    pub(crate) fn work(&self) -> NodeWork {
        let counts = self.handlers.counts();
        NodeWork {
            local_states: self.runs.local_states().max(self.handlers.local_states()),
            handler_runs: counts.handler_runs.load(Ordering::Relaxed),
            skips_idle: self.skips_idle,
            digested: counts.digested.load(Ordering::Relaxed),
        }
    }

    /// A state as a file has it, if states can be written.
    pub(crate) fn save(&self, system: &str, row: &Row) -> Option<SavedState> {
        self.handlers.save(self, system, row)
    }

    /// The sum of a row from the contents of its parts alone, under any key.
    pub(super) fn sum_from_contents(&self, row: &Row, key: Key) -> u64 {
        let environment = Fingerprint::of(self.environment(row), key).0;
        let mut sum = bind(environment, slot(key, ENVIRONMENT));
        for node in 0..self.len() {
            let local = self
                .handlers
                .local_hash_under(self.local_in(row, node), key);
            let envelopes = self.in_flight_to(row, node).iter();
            let senders_and_hashes = envelopes.map(|&envelope| {
                let hash = self.handlers.input_hash_under(envelope, key);
                (self.place(envelope).0, hash)
            });
            let inbox = inbox::hash_of(self.order, senders_and_hashes);
            for (hash, part) in [(local, local_slot(node)), (inbox, inbox_slot(node))] {
                sum = sum.wrapping_add(bind(hash, slot(key, part)));
            }
        }
        sum
    }
}

impl Envelopes for Nodes {
    fn place(&self, envelope: u32) -> (usize, u64) {
        self.handlers.place(envelope)
    }

    fn hash(&self, envelope: u32) -> u64 {
        self.handlers.envelope_hash(envelope)
    }

    fn fits(&self, envelope: u32, among: &[u32]) -> bool {
        if self.pools.is_empty() {
            return true;
        }
        let from = self.place(envelope).0;
        let on_link = || among.iter().filter(|&&other| self.place(other).0 == from);
        let mine = self.handlers.pools_of(envelope);
        self.pools.iter().enumerate().all(|(bit, &capacity)| {
            let belongs = |pools: u64| pools >> bit & 1 == 1;
            !belongs(mine)
                || on_link()
                    .filter(|&&other| belongs(self.handlers.pools_of(other)))
                    .count()
                    < capacity as usize
        })
    }
}
