//! Panics, stacks that are full and threads that block: a check outlives them.

use dragnet::engine::{Dpor, EngineName, Reduction};
use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::sync::{Arc, Mutex};
use dragnet::time::Duration;
use dragnet::verdict::ViolationKind;
use dragnet::{Check, Outcome, Threads, thread};

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
    for engine in [EngineName::Dpor, EngineName::Breadth] {
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

/// Uses so much of a stack, and does an operation there.
fn dive(bytes: usize, count: &AtomicU32) -> usize {
    let room = std::hint::black_box([1_u8; 4096]);
    match bytes.checked_sub(8192) {
        None => count.fetch_add(1, SeqCst) as usize,
        Some(further) => dive(further, count) + usize::from(room[7]),
    }
}

#[test]
fn a_thread_has_the_stack_that_it_asks_for() {
    let diver = |bytes: usize| {
        let builder = thread::Builder::new().name("diver".to_owned());
        builder.stack_size(bytes)
    };
    let spawned = move || {
        let count = Arc::new(AtomicU32::new(0));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let count = Arc::clone(&count);
                let body = move || dive(4 << 20, &count);
                diver(16 << 20).spawn(body).unwrap()
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(count.load(SeqCst), 2);
    };
    let scoped = move || {
        let count = AtomicU32::new(0);
        thread::scope(|scope| {
            let body = || dive(4 << 20, &count);
            diver(16 << 20).spawn_scoped(scope, body).unwrap();
        });
    };
    Check::new(Threads::new(spawned)).run().assert_holds();
    Check::new(Threads::new(scoped)).run().assert_holds();
}

#[test]
fn a_thread_that_asks_for_a_smaller_stack_has_that_of_the_check() {
    let program = || {
        let builder = thread::Builder::new().stack_size(16 << 10);
        let count = AtomicU32::new(0);
        thread::scope(|scope| {
            builder
                .spawn_scoped(scope, || dive(64 << 10, &count))
                .unwrap();
        });
    };
    Check::new(Threads::new(program)).run().assert_holds();
}

#[test]
fn a_thread_that_overflows_the_stack_that_it_asked_for_is_told_its_size() {
    let program = || {
        let builder = thread::Builder::new().name("diver".to_owned());
        let count = AtomicU32::new(0);
        let diver = builder.stack_size(512 << 10);
        thread::scope(|scope| {
            diver
                .spawn_scoped(scope, || dive(64 << 20, &count))
                .unwrap();
        });
    };
    let described = described(Check::new(Threads::new(program)));
    assert!(
        described.starts_with("diver overflowed its stack of 512 KiB"),
        "{described}"
    );
}

#[test]
fn a_stack_larger_than_memory_is_no_violation() {
    for bytes in [1 << 60, usize::MAX] {
        let program = move || {
            let greedy = thread::Builder::new().stack_size(bytes);
            greedy.spawn(|| ()).unwrap().join().unwrap();
        };
        let verdict = Check::new(Threads::new(program)).run();
        assert!(
            matches!(verdict.outcome, Outcome::Inconclusive(_)),
            "{bytes}: {verdict}"
        );
    }
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
        let told = described(Check::new(threads).engine(Dpor::new().reduction(reduction)));
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

#[test]
fn a_thread_that_blocks_is_a_violation_though_the_time_ends_soon_after() {
    let program = || {
        let worker = thread::spawn(|| {
            loop {
                std::hint::black_box(0);
            }
        });
        let _ = worker.join();
    };
    let threads = Threads::new(program).patience(Duration::from_millis(400));
    let verdict = Check::new(threads).time(Duration::from_secs(1)).run();
    let violation = verdict.violation().expect("it is known by then");
    assert!(violation.describe().contains("has done nothing for 400ms"));
}

/// The exit status of a test in a process of its own, and what it printed.
fn in_a_process(test: &str) -> (Option<i32>, String) {
    let this = std::env::current_exe().unwrap();
    let output = std::process::Command::new(this)
        .args([test, "--exact", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (output.status.code(), text)
}

#[test]
fn a_thread_that_ends_the_process_is_a_violation() {
    let (status, text) = in_a_process("mishaps::a_thread_exits");
    assert_eq!(status, Some(1), "{text}");
    let said = "quitter ended the process with status 0";
    assert!(text.contains(said), "{text}");
}

#[test]
fn the_last_lines_name_the_thread_in_which_a_process_is_aborted() {
    for (test, said) in [
        ("mishaps::a_thread_aborts", "error: `abort`, a failed"),
        ("mishaps::a_thread_sends_a_signal", "error: an instruction"),
    ] {
        let (status, text) = in_a_process(test);
        assert_eq!(status, None, "{text}");
        assert!(text.contains(said), "{text}");
        assert!(text.contains("the thread: quitter"), "{text}");
    }
}

#[test]
#[ignore = "it ends the process: another test runs it in a process of its own"]
fn a_thread_aborts() {
    quit_by(|| std::process::abort());
}

#[test]
#[ignore = "it ends the process: another test runs it in a process of its own"]
fn a_thread_sends_a_signal() {
    // SAFETY: it has no conditions.
    quit_by(|| _ = unsafe { libc::raise(libc::SIGFPE) });
}

/// A check of a program of which a thread ends the process.
fn quit_by(quit: fn()) {
    let program = move || {
        let quitter = thread::Builder::new().name("quitter".to_owned());
        let quitter = quitter.spawn(quit).unwrap();
        let _ = quitter.join();
    };
    let check = Check::new(Threads::new(program)).time(Duration::from_secs(1));
    check.run().assert_holds();
}

#[test]
#[ignore = "it ends the process: another test runs it in a process of its own"]
fn a_thread_exits() {
    quit_by(|| std::process::exit(0));
}
