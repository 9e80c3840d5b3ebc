//! An execution as an explorer sees it: all that an explorer may ask of one, and nothing by which it could change one.

use std::cell::Ref;
use std::ptr;

use super::history::Event;
#[cfg(test)]
use super::history::HistoricEvent;
use super::model::{EventId, Model};
use super::operation::{ObjectId, Operation, ProcessId, ThreadId, Way};
use super::spin::blocking::GaveUp;
use super::spin::detection::Sight;
use super::state::State;
use crate::system::Actor;
use crate::trace::GOLDEN;

/// An execution, under way or at its end.
#[derive(Clone, Copy)]
pub(crate) struct ExecutionView<'a>(&'a State);

/// The last execution of an executor, which runs no other as long as this is kept.
pub(crate) struct LastExecution<'a>(Ref<'a, State>);

impl<'a> LastExecution<'a> {
    #[inline]
    pub(super) fn new(state: Ref<'a, State>) -> Self {
        Self(state)
    }

    /// The execution itself.
    #[inline]
    pub(crate) fn view(&self) -> ExecutionView<'_> {
        ExecutionView(&self.0)
    }
}

/// Its events.
impl<'a> ExecutionView<'a> {
    /// All events, in the order of the execution.
    #[inline]
    pub(crate) fn events(self) -> &'a [Event] {
        &self.0.events
    }

    /// One of its events.
    #[inline]
    pub(crate) fn event(self, event: EventId) -> &'a Event {
        &self.0.events[event as usize]
    }

    /// The last event, if there is one.
    #[inline]
    pub(crate) fn last_event(self) -> Option<&'a Event> {
        self.0.events.last()
    }

    /// The events on an object.
    #[inline]
    pub(crate) fn events_on(self, object: ObjectId) -> &'a [EventId] {
        &self.0.object(object).events
    }

    /// The summand of an event in the hash of the happens-before history. Executions of one trace have the same sum, in every
    /// process.
    #[inline]
    pub(crate) fn hash_of(self, event: &Event) -> u64 {
        self.0.hash_of(event)
    }

    /// The happens-before history.
    #[cfg(test)]
    pub(crate) fn history(self) -> Vec<HistoricEvent> {
        self.0.history()
    }
}

/// Its threads.
impl<'a> ExecutionView<'a> {
    /// The threads, in the order in which they were spawned.
    #[inline]
    pub(crate) fn threads(self) -> &'a [ThreadId] {
        &self.0.order
    }

    /// A number above the ids of all threads. Not every id below it is that of a thread: ids are given out for all executions
    /// of a program.
    #[inline]
    pub(crate) fn thread_bound(self) -> u32 {
        self.0.threads.len() as u32
    }

    /// The number of events of a thread: none where the thread was not spawned.
    #[inline]
    pub(crate) fn steps(self, thread: ThreadId) -> u32 {
        let found = self.0.threads.get(thread.0 as usize);
        found
            .and_then(Option::as_ref)
            .map_or(0, |thread| thread.steps)
    }

    /// The threads that have not ended.
    pub(crate) fn waiting(self) -> Vec<Actor> {
        self.0.waiting().collect()
    }

    /// The process of a thread.
    #[inline]
    pub(crate) fn process(self, thread: ThreadId) -> ProcessId {
        self.0.thread(thread).process
    }

    /// The operation that a thread has come to. `None` also where the thread was not spawned.
    #[inline]
    pub(crate) fn pending(self, thread: ThreadId) -> Option<Operation> {
        self.0.pending(thread)
    }

    /// The operation that was pending when the process of a thread crashed, and the crash.
    #[inline]
    pub(crate) fn cut_off(self, thread: ThreadId) -> Option<(Operation, EventId)> {
        self.0.thread(thread).cut_off
    }

    /// A hash of all pending operations, the same in every execution of this process that takes the same decisions.
    #[inline]
    pub(crate) fn pending_hash(self) -> u64 {
        let pending = self.threads().iter().filter_map(|&thread| {
            let pending = self.pending(thread)?;
            let who = u64::from(thread.0) << 32 | u64::from(pending.object.0);
            let at = ptr::from_ref(pending.at) as u64;
            let spread = (who ^ at.rotate_left(16)).wrapping_mul(GOLDEN);
            Some(spread ^ spread >> 29)
        });
        pending.fold(0, u64::wrapping_add)
    }

    /// Whether a thread is in a spin loop, and would see nothing new in another turn.
    #[inline]
    pub(crate) fn is_spinning(self, thread: ThreadId) -> bool {
        let pending = self.pending(thread);
        pending.is_some_and(|pending| self.0.goes_round(thread, &pending))
    }
}

