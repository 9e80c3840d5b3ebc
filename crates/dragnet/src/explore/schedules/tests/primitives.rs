//! Random programs with locks for readers, channels, barriers and what is done once.

use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use super::*;
use crate::target::threads::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, TrySendError, channel,
    sync_channel,
};
use crate::target::threads::sync::{
    Barrier, Once, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

#[derive(Clone, Copy, Debug)]
enum Act {
    Load,
    Store,
    Read(usize),
    TryRead(usize),
    Write(usize),
    TryWrite(usize),
    Downgrade,
    Unlock,
    Send,
    TrySend,
    Clone,
    Close,
    Receive,
    ReceiveAWhile,
    TryReceive,
    HangUp,
    Meet,
    DoOnce,
    FailOnce,
    Completed,
    Set,
    Get,
    GetOrInit,
    AwaitOnce,
    AwaitWord,
}

impl Act {
    fn needs_a_channel(self) -> bool {
        use self::Act::{Clone, Close, HangUp, Receive, ReceiveAWhile, Send, TryReceive, TrySend};
        matches!(
            self,
            Send | TrySend | Clone | Close | Receive | ReceiveAWhile | TryReceive | HangUp
        )
    }
}

/// The first thread receives, all others send.
#[derive(Clone, Debug)]
struct Plan {
    threads: Vec<Vec<Act>>,
    bound: Option<usize>,
}

struct Shared {
    cell: AtomicUsize,
    locks: [RwLock<usize>; 2],
    barrier: Barrier,
    once: Once,
    word: OnceLock<usize>,
}

enum Guard<'a> {
    Reader(#[expect(dead_code, reason = "held until it is dropped")] RwLockReadGuard<'a, usize>),
    Writer(RwLockWriteGuard<'a, usize>),
}

#[derive(Clone)]
enum Sends {
    Freely(Sender<usize>),
    Bounded(SyncSender<usize>),
}

impl Sends {
    fn send(&self, message: usize) -> bool {
        match self {
            Self::Freely(sender) => sender.send(message).is_ok(),
            Self::Bounded(sender) => sender.send(message).is_ok(),
        }
    }

    fn try_send(&self, message: usize) -> usize {
        match self {
            Self::Freely(_) => usize::from(self.send(message)),
            Self::Bounded(sender) => match sender.try_send(message) {
                Ok(()) => 1,
                Err(TrySendError::Full(back)) => back + 2,
                Err(TrySendError::Disconnected(_)) => 0,
            },
        }
    }
}

/// The end of the channel that a thread has.
enum End {
    Sender(Sends),
    Receiver(Receiver<usize>),
    None,
}

fn act(id: usize, acts: &[Act], shared: &Shared, mut end: End) {
    let mut held: Vec<(usize, Guard<'_>)> = Vec::new();
    let mut more = Vec::new();
    let mut seen = 0;
    for (place, &what) in acts.iter().enumerate() {
        let holds = |lock| held.iter().any(|(other, _)| *other == lock);
        match (what, &end) {
            (Act::Load, _) => seen = shared.cell.load(SeqCst),
            (Act::Store, _) => shared.cell.store(seen + 1, SeqCst),
            (Act::Read(lock), _) if !holds(lock) => {
                let guard = shared.locks[lock].read().unwrap();
                seen = *guard;
                held.push((lock, Guard::Reader(guard)));
            }
            (Act::TryRead(lock), _) => {
                if let Ok(guard) = shared.locks[lock].try_read() {
                    seen = *guard;
                    held.push((lock, Guard::Reader(guard)));
                } else {
                    seen = 9;
                }
            }
            (Act::Write(lock), _) if !holds(lock) => {
                let mut guard = shared.locks[lock].write().unwrap();
                *guard += 1;
                seen = *guard;
                held.push((lock, Guard::Writer(guard)));
            }
            (Act::TryWrite(lock), _) => {
                if let Ok(mut guard) = shared.locks[lock].try_write() {
                    *guard += 1;
                    held.push((lock, Guard::Writer(guard)));
                    seen = 1;
                } else {
                    seen = 9;
                }
            }
            (Act::Downgrade, _) => {
                if let Some((lock, Guard::Writer(guard))) = held.pop() {
                    let guard = RwLockWriteGuard::downgrade(guard);
                    held.push((lock, Guard::Reader(guard)));
                }
            }
            (Act::Unlock, _) => drop(held.pop()),
            (Act::Send, End::Sender(sender)) => {
                seen = usize::from(sender.send(10 * id + place));
            }
            (Act::TrySend, End::Sender(sender)) => seen = sender.try_send(10 * id + place),
            (Act::Clone, End::Sender(sender)) => more.push(sender.clone()),
            (Act::Close, End::Sender(_)) => match more.pop() {
                Some(sender) => drop(sender),
                None => end = End::None,
            },
            (Act::Receive, End::Receiver(receiver)) => seen = receiver.recv().unwrap_or(99),
            (Act::ReceiveAWhile, End::Receiver(receiver)) => {
                seen = match receiver.recv_timeout(Duration::from_secs(1)) {
                    Ok(message) => message,
                    Err(RecvTimeoutError::Timeout) => 98,
                    Err(RecvTimeoutError::Disconnected) => 99,
                };
            }
            (Act::TryReceive, End::Receiver(receiver)) => {
                seen = match receiver.try_recv() {
                    Ok(message) => message,
                    Err(TryRecvError::Empty) => 98,
                    Err(TryRecvError::Disconnected) => 99,
                };
            }
            (Act::HangUp, End::Receiver(_)) => end = End::None,
            (Act::Meet, _) => seen = usize::from(shared.barrier.wait().is_leader()),
            (Act::DoOnce, _) => {
                seen = 0;
                shared.once.call_once_force(|state| {
                    seen = 1 + usize::from(state.is_poisoned());
                });
            }
            (Act::FailOnce, _) => {
                let done = panic::catch_unwind(AssertUnwindSafe(|| {
                    shared
                        .once
                        .call_once(|| panic::resume_unwind(Box::new("it fails")));
                }));
                seen = match done {
                    Err(payload) if crate::target::threads::world::is_over(&*payload) => {
                        panic::resume_unwind(payload)
                    }
                    Err(payload) => 1 + usize::from(payload.is::<String>()),
                    Ok(()) => 0,
                };
            }
            (Act::Completed, _) => seen = usize::from(shared.once.is_completed()),
            (Act::Set, _) => seen = usize::from(shared.word.set(id).is_ok()),
            (Act::Get, _) => seen = shared.word.get().map_or(9, |&word| word),
            (Act::AwaitOnce, _) => shared.once.wait_force(),
            (Act::AwaitWord, _) => seen = *shared.word.wait(),
            (Act::GetOrInit, _) => {
                seen = *shared
                    .word
                    .get_or_init(|| 10 + shared.cell.fetch_add(1, SeqCst));
            }
            _ => {}
        }
        note(id, place, seen);
        if seen == 1 {
            shared.cell.store(7, SeqCst);
        }
    }
}

fn run(plan: &Plan) {
    SEEN.set(0);
    let shared = Arc::new(Shared {
        cell: AtomicUsize::new(0),
        locks: [const { RwLock::new(0) }; 2],
        barrier: Barrier::new(2),
        once: Once::new(),
        word: OnceLock::new(),
    });
    let mut acts = plan.threads.iter().flatten();
    let mut ends: Vec<End> = Vec::new();
    if acts.any(|act| act.needs_a_channel()) {
        let (sender, receiver) = match plan.bound {
            None => {
                let (sender, receiver) = channel();
                (Sends::Freely(sender), receiver)
            }
            Some(bound) => {
                let (sender, receiver) = sync_channel(bound);
                (Sends::Bounded(sender), receiver)
            }
        };
        let senders = plan.threads.len() - 1;
        ends.extend((1..senders).map(|_| End::Sender(sender.clone())));
        ends.extend([End::Sender(sender), End::Receiver(receiver)]);
    }
    let handles: Vec<_> = (0..)
        .zip(&plan.threads)
        .map(|(id, acts)| {
            let (acts, shared) = (acts.clone(), Arc::clone(&shared));
            let end = ends.pop().unwrap_or(End::None);
            thread::spawn(move || act(id, &acts, &shared, end))
        })
        .collect();
    for handle in handles {
        handle.join().unwrap();
    }
}

fn memory() -> impl Strategy<Value = Act> {
    prop_oneof![Just(Act::Load), Just(Act::Store)]
}

fn locking() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..2_usize).prop_map(Act::Read),
        (0..2_usize).prop_map(Act::TryRead),
        (0..2_usize).prop_map(Act::Write),
        (0..2_usize).prop_map(Act::TryWrite),
        Just(Act::Downgrade),
        Just(Act::Unlock),
    ]
}

