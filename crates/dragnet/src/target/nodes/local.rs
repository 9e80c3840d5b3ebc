//! The state of one node as the engine keeps it, and what can happen to it.

use super::context::TimerChange;
use super::{NodeId, Timer};

/// A node's own state with everything else that decides what it does next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Local<S> {
    pub(super) life: Life<S>,
    /// The timers that are set, sorted.
    pub(super) timers: Vec<Timer>,
    /// How often each timer with a budget has run out, sorted by timer.
    pub(super) ran_out: Vec<(Timer, u32)>,
    /// How many calls of the workload have been made.
    pub(super) called: u32,
    /// How many of them have been answered, or given up in a crash.
    pub(super) answered: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Life<S> {
    Up(S),
    /// Crashed, with what is on its disk.
    Down(Option<S>),
}

impl<S> Local<S> {
    pub(super) fn up(state: S) -> Self {
        Self {
            life: Life::Up(state),
            timers: Vec::new(),
            ran_out: Vec::new(),
            called: 0,
            answered: 0,
        }
    }

    pub(super) fn state(&self) -> Option<&S> {
        match &self.life {
            Life::Up(state) => Some(state),
            Life::Down(_) => None,
        }
    }

    /// The state of the node, or of its disk while it is down.
    pub(super) fn own_state(&self) -> Option<&S> {
        match &self.life {
            Life::Up(state) | Life::Down(Some(state)) => Some(state),
            Life::Down(None) => None,
        }
    }

    pub(super) fn state_mut(&mut self) -> &mut S {
        match &mut self.life {
            Life::Up(state) => state,
            Life::Down(_) => unreachable!("only a node that is up handles an input"),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.life, Life::Up(_))
    }

    pub(super) fn waits(&self) -> bool {
        self.is_up() && self.called > self.answered
    }

    /// Sets and cancels timers as a handler asked for.
    pub(super) fn change_timers(&mut self, changes: &[(Timer, TimerChange)]) {
        for &(timer, change) in changes {
            match change {
                TimerChange::Set => {
                    if let Err(at) = self.timers.binary_search(&timer) {
                        self.timers.insert(at, timer);
                    }
                }
                TimerChange::Cancelled => self.cancel_timer(timer),
            }
        }
    }

    pub(super) fn cancel_timer(&mut self, timer: Timer) {
        if let Ok(at) = self.timers.binary_search(&timer) {
            self.timers.remove(at);
        }
    }

    /// Counts answers, the oldest calls first. Those for which there is no call reach nobody.
    pub(super) fn count_answers(&mut self, answers: usize) {
        let answers = u32::try_from(answers).unwrap_or(u32::MAX);
        self.answered = self.answered.saturating_add(answers).min(self.called);
    }

    pub(super) fn times_run_out(&self, timer: Timer) -> u32 {
        self.ran_out
            .binary_search_by_key(&timer, |&(known, _)| known)
            .map_or(0, |at| self.ran_out[at].1)
    }

    pub(super) fn count_run_out(&mut self, timer: Timer) {
        match self
            .ran_out
            .binary_search_by_key(&timer, |&(known, _)| known)
        {
            Ok(at) => self.ran_out[at].1 += 1,
            Err(at) => self.ran_out.insert(at, (timer, 1)),
        }
    }
}

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Envelope<M> {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) msg: M,
}

/// Something that happens to one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Input<M> {
    Deliver(Envelope<M>),
    RunOut(NodeId, Timer),
    Call(NodeId, u32),
    Crash(NodeId),
    Restart(NodeId),
}

impl<M> Input<M> {
    pub(super) fn node(&self) -> NodeId {
        match self {
            Self::Deliver(envelope) => envelope.to,
            Self::RunOut(node, _)
            | Self::Call(node, _)
            | Self::Crash(node)
            | Self::Restart(node) => *node,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_however_many_there_are() {
        for answers in [2, 3, u32::MAX as usize, 1 << 32, usize::MAX] {
            let mut local = Local {
                called: 3,
                answered: 1,
                ..Local::up(())
            };
            local.count_answers(answers);
            assert_eq!(local.answered, 3, "{answers} answers");
        }
    }
}
