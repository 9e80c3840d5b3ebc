//! Differences from `std` that docs/threads.md names, each as a test that fails when it is closed.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Mutex as Uncontrolled;

use dragnet::engine::{Dpor, Reduction};
use dragnet::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use dragnet::sync::mpsc::channel;
use dragnet::sync::{Arc, Condvar, Mutex, RwLock};
use dragnet::time::{Duration, Instant};
use dragnet::{Threads, thread};

use crate::check;
use crate::interpret::OnPurpose;
use crate::plan::{Act, Capacity, Gap, Plan};

fn assert_holds(program: impl Fn() + Send + Sync + 'static) {
    check(Threads::new(program)).run().assert_holds();
}

/// A program of which no more than its operations matters.
fn plan(threads: &[&[Act]]) -> Plan {
    Plan {
        threads: threads.iter().map(|acts| acts.to_vec()).collect(),
        capacity: Capacity::Unbounded,
        receiver: 1,
        parties: 1,
        scoped: false,
    }
}

#[test]
fn a_writer_that_waits_does_not_make_try_read_fail() {
    let reads = [Act::Spawn(1), Act::Read, Act::TryRead];
    assert!(Gap::TryReadBesideWriter.concerns(&plan(&[&reads, &[Act::Write]])));
    assert_holds(|| {
        let lock = RwLock::new(());
        thread::scope(|scope| {
            let _reading = lock.read();
            scope.spawn(|| drop(lock.write()));
            assert!(lock.try_read().is_ok());
        });
    });
}

#[test]
fn a_writer_that_waits_does_not_keep_out_who_reads_already() {
    let reads = [Act::Spawn(1), Act::Read, Act::Lock(0)];
    assert!(Gap::BlocksWhileReading.concerns(&plan(&[&reads, &[Act::Write]])));
    assert_holds(|| {
        let lock = RwLock::new(());
        thread::scope(|scope| {
            let _reading = lock.read();
            scope.spawn(|| drop(lock.write()));
            drop(lock.read());
        });
    });
}

#[test]
fn who_waits_for_a_message_leaves_the_token_of_park_alone() {
    let waits = [Act::Spawn(1), Act::Receive, Act::Park];
    assert!(Gap::ParkBesideChannels.concerns(&plan(&[&waits, &[Act::UnparkFirst, Act::Send]])));
    assert_holds(|| {
        let (sender, receiver) = channel();
        let waits = thread::spawn(move || {
            receiver.recv().unwrap();
            thread::park();
        });
        waits.thread().unpark();
        sender.send(()).unwrap();
        waits.join().unwrap();
    });
}

#[test]
fn who_waits_wakes_up_spuriously_only_where_that_is_asked_for() {
    let waits = [Act::Spawn(1), Act::Lock(0), Act::WaitWhile(2)];
    let tries = [Act::TryLock(0), Act::Lock(0), Act::NotifyAll];
    assert!(Gap::TryLockBesideSpuriousWakeup.concerns(&plan(&[&waits, &tries])));
    let program = || {
        let (waits, changed) = (Mutex::new(false), Condvar::new());
        let notified = AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut guard = waits.lock().unwrap();
                *guard = true;
                drop(changed.wait(guard));
                assert_eq!(notified.load(SeqCst), 1);
            });
            while !*waits.lock().unwrap() {
                thread::yield_now();
            }
            notified.store(1, SeqCst);
            changed.notify_one();
        });
    };
    assert_holds(program);
    let spuriously = check(Threads::new(program).spurious_wakeups(1)).run();
    assert!(spuriously.violation().is_some());
}

#[test]
fn who_catches_a_panic_while_another_unwinds_seems_to_panic_still() {
    let panics = [Act::PanicHolding(0)];
    let first = [Act::Spawn(1), Act::PanicHolding(1)];
    assert!(Gap::PanicsOverlap.concerns(&plan(&[&first, &panics])));
    let program = || {
        let lock = Arc::new(Mutex::new(()));
        let others = Arc::clone(&lock);
        let other = thread::spawn(move || {
            let _held = others.lock();
            panic_any(OnPurpose);
        });
        lock.is_poisoned();
        let caught = catch_unwind(AssertUnwindSafe(|| panic_any(OnPurpose)));
        if caught.is_err_and(|payload| payload.is::<OnPurpose>()) {
            assert!(!thread::panicking());
        }
        let _ = other.join();
    };
    let verdict = check(Threads::new(program).panics_are_fine()).run();
    assert!(verdict.violation().is_some());
}

dragnet::thread_local! {
    static LAST: Uncontrolled<Option<Last>> = Uncontrolled::new(None);
}

/// Tells when it is dropped.
struct Last(Arc<AtomicU32>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.store(1, SeqCst);
    }
}

#[test]
fn a_scope_waits_for_the_destructors_of_thread_local_values() {
    let mut scoped = plan(&[&[Act::Spawn(1)], &[Act::Local]]);
    scoped.scoped = true;
    assert!(Gap::LocalsOutliveTheirThread.concerns(&scoped));
    assert_holds(|| {
        let dropped = Arc::new(AtomicU32::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                let last = Last(Arc::clone(&dropped));
                LAST.with(|local| *local.lock().unwrap() = Some(last));
            });
        });
        assert_eq!(dropped.load(SeqCst), 1);
    });
}

#[test]
fn what_is_relaxed_is_sequentially_consistent() {
    assert_holds(|| {
        let (one, other) = (AtomicU32::new(0), AtomicU32::new(0));
        let seen = thread::scope(|scope| {
            let first = scope.spawn(|| {
                one.store(1, Relaxed);
                other.load(Relaxed)
            });
            other.store(1, Relaxed);
            let seen = one.load(Relaxed);
            seen + first.join().unwrap()
        });
        assert!(seen > 0);
    });
}

#[test]
fn who_drops_an_arc_last_is_not_explored() {
    let executions = |reduction| {
        let program = || {
            let one = Arc::new(0);
            let other = Arc::clone(&one);
            let begun = Arc::new(AtomicU32::new(0));
            let begins = Arc::clone(&begun);
            let other = thread::spawn(move || {
                begins.load(SeqCst);
                drop(other);
            });
            begun.load(SeqCst);
            drop(one);
            other.join().unwrap();
        };
        let check = check(Threads::new(program)).engine(Dpor::new().reduction(reduction));
        let verdict = check.threads(1).run();
        verdict.assert_holds();
        verdict.statistics.schedules.unwrap().executions
    };
    assert!(executions(Reduction::None) > 1);
    assert_eq!(executions(Reduction::Optimal), 1);
}

#[test]
fn park_returns_only_where_somebody_unparks() {
    assert_holds(|| {
        let unparked = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&unparked);
        let parks = thread::spawn(move || {
            thread::park();
            assert_eq!(seen.load(SeqCst), 1);
        });
        unparked.store(1, SeqCst);
        parks.thread().unpark();
        parks.join().unwrap();
    });
}

#[test]
fn compare_exchange_weak_fails_only_where_values_differ() {
    assert_holds(|| {
        let value = AtomicU32::new(0);
        let exchanged = value.compare_exchange_weak(0, 1, SeqCst, SeqCst);
        assert_eq!(exchanged, Ok(0));
    });
}

#[test]
fn time_does_not_pass_while_a_thread_looks_at_the_clock() {
    assert_holds(|| {
        let begun = Instant::now();
        let computed = (0..100_000).fold(0_u64, |sum, number| sum ^ number);
        std::hint::black_box(computed);
        assert_eq!(begun.elapsed(), Duration::ZERO);
    });
}
