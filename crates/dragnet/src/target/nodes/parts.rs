//! A cluster taken apart, for local model checking.

use super::faults::FaultKind;
use super::interned::Interned;
use super::local::{Envelope, Input};
use super::network::Order;
use super::{Node, NodeId};
use crate::target::parts::{Beginning, Links, Nature, PartOutcome, Parts, Ran, Sent};

impl<N: Node> Parts for Interned<N> {
    fn nodes(&self) -> usize {
        self.nodes.len()
    }

    fn starts(&self, node: usize) -> Vec<Beginning> {
        let starts = self.start(node).into_iter();
        starts
            .map(|start| Beginning {
                local: self.intern_start(node, start.local),
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
            // There are never as many messages as that.
            .map(|capacity| u32::try_from(capacity).unwrap_or(u32::MAX))
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::engine::{Local, Pruning};
    use crate::target::nodes::*;
    use crate::{Check, Outcome, panics};

    /// Meets a limit of the checker when its timer runs out.
    struct Limited;

    impl Node for Limited {
        type State = ();
        type Msg = ();

        fn on_start(&self, cx: &mut Context<()>) {
            cx.set_timer(Timer::new("soon"), Duration::ZERO);
        }

        fn on_message(&self, (): &mut (), _: NodeId, (): (), _: &mut Context<()>) {}

        fn on_timer(&self, (): &mut (), _: Timer, _: &mut Context<()>) {
            panics::limit("too much of something");
        }
    }

    #[test]
    fn a_limit_in_a_handler_ends_a_local_search_and_the_step_is_named() {
        for pruning in Pruning::ALL {
            for threads in [1, 2] {
                let check =
                    Check::new(Cluster::new(2, |_| Limited)).engine(Local::new().pruning(pruning));
                let verdict = check.threads(threads).run();
                let why = "Limited 0 timer soon runs out: too much of something";
                assert_eq!(verdict.outcome, Outcome::Inconclusive(why.to_owned()));
            }
        }
    }
}
