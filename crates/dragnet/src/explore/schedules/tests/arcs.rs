//! Reference counts that are seen.

use super::*;
use crate::target::threads::arc::{Arc as OurArc, Weak};

/// Comes to an operation when it is dropped.
struct Loud(AtomicUsize);

impl Drop for Loud {
    fn drop(&mut self) {
        note(99, 0, self.0.load(SeqCst));
    }
}

fn owners<T: Send + Sync + 'static>(count: usize, value: impl Fn() -> T) {
    let shared = OurArc::new(value());
    let threads: Vec<_> = (0..count)
        .map(|_| {
            let shared = OurArc::clone(&shared);
            thread::spawn(move || drop(shared))
        })
        .collect();
    drop(shared);
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn drops_commute_where_nothing_comes_of_the_last() {
    assert_eq!(executions(|| owners(5, || AtomicUsize::new(0))), 1);
    assert_eq!(executions(|| owners(5, || vec![0; 3])), 1);
}

#[test]
fn each_owner_is_the_last_where_the_destructor_does_something() {
    let loud = || Loud(AtomicUsize::new(0));
    for count in 1..5 {
        assert_eq!(executions(move || owners(count, loud)), count as u64 + 1);
    }
}

#[test]
fn programs_of_the_literature_have_as_many_schedules_with_counts_that_are_seen() {
    let readers = |count: usize| {
        let shared = OurArc::new(AtomicUsize::new(0));
        let writer = OurArc::clone(&shared);
        let writer = thread::spawn(move || writer.store(1, SeqCst));
        let readers: Vec<_> = (0..count)
            .map(|_| {
                let shared = OurArc::clone(&shared);
                thread::spawn(move || shared.load(SeqCst))
            })
            .collect();
        writer.join().unwrap();
        for reader in readers {
            reader.join().unwrap();
        }
    };
    assert_eq!(executions(move || readers(8)), 256);
}

#[test]
fn a_count_that_is_read_is_read_at_each_of_its_values() {
    let seen = |program: fn()| executions(program);
    assert_eq!(
        seen(|| {
            let shared = OurArc::new(());
            let other = OurArc::clone(&shared);
            let other = thread::spawn(move || drop(other));
            note(0, 0, OurArc::strong_count(&shared));
            other.join().unwrap();
        }),
        2
    );
    assert_eq!(
        seen(|| {
            let shared = OurArc::new(());
            let weak = OurArc::downgrade(&shared);
            let other = thread::spawn(move || weak.upgrade().is_some());
            drop(shared);
            other.join().unwrap();
        }),
        2
    );
}

/// What a thread of a random program does with its owners.
#[derive(Clone, Copy, Debug)]
enum Move {
    Clone,
    Drop,
    Count,
    Downgrade,
    Upgrade,
    Load,
    Store,
    Unwrap,
    Inner,
    Unique,
    MakeMut,
}

struct Value {
    loud: Option<Loud>,
    cell: AtomicUsize,
}

impl Clone for Value {
    fn clone(&self) -> Self {
        Self {
            loud: self.loud.as_ref().map(|_| Loud(AtomicUsize::new(0))),
            cell: AtomicUsize::new(self.cell.load(SeqCst)),
        }
    }
}

fn random_moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        Just(Move::Clone),
        Just(Move::Drop),
        Just(Move::Drop),
        Just(Move::Count),
        Just(Move::Downgrade),
        Just(Move::Upgrade),
        Just(Move::Load),
        Just(Move::Store),
        Just(Move::Unwrap),
        Just(Move::Inner),
        Just(Move::Unique),
        Just(Move::MakeMut),
    ];
    proptest::collection::vec(one, 0..4)
}

