//! Threads that change something in each turn.

use dragnet::engine::{Dpor, EngineName, Reduction};
use dragnet::sync::Arc;
use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::{Check, Outcome, Threads, thread};

#[test]
fn an_execution_without_end_is_no_hang() {
    let count = || {
        let stop = Arc::new(AtomicU32::new(0));
        let other = Arc::clone(&stop);
        let other = thread::spawn(move || other.store(1, SeqCst));
        while stop.load(SeqCst) == 0 {
            // One that nobody has seen before.
            AtomicU32::new(0).store(1, SeqCst);
        }
        other.join().unwrap();
    };
    let verdict = Check::new(Threads::new(count)).run();
    let Outcome::Inconclusive(why) = &verdict.outcome else {
        panic!("{verdict}");
    };
    assert!(why.contains("is there a loop without end at"), "{why}");
    assert!(why.contains("busy.rs"), "{why}");
}

/// What is known of loops decides who waits, and a trace has to bring it along.
#[test]
fn a_violation_beside_busy_threads_replays_where_nothing_is_known_of_loops() {
    fn main() {
        let shared = Arc::new([const { AtomicU32::new(0) }; 3]);
        let busy = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let [stop, ticks, _] = &*shared;
                while stop.load(SeqCst) == 0 {
                    ticks.fetch_add(1, SeqCst);
                    thread::yield_now();
                }
            })
        });
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            let before = other[2].load(SeqCst);
            other[2].store(before + 1, SeqCst);
        });
        let before = shared[2].load(SeqCst);
        shared[2].store(before + 1, SeqCst);
        other.join().unwrap();
        shared[0].store(1, SeqCst);
        for thread in busy {
            thread.join().unwrap();
        }
        assert_eq!(shared[2].load(SeqCst), 2, "an update is lost");
    }
    for engine in [EngineName::Dpor, EngineName::Random] {
        let check = || Check::new(Threads::new(main)).engine(engine);
        let verdict = check().run();
        let violation = verdict.violation().expect("an update is lost");
        let found = violation.counterexample.as_ref().expect("it is told");
        let replayed = check().replay(&found.trace).expect("it is the same");
        assert_eq!(replayed.violation, violation.describe());
    }
}

/// Each holds one lock and tries to get the other, and lets go of its own when it fails: both may do so again and again.
#[test]
fn two_threads_that_keep_each_other_from_going_on_are_named() {
    use dragnet::sync::Mutex;

    fn retry(first: &Mutex<u32>, second: &Mutex<u32>) {
        loop {
            let _first = first.lock().unwrap();
            if second.try_lock().is_ok() {
                return;
            }
        }
    }
    let verdict = Check::new(Threads::new(|| {
        let locks = Arc::new((Mutex::new(0), Mutex::new(0)));
        let others = Arc::clone(&locks);
        let other = thread::spawn(move || retry(&others.1, &others.0));
        retry(&locks.0, &locks.1);
        other.join().unwrap();
    }))
    .run();
    let Outcome::Inconclusive(why) = &verdict.outcome else {
        panic!("{verdict}");
    };
    assert!(
        why.contains("is there a loop without end at crates/dragnet/tests"),
        "{why}"
    );
}

/// What a thread does only when there is something to do is no part of its going round when there is nothing.
#[test]
fn workers_that_look_for_work_see_what_others_have_done() {
    use dragnet::sync::Mutex;

    let main = || {
        let (work, left) = (Mutex::new(vec![1, 2]), AtomicU32::new(2));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while left.load(SeqCst) > 0 {
                        let next = work.lock().unwrap().pop();
                        match next {
                            Some(_) => _ = left.fetch_sub(1, SeqCst),
                            None => thread::yield_now(),
                        }
                    }
                });
            }
        });
    };
    Check::new(Threads::new(main)).run().assert_holds();
}

/// Who waits for more than a thread that counts is followed to is not stuck.
#[test]
fn a_thread_that_counts_comes_as_far_as_others_wait_for() {
    for most in [3, 50, 150, 5_000] {
        let main = move || {
            let both = Arc::new([const { AtomicU32::new(0) }; 2]);
            let other = Arc::clone(&both);
            let other = thread::spawn(move || {
                while other[0].load(SeqCst) == 0 {
                    other[1].fetch_add(1, SeqCst);
                    thread::yield_now();
                }
            });
            while both[1].load(SeqCst) < most {
                thread::yield_now();
            }
            both[0].store(1, SeqCst);
            other.join().unwrap();
        };
        let verdict = Check::new(Threads::new(main)).run();
        assert!(verdict.violation().is_none(), "{most}: {verdict}");
    }
}

/// A program whose threads are told to stop or not.
type Stops = fn(bool);

