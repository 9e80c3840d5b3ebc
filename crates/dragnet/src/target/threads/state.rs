//! What an execution consists of, and what happens when a thread goes on.

use std::any::Any;
use std::collections::HashMap;
use std::iter;
use std::mem::discriminant;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use corosensei::Yielder;

use super::clocks::{Clocks, Row};
use super::data_race::{Access, Suspicion};
use super::happens_before::HappensBefore;
use super::host::Host;
use super::model::{EventId, Model};
use super::net::{Addresses, Label};
use super::operation::{
    Action, CLASSES, ObjectId, Operation, ProcessId, Rivalry, ThreadId, Way, Ways,
};
use super::runtime::enabled::Ahead;
use super::runtime::statics;
use super::spin::blocking::{GaveUp, Stirred};
use super::spin::detection::{Effect, Round, Sight, Versions};
use super::spin::termination::{self, Loops};
use crate::system::{ComponentId, Failure, Task};
use crate::tables::number_below;
use crate::trace::{GOLDEN, scatter};

/// What an execution consists of. It stays when the execution is over, for whoever looks at it.
pub(crate) struct State {
    pub(crate) threads: Vec<Option<Thread>>,
    /// The threads in the order in which they were spawned.
    pub(crate) order: Vec<ThreadId>,
    pub(crate) objects: Vec<Object>,
    pub(crate) events: Vec<Event>,
    pub(crate) clocks: Clocks,
    /// In the order in which they were started. The first is what the check begins with.
    pub(super) hosts: Vec<Host>,
    pub(super) addresses: Addresses,
    /// What may still go wrong, if anything may.
    pub(super) faults: Option<ObjectId>,
    pub(super) failure: Option<Failure>,
    /// How often a thread may go round without seeing anything new while others can go on.
    pub(super) fruitless_turns: u32,
    pub(super) loops: Arc<Loops>,
    /// A thread that is about to wait in a loop that may end by itself.
    pub(super) wonders: Option<ThreadId>,
    /// Whether a thread had to wait because it went round without seeing anything new.
    pub(crate) went_round: bool,
    /// Where a thread had to wait in a loop that ends by itself, and for how many turns it would have had to be followed.
    pub(crate) gave_up: Option<GaveUp>,
    /// How often a thread that goes round has changed what others see who do.
    pub(super) disturbances: u32,
    /// Whether one of them changed an atomic value.
    pub(super) numbers_change: bool,
    /// Whether time has passed for anybody.
    pub(super) time_passes: bool,
    pub(super) ahead: Ahead,
    /// A thread that has just been spawned and has not begun.
    pub(super) newborn: Option<Newborn>,
    /// Statics, by where their handles are: each process has its own.
    pub(super) statics: HashMap<(ProcessId, usize), Static>,
    /// Followed only where the program has checked cells.
    pub(super) happens_before: HappensBefore,
    pub(super) follows_races: bool,
    /// Whether the execution has to be run again, followed from its beginning.
    pub(super) must_follow: bool,
    /// Two accesses that may be a data race: the execution has been left to find out.
    pub(super) suspicion: Option<Box<Suspicion>>,
    /// Who comes after which accesses of whom by something that is not seen.
    pub(super) learnt_of: Vec<(ThreadId, ThreadId, u32)>,
    /// Whether it mattered who dropped the last owner of a value.
    pub(crate) last_drop_matters: bool,
    /// The object before which a thread is held, in a directed execution, and whether another is held there too.
    pub(super) held_before: Option<usize>,
    pub(super) both_held: bool,
    /// Whether objects keep what they were before: only races need that, and it takes copies.
    pub(super) keeps_models: bool,
    /// What the objects of earlier executions had their events in.
    spare_lists: Vec<Vec<EventId>>,
    /// What they kept in what they were before.
    spare_models: Vec<Vec<Model>>,
    /// What the threads of earlier executions had their rounds in.
    spare_rounds: Vec<Vec<Sight>>,
}

/// What an execution has instead of a static.
#[derive(Default)]
pub(super) struct Static {
    pub(super) object: Option<ObjectId>,
    pub(super) copy: Option<statics::Copy>,
}

pub(super) type Body = Box<dyn FnOnce()>;

/// A thread that has just been spawned and has not begun.
pub(super) struct Newborn {
    pub(super) thread: ThreadId,
    pub(super) body: Body,
    /// The stack size that the program asks for, if it does.
    pub(super) stack_size: Option<usize>,
}