/// Happens-before.
impl ExecutionView<'_> {
    /// Whether an event happens before another one, or is that.
    #[inline]
    pub(crate) fn is_before(self, one: EventId, other: EventId) -> bool {
        let one = self.event(one);
        self.is_place_before((one.thread, one.index), other)
    }

    /// The same for the event that has an index among those of a thread.
    #[inline]
    pub(crate) fn is_place_before(self, (thread, index): (ThreadId, u32), other: EventId) -> bool {
        self.0.clocks.of(self.event(other).row, thread) > index
    }

    /// Whether an event happens before the spawn of a thread.
    #[inline]
    pub(crate) fn is_before_spawn(self, event: EventId, thread: ThreadId) -> bool {
        let event = self.event(event);
        let row = self.0.thread(thread).row_at_spawn;
        self.0.clocks.of(row, event.thread) > event.index
    }

    /// Whether the thread of an event, which may have been in a spin loop before it, would be enabled there also without
    /// another event and all that happens after that.
    pub(crate) fn is_woken_without(self, other: EventId, event: EventId) -> bool {
        let Some(stirred) = &self.event(event).stirred else {
            return true;
        };
        stirred.seen.iter().any(|sight| {
            let left = self
                .changes(sight)
                .filter(|&change| !self.is_before(other, change) && !self.is_before(event, change));
            left.count() > sight.version as usize
        })
    }

    /// All events that change what a thread has seen, earlier and later.
    #[inline]
    fn changes(self, sight: &Sight) -> impl Iterator<Item = EventId> {
        let aspect = sight.aspect;
        let events = self.events_on(sight.operation.object).iter().copied();
        events.filter(move |&event| self.event(event).effect.alters(aspect))
    }
}

/// Its objects, and the dependency of operations.
impl ExecutionView<'_> {
    /// The number of objects.
    #[inline]
    pub(crate) fn object_count(self) -> usize {
        self.0.objects.len()
    }

    /// The model of an object before an event.
    #[inline]
    pub(crate) fn model_before(self, object: ObjectId, event: EventId) -> Model {
        self.0.model_before(object, event)
    }

    /// Whether two operations of different threads are dependent: each with its thread and its way.
    #[inline]
    pub(crate) fn depends(
        self,
        (thread, operation, way): (ThreadId, &Operation, Way),
        (other, others, others_way): (ThreadId, &Operation, Way),
    ) -> bool {
        let (action, others_action) = (operation.action, others.action);
        operation.object == others.object && action.depends(way, others_action, others_way)
            || self.stops(operation, way, other)
            || self.stops(others, others_way, thread)
    }

    /// The process that an operation crashes, if it crashes one.
    #[inline]
    pub(crate) fn crashed_by(self, operation: &Operation, way: Way) -> Option<ProcessId> {
        self.0.crashed_by(operation, way)
    }

    /// Whether an operation stops a thread for good. The next operation of the thread cannot come after that, so the two are
    /// dependent whatever the thread does.
    #[inline]
    pub(crate) fn stops(self, operation: &Operation, way: Way, thread: ThreadId) -> bool {
        let Some(process) = self.crashed_by(operation, way) else {
            return false;
        };
        let thread = self.0.threads.get(thread.0 as usize);
        // The process of a thread that was not spawned is not known.
        thread
            .and_then(Option::as_ref)
            .is_none_or(|thread| thread.process == process)
    }

    /// Whether an event dropped the last owner of a value whose destructor can do something.
    #[inline]
    pub(crate) fn is_last_drop(self, event: EventId) -> bool {
        let this = self.event(event);
        this.operation.action.drops_an_owner()
            && self
                .model_before(this.operation.object, event)
                .is_last_owned()
    }

    /// Whether the last event has made a pending drop of an owner the drop of the last owner.
    #[inline]
    pub(crate) fn has_become_last(self, last: &Event, pending: &Operation) -> bool {
        last.operation.object == pending.object
            && last.operation.action.drops_an_owner()
            && pending.action.drops_an_owner()
            && self.0.object(pending.object).model.is_last_owned()
    }
}

/// The whole of it.
impl<'a> ExecutionView<'a> {
    #[inline]
    pub(super) fn new(state: &'a State) -> Self {
        Self(state)
    }

    /// Whether a thread was blocked in a spin loop.
    #[inline]
    pub(crate) fn went_round(self) -> bool {
        self.0.went_round
    }

    /// Where a thread was blocked in a loop that terminates by itself, and the spin bound that it would have taken.
    #[inline]
    pub(crate) fn gave_up(self) -> Option<GaveUp> {
        self.0.gave_up
    }

    /// Whether a thread has drawn a random number.
    #[inline]
    pub(crate) fn has_drawn(self) -> bool {
        let mut threads = self.0.threads.iter().flatten();
        threads.any(|thread| thread.drawn > 0)
    }

    /// Whether it mattered which thread dropped the last owner of a value.
    #[inline]
    pub(crate) fn last_drop_matters(self) -> bool {
        self.0.last_drop_matters
    }
}
