//! What a program does, written once and compiled twice: on the types of `std` and on those of Dragnet.

use std::time::Duration;

use crate::plan::Draw;

/// What threads have seen, each operation of each of them.
pub(crate) type Outcome = Vec<Vec<u32>>;

/// The payload of panics that belong to a program.
pub(crate) struct OnPurpose;

/// How long waits with a time-out are on real threads.
pub(crate) const MOMENT: Duration = Duration::from_micros(30);

/// Random pauses between the operations of a real thread.
pub(crate) struct Pauses(pub(crate) Option<Draw>);

impl Pauses {
    pub(crate) fn pause(&mut self) {
        let Some(draw) = &mut self.0 else {
            return;
        };
        match draw.below(32) {
            0..16 => {}
            16..26 => (0..draw.below(100)).for_each(|_| std::hint::spin_loop()),
            26..31 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(draw.below(40) as u64)),
        }
    }
}

macro_rules! interpreter {
    ($name:ident, $std:ident) => {
        pub(crate) mod $name {
            use std::cell::RefCell;
            use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
            use std::sync::Mutex as Uncontrolled;
            use std::sync::atomic::AtomicUsize as UncontrolledUsize;

            use $std::sync::atomic::{AtomicU32, Ordering::SeqCst};
            use $std::sync::mpsc::{
                self, Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, TrySendError,
            };
            use $std::sync::{
                Arc, Barrier, Condvar, LazyLock, Mutex, MutexGuard, Once, OnceLock, RwLock,
                RwLockReadGuard, RwLockWriteGuard, TryLockError,
            };
            use $std::thread::{self, JoinHandle, Scope, ScopedJoinHandle, Thread};

            use super::{MOMENT, OnPurpose, Outcome, Pauses};
            use crate::plan::{Act, Capacity, Draw, Plan};

            struct Objects {
                cells: [AtomicU32; 2],
                locks: [Mutex<u32>; 2],
                changed: Condvar,
                read: RwLock<u32>,
                barrier: Barrier,
                once: Once,
                word: OnceLock<u32>,
                lazy: LazyLock<AtomicU32>,
                /// How many messages have been dropped.
                dropped: AtomicU32,
            }

            /// A message. It does an operation when it is dropped, wherever that is.
            struct Message(u32, Arc<World>);

            impl Drop for Message {
                fn drop(&mut self) {
                    self.1.objects.dropped.fetch_add(1, SeqCst);
                }
            }

            enum Sends {
                Freely(Sender<Message>),
                Bounded(SyncSender<Message>),
            }

            impl Clone for Sends {
                fn clone(&self) -> Self {
                    match self {
                        Self::Freely(sender) => Self::Freely(sender.clone()),
                        Self::Bounded(sender) => Self::Bounded(sender.clone()),
                    }
                }
            }

            /// The ends of the channel that a thread has.
            #[derive(Default)]
            struct Ends {
                senders: Vec<Sends>,
                receiver: Option<Receiver<Message>>,
            }

            struct World {
                plan: Plan,
                objects: Objects,
                /// What threads take when they begin. Each comes to its own alone, so that nothing is told by it.
                ends: Uncontrolled<Vec<Option<Ends>>>,
                seen: Uncontrolled<Outcome>,
                /// The seed of pauses, on real threads.
                seed: Option<u64>,
                /// How many real threads have begun.
                begun: UncontrolledUsize,
                first: Thread,
            }

            $std::thread_local! {
                static LOCAL: RefCell<Option<Tail>> = const { RefCell::new(None) };
            }

            /// Does an operation when its thread has ended.
            struct Tail(Arc<World>, u32);

            impl Drop for Tail {
                fn drop(&mut self) {
                    self.0.objects.cells[1].fetch_add(100, SeqCst);
                }
            }

            /// Runs a program and says what its threads have seen. Real threads make pauses, which follow from a seed.
            pub(crate) fn run(plan: &Plan, seed: Option<u64>) -> Outcome {
                let count = plan.threads.len();
                let objects = Objects {
                    cells: [const { AtomicU32::new(0) }; 2],
                    locks: [const { Mutex::new(0) }; 2],
                    changed: Condvar::new(),
                    read: RwLock::new(0),
                    barrier: Barrier::new(plan.parties),
                    once: Once::new(),
                    word: OnceLock::new(),
                    lazy: LazyLock::new(|| AtomicU32::new(0)),
                    dropped: AtomicU32::new(0),
                };
                let mut ends: Vec<Option<Ends>> = (0..count).map(|_| Some(Ends::default())).collect();
                if plan.has_channel() {
                    let (sender, receiver) = match plan.capacity {
                        Capacity::Unbounded => {
                            let (sender, receiver) = mpsc::channel();
                            (Sends::Freely(sender), receiver)
                        }
                        Capacity::Bounded(room) => {
                            let (sender, receiver) = mpsc::sync_channel(room);
                            (Sends::Bounded(sender), receiver)
                        }
                    };
                    for end in ends.iter_mut().flatten().enumerate() {
                        match end {
                            (id, _) if id == plan.receiver => {}
                            (_, end) => end.senders.push(sender.clone()),
                        }
                    }
                    if let Some(end) = ends[plan.receiver].as_mut() {
                        end.receiver = Some(receiver);
                    }
                }
                let world = Arc::new(World {
                    plan: plan.clone(),
                    objects,
                    ends: Uncontrolled::new(ends),
                    seen: Uncontrolled::new(vec![Vec::new(); count]),
                    seed,
                    begun: UncontrolledUsize::new(0),
                    first: thread::current(),
                });
                match plan.scoped {
                    true => thread::scope(|scope| live(0, &world, Some(scope))),
                    false => live(0, &world, None),
                }
                let last = &world.objects;
                let mut end = Vec::new();
                end.extend(last.cells.iter().map(|cell| cell.load(SeqCst)));
                end.push(last.dropped.load(SeqCst));
                end.extend(last.locks.iter().map(|lock| u32::from(lock.is_poisoned())));
                let mut seen = std::mem::take(&mut *world.seen.lock().unwrap());
                seen.push(end);
                seen
            }

            /// Takes note of what a thread has seen when it ends, however it does.
            struct Log<'a> {
                id: usize,
                seen: Vec<u32>,
                world: &'a World,
            }

            impl Drop for Log<'_> {
                fn drop(&mut self) {
                    let mut all = self.world.seen.lock().unwrap();
                    all[self.id] = std::mem::take(&mut self.seen);
                }
            }

            enum Guard<'a> {
                Mutex(usize, MutexGuard<'a, u32>),
                Reader(#[expect(dead_code, reason = "held until it is dropped")] RwLockReadGuard<'a, u32>),
                Writer(RwLockWriteGuard<'a, u32>),
            }

            enum Handle<'scope> {
                Free(JoinHandle<()>),
                Scoped(ScopedJoinHandle<'scope, ()>),
            }

            impl Handle<'_> {
                fn join(self) -> bool {
                    match self {
                        Self::Free(handle) => handle.join().is_ok(),
                        Self::Scoped(handle) => handle.join().is_ok(),
                    }
                }

                fn is_finished(&self) -> bool {
                    match self {
                        Self::Free(handle) => handle.is_finished(),
                        Self::Scoped(handle) => handle.is_finished(),
                    }
                }

                fn thread(&self) -> &Thread {
                    match self {
                        Self::Free(handle) => handle.thread(),
                        Self::Scoped(handle) => handle.thread(),
                    }
                }
            }

            fn live<'scope>(
                id: usize,
                world: &Arc<World>,
                scope: Option<&'scope Scope<'scope, '_>>,
            ) {
                let mut pauses = Pauses(world.seed.map(|seed| {
                    let mut draw = Draw::new(seed ^ (id as u64) << 56);
                    // Real threads begin at about the same time, some of the time.
                    world.begun.fetch_add(1, SeqCst);
                    let mut patience = draw.below(2) * 400;
                    while patience > 0 && world.begun.load(SeqCst) < world.plan.threads.len() {
                        std::hint::spin_loop();
                        patience -= 1;
                    }
                    draw
                }));
                let mut log = Log {
                    id,
                    seen: Vec::new(),
                    world,
                };
                let ends = world.ends.lock().unwrap()[id].take();
                let mut thread = Running {
                    id,
                    world,
                    ends: ends.unwrap_or_default(),
                    last: 0,
                    panics: false,
                };
                let mut held: Vec<Guard<'_>> = Vec::new();
                let mut children: Vec<(usize, Handle<'scope>)> = Vec::new();
                for &act in &world.plan.threads[id] {
                    pauses.pause();
                    let seen = match act {
                        Act::Spawn(child) => {
                            children.push((child, spawn(child, world, scope)));
                            0
                        }
                        Act::Join(child) => match position(&children, child) {
                            Some(at) => u32::from(children.remove(at).1.join()),
                            None => 9,
                        },
                        Act::IsFinished(child) => match position(&children, child) {
                            Some(at) => u32::from(children[at].1.is_finished()),
                            None => 9,
                        },
                        Act::Unpark(child) => {
                            if let Some(at) = position(&children, child) {
                                children[at].1.thread().unpark();
                            }
                            0
                        }
                        act => thread.perform(act, &mut held),
                    };
                    thread.last = seen;
                    log.seen.push(seen);
                }
                pauses.pause();
                if !thread.panics {
                    while let Some(guard) = held.pop() {
                        drop(guard);
                    }
                }
                let panics = thread.panics;
                drop(thread);
                for (_, child) in children {
                    pauses.pause();
                    if scope.is_none() {
                        log.seen.push(u32::from(child.join()));
                    }
                }
                if panics {
                    panic_any(OnPurpose);
                }
            }

            fn position(children: &[(usize, Handle<'_>)], child: usize) -> Option<usize> {
                children.iter().position(|(other, _)| *other == child)
            }

            fn spawn<'scope>(
                child: usize,
                world: &Arc<World>,
                scope: Option<&'scope Scope<'scope, '_>>,
            ) -> Handle<'scope> {
                let world = Arc::clone(world);
                match scope {
                    None => Handle::Free(thread::spawn(move || live(child, &world, None))),
                    Some(scope) => {
                        Handle::Scoped(scope.spawn(move || live(child, &world, Some(scope))))
                    }
                }
            }

            struct Running<'a> {
                id: usize,
                world: &'a Arc<World>,
                ends: Ends,
                /// What it has seen last.
                last: u32,
                panics: bool,
            }

            impl<'a> Running<'a> {
                fn message(&self) -> Message {
                    Message(10 * self.id as u32 + self.last % 10, Arc::clone(self.world))
                }

                /// Does an operation and says what the thread has seen by it.
                fn perform(&mut self, act: Act, held: &mut Vec<Guard<'a>>) -> u32 {
                    let objects = &self.world.objects;
                    let last = self.last;
                    match act {
                        Act::Load(cell) => objects.cells[cell].load(SeqCst),
                        Act::Store(cell) => {
                            objects.cells[cell].store(last + 1, SeqCst);
                            0
                        }
                        Act::Add(cell) => objects.cells[cell].fetch_add(1, SeqCst),
                        Act::Swap(cell) => objects.cells[cell].swap(last + 3, SeqCst),
                        Act::Exchange(cell) => {
                            let cell = &objects.cells[cell];
                            match cell.compare_exchange(last, last + 1, SeqCst, SeqCst) {
                                Ok(was) => was,
                                Err(is) => 50 + is,
                            }
                        }

                        Act::Lock(lock) => {
                            // To lock what one has locked is not specified.
                            let is_held = |guard: &Guard<'_>| {
                                matches!(guard, Guard::Mutex(other, _) if *other == lock)
                            };
                            if held.iter().any(is_held) {
                                return 99;
                            }
                            let (mut guard, poisoned) = match objects.locks[lock].lock() {
                                Ok(guard) => (guard, 0),
                                Err(poisoned) => (poisoned.into_inner(), 50),
                            };
                            *guard += 1;
                            let seen = *guard + poisoned;
                            held.push(Guard::Mutex(lock, guard));
                            seen
                        }
                        Act::TryLock(lock) => {
                            let (guard, poisoned) = match objects.locks[lock].try_lock() {
                                Ok(guard) => (guard, 0),
                                Err(TryLockError::Poisoned(poisoned)) => (poisoned.into_inner(), 50),
                                Err(TryLockError::WouldBlock) => return 98,
                            };
                            let seen = *guard + poisoned;
                            held.push(Guard::Mutex(lock, guard));
                            seen
                        }
                        Act::Unlock => {
                            drop(held.pop());
                            0
                        }
                        Act::IsPoisoned(lock) => u32::from(objects.locks[lock].is_poisoned()),
                        Act::ClearPoison(lock) => {
                            objects.locks[lock].clear_poison();
                            0
                        }
                        Act::PanicHolding(lock) => {
                            let is_held = |guard: &Guard<'_>| {
                                matches!(guard, Guard::Mutex(other, _) if *other == lock)
                            };
                            if held.iter().any(is_held) {
                                return 99;
                            }
                            caught(|| {
                                let _held = objects.locks[lock].lock();
                                panic_any(OnPurpose);
                            })
                        }

                        Act::Wait | Act::WaitTimeout | Act::WaitWhile(_) => {
                            let first = |guard: &Guard<'_>| matches!(guard, Guard::Mutex(0, _));
                            let Some(at) = held.iter().position(first) else {
                                return 99;
                            };
                            let Guard::Mutex(_, guard) = held.remove(at) else {
                                return 99;
                            };
                            let (guard, seen) = wait(&objects.changed, guard, act);
                            let seen = seen + *guard;
                            held.push(Guard::Mutex(0, guard));
                            seen
                        }
                        Act::NotifyOne => {
                            objects.changed.notify_one();
                            0
                        }
                        Act::NotifyAll => {
                            objects.changed.notify_all();
                            0
                        }

                        Act::Read | Act::Write if held.iter().any(Guard::is_of_rw_lock) => 99,
                        Act::Read => {
                            let guard = objects.read.read().unwrap();
                            let seen = *guard;
                            held.push(Guard::Reader(guard));
                            seen
                        }
                        Act::TryRead => match objects.read.try_read() {
                            Ok(guard) => {
                                let seen = *guard;
                                held.push(Guard::Reader(guard));
                                seen
                            }
                            Err(_) => 98,
                        },
                        Act::Write => {
                            let mut guard = objects.read.write().unwrap();
                            *guard += 1;
                            let seen = *guard;
                            held.push(Guard::Writer(guard));
                            seen
                        }
                        Act::TryWrite => match objects.read.try_write() {
                            Ok(mut guard) => {
                                *guard += 1;
                                let seen = *guard;
                                held.push(Guard::Writer(guard));
                                seen
                            }
                            Err(_) => 98,
                        },
                        Act::Downgrade => match held.pop() {
                            Some(Guard::Writer(guard)) => {
                                let guard = RwLockWriteGuard::downgrade(guard);
                                let seen = *guard;
                                held.push(Guard::Reader(guard));
                                seen
                            }
                            other => {
                                held.extend(other);
                                99
                            }
                        },

                        Act::Meet => u32::from(objects.barrier.wait().is_leader()),

                        Act::CallOnce => {
                            let mut seen = 0;
                            objects.once.call_once_force(|state| {
                                seen = 1 + u32::from(state.is_poisoned());
                                seen += 10 * objects.cells[0].fetch_add(1, SeqCst);
                            });
                            seen
                        }
                        Act::FailOnce => caught(|| {
                            objects.once.call_once_force(|_| panic_any(OnPurpose));
                        }),
                        Act::IsCompleted => u32::from(objects.once.is_completed()),
                        Act::Set => u32::from(objects.word.set(self.id as u32).is_ok()),
                        Act::Get => objects.word.get().map_or(98, |word| *word),
                        Act::GetOrInit => {
                            let first = || 10 * objects.cells[0].fetch_add(1, SeqCst) + self.id as u32;
                            *objects.word.get_or_init(first)
                        }
                        Act::AwaitWord => *objects.word.wait(),
                        Act::Force => objects.lazy.fetch_add(1, SeqCst),

                        Act::Send => match self.ends.senders.last() {
                            None => 99,
                            Some(Sends::Freely(sender)) => {
                                u32::from(sender.send(self.message()).is_ok())
                            }
                            Some(Sends::Bounded(sender)) => {
                                u32::from(sender.send(self.message()).is_ok())
                            }
                        },
                        Act::TrySend => match self.ends.senders.last() {
                            None => 99,
                            Some(Sends::Freely(sender)) => {
                                u32::from(sender.send(self.message()).is_ok())
                            }
                            Some(Sends::Bounded(sender)) => match sender.try_send(self.message()) {
                                Ok(()) => 1,
                                Err(TrySendError::Full(_)) => 2,
                                Err(TrySendError::Disconnected(_)) => 0,
                            },
                        },
                        Act::CloneSender => {
                            let another = self.ends.senders.last().cloned();
                            self.ends.senders.extend(another);
                            0
                        }
                        Act::DropSender => {
                            drop(self.ends.senders.pop());
                            0
                        }
                        Act::Receive => match self.ends.receiver.as_ref().map(Receiver::recv) {
                            None => 99,
                            Some(Ok(message)) => message.0,
                            Some(Err(_)) => 97,
                        },
                        Act::TryReceive => match self.ends.receiver.as_ref().map(Receiver::try_recv) {
                            None => 99,
                            Some(Ok(message)) => message.0,
                            Some(Err(TryRecvError::Empty)) => 98,
                            Some(Err(TryRecvError::Disconnected)) => 97,
                        },
                        Act::ReceiveTimeout => {
                            let receiver = self.ends.receiver.as_ref();
                            match receiver.map(|receiver| receiver.recv_timeout(MOMENT)) {
                                None => 99,
                                Some(Ok(message)) => message.0,
                                Some(Err(RecvTimeoutError::Timeout)) => 98,
                                Some(Err(RecvTimeoutError::Disconnected)) => 97,
                            }
                        }
                        Act::DropReceiver => {
                            drop(self.ends.receiver.take());
                            0
                        }

                        Act::Park => {
                            thread::park();
                            0
                        }
                        Act::ParkTimeout => {
                            thread::park_timeout(MOMENT);
                            0
                        }
                        Act::UnparkFirst => {
                            self.world.first.unpark();
                            0
                        }

                        Act::Local => LOCAL.with(|local| {
                            let mut local = local.borrow_mut();
                            let tail = local.get_or_insert_with(|| Tail(Arc::clone(self.world), 0));
                            tail.1 += 1;
                            tail.1
                        }),
                        Act::Panic => {
                            self.panics = true;
                            0
                        }
                        Act::Spawn(_) | Act::Join(_) | Act::IsFinished(_) | Act::Unpark(_) => 99,
                    }
                }
            }

            impl Guard<'_> {
                fn is_of_rw_lock(&self) -> bool {
                    matches!(self, Self::Reader(_) | Self::Writer(_))
                }
            }

            fn wait<'a>(
                changed: &Condvar,
                guard: MutexGuard<'a, u32>,
                act: Act,
            ) -> (MutexGuard<'a, u32>, u32) {
                match act {
                    Act::WaitTimeout => match changed.wait_timeout(guard, MOMENT) {
                        Ok((guard, result)) => (guard, 20 * u32::from(result.timed_out())),
                        Err(poisoned) => {
                            let (guard, result) = poisoned.into_inner();
                            (guard, 50 + 20 * u32::from(result.timed_out()))
                        }
                    },
                    Act::WaitWhile(often) => match changed.wait_while(guard, |count| *count < often) {
                        Ok(guard) => (guard, 0),
                        Err(poisoned) => (poisoned.into_inner(), 50),
                    },
                    _ => match changed.wait(guard) {
                        Ok(guard) => (guard, 0),
                        Err(poisoned) => (poisoned.into_inner(), 50),
                    },
                }
            }

            /// Whether something has panicked as it should, and is caught.
            fn caught(panics: impl FnOnce()) -> u32 {
                match catch_unwind(AssertUnwindSafe(panics)) {
                    Err(payload) if payload.is::<OnPurpose>() => 1,
                    Err(payload) => resume_unwind(payload),
                    Ok(()) => 0,
                }
            }
        }
    };
}

interpreter!(real, std);
interpreter!(ours, dragnet);
