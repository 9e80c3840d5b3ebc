//! Work on a list, spread over threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::super::quiet;
use crate::tables::Domain;

/// Fewer items than this are not worth a second thread.
const WORTHWHILE: usize = 512;

/// The threads that an exploration of parts may use, and under which numbers the tables know them. The first leads, and
/// counts as at work all the time.
#[derive(Clone, Copy)]
pub(super) struct Workers<'a> {
    /// How many; another search can take some of them away.
    pub(super) count: &'a AtomicUsize,
    pub(super) first: usize,
    pub(super) domain: &'a Domain,
}

impl Workers<'_> {
    /// Has `work` look at the numbers below `len`, a range at a time; what comes of it is in the order of the ranges.
    pub(super) fn spread<T: Send>(
        &self,
        len: usize,
        work: impl Fn(Range<usize>) -> T + Sync,
    ) -> Vec<T> {
        let Self { first, domain, .. } = *self;
        let count = self.count.load(Ordering::Relaxed);
        if count == 1 || len < WORTHWHILE {
            domain.quiesce(first);
            return vec![work(0..len)];
        }
        let size = (len / (count * 8)).max(64);
        let next = AtomicUsize::new(0);
        let serve = |worker: usize| {
            let mut done = Vec::new();
            loop {
                let from = next.fetch_add(size, Ordering::Relaxed);
                if from >= len {
                    break;
                }
                domain.quiesce(worker);
                done.push((from, work(from..(from + size).min(len))));
            }
            if worker != first {
                domain.leave(worker);
            }
            done
        };
        let mut done = thread::scope(|scope| {
            let others: Vec<_> = (1..count)
                .map(|worker| {
                    let serve = &serve;
                    scope.spawn(move || quiet::silence_tracing(|| serve(first + worker)))
                })
                .collect();
            let mut done = serve(first);
            for other in others {
                match other.join() {
                    Ok(more) => done.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            done
        });
        done.sort_unstable_by_key(|&(from, _)| from);
        done.into_iter().map(|(_, done)| done).collect()
    }
}