fn sending() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => Just(Act::Send),
        3 => Just(Act::TrySend),
        1 => Just(Act::Clone),
        1 => Just(Act::Close),
    ]
}

fn receiving() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => Just(Act::Receive),
        3 => Just(Act::ReceiveAWhile),
        3 => Just(Act::TryReceive),
        1 => Just(Act::HangUp),
    ]
}

fn meeting() -> impl Strategy<Value = Act> {
    prop_oneof![
        Just(Act::Meet),
        Just(Act::DoOnce),
        Just(Act::FailOnce),
        Just(Act::Completed),
        Just(Act::Set),
        Just(Act::Get),
        Just(Act::GetOrInit),
        Just(Act::AwaitOnce),
        Just(Act::AwaitWord),
    ]
}

fn plan(
    first: impl Strategy<Value = Act> + Clone,
    other: impl Strategy<Value = Act>,
) -> impl Strategy<Value = Plan> {
    let bound = prop_oneof![
        2 => Just(None),
        3 => Just(Some(0)),
        3 => Just(Some(1)),
        1 => Just(Some(2)),
    ];
    let others = proptest::collection::vec(proptest::collection::vec(other, 1..4), 1..3);
    let first = proptest::collection::vec(first, 1..4);
    (first, others, bound).prop_map(|(first, others, bound)| Plan {
        threads: [vec![first], others].concat(),
        bound,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_trace_of_readers_and_writers_is_run_once(
        plan in plan(prop_oneof![1 => memory(), 4 => locking()].boxed(), prop_oneof![1 => memory(), 4 => locking()])
    ) {
        check_traces(move || run(&plan))?;
    }

    #[test]
    fn every_trace_of_senders_and_a_receiver_is_run_once(
        plan in plan(prop_oneof![1 => memory(), 4 => receiving()].boxed(), prop_oneof![1 => memory(), 4 => sending()])
    ) {
        check_traces(move || run(&plan))?;
    }

    #[test]
    fn every_trace_of_what_is_done_once_and_of_barriers_is_run_once(
        plan in plan(prop_oneof![1 => memory(), 4 => meeting()].boxed(), prop_oneof![1 => memory(), 4 => meeting()])
    ) {
        check_traces(move || run(&plan))?;
    }

    #[test]
    fn every_trace_of_all_of_these_is_run_once(
        plan in plan(
            prop_oneof![memory(), locking(), receiving(), meeting()].boxed(),
            prop_oneof![memory(), locking(), sending(), meeting()],
        )
    ) {
        check_traces(move || run(&plan))?;
    }
}

/// Found by chance among thousands.
#[test]
fn none_is_given_up_where_one_waits_for_a_word_before_a_barrier() {
    let plan = Plan {
        threads: vec![
            vec![Act::AwaitWord, Act::Meet],
            vec![Act::Meet],
            vec![Act::Set, Act::GetOrInit],
        ],
        bound: None,
    };
    check_traces(move || run(&plan)).unwrap();
}
