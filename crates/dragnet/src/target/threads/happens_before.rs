//! Happens-before as C11 and C++20 define it, for data races alone.
//!
//! Executions are sequentially consistent, and [`State`](super::state::State) orders any two events that do not commute:
//! that is what exploration is about. Whether two accesses to plain memory are a data race is another question. It is
//! decided by *happens-before*: sequenced-before, and synchronizes-with between a release and an acquire that reads from its
//! release sequence (the store itself and the read-modify-writes that follow it without another store between), with fences
//! on either side. A `Relaxed` operation orders nothing by itself.
//!
//! The clocks are vector clocks with a component for each thread, which counts its events, its fences and the threads that
//! it has spawned. They follow an execution only once the program has come to a checked cell.
//!
//! Synchronisation other than atomics orders what `std` guarantees, and not all that one of its implementations orders
//! besides. Readers of a read-write lock do not synchronise with each other: they do where a reader acquires a word of state
//! that other readers have released, as on Linux, but no documentation promises it. In the same way `Arc::downgrade`
//! acquires nothing. A notification of a condition variable synchronises with nobody (its mutex does), and `is_finished` is
//! a relaxed look.

use std::sync::atomic::Ordering;

use super::clocks::{Clocks, Row};
use super::model::{EventId, Model, Outcome};
use super::operation::{Action, Counted, ObjectId, ThreadId};

/// The vector clocks of an execution.
pub(super) struct HappensBefore {
    clocks: Clocks,
    threads: Vec<ThreadClocks>,
    objects: Vec<ObjectClocks>,
    events: Vec<Behind>,
}

/// What is known behind an event.
#[derive(Clone, Copy)]
struct Behind {
    clock: Row,
    /// What its thread was told.
    answer: u32,
    /// What it found, if it was on an atomic value.
    value: Option<u64>,
}

#[derive(Clone, Copy)]
struct ThreadClocks {
    now: Row,
    /// Release sequences that were read by relaxed operations: an acquire fence synchronises with them.
    read: Row,
    /// Its last release fence, with which relaxed stores synchronise.
    fence: Row,
}

#[derive(Clone, Copy)]
struct ObjectClocks {
    /// An acquire synchronises with these: the release sequence of an atomic value, the last writers of a lock.
    released: Row,
    /// The readers of a read-write lock, the receiver of a channel that has gone, and the drops of weak references.
    readers: Row,
}

/// An operation on an atomic value, as it came out: a failed compare-exchange is a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomic {
    Load(Ordering),
    Store(Ordering),
    Modify(Ordering),
}

impl Atomic {
    fn order(self) -> Ordering {
        let (Self::Load(order) | Self::Store(order) | Self::Modify(order)) = self;
        order
    }
}

fn acquires(order: Ordering) -> bool {
    matches!(
        order,
        Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst
    )
}

fn releases(order: Ordering) -> bool {
    matches!(
        order,
        Ordering::Release | Ordering::AcqRel | Ordering::SeqCst
    )
}

impl ThreadClocks {
    const NEW: Self = Self {
        now: Row::NOTHING,
        read: Row::NOTHING,
        fence: Row::NOTHING,
    };
}

impl ObjectClocks {
    const NEW: Self = Self {
        released: Row::NOTHING,
        readers: Row::NOTHING,
    };
}

