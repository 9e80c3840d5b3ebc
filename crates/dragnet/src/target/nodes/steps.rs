//! The steps of a cluster: which are enabled in a row, and the row that each leads to.

use std::collections::BTreeMap;

use super::cell::{Cell, Move, Replacement};
use super::environment::Environment;
use super::faults::FaultKind;
use super::inbox::Inboxes;
use super::network::Order;
use super::outcome::Outcome;
use super::row::{ENVIRONMENT, Row};
use super::run::NodeRun;
use super::system::Nodes;
use crate::coarse_hash::CoarseHash;
use crate::panics;
use crate::run::Run;
use crate::step_guard;
use crate::system::{Actor, ComponentId, EventKind, Failure, Successor, System, Task};
use crate::tables::prefetch;
use crate::target::parts::{Beginning, Sent};
use crate::trace::{Fingerprint, Key, Step, bind, finish};

/// A step of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct NodeEvent {
    pub(super) kind: Kind,
    pub(super) node: u8,
    /// Where in the node's inbox the message stands.
    pub(super) at: u16,
    pub(super) choice: u32,
    /// Which of the moves of the node's cell it is.
    pub(super) number: u32,
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

impl NodeEvent {
    /// What an input does to a node, whatever its handler chooses.
    pub(super) fn of_input(kind: Kind, node: usize, input: u32) -> Self {
        Self {
            kind,
            node: node as u8,
            at: 0,
            choice: 0,
            number: 0,
            input,
            outcomes: 0,
        }
    }
}

impl Nodes {
    #[inline]
    fn set_cell(row: &mut Row, node: usize, Replacement { cell, delta }: Replacement) {
        row.sum = row.sum.wrapping_add(delta);
        row.set_cell(node, cell);
    }

    fn set_inbox(&self, row: &mut Row, node: usize, inbox: u32) {
        let old = row.cell(node);
        let new = self.find_cell(node, self.cell(row, node).local, inbox);
        Self::set_cell(row, node, self.cells.replace(old, new));
    }

    pub(super) fn set_environment(&self, row: &mut Row, environment: Environment) {
        let new = self.intern_environment(environment);
        let bound = |id| bind(self.environments.hash(id), self.slots[ENVIRONMENT]);
        row.sum = row
            .sum
            .wrapping_add(bound(new))
            .wrapping_sub(bound(row.environment()));
        row.set_environment(new);
    }

    pub(super) fn environment(&self, row: &Row) -> &Environment {
        self.environments.get(row.environment())
    }

    /// Sends messages on their way, as far as the network lets them.
    #[inline]
    fn send(&self, row: &mut Row, from: usize, sent: &[Sent]) {
        if sent.len() > MANY {
            self.send_many(row, from, sent);
        } else if self.has_faults && self.environment(row).cut.is_some() {
            let cut = self.environment(row).clone();
            let reaches = |sent: &&Sent| !cut.separates(from, sent.to as usize);
            for sent in sent.iter().filter(reaches) {
                self.send_one(row, sent);
            }
        } else {
            for sent in sent {
                self.send_one(row, sent);
            }
        }
    }

    /// The same for so many that an inbox for each number of them would take long to make.
    #[cold]
    fn send_many(&self, row: &mut Row, from: usize, sent: &[Sent]) {
        let cut = self.environment(row).clone();
        let mut by_receiver: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for &Sent { to, envelope } in sent {
            let to = to as usize;
            if !cut.separates(from, to) {
                by_receiver.entry(to).or_default().push(envelope);
            }
        }
        for (to, envelopes) in by_receiver {
            let inbox = self
                .inboxes
                .with_all(self.cell(row, to).inbox, &envelopes, self);
            self.set_inbox(row, to, inbox);
        }
    }

    #[inline]
    fn send_one(&self, row: &mut Row, &Sent { to, envelope }: &Sent) {
        let to = to as usize;
        let cell = row.cell(to);
        let after = self.cells.after_arrival(cell, envelope, |cell| {
            let inbox = self.inboxes.with(cell.inbox, envelope, self);
            self.find_cell(to, cell.local, inbox)
        });
        prefetch(self.cells.get(after.cell));
        Self::set_cell(row, to, after);
    }

