//! Data races on checked cells, and whether an `Arc` of `std` can have ordered the two accesses.
//!
//! Two accesses of different threads, one of which writes, are a data race unless one [happens before](super::happens_before)
//! the other. The reference counts of `std` are invisible here: the drop of an `Arc` releases, and the destructor that the last
//! drop runs, or a successful `get_mut` or `try_unwrap`, acquires. So two accesses that the clocks leave unordered are only
//! suspected. A suspicion is settled by a directed execution that repeats the events of the first one, but holds the thread of
//! the first access right before it and leaves out all events behind it:
//!
//! - Accesses that are unordered even by the sequentially consistent order are a race where both threads come to stand
//!   right before their accesses at once. Where the second access depends on a drop behind the first, its thread does not come
//!   there.
//! - Accesses that only relaxed operations order cannot come in the other order. In the directed execution each atomic
//!   operation finds the value that it found before, and each attempt that failed fails again, as if the operations behind the first access had been done, while its
//!   thread has not dropped anything. Where the second thread comes to its access nevertheless, no `Arc` has led it there, and
//!   this is a race. Where it does not, an `Arc` may have, and the verdict warns of it. The same where a value would have
//!   to be put in place that may be an address, which is another one in each execution.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::panic::Location;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use super::clocks::Row;
use super::executor::Executor;
use super::handle::Handle;
use super::model::{EventId, Model};
use super::operation::{Action, ObjectId, Operation, ThreadId, Way};
use super::state::State;
use super::world::World;
use crate::system::{Failure, FailureKind};
use crate::trace::{GOLDEN, scatter};

/// A thread has come to data that nothing guards.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) thread: ThreadId,
    /// Its index among the accesses of its thread.
    number: u32,
    /// How many events the thread had had by then, and how many children.
    pub(super) steps: u32,
    pub(super) children: u32,
    /// The thread's clock by then, and its own component.
    clock: Row,
    time: u32,
    changes: bool,
    at: &'static Location<'static>,
}

impl Access {
    fn does(&self) -> &'static str {
        if self.changes { "changes" } else { "reads" }
    }
}

/// Two accesses that may be a data race.
pub(super) struct Suspicion {
    key: u128,
    first: Access,
    second: Access,
    unordered_by: UnorderedBy,
}

/// What leaves two accesses unordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnorderedBy {
    /// Also the order of a sequentially consistent execution.
    Everything,
    /// Happens-before alone: operations order them that do not synchronise.
    HappensBefore,
}

/// What a suspicion came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    Race,
    /// Something that is not seen orders them.
    Ordered,
    /// Something that is not seen may order them.
    Undecided,
}

/// What is known of the data races of a program.
#[derive(Default)]
pub(crate) struct DataRaces {
    /// Whether executions are followed by happens-before clocks: the program has come to a checked cell.
    follows: AtomicBool,
    /// Suspicions by the decisions that led to them.
    settled: Mutex<HashMap<u128, Settled>>,
    warnings: Mutex<BTreeSet<String>>,
}

/// Suspicions are forgotten where there are more than so many: they are settled again then.
const MOST_SETTLED: usize = 1 << 20;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DataRaces {
    pub(super) fn follows(&self) -> bool {
        self.follows.load(Relaxed)
    }

    fn settled(&self, key: u128) -> Option<Settled> {
        lock(&self.settled).get(&key).copied()
    }

    fn settle(&self, key: u128, settled: Settled) {
        let mut known = lock(&self.settled);
        if known.len() >= MOST_SETTLED {
            known.clear();
        }
        known.insert(key, settled);
    }

    /// The pairs of accesses that are data races unless an `Arc` of `std` orders them.
    pub(crate) fn warnings(&self) -> Vec<String> {
        lock(&self.warnings).iter().cloned().collect()
    }
}

/// What is made of accesses to checked cells.
#[derive(Clone, Copy, Default)]
pub(super) enum Scrutiny {
    /// They are judged.
    #[default]
    Judge,
    /// Nothing.
    Ignore,
    /// Two threads are held right before their accesses.
    Hold(Held),
}

/// How many steps a thread is followed whose steps are not those of the execution in which it came to an access.
const MOST_STEPS_ALONE: usize = 1_000;

/// Which threads a directed execution holds.
///
/// The first is held right before its access. The execution is the same as the other up to there, so the access is known by its
/// index. The second may come there by another path, with more or fewer accesses on it: it is held where it comes to the very
/// object before which the first stands.
#[derive(Clone, Copy)]
pub(super) struct Held {
    first: (ThreadId, u32),
    second: ThreadId,
    first_changes: bool,
    /// Values are put in place of those that a real execution has, so that only the very access proves something: its place,
    /// and whether it changes the object.
    only: Option<(bool, &'static Location<'static>)>,
}

