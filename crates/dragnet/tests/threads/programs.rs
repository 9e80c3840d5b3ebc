//! Programs with threads, and what a check says of them.

use dragnet::cell::UnsafeCell;
use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::sync::{Arc, Condvar, Mutex};
use dragnet::time::{Duration, Instant};
use dragnet::{Check, Engine, Outcome, Reduction, Threads, ViolationKind, thread};

use crate::described;

/// Two threads add one each; what one adds between the other's look and write is lost.
fn lost_update() {
    let count = Arc::new(AtomicU32::new(0));
    let other = Arc::clone(&count);
    let other = thread::spawn(move || {
        let seen = other.load(SeqCst);
        other.store(seen + 1, SeqCst);
    });
    let seen = count.load(SeqCst);
    count.store(seen + 1, SeqCst);
    other.join().unwrap();
    assert_eq!(count.load(SeqCst), 2, "an update is lost");
}

fn fixed_update() {
    let count = Arc::new(AtomicU32::new(0));
    let other = Arc::clone(&count);
    let other = thread::spawn(move || {
        other.fetch_add(1, SeqCst);
    });
    count.fetch_add(1, SeqCst);
    other.join().unwrap();
    assert_eq!(count.load(SeqCst), 2, "an update is lost");
}

/// Two threads take two locks, in opposite orders.
fn opposite_locks() {
    let locks = Arc::new([Mutex::new("left"), Mutex::new("right")]);
    let other = Arc::clone(&locks);
    let other = thread::Builder::new()
        .name("other".to_owned())
        .spawn(move || {
            let _right = other[1].lock().unwrap();
            let _left = other[0].lock().unwrap();
        })
        .unwrap();
    {
        let _left = locks[0].lock().unwrap();
        let _right = locks[1].lock().unwrap();
    }
    other.join().unwrap();
}

#[test]
fn a_lost_update_is_found_by_every_engine_and_every_reduction() {
    for reduction in Reduction::ALL {
        let check = || Check::new(Threads::new(lost_update)).named("lost update");
        let verdict = check().reduction(reduction).run();
        let violation = verdict.violation().expect("an update can be lost");
        let ViolationKind::Failure(failure) = &violation.kind else {
            panic!("{violation:?}");
        };
        assert!(failure.message().contains("an update is lost"), "{failure}");
        let counterexample = violation.counterexample.as_ref().unwrap();
        let replay = check().replay(&counterexample.trace).unwrap();
        assert_eq!(replay.property, "panic");
    }
    for engine in [Engine::Breadth, Engine::Depth, Engine::Random, Engine::Auto] {
        let verdict = Check::new(Threads::new(lost_update)).engine(engine).run();
        assert!(verdict.violation().is_some(), "{engine}: {verdict}");
    }
}

#[test]
fn what_is_right_holds_with_every_engine_that_can_prove_it() {
    for engine in [Engine::Breadth, Engine::Depth, Engine::Schedules] {
        Check::new(Threads::new(fixed_update))
            .engine(engine)
            .run()
            .assert_holds();
    }
}

#[test]
fn a_deadlock_says_who_holds_what_and_who_waits_where() {
    let verdict = Check::new(Threads::new(opposite_locks)).run();
    println!("{verdict}");
    let violation = verdict.violation().expect("both can wait for each other");
    let ViolationKind::Deadlock(waiting) = &violation.kind else {
        panic!("{violation:?}");
    };
    let told: Vec<String> = waiting.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].starts_with("main waits for the mutex of"),
        "{told:?}"
    );
    assert!(
        told[0].contains("which other holds since programs.rs:"),
        "{told:?}"
    );
    assert!(
        told[1].starts_with("other waits for the 2nd mutex of"),
        "{told:?}"
    );
}

/// Writes to a value when it is dropped.
struct Parting(Arc<AtomicU32>);

impl Drop for Parting {
    fn drop(&mut self) {
        self.0.store(9, SeqCst);
    }
}

#[test]
fn what_a_thread_does_on_its_way_out_is_not_told_as_its_last_step() {
    let verdict = Check::new(Threads::new(|| {
        let value = Arc::new(AtomicU32::new(0));
        let _parting = Parting(Arc::clone(&value));
        value.store(1, SeqCst);
        thread::park();
    }))
    .run();
    let told = verdict.to_string();
    assert!(told.contains("main writes 1 to"), "{told}");
}

#[test]
fn a_notification_that_comes_too_early_is_lost() {
    let verdict = Check::new(Threads::new(|| {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || other.1.notify_one());
        let guard = shared.0.lock().unwrap();
        drop(shared.1.wait(guard).unwrap());
        other.join().unwrap();
    }))
    .run();
    let violation = verdict
        .violation()
        .expect("the notification can come first");
    assert!(matches!(violation.kind, ViolationKind::Deadlock(_)));
}