pub(crate) struct Thread {
    /// By which every process knows it.
    pub(super) hash: u64,
    pub(crate) name: Option<String>,
    pub(crate) object: ObjectId,
    pub(crate) process: ProcessId,
    /// The operation that it has come to.
    pub(crate) pending: Option<Operation>,
    /// The operation that it had come to when its process crashed, and the crash.
    pub(crate) cut: Option<(Operation, EventId)>,
    /// How many events it has had.
    pub(crate) steps: u32,
    /// What comes before its next event.
    pub(crate) row: Row,
    /// What comes before its first.
    pub(crate) born: Row,
    pub(crate) ended: bool,
    /// Whether it unwinds because of a panic, as far as is known.
    pub(super) panicking: bool,
    /// Who has spawned it, and the how manyeth of its children it is.
    pub(super) parent: Option<(ThreadId, u32)>,
    pub(super) children: u32,
    /// What came of its last operation.
    pub(crate) answer: u32,
    /// What the value was before its last operation and after it, where that is told.
    pub(crate) values: Option<(String, String)>,
    pub(super) yielder: *const Yielder<(), ()>,
    /// How often it has been told that the execution is over.
    pub(super) told: u32,
    /// How much of its stack it used when it came to its last operation.
    pub(super) depth: usize,
    /// Its last event.
    pub(super) latest: EventId,
    pub(super) round: Round,
    /// A hash of all that it has done and seen.
    pub(super) view: u64,
    pub(super) time: Duration,
    /// What time it was for it at each of its events, if time has passed for anybody.
    times: Vec<Duration>,
    /// How many sockets it has made, and numbers of ports.
    pub(super) sockets: u32,
    /// Its thread-local values, in the order in which they were made.
    pub(super) locals: Vec<(usize, Box<dyn Any>)>,
    /// The keys of those that are gone, because it ends.
    pub(super) forgotten: Vec<usize>,
    /// How many random numbers it has drawn.
    pub(super) drawn: u64,
    /// How often it has come to checked cells.
    pub(super) accesses: u32,
    /// The events with which it dropped the last owners of values that it is about to drop.
    pub(super) destroying: Vec<EventId>,
}

/// An object keeps what it was before each so manyeth of its events.
const BETWEEN_MODELS: usize = 8;

/// How many events an execution may have: an event has up to two rows of clocks, and rows are numbered in 32 bits.
const MOST_EVENTS: u32 = u32::MAX / 4;

pub(crate) struct Object {
    pub(crate) model: Model,
    /// What it was before some of its events, if that is kept.
    models: Vec<Model>,
    pub(super) versions: Versions,
    /// What the thread that last changed it had done and seen.
    view: u64,
    /// What comes before the next operation that does not commute with a class.
    rows: [Option<Row>; CLASSES],
    pub(crate) events: Vec<EventId>,
    /// Who has come to it without an operation: the last to change it, and those who have looked since.
    pub(super) accesses: Vec<Access>,
    /// Where it was made, if that is known.
    pub(crate) made: Option<&'static Location<'static>>,
    pub(crate) thread: Option<ThreadId>,
    /// What it is called, if it is part of the network.
    pub(super) label: Option<Label>,
    /// The only process but the first whose threads have come to it.
    pub(super) process: Option<ProcessId>,
}

/// What an event is in every process: its thread, the how manyeth of it, its way, and how many events of each thread come
/// before it.
#[cfg(test)]
pub(crate) type HistoricEvent = (u64, u32, u64, Vec<(u64, u32)>);

#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) thread: ThreadId,
    pub(crate) way: Way,
    pub(crate) operation: Operation,
    pub(crate) rivalry: Rivalry,
    /// The how manyeth of its thread it is.
    pub(crate) index: u32,
    pub(crate) row: Row,
    /// How many objects there were before it.
    pub(crate) objects: u32,
    pub(crate) effect: Effect,
    /// Why its thread went on, if it had gone round.
    pub(crate) stirred: Option<Box<Stirred>>,
}

