//! Random numbers under a check.

use std::collections::BTreeSet;
use std::env;
use std::process::Command;
use std::sync::{Arc, Mutex};

use dragnet::future::{block_on, join, spawn};
use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::{Check, Outcome, Threads, Verdict, rand, thread};

/// What each of two threads draws, in every execution of a program that has several.
fn drawn(seed: Option<u64>) -> (Verdict, BTreeSet<[Vec<u64>; 2]>) {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let all = Arc::clone(&seen);
    let threads = Threads::new(move || {
        let shared = Arc::new(AtomicU32::new(0));
        let draw = |shared: Arc<AtomicU32>| -> Vec<u64> {
            let numbers = (0..3).map(|_| {
                shared.fetch_add(1, SeqCst);
                rand::random()
            });
            numbers.collect()
        };
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || draw(other));
        let here = draw(shared);
        let there = other.join().unwrap();
        all.lock().unwrap().insert([here, there]);
    });
    let threads = match seed {
        Some(seed) => threads.seed(seed),
        None => threads,
    };
    let verdict = Check::new(threads).run();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (verdict, seen)
}

#[test]
fn numbers_are_the_same_in_every_execution_and_every_check() {
    let (verdict, seen) = drawn(None);
    verdict.assert_holds();
    let work = verdict.statistics.schedules.as_ref().unwrap();
    assert_eq!(
        work.executions, 20,
        "six steps, three of them of one thread"
    );
    assert_eq!(
        seen.len(),
        1,
        "the schedule decides nothing about the numbers"
    );
    assert_eq!(drawn(None).1, seen);
    assert_eq!(
        drawn(Some(0)).1,
        seen,
        "0 is the seed unless said otherwise"
    );
}

#[test]
fn threads_draw_different_numbers_and_so_do_seeds() {
    let numbers = |seed| {
        let (_, seen) = drawn(Some(seed));
        seen.into_iter().flatten().flatten()
    };
    let all: BTreeSet<u64> = (0..10).flat_map(numbers).collect();
    assert_eq!(all.len(), 60, "no number comes twice");
}

#[test]
fn numbers_are_the_same_in_every_process() {
    let (_, seen) = drawn(Some(7));
    let here = format!("{seen:?}");
    if env::var_os("DRAGNET_CHILD").is_some() {
        println!("drawn: {here}");
        return;
    }
    let child = Command::new(env::current_exe().unwrap())
        .args([
            "numbers::numbers_are_the_same_in_every_process",
            "--exact",
            "--nocapture",
        ])
        .env("DRAGNET_CHILD", "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&child.stdout);
    assert!(
        told.contains(&format!("drawn: {here}")),
        "{here}, not {told}"
    );
}

#[test]
fn a_verdict_says_which_seed_it_speaks_of_where_numbers_were_drawn() {
    assert_eq!(drawn(Some(3)).0.within, ["the random numbers of seed 3"]);
    let none = Check::new(Threads::new(|| {}).seed(3)).run();
    assert_eq!(none.outcome, Outcome::Holds);
    assert!(none.within.is_empty(), "{:?}", none.within);
}

#[test]
fn what_a_random_number_does_is_found_and_replays() {
    let check = || {
        Check::new(Threads::new(|| {
            let tasks = [(); 2].map(|()| spawn(async { rand::rng().below(1_000_000) }));
            let [one, other] = tasks;
            let (one, other) = block_on(join(one, other));
            assert_eq!(one.unwrap(), other.unwrap(), "they differ");
        }))
    };
    let verdict = check().run();
    let violation = verdict.violation().expect("tasks draw different numbers");
    let counterexample = violation.counterexample.as_ref().unwrap();
    let replay = check().replay(&counterexample.trace).unwrap();
    assert_eq!(replay.property, "panic");
}

#[test]
fn every_kind_of_number_can_be_drawn() {
    Check::new(Threads::new(|| {
        let mut rng = rand::rng();
        assert!((0.0..1.0).contains(&rand::random::<f32>()));
        assert!((0.0..1.0).contains(&rand::random::<f64>()));
        let coins: BTreeSet<bool> = (0..100).map(|_| rand::random()).collect();
        assert_eq!(coins.len(), 2);
        let mut deck: Vec<u32> = (0..52).collect();
        rng.shuffle(&mut deck);
        let different: BTreeSet<u32> = deck.iter().copied().collect();
        assert_eq!(different.len(), 52);
        let mut bytes = [0; 5];
        rng.fill_bytes(&mut bytes);
        assert_ne!(bytes, [0; 5]);
        assert!((-3..3).contains(&rng.range(-3..3)));
        assert_ne!(rng.next_u32(), rng.next_u32());
    }))
    .run()
    .assert_holds();
}

#[cfg(feature = "rand_core")]
#[test]
fn it_is_a_generator_for_the_crate_rand() {
    fn two(rng: &mut impl rand_core::Rng) -> [u64; 2] {
        [rng.next_u64(), rng.next_u64()]
    }
    Check::new(Threads::new(|| {
        let [one, other] = two(&mut rand::rng());
        assert_ne!(one, other);
    }))
    .run()
    .assert_holds();
}
