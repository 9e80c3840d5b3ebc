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
fn every_engine_says_that_a_loop_was_not_followed() {
    for engine in [Engine::Schedules, Engine::Breadth, Engine::Depth] {
        let verdict = Check::new(Threads::new(|| looks(4, true)))
            .engine(engine)
            .run();
        verdict.assert_holds();
        let within = verdict.within.join("; ");
        assert!(
            within.contains("a loop that sees nothing new"),
            "{engine}: {within}"
        );
    }
}

#[test]
fn an_execution_without_end_is_no_hang() {
    let count = || {
        let stop = Arc::new(AtomicU32::new(0));
        let other = Arc::clone(&stop);
        let other = thread::spawn(move || other.store(1, SeqCst));
        let turns = AtomicU32::new(0);
        while stop.load(SeqCst) == 0 {
            turns.fetch_add(1, SeqCst);
        }
        other.join().unwrap();
    };
    let verdict = Check::new(Threads::new(count)).run();
    let Outcome::Inconclusive(why) = &verdict.outcome else {
        panic!("{verdict}");
    };
    assert!(why.contains("is there a loop without end?"), "{why}");
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