impl Held {
    /// Whether the second thread is to be held before this access to the object that the first stands before.
    fn holds_second(&self, changes: bool, at: &'static Location<'static>) -> bool {
        match self.only {
            Some(only) => only == (changes, at),
            None => changes || self.first_changes,
        }
    }
}

impl State {
    /// A number for two accesses of this execution, behind the decisions that have been taken.
    fn key(&self, first: &Access, second: &Access) -> u128 {
        let accesses = [first, second].map(|access| (access.thread.0, access.number));
        let decisions = self.events.iter().map(|event| (event.thread.0, event.way));
        let parts = accesses.into_iter().chain(decisions);
        let halves = [0, GOLDEN].map(|seed| {
            parts.clone().fold(seed, |hash, (thread, number)| {
                let part = u64::from(thread) << 32 | u64::from(number);
                scatter(hash.rotate_left(7).wrapping_mul(GOLDEN) ^ scatter(seed ^ part))
            })
        });
        u128::from(halves[0]) << 64 | u128::from(halves[1])
    }

    /// Whether a thread knows by something that is not seen that an access comes before.
    fn has_learnt_of(&self, thread: ThreadId, access: &Access) -> bool {
        let mut learnt = self.learnt_of.iter();
        learnt.any(|&(who, of, number)| {
            (who, of) == (thread, access.thread) && number >= access.number
        })
    }

    /// What leaves an access unordered before what a thread does now, if something does.
    fn unordered(&mut self, thread: ThreadId, access: &Access) -> Option<UnorderedBy> {
        let knows = self
            .happens_before
            .knows(thread, access.thread, access.time);
        if knows || self.has_learnt_of(thread, access) {
            return None;
        }
        Some(match self.comes_after(thread, access) {
            true => UnorderedBy::HappensBefore,
            false => UnorderedBy::Everything,
        })
    }

    /// Takes note of an access to an object.
    fn note_access(&mut self, object: usize, this: Access) {
        let accesses = &mut self.objects[object].accesses;
        if this.changes {
            accesses.clear();
        }
        accesses.retain(|other| other.changes || other.thread != this.thread);
        accesses.push(this);
    }

    fn new_access(
        &mut self,
        thread: ThreadId,
        changes: bool,
        at: &'static Location<'static>,
    ) -> Access {
        let clock = self.happens_before.now(thread);
        let time = self.happens_before.time(thread);
        let this = self.thread_mut(thread);
        let number = this.accesses;
        this.accesses += 1;
        Access {
            thread,
            number,
            steps: this.steps,
            children: this.children,
            clock,
            time,
            changes,
            at,
        }
    }
}

impl World {
    /// The running thread comes to data that nothing guards. It fails when another does so, one of them changes it, and
    /// nothing orders the one before the other.
    pub(crate) fn access(&self, handle: &Handle, changes: bool, at: &'static Location<'static>) {
        if self.is_over() {
            return;
        }
        let object = self.object(handle, || Model::Memory);
        self.share(object, handle);
        self.note_in_destructor();
        let object = object.0 as usize;
        let me = self.running();
        let mut state = self.state().borrow_mut();
        match self.scrutiny() {
            Scrutiny::Ignore => {
                state.thread_mut(me).accesses += 1;
                return;
            }
            Scrutiny::Hold(held) => {
                let number = state.thread(me).accesses;
                state.thread_mut(me).accesses += 1;
                let holds = match state.held_before {
                    None => held.first == (me, number),
                    Some(before) => {
                        held.second == me
                            && before == object
                            && !state.both_held
                            && held.holds_second(changes, at)
                    }
                };
                if holds {
                    state.both_held = state.held_before.replace(object).is_some();
                    drop(state);
                    self.suspend(me);
                    self.leave_if_over();
                }
                return;
            }
            Scrutiny::Judge if !state.follows_races => {
                // The execution is run again with clocks from its beginning.
                self.data_races().follows.store(true, Relaxed);
                state.must_follow = true;
                drop(state);
                self.end();
                self.leave_if_over();
                return;
            }
            Scrutiny::Judge => {}
        }
        let mut this = state.new_access(me, changes, at);
        for which in 0..state.objects[object].accesses.len() {
            let other = state.objects[object].accesses[which];
            if other.thread == me || !changes && !other.changes {
                continue;
            }
            let Some(unordered_by) = state.unordered(me, &other) else {
                continue;
            };
            let key = state.key(&other, &this);
            let settled = match self.setting.without_std_arcs {
                true => Some(Settled::Race),
                false => self.data_races().settled(key),
            };
            match settled {
                Some(Settled::Race) => {
                    drop(state);
                    self.fail_raced(&other, &this, unordered_by);
                    self.leave_if_over();
                    return;
                }
                Some(Settled::Ordered) => {
                    state.learnt_of.push((me, other.thread, other.number));
                    state.happens_before.come_after(me, other.clock);
                    this.clock = state.happens_before.now(me);
                    this.time = state.happens_before.time(me);
                }
                Some(Settled::Undecided) => {}
                None => {
                    state.suspicion = Some(Box::new(Suspicion {
                        key,
                        first: other,
                        second: this,
                        unordered_by,
                    }));
                    drop(state);
                    self.end();
                    self.leave_if_over();
                    return;
                }
            }
        }
        state.note_access(object, this);
    }

