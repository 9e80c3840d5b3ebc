//! Direct systems that are hard to search: states that share a fingerprint, bounds that fail, steps that differ.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};

use dragnet::{Check, Engine, Failure, Outcome, System};

/// Counts in two digits, of which only the first reaches the fingerprint.
struct Digits;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pair(u8, u8);

impl Hash for Pair {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl System for Digits {
    type State = Pair;
    type Event = u8;

    fn initial(&self) -> Vec<Pair> {
        vec![Pair(0, 0)]
    }

    fn events(&self, state: &Pair, out: &mut Vec<u8>) {
        if state.0 < 3 {
            out.extend([0, 1, 2, 7]);
        }
    }

    fn next(&self, state: &Pair, event: &u8) -> Result<Pair, Failure> {
        Ok(Pair(state.0 + 1, state.1 + event))
    }
}

#[test]
fn whole_states_are_told_apart_even_where_their_fingerprints_are_equal() {
    for engine in [Engine::Breadth, Engine::Depth] {
        let verdict = Check::new(Digits)
            .always("never 21", |state| state.1 != 21)
            .engine(engine)
            .exact()
            .run();
        let counterexample = verdict.counterexample().expect("three sevens are 21");
        let events: Vec<&str> = counterexample.steps().map(|s| s.action.as_str()).collect();
        assert_eq!(events.len(), 3, "{engine:?}");
        assert!(events.iter().all(|event| event.contains('7')), "{events:?}");
    }
}

/// Two states to start in.
struct TwoStarts;

impl System for TwoStarts {
    type State = u8;
    type Event = u8;

    fn initial(&self) -> Vec<u8> {
        vec![0, 1]
    }

    fn events(&self, _state: &u8, _out: &mut Vec<u8>) {}

    fn next(&self, state: &u8, _event: &u8) -> Result<u8, Failure> {
        Ok(*state)
    }
}

#[test]
fn a_bound_that_fails_on_a_start_state_shows_that_state() {
    for engine in [Engine::Breadth, Engine::Depth, Engine::Random] {
        let verdict = Check::new(TwoStarts)
            .within("small", |state| {
                assert_ne!(*state, 1, "one is too many");
                true
            })
            .engine(engine)
            .run();
        let counterexample = verdict.counterexample().expect("the bound panics");
        assert_eq!(counterexample.start, ["1"], "{engine:?}");
    }
}

/// Every step leads somewhere else.
struct Drifting(AtomicU32);

impl System for Drifting {
    type State = u32;
    type Event = ();

    fn initial(&self) -> Vec<u32> {
        vec![0]
    }

    fn events(&self, state: &u32, out: &mut Vec<()>) {
        if *state < 1_000 {
            out.push(());
        }
    }

    fn next(&self, _state: &u32, (): &()) -> Result<u32, Failure> {
        Ok(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

#[test]
fn a_system_that_is_not_deterministic_is_told_so_and_not_blamed() {
    for engine in [Engine::Breadth, Engine::Depth, Engine::Random] {
        let verdict = Check::new(Drifting(AtomicU32::new(1)))
            .always("never 50", |state| *state != 50)
            .engine(engine)
            .threads(1)
            .exact()
            .run();
        let Outcome::Inconclusive(reason) = &verdict.outcome else {
            panic!("{engine:?}: {verdict}");
        };
        assert!(reason.contains("not deterministic"), "{engine:?}: {reason}");
    }
}

/// Panics when asked who waits.
struct Moody;

impl System for Moody {
    type State = u8;
    type Event = u8;

    fn initial(&self) -> Vec<u8> {
        vec![0]
    }

    fn events(&self, state: &u8, out: &mut Vec<u8>) {
        if *state < 5 {
            out.extend([1, 2]);
        }
    }

    fn next(&self, state: &u8, event: &u8) -> Result<u8, Failure> {
        Ok(state + event)
    }

    fn waiting(&self, _state: &u8) -> Vec<dragnet::ComponentId> {
        panic!("do not ask")
    }
}

#[test]
fn a_panic_in_whatever_a_system_is_asked_is_a_violation() {
    for engine in [Engine::Breadth, Engine::Depth, Engine::Random] {
        for threads in [1, 2] {
            let verdict = Check::new(Moody)
                .deadlock_free()
                .engine(engine)
                .threads(threads)
                .run();
            let described = verdict.violation().expect("it panics").describe();
            assert!(described.contains("do not ask"), "{engine:?}: {described}");
        }
    }
}
