//! Random programs whose threads go round until something has changed, or for good.

use std::time::Duration;

use super::*;
use crate::target::threads::sync::RwLock;

#[derive(Clone, Copy, Debug)]
enum Act {
    Load(usize),
    Add(usize),
    AddLocked(usize),
    AddWritten,
    Hold(usize),
    NotifyAll,
    /// Goes round until a value is no longer zero.
    Until(usize),
    /// The same with whichever of two comes first.
    UntilEither,
    UntilLocked(usize),
    UntilTried(usize),
    UntilRead,
    UntilNotified,
    /// Sets a flag for as long as it adds to something.
    Spin(usize),
    /// Looks a few times whether a value is no longer zero, and gives up.
    Tries(usize),
    /// Goes round until a value is no longer zero, and adds to another one in each turn.
    Ticks(usize),
    /// The same under a lock, as if it changed what is there.
    Polls(usize),
}

struct Shared {
    cells: [AtomicUsize; 2],
    flag: AtomicUsize,
    ticks: AtomicUsize,
    locks: [OurMutex<usize>; 2],
    changed: OurCondvar,
    written: RwLock<usize>,
}

/// Calls `look` until it sees something, which it gives, with how often it saw nothing before.
fn until(yields: bool, mut look: impl FnMut() -> usize) -> usize {
    let mut turns = 0;
    loop {
        let seen = look();
        if seen > 0 {
            return seen << 16 | turns;
        }
        turns += 1;
        if yields {
            thread::yield_now();
        }
    }
}

fn act(id: usize, acts: &[Act], shared: &Shared) {
    for (place, &what) in acts.iter().enumerate() {
        let seen = match what {
            Act::Load(cell) => shared.cells[cell].load(SeqCst),
            Act::Add(cell) => shared.cells[cell].fetch_add(1, SeqCst),
            Act::AddLocked(lock) => {
                let mut guard = shared.locks[lock].lock().unwrap();
                *guard += 1;
                *guard
            }
            Act::AddWritten => {
                *shared.written.write().unwrap() += 1;
                0
            }
            Act::Hold(lock) => {
                let guard = shared.locks[lock].lock().unwrap();
                shared.cells[0].load(SeqCst) + *guard
            }
            Act::NotifyAll => {
                shared.changed.notify_all();
                0
            }
            Act::Until(cell) => until(true, || shared.cells[cell].load(SeqCst)),
            Act::UntilEither => until(true, || {
                let one = shared.cells[0].load(SeqCst);
                one + 2 * shared.cells[1].load(SeqCst)
            }),
            Act::UntilLocked(lock) => until(true, || *shared.locks[lock].lock().unwrap()),
            Act::UntilTried(lock) => until(true, || match shared.locks[lock].try_lock() {
                Ok(guard) => *guard,
                Err(_) => 0,
            }),
            Act::UntilRead => until(true, || *shared.written.read().unwrap()),
            Act::UntilNotified => {
                let mut guard = shared.locks[0].lock().unwrap();
                let mut turns = 0;
                while *guard == 0 {
                    let time = Duration::from_secs(1);
                    guard = shared.changed.wait_timeout(guard, time).unwrap().0;
                    turns += 1;
                }
                turns
            }
            Act::Spin(cell) => {
                let turns = until(true, || 1 - shared.flag.swap(1, SeqCst));
                let seen = shared.cells[cell].fetch_add(1, SeqCst);
                shared.flag.store(0, SeqCst);
                turns + seen
            }
            Act::Tries(cell) => {
                let mut looks = (0..5).map(|_| {
                    thread::yield_now();
                    shared.cells[cell].load(SeqCst)
                });
                looks.position(|seen| seen > 0).unwrap_or(5)
            }
            Act::Ticks(cell) => until(true, || {
                shared.ticks.fetch_add(1, SeqCst);
                shared.cells[cell].load(SeqCst)
            }),
            Act::Polls(lock) => until(true, || {
                let mut guard = shared.locks[lock].lock().unwrap();
                let value: &mut usize = &mut guard;
                *value
            }),
        };
        note(id, place, seen);
    }
}

