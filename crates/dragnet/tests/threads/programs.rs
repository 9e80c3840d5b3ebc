//! Programs with threads, and what a check says of them.

use dragnet::cell::UnsafeCell;
use dragnet::engine::{Dpor, Engine, EngineName, Pct, Random, Reduction};
use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::sync::{Arc, Condvar, Mutex};
use dragnet::time::{Duration, Instant};
use dragnet::verdict::ViolationKind;
use dragnet::{Check, Outcome, Threads, thread};

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
        let verdict = check().engine(Dpor::new().reduction(reduction)).run();
        let violation = verdict.violation().expect("an update can be lost");
        let ViolationKind::Failure(failure) = &violation.kind else {
            panic!("{violation:?}");
        };
        assert!(failure.message().contains("an update is lost"), "{failure}");
        let counterexample = violation.counterexample.as_ref().unwrap();
        let replay = check().replay(&counterexample.trace).unwrap();
        assert_eq!(replay.property, "panic");
    }
    for engine in EngineName::ALL {
        if engine == EngineName::Local {
            continue;
        }
        let verdict = Check::new(Threads::new(lost_update)).engine(engine).run();
        assert!(verdict.violation().is_some(), "{engine}: {verdict}");
    }
}

#[test]
fn what_is_right_holds_with_every_engine_that_can_prove_it() {
    for engine in [EngineName::Breadth, EngineName::Depth, EngineName::Dpor] {
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
fn a_lost_notification_is_found_where_threads_may_wake_up_spuriously() {
    let program = || {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            *other.0.lock().unwrap() = true;
            other.1.notify_one();
        });
        // Whether it has been notified already is not looked at.
        drop(shared.1.wait(shared.0.lock().unwrap()));
        other.join().unwrap();
    };
    for times in 0..3 {
        for reduction in Reduction::ALL {
            let threads = Threads::new(program).spurious_wakeups(times);
            let verdict = Check::new(threads)
                .engine(Dpor::new().reduction(reduction))
                .run();
            let violation = verdict.violation();
            let is_deadlock =
                violation.is_some_and(|found| matches!(found.kind, ViolationKind::Deadlock(_)));
            assert!(is_deadlock, "{times} with {reduction}: {verdict}");
        }
    }
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
            .engine(Dpor::new().preemptions(preemptions))
            .run()
    };
    let without = check(0);
    assert_eq!(without.outcome, Outcome::Holds);
    assert_eq!(without.within, ["at most 0 preemptions"]);
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

/// Who drops the last `Arc` closes the channel in it, and no operation tells who that is.
#[test]
fn who_is_last_to_drop_what_is_shared_may_do_more_than_was_planned() {
    let program = || {
        let (sender, receiver) = dragnet::sync::mpsc::channel::<u8>();
        let counts = [const { AtomicU32::new(0) }; 2];
        let shared = Arc::new((counts, sender, Mutex::new(receiver)));
        for which in 0..2 {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.0[which].fetch_add(1, SeqCst);
                shared.0[0].load(SeqCst);
            });
        }
        shared.0[1].fetch_add(1, SeqCst);
    };
    for reduction in [
        Reduction::None,
        Reduction::Sleep,
        Reduction::Source,
        Reduction::Optimal,
    ] {
        for workers in [1, 2] {
            let check = Check::new(Threads::new(program)).engine(Dpor::new().reduction(reduction));
            let verdict = check.threads(workers).run();
            assert_eq!(verdict.outcome, Outcome::Holds, "{reduction}: {verdict}");
        }
    }
}

/// A thread that works for long, and one that must not see what it works on.
fn long_work() {
    let value = Arc::new(AtomicU32::new(0));
    let other = Arc::clone(&value);
    let worker = thread::spawn(move || {
        other.store(1, SeqCst);
        let own = AtomicU32::new(0);
        for _ in 0..30 {
            own.fetch_add(1, SeqCst);
        }
        other.store(0, SeqCst);
    });
    let own = AtomicU32::new(0);
    for _ in 0..60 {
        own.fetch_add(1, SeqCst);
    }
    assert_eq!(value.load(SeqCst), 0, "the work is not done");
    worker.join().unwrap();
}

