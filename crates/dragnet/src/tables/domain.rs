//! When memory that other threads may be looking at can be freed.
//!
//! The tables of one exploration share a domain, and so do the workers that use them. A worker says now and then that it
//! is between two operations ([`Domain::quiesce`]), or that it stays away ([`Domain::leave`]); what was taken out of a
//! table before every worker said so can be reached by nobody. A thread that is not a worker may use the tables while
//! all workers are away, alone.

use std::any::Any;
use std::sync::Arc;

use super::blocks::Blocks;
use crate::weave::{AtomicU64, Mutex, Ordering, fence};

/// The clock of a worker that is away.
const AWAY: u64 = u64::MAX;

pub(crate) struct Domain {
    clocks: Box<[Padded<AtomicU64>]>,
    /// How many workers use the tables at a time.
    workers: usize,
    retired: Mutex<Vec<Retired>>,
    blocks: Arc<Blocks>,
}

/// Has a cache line to itself.
#[repr(align(64))]
pub(super) struct Padded<T>(pub(super) T);

struct Retired {
    #[expect(dead_code, reason = "it is kept only to be freed")]
    garbage: Box<dyn Any + Send>,
    /// The clocks when it was taken out.
    clocks: Box<[u64]>,
}

impl Domain {
    /// A domain for this many workers, all of them away.
    pub(crate) fn new(workers: usize) -> Arc<Self> {
        Self::with_substitutes(workers, 0)
    }

    /// A domain for this many workers at a time, and others who may take their place. Workers whose place was taken do
    /// nothing any more, but may never have left.
    pub(crate) fn with_substitutes(workers: usize, substitutes: usize) -> Arc<Self> {
        let clocks = 0..workers + substitutes;
        Arc::new(Self {
            clocks: clocks.map(|_| Padded(AtomicU64::new(AWAY))).collect(),
            workers,
            retired: Mutex::new(Vec::new()),
            blocks: Arc::new(Blocks::new()),
        })
    }

    /// What its tables and chunks are made of.
    pub(super) fn blocks(&self) -> &Arc<Blocks> {
        &self.blocks
    }

    /// Whether only one thread ever uses its tables at a time.
    pub(super) fn is_for_one(&self) -> bool {
        self.workers <= 1
    }

    /// Says that `worker` is between two operations.
    pub(crate) fn quiesce(&self, worker: usize) {
        let clock = &self.clocks[worker].0;
        let next = match clock.load(Ordering::Relaxed) {
            AWAY => 0,
            now => now + 1,
        };
        clock.store(next, Ordering::Release);
        // Pairs with the fence in `retire`: if that reads the clock as it was before, what this worker reads from now
        // on no longer leads to what was taken out.
        fence(Ordering::SeqCst);
    }

    /// Says that `worker` does nothing until it calls [`Domain::quiesce`] again.
    pub(crate) fn leave(&self, worker: usize) {
        self.clocks[worker].0.store(AWAY, Ordering::Release);
    }

    /// Frees `garbage`, which has just been taken out of a table, as soon as no worker but the caller can be looking at
    /// it. The caller does not look at it again.
    pub(crate) fn retire<T: Send + 'static>(&self, garbage: Box<T>) {
        if self.is_for_one() {
            return;
        }
        fence(Ordering::SeqCst);
        let now = |clock: &Padded<AtomicU64>| clock.0.load(Ordering::Acquire);
        let clocks = self.clocks.iter().map(now).collect();
        let mut retired = self.retired.lock().unwrap();
        retired.push(Retired { garbage, clocks });
        retired.retain(|old| {
            let mut workers = old.clocks.iter().zip(&self.clocks);
            workers.any(|(&then, clock)| then != AWAY && now(clock) == then)
        });
    }
}
