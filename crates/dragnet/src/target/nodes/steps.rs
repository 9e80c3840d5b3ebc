//! The steps of a cluster: which are enabled in a row, and the row that each leads to.

use super::engine::{Environment, Nodes, Outcome, Start};
use super::faults::FaultKind;
use super::inbox::{Envelopes, Inboxes};
use super::local::Input;
use super::network::Order;
use super::row::{ENVIRONMENT, Row, inbox_slot, local_slot};
use super::{Context, Node, NodeId};
use crate::system::{ComponentId, EventKind, Failure, System};
use crate::trace::{Effect, Exchange, Fingerprint, Key, Step, bind, finish};

/// A step of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct NodeEvent {
    pub(super) kind: Kind,
    pub(super) node: u16,
    /// The `head` of an inbox that is meant.
    pub(super) head: u16,
    pub(super) choice: u16,
    /// The input; for a partition, the nodes on the far side.
    pub(super) input: u32,
    /// The outcomes of the input in this state.
    pub(super) outcomes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Own,
    Deliver,
    Drop,
    Duplicate,
    Crash,
    Restart,
    Partition,
    Heal,
}

impl PartialEq for NodeEvent {
    /// The same action, in whichever state.
    fn eq(&self, other: &Self) -> bool {
        (self.kind, self.node, self.choice, self.input)
            == (other.kind, other.node, other.choice, other.input)
    }
}

impl Eq for NodeEvent {}

impl<N: Node> Nodes<N> {
    /// Puts `id` into a place of the row, whose old and new hash are given.
    #[inline]
    fn replace(&self, row: &mut Row, slot: usize, id: u32, old: u64, new: u64) {
        let bound = self.slots[slot];
        row.sum = row
            .sum
            .wrapping_add(bind(new, bound))
            .wrapping_sub(bind(old, bound));
        row.ids[slot] = id;
    }

    #[inline]
    fn set_inbox(&self, row: &mut Row, node: usize, inbox: u32) {
        let slot = inbox_slot(node);
        let old = row.ids[slot];
        if old != inbox {
            self.replace(
                row,
                slot,
                inbox,
                self.inboxes.hash(old),
                self.inboxes.hash(inbox),
            );
        }
    }

    fn set_environment(&self, row: &mut Row, environment: Environment) {
        let old = row.ids[ENVIRONMENT];
        let new = self.intern_environment(environment);
        let hash = |id| self.environments.hash(id);
        self.replace(row, ENVIRONMENT, new, hash(old), hash(new));
    }

    pub(super) fn environment(&self, row: &Row) -> &Environment {
        self.environments.get(row.ids[ENVIRONMENT])
    }

    /// Sends `envelopes` on their way, as far as the network lets them.
    #[inline]
    fn send(&self, row: &mut Row, envelopes: &[u32]) {
        if envelopes.is_empty() {
            return;
        }
        let environment = self.environment(row);
        for &envelope in envelopes {
            let Input::Deliver(sent) = self.input(envelope) else {
                unreachable!("only messages are sent");
            };
            let to = sent.to.0;
            if environment.cut.is_some() && environment.separates(sent.from.0, to) {
                continue;
            }
            let inbox = self.inboxes.with(row.ids[inbox_slot(to)], envelope, self);
            self.set_inbox(row, to, inbox);
        }
    }

    /// Lets the event's input have its effect on the node and the network.
    #[inline]
    fn act(&self, row: &mut Row, event: &NodeEvent) -> Result<(), Failure> {
        let outcome = self.outcome_of(event);
        if let Some(failure) = outcome.rest.as_ref().and_then(|rest| rest.failure.as_ref()) {
            return Err(failure.clone());
        }
        row.ids[local_slot(usize::from(event.node))] = outcome.local;
        row.sum = row.sum.wrapping_add(outcome.delta);
        self.send(row, &outcome.sent);
        Ok(())
    }

    pub(super) fn outcome_of(&self, event: &NodeEvent) -> &Outcome<N::Msg> {
        &self.outcomes[event.outcomes as usize].outcomes[usize::from(event.choice)]
    }

    fn push_input(
        &self,
        kind: Kind,
        node: usize,
        head: usize,
        local: u32,
        input: u32,
        out: &mut Vec<NodeEvent>,
    ) {
        let outcomes = self.outcomes_of(local, input);
        for choice in 0..self.outcomes[outcomes as usize].outcomes.len() {
            out.push(NodeEvent {
                kind,
                node: node as u16,
                head: head as u16,
                choice: choice as u16,
                input,
                outcomes,
            });
        }
    }