#[test]
fn priorities_find_what_takes_long_without_an_interruption() {
    let check = |engine: Engine| Check::new(Threads::new(long_work)).engine(engine);
    let evenly = check(Random::new().walks(200).into()).run();
    assert!(evenly.violation().is_none(), "{evenly}");
    let by_priorities = check(Pct::new().walks(200).into()).run();
    assert!(by_priorities.violation().is_some(), "{by_priorities}");
    // Without a change of priorities nobody is interrupted.
    let uninterrupted = check(Pct::new().walks(200).priority_changes(0).into()).run();
    assert!(uninterrupted.violation().is_none(), "{uninterrupted}");
}

#[test]
fn walks_by_priorities_are_the_same_with_any_number_of_workers() {
    let walk = |workers| {
        let check = Check::new(Threads::new(alternating))
            .named("alternating")
            .engine(Pct::new().priority_changes(8));
        let verdict = check.threads(workers).run();
        let found = verdict.counterexample().expect("they can take turns");
        serde_json::to_string(&found.trace).unwrap()
    };
    let first = walk(1);
    for workers in [2, 3, 4, 2, 3, 4] {
        assert_eq!(walk(workers), first, "{workers} workers");
    }
}

/// Three threads that go wrong only where they interrupt each other again and again, in many ways.
fn alternating() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let threads: Vec<_> = (0..3)
        .map(|id| {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                for _ in 0..3 {
                    log.lock().unwrap().push(id);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let log = log.lock().unwrap();
    let changes = log.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(changes < 8, "they take turns: {log:?}");
}

#[test]
fn an_execution_with_many_interruptions_is_the_same_with_any_number_of_workers() {
    let found = |workers| {
        let check = Check::new(Threads::new(alternating))
            .named("alternating")
            .threads(workers);
        let verdict = check.run();
        let found = verdict.counterexample().expect("they can take turns");
        serde_json::to_string(&found.trace).unwrap()
    };
    let first = found(1);
    for workers in [2, 3, 4].into_iter().cycle().take(20) {
        assert_eq!(found(workers), first, "{workers} workers");
    }
}

#[test]
fn the_first_choice_or_timeout_of_a_thread_is_not_forgotten() {
    let chosen = || {
        let (one, other) = (dragnet::choose(2), dragnet::choose(2));
        assert!(one == 0 || other == 0, "both are chosen");
    };
    let in_time = || {
        let (sender, receiver) = dragnet::sync::mpsc::channel();
        let receiver = thread::spawn(move || {
            if receiver.recv_timeout(Duration::from_secs(1)).is_ok() {
                panic!("it came in time");
            }
            let _ = receiver.recv();
        });
        let sender = thread::spawn(move || {
            AtomicU32::new(0).store(1, SeqCst);
            let _ = sender.send(1);
        });
        receiver.join().unwrap();
        sender.join().unwrap();
    };
    for program in [chosen as fn(), in_time] {
        for engine in [EngineName::Breadth, EngineName::Depth, EngineName::Dpor] {
            let verdict = Check::new(Threads::new(program)).engine(engine).run();
            assert!(verdict.violation().is_some(), "{engine}: {verdict}");
        }
        for preemptions in [0, 1, 99] {
            let check =
                Check::new(Threads::new(program)).engine(Dpor::new().preemptions(preemptions));
            let verdict = check.run();
            assert!(verdict.violation().is_some(), "{preemptions}: {verdict}");
        }
    }
}

#[test]
fn what_is_wrong_within_a_bound_on_depth_is_found_with_every_reduction() {
    let program = || {
        let busy = thread::spawn(|| {
            let count = AtomicU32::new(0);
            for _ in 0..10 {
                count.fetch_add(1, SeqCst);
            }
        });
        let wrong = thread::spawn(|| {
            AtomicU32::new(0).fetch_add(1, SeqCst);
            panic!("it goes wrong at once");
        });
        busy.join().unwrap();
        wrong.join().unwrap();
    };
    for reduction in Reduction::ALL {
        for workers in [1, 2] {
            let check = Check::new(Threads::new(program)).engine(Dpor::new().reduction(reduction));
            let verdict = check.depth(6).threads(workers).run();
            let found = verdict.counterexample();
            let found = found.unwrap_or_else(|| panic!("{reduction}: {verdict}"));
            assert_eq!(found.len(), 1, "{reduction}: {verdict}");
        }
    }
}
