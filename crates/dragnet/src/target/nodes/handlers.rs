//! What of a cluster depends on what its nodes are.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::context::Context;
use super::interned::Interned;
use super::local::{Input, Local};
use super::outcome::{Drawn, OutcomeSet};
use super::system::Nodes;
use super::{Node, NodeEvent, NodeId, Row};
use crate::coarse_hash::CoarseHash;
use crate::step_guard;
use crate::tables::Domain;
use crate::target::parts::Parts;
use crate::trace::{Fingerprint, Key, SavedState, Step, debug};

/// The nodes of a cluster and their handlers, behind the numbers under which local states and inputs are interned.
pub(super) trait Handlers: Parts + Any + Send + Sync {
    /// What `input` can do to a node in `local`: looked up, or found out by running the handler.
    fn outcomes_of(&self, local: u32, input: u32) -> u32;

    /// Outcomes by their number.
    fn outcomes(&self, number: u32) -> &OutcomeSet;

    /// What `input` does to a node in `local`, where its handler chooses what follows from `draw`.
    fn draw_outcome(&self, local: u32, input: u32, draw: u64) -> Drawn;

    /// Runs a handler again, with these choices, for whoever watches.
    fn execute(&self, local: u32, input: u32, choices: &[usize]);

    /// What an envelope is sorted by in an inbox: its sender and a stable hash of its content.
    fn place(&self, envelope: u32) -> (usize, u64);

    /// The hash of an envelope under the key of the search.
    fn envelope_hash(&self, envelope: u32) -> u64;

    /// The hash of the content of a local state under any key.
    fn local_hash_under(&self, local: u32, key: Key) -> u64;

    /// The hash of the content of an input under any key.
    fn input_hash_under(&self, input: u32, key: Key) -> u64;

    /// Whether a node in a local state waits for something.
    fn waits(&self, local: u32) -> bool;

    /// What a node in a local state waits for.
    fn waits_for(&self, local: u32) -> Option<String>;

    /// The names of the nodes.
    fn names(&self) -> &[String];

    /// That there are more inputs like this one than an event can tell apart.
    fn too_many_like(&self, input: u32) -> String;

    /// A step as a person reads it.
    fn explain(&self, nodes: &Nodes, before: &Row, event: &NodeEvent, after: Option<&Row>) -> Step;

    /// A state, a line a node and a line a message in flight.
    fn describe(&self, nodes: &Nodes, row: &Row) -> Vec<String>;

    /// A state as a file has it, if states can be written.
    fn save(&self, nodes: &Nodes, system: &str, row: &Row) -> Option<SavedState>;

    /// Two unequal local states or messages with one hash, if there are any.
    fn unequal_parts(&self) -> Option<CoarseHash>;

    /// How many local states there are.
    fn local_states(&self) -> u64;

    /// How many inputs there are.
    fn inputs(&self) -> u64;

    fn counts(&self) -> &Counts;

    /// The same with empty tables.
    fn afresh(&self, domain: &Arc<Domain>) -> Box<dyn Handlers>;

    /// The number here of a local state of `other`, the same cluster with other tables.
    fn adopt_local(&self, other: &Nodes, local: u32) -> u32;

    /// The number here of an input of `other`, the same cluster with other tables.
    fn adopt_input(&self, other: &Nodes, input: u32) -> u32;

    /// Whether an input is equal to one of `other`, the same cluster with other tables.
    fn is_same_input(&self, input: u32, other: &Nodes, others: u32) -> bool;
}

/// What is counted, or noticed, as handlers run.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) handler_runs: AtomicU64,
    /// Some local state or message was told apart by a digest.
    pub(super) digested: AtomicBool,
}

impl<N: Node> Handlers for Interned<N> {
    #[inline]
    fn outcomes_of(&self, local: u32, input: u32) -> u32 {
        Interned::outcomes_of(self, local, input)
    }

    #[inline]
    fn outcomes(&self, number: u32) -> &OutcomeSet {
        self.outcomes.get(number)
    }