#[test]
fn a_thread_that_locks_twice_waits_for_itself() {
    let verdict = Check::new(Threads::new(|| {
        let lock = Mutex::new(());
        let _one = lock.lock().unwrap();
        let _two = lock.lock().unwrap();
    }))
    .run();
    let described = verdict.violation().unwrap().describe();
    assert!(described.contains("which it itself holds"), "{described}");
}

static COUNT: Mutex<u32> = Mutex::new(0);

#[test]
fn statics_start_afresh_in_each_execution() {
    let verdict = Check::new(Threads::new(|| {
        let other = thread::spawn(|| *COUNT.lock().unwrap() += 1);
        *COUNT.lock().unwrap() += 1;
        other.join().unwrap();
        assert_eq!(*COUNT.lock().unwrap(), 2);
    }))
    .run();
    verdict.assert_holds();
    assert_eq!(verdict.statistics.schedules.unwrap().executions, 2);
}

/// What things that are shared show of themselves, whose they are.
macro_rules! shown {
    ($library:ident) => {{
        use $library::sync::atomic::AtomicU32;
        use $library::sync::{LazyLock, Mutex, OnceLock, RwLock};

        let (lock, rw_lock) = (Mutex::new(1), RwLock::new("two"));
        let (count, once) = (AtomicU32::new(3), OnceLock::new());
        let lazy: LazyLock<u32> = LazyLock::new(|| 4);
        let mut shown = vec![format!("{lock:?} {rw_lock:?} {count:?} {once:?} {lazy:?}")];
        once.set(*lazy).unwrap();
        let held = rw_lock.write();
        shown.push(format!("{rw_lock:?} {once:?} {lazy:?}"));
        drop(held);
        shown
    }};
}

#[test]
fn what_is_shared_shows_as_in_std() {
    let compare = || assert_eq!(shown!(dragnet), shown!(std));
    compare();
    Check::new(Threads::new(compare)).run().assert_holds();
}

#[test]
fn threads_of_a_scope_borrow_and_are_waited_for() {
    Check::new(Threads::new(|| {
        let count = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| count.fetch_add(1, SeqCst));
            }
        });
        assert_eq!(count.load(SeqCst), 2);
    }))
    .run()
    .assert_holds();
}

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

/// Data and the flag that says who may come to it.
struct Slot {
    full: AtomicU32,
    data: UnsafeCell<u32>,
}

// SAFETY: this is what the checks are for.
unsafe impl Sync for Slot {}

#[test]
fn data_that_nothing_orders_is_a_race_even_if_nothing_comes_of_it() {
    let check = |waits: bool| {
        Check::new(Threads::new(move || {
            let slot = Arc::new(Slot {
                full: AtomicU32::new(0),
                data: UnsafeCell::new(0),
            });
            let other = Arc::clone(&slot);
            let other = thread::spawn(move || {
                // SAFETY: nobody reads it before it is full.
                other.data.with_mut(|data| unsafe { *data = 7 });
                other.full.store(1, SeqCst);
            });
            if slot.full.load(SeqCst) == 1 || !waits {
                // SAFETY: it is full, or this is the race.
                assert!(slot.data.with(|data| unsafe { *data }).is_multiple_of(7));
            }
            other.join().unwrap();
        }))
        .run()
    };
    check(true).assert_holds();
    let verdict = check(false);
    let described = verdict.violation().expect("nobody waits").describe();
    assert!(described.contains("data race: "), "{described}");
    assert!(
        described.contains("nothing orders the one before the other"),
        "{described}"
    );
}

#[test]
fn what_a_thread_does_before_it_starts_another_is_no_race_with_that() {
    let check = |changes_late: bool| {
        Check::new(Threads::new(move || {
            let slot = Arc::new(Slot {
                full: AtomicU32::new(0),
                data: UnsafeCell::new(0),
            });
            // SAFETY: nobody else knows of it yet.
            slot.data.with_mut(|data| unsafe { *data = 7 });
            let inside = Arc::clone(&slot);
            let other = thread::spawn(move || {
                let inner = thread::spawn(move || {
                    // SAFETY: nobody changes it any more, or this is the race.
                    assert!(inside.data.with(|data| unsafe { *data }) >= 7);
                });
                inner.join().unwrap();
            });
            if changes_late {
                // SAFETY: this is the race.
                slot.data.with_mut(|data| unsafe { *data += 1 });
            }
            other.join().unwrap();
        }))
        .run()
    };
    check(false).assert_holds();
    let described = check(true).violation().expect("nobody waits").describe();
    assert!(described.contains("data race: "), "{described}");
}

#[test]
fn time_passes_for_who_sleeps_and_for_who_hears_of_it() {
    let began = std::time::Instant::now();
    Check::new(Threads::new(|| {
        let hour = Duration::from_secs(3600);
        let start = Instant::now();
        let other = thread::spawn(move || thread::sleep(hour));
        assert_eq!(start.elapsed(), Duration::ZERO, "nobody has told us");
        other.join().unwrap();
        assert_eq!(start.elapsed(), hour);
    }))
    .run()
    .assert_holds();
    assert!(began.elapsed() < Duration::from_secs(600));
}

