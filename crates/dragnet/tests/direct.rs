//! Direct systems that are hard to search: states that share a fingerprint, bounds that fail, steps that differ.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};

use dragnet::engine::EngineName;
use dragnet::extend::{Cursor, Explorer, Extent};
use dragnet::{Check, Failure, Outcome, System};

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
    for engine in [EngineName::Breadth, EngineName::Depth] {
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

/// Counts up, or goes to four at once; numbers that differ by three hash alike.
struct Round;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hour(u8);

impl Hash for Hour {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0 % 3).hash(state);
    }
}

impl System for Round {
    type State = Hour;
    type Event = u8;

    fn initial(&self) -> Vec<Hour> {
        vec![Hour(0)]
    }

    fn events(&self, state: &Hour, out: &mut Vec<u8>) {
        match state.0 {
            0 => out.extend([1, 4]),
            1..=3 => out.push(1),
            _ => {}
        }
    }

    fn next(&self, state: &Hour, event: &u8) -> Result<Hour, Failure> {
        Ok(Hour(state.0 + event))
    }
}

#[test]
fn whole_states_beyond_a_depth_bound_are_not_taken_for_others_with_their_fingerprint() {
    for engine in [EngineName::Breadth, EngineName::Depth] {
        for bound in 1..3 {
            let verdict = Check::new(Round).engine(engine).exact().depth(bound).run();
            assert!(
                matches!(verdict.outcome, Outcome::Inconclusive(_)),
                "{engine:?} to {bound}: {verdict}"
            );
        }
        let verdict = Check::new(Round).engine(engine).exact().depth(3).run();
        assert!(verdict.holds(), "{engine:?}: {verdict}");
        assert_eq!(verdict.states(), 5);
    }
}

/// Numbers, of which three neighbours hash alike, and the steps between them.
struct Alike(&'static [(u8, u8)]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number(u8);

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0 / 3).hash(state);
    }
}

impl System for Alike {
    type State = Number;
    type Event = u8;

    fn initial(&self) -> Vec<Number> {
        vec![Number(7), Number(0)]
    }

    fn events(&self, state: &Number, out: &mut Vec<u8>) {
        let from = self.0.iter().filter(|(from, _)| *from == state.0);
        out.extend(from.map(|(_, to)| *to));
    }

    fn next(&self, _state: &Number, event: &u8) -> Result<Number, Failure> {
        Ok(Number(*event))
    }
}

#[test]
fn the_way_to_a_whole_state_is_found_among_others_with_the_fingerprints_of_those_on_it() {
    // Both are in the first step; only the first leads on.
    let verdict = Check::new(Alike(&[(7, 3), (3, 5), (0, 4)]))
        .always("never five", |number| number.0 != 5)
        .exact()
        .run();
    assert_eq!(verdict.counterexample().map(|found| found.len()), Some(2));
}

#[test]
fn a_counterexample_of_whole_states_is_called_shortest_only_where_none_is_shorter() {
    // Depth first goes by five, which has the fingerprint of three.
    let verdict = Check::new(Alike(&[(7, 5), (5, 3), (0, 3)]))
        .always("never three", |number| number.0 != 3)
        .engine(EngineName::Depth)
        .threads(1)
        .exact()
        .run();
    let counterexample = verdict.counterexample().expect("three is reached");
    assert!(counterexample.shortest);
    assert_eq!(counterexample.len(), 1);
}

#[test]
fn the_way_to_a_whole_state_does_not_leave_the_space() {
    // The short way to five is by four, which has the fingerprint of three.
    let check = || {
        Check::new(Alike(&[(0, 4), (4, 5), (0, 3), (3, 5)]))
            .named("alike")
            .always("never five", |number| number.0 != 5)
            .within("not four", |number| number.0 != 4)
    };
    let verdict = check().exact().run();
    let counterexample = verdict.counterexample().expect("five is reached by three");
    assert!(check().replay(&counterexample.trace).is_ok());
}

/// Throws sixty coins, and hashes all that can come of it alike.
struct Coins;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thrown {
    coins: u8,
    heads: u8,
}

impl Hash for Thrown {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl System for Coins {
    type State = Thrown;
    type Event = u8;

