//! Panics, stacks that are full and threads that block: a check outlives them.

use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::sync::{Arc, Mutex};
use dragnet::time::Duration;
use dragnet::{Check, Engine, Outcome, Reduction, Threads, ViolationKind, thread};

use crate::described;

/// Panics when it is dropped while its thread is taken out of an execution.
struct Fussy;

impl Drop for Fussy {
    fn drop(&mut self) {
        panic!("dropped too early");
    }
}

#[test]
fn what_panics_when_it_is_dropped_does_not_end_the_checker() {
    let check = || {
        Check::new(Threads::new(|| {
            let lock = Arc::new(Mutex::new(()));
            let other = Arc::clone(&lock);
            let held = lock.lock().unwrap();
            let fussy = Fussy;
            let other = thread::spawn(move || drop(other.lock().unwrap()));
            // The other waits for the lock, and this one for the other.
            other.join().unwrap();
            drop(held);
            std::mem::forget(fussy);
        }))
    };
    for engine in [Engine::Schedules, Engine::Breadth] {
        let verdict = check().engine(engine).run();
        let violation = verdict.violation().expect("both wait");
        assert!(matches!(violation.kind, ViolationKind::Deadlock(_)));
    }
}

#[test]
fn a_program_that_catches_every_panic_is_taken_out_of_an_execution_all_the_same() {
    let verdict = Check::new(Threads::new(|| {
        let lock = Mutex::new(());
        let _held = lock.lock().unwrap();
        loop {
            let again = std::panic::catch_unwind(|| drop(lock.lock()));
            if again.is_ok() {
                break;
            }
        }
    }))
    .run();
    assert!(matches!(
        verdict.violation().expect("it waits for itself").kind,
        ViolationKind::Deadlock(_)
    ));
}

#[test]
fn a_panic_that_is_caught_is_no_failure_and_poisons() {
    Check::new(Threads::new(|| {
        let lock = Arc::new(Mutex::new(0));
        let other = Arc::clone(&lock);
        let other = thread::spawn(move || {
            let caught = std::panic::catch_unwind(move || {
                let mut guard = other
                    .lock()
                    .unwrap_or_else(|poisoned| poisoned.into_inner());
                *guard += 1;
                panic!("half way");
            });
            assert!(caught.is_err());
        });
        let seen = match lock.lock() {
            Ok(guard) => *guard,
            Err(poisoned) => 10 + *poisoned.into_inner(),
        };
        assert!(seen == 0 || seen == 11, "{seen}");
        other.join().unwrap();
        assert!(lock.is_poisoned());
    }))
    .run()
    .assert_holds();
}

#[test]
fn who_joins_a_thread_that_panics_learns_of_it_where_panics_are_fine() {
    let program = || {
        let other = thread::spawn(|| panic!("on purpose"));
        assert!(other.join().is_err());
    };
    let check = |threads: Threads| Check::new(threads).run();
    assert!(check(Threads::new(program)).violation().is_some());
    check(Threads::new(program).panics_are_fine()).assert_holds();
}

#[test]
fn a_thread_that_overflows_its_stack_is_named() {
    fn deeper(depth: u64) -> u64 {
        let room = std::hint::black_box([depth; 64]);
        if std::hint::black_box(depth) == u64::MAX {
            return 0;
        }
        deeper(depth + 1) + room[3]
    }
    let verdict = Check::new(Threads::new(|| {
        let builder = thread::Builder::new().name("diver".to_owned());
        let diver = builder.spawn(|| deeper(0)).unwrap();
        diver.join().unwrap();
    }))
    .run();
    let described = verdict.violation().expect("it is too deep").describe();
    assert!(
        described.starts_with("diver overflowed its stack of 256 KiB; `Threads::stack_size`"),
        "{described}"
    );
}

#[test]
fn a_thread_that_overflows_its_stack_among_operations_is_named() {
    fn deeper(lock: &Mutex<u64>, depth: u64) -> u64 {
        let room = std::hint::black_box([depth; 64]);
        *lock.lock().unwrap() += 1;
        if std::hint::black_box(depth) == u64::MAX {
            return 0;
        }
        deeper(lock, depth + 1) + room[3]
    }
    let threads = Threads::new(|| {
        deeper(&Mutex::new(0), 0);
    });
    let described = described(Check::new(threads.stack_size(64 << 10)));
    assert!(
        described.starts_with("main overflowed its stack of 64 KiB"),
        "{described}"
    );
    assert!(described.contains("(after "), "{described}");
}

#[test]
fn a_thread_that_waits_for_something_real_is_named() {
    let threads = Threads::new(|| {
        let real = Arc::new(std::sync::Mutex::new(0));
        let held = real.lock().unwrap();
        let other = Arc::clone(&real);
        let builder = thread::Builder::new().name("sleeper".to_owned());
        let other = builder.spawn(move || *other.lock().unwrap() += 1).unwrap();
        drop(held);
        other.join().unwrap();
    });
    let described = described(Check::new(threads.patience(Duration::from_secs(1))));
    assert!(
        described.starts_with("sleeper has done nothing for 1s"),
        "{described}"
    );
}

#[test]
fn a_scope_panics_when_a_thread_in_it_has_and_nobody_asked() {
    let threads = Threads::new(|| {
        let lived = std::panic::catch_unwind(|| {
            thread::scope(|scope| {
                let builder = thread::Builder::new().name("helper".to_owned());
                builder
                    .spawn_scoped(scope, || panic!("the helper gives up"))
                    .unwrap();
            });
        });
        let payload = lived.expect_err("the scope hears of it");
        let message = payload.downcast_ref::<&str>().copied();
        assert_eq!(message, Some("a scoped thread panicked"));
    });
    Check::new(threads.panics_are_fine()).run().assert_holds();
}

