//! Counts that are known, and random programs against every interleaving.

mod arcs;
mod loops;
mod primitives;
mod priorities;
mod sockets;

use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use proptest::prelude::*;

use super::*;
use crate::explore::limits::Gauge;
use crate::quantity::Seed;
use crate::target::nodes::Faults;
use crate::target::threads::history::HistoricEvent;
use crate::target::threads::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use crate::target::threads::sync::{Condvar as OurCondvar, Mutex as OurMutex};
use crate::target::threads::thread;
use crate::target::threads::world::Setting;
use crate::trace::scatter;

fn program(main: impl Fn() + Send + Sync + 'static) -> Arc<Program> {
    program_with(0, main)
}

/// The same where threads wake up for no reason, so often at each condition variable.
fn program_with(spurious_wakeups: u32, main: impl Fn() + Send + Sync + 'static) -> Arc<Program> {
    program_set(|setting| setting.spurious_wakeups = spurious_wakeups, main)
}

/// The same with another setting.
fn program_set(
    change: impl FnOnce(&mut Setting),
    main: impl Fn() + Send + Sync + 'static,
) -> Arc<Program> {
    let mut setting = Setting {
        stack_bytes: 64 << 10,
        spurious_wakeups: 0,
        panics_are_fine: false,
        fruitless_turns: 100,
        patience: std::time::Duration::from_secs(60),
        faults: Faults::none(),
        seed: Seed(0),
        without_std_arcs: false,
        reports_leaks: false,
    };
    change(&mut setting);
    Arc::new(Program::new(Arc::new(main), setting))
}

fn explore(program: &Arc<Program>, reduction: Reduction, workers: usize) -> Explored {
    let schedules = Schedules {
        program,
        reduction,
        longest: None,
        preemptions: None,
        gauge: &Gauge::new(),
        workers,
        watch: &|_, finish| *finish == Finish::Complete,
    };
    schedules.explore()
}

/// The number of executions with every reduction that is worth it.
fn executions(main: impl Fn() + Send + Sync + 'static) -> u64 {
    let program = program(main);
    let optimal = explore(&program, Reduction::Optimal, 1);
    assert_eq!(optimal.found, None);
    let source = explore(&program, Reduction::Source, 1);
    assert_eq!(source.executions, optimal.executions);
    let both = explore(&program, Reduction::Optimal, 2);
    assert_eq!(both.executions, optimal.executions);
    optimal.executions
}

fn readers(count: usize) {
    let shared = Arc::new(AtomicUsize::new(0));
    let writer = Arc::clone(&shared);
    let writer = thread::spawn(move || writer.store(1, SeqCst));
    let readers: Vec<_> = (0..count)
        .map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.load(SeqCst))
        })
        .collect();
    writer.join().unwrap();
    for reader in readers {
        reader.join().unwrap();
    }
}

fn last_zero(count: usize) {
    let array: Arc<[AtomicUsize]> = (0..=count).map(|_| AtomicUsize::new(0)).collect();
    let zero = Arc::clone(&array);
    let mut threads = vec![thread::spawn(move || {
        let mut at = count;
        while zero[at].load(SeqCst) != 0 {
            at -= 1;
        }
    })];
    for at in 1..=count {
        let array = Arc::clone(&array);
        threads.push(thread::spawn(move || {
            let before = array[at - 1].load(SeqCst);
            array[at].store(before + 1, SeqCst);
        }));
    }
    for thread in threads {
        thread.join().unwrap();
    }
}

