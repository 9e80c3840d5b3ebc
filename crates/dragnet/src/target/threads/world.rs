//! One execution of a program: its threads, what they share, and what has happened.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::{self, Debug, Display};
use std::panic::{self, AssertUnwindSafe, Location};
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use corosensei::Yielder;

use super::clocks::{Clocks, Row};
use super::model::{EventId, Model};
use super::operation::{Action, CLASSES, ObjectId, Operation, ThreadId, Way};
use super::statics;
use super::trap::{self, Trapped};
use crate::panics;
use crate::system::{Failure, FailureKind};
use crate::trace::scatter;

thread_local! {
    static CURRENT: Cell<*const World> = const { Cell::new(ptr::null()) };
}

/// The execution that runs on this thread of the operating system, if one does.
#[inline]
pub(crate) fn current() -> Option<&'static World> {
    let world = CURRENT.get();
    // SAFETY: the pointer is set only while an executor, which owns the world, runs on this thread; the reference does
    // not leave the primitive that asks for it.
    unsafe { world.as_ref() }
}

/// Makes `world` the execution of this thread of the operating system until it is dropped.
pub(super) struct Entered;

impl Entered {
    pub(super) fn new(world: &World) -> Self {
        assert!(
            CURRENT.replace(world).is_null(),
            "an execution runs inside another"
        );
        Self
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(ptr::null());
    }
}

/// Whether the running thread unwinds because of a panic.
pub(crate) fn is_panicking() -> bool {
    std::thread::panicking() && current().is_none_or(World::is_running_panicking)
}

/// Takes note that the running thread begins to unwind.
pub(crate) fn note_panic() {
    if let Some(world) = current()
        && let Ok(mut state) = world.state.try_borrow_mut()
    {
        let running = state.threads.get_mut(world.running.get().0 as usize);
        if let Some(thread) = running.and_then(Option::as_mut) {
            thread.panicking = true;
        }
    }
}

/// What is thrown to take a thread out of an execution that is over.
struct Over;

/// Whether a panic is nothing but a thread on its way out of an execution that is over.
pub(crate) fn is_over(payload: &(dyn Any + Send)) -> bool {
    payload.is::<Over>()
}

/// Where something panics: a thread that is on its way out of an execution that is over would end the process, as whatever
/// panics while it unwinds does. It is taken out of the coroutine where it does.
///
/// The thread of the operating system is not as it was after this, and runs no execution any more.
pub(crate) fn panic_on_the_way_out() {
    if let Some(world) = current()
        && world.is_over()
        && world.state.borrow().thread(world.running()).told > 0
    {
        world.spoiled.set(true);
        trap::expect_abort();
    }
}

/// How often a thread goes round though nobody else can go on, before that is hopeless.
const HOPELESS: u32 = 100;

/// How much room on its stack a thread needs for an operation, and to unwind.
const HEADROOM: usize = 24 << 10;

/// How often a thread may catch that, or go on with something else on its way out.
const PATIENCE: u32 = 1_000;

/// A place in an object by which each execution knows it again.
pub(crate) struct Handle {
    /// The number of the execution that uses it, and that of the object there.
    key: AtomicU64,
    /// Where it was made.
    made: &'static Location<'static>,
}

const FRESH: u64 = 0;
const OUTSIDE: u64 = u64::MAX;

impl Handle {
    #[track_caller]
    pub(crate) const fn new() -> Self {
        Self {
            key: AtomicU64::new(FRESH),
            made: Location::caller(),
        }
    }

    /// Takes note of a use outside of any execution.
    #[inline]
    pub(crate) fn used_outside(&self) {
        if self.key.load(Relaxed) == FRESH {
            self.key.store(OUTSIDE, Relaxed);
        }
    }
}

impl Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "made at {}", self.made)
    }
}

/// How a program is run.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) stack_bytes: usize,
    /// How often threads may wake up for no reason at one condition variable.
    pub(crate) spurious_wakeups: u32,
    /// Whether a panic of a thread is only told to who joins it.
    pub(crate) panics_are_fine: bool,
    /// How often a thread may go round without seeing anything new while others can go on.
    pub(crate) fruitless_turns: u32,
    /// How long a thread may run without coming to an operation.
    pub(crate) patience: Duration,
}

/// The threads of all executions: each by whose child it is, and the how manyeth.
pub(crate) struct Names(Mutex<Known>);

struct Known {
    threads: Vec<Named>,
}