    /// Makes of `next`, a copy of `row`, the row after a node's own input or a delivery.
    #[inline]
    fn advance(&self, row: &Row, node: usize, step: &Move, next: &mut Row) {
        let after = step.after(|| self.after_move(row, node, step));
        prefetch(self.cells.get(after.cell));
        Self::set_cell(next, node, after);
        self.send(next, node, &step.sent);
    }

    #[cold]
    fn after_move(&self, row: &Row, node: usize, step: &Move) -> Replacement {
        let cell = self.cell(row, node);
        let inbox = match step.kind {
            Kind::Deliver => self.inboxes.without(cell.inbox, usize::from(step.at), self),
            _ => cell.inbox,
        };
        let outcome = self.outcome(step.outcomes, step.choice);
        let after = self.find_cell(node, outcome.local, inbox);
        self.cells.replace(row.cell(node), after)
    }

    /// Makes of a row that after an outcome for a node, which ends with `inbox`.
    pub(super) fn settle(
        &self,
        row: &mut Row,
        node: usize,
        outcome: &Outcome,
        inbox: u32,
    ) -> Result<(), Failure> {
        if outcome.fails() {
            return Err(outcome.failure());
        }
        let old = row.cell(node);
        let new = self.find_cell(node, outcome.local, inbox);
        Self::set_cell(row, node, self.cells.replace(old, new));
        self.send(row, node, &outcome.sent);
        Ok(())
    }

    /// What is enabled that a node does itself in a row, or that is delivered to it. No handler is run for that: what a
    /// delivery does, and whether it does anything, is open.
    pub(super) fn open_tasks(&self, row: &Row, node: usize, out: &mut Vec<NodeEvent>) {
        let cell = self.cell(row, node);
        let mut push = |kind, at, input| {
            self.keep_places(at, input);
            out.push(NodeEvent {
                at: short(at),
                ..NodeEvent::of_input(kind, node, input)
            });
        };
        for (at, &input) in self.handlers.own_inputs(cell.local).iter().enumerate() {
            push(Kind::Own, at, input);
        }
        if self.handlers.is_up(cell.local) {
            for (at, input) in self.inboxes.heads(cell.inbox, self) {
                push(Kind::Deliver, at, input);
            }
        }
    }

    #[inline]
    pub(super) fn outcome_of(&self, event: &NodeEvent) -> &Outcome {
        self.outcome(event.outcomes, event.choice)
    }

    fn outcome(&self, outcomes: u32, choice: u32) -> &Outcome {
        &self.handlers.outcomes(outcomes).outcomes[choice as usize]
    }

    /// What is on the links that come back when a partition heals.
    pub(super) fn notices(&self, environment: &Environment) -> Vec<Sent> {
        let ids = 0..self.len();
        let links = ids
            .clone()
            .flat_map(|from| ids.clone().map(move |to| (from, to)));
        links
            .filter(|&(from, to)| environment.separates(from, to))
            .filter_map(|(from, to)| self.handlers.notice(from, to))
            .collect()
    }

    /// What a node can do in a cell: its own inputs, then deliveries.
    #[cold]
    fn moves(&self, cell: &Cell) -> Box<[Move]> {
        let mut moves = Vec::new();
        let mut push = |kind, at, outcomes| {
            let choices = self.handlers.outcomes(outcomes).outcomes.iter().enumerate();
            moves.extend(
                choices.map(|(choice, outcome)| Move::new(kind, at, outcomes, choice, outcome)),
            );
        };
        for (at, &input) in self.handlers.own_inputs(cell.local).iter().enumerate() {
            self.keep_places(at, input);
            push(Kind::Own, at, self.handlers.outcomes_of(cell.local, input));
        }
        if self.handlers.is_up(cell.local) {
            for (at, input) in self.inboxes.heads(cell.inbox, self) {
                let outcomes = self.handlers.outcomes_of(cell.local, input);
                if !(self.skips_idle && self.handlers.outcomes(outcomes).idle) {
                    self.keep_places(at, input);
                    push(Kind::Deliver, at, outcomes);
                }
            }
        }
        // Exactly as much memory as they need.
        moves.drain(..).collect()
    }

