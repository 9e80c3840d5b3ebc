//! Loops that wait for others, who come or not.

use dragnet::engine::{Dpor, Reduction};
use dragnet::sync::Arc;
use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::time::Duration;
use dragnet::{Check, Threads, thread};

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
        let verdict = check().engine(Dpor::new().reduction(reduction)).run();
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
                .engine(Dpor::new().reduction(reduction))
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
            .engine(Dpor::new().reduction(reduction))
            .run()
            .assert_holds();
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