impl State {
    pub(super) fn new(fruitless_turns: u32, loops: Arc<Loops>) -> Self {
        Self {
            threads: Vec::new(),
            order: Vec::new(),
            objects: Vec::new(),
            events: Vec::new(),
            clocks: Clocks::new(),
            hosts: Vec::new(),
            addresses: Addresses::default(),
            faults: None,
            failure: None,
            fruitless_turns,
            loops,
            wonders: None,
            went_round: false,
            gave_up: None,
            disturbances: 0,
            numbers_change: false,
            time_passes: false,
            ahead: Ahead::default(),
            newborn: None,
            statics: HashMap::new(),
            happens_before: HappensBefore::new(),
            follows_races: false,
            must_follow: false,
            suspicion: None,
            learnt_of: Vec::new(),
            last_drop_matters: false,
            held_before: None,
            both_held: false,
            keeps_models: true,
            spare_lists: Vec::new(),
            spare_models: Vec::new(),
            spare_rounds: Vec::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        for thread in self.threads.iter_mut().flatten() {
            let mut room = std::mem::take(&mut thread.round.seen);
            room.clear();
            self.spare_rounds.push(room);
            // Those of a thread that was left where it is: like what is on its stack they are not touched any more.
            thread.locals.drain(..).for_each(std::mem::forget);
        }
        self.threads.clear();
        self.order.clear();
        for object in &mut self.objects {
            self.spare_lists.push(std::mem::take(&mut object.events));
            let mut room = std::mem::take(&mut object.models);
            room.clear();
            self.spare_models.push(room);
        }
        self.objects.clear();
        self.events.clear();
        self.clocks.clear();
        self.hosts.clear();
        self.addresses.clear();
        self.faults = None;
        self.failure = None;
        self.wonders = None;
        self.went_round = false;
        self.gave_up = None;
        self.disturbances = 0;
        self.numbers_change = false;
        self.time_passes = false;
        self.ahead.prescribe(&[]);
        self.newborn = None;
        self.statics.clear();
        self.happens_before.clear();
        self.must_follow = false;
        self.suspicion = None;
        self.learnt_of.clear();
        self.last_drop_matters = false;
        self.held_before = None;
        self.both_held = false;
    }

    pub(crate) fn thread(&self, thread: ThreadId) -> &Thread {
        let found = self.threads.get(thread.0 as usize);
        found.and_then(Option::as_ref).expect("it was spawned")
    }

    pub(super) fn thread_mut(&mut self, thread: ThreadId) -> &mut Thread {
        let found = self.threads.get_mut(thread.0 as usize);
        found.and_then(Option::as_mut).expect("it was spawned")
    }

    pub(crate) fn object(&self, object: ObjectId) -> &Object {
        &self.objects[object.0 as usize]
    }

    /// The operation that a thread has come to, if it is there at all.
    pub(crate) fn pending(&self, thread: ThreadId) -> Option<Operation> {
        let found = self.threads.get(thread.0 as usize)?;
        found.as_ref()?.pending
    }

    /// The process that an operation stops, if it stops one.
    pub(crate) fn crashed_by(&self, operation: &Operation, way: Way) -> Option<ProcessId> {
        match (operation.action, &self.object(operation.object).model) {
            (Action::Crash, Model::Process { id, .. }) if way != Ways::TOO_LATE => Some(*id),
            _ => None,
        }
    }

    /// Whether an operation stops a thread for good. What it would do next cannot come after it, so it matters to all that
    /// the thread does.
    pub(crate) fn stops(&self, operation: &Operation, way: Way, thread: ThreadId) -> bool {
        let Some(process) = self.crashed_by(operation, way) else {
            return false;
        };
        let thread = self.threads.get(thread.0 as usize);
        // Of a thread that is not here nothing is known.
        thread
            .and_then(Option::as_ref)
            .is_none_or(|thread| thread.process == process)
    }

    /// Whether it matters which of two operations of different threads comes first.
    pub(crate) fn depends(
        &self,
        (thread, operation, way): (ThreadId, &Operation, Way),
        (other, others, others_way): (ThreadId, &Operation, Way),
    ) -> bool {
        let (action, others_action) = (operation.action, others.action);
        operation.object == others.object && action.depends(way, others_action, others_way)
            || self.stops(operation, way, other)
            || self.stops(others, others_way, thread)
    }

    /// What an object was before an event.
    pub(crate) fn model_before(&self, object: ObjectId, event: EventId) -> Model {
        let object = self.object(object);
        let next = object.events.partition_point(|&other| other < event);
        if next == object.events.len() || matches!(object.model, Model::Memory) {
            return object.model.clone();
        }
        let kept = next / BETWEEN_MODELS;
        let mut model = object.models[kept].clone();
        for &event in &object.events[kept * BETWEEN_MODELS..next] {
            let that = &self.events[event as usize];
            model.perform(that.thread, that.operation.action, that.way, event);
        }
        model
    }

    /// A thread comes to something while it drops a value whose last owner it was. That comes after the drops of all other
    /// owners, and which of them was the last matters.
    pub(super) fn note_in_destructor(&mut self, thread: ThreadId) {
        for last in std::mem::take(&mut self.thread_mut(thread).destroying) {
            self.last_drop_matters = true;
            // The thread has had no event since, and nobody else has taken note of this one.
            let Event { row, operation, .. } = self.events[last as usize];
            for which in 0..self.object(operation.object).events.len() {
                let other = self.object(operation.object).events[which];
                let that = &self.events[other as usize];
                if that.operation.action.drops_an_owner() {
                    self.clocks.join(row, that.row);
                }
            }
            if self.follows_races {
                self.happens_before.acquire_drops(thread, operation.object);
            }
        }
    }

    /// Whether what has this row comes after all drops of owners of a value so far.
    fn comes_after_drops(&self, object: ObjectId, row: Row) -> bool {
        let mut events = self.object(object).events.iter();
        events.all(|&event| {
            let that = &self.events[event as usize];
            !that.operation.action.drops_an_owner() || self.clocks.of(row, that.thread) > that.index
        })
    }

    /// Whether an event dropped the last owner of a value, and something came of that.
    pub(crate) fn is_last_drop(&self, event: EventId) -> bool {
        let this = &self.events[event as usize];
        if !this.operation.action.drops_an_owner() {
            return false;
        }
        let before = self.model_before(this.operation.object, event);
        before.is_last_owned()
    }

    /// Whether a thread that is about to drop an owner is about to drop the last one because of the last event.
    pub(crate) fn has_become_last(&self, last: &Event, pending: &Operation) -> bool {
        last.operation.object == pending.object
            && last.operation.action.drops_an_owner()
            && pending.action.drops_an_owner()
            && self.object(pending.object).model.is_last_owned()
    }

    /// A value that still has owners, and how many.
    pub(super) fn leaked(&self) -> Option<(&Object, u32)> {
        self.objects.iter().find_map(|object| match object.model {
            Model::Counted { strong, .. } if strong > 0 => Some((object, strong)),
            _ => None,
        })
    }

    /// Where a thread did its last operation.
    pub(super) fn last_place(&self, thread: ThreadId) -> Option<&'static Location<'static>> {
        let mut events = self.events.iter().rev();
        let last = events.find(|event| event.thread == thread)?;
        Some(last.operation.at)
    }

    /// Whether a thread comes after another one's access in the order of a sequentially consistent execution: it knows of a
    /// later event, or of a thread that was spawned later.
    pub(super) fn comes_after(&self, thread: ThreadId, access: &Access) -> bool {
        let row = self.thread(thread).row;
        let knows = |&other: &ThreadId| other == thread || self.clocks.of(row, other) > 0;
        let spawned_later = |&other: &ThreadId| {
            let ancestors = std::iter::successors(self.thread(other).parent, |(parent, _)| {
                self.thread(*parent).parent
            });
            let mut ancestors = ancestors.filter(|(parent, _)| *parent == access.thread);
            ancestors.any(|(_, which)| which >= access.children)
        };
        self.clocks.of(row, access.thread) > access.steps
            || self
                .order
                .iter()
                .filter(|other| knows(other))
                .any(spawned_later)
    }

    /// How many of the objects before one are of the same kind and were made on the same line.
    pub(crate) fn siblings_before(&self, id: ObjectId) -> usize {
        let this = self.object(id);
        let line = |object: &Object| object.made.map(|made| (made.file(), made.line()));
        let is_sibling = |other: &&Object| {
            line(other) == line(this) && discriminant(&other.model) == discriminant(&this.model)
        };
        let before = self.objects[..id.0 as usize].iter();
        before.filter(is_sibling).count()
    }

    /// Whether a thread has drawn a random number.
    pub(crate) fn has_drawn(&self) -> bool {
        self.threads.iter().flatten().any(|thread| thread.drawn > 0)
    }

    /// How many objects there are.
    pub(crate) fn objects(&self) -> usize {
        self.objects.len()
    }

    /// Whether an event comes before another one, or is that.
    pub(crate) fn is_before(&self, one: EventId, other: EventId) -> bool {
        let one = &self.events[one as usize];
        self.clocks.of(self.events[other as usize].row, one.thread) > one.index
    }

    /// A hash of what has happened, whatever the order of what does not depend on each other: the same in every process.
    pub(crate) fn fingerprint(&self) -> u64 {
        let events = self.events.iter();
        events
            .map(|event| self.hash_of(event))
            .fold(0, u64::wrapping_add)
    }

    /// The task of a thread, and a hash of its next operation: a thread has one at a time.
    pub(super) fn task_of(&self, id: ThreadId) -> (Task, u64) {
        let thread = self.thread(id);
        let task = match thread.process {
            ProcessId::OUTSIDE => Task::of_the_environment(None),
            ProcessId(process) => Task::of_thread(ComponentId(process as usize), id.0),
        };
        (task, thread.hash ^ scatter(u64::from(thread.steps)))
    }

    /// The part of an event in the hash of what has happened, which is their sum.
    pub(crate) fn hash_of(&self, event: &Event) -> u64 {
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

    /// The way in which an event came out, the same in every process.
    fn stable_way(&self, event: &Event) -> u64 {
        match event.operation.action {
            // Numbers of threads are those of one process.
            Action::NotifyOne => scatter(self.thread(ThreadId(event.way)).hash),
            _ => u64::from(event.way),
        }
    }

    /// What the [fingerprint](Self::fingerprint) is one of: each event with what comes before it.
    #[cfg(test)]
    pub(crate) fn history(&self) -> Vec<HistoricEvent> {
        let known = |(thread, &count): (&Option<Thread>, &u32)| {
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

    pub(super) fn add_object(
        &mut self,
        model: Model,
        made: Option<&'static Location<'static>>,
    ) -> ObjectId {
        let id = ObjectId(self.objects.len() as u32);
        let mut events = self.spare_lists.pop().unwrap_or_default();
        events.clear();
        self.objects.push(Object {
            model,
            models: self.spare_models.pop().unwrap_or_default(),
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

    /// Takes note of a thread, as a child of who runs.
    pub(super) fn add_thread(
        &mut self,
        id: ThreadId,
        hash: u64,
        name: Option<String>,
        process: ProcessId,
        row: Row,
        time: Duration,
    ) {
        let object = self.add_object(Model::thread(), None);
        self.objects[object.0 as usize].thread = Some(id);
        self.clocks.admit(id);
        let round = Round::in_room_of(self.spare_rounds.pop().unwrap_or_default());
        let at = id.0 as usize;
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, || None);
        }
        self.threads[at] = Some(Thread {
            hash,
            name,
            object,
            process,
            pending: None,
            cut: None,
            steps: 0,
            row,
            born: row,
            ended: false,
            panicking: false,
            parent: None,
            children: 0,
            answer: 0,
            values: None,
            yielder: ptr::null(),
            told: 0,
            depth: 0,
            latest: 0,
            round,
            view: hash,
            time,
            times: Vec::new(),
            sockets: 0,
            locals: Vec::new(),
            forgotten: Vec::new(),
            drawn: 0,
            accesses: 0,
            destroying: Vec::new(),
        });
        self.order.push(id);
    }

    /// It is as late for a thread as it was for all that comes before its last event.
    fn hear_of_time(&mut self, thread: ThreadId, row: Row) {
        let clock = self.clocks.row(row).iter();
        let heard = self
            .threads
            .iter()
            .zip(clock)
            .filter_map(|(other, &count)| {
                let last = (count as usize).checked_sub(1)?;
                other.as_ref()?.times.get(last).copied()
            });
        let heard = heard.max().unwrap_or_default();
        let this = self.thread_mut(thread);
        this.time = this.time.max(heard);
        let steps = this.steps as usize;
        this.times.resize(steps, Duration::ZERO);
        this.times[steps - 1] = this.time;
    }

    /// The threads of a process stop where they are: that comes after all that they have done.
    fn stop_all(&mut self, crash: &Operation, event: EventId, row: Row) {
        let process = self.crashed_by(crash, Ways::COME);
        for thread in self.threads.iter_mut().flatten() {
            if Some(thread.process) == process && thread.cut.is_none() {
                self.clocks.join(row, thread.row);
                thread.cut = thread.pending.take().map(|operation| (operation, event));
                thread.ended = true;
            }
        }
    }

    /// A thread goes on with the operation that it has come to.
    pub(super) fn perform(&mut self, thread: ThreadId, way: Way) {
        let event = number_below(self.events.len(), MOST_EVENTS, "steps in one execution");
        let this = self.threads[thread.0 as usize].as_mut();
        let this = this.expect("it was spawned");
        let operation = this.pending.take().expect("it is enabled");
        let Operation { object, action, .. } = operation;
        let known = &mut self.objects[object.0 as usize];
        if self.keeps_models && known.events.len().is_multiple_of(BETWEEN_MODELS) {
            known.models.push(known.model.clone());
        }
        let outcome = known.model.perform(thread, action, way, event);
        let effect = action.effect(way, outcome.answer);
        let acts = effect == Effect::CHANGE;
        this.look_at(known, &operation, (way, outcome.answer), effect);
        let (index, row) = (this.steps, self.clocks.after(this.row));
        this.steps += 1;
        this.latest = event;
        this.row = row;
        this.answer = outcome.answer;
        this.values = None;
        this.ended = matches!(action, Action::End);
        let may_be_stirred = this.round.has_turned(self.fruitless_turns);
        let effect = match acts {
            true => self.unless_stale(thread, &operation),
            false => effect,
        };
        let stirred = match may_be_stirred {
            true => self.stir(thread, &operation, row).map(Box::new),
            false => None,
        };
        let known = &mut self.objects[object.0 as usize];
        let rivalry = action.rivalry(way);
        for rival in rivalry.rivals() {
            if let Some(other) = known.rows[rival] {
                self.clocks.join(row, other);
            }
        }
        if outcome.after_closing {
            let close = Action::Close.rivalry(0).class().expect("it is in one");
            if let Some(other) = known.rows[close] {
                self.clocks.join(row, other);
            }
        }
        if let Some(after) = outcome.after {
            self.clocks.join(row, self.events[after as usize].row);
        }
        if matches!(action, Action::Crash) && outcome.answer == 1 {
            self.stop_all(&operation, event, row);
        }
        if self.follows_races {
            let known = &self.objects[object.0 as usize];
            let kind = (&known.model, known.label.is_some());
            self.happens_before
                .perform(thread, object, kind, action, outcome);
            let is_last = action.drops_an_owner() && outcome.answer == 1;
            if is_last && self.comes_after_drops(object, row) {
                self.happens_before.acquire_drops(thread, object);
            }
        }
        let known = &mut self.objects[object.0 as usize];
        known.events.push(event);
        self.clocks.count(row, thread);
        if let Some(class) = rivalry.class() {
            known.rows[class] = Some(match known.rows[class] {
                // What commutes with its like does not come after it: both must be remembered.
                Some(other) if !rivalry.depends(rivalry) => {
                    let both = self.clocks.after(other);
                    self.clocks.join(both, row);
                    both
                }
                _ => row,
            });
        }
        let objects = self.objects.len() as u32;
        // Not pushed: so it is made in its place, and not copied there.
        self.events.extend(iter::once_with(|| Event {
            thread,
            way,
            operation,
            rivalry,
            index,
            row,
            objects,
            effect,
            stirred,
        }));
        if self.time_passes {
            self.hear_of_time(thread, row);
        }
        self.go_on_with_round(thread, &operation, (way, effect), acts);
    }

    /// The same, but where the thread would be told something else than this, the object stays as it is.
    pub(super) fn perform_as(&mut self, thread: ThreadId, way: Way, answer: u32) {
        let object = self.thread(thread).pending.expect("it is enabled").object.0 as usize;
        let model = self.objects[object].model.clone();
        self.perform(thread, way);
        if self.thread(thread).answer != answer {
            self.objects[object].model = model;
            self.thread_mut(thread).answer = answer;
        }
    }
}

impl Thread {
    /// What it has done and seen grows by an operation, and by what who last changed the object had.
    #[inline]
    fn look_at(
        &mut self,
        object: &mut Object,
        operation: &Operation,
        (way, answer): (Way, u32),
        effect: Effect,
    ) {
        let acts = effect == Effect::CHANGE;
        let seen = match acts || effect.sees.is_some() {
            true => object.view,
            false => 0,
        };
        let how = u64::from(way) << 32 | u64::from(answer);
        let view = self.view ^ termination::offset(operation.at) ^ how.rotate_left(7);
        self.view = scatter(view.wrapping_mul(GOLDEN) ^ seen);
        if acts {
            object.view = self.view;
        }
    }
}
