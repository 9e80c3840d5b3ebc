//! Runs: executions that are paused between their steps.

use std::sync::atomic::{AtomicU64 as Counter, Ordering::Relaxed};

use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::sync::{Arc, Mutex};
use dragnet::system::{Actor, ComponentId};
use dragnet::trace::Key;
use dragnet::{Failure, Run, System, Threads, thread};

/// Two threads that count, `each` as often, and how many operations they have done in all executions.
fn counting(each: usize) -> (Threads, std::sync::Arc<Counter>) {
    let done = std::sync::Arc::new(Counter::new(0));
    let known = std::sync::Arc::clone(&done);
    let program = Threads::new(move || {
        let count = Arc::new(AtomicU32::new(0));
        let (other, told) = (Arc::clone(&count), std::sync::Arc::clone(&known));
        let other = thread::spawn(move || add(&other, each, &told));
        add(&count, each, &known);
        other.join().unwrap();
    });
    (program, done)
}

fn add(count: &AtomicU32, each: usize, done: &Counter) {
    for _ in 0..each {
        count.fetch_add(1, SeqCst);
        done.fetch_add(1, Relaxed);
    }
}

/// Takes so many steps, the threads in turn.
fn take(run: &mut dyn Run<dragnet::threads::Moments>, steps: usize) -> Result<(), Failure> {
    for step in 0..steps {
        let enabled = run.events()?.len();
        run.take(step % enabled)?;
    }
    Ok(())
}

#[test]
fn ten_thousand_steps_of_one_execution_execute_each_operation_once() -> Result<(), Failure> {
    let (program, done) = counting(6_000);
    let program = program.system();
    let start = &program.initial()[0];
    let before = done.load(Relaxed);
    let mut run = program.run(start)?;
    take(&mut *run, 10_000)?;
    assert_eq!((run.steps(), run.repeated_steps()), (10_000, 0));
    let operations = done.load(Relaxed) - before;
    assert!(
        operations <= 10_000,
        "{operations} operations were executed"
    );
    // All states on the way can be asked for, which executes nothing.
    let end = run.state().clone();
    assert_eq!(end.steps(), 10_000);
    assert_eq!(done.load(Relaxed) - before, operations);
    Ok(())
}

#[test]
fn executions_that_are_paused_on_one_os_thread_do_not_disturb_each_other() -> Result<(), Failure> {
    let (program, _) = counting(20);
    let program = program.system();
    let start = &program.initial()[0];
    let mut runs = [
        program.run(start)?,
        program.run(start)?,
        program.run(start)?,
    ];
    for _ in 0..30 {
        for run in &mut runs {
            take(&mut **run, 1)?;
        }
    }
    let states: Vec<_> = runs.iter().map(|run| run.state().clone()).collect();
    assert!(states.iter().all(|state| *state == states[0]));
    // The first ones can be dropped before the others go on.
    let [first, _, mut last] = runs;
    drop(first);
    while !last.events()?.is_empty() {
        last.take(0)?;
    }
    assert!(last.state().is_over());
    Ok(())
}

#[test]
fn a_run_goes_back_and_comes_to_the_same_state_again() -> Result<(), Failure> {
    let (program, _) = counting(5);
    let program = program.system();
    let mut run = program.run(&program.initial()[0])?;
    take(&mut *run, 8)?;
    let (there, key) = (run.fingerprint(Key::default()), Key::default());
    let positions = run.positions();
    run.back_to(3)?;
    assert_eq!(run.steps(), 3);
    assert_ne!(run.fingerprint(key), there);
    for &position in &positions[3..] {
        run.take(position)?;
    }
    assert_eq!(run.fingerprint(key), there);
    assert_eq!(run.fingerprint(key), program.fingerprint(run.state(), key));
    // From a state in the middle, too.
    run.back_to(4)?;
    let mut other = program.run(run.state())?;
    for &position in &positions[4..] {
        other.take(position)?;
    }
    assert_eq!((other.steps(), other.fingerprint(key)), (4, there));
    Ok(())
}