#[test]
fn a_thread_that_lets_others_go_first_has_not_been_unparked() {
    let parks = |unparks: bool| {
        Check::new(Threads::new(move || {
            let other = thread::spawn(|| {
                thread::yield_now();
                thread::park();
            });
            if unparks {
                other.thread().unpark();
            }
            other.join().unwrap();
        }))
        .run()
    };
    parks(true).assert_holds();
    let described = parks(false)
        .violation()
        .expect("it parks for ever")
        .describe();
    assert!(described.contains("somebody to unpark it"), "{described}");
}

#[test]
fn every_choice_is_tried() {
    let verdict = Check::new(Threads::new(|| {
        let other = thread::spawn(|| dragnet::choose(3));
        let both = (dragnet::choose(2), other.join().unwrap());
        assert!(both != (1, 3));
    }))
    .run();
    verdict.assert_holds();
    assert_eq!(verdict.statistics.schedules.unwrap().executions, 6);
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
fn a_thread_that_is_left_behind_is_named() {
    let verdict = Check::new(Threads::new(|| {
        let (sender, receiver) = dragnet::sync::mpsc::channel::<u32>();
        let builder = thread::Builder::new().name("worker".to_owned());
        builder
            .spawn(move || while receiver.recv().is_ok() {})
            .unwrap();
        std::mem::forget(sender);
    }))
    .run();
    let described = verdict.violation().expect("it never ends").describe();
    assert!(
        described.contains("worker waits for a message on")
            && described.contains("left behind by main"),
        "{described}"
    );
}

#[test]
fn what_takes_an_interruption_is_not_found_without_one() {
    let check = |preemptions| {
        Check::new(Threads::new(lost_update))
            .preemptions(preemptions)
            .run()
    };
    let without = check(0);
    assert_eq!(without.outcome, Outcome::Holds);
    assert_eq!(
        without.within,
        ["at most 0 interruptions of threads that could go on"]
    );
    assert!(check(1).violation().is_some());
}

#[test]
fn threads_are_told_apart_and_wait_for_what_is_done_once() {
    Check::new(Threads::new(|| {
        let word = Arc::new(dragnet::sync::OnceLock::new());
        let other = Arc::clone(&word);
        let other = thread::spawn(move || {
            other.set(thread::current().id()).unwrap();
        });
        let id = *word.wait();
        assert_eq!(id, other.thread().id());
        assert_ne!(id, thread::current().id());
        other.join().unwrap();
    }))
    .run()
    .assert_holds();
}

#[test]
fn thread_local_values_are_dropped_last_made_first_and_are_gone_then() {
    static DROPPED: Mutex<Vec<&str>> = Mutex::new(Vec::new());

    struct Told(&'static str);

    impl Drop for Told {
        fn drop(&mut self) {
            let is_there = SECOND.try_with(|_| ()).is_ok();
            DROPPED.lock().unwrap().push(self.0);
            assert!(!is_there, "a value that is being dropped is gone");
        }
    }

    dragnet::thread_local! {
        static FIRST: Told = const { Told("first") };
        static SECOND: Told = const { Told("second") };
    }

    Check::new(Threads::new(|| {
        let other = thread::spawn(|| {
            FIRST.with(|_| ());
            SECOND.with(|_| ());
        });
        other.join().unwrap();
        assert_eq!(*DROPPED.lock().unwrap(), ["second", "first"]);
    }))
    .run()
    .assert_holds();
}

#[test]
fn cells_of_a_thread_can_be_set_and_taken() {
    use std::cell::{Cell, RefCell};

    dragnet::thread_local! {
        static COUNT: Cell<u32> = const { Cell::new(1) };
        static WORDS: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
    }

    let program = || {
        COUNT.set(COUNT.get() + 1);
        WORDS.with_borrow_mut(|words| words.push("main"));
        let other = thread::spawn(|| (COUNT.replace(7), COUNT.take(), WORDS.take()));
        assert_eq!(other.join().unwrap(), (1, 7, Vec::new()));
        assert_eq!((COUNT.get(), WORDS.with_borrow(Vec::len)), (2, 1));
    };
    Check::new(Threads::new(program)).run().assert_holds();
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

#[test]
fn threads_of_a_scope_start_others_in_it() {
    let program = || {
        let count = AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                count.fetch_add(1, SeqCst);
                scope.spawn(|| count.fetch_add(1, SeqCst));
            });
        });
        assert_eq!(count.load(SeqCst), 2);
    };
    Check::new(Threads::new(program)).run().assert_holds();
    program();
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
        let threads = Threads::new(lost_update).stack_size(1 << 60);
        let verdict = Check::new(threads).threads(workers).run();
        let told = verdict.violation().expect("it cannot run").describe();
        assert!(told.contains("no memory for the stack of main"), "{told}");
    }
}