    fn initial(&self) -> Vec<Thrown> {
        vec![Thrown { coins: 0, heads: 0 }]
    }

    fn events(&self, state: &Thrown, out: &mut Vec<u8>) {
        if state.coins < 60 {
            out.extend([0, 1]);
        }
    }

    fn next(&self, state: &Thrown, event: &u8) -> Result<Thrown, Failure> {
        Ok(Thrown {
            coins: state.coins + 1,
            heads: state.heads + event,
        })
    }
}

#[test]
fn the_way_to_a_whole_state_is_found_though_all_states_share_a_fingerprint() {
    // There are more ways to throw them than could ever be tried.
    let verdict = Check::new(Coins)
        .always("never only heads", |state| state.heads != 60)
        .exact()
        .run();
    assert_eq!(verdict.counterexample().map(|found| found.len()), Some(60));
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
    for engine in [EngineName::Breadth, EngineName::Depth, EngineName::Random] {
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
    for engine in [EngineName::Breadth, EngineName::Depth, EngineName::Random] {
        let mut check = Check::new(Drifting(AtomicU32::new(1)))
            .always("never 50", |state| *state != 50)
            .engine(engine)
            .threads(1);
        if engine != EngineName::Random {
            check = check.exact();
        }
        let verdict = check.run();
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

    fn waiting(&self, _state: &u8) -> Vec<dragnet::system::Actor> {
        panic!("do not ask")
    }
}

#[test]
fn a_panic_in_whatever_a_system_is_asked_is_a_violation() {
    for engine in [EngineName::Breadth, EngineName::Depth, EngineName::Random] {
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

/// Counts up, or down, from either of two numbers.
struct UpAndDown;

impl System for UpAndDown {
    type State = i8;
    type Event = i8;

    fn initial(&self) -> Vec<i8> {
        vec![0, 10]
    }

    fn events(&self, state: &i8, out: &mut Vec<i8>) {
        if (-5..15).contains(state) {
            out.extend([1, -1]);
        }
    }

    fn next(&self, state: &i8, event: &i8) -> Result<i8, Failure> {
        Ok(state + event)
    }
}

/// A check that `number` is never reached.
fn never(number: i8) -> Check<UpAndDown> {
    Check::new(UpAndDown)
        .named("up and down")
        .always("never", move |state| *state != number)
}

fn trace_to(number: i8) -> dragnet::trace::Trace {
    let verdict = never(number).run();
    verdict
        .counterexample()
        .expect("it is reached")
        .trace
        .clone()
}

#[test]
fn an_execution_that_leaves_the_space_is_no_counterexample_when_it_is_replayed() {
    let trace = trace_to(3);
    assert!(never(3).replay(&trace).is_ok());
    let small = never(3).within("up to three", |state| *state <= 3);
    assert!(small.replay(&trace).is_ok(), "it stays within the bound");
    for most in [1, 2] {
        let check = never(3).within("small", move |state| *state <= most);
        let refused = check.replay(&trace).expect_err("it goes to three");
        let refused = refused.to_string();
        let step = format!("in step {}", most + 1);
        assert!(refused.contains(&step), "{refused}");
        assert!(refused.contains("leaves the space `small`"), "{refused}");
    }
}

#[test]
fn an_execution_that_starts_outside_the_space_is_no_counterexample_when_it_is_replayed() {
    for number in [10, 12] {
        let trace = trace_to(number);
        let check = never(number).within("not ten", |state| *state != 10);
        let refused = check.replay(&trace).expect_err("it starts with ten");
        let refused = refused.to_string();
        assert!(refused.contains("at the start"), "{refused}");
        assert!(refused.contains("outside the space `not ten`"), "{refused}");
    }
}

#[test]
fn a_bound_that_panics_ends_an_execution_in_a_search_and_in_a_replay() {
    let bounded = |at: i8| {
        never(3).within("no panic", move |state| {
            assert_ne!(*state, at, "the bound is not defined here");
            true
        })
    };
    let verdict = bounded(3).run();
    let trace = &verdict.counterexample().expect("the bound panics").trace;
    assert_eq!(trace.property, "panic");
    let again = bounded(3).replay(trace).expect("the bound panics again");
    assert_eq!(again.property, "panic");
    let refused = bounded(2)
        .replay(&trace_to(3))
        .expect_err("it panics sooner");
    assert!(refused.to_string().contains("in step 2"), "{refused}");
}

/// Counts to two, and fails to name its components.
struct Nameless;

impl System for Nameless {
    type State = u8;
    type Event = u8;

    fn initial(&self) -> Vec<u8> {
        vec![0]
    }

    fn events(&self, state: &u8, out: &mut Vec<u8>) {
        out.extend((*state < 2).then_some(state + 1));
    }

    fn next(&self, _: &u8, next: &u8) -> Result<u8, Failure> {
        Ok(*next)
    }

    fn components(&self) -> Vec<String> {
        panic!("no names today");
    }
}

#[test]
fn a_violation_is_reported_though_the_system_fails_to_name_its_components() {
    for engine in [EngineName::Breadth, EngineName::Depth, EngineName::Random] {
        let check = Check::new(Nameless).engine(engine);
        let verdict = check.always("below two", |state| *state < 2).run();
        let found = verdict.counterexample().expect("two is reached");
        assert_eq!(found.len(), 2, "{engine:?}");
    }
}

/// Counts to three, by ones and twos.
struct Counter;

impl System for Counter {
    type State = u8;
    type Event = u8;

    fn initial(&self) -> Vec<u8> {
        vec![0]
    }

    fn events(&self, count: &u8, out: &mut Vec<u8>) {
        out.extend((1..=2).filter(|more| count + more <= 3));
    }

    fn next(&self, count: &u8, more: &u8) -> Result<u8, Failure> {
        Ok(count + more)
    }
}

/// An engine that does one thing.
struct Engine(fn(&mut dyn Cursor));

impl Explorer for Engine {
    fn name(&self) -> &str {
        "one-thing"
    }

    fn explore(&self, cursor: &mut dyn Cursor) -> Extent {
        (self.0)(cursor);
        Extent::Everything
    }
}

/// What an engine does wrong, and what is said of it.
type Mistake = (fn(&mut dyn Cursor), &'static str);

#[test]
fn a_mistake_of_an_engine_of_ones_own_is_none_of_the_program() {
    let mistakes: [Mistake; 5] = [
        (|_| panic!("not written"), "panicked: not written"),
        (
            |cursor| {
                cursor.take(99);
            },
            "takes number 99 of 2 enabled events",
        ),
        (
            |cursor| {
                cursor.task(2);
            },
            "takes number 2 of 2 enabled events",
        ),
        (
            |cursor| {
                cursor.begin(1);
            },
            "begins at 1, and there are 1",
        ),
        (
            |cursor| cursor.back_to(1),
            "goes back to step 1, and has taken 0",
        ),
    ];
    for (mistake, message) in mistakes {
        let verdict = Check::new(Counter).explore_with(Engine(mistake)).run();
        let Outcome::Inconclusive(why) = &verdict.outcome else {
            panic!("{message}: {verdict}");
        };
        let all = ["the engine one-thing", message];
        assert!(all.iter().all(|part| why.contains(part)), "{why}");
    }
}

#[test]
fn what_an_engine_of_ones_own_has_found_counts_though_it_panics_then() {
    let finds = Engine(|cursor| {
        cursor.take(1);
        panic!("{:?}", cursor.steps());
    });
    let check = Check::new(Counter).always("never two", |&count| count != 2);
    let verdict = check.explore_with(finds).run();
    assert_eq!(verdict.counterexample().map(|found| found.len()), Some(1));
}

#[test]
fn a_run_goes_back_step_by_step_without_taking_any_again() {
    let mut run = Counter.run(&0).unwrap();
    for _ in 0..3 {
        run.take(0).unwrap();
    }
    for steps in [2, 1, 0_u8] {
        run.back_to(steps.into()).unwrap();
        assert_eq!((*run.state(), run.steps()), (steps, steps.into()));
    }
    assert_eq!(run.events().unwrap(), [1, 2]);
    assert_eq!(run.repeated_steps(), 0);
}
