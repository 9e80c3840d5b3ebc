//! Work on a list, spread over threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::explore::limits::Gauge;
use crate::explore::quiet;
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
    /// Says when it is time to end.
    pub(super) gauge: &'a Gauge,
}

/// Leaves nothing to do for the others when one panics.
struct EndOnPanic<'a> {
    workers: &'a Workers<'a>,
    worker: usize,
    next: &'a AtomicUsize,
    len: usize,
}

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.next.fetch_max(self.len, Ordering::Relaxed);
            if self.worker != self.workers.first {
                self.workers.domain.leave(self.worker);
            }
        }
    }
}

impl Workers<'_> {
    /// Has `work` look at the numbers below `len`, a range at a time; what comes of it is in the order of the ranges. When
    /// the search must end, ranges are left out: whoever relies on all of them asks the gauge afterwards.
    pub(super) fn spread<T: Send>(
        &self,
        len: usize,
        work: impl Fn(Range<usize>) -> T + Sync,
    ) -> Vec<T> {
        let Self {
            first,
            domain,
            gauge,
            ..
        } = *self;
        let count = match self.count.load(Ordering::Relaxed) {
            _ if len < WORTHWHILE => 1,
            count => count,
        };
        let size = (len / (count * 8)).clamp(64, 4096);
        let next = AtomicUsize::new(0);
        let serve = |worker: usize| {
            let _guard = EndOnPanic {
                workers: self,
                worker,
                next: &next,
                len,
            };
            let mut done = Vec::new();
            loop {
                domain.quiesce(worker);
                let from = next.fetch_add(size, Ordering::Relaxed);
                if from >= len || gauge.must_end() {
                    break;
                }
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
                    quiet::spawn_worker(scope, move || serve(first + worker))
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

    /// The same with one number at a time, for work that can take long: what comes of a range is gathered in one place.
    pub(super) fn spread_each<T: Default + Send>(
        &self,
        len: usize,
        work: impl Fn(usize, &mut T) + Sync,
    ) -> Vec<T> {
        self.spread(len, |range| {
            let mut gathered = T::default();
            for at in range {
                if self.gauge.must_end() {
                    break;
                }
                work(at, &mut gathered);
            }
            gathered
        })
    }
}