struct Named {
    /// The numbers of children on the way from the first thread.
    path: Vec<u32>,
    name: Option<String>,
    /// By which every process knows it.
    hash: u64,
    children: Vec<ThreadId>,
}

impl Named {
    fn new(path: Vec<u32>, name: Option<String>) -> Self {
        let steps = path.iter();
        let hash = steps.fold(1, |hash, &which| scatter(hash ^ scatter(u64::from(which))));
        Self {
            path,
            name,
            hash,
            children: Vec::new(),
        }
    }
}

impl Default for Names {
    fn default() -> Self {
        Self(Mutex::new(Known {
            threads: vec![Named::new(Vec::new(), Some("main".to_owned()))],
        }))
    }
}

impl Names {
    pub(crate) const MAIN: ThreadId = ThreadId(0);

    /// A child of a thread, with the hash by which every process knows it.
    fn child(&self, parent: ThreadId, which: u32, name: Option<&str>) -> (ThreadId, u64) {
        let threads = &mut self.known().threads;
        let siblings = &threads[parent.0 as usize].children;
        // Children are numbered in the order in which they are spawned, so that this is one more than are known at most.
        let id = siblings.get(which as usize).copied().unwrap_or_else(|| {
            let id = ThreadId(threads.len() as u32);
            let mut path = threads[parent.0 as usize].path.clone();
            path.push(which + 1);
            threads.push(Named::new(path, None));
            threads[parent.0 as usize].children.push(id);
            id
        });
        let named = &mut threads[id.0 as usize];
        if named.name.as_deref() != name {
            named.name = name.map(str::to_owned);
        }
        (id, named.hash)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a thread is called.
    pub(crate) fn of(&self, thread: ThreadId) -> String {
        self.known().threads[thread.0 as usize].to_string()
    }

    /// What each thread is called, by its number.
    pub(crate) fn all(&self) -> Vec<String> {
        let known = self.known();
        known.threads.iter().map(ToString::to_string).collect()
    }

    /// A hash by which every process knows a thread.
    fn hash(&self, thread: ThreadId) -> u64 {
        self.known().threads[thread.0 as usize].hash
    }
}

impl Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None => {
                let path: Vec<String> = self.path.iter().map(ToString::to_string).collect();
                write!(f, "thread {}", path.join("."))
            }
        }
    }
}

pub(crate) struct World {
    serial: Cell<u32>,
    pub(super) setting: Setting,
    names: std::sync::Arc<Names>,
    over: Cell<bool>,
    /// Whether the thread of the operating system can run no further execution.
    spoiled: Cell<bool>,
    running: Cell<ThreadId>,
    /// Where the stack of the running thread ends.
    floor: Cell<usize>,
    weakly_ordered: Cell<u64>,
    /// Whether the execution is told to a person.
    told: Cell<bool>,
    state: RefCell<State>,
}

/// What an execution consists of. It stays when the execution is over, for whoever looks at it.
pub(crate) struct State {
    pub(crate) threads: Vec<Option<Thread>>,
    /// The threads in the order in which they were spawned.
    pub(crate) order: Vec<ThreadId>,
    pub(crate) objects: Vec<Object>,
    pub(crate) events: Vec<Event>,
    pub(crate) clocks: Clocks,
    pub(super) failure: Option<Failure>,
    /// How often a thread may go round without seeing anything new while others can go on.
    fruitless_turns: u32,
    /// Whether a thread had to wait because it went round without seeing anything new.
    pub(crate) went_round: bool,
    /// Whether time has passed for anybody.
    time_passes: bool,
    /// A thread that has just been spawned and has not begun.
    pub(super) newborn: Option<(ThreadId, Body)>,
    /// Statics, by where their handles are.
    statics: HashMap<usize, Static>,
    /// Whether events keep what their objects were before: only races need that, and it makes each of them a copy.
    pub(super) keeps_models: bool,
    /// What the objects of earlier executions had their events in.
    spare_lists: Vec<Vec<EventId>>,
}

/// What an execution has instead of a static.
#[derive(Default)]
struct Static {
    object: Option<ObjectId>,
    copy: Option<statics::Copy>,
}

pub(super) type Body = Box<dyn FnOnce()>;

