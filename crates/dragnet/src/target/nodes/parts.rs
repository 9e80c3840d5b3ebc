//! A cluster taken apart, for local model checking.

use super::engine::Nodes;
use super::faults::FaultKind;
use super::inbox::Inboxes;
use super::local::{Envelope, Input};
use super::network::Order;
use super::row::Row;
use super::{Node, NodeId};
use crate::target::parts::{Beginning, Links, Nature, PartOutcome, Parts, Ran, Sent};

impl<N: Node> Parts for Nodes<N> {
    fn nodes(&self) -> usize {
        self.len()
    }

    fn starts(&self, node: usize) -> Vec<Beginning> {
        let starts = self.start(node).into_iter();
        starts
            .map(|start| Beginning {
                local: self.intern_local(node, start.local),
                sent: start.sent,
            })
            .collect()
    }

    fn local_hash(&self, local: u32) -> u64 {
        self.locals.hash(local)
    }

    fn is_up(&self, local: u32) -> bool {
        self.locals.get(local).local.is_up()
    }

    fn own_inputs(&self, local: u32) -> &[u32] {
        &self.locals.get(local).own
    }

    fn crash_and_restart(&self, node: usize) -> (u32, u32) {
        self.crash_inputs[node]
    }

    fn nature(&self, input: u32) -> Nature {
        match self.input(input) {
            Input::Deliver(envelope) => Nature::Delivery {
                from: envelope.from.0,
                to: envelope.to.0,
            },
            &Input::Call(_, number) => Nature::Call(number),
            Input::RunOut(..) => Nature::RunOut,
            Input::Crash(_) => Nature::Crash,
            Input::Restart(_) => Nature::Restart,
        }
    }

    fn input_hash(&self, input: u32) -> u64 {
        self.inputs.get(input).order
    }

    fn run(&self, local: u32, input: u32) -> Ran {
        let number = self.outcomes_of(local, input);
        let set = self.outcomes.get(number);
        Ran {
            number,
            choices: set.outcomes.len(),
            idle: set.idle,
        }
    }

    fn outcome(&self, run: u32, choice: usize) -> PartOutcome<'_> {
        let outcome = &self.outcomes.get(run).outcomes[choice];
        PartOutcome {
            local: outcome.local,
            sent: &outcome.sent,
            fails: outcome.fails(),
        }
    }

    fn notice(&self, from: usize, to: usize) -> Option<Sent> {
        let msg = self.network.reconnects_with.clone()?;
        let envelope = Envelope {
            from: NodeId(from),
            to: NodeId(to),
            msg,
        };
        Some(Sent {
            to: to as u32,
            envelope: self.intern_input(Input::Deliver(envelope)),
        })
    }

    fn pools(&self) -> Vec<u32> {
        let classes = self.network.classes.iter();
        let capacities = classes.map(|class| class.capacity);
        capacities
            .chain(self.network.capacity)
            .map(|capacity| capacity as u32)
            .collect()
    }

    fn pools_of(&self, envelope: u32) -> u64 {
        let link = u64::from(self.network.capacity.is_some());
        self.inputs.get(envelope).classes | link << self.network.classes.len()
    }

    fn links(&self) -> Links {
        Links {
            ordered: self.network.order == Order::PerLink,
            limited: self.network.is_limited(),
        }
    }

    fn budget(&self, kind: FaultKind) -> u32 {
        self.faults.budget(kind)
    }
}

impl<N: Node> Nodes<N> {
    /// The local state of a node in a row.
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
}