/// Threads that change something in each turn until they are told to stop.
fn busy() -> [(&'static str, Stops); 6] {
    use dragnet::sync::Mutex;
    use std::collections::VecDeque;

    struct Shared {
        queue: Mutex<VecDeque<u32>>,
        slot: Mutex<Option<u32>>,
        count: AtomicU32,
        done: AtomicU32,
        stop: AtomicU32,
    }

    fn beside(workers: usize, stops: bool, work: fn(&Shared), main: fn(&Shared)) {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            slot: Mutex::default(),
            count: AtomicU32::new(0),
            done: AtomicU32::new(0),
            stop: AtomicU32::new(0),
        });
        let workers: Vec<_> = (0..workers)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    while shared.stop.load(SeqCst) == 0 {
                        work(&shared);
                        thread::yield_now();
                    }
                })
            })
            .collect();
        main(&shared);
        if stops {
            shared.stop.store(1, SeqCst);
        }
        for worker in workers {
            worker.join().unwrap();
        }
    }

    [
        ("one that counts", |stops| {
            let count = |shared: &Shared| _ = shared.count.fetch_add(1, SeqCst);
            beside(1, stops, count, |_| {});
        }),
        ("two that count together", |stops| {
            let count = |shared: &Shared| _ = shared.count.fetch_add(1, SeqCst);
            beside(2, stops, count, |_| {});
        }),
        ("one that takes from a queue", |stops| {
            let pop = |shared: &Shared| {
                if shared.queue.lock().unwrap().pop_front().is_some() {
                    shared.done.fetch_add(1, SeqCst);
                }
            };
            beside(1, stops, pop, |shared| {
                shared.queue.lock().unwrap().push_back(1);
                while shared.done.load(SeqCst) == 0 {
                    thread::yield_now();
                }
            });
        }),
        ("two that take from a queue", |stops| {
            let pop = |shared: &Shared| _ = shared.queue.lock().unwrap().pop_front();
            beside(2, stops, pop, |shared| {
                shared.queue.lock().unwrap().push_back(1);
            });
        }),
        ("one that empties a queue for who waits for that", |stops| {
            let pop = |shared: &Shared| _ = shared.queue.lock().unwrap().pop_front();
            beside(1, stops, pop, |shared| {
                shared.queue.lock().unwrap().push_back(1);
                while !shared.queue.lock().unwrap().is_empty() {
                    thread::yield_now();
                }
            });
        }),
        ("one that takes what is there", |stops| {
            let take = |shared: &Shared| _ = shared.slot.lock().unwrap().take();
            beside(1, stops, take, |shared| {
                *shared.slot.lock().unwrap() = Some(1)
            });
        }),
    ]
}

#[test]
fn threads_that_change_something_until_they_are_stopped_have_an_end_of_schedules() {
    for (what, main) in busy() {
        for reduction in [Reduction::Source, Reduction::Optimal] {
            let verdict = Check::new(Threads::new(move || main(true)))
                .engine(Dpor::new().reduction(reduction))
                .run();
            assert!(verdict.holds(), "{what}: {verdict}");
            println!("{what}: {verdict}");
        }
    }
}

#[test]
fn threads_that_change_something_and_are_never_stopped_are_named() {
    for (what, main) in busy() {
        let verdict = Check::new(Threads::new(move || main(false))).run();
        match &verdict.outcome {
            Outcome::Violated(violation) => {
                let told = violation.describe();
                assert!(told.contains("goes round"), "{what}: {told}");
            }
            // Each sees that the other counts, and might stop at some number.
            Outcome::Inconclusive(why) if what == "two that count together" => {
                assert!(why.contains("threads that spin (at crates/"), "{why}");
            }
            _ => panic!("{what}: {verdict}"),
        }
    }
}

#[test]
fn turns_that_come_again_and_again_are_told_the_first_time_and_the_last() {
    let count = || {
        let count = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&count);
        let counts = thread::spawn(move || {
            for _ in 0..2_000 {
                counted.fetch_add(1, SeqCst);
            }
        });
        counts.join().unwrap();
        assert_eq!(count.load(SeqCst), 1);
    };
    let verdict = Check::new(Threads::new(count)).run();
    let told = verdict.to_string();
    assert!(
        told.contains("the same step, with other numbers, 1,998 times more"),
        "{told}"
    );
    assert!(told.contains("1999 to 2000"), "{told}");
    assert!(told.lines().count() < 40, "{told}");
}

#[test]
fn several_workers_learn_the_same_of_a_loop_as_one() {
    let program = || {
        let shared = Arc::new([const { AtomicU32::new(0) }; 3]);
        let worker = Arc::clone(&shared);
        let worker = thread::spawn(move || {
            let [stop, count, round] = &*worker;
            round.load(SeqCst);
            while stop.load(SeqCst) == 0 {
                count.fetch_add(1, SeqCst);
                thread::yield_now();
            }
        });
        let [stop, _, round] = &*shared;
        for number in 0..4 {
            round.store(number, SeqCst);
        }
        stop.store(1, SeqCst);
        worker.join().unwrap();
    };
    for reduction in [Reduction::Source, Reduction::Optimal] {
        for workers in [1, 2, 4, 2, 4] {
            let check = Check::new(Threads::new(program)).engine(Dpor::new().reduction(reduction));
            let verdict = check.threads(workers).run();
            let work = verdict.statistics.schedules;
            let executions = work.expect("it runs schedules").executions;
            verdict.assert_holds();
            assert_eq!(executions, 20, "{reduction}, {workers} workers");
        }
    }
}