pub(crate) struct Thread {
    /// By which every process knows it.
    hash: u64,
    pub(crate) name: Option<String>,
    pub(crate) object: ObjectId,
    /// The operation that it has come to.
    pub(crate) pending: Option<Operation>,
    /// How many events it has had.
    pub(crate) steps: u32,
    /// What comes before its next event.
    pub(crate) row: Row,
    /// What comes before its first.
    pub(crate) born: Row,
    pub(crate) ended: bool,
    /// Whether it unwinds because of a panic, as far as is known.
    panicking: bool,
    /// Who has spawned it, and the how manyeth of its children it is.
    parent: Option<(ThreadId, u32)>,
    children: u32,
    /// What came of its last operation.
    pub(crate) answer: u32,
    /// What the value was before its last operation and after it, where that is told.
    pub(crate) values: Option<(String, String)>,
    yielder: *const Yielder<(), ()>,
    /// How often it has been told that the execution is over.
    told: u32,
    round: Round,
    /// The same before its last operation, if that did something.
    round_before: Round,
    time: Duration,
    /// What time it was for it at each of its events, if time has passed for anybody.
    times: Vec<Duration>,
    locals: HashMap<usize, Box<dyn Any>>,
}

/// What a thread has seen since it last did something, or saw something new: whether it goes round and round.
#[derive(Default)]
struct Round {
    /// What it saw, where, and how often that had changed by then.
    seen: Vec<Sight>,
    /// Where it came round first.
    head: Option<Sight>,
    /// How often it has come round.
    turns: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Sight {
    at: &'static Location<'static>,
    object: ObjectId,
    version: u32,
}

impl Round {
    /// The thread has done something, or seen something new.
    fn begin(&mut self) {
        self.seen.clear();
        self.head = None;
        self.turns = 0;
    }

    /// The thread has looked at something.
    fn see(&mut self, sight: Sight) {
        let same = |seen: &&Sight| seen.at == sight.at && seen.object == sight.object;
        match self.seen.iter().find(same) {
            Some(seen) if *seen == sight => {
                let head = *self.head.get_or_insert(sight);
                self.turns += u32::from(head == sight);
            }
            Some(_) => {
                self.begin();
                self.seen.push(sight);
            }
            None => self.seen.push(sight),
        }
    }
}

pub(crate) struct Object {
    pub(crate) model: Model,
    /// How often it may have changed.
    version: u32,
    /// What comes before the next operation that does not commute with a class.
    rows: [Option<Row>; CLASSES],
    pub(crate) events: Vec<EventId>,
    /// Who has come to it without an operation: the last to change it, and those who have looked since.
    accesses: Vec<Access>,
    /// Where it was made, if that is known.
    pub(crate) made: Option<&'static Location<'static>>,
    pub(crate) thread: Option<ThreadId>,
}

/// A thread has come to data that nothing guards.
#[derive(Clone, Copy)]
struct Access {
    thread: ThreadId,
    /// How many events the thread had had by then, and how many children.
    steps: u32,
    children: u32,
    changes: bool,
    at: &'static Location<'static>,
}

#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) thread: ThreadId,
    pub(crate) way: Way,
    pub(crate) operation: Operation,
    /// The how manyeth of its thread it is.
    pub(crate) index: u32,
    pub(crate) row: Row,
    /// What the object was before it, where that is kept.
    pub(crate) before: Model,
    /// How many objects there were before it.
    pub(crate) objects: u32,
    /// Whether it may have changed the object.
    pub(crate) changes: bool,
    /// What its thread had gone round on, if it went on only because one of these changed: how often each had by then.
    pub(crate) went_round_on: Option<Rc<[(ObjectId, u32)]>>,
}

