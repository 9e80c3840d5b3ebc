//! States of the whole system, put together from local states only to be judged.

use super::graph::Graph;
use super::spread::Workers;
use super::whole::Whole;

/// Which local states have been put together with each other.
pub(super) struct Combinations {
    /// For each node, how many of its local states.
    done: Vec<usize>,
}

/// What judging brought up.
#[derive(Default)]
pub(super) struct Judged {
    pub(super) judged: u64,
    pub(super) wrong: u64,
    /// The local states of those that were wrong, or wanted.
    pub(super) locals: Vec<u32>,
}

impl Combinations {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            done: vec![0; nodes],
        }
    }

    /// Judges every combination of local states with at least one new one, each once.
    pub(super) fn judge(
        &mut self,
        graph: &Graph,
        whole: &dyn Whole,
        workers: &Workers<'_>,
    ) -> Judged {
        let mut found = Judged::default();
        let locals = graph.locals();
        for node in 0..locals.len() {
            // New ones of this node with all of those before it and the old ones of those behind.
            let lists: Vec<&[u32]> = (0..locals.len())
                .map(|other| match other {
                    _ if other == node => &locals[other][self.done[other]..],
                    _ => &locals[other][..self.done[other]],
                })
                .collect();
            let product = lists
                .iter()
                .try_fold(1_usize, |all, list| all.checked_mul(list.len()));
            let product = product.unwrap_or(usize::MAX);
            let ranges = workers.spread(product, |range| {
                let mut found = Judged::default();
                let mut row = vec![0; lists.len()];
                for at in range {
                    let mut rest = at;
                    for (place, list) in row.iter_mut().zip(&lists) {
                        *place = list[rest % list.len()];
                        rest /= list.len();
                    }
                    let (wrong, wanted) = whole.of_whole(&row);
                    found.judged += 1;
                    if wrong || wanted {
                        found.wrong += u64::from(wrong);
                        found.locals.extend_from_slice(&row);
                    }
                }
                found.locals.sort_unstable();
                found.locals.dedup();
                found
            });
            for range in ranges {
                found.judged += range.judged;
                found.wrong += range.wrong;
                found.locals.extend(range.locals);
            }
            self.done[node] = locals[node].len();
        }
        found
    }
}