    fn push_faults(&self, row: &Row, environment: &Environment, out: &mut Vec<NodeEvent>) {
        let plain = |kind, node: usize, head: usize, input| NodeEvent {
            kind,
            node: node as u16,
            head: head as u16,
            choice: 0,
            input,
            outcomes: 0,
        };
        for (fault, kind) in [
            (FaultKind::Drop, Kind::Drop),
            (FaultKind::Duplicate, Kind::Duplicate),
        ] {
            if environment.allows(fault) {
                for node in 0..self.nodes.len() {
                    for (head, input) in self.inboxes.heads(row.ids[inbox_slot(node)]).enumerate() {
                        out.push(plain(kind, node, head, input));
                    }
                }
            }
        }
        for node in 0..self.nodes.len() {
            let local = row.ids[local_slot(node)];
            if self.local(node, local).is_up() {
                if environment.allows(FaultKind::Crash) {
                    let crash = self.intern_input(Input::Crash(NodeId(node)));
                    self.push_input(Kind::Crash, node, 0, local, crash, out);
                }
            } else if environment.allows(FaultKind::Restart) {
                let restart = self.intern_input(Input::Restart(NodeId(node)));
                self.push_input(Kind::Restart, node, 0, local, restart, out);
            }
        }
        if environment.cut.is_some() {
            out.push(plain(Kind::Heal, 0, 0, 0));
        } else if environment.allows(FaultKind::Partition) && self.nodes.len() > 1 {
            // Node 0 stays on the near side, so that each way to fall in two comes up once.
            for far in (2..1_u32 << self.nodes.len()).step_by(2) {
                out.push(plain(Kind::Partition, 0, 0, far));
            }
        }
    }
}

impl<N: Node> System for Nodes<N> {
    type State = Row;
    type Event = NodeEvent;

    fn initial(&self) -> Vec<Row> {
        let environment = self.intern_environment(Environment {
            left: FaultKind::ALL.map(|kind| self.faults.budget(kind)),
            cut: None,
        });
        let mut empty = Row {
            sum: 0,
            ids: std::iter::repeat_n(Inboxes::EMPTY, self.slots.len()).collect(),
        };
        empty.ids[ENVIRONMENT] = environment;
        empty.sum = bind(self.environments.hash(environment), self.slots[ENVIRONMENT]);
        for node in 0..self.nodes.len() {
            let nothing = bind(
                self.inboxes.hash(Inboxes::EMPTY),
                self.slots[inbox_slot(node)],
            );
            empty.sum = empty.sum.wrapping_add(nothing);
        }
        let mut rows = vec![empty];
        for node in 0..self.nodes.len() {
            let starts = self.start(node);
            rows = rows
                .iter()
                .flat_map(|row| starts.iter().map(move |start| (row, start)))
                .map(|(row, Start { local, sent })| {
                    let mut row = row.clone();
                    let slot = local_slot(node);
                    let id = self.intern_local(node, local.clone());
                    row.ids[slot] = id;
                    let hash = bind(self.locals[node].hash(id), self.slots[slot]);
                    row.sum = row.sum.wrapping_add(hash);
                    self.send(&mut row, sent);
                    row
                })
                .collect();
        }
        rows
    }

    #[inline]
    fn events(&self, row: &Row, out: &mut Vec<NodeEvent>) {
        for node in 0..self.nodes.len() {
            let local = row.ids[local_slot(node)];
            let item = self.locals[node].get(local);
            for &input in &item.own {
                self.push_input(Kind::Own, node, 0, local, input, out);
            }
            if !item.local.is_up() {
                continue;
            }
            for (head, input) in self.inboxes.heads(row.ids[inbox_slot(node)]).enumerate() {
                let outcomes = self.outcomes_of(local, input);
                let set = &self.outcomes[outcomes as usize];
                if set.idle && self.skips_idle {
                    continue;
                }
                for choice in 0..set.outcomes.len() {
                    out.push(NodeEvent {
                        kind: Kind::Deliver,
                        node: node as u16,
                        head: head as u16,
                        choice: choice as u16,
                        input,
                        outcomes,
                    });
                }
            }
        }
        if !self.faults.is_none() {
            self.push_faults(row, self.environment(row), out);
        }
    }

