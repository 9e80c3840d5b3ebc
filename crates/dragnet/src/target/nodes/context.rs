//! What a handler can do to the world.

use std::fmt::{Debug, Display};
use std::mem::swap;
use std::panic::Location;
use std::time::Duration;

use super::{NodeId, Timer};
use crate::panics;
use crate::step_guard;
use crate::system::{Failure, FailureKind};
use crate::trace::{GOLDEN, scatter};

/// The hands of a handler: it sends, sets timers, chooses, asserts and records through this.
///
/// ```
/// # use dragnet::{Context, Node, NodeId, Timer};
/// # struct Server;
/// const RETRY: Timer = Timer::new("retry");
///
/// # impl Node for Server {
/// #     type State = u32;
/// #     type Msg = u32;
/// #     fn on_start(&self, _: &mut Context<u32>) -> u32 { 0 }
/// fn on_message(&self, count: &mut u32, from: NodeId, msg: u32, cx: &mut Context<u32>) {
///     cx.assert(msg >= *count, "requests arrive in order");
///     *count = msg + cx.choose(2) as u32; // both are explored
///     cx.send(from, *count);
///     cx.set_timer(RETRY, std::time::Duration::from_millis(50));
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Context<M> {
    me: NodeId,
    nodes: usize,
    pub(super) sent: Vec<(NodeId, M)>,
    pub(super) timers: Vec<(Timer, TimerChange)>,
    pub(super) answers: Vec<M>,
    pub(super) observations: Vec<String>,
    pub(super) failure: Option<Failure>,
    choices: Vec<Choice>,
    chosen: usize,
    /// What to choose first, in a run that repeats an earlier one.
    repeat: Vec<usize>,
    /// What else is chosen follows from this, in a run for choices that are drawn.
    draw: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerChange {
    Set,
    Cancelled,
}

/// One call of `choose`: what it returned, out of how many.
#[derive(Clone, Copy, Debug)]
struct Choice {
    taken: usize,
    options: usize,
}

/// A handler that has done less than this, or was run for fewer combinations of choices, is not the one that a search waits
/// for: it may have begun after the search had to end.
pub(super) const HARDLY_BEGUN: usize = 64;

impl<M> Context<M> {
    pub(super) fn new(me: NodeId, nodes: usize) -> Self {
        Self {
            me,
            nodes,
            sent: Vec::new(),
            timers: Vec::new(),
            answers: Vec::new(),
            observations: Vec::new(),
            failure: None,
            choices: Vec::new(),
            chosen: 0,
            repeat: Vec::new(),
            draw: None,
        }
    }

    /// A context in which `choose` returns what it returned before.
    pub(super) fn choosing(me: NodeId, nodes: usize, choices: &[usize]) -> Self {
        let mut cx = Self::new(me, nodes);
        cx.repeat = choices.to_vec();
        cx
    }

    /// A context in which what `choose` returns follows from `draw`.
    pub(super) fn drawing(me: NodeId, nodes: usize, draw: u64) -> Self {
        let mut cx = Self::new(me, nodes);
        cx.draw = Some(draw);
        cx
    }

    /// The node that this handler runs on.
    pub fn me(&self) -> NodeId {
        self.me
    }

    /// How many nodes the cluster has, those of all roles together.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Sends `msg` to a node, which may be this one.
    #[track_caller]
    pub fn send(&mut self, to: impl Into<NodeId>, msg: M) {
        let to = to.into();
        assert!(
            to.0 < self.nodes,
            "{} sends to {to}, but the cluster has only {} nodes",
            self.me,
            self.nodes
        );
        self.keep_limits();
        self.sent.push((to, msg));
    }

    /// Ends a handler that goes on and on when the search has to end.
    fn keep_limits(&self) {
        let observed = self.answers.len() + self.observations.len();
        if self.sent.len() + self.timers.len() + self.chosen + observed >= HARDLY_BEGUN {
            step_guard::give_up_if_interrupted(|| self.progress());
        }
    }

    /// How far a handler has come.
    fn progress(&self) -> String {
        let done = [
            (self.sent.len(), "message", "sent"),
            (self.timers.len(), "timer", "set or cancelled"),
            (self.chosen, "choice", "made"),
            (self.answers.len(), "answer", "given"),
            (self.observations.len(), "observation", "recorded"),
        ];
        let done = done.into_iter().filter(|(times, ..)| *times > 0);
        let done: Vec<String> = done
            .map(|(times, what, how)| match times {
                1 => format!("1 {what} {how}"),
                _ => format!("{times} {what}s {how}"),
            })
            .collect();
        let after = match &done[..] {
            [] => String::new(),
            done => format!(" after {}", done.join(", ")),
        };
        format!("a handler of {} was still going on{after}", self.me)
    }

    /// Sends `msg` to every node of the cluster, this one included, whatever its role.
    pub fn broadcast(&mut self, msg: M)
    where
        M: Clone,
    {
        self.keep_limits();
        for node in 0..self.nodes {
            self.sent.push((NodeId(node), msg.clone()));
        }
    }

    /// Sends `msg` to every node of the cluster but this one, whatever its role. To send to some nodes only, loop over
    /// their ids.
    pub fn broadcast_to_others(&mut self, msg: M)
    where
        M: Clone,
    {
        self.keep_limits();
        let me = self.me.0;
        for node in (0..self.nodes).filter(|&node| node != me) {
            self.sent.push((NodeId(node), msg.clone()));
        }
    }

    /// Sets a timer. A checker lets it run out at any moment from now on, whatever the duration; a timer that is
    /// already set stays set once.
    pub fn set_timer(&mut self, timer: Timer, _after: Duration) {
        self.keep_limits();
        self.timers.push((timer, TimerChange::Set));
    }

    /// Takes a timer back, if it is set.
    pub fn cancel_timer(&mut self, timer: Timer) {
        self.keep_limits();
        self.timers.push((timer, TimerChange::Cancelled));
    }

    /// A number below `options`; the checker explores every one of them.
    ///
    /// # Panics
    /// When there are no options to choose from.
    #[track_caller]
    pub fn choose(&mut self, options: usize) -> usize {
        assert!(options > 0, "choose(0): there is nothing to choose from");
        if u32::try_from(options).is_err() {
            let place = Location::caller();
            panics::limit(format!(
                "choose({options}) at {place} offers more options than can ever be explored"
            ));
        }
        self.keep_limits();
        let at = self.chosen;
        self.chosen += 1;
        match self.choices.get_mut(at) {
            Some(choice) => {
                assert!(
                    choice.options == options,
                    "a handler offered {} options, and {options} when it was run again with the same state and \
                     input: it is not deterministic",
                    choice.options
                );
                choice.taken
            }
            None => {
                let drawn = |draw: &mut u64| {
                    *draw = draw.wrapping_add(GOLDEN);
                    ((u128::from(scatter(*draw)) * options as u128) >> 64) as usize
                };
                let given = self.repeat.get(at).copied();
                let taken = given.or_else(|| self.draw.as_mut().map(drawn)).unwrap_or(0);
                self.choices.push(Choice { taken, options });
                taken
            }
        }
    }

    /// Answers the oldest call of the workload that this node has not answered. Where there is none, for instance
    /// because a crash gave it up, the answer reaches nobody.
    pub fn answer(&mut self, msg: M) {
        self.keep_limits();
        self.answers.push(msg);
    }

    /// States what must be true here. When it is not, the check is violated with this message and place.
    #[track_caller]
    pub fn assert(&mut self, holds: bool, message: impl Display) {
        if !holds && self.failure.is_none() {
            let location = Location::caller().to_string();
            self.failure = Some(Failure::new(
                FailureKind::Assertion,
                message.to_string(),
                Some(location),
            ));
        }
    }

    /// Records that something happened. It appears in counterexamples, and a delivery with an observation never counts
    /// as one that changes nothing.
    pub fn observe(&mut self, what: impl Debug) {
        self.keep_limits();
        self.observations.push(crate::trace::debug(&what));
    }

    /// Swaps with a context for other messages everything that neither holds a message nor says whose context it is.
    pub(super) fn swap_all_but_messages<L>(&mut self, other: &mut Context<L>) {
        let Self {
            me: _,
            nodes: _,
            sent: _,
            timers,
            answers: _,
            observations,
            failure,
            choices,
            chosen,
            repeat,
            draw,
        } = self;
        swap(timers, &mut other.timers);
        swap(observations, &mut other.observations);
        swap(failure, &mut other.failure);
        swap(choices, &mut other.choices);
        swap(chosen, &mut other.chosen);
        swap(repeat, &mut other.repeat);
        swap(draw, &mut other.draw);
    }

    /// What `choose` is to return in this run, as far as that is given.
    pub(super) fn given_choices(&self) -> Vec<usize> {
        let given = self.choices.iter().map(|choice| choice.taken);
        given.chain(self.repeat.iter().copied()).collect()
    }

    /// What `choose` returned in this run.
    pub(super) fn choices_taken(&self) -> impl Iterator<Item = usize> + '_ {
        self.choices[..self.chosen.min(self.choices.len())]
            .iter()
            .map(|choice| choice.taken)
    }

    /// A context for the next combination of choices after those of this run, or `None` after the last.
    ///
    /// Choices count like an odometer: the last one that is not at its end moves on, those behind it are forgotten.
    pub(super) fn next_combination(&self) -> Option<Self> {
        let mut choices = self.choices.clone();
        while let Some(choice) = choices.last_mut() {
            choice.taken += 1;
            if choice.taken < choice.options {
                let mut next = Self::new(self.me, self.nodes);
                next.choices = choices;
                return Some(next);
            }
            choices.pop();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_a_handler_has_come_is_a_sentence() {
        let mut cx = Context::<()>::new(NodeId(0), 1);
        assert_eq!(cx.progress(), "a handler of n0 was still going on");
        cx.choose(2);
        cx.send(0, ());
        cx.send(0, ());
        let said = "a handler of n0 was still going on after 2 messages sent, 1 choice made";
        assert_eq!(cx.progress(), said);
    }

    #[test]
    fn every_combination_of_choices_comes_up_once_in_order() {
        let mut seen = Vec::new();
        let mut next = Some(Context::<()>::new(NodeId(0), 1));
        while let Some(mut cx) = next {
            let first = cx.choose(2);
            let second = if first == 0 { cx.choose(3) } else { 0 };
            seen.push((first, second));
            next = cx.next_combination();
        }
        assert_eq!(seen, [(0, 0), (0, 1), (0, 2), (1, 0)]);
    }
}