    /// Gives up at an input of a node whose place an event cannot hold.
    pub(super) fn keep_places(&self, at: usize, input: u32) {
        if u16::try_from(at).is_err() {
            panics::limit(self.handlers.too_many_like(input));
        }
    }

    /// The event that a move of a cell is.
    #[inline]
    fn event(&self, node: usize, cell: &Cell, (number, step): (usize, &Move)) -> NodeEvent {
        let at = usize::from(step.at);
        NodeEvent {
            kind: step.kind,
            node: node as u8,
            at: step.at,
            number: number as u32,
            choice: step.choice,
            input: match step.kind {
                Kind::Deliver => self.inboxes.envelopes(cell.inbox)[at],
                _ => self.handlers.own_inputs(cell.local)[at],
            },
            outcomes: step.outcomes,
        }
    }

    /// Lists a fault that runs a handler, for each of its outcomes.
    fn push_outcomes(
        &self,
        row: &Row,
        (kind, node, input): (Kind, usize, u32),
        out: &mut Vec<NodeEvent>,
    ) {
        let outcomes = self.handlers.outcomes_of(self.cell(row, node).local, input);
        for choice in 0..self.handlers.outcomes(outcomes).outcomes.len() {
            out.push(NodeEvent {
                kind,
                node: node as u8,
                at: 0,
                number: 0,
                choice: choice_number(choice),
                input,
                outcomes,
            });
        }
    }

    /// Lists the faults that are enabled. Crashes and restarts, which run handlers, are listed by `push_handled`: of so many
    /// of a node with an input.
    pub(super) fn push_faults(
        &self,
        row: &Row,
        out: &mut Vec<NodeEvent>,
        mut push_handled: impl FnMut(Kind, usize, u32, &mut Vec<NodeEvent>),
    ) {
        let environment = self.environment(row);
        let plain = |kind, node: usize, at: usize, input| NodeEvent {
            kind,
            node: node as u8,
            at: short(at),
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
                for node in 0..self.len() {
                    let heads = self.inboxes.heads(self.cell(row, node).inbox, self);
                    out.extend(heads.map(|(at, input)| plain(kind, node, at, input)));
                }
            }
        }
        for node in 0..self.len() {
            let (crash, restart) = self.handlers.crash_and_restart(node);
            if self.handlers.is_up(self.cell(row, node).local) {
                if environment.allows(FaultKind::Crash) {
                    push_handled(Kind::Crash, node, crash, out);
                }
            } else if environment.allows(FaultKind::Restart) {
                push_handled(Kind::Restart, node, restart, out);
            }
        }
        if environment.cut.is_some() {
            out.push(plain(Kind::Heal, 0, 0, 0));
        } else if environment.allows(FaultKind::Partition) && self.len() > 1 {
            // Node 0 stays on the near side, so that each way to fall in two comes up once.
            for far in (2..1_u32 << self.len()).step_by(2) {
                out.push(plain(Kind::Partition, 0, 0, far));
            }
        }
    }
}

impl System for Nodes {
    const COMPARES_PARTS: bool = true;

    type State = Row;
    type Event = NodeEvent;