fn do_moves(id: usize, moves: &[Move], mut owners: Vec<OurArc<Value>>) {
    let mut weak: Option<Weak<Value>> = None;
    for (place, &what) in moves.iter().enumerate() {
        if owners.is_empty() {
            if let (Move::Upgrade, Some(weak)) = (what, &weak) {
                let upgraded = weak.upgrade();
                note(id, place, usize::from(upgraded.is_some()));
                owners.extend(upgraded);
            }
            continue;
        }
        match what {
            Move::Clone => {
                let clone = OurArc::clone(&owners[0]);
                owners.push(clone);
            }
            Move::Drop => drop(owners.pop()),
            Move::Count => note(id, place, OurArc::strong_count(&owners[0])),
            Move::Downgrade => weak = Some(OurArc::downgrade(&owners[0])),
            Move::Upgrade => {
                if let Some(weak) = &weak {
                    owners.extend(weak.upgrade());
                }
            }
            Move::Load => note(id, place, owners[0].cell.load(SeqCst)),
            Move::Store => owners[0].cell.store(id + 1, SeqCst),
            Move::Unwrap => {
                let owner = owners.pop().expect("there is one");
                match OurArc::try_unwrap(owner) {
                    Ok(_) => note(id, place, 1),
                    Err(owner) => owners.push(owner),
                }
            }
            Move::Inner => {
                let inner = OurArc::into_inner(owners.pop().expect("there is one"));
                note(id, place, usize::from(inner.is_some()));
            }
            Move::Unique => {
                let unique = OurArc::get_mut(&mut owners[0]).is_some();
                note(id, place, usize::from(unique));
            }
            Move::MakeMut => {
                let before = OurArc::as_ptr(&owners[0]);
                OurArc::make_mut(&mut owners[0]);
                let stays = before == OurArc::as_ptr(&owners[0]);
                note(id, place, usize::from(stays));
            }
        }
    }
}

fn run_moves(threads: &[Vec<Move>], is_loud: bool) {
    SEEN.set(0);
    let shared = OurArc::new(Value {
        loud: is_loud.then(|| Loud(AtomicUsize::new(0))),
        cell: AtomicUsize::new(0),
    });
    assert_eq!(shared.loud.is_some(), is_loud);
    let handles: Vec<_> = (1..)
        .zip(threads)
        .map(|(id, moves)| {
            let (moves, owner) = (moves.clone(), OurArc::clone(&shared));
            thread::spawn(move || do_moves(id, &moves, vec![owner]))
        })
        .collect();
    drop(shared);
    for handle in handles {
        handle.join().unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_trace_of_owners_whose_value_does_something_in_the_end_is_run_once(
        threads in proptest::collection::vec(random_moves(), 1..4),
    ) {
        let program = program(move || run_moves(&threads, true));
        let (_, mut all) = endings(&program, Reduction::None, 1);
        all.dedup();
        if all.is_empty() {
            (_, all) = endings(&program, Reduction::Sleep, 1);
        }
        if all.is_empty() {
            return Ok(());
        }
        for reduction in [Reduction::Sleep, Reduction::Source, Reduction::Optimal] {
            for workers in [1, 2] {
                let (explored, mut found) = endings(&program, reduction, workers);
                // What was begun with wake-up trees is begun anew with source sets.
                prop_assert_eq!(explored.executions, all.len() as u64, "{} with {}", reduction, workers);
                found.dedup();
                prop_assert_eq!(&found, &all, "{} with {} workers", reduction, workers);
            }
        }
    }

    #[test]
    fn every_trace_of_owners_whose_value_does_nothing_in_the_end_is_run(
        threads in proptest::collection::vec(random_moves(), 1..4),
    ) {
        let program = program(move || run_moves(&threads, false));
        let (_, mut all) = endings(&program, Reduction::None, 1);
        all.dedup();
        if !all.is_empty() {
            for workers in [1, 2] {
                let (_, mut found) = endings(&program, Reduction::Optimal, workers);
                // A sleeping drop that has become the last is woken before it is known whether its destructor comes to an
                // operation, so a trace can be run twice.
                found.dedup();
                prop_assert_eq!(&found, &all, "{} workers", workers);
            }
        }
    }
}