    #[inline]
    fn next(&self, row: &Row, event: &NodeEvent) -> Result<Row, Failure> {
        let mut next = row.clone();
        let node = usize::from(event.node);
        let head = usize::from(event.head);
        let inbox = row.ids[inbox_slot(node)];
        let spend = |kind| self.environment(row).spend(kind);
        match event.kind {
            Kind::Own => self.act(&mut next, event)?,
            Kind::Deliver => {
                self.set_inbox(&mut next, node, self.inboxes.without(inbox, head, self));
                self.act(&mut next, event)?;
            }
            Kind::Drop => {
                self.set_inbox(&mut next, node, self.inboxes.without(inbox, head, self));
                self.set_environment(&mut next, spend(FaultKind::Drop));
            }
            Kind::Duplicate => {
                self.set_inbox(&mut next, node, self.inboxes.with_copy(inbox, head, self));
                self.set_environment(&mut next, spend(FaultKind::Duplicate));
            }
            Kind::Crash => {
                self.act(&mut next, event)?;
                if self.network.order == Order::PerLink {
                    self.set_inbox(&mut next, node, Inboxes::EMPTY);
                }
                self.set_environment(&mut next, spend(FaultKind::Crash));
            }
            Kind::Restart => {
                self.act(&mut next, event)?;
                self.set_environment(&mut next, spend(FaultKind::Restart));
            }
            Kind::Partition => {
                let mut environment = spend(FaultKind::Partition);
                environment.cut = Some(u64::from(event.input));
                for to in 0..self.nodes.len() {
                    let reaches = |envelope| !environment.separates(self.place(envelope).0, to);
                    let inbox = self.inboxes.only(row.ids[inbox_slot(to)], self, reaches);
                    self.set_inbox(&mut next, to, inbox);
                }
                self.set_environment(&mut next, environment);
            }
            Kind::Heal => {
                let mut environment = self.environment(row).clone();
                environment.cut = None;
                self.set_environment(&mut next, environment);
            }
        }
        Ok(next)
    }

    #[inline]
    fn fingerprint(&self, row: &Row, key: Key) -> Fingerprint {
        let sum = if key == self.key {
            row.sum
        } else {
            self.sum_from_contents(row, key)
        };
        Fingerprint(finish(sum))
    }

    fn kind(&self, _row: &Row, event: &NodeEvent) -> EventKind {
        match event.kind {
            Kind::Deliver if self.outcomes[event.outcomes as usize].idle => EventKind::Idle,
            Kind::Own | Kind::Deliver | Kind::Heal => EventKind::Progress,
            _ => EventKind::Fault,
        }
    }

    fn waiting(&self, row: &Row) -> Vec<ComponentId> {
        (0..self.nodes.len())
            .filter(|&node| self.local(node, row.ids[local_slot(node)]).waits())
            .map(ComponentId)
            .collect()
    }

    fn component(&self, event: &NodeEvent) -> ComponentId {
        ComponentId(usize::from(event.node))
    }

    fn components(&self) -> Vec<String> {
        self.names.clone()
    }

    fn effect(&self, _row: &Row, event: &NodeEvent) -> Effect {
        let exchange = |input: u32| {
            let Input::Deliver(envelope) = self.input(input) else {
                unreachable!("only messages are exchanged");
            };
            Exchange {
                from: ComponentId(envelope.from.0),
                to: ComponentId(envelope.to.0),
                content: Fingerprint(self.inputs.get(input).order),
            }
        };
        let acts = matches!(
            event.kind,
            Kind::Own | Kind::Deliver | Kind::Crash | Kind::Restart
        );
        Effect {
            received: (event.kind == Kind::Deliver).then(|| exchange(event.input)),
            sent: if acts {
                self.outcome_of(event)
                    .sent
                    .iter()
                    .map(|&e| exchange(e))
                    .collect()
            } else {
                Vec::new()
            },
        }
    }

    fn explain(&self, before: &Row, event: &NodeEvent, after: Option<&Row>) -> Step {
        self.tell(before, event, after)
    }

    fn reenact(&self, row: &Row, event: &NodeEvent) {
        if matches!(
            event.kind,
            Kind::Own | Kind::Deliver | Kind::Crash | Kind::Restart
        ) {
            let node = usize::from(event.node);
            let rest = self.outcome_of(event).rest.as_ref();
            let choices = rest.map_or(&[][..], |rest| &rest.choices);
            let mut cx = Context::choosing(NodeId(node), self.nodes.len(), choices);
            let local = self.local(node, row.ids[local_slot(node)]);
            self.handle(local, self.input(event.input), &mut cx);
        }
    }

    fn introduce(&self, row: &Row) -> Vec<String> {
        self.describe(row)
    }
}
