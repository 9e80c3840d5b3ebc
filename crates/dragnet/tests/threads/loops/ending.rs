//! Loops that end by themselves: they are followed.

use dragnet::engine::{Dpor, EngineName, Reduction};
use dragnet::extend::{Cursor, Explorer, Extent};
use dragnet::sync::Arc;
use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::time::Duration;
use dragnet::{Check, Outcome, Threads, thread};

use crate::described;

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
        let told = described(
            Check::new(Threads::new(|| looks(4, false))).engine(Dpor::new().reduction(reduction)),
        );
        assert!(told.contains("it has given up"), "{told}");
    }
}

#[test]
fn every_engine_follows_a_loop_that_ends_by_itself() {
    for engine in [EngineName::Dpor, EngineName::Breadth, EngineName::Depth] {
        let told = described(Check::new(Threads::new(|| looks(5, true))).engine(engine));
        assert!(told.contains("it has given up"), "{engine}: {told}");
    }
    for reduction in Reduction::ALL {
        let check =
            Check::new(Threads::new(|| looks(40, true))).engine(Dpor::new().reduction(reduction));
        let told = described(check);
        assert!(told.contains("it has given up"), "{reduction}: {told}");
    }
}

#[test]
fn a_loop_that_ends_by_itself_very_late_is_not_left_out_silently() {
    for engine in [EngineName::Dpor, EngineName::Depth] {
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

/// Runs one execution, and claims to have explored everything.
struct OneExecution;

impl Explorer for OneExecution {
    fn name(&self) -> &str {
        "one-execution"
    }

    fn explore(&self, cursor: &mut dyn Cursor) -> Extent {
        while !cursor.must_end() && cursor.enabled() > 0 {
            cursor.take(0);
        }
        Extent::Everything
    }
}

#[test]
fn an_engine_of_ones_own_cannot_know_that_a_loop_was_left_out() {
    let verdict = Check::new(Threads::new(|| looks(1_500, true)))
        .explore_with(OneExecution)
        .run();
    let Outcome::Inconclusive(why) = &verdict.outcome else {
        panic!("{verdict}");
    };
    assert!(why.contains("Threads::fruitless_turns("), "{why}");
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
            let check = Check::new(Threads::new(main)).engine(Dpor::new().reduction(reduction));
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
