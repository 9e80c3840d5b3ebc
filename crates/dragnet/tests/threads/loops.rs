//! Loops that wait for others, give up, or never end.

use dragnet::sync::Arc;
use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::time::Duration;
use dragnet::{Check, Engine, Outcome, Reduction, Threads, thread};

use crate::described;

#[test]
fn a_loop_that_waits_for_another_thread_has_an_end_of_schedules() {
    let check = || {
        Check::new(Threads::new(|| {
            let ready = Arc::new(AtomicU32::new(0));
            let other = Arc::clone(&ready);
            let other = thread::spawn(move || other.store(1, SeqCst));
            while ready.load(SeqCst) == 0 {}
            other.join().unwrap();
        }))
    };
    for reduction in Reduction::ALL {
        let verdict = check().reduction(reduction).run();
        verdict.assert_holds();
        println!("{verdict}");
    }
}

#[test]
fn a_loop_that_waits_for_what_never_comes_is_named() {
    let verdict = Check::new(Threads::new(|| {
        let ready = Arc::new(AtomicU32::new(0));
        let other = Arc::clone(&ready);
        thread::spawn(move || {
            while other.compare_exchange(1, 2, SeqCst, SeqCst).is_err() {
                thread::yield_now();
            }
        });
    }))
    .run();
    let described = verdict.violation().expect("it never ends").describe();
    println!("{verdict}");
    assert!(described.contains("goes round"), "{described}");
}

#[test]
fn a_loop_that_gives_up_is_followed_to_its_end_when_nobody_else_can_go_on() {
    Check::new(Threads::new(|| {
        let ready = AtomicU32::new(0);
        for _ in 0..20 {
            if ready.load(SeqCst) == 1 {
                return;
            }
        }
    }))
    .run()
    .assert_holds();
}

/// A thread looks so often, one after the other, whether something has come, and gives up.
fn looks(times: u32, yields: bool) {
    let come = Arc::new(AtomicU32::new(0));
    let other = Arc::clone(&come);
    let other = thread::spawn(move || other.store(1, SeqCst));
    let mut seen = 0;
    for _ in 0..times {
        seen += come.load(SeqCst);
        if yields {
            thread::yield_now();
        }
    }
    other.join().unwrap();
    assert_ne!(seen, 0, "it has given up");
}

#[test]
fn a_short_loop_that_does_not_yield_is_followed_to_its_end() {
    for reduction in [Reduction::None, Reduction::Source, Reduction::Optimal] {
        let told = described(Check::new(Threads::new(|| looks(4, false))).reduction(reduction));
        assert!(told.contains("it has given up"), "{told}");
    }
}

#[test]
fn every_engine_follows_a_loop_that_ends_by_itself() {
    for engine in [Engine::Schedules, Engine::Breadth, Engine::Depth] {
        let told = described(Check::new(Threads::new(|| looks(5, true))).engine(engine));
        assert!(told.contains("it has given up"), "{engine}: {told}");
    }
    for reduction in Reduction::ALL {
        let check = Check::new(Threads::new(|| looks(40, true))).reduction(reduction);
        let told = described(check);
        assert!(told.contains("it has given up"), "{reduction}: {told}");
    }
}