    fn initial(&self) -> Vec<Row> {
        let environment = self.intern_environment(Environment {
            left: FaultKind::ALL.map(|kind| self.handlers.budget(kind)),
            cut: None,
        });
        if self.handlers.budget(FaultKind::Partition) > 0 && self.len() > 1 {
            // A notice whose `Hash` or `Eq` panics does so here, and not where a partition heals.
            self.handlers.notice(0, 1);
        }
        let bound = bind(self.environments.hash(environment), self.slots[ENVIRONMENT]);
        let mut rows = vec![Row::new(bound, environment, self.len())];
        // Nobody is sent anything before everybody is there.
        let mut sent = vec![Vec::new()];
        let mut made = 0_usize;
        let mut count = || {
            made += 1;
            step_guard::give_up_if_interrupted(|| format!("{made} beginnings were put together"));
        };
        for node in 0..self.len() {
            let starts = self.handlers.starts(node).into_iter();
            let starts: Vec<(u32, Beginning)> = starts
                .map(|start| {
                    count();
                    (self.find_cell(node, start.local, Inboxes::EMPTY), start)
                })
                .collect();
            let mut more = Vec::new();
            for (row, sent) in rows.iter().zip(&sent) {
                for (cell, start) in &starts {
                    count();
                    let mut row = row.clone();
                    row.set_cell(node, *cell);
                    row.sum = row.sum.wrapping_add(self.cells.get(*cell).bound);
                    let mut sent = sent.clone();
                    sent.push(start.sent.clone());
                    more.push((row, sent));
                }
            }
            (rows, sent) = more.into_iter().unzip();
        }
        for (row, sent) in rows.iter_mut().zip(&sent) {
            count();
            for (from, sent) in sent.iter().enumerate() {
                self.send(row, from, sent);
            }
        }
        rows
    }

    #[inline]
    fn events(&self, row: &Row, out: &mut Vec<NodeEvent>) {
        for node in 0..self.len() {
            let cell = self.cell(row, node);
            let moves = cell.moves(|cell| self.moves(cell)).iter().enumerate();
            out.extend(moves.map(|step| self.event(node, cell, step)));
        }
        if self.has_faults {
            self.push_faults(row, out, |kind, node, input, out| {
                self.push_outcomes(row, (kind, node, input), out);
            });
        }
    }

    #[inline]
    fn anticipate(&self, row: &Row) {
        for node in 0..self.len() {
            prefetch(self.cell(row, node));
        }
    }