    fn draw_outcome(&self, local: u32, input: u32, draw: u64) -> Drawn {
        Interned::draw_outcome(self, local, input, draw)
    }

    fn execute(&self, local: u32, input: u32, choices: &[usize]) {
        let input = self.input(input);
        let mut cx = Context::choosing(input.node(), self.nodes.len(), choices);
        self.handle(self.local(local), input, &mut cx);
    }

    fn place(&self, envelope: u32) -> (usize, u64) {
        let item = self.inputs.get(envelope);
        match &item.input {
            Input::Deliver(envelope) => (envelope.from.0, item.order),
            _ => unreachable!("only messages are in flight"),
        }
    }

    fn envelope_hash(&self, envelope: u32) -> u64 {
        self.inputs.hash(envelope)
    }

    fn local_hash_under(&self, local: u32, key: Key) -> u64 {
        Fingerprint::of(self.local(local), key).0
    }

    fn input_hash_under(&self, input: u32, key: Key) -> u64 {
        Fingerprint::of(self.input(input), key).0
    }

    fn waits(&self, local: u32) -> bool {
        let item = self.locals.get(local);
        let state_waits = |state| {
            let step = WaitingStep {
                nodes: self,
                node: NodeId(item.node),
                state,
            };
            step_guard::run(&step, || self.nodes[item.node].waiting(state))
        };
        item.local.waits() || item.local.state().is_some_and(state_waits)
    }

    fn waits_for(&self, local: u32) -> Option<String> {
        Interned::waits_for(self, local)
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn too_many_like(&self, input: u32) -> String {
        let input = self.input(input);
        let receiver = self.name(input.node());
        match input {
            Input::Deliver(envelope) => format!(
                "more than 65,536 messages are in flight to {receiver}, {} from {} among them; bound the system with a \
                 capacity or `within`",
                debug(&envelope.msg),
                self.name(envelope.from),
            ),
            _ => format!("more than 65,536 timers of {receiver} are set"),
        }
    }

    fn explain(&self, nodes: &Nodes, before: &Row, event: &NodeEvent, after: Option<&Row>) -> Step {
        self.tell(nodes, before, event, after)
    }

    fn describe(&self, nodes: &Nodes, row: &Row) -> Vec<String> {
        self.describe_row(nodes, row)
    }

    fn save(&self, nodes: &Nodes, system: &str, row: &Row) -> Option<SavedState> {
        self.save_row(nodes, system, row)
    }

    fn unequal_parts(&self) -> Option<CoarseHash> {
        Interned::unequal_parts(self)
    }

    fn local_states(&self) -> u64 {
        self.locals.len() as u64
    }

    fn inputs(&self) -> u64 {
        self.inputs.len() as u64
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn afresh(&self, domain: &Arc<Domain>) -> Box<dyn Handlers> {
        Box::new(Interned::afresh(self, domain))
    }

    fn adopt_local(&self, other: &Nodes, local: u32) -> u32 {
        let item = other.interned::<N>().locals.get(local);
        let local: Local<N::State> = item.local.clone();
        self.intern_local(item.node, local)
    }

    fn adopt_input(&self, other: &Nodes, input: u32) -> u32 {
        self.intern_input(other.interned::<N>().input(input).clone())
    }

    fn is_same_input(&self, input: u32, other: &Nodes, others: u32) -> bool {
        self.input(input) == other.interned::<N>().input(others)
    }
}

/// A node says whether it waits.
struct WaitingStep<'a, N: Node> {
    nodes: &'a Interned<N>,
    node: NodeId,
    state: &'a N::State,
}

impl<N: Node> step_guard::Step for WaitingStep<'_, N> {
    fn key(&self) -> u64 {
        Fingerprint::of(&("waiting", self.node, self.state), Key::default()).0
    }

    fn describe(&self) -> String {
        let name = self.nodes.name(self.node);
        format!("whether {name} waits, in the state {:?}", self.state)
    }

    fn owner(&self) -> &str {
        self.nodes.name(self.node)
    }
}
