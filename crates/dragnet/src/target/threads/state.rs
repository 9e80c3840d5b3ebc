//! The state of an execution, and what becomes of it when a thread does an operation.

use std::collections::HashMap;
use std::iter;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::clocks::{Clocks, Row};
use super::data_race::{Access, Suspicion};
use super::happens_before::HappensBefore;
use super::history::Event;
use super::host::Host;
use super::model::{EventId, Model};
use super::net::Addresses;
use super::object::Object;
use super::operation::{Action, ObjectId, Operation, ProcessId, ThreadId, Way, Ways};
use super::runtime::enabled::Ahead;
use super::runtime::statics;
use super::spin::blocking::GaveUp;
use super::spin::detection::{Effect, Sight};
use super::spin::termination::Loops;
use super::thread_state::{Newborn, ThreadState};
use crate::system::Failure;
use crate::tables::number_below;

/// The state of an execution. It stays when the execution is over, until the next one begins; an explorer is given an
/// [`ExecutionView`](super::execution::ExecutionView) of it.
pub(super) struct State {
    pub(super) threads: Vec<Option<ThreadState>>,
    /// The threads in the order in which they were spawned.
    pub(super) order: Vec<ThreadId>,
    pub(super) objects: Vec<Object>,
    pub(super) events: Vec<Event>,
    pub(super) clocks: Clocks,
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
    pub(super) went_round: bool,
    /// Where a thread had to wait in a loop that ends by itself, and for how many turns it would have had to be followed.
    pub(super) gave_up: Option<GaveUp>,
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
    pub(super) last_drop_matters: bool,
    /// The object before which a thread is held, in a directed execution, and whether another is held there too.
    pub(super) held_before: Option<usize>,
    pub(super) both_held: bool,
    /// Whether objects keep what they were before: only races need that, and it takes copies.
    pub(super) keeps_models: bool,
    /// The room that the objects of earlier executions had for their events and models.
    pub(super) spare_objects: Vec<(Vec<EventId>, Vec<Model>)>,
    /// The room that the threads of earlier executions had for their rounds.
    pub(super) spare_rounds: Vec<Vec<Sight>>,
}

/// What an execution has instead of a static.
#[derive(Default)]
pub(super) struct Static {
    pub(super) object: Option<ObjectId>,
    pub(super) copy: Option<statics::Copy>,
}

/// How many events an execution may have: an event has up to two rows of clocks, and rows are numbered in 32 bits.
const MOST_EVENTS: u32 = u32::MAX / 4;

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
            spare_objects: Vec::new(),
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
            self.spare_objects.push(object.take_room());
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

    pub(super) fn thread(&self, thread: ThreadId) -> &ThreadState {
        let found = self.threads.get(thread.0 as usize);
        found.and_then(Option::as_ref).expect("it was spawned")
    }

    pub(super) fn thread_mut(&mut self, thread: ThreadId) -> &mut ThreadState {
        let found = self.threads.get_mut(thread.0 as usize);
        found.and_then(Option::as_mut).expect("it was spawned")
    }

    pub(super) fn object(&self, object: ObjectId) -> &Object {
        &self.objects[object.0 as usize]
    }

    /// The operation that a thread has come to, if it is there at all.
    pub(super) fn pending(&self, thread: ThreadId) -> Option<Operation> {
        let found = self.threads.get(thread.0 as usize)?;
        found.as_ref()?.pending
    }

    /// The process that an operation stops, if it stops one.
    pub(super) fn crashed_by(&self, operation: &Operation, way: Way) -> Option<ProcessId> {
        match (operation.action, &self.object(operation.object).model) {
            (Action::Crash, Model::Process { id, .. }) if way != Ways::TOO_LATE => Some(*id),
            _ => None,
        }
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
            if Some(thread.process) == process && thread.cut_off.is_none() {
                self.clocks.join(row, thread.row);
                thread.cut_off = thread.pending.take().map(|operation| (operation, event));
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
        if self.keeps_models {
            known.keep_model();
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
