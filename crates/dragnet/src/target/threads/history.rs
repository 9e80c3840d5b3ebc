//! The happens-before history of an execution: its events with their vector clocks, and a hash of them.
//!
//! The hash is a sum over the events, each with its causal past. So it does not depend on the order of events that
//! happens-before leaves unordered, and executions of one trace have the same.

use super::clocks::Row;
use super::model::EventId;
use super::operation::{Action, Operation, Rivalry, ThreadId, Way};
use super::spin::blocking::Stirred;
use super::spin::detection::Effect;
use super::state::State;
#[cfg(test)]
use super::thread_state::ThreadState;
use crate::trace::{GOLDEN, scatter};

/// A step of an execution: the operation that a thread has done.
#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) thread: ThreadId,
    pub(crate) way: Way,
    pub(crate) operation: Operation,
    /// The operations on the same object that it conflicts with.
    pub(crate) rivalry: Rivalry,
    /// Its index among the events of its thread.
    pub(crate) index: u32,
    /// Its vector clock, in which it is counted itself.
    pub(super) row: Row,
    /// The number of objects before it.
    pub(crate) objects: u32,
    pub(super) effect: Effect,
    /// Why its thread was enabled, if it was in a spin loop.
    pub(super) stirred: Option<Box<Stirred>>,
}

/// What an event is in every process: the hash of its thread, its index there, its way, and the number of events of each
/// thread in its causal past.
#[cfg(test)]
pub(crate) type HistoricEvent = (u64, u32, u64, Vec<(u64, u32)>);

impl Event {
    /// Whether its thread was in a spin loop, and had to wait there before it.
    #[inline]
    pub(crate) fn was_spinning(&self) -> bool {
        self.stirred.is_some()
    }

    /// The event that woke its thread in a spin loop, by a change of what the loop reads. `None` also where the thread was
    /// enabled only because no other was.
    #[inline]
    pub(crate) fn woken_by(&self) -> Option<EventId> {
        self.stirred.as_ref().and_then(|stirred| stirred.by)
    }
}

impl State {
    /// A hash of the happens-before history, the same in every process.
    pub(super) fn fingerprint(&self) -> u64 {
        let events = self.events.iter();
        events
            .map(|event| self.hash_of(event))
            .fold(0, u64::wrapping_add)
    }

    /// The summand of an event in the [fingerprint](Self::fingerprint).
    pub(super) fn hash_of(&self, event: &Event) -> u64 {
        let clock = self.clocks.row(event.row);
        let past = self
            .threads
            .iter()
            .zip(clock)
            .filter_map(|(thread, &count)| {
                let thread = thread.as_ref().filter(|_| count > 0)?;
                Some(scatter(thread.hash ^ scatter(u64::from(count))))
            });
        let past = past.fold(GOLDEN, u64::wrapping_add);
        let way = self.stable_way(event);
        let way = scatter(u64::from(event.index) << 32 ^ way);
        // Scattered once more, so that an event and its past never cancel each other out.
        scatter(scatter(past) ^ scatter(self.thread(event.thread).hash ^ way))
    }

    /// The way of an event, as a number that is the same in every process.
    fn stable_way(&self, event: &Event) -> u64 {
        match event.operation.action {
            // Thread ids are those of one process.
            Action::NotifyOne => scatter(self.thread(ThreadId(event.way)).hash),
            _ => u64::from(event.way),
        }
    }

    /// The history itself, of which the [fingerprint](Self::fingerprint) is a hash.
    #[cfg(test)]
    pub(super) fn history(&self) -> Vec<HistoricEvent> {
        let known = |(thread, &count): (&Option<ThreadState>, &u32)| {
            let thread = thread.as_ref().filter(|_| count > 0)?;
            Some((thread.hash, count))
        };
        let events = self.events.iter().map(|event| {
            let clock = self.clocks.row(event.row);
            let mut past: Vec<_> = self.threads.iter().zip(clock).filter_map(known).collect();
            past.sort_unstable();
            let thread = self.thread(event.thread).hash;
            (thread, event.index, self.stable_way(event), past)
        });
        let mut events: Vec<_> = events.collect();
        events.sort_unstable();
        events
    }
}