fn random_acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        1 => (0..2_usize).prop_map(Act::Load),
        2 => (0..2_usize).prop_map(Act::Add),
        1 => (0..2_usize).prop_map(Act::AddLocked),
        1 => Just(Act::AddWritten),
        1 => (0..2_usize).prop_map(Act::Hold),
        1 => Just(Act::NotifyAll),
        2 => (0..2_usize).prop_map(Act::Until),
        2 => Just(Act::UntilEither),
        1 => (0..2_usize).prop_map(Act::UntilLocked),
        1 => (0..2_usize).prop_map(Act::UntilTried),
        1 => Just(Act::UntilRead),
        1 => Just(Act::UntilNotified),
        1 => (0..2_usize).prop_map(Act::Spin),
        2 => (0..2_usize).prop_map(Act::Tries),
        1 => (0..2_usize).prop_map(Act::Ticks),
        1 => (0..2_usize).prop_map(Act::Polls),
    ];
    proptest::collection::vec(act, 1..3)
}

/// What nobody goes round on any more after.
const ENOUGH: [Act; 5] = [
    Act::Add(0),
    Act::Add(1),
    Act::AddLocked(0),
    Act::AddLocked(1),
    Act::AddWritten,
];

/// The first thread sees to it that all come to an end.
fn run(threads: &[Vec<Act>]) {
    SEEN.set(0);
    let shared = Arc::new(Shared {
        cells: [const { AtomicUsize::new(0) }; 2],
        flag: AtomicUsize::new(0),
        ticks: AtomicUsize::new(0),
        locks: [const { OurMutex::new(0) }; 2],
        changed: OurCondvar::new(),
        written: RwLock::new(0),
    });
    let handles: Vec<_> = (0..)
        .zip(threads)
        .map(|(id, acts)| {
            let (acts, shared) = (acts.clone(), Arc::clone(&shared));
            thread::spawn(move || act(id, &acts, &shared))
        })
        .collect();
    act(handles.len(), &ENOUGH, &shared);
    for handle in handles {
        handle.join().unwrap();
    }
}

/// What was seen in all executions, and which of them came to an end.
fn sights(
    program: &Arc<Program>,
    reduction: Reduction,
    workers: usize,
) -> (Explored, Vec<(bool, u64)>) {
    let (explored, endings) = loop {
        let known = program.loops.revision();
        let found = endings(program, reduction, workers);
        // What was run before something was learnt of loops went otherwise.
        if program.loops.revision() == known {
            break found;
        }
    };
    let mut sights: Vec<_> = endings
        .into_iter()
        .map(|(_, complete, seen)| (complete, seen))
        .collect();
    sights.sort_unstable();
    sights.dedup();
    (explored, sights)
}

/// What the reductions see of a program whose threads go round, but for one whose executions are too many.
fn check_sights(program: &Arc<Program>) -> Result<(), TestCaseError> {
    let (explored, all) = sights(program, Reduction::Sleep, 1);
    prop_assert!(explored.found.is_none() && explored.endless_at.is_none());
    for (reduction, workers) in [
        (Reduction::None, 1),
        (Reduction::Source, 1),
        (Reduction::Optimal, 1),
        (Reduction::Source, 2),
    ] {
        let (explored, found) = sights(program, reduction, workers);
        prop_assert!(explored.found.is_none() && explored.endless_at.is_none());
        let too_many = explored.executions >= 3_000;
        if !all.is_empty() && !too_many {
            prop_assert_eq!(&found, &all, "{} with {} workers", reduction, workers);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases() / 2, failure_persistence: None, ..ProptestConfig::default() })]

    /// Threads that go round go on whichever comes first, so that their executions are not counted.
    #[test]
    fn threads_that_go_round_see_the_same_with_every_reduction(
        threads in proptest::collection::vec(random_acts(), 2..4),
        turns in 1..3_u32,
    ) {
        let program = program_set(|setting| setting.fruitless_turns = turns, move || run(&threads));
        check_sights(&program)?;
    }
}

/// Found by chance among thousands: both loops begin with the same, and what the first one has seen changes again.
#[test]
fn a_loop_that_begins_like_one_before_it_waits_too() {
    let threads = [vec![Act::Add(0)], vec![Act::Ticks(0), Act::Ticks(1)]];
    let program = program_set(|setting| setting.fruitless_turns = 1, move || run(&threads));
    check_sights(&program).unwrap();
}
