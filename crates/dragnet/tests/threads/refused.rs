//! What a check cannot know of is refused by name.

use dragnet::sync::{Arc, Mutex};
use dragnet::{Check, Outcome, Threads, thread};

static MADE_LATER: std::sync::LazyLock<Mutex<Vec<u32>>> =
    std::sync::LazyLock::new(|| Mutex::new(vec![1, 2, 3]));

/// Each execution would have a copy of the vector, and all of them the same memory.
#[test]
fn a_static_that_std_makes_at_run_time_is_refused_by_name() {
    let verdict = Check::new(Threads::new(|| {
        let other = thread::spawn(|| MADE_LATER.lock().unwrap().push(4));
        MADE_LATER.lock().unwrap().push(5);
        other.join().unwrap();
    }))
    .run();
    let Outcome::Inconclusive(why) = &verdict.outcome else {
        panic!("{verdict}");
    };
    assert!(why.contains("use dragnet::sync::LazyLock"), "{why}");
}

fn why_inconclusive(main: impl Fn() + Send + Sync + 'static) -> String {
    let verdict = Check::new(Threads::new(main)).run();
    match &verdict.outcome {
        Outcome::Inconclusive(why) => why.clone(),
        _ => panic!("{verdict}"),
    }
}

#[test]
fn a_thread_of_std_cannot_come_to_what_a_check_knows() {
    let why = why_inconclusive(|| {
        let shared = Arc::new(Mutex::new(0));
        *shared.lock().unwrap() += 1;
        let other = std::thread::spawn(move || *shared.lock().unwrap());
        // Nobody cares what becomes of it.
        let _ = other.join();
    });
    let advice =
        "a thread that the check does not know comes to it: start threads with dragnet::thread";
    assert!(why.contains(advice), "{why}");
}

#[test]
fn what_a_thread_of_std_came_to_first_is_refused() {
    let why = why_inconclusive(|| {
        let shared = Arc::new(Mutex::new(0));
        let other = Arc::clone(&shared);
        let other = std::thread::spawn(move || *other.lock().unwrap());
        other.join().unwrap();
        *shared.lock().unwrap() += 1;
    });
    assert!(why.contains("was used outside of the execution"), "{why}");
}

#[test]
fn what_std_keeps_for_each_thread_is_refused() {
    thread_local!(static OWN: Mutex<u32> = const { Mutex::new(0) });
    let why = why_inconclusive(|| {
        let other = thread::spawn(|| OWN.with(|own| *own.lock().unwrap() += 1));
        OWN.with(|own| *own.lock().unwrap() += 1);
        other.join().unwrap();
    });
    assert!(why.contains("dragnet::thread_local!"), "{why}");
}

#[test]
fn what_outlives_an_execution_is_refused_by_name() {
    let outside = Arc::new(Mutex::new(0));
    let why = why_inconclusive(move || {
        let inside = Arc::clone(&outside);
        let other = thread::spawn(move || *inside.lock().unwrap() += 1);
        *outside.lock().unwrap() += 1;
        other.join().unwrap();
    });
    assert!(why.contains("is older than the execution"), "{why}");
}

/// What a thread comes to depends on how many executions there have been.
#[test]
fn a_program_that_comes_to_something_else_when_it_is_run_again_is_refused() {
    use std::sync::atomic::AtomicU32 as RealU32;

    use dragnet::Check;
    use dragnet::engine::{Dpor, Reduction};
    use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};

    for reduction in [
        Reduction::None,
        Reduction::Sleep,
        Reduction::Source,
        Reduction::Optimal,
    ] {
        let runs = RealU32::new(0);
        let program = move || {
            let values = Arc::new([const { AtomicU32::new(0) }; 2]);
            let which = runs.fetch_add(1, SeqCst) as usize / 2 % 2;
            let others = Arc::clone(&values);
            let other = thread::spawn(move || {
                others[which].store(1, SeqCst);
                others[1 - which].store(1, SeqCst);
            });
            values[0].load(SeqCst);
            values[1].load(SeqCst);
            other.join().unwrap();
        };
        let verdict = Check::new(Threads::new(program))
            .engine(Dpor::new().reduction(reduction))
            .run();
        let Outcome::Inconclusive(why) = &verdict.outcome else {
            panic!("{reduction}: {verdict}");
        };
        assert!(why.contains("did not do the same"), "{reduction}: {why}");
    }
}

#[test]
fn a_program_that_is_not_deterministic_is_noticed_where_interruptions_are_counted() {
    use std::sync::atomic::AtomicU32 as RealU32;

    use dragnet::engine::{Dpor, Reduction};
    use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};

    let runs = RealU32::new(0);
    let program = move || {
        let run = runs.fetch_add(1, SeqCst);
        let values = Arc::new([const { AtomicU32::new(0) }; 2]);
        // Both are known by the same numbers in all executions.
        values[0].load(SeqCst);
        values[1].load(SeqCst);
        let others = [0, 1].map(|which| {
            let values = Arc::clone(&values);
            let which = if run == 2 { 1 - which } else { which };
            thread::spawn(move || values[which].fetch_add(1, SeqCst))
        });
        for other in others {
            other.join().unwrap();
        }
    };
    let engine = Dpor::new().reduction(Reduction::None).preemptions(1);
    let check = Check::new(Threads::new(program)).engine(engine);
    let verdict = check.threads(1).run();
    let Outcome::Inconclusive(why) = &verdict.outcome else {
        panic!("{verdict}");
    };
    assert!(why.contains("did not do the same"), "{why}");
}

#[test]
fn a_choice_among_more_numbers_than_are_explored_is_not_judged() {
    // In 32 bits the second would be a choice among one number.
    for count in [(1 << 24) + 1, (1 << 32) + 1, usize::MAX] {
        let why = why_inconclusive(move || assert_eq!(dragnet::choose(count), 0));
        let advice = format!("a thread chooses among {count} numbers at ");
        assert!(why.starts_with(&advice), "{why}");
    }
}