impl HappensBefore {
    pub(super) fn new() -> Self {
        Self {
            clocks: Clocks::new(),
            threads: Vec::new(),
            objects: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Forgets an execution.
    pub(super) fn clear(&mut self) {
        self.clocks.clear();
        self.threads.clear();
        self.objects.clear();
        self.events.clear();
    }

    /// Makes room for a thread.
    fn thread(&mut self, thread: ThreadId) -> &mut ThreadClocks {
        let at = thread.0 as usize;
        if self.threads.len() <= at {
            self.threads.resize(at + 1, ThreadClocks::NEW);
            self.clocks.admit(thread);
        }
        &mut self.threads[at]
    }

    fn object(&mut self, object: ObjectId) -> &mut ObjectClocks {
        let at = object.0 as usize;
        if self.objects.len() <= at {
            self.objects.resize(at + 1, ObjectClocks::NEW);
        }
        &mut self.objects[at]
    }

    /// The time of a thread. What it does before its next event, fence or spawn has this time.
    pub(super) fn time(&mut self, thread: ThreadId) -> u32 {
        let now = self.thread(thread).now;
        self.clocks.of(now, thread)
    }

    /// Whether all that another thread did at a time happens before what a thread does now.
    pub(super) fn knows(&mut self, thread: ThreadId, other: ThreadId, time: u32) -> bool {
        self.thread(other);
        let now = self.thread(thread).now;
        self.clocks.of(now, other) > time
    }

    /// The clock of a thread behind an event.
    pub(super) fn clock(&self, event: EventId) -> &[u32] {
        self.clocks.row(self.events[event as usize].clock)
    }

    /// The value that an event found, if it was on an atomic value.
    pub(super) fn value(&self, event: EventId) -> Option<u64> {
        self.events[event as usize].value
    }

    /// What the thread of an event was told.
    pub(super) fn answer(&self, event: EventId) -> u32 {
        self.events[event as usize].answer
    }

    /// What a thread has come to so far.
    pub(super) fn now(&mut self, thread: ThreadId) -> Row {
        self.thread(thread).now
    }

    /// All that happens before a clock turned out to come before what a thread does now.
    pub(super) fn come_after(&mut self, thread: ThreadId, clock: Row) {
        self.step(thread);
        self.acquire(thread, clock);
    }

    /// Time passes for a thread.
    fn step(&mut self, thread: ThreadId) -> Row {
        let now = self.thread(thread).now;
        let row = self.clocks.after(now);
        self.clocks.count(row, thread);
        self.thread(thread).now = row;
        row
    }

    fn join(&mut self, one: Row, other: Row) -> Row {
        if one == Row::NOTHING {
            return other;
        }
        let both = self.clocks.after(one);
        self.clocks.join(both, other);
        both
    }

    /// What a thread does from now on comes after something.
    fn acquire(&mut self, thread: ThreadId, released: Row) {
        if released != Row::NOTHING {
            // Nobody else has this clock before the event is over.
            let now = self.thread(thread).now;
            self.clocks.join(now, released);
        }
    }

    /// What a thread has done is published to who acquires an object.
    fn release(&mut self, thread: ThreadId, object: ObjectId) {
        let now = self.thread(thread).now;
        let released = self.object(object).released;
        self.object(object).released = self.join(released, now);
    }

    /// The last event of a thread dropped the last owner of a value, and comes after the drops of all others: the last drop
    /// acquires by a fence. Drops commute, so which is the last is the same in all executions of a trace only where
    /// something else orders them, or where the destructor comes to something.
    pub(super) fn acquire_drops(&mut self, thread: ThreadId, object: ObjectId) {
        let released = self.object(object).released;
        self.acquire(thread, released);
    }

    /// A thread spawns another.
    pub(super) fn spawn(&mut self, parent: ThreadId, child: ThreadId) {
        let now = self.step(parent);
        self.thread(child).now = now;
    }

    /// A fence of a thread.
    pub(super) fn fence(&mut self, thread: ThreadId, order: Ordering) {
        let now = self.step(thread);
        if acquires(order) {
            let read = self.thread(thread).read;
            self.acquire(thread, read);
        }
        if releases(order) {
            self.thread(thread).fence = now;
        }
    }

    /// The last event was this operation of a thread on an atomic value, which found `value`.
    pub(super) fn order(&mut self, thread: ThreadId, object: ObjectId, atomic: Atomic, value: u64) {
        if let Some(last) = self.events.last_mut() {
            last.value = Some(value);
        }
        let ThreadClocks { now, read, fence } = *self.thread(thread);
        let sequence = self.object(object).released;
        let order = atomic.order();
        if matches!(atomic, Atomic::Load(_) | Atomic::Modify(_)) {
            match acquires(order) {
                true => self.acquire(thread, sequence),
                false => self.thread(thread).read = self.join(read, sequence),
            }
        }
        let head = if releases(order) { now } else { fence };
        self.object(object).released = match atomic {
            Atomic::Load(_) => sequence,
            // It begins a release sequence, or ends one.
            Atomic::Store(_) => head,
            // It goes on with one.
            Atomic::Modify(_) => self.join(sequence, head),
        };
    }

    /// An operation that is not on an atomic value synchronises as that of `std` does.
    pub(super) fn perform(
        &mut self,
        thread: ThreadId,
        object: ObjectId,
        (model, is_network): (&Model, bool),
        action: Action,
        outcome: Outcome,
    ) {
        let now = self.step(thread);
        self.events.push(Behind {
            clock: now,
            answer: outcome.answer,
            value: None,
        });
        let succeeds = outcome.answer == 1;
        let ObjectClocks { released, readers } = *self.object(object);
        // A notification decides who goes on, and orders nothing: whoever relies on it has a mutex for that.
        let waited_for = match model {
            Model::Condvar(_) => None,
            _ => outcome.after,
        };
        if let Some(after) = waited_for {
            let row = self.events[after as usize].clock;
            self.acquire(thread, row);
        }
        match (model, action) {
            (Model::Mutex { .. }, Action::Unlock(_)) => self.object(object).released = now,
            (Model::Mutex { .. }, Action::Lock | Action::TryLock) if succeeds => {
                self.acquire(thread, released);
            }
            (Model::RwLock { .. }, Action::WriteUnlock(_) | Action::Downgrade(_)) => {
                self.object(object).released = now;
            }
            (Model::RwLock { .. }, Action::ReadUnlock) => {
                self.object(object).readers = self.join(readers, now);
            }
            (Model::RwLock { .. }, Action::Read | Action::TryRead) if succeeds => {
                self.acquire(thread, released);
            }
            (Model::RwLock { .. }, Action::Write | Action::TryWrite) if succeeds => {
                self.acquire(thread, released);
                self.acquire(thread, readers);
            }
            (Model::Channel(_), Action::Close) => self.release(thread, object),
            (Model::Channel(_), Action::HangUp) => self.object(object).readers = now,
            (Model::Channel(_), _) if outcome.after_closing => self.acquire(thread, released),
            (Model::Channel(_), Action::Send | Action::TrySend) if outcome.is_gone() => {
                self.acquire(thread, readers);
            }
            (Model::Thread { .. }, Action::Unpark) => self.release(thread, object),
            (Model::Thread { .. }, Action::Park { .. }) => self.acquire(thread, released),
            (Model::Once(_), Action::Complete | Action::Abandon) => {
                self.object(object).released = now;
            }
            (Model::Once(_), Action::Look) if !succeeds => {}
            (Model::Once(_), _) => self.acquire(thread, released),
            // It is a mutex and a condition variable.
            (Model::Barrier(_), Action::Arrive) => {
                self.acquire(thread, released);
                self.object(object).released = now;
            }
            (Model::Process { .. }, Action::Crash) => {
                for other in 0..self.threads.len() {
                    self.acquire(thread, self.threads[other].now);
                }
                self.release(thread, object);
            }
            // The two counts are two atomic values. Only who finds that both are his own acquires that of weak references.
            (Model::Counted { .. }, Action::Release(Counted::Weak)) => {
                self.object(object).readers = self.join(readers, now);
            }
            // Whether the last drop acquires is not decided here, see `acquire_drops`.
            (Model::Counted { .. }, Action::Own | Action::Release(Counted::Strong)) => {
                self.release(thread, object);
            }
            (Model::Counted { .. }, Action::IntoInner) => {
                if succeeds {
                    self.acquire(thread, released);
                }
                self.release(thread, object);
            }
            (Model::Counted { .. }, Action::Upgrade | Action::Unwrap) if succeeds => {
                self.acquire(thread, released);
            }
            // It looks at the count of weak references without acquiring it.
            (Model::Counted { .. }, Action::MakeUnique) if outcome.answer != 0 => {
                self.acquire(thread, released);
            }
            (Model::Counted { .. }, Action::Unique) if succeeds => {
                self.acquire(thread, released);
                self.acquire(thread, readers);
            }
            // The operating system orders all that is done to these.
            (Model::Pipe(_) | Model::Process { .. }, _) => {
                self.acquire(thread, released);
                self.release(thread, object);
            }
            (Model::Memory, _) if is_network => {
                self.acquire(thread, released);
                self.release(thread, object);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a thread does in a random execution.
    #[derive(Clone, Copy, Debug)]
    enum Done {
        Atomic(usize, Atomic),
        Fence(Ordering),
        Lock,
        Unlock,
        /// The thread with the next number is spawned.
        Spawn,
        /// It waits for an earlier step of the execution, as a receiver does for what was sent.
        After(usize),
    }

    use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

    fn done() -> impl Strategy<Value = Done> {
        let load = prop::sample::select(vec![Relaxed, Acquire, SeqCst]);
        let store = prop::sample::select(vec![Relaxed, Release, SeqCst]);
        let modify = prop::sample::select(vec![Relaxed, Acquire, Release, AcqRel, SeqCst]);
        let fence = prop::sample::select(vec![Acquire, Release, AcqRel, SeqCst]);
        prop_oneof![
            4 => (0..2_usize, load).prop_map(|(at, order)| Done::Atomic(at, Atomic::Load(order))),
            4 => (0..2_usize, store).prop_map(|(at, order)| Done::Atomic(at, Atomic::Store(order))),
            3 => (0..2_usize, modify).prop_map(|(at, order)| Done::Atomic(at, Atomic::Modify(order))),
            3 => fence.prop_map(Done::Fence),
            1 => Just(Done::Lock),
            1 => Just(Done::Unlock),
            1 => Just(Done::Spawn),
            1 => any::<prop::sample::Index>().prop_map(|at| Done::After(at.index(64))),
        ]
    }

    /// Happens-before as the standard says it, by closing sequenced-before and synchronizes-with under transitivity.
    fn reference(steps: &[(usize, Done)]) -> Vec<Vec<bool>> {
        let count = steps.len();
        let mut before = vec![vec![false; count]; count];
        let writes = |at: usize, object: usize| matches!(steps[at].1, Done::Atomic(other, Atomic::Store(_) | Atomic::Modify(_)) if other == object);
        let is_modify = |at: usize| matches!(steps[at].1, Done::Atomic(_, Atomic::Modify(_)));
        // The write that a read reads from: sequential consistency.
        let reads_from = |at: usize| {
            let Done::Atomic(object, Atomic::Load(_) | Atomic::Modify(_)) = steps[at].1 else {
                return None;
            };
            (0..at).rev().find(|&earlier| writes(earlier, object))
        };
        // All that heads a release sequence with this write in it.
        let heads = |write: usize| {
            let mut heads = vec![write];
            let mut at = write;
            while is_modify(at) {
                let Some(earlier) = reads_from(at) else { break };
                heads.push(earlier);
                at = earlier;
            }
            heads
        };
        // What releases by a write: the write itself, or fences before it.
        let released_by = |write: usize| {
            let fences = (0..write).filter(move |&at| {
                steps[at].0 == steps[write].0
                    && matches!(steps[at].1, Done::Fence(order) if releases(order))
            });
            let own = match steps[write].1 {
                Done::Atomic(_, atomic) if releases(atomic.order()) => Some(write),
                _ => None,
            };
            fences.chain(own)
        };
        // What acquires by a read: the read itself, or fences behind it.
        let acquired_by = |read: usize| {
            let fences = (read + 1..count).filter(move |&at| {
                steps[at].0 == steps[read].0
                    && matches!(steps[at].1, Done::Fence(order) if acquires(order))
            });
            let own = match steps[read].1 {
                Done::Atomic(_, atomic) if acquires(atomic.order()) => Some(read),
                _ => None,
            };
            fences.chain(own)
        };
        for at in 0..count {
            for later in at + 1..count {
                before[at][later] = steps[at].0 == steps[later].0;
            }
            if let Some(write) = reads_from(at) {
                for head in heads(write) {
                    for release in released_by(head) {
                        for acquire in acquired_by(at) {
                            before[release][acquire] = true;
                        }
                    }
                }
            }
            match steps[at].1 {
                Done::Spawn => {
                    let spawns = |step: &&(usize, Done)| matches!(step.1, Done::Spawn);
                    let child = 3 + steps[..at].iter().filter(spawns).count();
                    for later in at + 1..count {
                        before[at][later] |= steps[later].0 == child;
                    }
                }
                Done::Lock => {
                    for earlier in 0..at {
                        before[earlier][at] |= matches!(steps[earlier].1, Done::Unlock);
                    }
                }
                Done::After(earlier) => before[earlier][at] = true,
                _ => {}
            }
        }
        for middle in 0..count {
            for at in 0..count {
                for later in 0..count {
                    before[at][later] |= before[at][middle] && before[middle][later];
                }
            }
        }
        before
    }

    /// Makes an execution of what was drawn: a thread exists before it does something, a mutex is held by one thread.
    fn execution(drawn: Vec<(usize, Done)>) -> Vec<(usize, Done)> {
        let (mut threads, mut holder) = (3, None);
        let mut steps: Vec<(usize, Done)> = Vec::new();
        for (thread, done) in drawn {
            let thread = thread % threads;
            let done = match done {
                Done::Lock if holder.is_some() => continue,
                Done::Unlock if holder != Some(thread) => continue,
                Done::Spawn if threads == 6 => continue,
                Done::After(earlier) => {
                    // Events are known by their number; neither fences nor spawns are events.
                    let is_event =
                        |at: &usize| !matches!(steps[*at].1, Done::Fence(_) | Done::Spawn);
                    let events: Vec<usize> = (0..steps.len()).filter(is_event).collect();
                    match events.get(earlier) {
                        Some(&earlier) => Done::After(earlier),
                        None => continue,
                    }
                }
                done => done,
            };
            match done {
                Done::Lock => holder = Some(thread),
                Done::Unlock => holder = None,
                Done::Spawn => threads += 1,
                _ => {}
            }
            steps.push((thread, done));
        }
        steps
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_clocks_are_happens_before_as_the_standard_says_it(
            drawn in proptest::collection::vec((0..6_usize, done()), 1..40),
        ) {
            let steps = execution(drawn);
            let expected = reference(&steps);
            let mut clocks = HappensBefore::new();
            let mutex = Model::mutex();
            let mut children = 3;
            // The clock of its thread behind each step, and its time.
            let mut behind: Vec<(Row, u32)> = Vec::new();
            let mut events: Vec<EventId> = vec![0; steps.len()];
            for (at, &(thread, done)) in steps.iter().enumerate() {
                let id = ThreadId(thread as u32);
                events[at] = clocks.events.len() as EventId;
                let success = Outcome { answer: 1, after: None, after_closing: false };
                match done {
                    Done::Atomic(object, atomic) => {
                        let object = ObjectId(object as u32);
                        clocks.perform(id, object, (&Model::Memory, false), Action::Load, success);
                        clocks.order(id, object, atomic, 0);
                    }
                    Done::Fence(order) => clocks.fence(id, order),
                    Done::Lock => clocks.perform(id, ObjectId(2), (&mutex, false), Action::Lock, success),
                    Done::Unlock => {
                        let unlock = Action::Unlock(crate::target::threads::operation::Guarding::Changed);
                        clocks.perform(id, ObjectId(2), (&mutex, false), unlock, success);
                    }
                    Done::Spawn => {
                        clocks.spawn(id, ThreadId(children));
                        children += 1;
                    }
                    Done::After(earlier) => {
                        let after = Outcome { after: Some(events[earlier]), ..success };
                        clocks.perform(id, ObjectId(3), (&Model::thread(), false), Action::Join, after);
                    }
                }
                behind.push((clocks.now(id), clocks.time(id)));
            }
            for (at, &(thread, _)) in steps.iter().enumerate() {
                for later in at + 1..steps.len() {
                    let known = clocks.clocks.row(behind[later].0).get(thread).copied();
                    let knows = known.unwrap_or_default() >= behind[at].1;
                    prop_assert_eq!(knows, expected[at][later], "{} before {} of {:?}", at, later, &steps);
                }
            }
        }
    }
}