    /// The running thread comes to something of Dragnet's own that nothing guards. Says so if another does, one of them
    /// changes it, and nothing orders the one before the other.
    pub(super) fn come_to(
        &self,
        handle: &Handle,
        changes: bool,
        at: &'static Location<'static>,
    ) -> Option<String> {
        if self.is_over() {
            return None;
        }
        let object = self.object(handle, || Model::Memory);
        self.share(object, handle);
        let object = object.0 as usize;
        let me = self.running();
        let state = &mut *self.state().borrow_mut();
        let this = state.new_access(me, changes, at);
        let unordered = |other: &&Access| {
            other.thread != me && (changes || other.changes) && !state.comes_after(me, other)
        };
        let raced = state.objects[object].accesses.iter().find(unordered);
        let raced = raced.copied();
        state.note_access(object, this);
        raced.map(|other| self.describe_race(&other, &this, UnorderedBy::Everything))
    }

    fn describe_race(&self, first: &Access, second: &Access, unordered_by: UnorderedBy) -> String {
        let nothing = match unordered_by {
            UnorderedBy::Everything => "nothing orders the one before the other",
            UnorderedBy::HappensBefore => {
                "nothing that releases and acquires orders the one before the other (memory orderings too weak?)"
            }
        };
        format!(
            "{} {} what {} {} at {}, and {nothing}",
            self.names().of(second.thread),
            second.does(),
            self.names().of(first.thread),
            first.does(),
            first.at
        )
    }

    fn fail_raced(&self, first: &Access, second: &Access, unordered_by: UnorderedBy) {
        let raced = self.describe_race(first, second, unordered_by);
        let message = format!("data race: {raced}");
        let at = Some(second.at.to_string());
        self.fail(Failure::new(FailureKind::Fault, message, at));
    }

    /// The accesses of a suspicion as a warning.
    fn warning(&self, suspicion: &Suspicion) -> String {
        let Suspicion { first, second, .. } = suspicion;
        format!(
            "{} at {} {} what {} {} at {}: a data race, unless an `Arc` of `std` orders the one before the other \
             (a `dragnet::arc::Arc` would be seen; `Threads::without_std_arcs` says that none of `std` does)",
            self.names().of(second.thread),
            second.at,
            second.does(),
            self.names().of(first.thread),
            first.does(),
            first.at
        )
    }
}

/// An event that is repeated to settle a suspicion.
struct Repeated {
    thread: ThreadId,
    way: Way,
    operation: Operation,
    /// What comes before it, by thread, and itself.
    clock: Vec<u32>,
    /// What it found, if it is to find that again.
    value: Option<u64>,
    /// What its thread was told, if it is to be told that again.
    answer: Option<u32>,
}

impl Repeated {
    /// The atomic value that it may write.
    fn written(&self) -> Option<ObjectId> {
        let writes = self.value.is_some() && self.operation.action != Action::Load;
        writes.then_some(self.operation.object)
    }

    fn all(state: &State, unordered_by: UnorderedBy) -> Vec<Self> {
        let events = (0..).zip(&state.events);
        let repeated = events.map(|(id, event): (EventId, _)| {
            let happens_before = &state.happens_before;
            let is_forced = unordered_by == UnorderedBy::HappensBefore;
            let clock = match is_forced {
                true => happens_before.clock(id),
                false => state.clocks.row(event.row),
            };
            let answer = happens_before.answer(id);
            let is_told = is_forced && event.operation.action.only_asks(answer);
            Self {
                thread: event.thread,
                way: event.way,
                operation: event.operation,
                clock: clock.to_vec(),
                value: happens_before.value(id).filter(|_| is_forced),
                answer: is_told.then_some(answer),
            }
        });
        repeated.collect()
    }
}

