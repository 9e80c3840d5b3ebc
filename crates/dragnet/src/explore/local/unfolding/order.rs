//! The order of pasts that decides which of several that lead to the same is followed.

use std::cmp::Ordering;

use super::{Act, Extension, NONE, Unfolding};

impl Unfolding<'_> {
    /// The order of two extensions with pasts of the same size, which is preserved when both are continued alike.
    pub(super) fn compare(&self, one: &Extension, two: &Extension) -> Ordering {
        let (ones, twos) = (self.past_behind(one), self.past_behind(two));
        for node in 0..self.nodes {
            let own = |extension: &Extension| self.node(extension.point) == node;
            let order = self.compare_histories(
                (ones[node], own(one).then_some(one)),
                (twos[node], own(two).then_some(two)),
            );
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }

    /// The shorter history first, then the one with the lesser first difference.
    pub(super) fn compare_histories(
        &self,
        (one, one_step): (u32, Option<&Extension>),
        (two, two_step): (u32, Option<&Extension>),
    ) -> Ordering {
        let length =
            |point, step: Option<&Extension>| self.point(point).depth + u32::from(step.is_some());
        let lengths = length(one, one_step).cmp(&length(two, two_step));
        if lengths.is_ne() {
            return lengths;
        }
        let step_word = |step: &Extension| self.word(step.act, step.input, step.choice, step.item);
        let point_word = |point: u32| {
            let point = self.point(point);
            self.word(point.act, point.input, point.choice, point.item)
        };
        // From the end: what differs first is what is compared last.
        let (mut one, mut two) = (one, two);
        let mut order = match (one_step, two_step) {
            (Some(one), Some(two)) => step_word(one).cmp(&step_word(two)),
            (Some(step), None) => {
                let order = step_word(step).cmp(&point_word(two));
                two = self.point(two).parent;
                order
            }
            (None, Some(step)) => {
                let order = point_word(one).cmp(&step_word(step));
                one = self.point(one).parent;
                order
            }
            (None, None) => Ordering::Equal,
        };
        while one != two {
            let here = point_word(one).cmp(&point_word(two));
            if here.is_ne() {
                order = here;
            }
            (one, two) = (self.point(one).parent, self.point(two).parent);
        }
        order
    }

    /// What a step is, whatever the history. What came up first is least: of two histories that differ only in the order
    /// of steps, the one is kept that does the earlier thing first, and so sends with less in its past.
    pub(super) fn word(
        &self,
        act: Act,
        input: u32,
        choice: u32,
        item: u32,
    ) -> (u32, Act, u32, u32) {
        let rank = match act {
            Act::Begin | Act::Heal | Act::Cut => input,
            _ => self.ranks[input as usize],
        };
        let index = if item == NONE {
            0
        } else {
            self.item(item).index
        };
        (rank, act, choice, index)
    }

    /// Takes note of an input that has come up.
    pub(super) fn rank(&mut self, input: u32) {
        let input = input as usize;
        if self.ranks.len() <= input {
            self.ranks.resize(input + 1, NONE);
        }
        if self.ranks[input] == NONE {
            self.ranks[input] = self.ranked;
            self.ranked += 1;
        }
    }
}
