//! Pasts: which can belong to one execution, and what they come to together.

use std::ops::{Deref, DerefMut};

use super::{Act, Extension, NONE, Point, SPENT, Unfolding};
use crate::explore::local::graph::Cone;

impl Unfolding<'_> {
    /// The local states that the histories of a past go through.
    pub(in crate::explore::local) fn cone(&self, past: &[u32]) -> Cone {
        let mut locals = Vec::new();
        for (node, &last) in past.iter().enumerate() {
            let mut point = last;
            while point != NONE {
                if self.has_begun(point) {
                    locals.push(self.point(point).local);
                }
                point = self.point(point).parent;
            }
            if !self.has_begun(last) {
                locals.extend(self.beginnings[node].iter().map(|start| start.local));
            }
        }
        Cone::of(locals)
    }

    /// Whether a node has begun at a point. Those with several ways to begin start with a choice.
    pub(super) fn has_begun(&self, point: u32) -> bool {
        self.point(point).local != NONE
    }

    /// Whether the history of `early` is a beginning of that of `late`, which is on the same node.
    pub(super) fn leads_to(&self, early: u32, late: u32) -> bool {
        let depth = self.point(early).depth;
        let mut at = late;
        loop {
            let point = self.point(at);
            if point.depth <= depth {
                return at == early;
            }
            at = if self.point(point.jump).depth >= depth {
                point.jump
            } else {
                point.parent
            };
        }
    }

    /// The longer of two histories of one node, if the other is a beginning of it.
    pub(super) fn join(&self, one: u32, two: u32) -> Option<u32> {
        if one == two {
            return Some(one);
        }
        let (short, long) = if self.point(one).depth <= self.point(two).depth {
            (one, two)
        } else {
            (two, one)
        };
        self.leads_to(short, long).then_some(long)
    }

    /// Whether `point` can be in one execution with what the past of `other` has, as the last point of its node.
    pub(super) fn fits(&self, point: u32, other: u32) -> bool {
        let node = self.node(point);
        let (mine, theirs) = (self.past(point), self.past(other));
        if !(self.point(theirs[node]).depth <= self.point(point).depth
            && self.leads_to(theirs[node], point))
        {
            return false;
        }
        let mut spent = [0_u32; SPENT];
        let faulty = self.budgets != [0; SPENT];
        for (&mine, &theirs) in mine.iter().zip(theirs) {
            let Some(joined) = self.join(mine, theirs) else {
                return false;
            };
            if faulty {
                for (all, &more) in spent.iter_mut().zip(&self.point(joined).spent) {
                    *all += u32::from(more);
                }
            }
        }
        if faulty
            && spent
                .iter()
                .zip(self.budgets)
                .any(|(&all, most)| all > most)
        {
            return false;
        }
        self.epochs
            .comparable(self.point(point).epoch, self.point(other).epoch)
    }

    /// Whether two points of different nodes can be the last of their nodes in one execution.
    pub(in crate::explore::local) fn meet(&self, one: u32, two: u32) -> bool {
        self.fits(one, two) && {
            let node = self.node(two);
            let known = self.past(one)[node];
            self.point(known).depth <= self.point(two).depth && self.leads_to(known, two)
        }
    }

    /// The past of two points that meet.
    pub(in crate::explore::local) fn joined(&self, one: u32, two: u32) -> Box<[u32]> {
        let pairs = self.past(one).iter().zip(self.past(two));
        pairs
            .map(|(&one, &two)| self.join(one, two).expect("they meet"))
            .collect()
    }

    /// What an extension depends on besides itself.
    pub(super) fn past_behind(&self, extension: &Extension) -> Past {
        self.past_before(extension.point, extension.item)
    }

    /// What a step behind a point that receives an item depends on besides itself.
    fn past_before(&self, point: u32, item: u32) -> Past {
        let mut past = Past::of(self.past(point));
        if item != NONE {
            let sender = self.item(item).sender;
            for (mine, &theirs) in past.iter_mut().zip(self.past(sender)) {
                if self.point(theirs).depth > self.point(*mine).depth {
                    *mine = theirs;
                }
            }
        }
        past
    }

    /// Whether every execution with this step behind a point has more steps than the depth bound allows.
    pub(super) fn is_too_long(&self, point: u32, item: u32, act: Act) -> bool {
        self.longest.is_some_and(|longest| {
            self.length(&self.past_before(point, item), point, act) > longest
        })
    }

    /// The number of steps of an execution that consists of a past and one more step, which is behind `point`.
    ///
    /// A local step is a step of the execution, with three exceptions: the beginning of a node is none; all nodes together
    /// take one for a partition, and one for its end; and a message that is received while a copy of it stays in flight
    /// was duplicated before, which is another.
    fn length(&self, past: &[u32], point: u32, act: Act) -> u64 {
        let epochs = |point: u32| u64::from(self.epochs.depth(self.point(point).epoch));
        let (mut steps, mut partitions) = (0, 0);
        for (node, &last) in past.iter().enumerate() {
            let Point { depth, spent, .. } = self.point(last);
            let begins = *depth > 0 && self.beginnings[node].len() != 1;
            let (kept, all) = (u64::from(spent[1]), u64::from(*depth));
            steps += all + kept - u64::from(begins) - epochs(last);
            partitions = partitions.max(epochs(last));
        }
        match act {
            Act::Begin => {}
            Act::Cut | Act::Heal => partitions = partitions.max(epochs(point) + 1),
            Act::Keep => steps += 2,
            _ => steps += 1,
        }
        steps + partitions
    }

    /// Whether what a past has left of the budgets is enough for a step.
    pub(super) fn affords(&self, past: &[u32], act: Act) -> bool {
        act.spends().is_none_or(|kind| {
            let spent = past
                .iter()
                .map(|&last| u32::from(self.point(last).spent[kind]));
            spent.sum::<u32>() < self.budgets[kind]
        })
    }
}

const NEAR: usize = 8;

/// A short list that needs no heap while it is short.
pub(super) enum Past {
    Near([u32; NEAR], usize),
    Far(Vec<u32>),
}

impl Past {
    pub(super) fn of(points: &[u32]) -> Self {
        if points.len() <= NEAR {
            let mut near = [0; NEAR];
            near[..points.len()].copy_from_slice(points);
            Self::Near(near, points.len())
        } else {
            Self::Far(points.to_vec())
        }
    }
}

impl Deref for Past {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        match self {
            Self::Near(near, len) => &near[..*len],
            Self::Far(far) => far,
        }
    }
}

impl DerefMut for Past {
    fn deref_mut(&mut self) -> &mut [u32] {
        match self {
            Self::Near(near, len) => &mut near[..*len],
            Self::Far(far) => far,
        }
    }
}