    #[inline]
    fn successors(&self, row: &Row, scratch: &mut Vec<NodeEvent>, out: &mut Vec<Successor<Row>>) {
        let mut position = 0;
        for node in 0..self.len() {
            let cell = self.cell(row, node);
            for step in cell.moves(|cell| self.moves(cell)) {
                // The row is made where it stays.
                let next = Ok(row.clone());
                out.push(Successor { position, next });
                let next = &mut out.last_mut().expect("it has just been pushed").next;
                match next {
                    Ok(next) if !step.fails => self.advance(row, node, step, next),
                    _ => {
                        let outcome = self.outcome(step.outcomes, step.choice);
                        *next = Err(outcome.failure());
                    }
                }
                position += 1;
            }
        }
        if self.has_faults {
            scratch.clear();
            self.push_faults(row, scratch, |kind, node, input, out| {
                self.push_outcomes(row, (kind, node, input), out);
            });
            out.extend(scratch.iter().enumerate().map(|(fault, event)| Successor {
                position: position + fault,
                next: self.next(row, event),
            }));
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
                let moves = cell.moves(|cell| self.moves(cell));
                let step = &moves[event.number as usize];
                if step.fails {
                    return Err(self.outcome_of(event).failure());
                }
                self.advance(row, node, step, &mut next);
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
                let inbox = match self.order {
                    Order::Any => cell.inbox,
                    Order::PerLink => Inboxes::EMPTY,
                };
                self.settle(&mut next, node, self.outcome_of(event), inbox)?;
                self.set_environment(&mut next, spend(FaultKind::Crash));
            }
            Kind::Restart => {
                self.settle(&mut next, node, self.outcome_of(event), cell.inbox)?;
                self.set_environment(&mut next, spend(FaultKind::Restart));
            }
            Kind::Partition => {
                let mut environment = spend(FaultKind::Partition);
                environment.cut = Some(u64::from(event.input));
                for to in 0..self.len() {
                    let reaches =
                        |envelope| !environment.separates(self.handlers.place(envelope).0, to);
                    let inbox = self.inboxes.only(self.cell(row, to).inbox, self, reaches);
                    self.set_inbox(&mut next, to, inbox);
                }
                self.set_environment(&mut next, environment);
            }
            Kind::Heal => {
                let mut environment = self.environment(row).clone();
                let notices = self.notices(&environment);
                environment.cut = None;
                self.set_environment(&mut next, environment);
                for notice in &notices {
                    self.send_one(&mut next, notice);
                }
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

    fn run(&self, start: &Row) -> Result<Box<dyn Run<Self> + '_>, Failure> {
        Ok(Box::new(NodeRun::new(self, start)?))
    }

    fn coarse_hash(&self) -> Option<CoarseHash> {
        let parts = self.handlers.unequal_parts();
        parts.or_else(|| self.runs.coarse_hash())
    }

    fn afresh(&self) -> Option<Self> {
        Some(self.with_empty_tables())
    }

    fn kind(&self, _row: &Row, event: &NodeEvent) -> EventKind {
        match event.kind {
            Kind::Deliver if self.handlers.outcomes(event.outcomes).idle => EventKind::Idle,
            Kind::Own | Kind::Deliver | Kind::Heal => EventKind::Progress,
            _ => EventKind::Fault,
        }
    }

    fn waiting(&self, row: &Row) -> Vec<Actor> {
        (0..self.len())
            .filter(|&node| self.handlers.waits(self.cell(row, node).local))
            .map(|node| ComponentId(node).into())
            .collect()
    }

    fn awaits(&self, row: &Row, actor: Actor) -> Option<String> {
        let component = Task::by(actor).component()?;
        self.handlers.waits_for(self.cell(row, component.0).local)
    }

    fn task(&self, _row: &Row, event: &NodeEvent) -> Task {
        let node = ComponentId(usize::from(event.node));
        match event.kind {
            Kind::Own | Kind::Deliver => Task::of(node),
            Kind::Drop | Kind::Duplicate | Kind::Crash | Kind::Restart => {
                Task::of_the_environment(Some(node))
            }
            Kind::Partition | Kind::Heal => Task::of_the_environment(None),
        }
    }

    fn identity(&self, _row: &Row, event: &NodeEvent) -> Fingerprint {
        let about = match event.kind {
            Kind::Partition | Kind::Heal => u64::from(event.input),
            _ => self.handlers.input_hash(event.input),
        };
        Fingerprint::of(&(event.kind as u8, about), Key::default())
    }

    fn components(&self) -> Vec<String> {
        self.handlers.names().to_vec()
    }

    fn explain(&self, before: &Row, event: &NodeEvent, after: Option<&Row>) -> Step {
        self.handlers.explain(self, before, event, after)
    }

    fn execute(&self, row: &Row, event: &NodeEvent) {
        if matches!(
            event.kind,
            Kind::Own | Kind::Deliver | Kind::Crash | Kind::Restart
        ) {
            let local = self.cell(row, usize::from(event.node)).local;
            let choices = self.outcome_of(event).choices();
            self.handlers.execute(local, event.input, choices);
        }
    }

    fn guards_steps(&self) -> bool {
        true
    }

    fn introduce(&self, row: &Row) -> Vec<String> {
        self.handlers.describe(self, row)
    }
}

/// A handler that sends more messages than this has them sent together.
const MANY: usize = 64;

/// A place in an inbox, or among the inputs that a node gives itself, as an event holds it.
pub(super) fn short(at: usize) -> u16 {
    u16::try_from(at).unwrap_or_else(|_| {
        panics::limit(
            "more than 65,536 messages are in flight to one node; bound the system with a capacity or `within`",
        )
    })
}

/// Which combination of choices an event stands for, as it holds it.
pub(super) fn choice_number(choice: usize) -> u32 {
    u32::try_from(choice).unwrap_or_else(|_| {
        panics::limit("a handler offers more than 2^32 combinations of choices")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::FailureKind;

    #[test]
    fn a_place_or_a_choice_beyond_the_last_is_a_limit() {
        assert_eq!(short(65_535), 65_535);
        assert_eq!(choice_number(u32::MAX as usize), u32::MAX);
        for failure in [
            panics::catch(|| short(65_536)).err(),
            panics::catch(|| choice_number(1 << 32)).err(),
        ] {
            let kind = failure.map(|failure| failure.kind());
            assert_eq!(kind, Some(FailureKind::Limit));
        }
    }
}
