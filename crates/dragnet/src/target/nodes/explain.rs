//! Steps and states of a cluster as a person reads them.

use super::interned::{Interned, LocalItem};
use super::local::{Input, Life};
use super::row::Row;
use super::steps::{Kind, NodeEvent};
use super::{InFlight, Node, NodeId, Nodes};
use crate::trace::{Step, debug};

impl<N: Node> Interned<N> {
    /// What a node waits for: the answer to its oldest open call, and timers that are set and may not run out again.
    pub(super) fn waits_for(&self, local: u32) -> Option<String> {
        let LocalItem { node, local, .. } = self.locals.get(local);
        if !local.waits() {
            return None;
        }
        let call = self.workloads[*node].calls.get(local.answered as usize)?;
        let mut text = format!("an answer to {}", debug(call));
        for timer in &local.timers {
            if let Some((_, budget)) = self.timer_budgets.iter().find(|(known, _)| known == timer) {
                text +=
                    &format!(" (its timer {timer} is set, but its budget of {budget} is spent)");
            }
        }
        Some(text)
    }

    /// What happens to a node with this input.
    pub(super) fn happening(&self, input: &Input<N::Msg>) -> String {
        match input {
            Input::Deliver(envelope) => {
                let msg = debug(&envelope.msg);
                format!("receives {msg} from {}", self.name(envelope.from))
            }
            Input::RunOut(_, timer) => format!("timer {timer} runs out"),
            &Input::Call(NodeId(id), call) => {
                let call = &self.workloads[id].calls[call as usize];
                format!("is called: {}", debug(call))
            }
            Input::Crash(_) => "crashes".to_owned(),
            Input::Restart(_) => "restarts".to_owned(),
        }
    }

    /// One step: who acts, what it receives, what changes, what it sends.
    pub(super) fn tell(
        &self,
        nodes: &Nodes,
        before: &Row,
        event: &NodeEvent,
        after: Option<&Row>,
    ) -> Step {
        let node = NodeId(usize::from(event.node));
        let message = |input: u32| match self.input(input) {
            Input::Deliver(envelope) => (
                debug(&envelope.msg),
                self.name(envelope.from),
                self.name(envelope.to),
            ),
            _ => unreachable!("only messages are lost or duplicated"),
        };
        let network = |action: String| Step {
            component: "network".to_owned(),
            action,
            ..Step::default()
        };
        let action = match event.kind {
            Kind::Drop => {
                let (msg, from, to) = message(event.input);
                return network(format!("loses {msg} from {from} to {to}"));
            }
            Kind::Duplicate => {
                let (msg, from, to) = message(event.input);
                return network(format!("duplicates {msg} from {from} to {to}"));
            }
            Kind::Partition => {
                let far = (0..self.nodes.len()).filter(|node| event.input >> node & 1 == 1);
                let far: Vec<&str> = far.map(|node| self.name(NodeId(node))).collect();
                return network(format!(
                    "falls in two: {} cut off from the rest",
                    far.join(", ")
                ));
            }
            Kind::Heal => {
                let mut step = network("heals".to_owned());
                for notice in nodes.notices(nodes.environment(before)) {
                    let (msg, from, to) = message(notice.envelope);
                    step.sent.push(format!("from {from} to {to}: {msg}"));
                }
                return step;
            }
            Kind::Crash | Kind::Restart | Kind::Deliver | Kind::Own => {
                self.happening(self.input(event.input))
            }
        };
        let mut step = Step {
            component: self.name(node).to_owned(),
            action,
            ..Step::default()
        };
        let outcome = nodes.outcome_of(event);
        for sent in outcome.sent.iter() {
            let (msg, _, to) = message(sent.envelope);
            step.sent.push(format!("to {to}: {msg}"));
        }
        if let Some(rest) = &outcome.rest {
            for choice in &rest.choices {
                step.notes.push(format!("chooses {choice}"));
            }
            let answers = rest.answers.downcast_ref::<Vec<N::Msg>>();
            for answer in answers.into_iter().flatten() {
                step.notes.push(format!("answers {}", debug(answer)));
            }
            for observation in &rest.observations {
                step.notes.push(format!("observes {observation}"));
            }
        }
        if let Some(after) = after {
            let local = |row| self.local(nodes.local_in(row, node.0));
            let (before, after) = (local(before), local(after));
            step.changed = match (before.state(), after.state()) {
                (Some(before), Some(after)) => Step::changes(before, after),
                (None, Some(after)) => vec![format!("comes back as {}", debug(after))],
                (Some(_), None) => match &after.life {
                    Life::Down(Some(durable)) => vec![format!("keeps {}", debug(durable))],
                    _ => vec!["keeps nothing".to_owned()],
                },
                (None, None) => Vec::new(),
            };
            let set = after.timers.iter().filter(|t| !before.timers.contains(t));
            step.notes
                .extend(set.map(|timer| format!("sets timer {timer}")));
            let ran_out = match self.input(event.input) {
                Input::RunOut(_, timer) => Some(*timer),
                _ => None,
            };
            let cancelled = before
                .timers
                .iter()
                .filter(|&timer| !after.timers.contains(timer) && Some(*timer) != ran_out);
            if after.is_up() {
                step.notes
                    .extend(cancelled.map(|timer| format!("cancels timer {timer}")));
            }
        }
        step
    }

    /// A state, a line a node and a line a message in flight.
    pub(super) fn describe_row(&self, nodes: &Nodes, row: &Row) -> Vec<String> {
        let mut lines = Vec::new();
        for node in 0..self.nodes.len() {
            let local = self.local(nodes.local_in(row, node));
            if let Some(state) = local.state() {
                lines.push(format!("{}: {}", self.names[node], debug(state)));
            }
        }
        for (from, to, msg) in InFlight::<N>::new(nodes, row).iter() {
            let (from, to) = (self.name(from), self.name(to));
            lines.push(format!("in flight from {from} to {to}: {}", debug(msg)));
        }
        lines
    }
}