fn indexer(count: usize) {
    const SIZE: usize = 128;
    let table: Arc<[AtomicUsize]> = (0..SIZE).map(|_| AtomicUsize::new(0)).collect();
    let threads: Vec<_> = (0..count)
        .map(|id| {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                for message in 0..4 {
                    let word = (message + 1) * 11 + id;
                    let mut at = word * 7 % SIZE;
                    while table[at].compare_exchange(0, word, SeqCst, SeqCst).is_err() {
                        at = (at + 1) % SIZE;
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

fn file_system(count: usize) {
    const INODES: usize = 32;
    const BLOCKS: usize = 26;
    struct Disk {
        inodes: Vec<OurMutex<usize>>,
        busy: Vec<OurMutex<bool>>,
    }
    let disk = Arc::new(Disk {
        inodes: (0..INODES).map(|_| OurMutex::new(0)).collect(),
        busy: (0..BLOCKS).map(|_| OurMutex::new(false)).collect(),
    });
    let threads: Vec<_> = (0..count)
        .map(|id| {
            let disk = Arc::clone(&disk);
            thread::spawn(move || {
                let mut inode = disk.inodes[id % INODES].lock().unwrap();
                if *inode == 0 {
                    let mut block = id * 2 % BLOCKS;
                    loop {
                        let mut busy = disk.busy[block].lock().unwrap();
                        if !*busy {
                            *busy = true;
                            *inode = block + 1;
                            break;
                        }
                        block = (block + 1) % BLOCKS;
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_writer_and_readers_have_a_schedule_for_each_set_of_readers_that_come_first() {
    assert_eq!(executions(|| readers(2)), 4);
    assert_eq!(executions(|| readers(8)), 256);
}

#[test]
fn the_last_zero_is_looked_for_in_as_many_ways_as_are_known() {
    assert_eq!(executions(|| last_zero(5)), 64);
    assert_eq!(executions(|| last_zero(10)), 3_328);
}

#[test]
fn wake_up_trees_take_over_where_too_many_executions_are_given_up() {
    let program = program(|| last_zero(10));
    let source = explore(&program, Reduction::Source, 2);
    let optimal = explore(&program, Reduction::Optimal, 2);
    assert_eq!(optimal.executions, source.executions);
    let given_up = [source, optimal].map(|explored| explored.blocked_executions);
    assert!(given_up[0] > 2 * given_up[1], "{given_up:?}");
}

#[test]
fn the_indexer_has_as_many_schedules_as_are_known() {
    assert_eq!(executions(|| indexer(11)), 1);
    assert_eq!(executions(|| indexer(12)), 8);
}

#[test]
fn the_file_system_has_as_many_schedules_as_are_known() {
    assert_eq!(executions(|| file_system(13)), 1);
    assert_eq!(executions(|| file_system(14)), 2);
    assert_eq!(executions(|| file_system(16)), 8);
}

/// Three threads on two values, of which one thread goes from the one to the other.
fn one_after_the_other() {
    let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let adding = |adds: &'static [bool]| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            for &first in adds {
                let value = if first { &shared.0 } else { &shared.1 };
                value.fetch_add(1, SeqCst);
            }
        })
    };
    let threads = [
        adding(&[false]),
        adding(&[true, true]),
        adding(&[false, false, true]),
    ];
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn what_is_planned_is_compared_with_where_threads_are_by_then() {
    assert_eq!(executions(one_after_the_other), 9);
}

/// What a thread of a random program does.
#[derive(Clone, Copy, Debug)]
enum Act {
    Load(usize),
    Store(usize),
    Add(usize),
    Swap(usize),
    Lock(usize),
    TryLock(usize),
    Unlock,
    Wait(usize),
    WaitAWhile(usize),
    NotifyOne(usize),
    NotifyAll(usize),
    Park,
    ParkAWhile,
    Unpark(usize),
    Choose(usize),
    Yield,
}

struct Shared {
    cells: [AtomicUsize; 2],
    locks: [OurMutex<usize>; 2],
    changed: [OurCondvar; 2],
    threads: OnceLock<Vec<thread::Thread>>,
}

impl Shared {
    fn new() -> Self {
        Self {
            cells: [const { AtomicUsize::new(0) }; 2],
            locks: [const { OurMutex::new(0) }; 2],
            changed: [const { OurCondvar::new() }; 2],
            threads: OnceLock::new(),
        }
    }
}

std::thread_local! {
    /// All that the threads of the present execution have seen, in one number, whoever saw it first.
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

/// Takes note of what a thread sees at a certain place.
fn note(thread: usize, place: usize, seen: usize) {
    let seen = scatter(scatter((thread << 16 | place) as u64) ^ seen as u64);
    SEEN.set(SEEN.get().wrapping_add(seen));
}

/// Does what it is told. What it sees decides what it does next.
fn act(id: usize, acts: &[Act], shared: &Shared) {
    let mut held: Vec<(usize, crate::target::threads::sync::MutexGuard<'_, usize>)> = Vec::new();
    let mut seen = 0;
    for (place, &what) in acts.iter().enumerate() {
        match what {
            Act::Load(cell) => seen = shared.cells[cell].load(SeqCst),
            Act::Store(cell) => shared.cells[cell].store(seen + 1, SeqCst),
            Act::Add(cell) => seen = shared.cells[cell].fetch_add(1, SeqCst),
            Act::Swap(cell) => {
                let swapped = shared.cells[cell].compare_exchange(seen, seen + 1, SeqCst, SeqCst);
                seen = usize::from(swapped.is_ok());
            }
            Act::Lock(lock) => {
                if held.iter().all(|(other, _)| *other != lock) {
                    let mut guard = shared.locks[lock].lock().unwrap();
                    *guard += 1;
                    held.push((lock, guard));
                }
            }
            Act::TryLock(lock) => {
                if let Ok(guard) = shared.locks[lock].try_lock() {
                    seen = *guard;
                    held.push((lock, guard));
                }
            }
            Act::Unlock => drop(held.pop()),
            Act::Wait(lock) | Act::WaitAWhile(lock) => {
                if let Some(at) = held.iter().position(|(other, _)| *other == lock) {
                    let (_, guard) = held.remove(at);
                    let condvar = &shared.changed[lock];
                    let guard = match what {
                        Act::Wait(_) => condvar.wait(guard).unwrap(),
                        _ => {
                            let time = std::time::Duration::from_secs(1);
                            let (guard, result) = condvar.wait_timeout(guard, time).unwrap();
                            seen = usize::from(result.timed_out());
                            guard
                        }
                    };
                    held.push((lock, guard));
                }
            }
            Act::NotifyOne(lock) => shared.changed[lock].notify_one(),
            Act::NotifyAll(lock) => shared.changed[lock].notify_all(),
            Act::Park => thread::park(),
            Act::ParkAWhile => thread::park_timeout(std::time::Duration::from_secs(1)),
            Act::Choose(among) => seen = crate::choose(among),
            Act::Unpark(other) => {
                let threads = shared
                    .threads
                    .get()
                    .expect("they are known before they run");
                threads[other % threads.len()].unpark();
            }
            Act::Yield => thread::yield_now(),
        }
        note(id, place, seen);
        if seen == 1 {
            shared.cells[0].store(7, SeqCst);
        }
    }
}

fn memory_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..2_usize).prop_map(Act::Load),
        (0..2_usize).prop_map(Act::Add),
        (0..2_usize).prop_map(Act::Lock),
        Just(Act::Unlock),
    ]
}

fn random_acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        (0..2_usize).prop_map(Act::Load),
        (0..2_usize).prop_map(Act::Store),
        (0..2_usize).prop_map(Act::Add),
        (0..2_usize).prop_map(Act::Swap),
        (0..2_usize).prop_map(Act::Lock),
        (0..2_usize).prop_map(Act::TryLock),
        Just(Act::Unlock),
        (0..2_usize).prop_map(Act::Wait),
        (0..2_usize).prop_map(Act::WaitAWhile),
        (0..2_usize).prop_map(Act::NotifyOne),
        (0..2_usize).prop_map(Act::NotifyAll),
        Just(Act::Park),
        (0..3_usize).prop_map(Act::Unpark),
        Just(Act::Yield),
    ];
    proptest::collection::vec(act, 1..4)
}

/// The threads wait for a gate before they begin, so that each knows the others.
fn run(threads: &[Vec<Act>]) {
    SEEN.set(0);
    let shared = Arc::new(Shared::new());
    let handles: Vec<_> = (0..)
        .zip(threads)
        .map(|(id, acts)| {
            let (acts, shared) = (acts.clone(), Arc::clone(&shared));
            thread::spawn(move || {
                thread::park();
                act(id, &acts, &shared);
            })
        })
        .collect();
    let known = handles.iter().map(|handle| handle.thread().clone());
    shared.threads.set(known.collect()).expect("it is set once");
    for handle in &handles {
        handle.thread().unpark();
    }
    for handle in handles {
        handle.join().unwrap();
    }
}

/// What happened in an execution, as it is and not as a number for it.
type History = Vec<HistoricEvent>;

/// Acts of threads that know nothing of each other.
fn short_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..2_usize).prop_map(Act::Load),
        (0..2_usize).prop_map(Act::Add),
        (1..4_usize).prop_map(Act::Choose),
        Just(Act::ParkAWhile),
    ]
}

/// The threads begin with what they do, and main with the acts of the first.
fn run_at_once(threads: &[Vec<Act>]) {
    SEEN.set(0);
    let shared = Arc::new(Shared::new());
    let start = |id: usize| {
        let (acts, shared) = (threads[id].clone(), Arc::clone(&shared));
        move || act(id, &acts, &shared)
    };
    let handles: Vec<_> = (1..threads.len())
        .map(|id| thread::spawn(start(id)))
        .collect();
    start(0)();
    for handle in handles {
        handle.join().unwrap();
    }
}

/// How an execution ended: what happened in it, whether all threads came to an end, and what they saw.
type Ending = (History, bool, u64);

/// How each execution ended; nothing if there are too many.
fn endings(
    program: &Arc<Program>,
    reduction: Reduction,
    workers: usize,
) -> (Explored, Vec<Ending>) {
    let seen = Mutex::new(Vec::new());
    let gauge = Gauge::up_to(3_000);
    let schedules = Schedules {
        program,
        reduction,
        longest: None,
        preemptions: None,
        gauge: &gauge,
        workers,
        watch: &|execution, finish| {
            assert!(
                matches!(finish, Finish::Complete | Finish::Stuck),
                "{finish:?}"
            );
            let complete = *finish == Finish::Complete;
            lock(&seen).push((execution.history(), complete, SEEN.get()));
            true
        },
    };
    let explored = schedules.explore();
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable();
    if gauge.cut().is_some() {
        seen.clear();
    }
    (explored, seen)
}

/// Each of these programs is run thousands of times, so fewer of them do.
fn cases() -> u32 {
    let cases = std::env::var("DRAGNET_CASES").ok();
    let cases: Option<u32> = cases.and_then(|text| text.parse().ok());
    (cases.unwrap_or(300) / 10).max(10)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_trace_of_a_random_program_is_run_once(threads in proptest::collection::vec(random_acts(), 2..4)) {
        check_traces(move || run(&threads))?;
    }

    #[test]
    fn every_trace_of_threads_that_wake_up_for_no_reason_is_run_once(
        threads in proptest::collection::vec(random_acts(), 2..4),
    ) {
        check_traces_of(&program_with(1, move || run(&threads)), false)?;
    }

    #[test]
    fn every_trace_that_few_interruptions_lead_to_is_run_once(
        threads in proptest::collection::vec(random_acts(), 2..4),
        preemptions in 0..3_u32,
    ) {
        let program = program(move || run(&threads));
        if let Some(all) = traces_within(&program, preemptions, Reduction::None, 1) {
            for workers in [1, 2] {
                let found = traces_within(&program, preemptions, Reduction::Optimal, workers);
                prop_assert_eq!(found.as_ref(), Some(&all), "{} workers", workers);
            }
        }
    }

    #[test]
    fn every_trace_of_threads_that_begin_with_a_choice_is_run_once(
        threads in proptest::collection::vec(proptest::collection::vec(short_act(), 1..3), 1..4),
        preemptions in 0..3_u32,
    ) {
        let program = program(move || run_at_once(&threads));
        check_traces_of(&program, false)?;
        if let Some(all) = traces_within(&program, preemptions, Reduction::None, 1) {
            for workers in [1, 2] {
                let found = traces_within(&program, preemptions, Reduction::Optimal, workers);
                prop_assert_eq!(found.as_ref(), Some(&all), "{} workers", workers);
            }
        }
    }

    #[test]
    fn every_trace_of_a_larger_program_is_run_once(
        threads in proptest::collection::vec(proptest::collection::vec(memory_act(), 1..5), 2..5),
    ) {
        check_traces(move || run(&threads))?;
    }
}

/// Found by chance among thousands.
#[test]
fn what_is_merged_into_a_plan_does_not_hide_another_race() {
    let threads = [
        vec![Act::Add(0), Act::Lock(0), Act::Lock(1)],
        vec![Act::Lock(1), Act::Add(1)],
        vec![Act::Load(1)],
        vec![Act::Lock(0), Act::Load(0)],
    ];
    check_traces(move || run(&threads)).unwrap();
}

/// The traces that so many interruptions lead to.
fn traces_within(
    program: &Arc<Program>,
    preemptions: u32,
    reduction: Reduction,
    workers: usize,
) -> Option<Vec<History>> {
    let seen = Mutex::new(Vec::new());
    let gauge = Gauge::up_to(10_000);
    let schedules = Schedules {
        program,
        reduction,
        longest: None,
        preemptions: Some(preemptions),
        gauge: &gauge,
        workers,
        watch: &|execution, _| {
            lock(&seen).push(execution.history());
            true
        },
    };
    schedules.explore();
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable();
    if reduction == Reduction::None {
        seen.dedup();
    }
    gauge.cut().is_none().then_some(seen)
}

/// Has every reduction run each trace of a program once, and see in it what is seen without a reduction.
fn check_traces(main: impl Fn() + Send + Sync + 'static) -> Result<(), TestCaseError> {
    check_traces_of(&program(main), true)
}

/// The same; `none_given_up` if no execution may be.
fn check_traces_of(program: &Arc<Program>, none_given_up: bool) -> Result<(), TestCaseError> {
    let (_, mut all) = endings(program, Reduction::None, 1);
    all.dedup();
    if all.is_empty() {
        // Too many interleavings: what remains is that the reductions agree.
        (_, all) = endings(program, Reduction::Sleep, 1);
    }
    if all.is_empty() {
        return Ok(());
    }
    for (reduction, workers) in [
        (Reduction::Sleep, 1),
        (Reduction::Source, 1),
        (Reduction::Optimal, 1),
        (Reduction::Sleep, 2),
        (Reduction::Source, 2),
        (Reduction::Optimal, 2),
    ] {
        let (explored, found) = endings(program, reduction, workers);
        prop_assert_eq!(&found, &all, "{} with {} workers", reduction, workers);
        if (reduction, workers) == (Reduction::Optimal, 1) && none_given_up {
            prop_assert_eq!(explored.blocked_executions, explored.questions);
        }
    }
    Ok(())
}
