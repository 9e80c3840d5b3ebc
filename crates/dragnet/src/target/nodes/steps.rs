//! The steps of a cluster: which are enabled in a row, and the row that each leads to.

use super::cell::{Cell, Move};
use super::engine::{Environment, Nodes, Outcome, Sent, Start};
use super::faults::FaultKind;
use super::inbox::{Envelopes, Inboxes};
use super::local::Input;
use super::network::Order;
use super::row::{ENVIRONMENT, Ids, Row, cell_place};
use super::{Context, Node, NodeId};
use crate::system::{Ahead, ComponentId, EventKind, Failure, System};
use crate::tables::prefetch;
use crate::trace::{Effect, Exchange, Fingerprint, Key, Step, bind, finish};

/// A step of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct NodeEvent {
    pub(super) kind: Kind,
    pub(super) node: u8,
    /// Where in the node's inbox the message stands.
    pub(super) at: u16,
    /// Which of the moves of the node's cell it is.
    pub(super) number: u16,
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
    #[inline]
    fn set_cell(&self, row: &mut Row, node: usize, cell: u32) {
        let place = cell_place(node);
        let cells = &self.cells[node];
        let old = row.ids[place];
        row.sum = row
            .sum
            .wrapping_add(cells.get(cell).bound)
            .wrapping_sub(cells.get(old).bound);
        row.ids[place] = cell;
    }

    fn set_inbox(&self, row: &mut Row, node: usize, inbox: u32) {
        let cell = self.find_cell(node, self.cell(row, node).local, inbox);
        self.set_cell(row, node, cell);
    }

    fn set_environment(&self, row: &mut Row, environment: Environment) {
        let new = self.intern_environment(environment);
        let bound = |id| bind(self.environments.hash(id), self.slots[ENVIRONMENT]);
        row.sum = row
            .sum
            .wrapping_add(bound(new))
            .wrapping_sub(bound(row.ids[ENVIRONMENT]));
        row.ids[ENVIRONMENT] = new;
    }

    pub(super) fn environment(&self, row: &Row) -> &Environment {
        self.environments.get(row.ids[ENVIRONMENT])
    }

    /// Sends messages on their way, as far as the network lets them.
    #[inline]
    fn send(&self, row: &mut Row, from: usize, sent: &[Sent]) {
        let cut = !self.faults.is_none() && self.environment(row).cut.is_some();
        for &Sent { to, envelope } in sent {
            let to = to as usize;
            if cut && self.environment(row).separates(from, to) {
                continue;
            }
            let cell = row.ids[cell_place(to)];
            let after = self.cells[to].after_arrival(cell, envelope, |cell| {
                let inbox = self.inboxes.with(cell.inbox, envelope, self);
                self.find_cell(to, cell.local, inbox)
            });
            self.set_cell(row, to, after);
        }
    }

    /// The row after a node's own input or a delivery.
    #[inline]
    fn make(&self, row: &Row, cell: &Cell, step: &Move) -> Result<Row, Failure> {
        let event = &step.event;
        let mut next = row.clone();
        self.act(&mut next, event, |local| {
            step.after(|| {
                let inbox = match event.kind {
                    Kind::Deliver => self
                        .inboxes
                        .without(cell.inbox, usize::from(event.at), self),
                    _ => cell.inbox,
                };
                self.find_cell(usize::from(event.node), local, inbox)
            })
        })?;
        Ok(next)
    }

    /// Replaces the cell of the node that acts by `after`, and sends what it sends.
    #[inline]
    fn act(
        &self,
        row: &mut Row,
        event: &NodeEvent,
        after: impl FnOnce(u32) -> u32,
    ) -> Result<(), Failure> {
        let outcome = self.outcome_of(event);
        if let Some(failure) = outcome.rest.as_ref().and_then(|rest| rest.failure.as_ref()) {
            return Err(failure.clone());
        }
        let node = usize::from(event.node);
        self.set_cell(row, node, after(outcome.local));
        if !outcome.sent.is_empty() {
            self.send(row, node, &outcome.sent);
        }
        Ok(())
    }

    #[inline]
    pub(super) fn outcome_of(&self, event: &NodeEvent) -> &Outcome<N::Msg> {
        &self.outcomes.get(event.outcomes).outcomes[usize::from(event.choice)]
    }

    /// What a node can do in a cell: its own inputs, then deliveries.
    fn moves(&self, node: usize, cell: &Cell) -> Vec<Move> {
        let mut events = Vec::new();
        let item = self.locals[node].get(cell.local);
        for &input in &item.own {
            self.push_input(Kind::Own, node, 0, cell.local, input, &mut events);
        }
        if item.local.is_up() {
            for (at, input) in self.inboxes.heads(cell.inbox, self) {
                let outcomes = self.outcomes_of(cell.local, input);
                if !(self.skips_idle && self.outcomes.get(outcomes).idle) {
                    self.push_input(Kind::Deliver, node, at, cell.local, input, &mut events);
                }
            }
        }
        let numbered = events.into_iter().enumerate();
        numbered
            .map(|(number, event)| {
                Move::new(NodeEvent {
                    number: number as u16,
                    ..event
                })
            })
            .collect()
    }

    fn push_input(
        &self,
        kind: Kind,
        node: usize,
        at: usize,
        local: u32,
        input: u32,
        out: &mut Vec<NodeEvent>,
    ) {
        let outcomes = self.outcomes_of(local, input);
        for choice in 0..self.outcomes.get(outcomes).outcomes.len() {
            out.push(NodeEvent {
                kind,
                node: node as u8,
                at: at as u16,
                number: 0,
                choice: choice as u16,
                input,
                outcomes,
            });
        }
    }

    fn push_faults(&self, row: &Row, environment: &Environment, out: &mut Vec<NodeEvent>) {
        let plain = |kind, node: usize, at: usize, input| NodeEvent {
            kind,
            node: node as u8,
            at: at as u16,
            number: 0,
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
                    let heads = self.inboxes.heads(self.cell(row, node).inbox, self);
                    out.extend(heads.map(|(at, input)| plain(kind, node, at, input)));
                }
            }
        }
        for (node, &(crash, restart)) in self.crash_inputs.iter().enumerate() {
            let local = self.cell(row, node).local;
            if self.local(row, node).is_up() {
                if environment.allows(FaultKind::Crash) {
                    self.push_input(Kind::Crash, node, 0, local, crash, out);
                }
            } else if environment.allows(FaultKind::Restart) {
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
        let bound = bind(self.environments.hash(environment), self.slots[ENVIRONMENT]);
        let mut ids = Ids::zeros(1 + self.nodes.len());
        ids[ENVIRONMENT] = environment;
        let mut rows = vec![Row { sum: bound, ids }];
        // Nobody is sent anything before everybody is there.
        let mut sent = vec![Vec::new()];
        for node in 0..self.nodes.len() {
            let starts: Vec<(u32, Start<N::State>)> = self
                .start(node)
                .into_iter()
                .map(|start| {
                    let local = self.intern_local(node, start.local.clone());
                    (self.find_cell(node, local, Inboxes::EMPTY), start)
                })
                .collect();
            let mut more = Vec::new();
            for (row, sent) in rows.iter().zip(&sent) {
                for (cell, start) in &starts {
                    let mut row = row.clone();
                    row.ids[cell_place(node)] = *cell;
                    row.sum = row.sum.wrapping_add(self.cells[node].get(*cell).bound);
                    let mut sent = sent.clone();
                    sent.push(start.sent.clone());
                    more.push((row, sent));
                }
            }
            (rows, sent) = more.into_iter().unzip();
        }
        for (row, sent) in rows.iter_mut().zip(&sent) {
            for (from, sent) in sent.iter().enumerate() {
                self.send(row, from, sent);
            }
        }
        rows
    }

    #[inline]
    fn events(&self, row: &Row, out: &mut Vec<NodeEvent>) {
        for node in 0..self.nodes.len() {
            let moves = self.cell(row, node).moves(|cell| self.moves(node, cell));
            out.extend(moves.iter().map(|step| step.event));
        }
        if !self.faults.is_none() {
            self.push_faults(row, self.environment(row), out);
        }
    }

    #[inline]
    fn anticipate(&self, row: &Row, when: Ahead) {
        for node in 0..self.nodes.len() {
            let cell = self.cell(row, node);
            match when {
                Ahead::Far => prefetch(cell),
                Ahead::Near => cell.anticipate(),
            }
        }
    }

    #[inline]
    fn successors(
        &self,
        row: &Row,
        scratch: &mut Vec<NodeEvent>,
        mut each: impl FnMut(usize, Result<Row, Failure>),
    ) {
        let mut position = 0;
        for node in 0..self.nodes.len() {
            let cell = self.cell(row, node);
            for step in cell.moves(|cell| self.moves(node, cell)) {
                each(position, self.make(row, cell, step));
                position += 1;
            }
        }
        if !self.faults.is_none() {
            scratch.clear();
            self.push_faults(row, self.environment(row), scratch);
            for (fault, event) in scratch.iter().enumerate() {
                each(position + fault, self.next(row, event));
            }
        }
    }

    #[inline]
    fn next(&self, row: &Row, event: &NodeEvent) -> Result<Row, Failure> {
        let mut next = row.clone();
        let node = usize::from(event.node);
        let at = usize::from(event.at);
        let cell = self.cell(row, node);
        let spend = |kind| self.environment(row).spend(kind);
        match event.kind {
            Kind::Own | Kind::Deliver => {
                let moves = cell.moves(|cell| self.moves(node, cell));
                return self.make(row, cell, &moves[usize::from(event.number)]);
            }
            Kind::Drop => {
                self.set_inbox(&mut next, node, self.inboxes.without(cell.inbox, at, self));
                self.set_environment(&mut next, spend(FaultKind::Drop));
            }
            Kind::Duplicate => {
                self.set_inbox(
                    &mut next,
                    node,
                    self.inboxes.with_copy(cell.inbox, at, self),
                );
                self.set_environment(&mut next, spend(FaultKind::Duplicate));
            }
            Kind::Crash => {
                let inbox = match self.network.order {
                    Order::Any => cell.inbox,
                    Order::PerLink => Inboxes::EMPTY,
                };
                self.act(&mut next, event, |local| self.find_cell(node, local, inbox))?;
                self.set_environment(&mut next, spend(FaultKind::Crash));
            }
            Kind::Restart => {
                self.act(&mut next, event, |local| {
                    self.find_cell(node, local, cell.inbox)
                })?;
                self.set_environment(&mut next, spend(FaultKind::Restart));
            }
            Kind::Partition => {
                let mut environment = spend(FaultKind::Partition);
                environment.cut = Some(u64::from(event.input));
                for to in 0..self.nodes.len() {
                    let reaches = |envelope| !environment.separates(self.place(envelope).0, to);
                    let inbox = self.inboxes.only(self.cell(row, to).inbox, self, reaches);
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
            Kind::Deliver if self.outcomes.get(event.outcomes).idle => EventKind::Idle,
            Kind::Own | Kind::Deliver | Kind::Heal => EventKind::Progress,
            _ => EventKind::Fault,
        }
    }

    fn waiting(&self, row: &Row) -> Vec<ComponentId> {
        (0..self.nodes.len())
            .filter(|&node| self.local(row, node).waits())
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
                    .map(|sent| exchange(sent.envelope))
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
            let local = self.local(row, node);
            self.handle(local, self.input(event.input), &mut cx);
        }
    }

    fn introduce(&self, row: &Row) -> Vec<String> {
        self.describe(row)
    }
}