impl State {
    fn new(fruitless_turns: u32) -> Self {
        Self {
            threads: Vec::new(),
            order: Vec::new(),
            objects: Vec::new(),
            events: Vec::new(),
            clocks: Clocks::new(),
            failure: None,
            fruitless_turns,
            went_round: false,
            time_passes: false,
            newborn: None,
            statics: HashMap::new(),
            keeps_models: true,
            spare_lists: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.threads.clear();
        self.order.clear();
        let lists = self.objects.drain(..).map(|object| object.events);
        self.spare_lists.extend(lists);
        self.events.clear();
        self.clocks.clear();
        self.failure = None;
        self.went_round = false;
        self.time_passes = false;
        self.newborn = None;
        self.statics.clear();
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

    /// Where a thread did its last operation.
    fn last_place(&self, thread: ThreadId) -> Option<&'static Location<'static>> {
        let mut events = self.events.iter().rev();
        let last = events.find(|event| event.thread == thread)?;
        Some(last.operation.at)
    }

    /// Whether a thread comes after another one's access: it knows of a later event, or of a thread that was spawned later.
    fn comes_after(&self, thread: ThreadId, access: &Access) -> bool {
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

    /// How many of the objects before one were made at the same place.
    pub(crate) fn siblings_before(&self, id: ObjectId) -> usize {
        let made = self.object(id).made;
        let before = self.objects[..id.0 as usize].iter();
        before.filter(|other| other.made == made).count()
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
        let past = past.fold(0, u64::wrapping_add);
        let way = scatter(u64::from(event.index) << 32 | u64::from(event.way));
        scatter(past ^ scatter(self.thread(event.thread).hash ^ way))
    }

    /// The ways in which threads can go on. Those that go round without seeing anything new wait for the others.
    pub(super) fn enabled(&mut self, ways: &mut Vec<Way>, enabled: &mut Vec<(ThreadId, Way)>) {
        enabled.clear();
        for patience in [self.fruitless_turns, HOPELESS] {
            let mut in_vain = false;
            for &id in &self.order {
                let Some(pending) = self.thread(id).pending else {
                    continue;
                };
                if self.goes_round(id, &pending, patience) {
                    in_vain = true;
                    continue;
                }
                ways.clear();
                let model = &self.object(pending.object).model;
                model.ways(id, pending.action, ways);
                enabled.extend(ways.iter().map(|&way| (id, way)));
            }
            self.went_round |= in_vain;
            if !in_vain || !enabled.is_empty() {
                return;
            }
        }
    }

    /// Whether a thread has gone round so often and would see nothing new if it did so again.
    pub(crate) fn goes_round(&self, thread: ThreadId, pending: &Operation, turns: u32) -> bool {
        let round = &self.thread(thread).round;
        let is_head = |head: Sight| head.at == pending.at && head.object == pending.object;
        round.turns >= turns
            && round.head.is_some_and(is_head)
            && round
                .seen
                .iter()
                .all(|seen| self.object(seen.object).version == seen.version)
    }

    fn add_object(&mut self, model: Model, made: Option<&'static Location<'static>>) -> ObjectId {
        let id = ObjectId(self.objects.len() as u32);
        let mut events = self.spare_lists.pop().unwrap_or_default();
        events.clear();
        self.objects.push(Object {
            model,
            version: 0,
            rows: [None; CLASSES],
            events,
            accesses: Vec::new(),
            made,
            thread: None,
        });
        id
    }

    /// Takes note of a thread, as a child of who runs.
    fn add_thread(
        &mut self,
        id: ThreadId,
        hash: u64,
        name: Option<String>,
        row: Row,
        time: Duration,
    ) {
        let object = self.add_object(Model::thread(), None);
        self.objects[object.0 as usize].thread = Some(id);
        self.clocks.admit(id);
        let at = id.0 as usize;
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, || None);
        }
        self.threads[at] = Some(Thread {
            hash,
            name,
            object,
            pending: None,
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
            round: Round::default(),
            round_before: Round::default(),
            time,
            times: Vec::new(),
            locals: HashMap::new(),
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

    /// A thread that went round goes on because something has changed: it comes after that.
    fn follow_what_changed(
        &mut self,
        thread: ThreadId,
        operation: &Operation,
        row: Row,
    ) -> Option<Rc<[(ObjectId, u32)]>> {
        let round = &self.thread(thread).round;
        let is_head = |head: &Sight| head.at == operation.at && head.object == operation.object;
        let waits = |head: &&Sight| round.turns >= self.fruitless_turns && is_head(head);
        round.head.as_ref().filter(waits)?;
        let seen = round.seen.iter().map(|seen| (seen.object, seen.version));
        let seen: Rc<[(ObjectId, u32)]> = seen.collect();
        for &(object, version) in &*seen {
            let object = &self.objects[object.0 as usize];
            if object.version != version {
                for other in object.rows.into_iter().flatten() {
                    self.clocks.join(row, other);
                }
            }
        }
        Some(seen)
    }

    /// The last operation of the running thread turned out to have changed nothing.
    fn take_back_change(&mut self, thread: ThreadId) {
        let mut events = self.events.iter_mut().rev();
        let Some(last) = events.find(|event| event.thread == thread) else {
            return;
        };
        last.changes = false;
        let operation = last.operation;
        let known = &mut self.objects[operation.object.0 as usize];
        known.version -= 1;
        let sight = Sight {
            at: operation.at,
            object: operation.object,
            version: known.version,
        };
        let this = self.thread_mut(thread);
        std::mem::swap(&mut this.round, &mut this.round_before);
        this.round.see(sight);
    }

    /// A thread goes on with the operation that it has come to.
    pub(super) fn perform(&mut self, thread: ThreadId, way: Way) {
        let this = self.thread_mut(thread);
        let operation = this.pending.take().expect("it is enabled");
        let (index, row) = (this.steps, this.row);
        this.steps += 1;
        let event = self.events.len() as EventId;
        let Operation { object, action, .. } = operation;
        let known = &mut self.objects[object.0 as usize];
        let before = match self.keeps_models {
            true => known.model.clone(),
            false => Model::Memory,
        };
        let outcome = known.model.perform(thread, action, way, event);
        known.events.push(event);
        let looks = action.only_looks(way, outcome.answer);
        let version = known.version;
        known.version += u32::from(!looks);
        let sight = Sight {
            at: operation.at,
            object,
            version,
        };
        let row = self.clocks.after(row);
        let went_round_on = self.follow_what_changed(thread, &operation, row);
        let known = &mut self.objects[object.0 as usize];
        for rival in action.rivals(way) {
            if let Some(other) = known.rows[rival] {
                self.clocks.join(row, other);
            }
        }
        if outcome.after_closing {
            let close = Action::Close.class(0).expect("it is in one");
            if let Some(other) = known.rows[close] {
                self.clocks.join(row, other);
            }
        }
        if let Some(after) = outcome.after {
            self.clocks.join(row, self.events[after as usize].row);
        }
        self.clocks.count(row, thread);
        if let Some(class) = action.class(way) {
            known.rows[class] = Some(match known.rows[class] {
                // What commutes with its like does not come after it: both must be remembered.
                Some(other) if !action.depends(way, action, way) => {
                    let both = self.clocks.after(other);
                    self.clocks.join(both, row);
                    both
                }
                _ => row,
            });
        }
        self.events.push(Event {
            thread,
            way,
            operation,
            index,
            row,
            before,
            objects: self.objects.len() as u32,
            changes: !looks,
            went_round_on,
        });
        if self.time_passes {
            self.hear_of_time(thread, row);
        }
        let this = self.thread_mut(thread);
        match looks {
            true => this.round.see(sight),
            false => {
                std::mem::swap(&mut this.round, &mut this.round_before);
                this.round.begin();
            }
        }
        this.row = row;
        this.answer = outcome.answer;
        this.values = None;
        this.ended = action == Action::End;
    }
}

impl World {
    pub(super) fn new(setting: Setting, names: std::sync::Arc<Names>) -> Self {
        Self {
            serial: Cell::new(0),
            names,
            over: Cell::new(true),
            spoiled: Cell::new(false),
            running: Cell::new(Names::MAIN),
            floor: Cell::new(0),
            weakly_ordered: Cell::new(0),
            told: Cell::new(false),
            state: RefCell::new(State::new(setting.fruitless_turns)),
            setting,
        }
    }

    /// Begins a new execution, with `main` as its first thread.
    pub(super) fn begin(&self, main: Body) {
        static SERIALS: AtomicU32 = AtomicU32::new(1);
        self.serial.set(SERIALS.fetch_add(1, Relaxed));
        self.over.set(false);
        self.weakly_ordered.set(0);
        let mut state = self.state.borrow_mut();
        state.clear();
        let name = Some("main".to_owned());
        let hash = self.names.hash(Names::MAIN);
        state.add_thread(Names::MAIN, hash, name, Row::NOTHING, Duration::ZERO);
        state.newborn = Some((Names::MAIN, main));
    }

    pub(super) fn state(&self) -> &RefCell<State> {
        &self.state
    }

    pub(super) fn set_running(&self, thread: ThreadId) {
        self.running.set(thread);
    }

    /// The thread that runs.
    pub(crate) fn running(&self) -> ThreadId {
        self.running.get()
    }

    /// From here on primitives do nothing, and threads are taken apart.
    pub(super) fn end(&self) {
        self.over.set(true);
    }

    /// Whether the thread of the operating system can run no further execution.
    pub(super) fn is_spoiled(&self) -> bool {
        self.spoiled.get()
    }

    /// Whether the execution is over, and primitives do nothing.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// The object behind a handle, which is `model` at first.
    fn object(&self, handle: &Handle, model: impl FnOnce() -> Model) -> ObjectId {
        let key = handle.key.load(Relaxed);
        if (key >> 32) as u32 == self.serial.get() {
            return ObjectId(key as u32);
        }
        let place = ptr::from_ref(handle) as usize;
        if statics::holds(place) {
            if key == OUTSIDE {
                self.refuse(format!(
                    "the static made at {} was used before the check; use it only inside",
                    handle.made
                ));
            }
            let state = &mut *self.state.borrow_mut();
            let known = state.statics.get(&place).and_then(|known| known.object);
            return known.unwrap_or_else(|| {
                let object = state.add_object(model(), Some(handle.made));
                state.statics.entry(place).or_default().object = Some(object);
                object
            });
        }
        if key != FRESH {
            self.refuse_older(handle.made);
        }
        let object = self
            .state
            .borrow_mut()
            .add_object(model(), Some(handle.made));
        let key = u64::from(self.serial.get()) << 32 | u64::from(object.0);
        handle.key.store(key, Relaxed);
        object
    }

    /// The running thread comes to data that nothing guards. It fails when another does so, one of them changes it, and
    /// nothing orders the one before the other.
    pub(crate) fn access(
        &self,
        handle: &Handle,
        model: impl FnOnce() -> Model,
        changes: bool,
        at: &'static Location<'static>,
    ) {
        if self.over.get() {
            return;
        }
        let object = self.object(handle, model);
        let me = self.running.get();
        let raced = {
            let state = &mut *self.state.borrow_mut();
            let this = Access {
                thread: me,
                steps: state.thread(me).steps,
                children: state.thread(me).children,
                changes,
                at,
            };
            let unordered = |other: &&Access| {
                other.thread != me && (changes || other.changes) && !state.comes_after(me, other)
            };
            let accesses = &state.objects[object.0 as usize].accesses;
            let raced = accesses.iter().find(unordered).copied();
            let accesses = &mut state.objects[object.0 as usize].accesses;
            if changes {
                accesses.clear();
            }
            accesses.retain(|other| other.changes || other.thread != me);
            accesses.push(this);
            raced
        };
        if let Some(other) = raced {
            let does = |changes| if changes { "changes" } else { "reads" };
            let message = format!(
                "data race: {} {} what {} {} at {}, and nothing orders the one before the other",
                self.names.of(me),
                does(changes),
                self.names.of(other.thread),
                does(other.changes),
                other.at
            );
            let at = Some(at.to_string());
            self.fail(Failure::new(FailureKind::Fault, message, at));
            self.leave_if_over();
        }
    }

    /// Where the data of an object is: in its place, or for a static in a copy that belongs to the execution.
    pub(crate) fn place<T: ?Sized>(&self, handle: &Handle, data: *mut T) -> *mut T {
        let place = ptr::from_ref(handle) as usize;
        if (handle.key.load(Relaxed) >> 32) as u32 == self.serial.get() || !statics::holds(place) {
            return data;
        }
        let mut state = self.state.borrow_mut();
        let known = state.statics.entry(place).or_default();
        let copy = known.copy.get_or_insert_with(|| statics::Copy::of(data));
        copy.place(data)
    }

    /// The running thread does something to an object that others can notice, and goes on when it is its turn. `None`
    /// when the execution is over.
    #[inline]
    pub(crate) fn operate(
        &self,
        handle: &Handle,
        model: impl FnOnce() -> Model,
        action: Action,
        at: &'static Location<'static>,
    ) -> Option<u32> {
        if self.over.get() {
            self.leave_if_over();
            return None;
        }
        let object = self.object(handle, model);
        self.operate_on(object, action, at)
    }

    /// The same for the running thread itself.
    pub(crate) fn operate_on_self(
        &self,
        action: Action,
        at: &'static Location<'static>,
    ) -> Option<u32> {
        self.operate_on(self.object_of(self.running()), action, at)
    }

    /// The same for a known object.
    pub(crate) fn operate_on(
        &self,
        object: ObjectId,
        action: Action,
        at: &'static Location<'static>,
    ) -> Option<u32> {
        if self.over.get() {
            self.leave_if_over();
            return None;
        }
        let me = self.running.get();
        let here = 0_u8;
        if (&raw const here as usize) < self.floor.get() + HEADROOM {
            // To overflow it in here would leave what is shared in the middle of a change.
            self.fail_trapped(me, Trapped::Overflow);
            self.leave_if_over();
            return None;
        }
        {
            let mut state = self.state.borrow_mut();
            state.thread_mut(me).pending = Some(Operation { object, action, at });
        }
        self.suspend(me);
        if self.over.get() {
            self.leave_if_over();
            return None;
        }
        Some(self.state.borrow().thread(me).answer)
    }

    /// Whether the running thread unwinds, when somebody does. That is all that is known outside: a thread that stands
    /// still in the middle of a panic counts as if it were the one that runs.
    fn is_running_panicking(&self) -> bool {
        let me = self.running.get();
        let state = self.state.borrow();
        let mut others = state.order.iter().filter(|&&other| other != me);
        match others.any(|&other| state.thread(other).panicking) {
            true => state.thread(me).panicking,
            false => true,
        }
    }

    /// Lets the executor go on, until it is the thread's turn again.
    fn suspend(&self, me: ThreadId) {
        let panicking = is_panicking();
        let yielder = {
            let mut state = self.state.borrow_mut();
            let this = state.thread_mut(me);
            this.panicking = panicking;
            this.yielder
        };
        // SAFETY: the thread runs, so the coroutine whose yielder this is runs on the present stack.
        unsafe { (*yielder).suspend(()) };
        self.running.set(me);
    }

    /// In an execution that is over, takes the running thread out of it, unless it is on its way.
    fn leave_if_over(&self) {
        let me = self.running.get();
        let told = {
            let mut state = self.state.borrow_mut();
            let this = state.thread_mut(me);
            this.told += 1;
            this.told
        };
        if told > PATIENCE {
            // It catches whatever it is told, or never comes to an end: it is left where it is.
            self.spoiled.set(std::thread::panicking());
            self.suspend(me);
        }
        if !is_panicking() {
            note_panic();
            panic::resume_unwind(Box::new(Over));
        }
    }

    /// In an execution that is over, leaves the running thread where it is, for want of anything that it could be told.
    pub(crate) fn stay(&self) -> ! {
        loop {
            self.suspend(self.running.get());
        }
    }

    /// Ends the execution because it uses something that was made before it.
    pub(crate) fn refuse_older(&self, made: &'static Location<'static>) -> ! {
        self.refuse(format!(
            "what was made at {made} is older than the execution; make it inside"
        ))
    }

    /// Ends the execution because it cannot be judged.
    pub(crate) fn refuse(&self, why: String) -> ! {
        self.fail(Failure::new(FailureKind::Nondeterminism, why, None));
        note_panic();
        panic::resume_unwind(Box::new(Over));
    }

    /// Ends the execution with a failure, unless it has failed already.
    pub(crate) fn fail(&self, failure: Failure) {
        let mut state = self.state.borrow_mut();
        state.failure.get_or_insert(failure);
        self.over.set(true);
    }

    /// A thread was taken out of the execution because it could not go on.
    pub(super) fn fail_trapped(&self, thread: ThreadId, trapped: Trapped) {
        let who = self.names.of(thread);
        let last = self.state.borrow().last_place(thread);
        let message = match trapped {
            Trapped::Aborted => format!("{who} panicked while it unwound"),
            Trapped::Overflow => {
                let size = self.setting.stack_bytes >> 10;
                format!(
                    "{who} overflowed its stack of {size} KiB; `Threads::stack_size` gives it more"
                )
            }
            Trapped::Blocked => {
                // Whatever it blocked on may still have this thread of the operating system among those who wait.
                self.spoiled.set(true);
                let patience = self.setting.patience;
                format!(
                    "{who} has done nothing for {patience:?} that Dragnet sees: does it wait for something real, such as a \
                     lock or a socket of `std`, or compute for long? `Threads::patience` gives it more time"
                )
            }
        };
        let last = last.map(|at| format!("after {at}"));
        self.fail(Failure::new(FailureKind::Fault, message, last));
    }

    /// A new thread, a child of the running one. It runs up to its first operation at once: nobody can notice that.
    pub(crate) fn spawn(&self, name: Option<String>, body: Body) -> ThreadId {
        let me = self.running.get();
        let child = {
            let mut state = self.state.borrow_mut();
            let this = state.thread_mut(me);
            let which = this.children;
            let (child, hash) = self.names.child(me, which, name.as_deref());
            this.children += 1;
            let (row, time) = (this.row, this.time);
            state.add_thread(child, hash, name, row, time);
            state.thread_mut(child).parent = Some((me, which));
            state.newborn = Some((child, body));
            child
        };
        self.suspend(me);
        child
    }

    /// What a thread does, from its first to its last step.
    pub(super) fn live(&self, me: ThreadId, yielder: &Yielder<(), ()>, body: Body) {
        self.state.borrow_mut().thread_mut(me).yielder = yielder;
        self.running.set(me);
        let lived = panic::catch_unwind(AssertUnwindSafe(body));
        if let Err(payload) = lived
            && !payload.is::<Over>()
            && (me == Names::MAIN || !self.setting.panics_are_fine)
        {
            self.fail(panics::failure(payload));
        }
        self.state.borrow_mut().thread_mut(me).panicking = false;
        self.forget_locals(me);
        if !self.over.get() {
            let object = self.state.borrow().thread(me).object;
            // The end of a thread is told to who joins it, and nobody unwinds out of it.
            let told = panic::catch_unwind(AssertUnwindSafe(|| {
                self.operate_on(object, Action::End, Location::caller());
            }));
            drop(told);
        }
    }

    /// Drops the running thread's own copies of thread-local values, in no particular order.
    fn forget_locals(&self, me: ThreadId) {
        loop {
            let locals = std::mem::take(&mut self.state.borrow_mut().thread_mut(me).locals);
            if locals.is_empty() {
                return;
            }
            for value in locals.into_values() {
                let dropped = panic::catch_unwind(AssertUnwindSafe(|| drop(value)));
                if let Err(payload) = dropped
                    && !payload.is::<Over>()
                {
                    self.fail(panics::failure(payload));
                }
            }
        }
    }

    /// The object that is a thread.
    pub(crate) fn object_of(&self, thread: ThreadId) -> ObjectId {
        self.state.borrow().thread(thread).object
    }

    /// How often threads may wake up for no reason at one condition variable.
    pub(crate) fn spurious_wakeups(&self) -> u32 {
        self.setting.spurious_wakeups
    }

    /// What a thread calls itself.
    pub(crate) fn name_of(&self, thread: ThreadId) -> Option<String> {
        self.state.borrow().thread(thread).name.clone()
    }

    /// A channel has a sender more, which nobody can notice.
    pub(crate) fn add_sender(&self, handle: &Handle, model: impl FnOnce() -> Model) {
        if !self.over.get() {
            let object = self.object(handle, model);
            let mut state = self.state.borrow_mut();
            state.objects[object.0 as usize].model.add_sender();
        }
    }

    /// The last operation of the running thread, which could have changed something, did not.
    pub(crate) fn changed_nothing(&self) {
        if !self.over.get() {
            let thread = self.running.get();
            self.state.borrow_mut().take_back_change(thread);
        }
    }

    /// Whether executions are told to a person, who wants to know values.
    #[inline]
    pub(crate) fn is_told(&self) -> bool {
        self.told.get()
    }

    pub(super) fn set_floor(&self, floor: usize) {
        self.floor.set(floor);
    }

    pub(super) fn set_told(&self, told: bool) {
        self.told.set(told);
    }

    /// Takes note of what a value was before the last operation of the running thread, and after it.
    pub(crate) fn tell(&self, before: String, after: String) {
        let mut state = self.state.borrow_mut();
        state.thread_mut(self.running.get()).values = Some((before, after));
    }

    /// Takes note of an operation on an atomic value that asked for a weaker ordering than it gets.
    pub(crate) fn add_weakly_ordered(&self) {
        if !self.over.get() {
            self.weakly_ordered.set(self.weakly_ordered.get() + 1);
        }
    }

    /// How many operations were judged as if they were sequentially consistent, and had not asked for it.
    pub(crate) fn weakly_ordered(&self) -> u64 {
        self.weakly_ordered.get()
    }

    /// The running thread's own value under a key, if it has one.
    pub(crate) fn local(&self, key: usize) -> Option<*const dyn Any> {
        let state = self.state.borrow();
        let value = state.thread(self.running.get()).locals.get(&key)?;
        Some(&raw const **value)
    }

    /// Gives the running thread a value of its own.
    pub(crate) fn set_local(&self, key: usize, value: Box<dyn Any>) {
        let mut state = self.state.borrow_mut();
        state
            .thread_mut(self.running.get())
            .locals
            .insert(key, value);
    }

    /// The time as the running thread knows it.
    pub(crate) fn time(&self) -> Duration {
        self.state.borrow().thread(self.running.get()).time
    }

    /// Time passes for the running thread.
    pub(crate) fn pass(&self, time: Duration) {
        let mut state = self.state.borrow_mut();
        state.time_passes = true;
        let this = state.thread_mut(self.running.get());
        this.time = this.time.saturating_add(time);
    }
}