#[test]
fn a_loop_that_ends_by_itself_very_late_is_not_left_out_silently() {
    for engine in [Engine::Schedules, Engine::Depth] {
        let verdict = Check::new(Threads::new(|| looks(1_500, true)))
            .engine(engine)
            .run();
        let Outcome::Inconclusive(why) = &verdict.outcome else {
            panic!("{engine}: {verdict}");
        };
        let advice = "Threads::fruitless_turns(1500) follows it";
        assert!(why.contains(advice), "{engine}: {why}");
    }
}

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
    assert!(why.contains("loops.rs"), "{why}");
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
    for engine in [Engine::Schedules, Engine::Random] {
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

#[test]
fn a_loop_that_is_another_in_each_execution_is_no_hang() {
    use std::sync::atomic::AtomicU32 as Real;

    static RUNS: Real = Real::new(0);

    fn deep_down(calls: u32, look: &dyn Fn() -> u32) {
        let kept = std::hint::black_box([calls; 8]);
        if calls > 0 {
            deep_down(calls - 1, look);
        }
        std::hint::black_box(&kept);
        while calls == 0 && look() == 0 {
            thread::yield_now();
        }
    }
    let main = || {
        let come = Arc::new(AtomicU32::new(0));
        let other = Arc::clone(&come);
        let other = thread::spawn(move || other.store(1, SeqCst));
        deep_down(RUNS.fetch_add(1, SeqCst), &|| come.load(SeqCst));
        other.join().unwrap();
    };
    let verdict = Check::new(Threads::new(main)).run();
    let Outcome::Inconclusive(why) = &verdict.outcome else {
        panic!("{verdict}");
    };
    assert!(why.contains("did not do the same"), "{why}");
}

#[test]
fn a_loop_without_operations_is_named() {
    let threads = Threads::new(|| {
        let stop = std::sync::atomic::AtomicBool::new(false);
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    });
    let described = described(Check::new(threads.patience(Duration::from_secs(1))));
    assert!(
        described.starts_with("main has done nothing for 1s"),
        "{described}"
    );
}

/// A program that waits for something, which comes or not.
type Waits = fn(bool);

/// Loops that look whether something has come, under a lock or by setting a flag that is set.
fn polls() -> [(&'static str, Waits); 7] {
    use dragnet::sync::atomic::AtomicBool;
    use dragnet::sync::{Condvar, LazyLock, Mutex, RwLock};

    fn beside<T: Send + Sync + 'static>(shared: T, comes: bool, come: fn(&T), wait: fn(&T)) {
        let shared = Arc::new(shared);
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            if comes {
                come(&other);
            }
        });
        wait(&shared);
        other.join().unwrap();
    }

    [
        ("a mutex", |comes| {
            let come = |come: &Mutex<bool>| *come.lock().unwrap() = true;
            beside(Mutex::new(false), comes, come, |come| {
                while !*come.lock().unwrap() {
                    thread::yield_now();
                }
            });
        }),
        ("a mutex that is tried", |comes| {
            let come = |come: &Mutex<bool>| *come.lock().unwrap() = true;
            beside(Mutex::new(false), comes, come, |come| {
                while !come.try_lock().is_ok_and(|come| *come) {}
            });
        }),
        ("a lock for readers", |comes| {
            let come = |come: &RwLock<bool>| *come.write().unwrap() = true;
            beside(RwLock::new(false), comes, come, |come| {
                while !*come.read().unwrap() {
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }),
        ("a condition variable, for a while each time", |comes| {
            let shared = (Mutex::new(false), Condvar::new());
            let come = |(come, _): &(Mutex<bool>, Condvar)| *come.lock().unwrap() = true;
            beside(shared, comes, come, |(come, changed)| {
                let mut come = come.lock().unwrap();
                while !*come {
                    let waited = changed.wait_timeout(come, Duration::from_millis(1));
                    come = waited.unwrap().0;
                }
            });
        }),
        ("a condition variable, while something is not so", |comes| {
            let shared = (Mutex::new(false), Condvar::new());
            let come = |(come, _): &(Mutex<bool>, Condvar)| *come.lock().unwrap() = true;
            beside(shared, comes, come, |(come, changed)| {
                let mut guard = come.lock().unwrap();
                loop {
                    let time = Duration::from_millis(1);
                    let waited = changed.wait_timeout_while(guard, time, |come| !*come);
                    let (back, result) = waited.unwrap();
                    if !result.timed_out() {
                        break;
                    }
                    guard = back;
                }
            });
        }),
        ("what is made when it is first asked for", |comes| {
            let come = |come: &(LazyLock<u32>, AtomicU32)| come.1.store(*come.0, SeqCst);
            let shared = (LazyLock::new((|| 1) as fn() -> u32), AtomicU32::new(0));
            beside(
                shared,
                comes,
                come,
                |(one, come)| {
                    while come.load(SeqCst) != **one {}
                },
            );
        }),
        ("a flag that is set again and again", |comes| {
            let come = |taken: &AtomicBool| taken.store(false, SeqCst);
            beside(AtomicBool::new(true), comes, come, |taken| {
                while taken.swap(true, SeqCst) {}
            });
        }),
    ]
}

#[test]
fn loops_that_look_under_a_lock_have_an_end_of_schedules() {
    for (what, main) in polls() {
        for reduction in [Reduction::Source, Reduction::Optimal] {
            let verdict = Check::new(Threads::new(move || main(true)))
                .reduction(reduction)
                .run();
            assert!(verdict.holds(), "{what}: {verdict}");
        }
    }
}

#[test]
fn loops_that_look_in_vain_under_a_lock_are_named() {
    for (what, main) in polls() {
        let verdict = Check::new(Threads::new(move || main(false))).run();
        let violation = verdict.violation();
        let told = violation.map(|violation| violation.describe());
        let told = told.unwrap_or_else(|| panic!("{what}: {verdict}"));
        assert!(told.contains("goes round until it does"), "{what}: {told}");
    }
}

/// Two threads take turns by a flag that is set for as long as one of them does something.
#[test]
fn a_lock_made_of_a_flag_excludes() {
    use dragnet::sync::atomic::AtomicBool;

    let main = || {
        let shared = Arc::new((AtomicBool::new(false), AtomicU32::new(0)));
        let threads = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                while shared.0.swap(true, SeqCst) {
                    dragnet::hint::spin_loop();
                }
                let before = shared.1.load(SeqCst);
                shared.1.store(before + 1, SeqCst);
                shared.0.store(false, SeqCst);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(shared.1.load(SeqCst), 2);
    };
    for reduction in Reduction::ALL {
        Check::new(Threads::new(main))
            .reduction(reduction)
            .run()
            .assert_holds();
    }
}

#[test]
fn many_turns_in_which_a_thread_only_sleeps_are_no_deadlock() {
    let main = || (0..1_000).for_each(|_| thread::sleep(Duration::from_millis(1)));
    Check::new(Threads::new(main)).run().assert_holds();
}

#[test]
fn what_threads_do_after_they_have_slept_is_followed() {
    let told = described(Check::new(Threads::new(|| {
        let count = Arc::new(AtomicU32::new(0));
        let threads = [(); 2].map(|()| {
            let count = Arc::clone(&count);
            thread::spawn(move || {
                for _ in 0..4 {
                    thread::sleep(Duration::from_millis(10));
                }
                let before = count.load(SeqCst);
                count.store(before + 1, SeqCst);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(count.load(SeqCst), 2, "an update is lost");
    })));
    assert!(told.contains("an update is lost"), "{told}");
}

#[test]
fn what_comes_after_a_loop_that_ends_by_itself_is_followed() {
    let main = || {
        let config = Arc::new(AtomicU32::new(0));
        let locks = Arc::new((dragnet::sync::Mutex::new(0), dragnet::sync::Mutex::new(0)));
        let others = Arc::clone(&locks);
        let other = thread::spawn(move || {
            for _ in 0..900 {
                config.load(SeqCst);
            }
            let _second = others.1.lock().unwrap();
            let _first = others.0.lock().unwrap();
        });
        {
            let _first = locks.0.lock().unwrap();
            let _second = locks.1.lock().unwrap();
        }
        other.join().unwrap();
    };
    let told = described(Check::new(Threads::new(main)));
    assert!(told.contains("waits for the 2nd mutex of"), "{told}");
}

/// Programs with a loop that waits in one context, and gives up in another.
fn loops_of_two_kinds() -> [(&'static str, fn()); 5] {
    use dragnet::sync::{Mutex, mpsc};

    #[inline(never)]
    fn wait_for(flag: &AtomicU32, most: Option<u32>) -> bool {
        let mut turns = 0;
        while flag.load(SeqCst) == 0 {
            turns += 1;
            if most.is_some_and(|most| turns > most) {
                return false;
            }
            thread::yield_now();
        }
        true
    }

    fn two() -> (Arc<[AtomicU32; 2]>, Arc<[AtomicU32; 2]>) {
        let both = Arc::new([const { AtomicU32::new(0) }; 2]);
        (Arc::clone(&both), both)
    }

    [
        ("a function that is called with a bound and without", || {
            let (both, other) = two();
            let other = thread::spawn(move || {
                other[0].store(1, SeqCst);
                other[1].store(1, SeqCst);
            });
            wait_for(&both[0], None);
            let came = wait_for(&both[1], Some(5));
            other.join().unwrap();
            assert!(came, "it has given up");
        }),
        ("a machine that gives up in one of its states", || {
            let (both, other) = two();
            let other = thread::spawn(move || {
                other[0].store(1, SeqCst);
                other[0].store(2, SeqCst);
            });
            let mut tries = 0;
            loop {
                match both[0].load(SeqCst) {
                    2 => break,
                    1 => tries += 1,
                    _ => {}
                }
                assert!(tries < 5, "it has given up");
                thread::yield_now();
            }
            other.join().unwrap();
        }),
        ("a time of grace once it is to stop", || {
            let stops = Arc::new(Mutex::new((false, 0)));
            let other = Arc::clone(&stops);
            let other = thread::spawn(move || {
                other.lock().unwrap().0 = true;
                other.lock().unwrap().1 += 1;
            });
            let mut grace = 10;
            loop {
                let stops = stops.lock().unwrap();
                if stops.1 > 0 {
                    break;
                }
                grace -= u32::from(stops.0);
                assert!(grace > 0, "it has given up");
                drop(stops);
                thread::sleep(Duration::from_millis(1));
            }
            other.join().unwrap();
        }),
        (
            "a channel on which it waits only so long for what follows",
            || {
                let (sender, receiver) = mpsc::channel();
                let other = thread::spawn(move || {
                    sender.send(1).unwrap();
                    sender.send(2).unwrap();
                });
                let (mut idle, mut last) = (0, 0);
                while last != 2 {
                    match receiver.recv_timeout(Duration::from_millis(10)) {
                        Ok(message) => last = message,
                        Err(_) => idle += last,
                    }
                    assert!(idle < 5, "it has given up");
                }
                other.join().unwrap();
            },
        ),
        ("a bound that another thread sets before", || {
            let (both, other) = two();
            let other = thread::spawn(move || {
                other[0].store(5, SeqCst);
                other[1].store(1, SeqCst);
            });
            let most = both[0].load(SeqCst);
            let came = wait_for(&both[1], (most > 0).then_some(most));
            other.join().unwrap();
            assert!(came, "it has given up");
        }),
    ]
}

#[test]
fn a_loop_that_ends_by_itself_in_one_context_is_followed_there() {
    for (what, main) in loops_of_two_kinds() {
        for reduction in Reduction::ALL {
            let check = Check::new(Threads::new(main)).reduction(reduction);
            let verdict = check.run();
            let violation = verdict.violation();
            let told = violation.map(|violation| violation.describe());
            let told = told.unwrap_or_else(|| panic!("{what}, {reduction}: {verdict}"));
            assert!(
                told.contains("it has given up"),
                "{what}, {reduction}: {told}"
            );
        }
    }
}

#[test]
fn what_comes_again_before_a_loop_does_not_keep_it_from_waiting() {
    let main = |comes: bool| {
        let all = Arc::new([const { AtomicU32::new(0) }; 3]);
        let other = Arc::clone(&all);
        let other = thread::spawn(move || other[2].store(u32::from(comes), SeqCst));
        for _ in 0..2 {
            all[0].load(SeqCst);
            all[1].load(SeqCst);
        }
        while all[2].load(SeqCst) == 0 {
            thread::yield_now();
        }
        other.join().unwrap();
    };
    Check::new(Threads::new(move || main(true)))
        .run()
        .assert_holds();
    let told = described(Check::new(Threads::new(move || main(false))));
    assert!(told.contains("goes round until it does"), "{told}");
}

#[test]
fn a_long_time_that_a_thread_waits_for_is_no_loop_without_end() {
    use dragnet::sync::Mutex;
    use dragnet::time::Instant;

    let main = || {
        let come = Arc::new(Mutex::new(false));
        let other = Arc::clone(&come);
        let other = thread::spawn(move || drop(other));
        let start = Instant::now();
        while !*come.lock().unwrap() && start.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_millis(1));
        }
        other.join().unwrap();
    };
    let verdict = Check::new(Threads::new(main)).run();
    assert!(verdict.violation().is_none(), "{verdict}");
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
    for most in [3, 50, 150] {
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

/// The same function is called to look a few times, and to look until something has come.
#[test]
fn one_place_may_be_two_loops() {
    fn poll(come: &AtomicU32, most: Option<u32>) -> bool {
        let mut turns = 0;
        while come.load(SeqCst) == 0 {
            turns += 1;
            if most.is_some_and(|most| turns > most) {
                return false;
            }
            thread::yield_now();
        }
        true
    }
    for most in [5, 40] {
        let main = move || {
            let come = Arc::new(AtomicU32::new(0));
            let other = Arc::clone(&come);
            let other = thread::spawn(move || other.store(1, SeqCst));
            if !poll(&come, Some(most)) {
                assert!(poll(&come, None));
            }
            other.join().unwrap();
        };
        Check::new(Threads::new(main)).run().assert_holds();
    }
}

#[test]
fn a_loop_that_ends_when_its_time_is_over_is_followed() {
    use dragnet::time::Instant;

    let main = || {
        let come = Arc::new(AtomicU32::new(0));
        let other = Arc::clone(&come);
        let other = thread::spawn(move || other.store(1, SeqCst));
        let end = Instant::now() + Duration::from_millis(20);
        let mut seen = false;
        while !seen && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
            seen = come.load(SeqCst) == 1;
        }
        other.join().unwrap();
        assert!(seen, "its time is over");
    };
    let told = described(Check::new(Threads::new(main)));
    assert!(told.contains("its time is over"), "{told}");
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
                .reduction(reduction)
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
        let violation = verdict.violation();
        let told = violation.map(|violation| violation.describe());
        let told = told.unwrap_or_else(|| panic!("{what}: {verdict}"));
        println!("{what}: {told}");
        assert!(told.contains("goes round"), "{what}: {told}");
    }
}

#[test]
fn a_thread_that_has_looked_before_still_waits_in_a_loop() {
    let main = || {
        let come = Arc::new(AtomicU32::new(0));
        let other = Arc::clone(&come);
        let other = thread::spawn(move || other.store(1, SeqCst));
        for _ in 0..3 {
            if come.load(SeqCst) == 1 {
                break;
            }
        }
        while come.load(SeqCst) == 0 {
            thread::yield_now();
        }
        other.join().unwrap();
    };
    Check::new(Threads::new(main)).run().assert_holds();
}