impl Executor {
    /// Finds out whether two accesses of the last execution are a data race.
    pub(super) fn settle(&mut self, suspicion: &Suspicion) {
        let unordered_by = suspicion.unordered_by;
        let repeated = Repeated::all(&self.state(), unordered_by);
        let settled = match (self.can_hold_both(suspicion, &repeated), unordered_by) {
            (true, _) => Settled::Race,
            (false, UnorderedBy::Everything) => Settled::Ordered,
            (false, UnorderedBy::HappensBefore) => Settled::Undecided,
        };
        let races = self.world().data_races();
        if settled == Settled::Undecided {
            lock(&races.warnings).insert(self.world().warning(suspicion));
        }
        races.settle(suspicion.key, settled);
    }

    /// Whether both threads come to stand right before their accesses at once, in an execution of the same events but for
    /// those behind the first access.
    fn can_hold_both(&mut self, suspicion: &Suspicion, repeated: &[Repeated]) -> bool {
        let Suspicion { first, second, .. } = suspicion;
        let is_forced = suspicion.unordered_by == UnorderedBy::HappensBefore;
        self.world().set_scrutiny(Scrutiny::Hold(Held {
            first: (first.thread, first.number),
            second: second.thread,
            first_changes: first.changes,
            only: is_forced.then_some((second.changes, second.at)),
        }));
        // From which of its events on the events of a thread are left out, and what comes after them.
        let mut left_out: HashMap<ThreadId, u32> = HashMap::new();
        left_out.insert(
            first.thread,
            match is_forced {
                true => first.time + 1,
                false => first.steps + 1,
            },
        );
        // Atomic values that would be others if nothing were left out.
        let mut stale: HashSet<ObjectId> = HashSet::new();
        self.begin();
        for event in repeated {
            let count = |thread: &ThreadId| event.clock.get(thread.0 as usize).copied();
            let mut left = left_out.iter();
            if left.any(|(thread, &from)| count(thread).unwrap_or_default() >= from) {
                stale.extend(event.written());
                continue;
            }
            let mut state = self.world().state().borrow_mut();
            if state.failure.is_some() || state.both_held {
                break;
            }
            if !state.repeats(event.thread, &event.operation, event.way) {
                // What it does now depends on something that is not seen.
                let from = count(&event.thread).unwrap_or_default();
                left_out.insert(event.thread, from);
                stale.extend(event.written());
                continue;
            }
            match event.answer {
                Some(answer) => state.perform_as(event.thread, event.way, answer),
                None => state.perform(event.thread, event.way),
            }
            drop(state);
            let is_stale = stale.remove(&event.operation.object);
            let reads = event.operation.action != Action::Store;
            self.world()
                .force(event.value.filter(|_| is_stale && reads));
            self.go_on(event.thread);
            self.world().force(None);
        }
        if !is_forced {
            self.go_on_to_access(second.thread);
        }
        let state = self.world().state().borrow();
        let stand_there = state.both_held && state.failure.is_none();
        drop(state);
        if is_forced {
            // Destructors would find values that others rely on and nobody has written.
            self.abandon();
        }
        self.take_apart();
        self.world().set_scrutiny(Scrutiny::Judge);
        stand_there
    }
}

impl Executor {
    /// Has the second of two threads run on alone until it is held before an access, where the first is held already. What it
    /// did before may depend on what is left out, as when it is not the last owner of an `Arc` of `std` any more.
    fn go_on_to_access(&mut self, thread: ThreadId) {
        for _ in 0..MOST_STEPS_ALONE {
            let mut state = self.world().state().borrow_mut();
            let is_wanted = state.held_before.is_some() && !state.both_held;
            if state.failure.is_some() || !is_wanted || self.world().is_over() {
                return;
            }
            let Some(way) = state.same_way(thread) else {
                return;
            };
            state.perform(thread, way);
            drop(state);
            self.go_on(thread);
        }
    }
}

/// Whether a value may be an address, which means nothing in another execution.
pub(super) fn may_be_address(value: u64) -> bool {
    // Nothing is mapped there, and tags of pointers are above.
    const LOWEST: u64 = 1 << 16;
    const BITS: u32 = 48;
    let address = value & ((1 << BITS) - 1);
    address >= LOWEST && is_mapped(address)
}

#[cfg(target_os = "linux")]
fn is_mapped(address: u64) -> bool {
    const PAGE: usize = 4096;
    let page = address as usize & !(PAGE - 1);
    // SAFETY: it fails where nothing is mapped, and writes nothing.
    let failed = unsafe { libc::msync(page as *mut _, PAGE, libc::MS_ASYNC) } != 0;
    !failed || std::io::Error::last_os_error().raw_os_error() != Some(libc::ENOMEM)
}

#[cfg(not(target_os = "linux"))]
fn is_mapped(_address: u64) -> bool {
    true
}