#[test]
fn a_panic_of_the_first_thread_is_never_fine() {
    let threads = Threads::new(|| panic!("the program gives up"));
    let described = described(Check::new(threads.panics_are_fine()));
    assert!(described.contains("the program gives up"), "{described}");
}

#[test]
fn whether_a_lock_is_poisoned_depends_on_who_comes_first() {
    let program = || {
        let lock = Arc::new(Mutex::new(0));
        let other = Arc::clone(&lock);
        let other = thread::spawn(move || {
            let _guard = other.lock().unwrap();
            panic!("it holds the lock");
        });
        let poisoned = lock.is_poisoned();
        assert!(other.join().is_err());
        assert!(!poisoned, "it was poisoned");
    };
    for reduction in [Reduction::None, Reduction::Source, Reduction::Optimal] {
        let threads = Threads::new(program).panics_are_fine();
        let told = described(Check::new(threads).reduction(reduction));
        assert!(told.contains("it was poisoned"), "{told}");
    }
}

#[test]
fn what_is_thrown_may_panic_when_it_is_dropped() {
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("it goes off");
        }
    }

    let throw = || {
        thread::spawn(|| std::panic::panic_any(Bomb))
            .join()
            .unwrap();
    };
    let verdict = Check::new(Threads::new(throw)).run();
    assert!(verdict.violation().is_some(), "{verdict}");
}

/// On its way out of a deadlock something starts a thread, which owns what others know of.
#[test]
fn what_starts_a_thread_when_it_is_dropped_does_not_end_the_checker() {
    use dragnet::sync::mpsc::{Sender, channel};

    struct Starts(Option<Sender<u8>>);
    impl Drop for Starts {
        fn drop(&mut self) {
            let sender = self.0.take().unwrap();
            thread::spawn(move || sender.send(1));
        }
    }
    let told = described(Check::new(Threads::new(|| {
        let (sender, _receiver) = channel();
        let lock = Mutex::new(0);
        let _starts = Starts(Some(sender));
        let _held = lock.lock().unwrap();
        let _again = lock.lock().unwrap();
    })));
    assert!(told.contains("main waits for"), "{told}");
}

#[test]
fn a_thread_that_panics_while_it_unwinds_is_named() {
    struct Second;
    impl Drop for Second {
        fn drop(&mut self) {
            panic!("second");
        }
    }
    let told = described(Check::new(Threads::new(|| {
        let other = thread::spawn(|| {
            let _second = Second;
            panic!("first");
        });
        other.join().unwrap();
    })));
    assert!(
        told.contains("thread 1 panicked while it unwound"),
        "{told}"
    );
}

/// A thread of the operating system still writes to where a thread was that has been given up.
#[test]
fn what_something_real_points_into_stays() {
    let told = described(
        Check::new(
            Threads::new(|| {
                let mut written = 0_u64;
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        let begun = std::time::Instant::now();
                        while begun.elapsed() < Duration::from_millis(1_500) {
                            written = std::hint::black_box(written + 1);
                        }
                    });
                });
                std::hint::black_box(written);
            })
            .patience(Duration::from_millis(300)),
        )
        .threads(1),
    );
    assert!(told.contains("has done nothing for 300ms"), "{told}");
    std::thread::sleep(Duration::from_secs(2));
}

#[test]
fn a_stack_that_there_is_no_memory_for_is_named_with_any_number_of_workers() {
    for workers in [1, 2] {
        let threads = Threads::new(|| ()).stack_size(1 << 60);
        let verdict = Check::new(threads).threads(workers).run();
        let Outcome::Inconclusive(why) = &verdict.outcome else {
            panic!("{verdict}");
        };
        assert!(why.contains("no memory for the stack of main"), "{why}");
    }
}

/// Counts and takes a lock when it is dropped.
struct Locks(Arc<AtomicU32>, Arc<Mutex<u32>>);

impl Drop for Locks {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
        drop(self.1.lock());
    }
}

#[test]
fn who_is_given_up_while_it_unwinds_leaves_nothing_to_later_executions() {
    use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
    use std::sync::atomic::AtomicBool as RealBool;

    let program = || {
        let lock = Arc::new(Mutex::new(0));
        let others = Arc::clone(&lock);
        let other = thread::spawn(move || {
            others.is_poisoned();
            let count = Arc::new(AtomicU32::new(0));
            let unwinds = thread::spawn(move || {
                let _locks = Locks(count, others);
                resume_unwind(Box::new(7_u8));
            });
            let _ = unwinds.join();
        });
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _held = lock.lock();
            panic_any(3_u8);
        }));
        if let Err(payload) = panicked
            && !payload.is::<u8>()
        {
            resume_unwind(payload);
        }
        let _ = other.join();
    };
    for depth in 3..9 {
        let began_panicking = std::sync::Arc::new(RealBool::new(false));
        let noted = std::sync::Arc::clone(&began_panicking);
        let threads = Threads::new(move || {
            noted.fetch_or(std::thread::panicking(), SeqCst);
            program();
        });
        let check = Check::new(threads.panics_are_fine()).depth(depth);
        let verdict = check.threads(1).run();
        assert_eq!(verdict.violation(), None, "{depth} steps");
        assert!(!began_panicking.load(SeqCst), "{depth} steps");
    }
}
