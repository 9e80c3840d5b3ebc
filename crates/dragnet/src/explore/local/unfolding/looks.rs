//! Looks: what can come next in a history, and who can receive a message.

use super::messages::Meeting;
use super::{Act, Extension, Item, NONE, Unfolding};
use crate::explore::local::graph::Graph;
use crate::tables::next_number;
use crate::target::parts::Ran;

/// What a look at some points brought up.
#[derive(Default)]
pub(super) struct Look {
    pub(super) extensions: Vec<(u32, Extension)>,
    pub(super) runs: Vec<(u32, Option<u32>, Ran)>,
    pub(super) failing: Vec<Failing>,
    /// A message that can be received at a point.
    pub(super) met: Vec<(u32, u32)>,
    pub(super) steps: u64,
    pub(super) cut_deeper: bool,
}

/// A handler that fails when a history is continued.
pub(super) struct Failing {
    pub(super) point: u32,
    pub(super) item: u32,
}

impl Unfolding<'_> {
    /// What can come after a new point, but for messages that are new as well.
    pub(super) fn look_at(&self, point: u32, graph: &Graph, look: &mut Look) {
        let this = self.point(point);
        let node = usize::from(this.node);
        if this.local == NONE {
            for choice in 0..self.beginnings[node].len() {
                self.extend(point, NONE, Act::Begin, 0, None, choice, look);
            }
            return;
        }
        let (crash, restart) = self.parts.crash_and_restart(node);
        if self.parts.is_up(this.local) {
            for &input in self.parts.own_inputs(this.local) {
                self.try_input(point, NONE, Act::Own, input, graph, look);
            }
            if self.affords(self.past(point), Act::Crash) {
                self.try_input(point, NONE, Act::Crash, crash, graph, look);
            }
        } else if self.affords(self.past(point), Act::Restart) {
            self.try_input(point, NONE, Act::Restart, restart, graph, look);
        }
        if self.partitions > 0 {
            if self.epochs.cut(this.epoch).is_some() {
                self.extend(point, NONE, Act::Heal, 0, None, 0, look);
            } else if self.epochs.partitions(this.epoch) < self.partitions {
                // Node 0 stays on the near side, so that each way to fall in two comes up once.
                for far in (2..1_u32 << self.nodes).step_by(2) {
                    self.extend(point, NONE, Act::Cut, far, None, 0, look);
                }
            }
        }
        if this.parent == NONE {
            return;
        }
        for &item in &self.point(this.parent).waiting {
            if self.fits(point, self.item(item).sender) {
                self.offer(point, item, graph, look);
            }
        }
    }

    /// Offers a new message to every point that it fits.
    pub(super) fn hand_round(&self, item: u32, graph: &Graph, look: &mut Look) {
        let &Item { sender, to, .. } = self.item(item);
        let mut open = vec![self.past(sender)[usize::from(to)]];
        while let Some(point) = open.pop() {
            // What does not fit a history fits none that continues it.
            if self.fits(point, sender) && self.offer(point, item, graph, look) {
                open.extend(self.children(point));
            }
        }
    }

    /// Offers a message to a point that it fits; false when no history that continues it can receive it either.
    fn offer(&self, point: u32, item: u32, graph: &Graph, look: &mut Look) -> bool {
        let meeting = self.meeting(point, item);
        if meeting == Meeting::Never {
            return false;
        }
        look.met.push((point, item));
        let this = self.point(point);
        if meeting == Meeting::Now && this.local != NONE {
            let &Item { envelope, room, .. } = self.item(item);
            if room {
                self.extend(point, item, Act::Credit, envelope, None, 0, look);
                return true;
            }
            if self.parts.is_up(this.local) {
                self.try_input(point, item, Act::Deliver, envelope, graph, look);
            }
            if (self.links.ordered || self.links.limited) && self.budget(Act::Lose) > 0 {
                self.extend(point, item, Act::Lose, envelope, None, 0, look);
            }
        }
        true
    }

    fn try_input(
        &self,
        point: u32,
        item: u32,
        act: Act,
        input: u32,
        graph: &Graph,
        look: &mut Look,
    ) {
        if self.is_too_long(point, item, act) {
            look.cut_deeper = true;
            return;
        }
        let ran = self.parts.run(self.point(point).local, input);
        let delivered = act == Act::Deliver;
        if !graph.knows(ran) {
            look.runs.push((point, delivered.then_some(input), ran));
        }
        // On an unordered network a delivery that changes nothing need not happen.
        if delivered && ran.idle && !self.links.ordered && self.pools.is_empty() {
            return;
        }
        for choice in 0..ran.choices {
            let outcome = self.parts.outcome(ran.number, choice);
            if outcome.fails {
                look.failing.push(Failing { point, item });
                continue;
            }
            if !(self.inside)(outcome.local) {
                continue;
            }
            self.extend(point, item, act, input, Some(ran.number), choice, look);
            if delivered && !ran.idle && self.budget(Act::Keep) > 0 {
                self.extend(
                    point,
                    item,
                    Act::Keep,
                    input,
                    Some(ran.number),
                    choice,
                    look,
                );
            }
        }
    }

    /// Takes note of what can be the next point of a history, unless a budget is overdrawn.
    #[expect(clippy::too_many_arguments, reason = "a step has so many parts")]
    fn extend(
        &self,
        point: u32,
        item: u32,
        act: Act,
        input: u32,
        run: Option<u32>,
        choice: usize,
        look: &mut Look,
    ) {
        let extension = Extension {
            point,
            item,
            input,
            run: run.unwrap_or(NONE),
            choice: next_number(choice, "choices of one handler"),
            act,
            mark: 0,
        };
        let past = self.past_behind(&extension);
        if !self.affords(&past, act) {
            return;
        }
        if self.is_too_long(point, item, act) {
            look.cut_deeper = true;
            return;
        }
        let size = 1 + past.iter().map(|&last| self.point(last).depth).sum::<u32>();
        let mark = self.mark_of(&past, Some(&extension));
        look.steps += 1;
        look.extensions
            .push((size, Extension { mark, ..extension }));
    }
}
