//! The objects of an execution, and their models before earlier events.

use std::panic::Location;

use super::clocks::Row;
use super::data_race::Access;
use super::model::{EventId, Model};
use super::net::Label;
use super::operation::{CLASSES, ObjectId, ProcessId, ThreadId};
use super::spin::detection::Versions;
use super::state::State;

/// The model of an object is kept before one of so many of its events.
const MODEL_INTERVAL: usize = 8;

/// Something that threads share.
pub(super) struct Object {
    pub(super) model: Model,
    /// Its model before every [`MODEL_INTERVAL`]th of its events, where models are kept.
    models: Vec<Model>,
    pub(super) versions: Versions,
    /// The [view](super::thread_state::ThreadState::view) of the thread that last changed it, by then.
    pub(super) view: u64,
    /// For each class of operations, the clock that the next operation in conflict with the class joins.
    pub(super) rows: [Option<Row>; CLASSES],
    pub(super) events: Vec<EventId>,
    /// Accesses that are no operations: the last change, and the reads since.
    pub(super) accesses: Vec<Access>,
    /// Where it was made, if that is known.
    pub(super) made: Option<&'static Location<'static>>,
    /// The thread that it stands for, if it stands for one.
    pub(super) thread: Option<ThreadId>,
    /// Its label, if it is part of the network.
    pub(super) label: Option<Label>,
    /// The only process but the first whose threads have used it.
    pub(super) process: Option<ProcessId>,
}

impl Object {
    /// Keeps its model before its next event, if that is one of those before which it is kept.
    #[inline]
    pub(super) fn keep_model(&mut self) {
        if self.events.len().is_multiple_of(MODEL_INTERVAL) {
            self.models.push(self.model.clone());
        }
    }

    /// The room of its events and models, for an object of a later execution.
    pub(super) fn take_room(&mut self) -> (Vec<EventId>, Vec<Model>) {
        let mut models = std::mem::take(&mut self.models);
        models.clear();
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        (events, models)
    }
}

impl State {
    /// Adds an object that nobody has used yet.
    pub(super) fn add_object(
        &mut self,
        model: Model,
        made: Option<&'static Location<'static>>,
    ) -> ObjectId {
        let id = ObjectId(self.objects.len() as u32);
        let (events, models) = self.spare_objects.pop().unwrap_or_default();
        self.objects.push(Object {
            model,
            models,
            versions: Versions::default(),
            view: 0,
            rows: [None; CLASSES],
            events,
            accesses: Vec::new(),
            made,
            thread: None,
            label: None,
            process: None,
        });
        id
    }

    /// The model of an object before an event.
    pub(super) fn model_before(&self, object: ObjectId, event: EventId) -> Model {
        let object = self.object(object);
        let next = object.events.partition_point(|&other| other < event);
        if next == object.events.len() || matches!(object.model, Model::Memory) {
            return object.model.clone();
        }
        let kept = next / MODEL_INTERVAL;
        let mut model = object.models[kept].clone();
        for &event in &object.events[kept * MODEL_INTERVAL..next] {
            let that = &self.events[event as usize];
            model.perform(that.thread, that.operation.action, that.way, event);
        }
        model
    }
}