#[test]
fn steps_lead_to_the_states_that_the_system_says() -> Result<(), Failure> {
    let (program, _) = counting(2);
    let program = program.system();
    let mut state = program.initial().remove(0);
    let mut run = program.run(&state)?;
    let mut events = Vec::new();
    loop {
        events.clear();
        program.events(&state, &mut events);
        assert_eq!(run.events()?, events);
        assert_eq!(*run.state(), state);
        let Some(event) = events.last() else {
            return Ok(());
        };
        state = program.next(&state, event)?;
        run.take(events.len() - 1)?;
    }
}

/// The actors of the enabled tasks along the first execution, and what they are called.
fn actors(program: &dragnet::threads::Moments) -> Result<Vec<(Actor, String)>, Failure> {
    let mut run = program.run(&program.initial()[0])?;
    let mut actors = Vec::new();
    while let Some(event) = run.events()?.first().cloned() {
        let actor = run.system().task(run.state(), &event).actor;
        actors.push((actor, program.actor_name(actor)));
        run.take(0)?;
    }
    Ok(actors)
}

#[test]
fn an_actor_is_the_same_whatever_was_executed_before() -> Result<(), Failure> {
    /// Two threads start one each, in either order.
    fn program() -> dragnet::threads::Moments {
        let start = |name: &'static str| {
            let inner = move || {
                let inner = thread::Builder::new().name(format!("below {name}"));
                inner.spawn(thread::yield_now).unwrap().join().unwrap();
            };
            let outer = thread::Builder::new().name(name.to_owned());
            outer.spawn(inner).unwrap()
        };
        let body = move || {
            for thread in [start("one"), start("two")] {
                thread.join().unwrap();
            }
        };
        Threads::new(body).system()
    }
    let (fresh, used) = (program(), program());
    let mut other = used.run(&used.initial()[0])?;
    while !other.events()?.is_empty() {
        let last = other.events()?.len() - 1;
        other.take(last)?;
    }
    drop(other);
    let expected = actors(&fresh)?;
    assert_eq!(actors(&used)?, expected);
    let names = ["main", "one", "two", "below one", "below two"];
    for name in names {
        assert!(expected.iter().any(|(_, known)| known == name), "{name}");
    }
    // All of them are threads of one process.
    assert_eq!(fresh.components().len(), 1);
    for (actor, _) in expected {
        assert!(
            matches!(actor, Actor::Component(ComponentId(0), _)),
            "{actor:?}"
        );
    }
    Ok(())
}

#[test]
fn a_step_that_fails_ends_a_run() -> Result<(), Failure> {
    let program = Threads::new(|| {
        let count = AtomicU32::new(0);
        count.fetch_add(1, SeqCst);
        assert_eq!(count.load(SeqCst), 2, "one is missing");
    });
    let program = program.system();
    let mut run = program.run(&program.initial()[0])?;
    run.take(0)?;
    let before = run.state().clone();
    let failure = run.take(0).expect_err("it counts one");
    assert!(failure.message().contains("one is missing"), "{failure}");
    assert_eq!((run.steps(), run.events()?.len()), (2, 0));
    assert_eq!(*run.state(), before);
    run.back_to(1)?;
    assert_eq!(run.events()?.len(), 1);
    Ok(())
}

/// A lock that is given back while its holder unwinds, with another thread between.
#[test]
fn an_execution_whose_thread_unwinds_is_paused_all_the_same() -> Result<(), Failure> {
    struct Tells(Arc<AtomicU32>);
    impl Drop for Tells {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
            self.0.fetch_add(1, SeqCst);
        }
    }
    let program = Threads::new(|| {
        let told = Arc::new(AtomicU32::new(0));
        let lock = Arc::new(Mutex::new(0));
        let tells = Tells(Arc::clone(&told));
        let other = Arc::clone(&lock);
        let unlucky = thread::spawn(move || {
            let _tells = tells;
            let _held = other.lock().unwrap();
            panic!("on purpose");
        });
        assert!(unlucky.join().is_err());
        assert_eq!(told.load(SeqCst), 2);
        assert!(lock.lock().is_err(), "it is poisoned");
    })
    .panics_are_fine();
    let program = program.system();
    let start = &program.initial()[0];
    let mut runs = [program.run(start)?, program.run(start)?];
    while !runs[0].events()?.is_empty() {
        for run in &mut runs {
            run.take(0)?;
            assert!(!std::thread::panicking());
        }
    }
    assert!(runs.iter().all(|run| run.state().is_over()));
    Ok(())
}
