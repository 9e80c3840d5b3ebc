//! Types of the program whose `Debug`, `Hash`, `Eq`, `Clone` or `Drop` panics or fails while they are searched or shown.

use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use dragnet::engine::{Engine, EngineName, EngineOption};
use dragnet::system::{Actor, ComponentId};
use dragnet::verdict::ViolationKind;
use dragnet::{
    Check, Cluster, Context, Determinism, Failure, Node, NodeId, System, Timer, Verdict,
};

/// The engine with so many walks, if it makes random ones.
fn with_walks(engine: EngineName, walks: u64) -> Engine {
    let engine = Engine::from(engine);
    engine.with(EngineOption::Walks(walks)).unwrap_or(engine)
}

const TICK: Timer = Timer::new("tick");

const CLUSTER_ENGINES: [EngineName; 6] = [
    EngineName::Breadth,
    EngineName::Depth,
    EngineName::Random,
    EngineName::Pct,
    EngineName::Local,
    EngineName::Auto,
];

const DIRECT_ENGINES: [EngineName; 5] = [
    EngineName::Breadth,
    EngineName::Depth,
    EngineName::Random,
    EngineName::Pct,
    EngineName::Auto,
];

/// What does not work, and from which value on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Broken {
    DebugPanics,
    DebugFails,
    HashPanics,
    EqPanics,
    Nothing,
}

const FROM: u8 = 2;

/// A number whose implementations fail from [`FROM`] on.
#[derive(Clone)]
struct Fragile {
    value: u8,
    broken: Broken,
}

impl Debug for Fragile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fragile {{ value: {}", self.value)?;
        match self.broken {
            Broken::DebugPanics if self.value >= FROM => panic!("no debug today"),
            Broken::DebugFails if self.value >= FROM => Err(fmt::Error),
            _ => f.write_str(" }"),
        }
    }
}

impl Hash for Fragile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        assert!(
            self.broken != Broken::HashPanics || self.value < FROM,
            "no hash today"
        );
        self.value.hash(state);
    }
}

impl PartialEq for Fragile {
    fn eq(&self, other: &Self) -> bool {
        assert!(
            self.broken != Broken::EqPanics || self.value < FROM || other.value < FROM,
            "no equality today"
        );
        self.value == other.value
    }
}

impl Eq for Fragile {}

/// Counts its own ticks and tells the others, with what is broken in its state or in its messages.
struct Counting {
    state: Broken,
    msg: Broken,
}

impl Node for Counting {
    type State = Fragile;
    type Msg = Fragile;

    fn on_start(&self, cx: &mut Context<Fragile>) -> Fragile {
        cx.set_timer(TICK, Duration::ZERO);
        Fragile {
            value: 0,
            broken: self.state,
        }
    }

    fn on_timer(&self, count: &mut Fragile, _: Timer, cx: &mut Context<Fragile>) {
        if count.value < 3 {
            count.value += 1;
            cx.set_timer(TICK, Duration::ZERO);
            let broken = self.msg;
            cx.broadcast_to_others(Fragile {
                value: count.value,
                broken,
            });
        }
    }

    fn on_message(&self, _: &mut Fragile, _: NodeId, _: Fragile, _: &mut Context<Fragile>) {}

    fn on_call(&self, count: &mut Fragile, call: Fragile, _: &mut Context<Fragile>) {
        count.value = call.value;
    }
}

/// Counts up, in one way or in two, so that states are compared.
struct Counter {
    broken: Broken,
    ways: usize,
}

impl System for Counter {
    type State = Fragile;
    type Event = Fragile;

    fn initial(&self) -> Vec<Fragile> {
        vec![Fragile {
            value: 0,
            broken: self.broken,
        }]
    }

    fn events(&self, count: &Fragile, out: &mut Vec<Fragile>) {
        if count.value < 3 {
            out.extend(std::iter::repeat_n(count.clone(), self.ways));
        }
    }

    fn next(&self, count: &Fragile, _: &Fragile) -> Result<Fragile, Failure> {
        let mut next = count.clone();
        next.value += 1;
        Ok(next)
    }

    fn waiting(&self, _: &Fragile) -> Vec<Actor> {
        vec![ComponentId(0).into()]
    }
}

fn cluster(state: Broken, msg: Broken) -> Cluster<Counting> {
    Cluster::new(2, move |_| Counting { state, msg })
}

/// Each engine with one worker and with two.
fn each(engines: &[EngineName], mut run: impl FnMut(EngineName, usize)) {
    for &engine in engines {
        for threads in [1, 2] {
            run(engine, threads);
        }
    }
}

fn text(verdict: &Verdict) -> String {
    let counterexample = verdict.counterexample().expect("there is an execution");
    // What a file holds is what is printed.
    let trace = serde_json::to_string(&counterexample.trace).expect("it is text");
    assert!(trace.contains(&counterexample.steps().last().expect("a step").action));
    verdict.to_string()
}

const PANICKED: &str = "‹Debug of Fragile panicked: no debug today›";
const FAILED: &str = "‹Debug of Fragile returned an error›";

#[test]
fn a_debug_of_a_node_state_that_fails_loses_neither_the_violation_nor_its_steps() {
    for (broken, said) in [
        (Broken::DebugPanics, PANICKED),
        (Broken::DebugFails, FAILED),
    ] {
        each(&CLUSTER_ENGINES, |engine, threads| {
            let verdict = Check::new(cluster(broken, Broken::Nothing))
                .always("below three", |s| s.nodes().all(|count| count.value < 3))
                .engine(with_walks(engine, 500))
                .threads(threads)
                .run();
            let text = text(&verdict);
            for part in [said, "value: 0 }", "timer tick runs out"] {
                assert!(text.contains(part), "{engine:?}, {threads}: {text}");
            }
            assert_eq!(verdict.counterexample().unwrap().len(), 3, "{text}");
        });
    }
}

#[test]
fn a_debug_of_a_message_that_fails_loses_neither_the_violation_nor_its_steps() {
    for (broken, said) in [
        (Broken::DebugPanics, PANICKED),
        (Broken::DebugFails, FAILED),
    ] {
        each(&CLUSTER_ENGINES, |engine, threads| {
            let verdict = Check::new(cluster(Broken::Nothing, broken))
                .always("below three", |s| s.nodes().all(|count| count.value < 3))
                .engine(with_walks(engine, 500))
                .threads(threads)
                .run();
            let text = text(&verdict);
            let sent = format!("to Counting 1: Fragile {{ value: 2{said}");
            let other = sent.replace("Counting 1", "Counting 0");
            assert!(text.contains(&sent) || text.contains(&other), "{text}");
        });
    }
}

#[test]
fn a_deadlock_is_described_though_the_debug_of_a_call_fails() {
    for (broken, said) in [
        (Broken::DebugPanics, PANICKED),
        (Broken::DebugFails, FAILED),
    ] {
        let call = Fragile {
            value: FROM,
            broken,
        };
        let system = cluster(Broken::Nothing, Broken::Nothing).calls(0, [call]);
        let verdict = Check::new(system).deadlock_free().run();
        let text = text(&verdict);
        let waits = format!("waits for an answer to Fragile {{ value: 2{said}");
        assert!(text.contains(&waits), "{text}");
    }
}

#[test]
fn a_debug_of_a_direct_system_that_fails_loses_neither_the_violation_nor_its_steps() {
    for (broken, said) in [
        (Broken::DebugPanics, PANICKED),
        (Broken::DebugFails, FAILED),
    ] {
        each(&DIRECT_ENGINES, |engine, threads| {
            let check = || {
                Check::new(Counter { broken, ways: 2 })
                    .engine(with_walks(engine, 10))
                    .threads(threads)
            };
            let verdict = check().always("below three", |count| count.value < 3).run();
            let broken = text(&verdict);
            assert_eq!(verdict.counterexample().unwrap().len(), 3, "{broken}");
            // The third event is a count of two, and so is the state before it.
            let action = format!("3. Fragile {{ value: 2{said}");
            assert!(broken.contains(&action), "{broken}");
            let deadlock = check().deadlock_free().run();
            assert!(text(&deadlock).contains(said), "{deadlock}");
        });
    }
}

#[test]
fn a_debug_that_fails_in_the_first_state_is_no_obstacle_either() {
    let initial = |broken| Fragile {
        value: FROM,
        broken,
    };
    /// Begins where nothing can be printed.
    struct Late(Fragile);

    impl System for Late {
        type State = Fragile;
        type Event = ();

        fn initial(&self) -> Vec<Fragile> {
            vec![self.0.clone()]
        }

        fn events(&self, _: &Fragile, _: &mut Vec<()>) {}

        fn next(&self, count: &Fragile, (): &()) -> Result<Fragile, Failure> {
            Ok(count.clone())
        }
    }

    for (broken, said) in [
        (Broken::DebugPanics, PANICKED),
        (Broken::DebugFails, FAILED),
    ] {
        let verdict = Check::new(Late(initial(broken)))
            .always("never", |_| false)
            .run();
        let start = &verdict.counterexample().expect("it has no steps").start;
        assert_eq!(*start, [format!("Fragile {{ value: 2{said}")]);
    }
}

/// Expects the step to a count of two to fail with this message, and to fail again when it is replayed.
fn fails_in_step_two(verdict: &Verdict, message: &str, again: Option<Check<Counter>>) {
    let violation = verdict.violation().unwrap_or_else(|| panic!("{verdict}"));
    let ViolationKind::Failure(failure) = &violation.kind else {
        panic!("{verdict}");
    };
    assert_eq!(failure.message(), message, "{verdict}");
    assert!(
        failure
            .location()
            .is_some_and(|at| at.contains("broken_impls.rs"))
    );
    let counterexample = violation.counterexample.as_ref();
    let counterexample = counterexample.unwrap_or_else(|| panic!("{verdict}"));
    assert_eq!(counterexample.len(), 2, "{verdict}");
    if let Some(check) = again {
        let replay = check.replay(&counterexample.trace);
        let replay = replay.unwrap_or_else(|error| panic!("{error}\n{verdict}"));
        assert_eq!(replay.violation, violation.describe());
    }
}

#[test]
fn a_hash_or_eq_of_a_node_that_panics_is_a_failure_of_the_step() {
    for (state, msg, message) in [
        (
            Broken::HashPanics,
            Broken::Nothing,
            "Hash of Fragile panicked: no hash today",
        ),
        (
            Broken::Nothing,
            Broken::HashPanics,
            "Hash of Fragile panicked: no hash today",
        ),
        (
            Broken::EqPanics,
            Broken::Nothing,
            "Eq of Fragile panicked: no equality today",
        ),
        (
            Broken::Nothing,
            Broken::EqPanics,
            "Eq of Fragile panicked: no equality today",
        ),
    ] {
        each(&CLUSTER_ENGINES, |engine, threads| {
            let verdict = Check::new(cluster(state, msg))
                .engine(with_walks(engine, 500))
                .threads(threads)
                .run();
            fails_in_step_two(&verdict, message, None);
        });
        for engine in [EngineName::Breadth, EngineName::Depth] {
            let verdict = Check::new(cluster(state, msg)).engine(engine).exact().run();
            fails_in_step_two(&verdict, message, None);
        }
    }
}

#[test]
fn a_hash_or_eq_of_a_direct_system_that_panics_is_a_failure_of_the_step() {
    for (broken, message) in [
        (
            Broken::HashPanics,
            "Hash of Fragile panicked: no hash today",
        ),
        (
            Broken::EqPanics,
            "Eq of Fragile panicked: no equality today",
        ),
    ] {
        each(&DIRECT_ENGINES, |engine, threads| {
            let check = || {
                Check::new(Counter { broken, ways: 2 })
                    .named("counter")
                    .engine(with_walks(engine, 10))
                    .threads(threads)
            };
            fails_in_step_two(&check().run(), message, Some(check()));
            if !engine.is_random() {
                fails_in_step_two(&check().exact().run(), message, Some(check()));
            }
            // Outside the space nothing fails.
            let within = check()
                .within("below two", |count| count.value < FROM)
                .run();
            assert_eq!(within.violation(), None, "{engine:?}: {within}");
            assert_eq!(within.holds(), !engine.is_random(), "{engine:?}: {within}");
            // Behind the bound nothing is looked at.
            let bounded = check().depth(1).run();
            assert!(
                !bounded.holds() && bounded.violation().is_none(),
                "{bounded}"
            );
        });
    }
}

#[test]
fn an_eq_that_panics_where_nobody_calls_it_loses_no_violation() {
    each(
        &[EngineName::Breadth, EngineName::Depth],
        |engine, threads| {
            let counter = Counter {
                broken: Broken::EqPanics,
                ways: 1,
            };
            let verdict = Check::new(counter)
                .always("below three", |count| count.value < 3)
                .engine(engine)
                .threads(threads)
                .run();
            let violation = verdict.violation().unwrap_or_else(|| panic!("{verdict}"));
            assert_eq!(violation.property, "below three", "{engine:?}: {verdict}");
        },
    );
}

#[test]
fn a_hash_that_panics_in_the_first_state_is_a_failure_of_the_start() {
    struct Late;

    impl System for Late {
        type State = Fragile;
        type Event = ();

        fn initial(&self) -> Vec<Fragile> {
            vec![Fragile {
                value: FROM,
                broken: Broken::HashPanics,
            }]
        }

        fn events(&self, _: &Fragile, _: &mut Vec<()>) {}

        fn next(&self, count: &Fragile, (): &()) -> Result<Fragile, Failure> {
            Ok(count.clone())
        }
    }

    /// A node that begins so.
    struct Broke;

    impl Node for Broke {
        type State = Fragile;
        type Msg = ();

        fn on_start(&self, _: &mut Context<()>) -> Fragile {
            Fragile {
                value: FROM,
                broken: Broken::HashPanics,
            }
        }

        fn on_message(&self, _: &mut Fragile, _: NodeId, (): (), _: &mut Context<()>) {}
    }

    let said = "Hash of Fragile panicked: no hash today";
    each(&DIRECT_ENGINES, |engine, threads| {
        let verdict = Check::new(Late).engine(engine).threads(threads).run();
        let violation = verdict.violation().unwrap_or_else(|| panic!("{verdict}"));
        assert!(violation.describe().contains(said), "{engine:?}: {verdict}");
    });
    each(&CLUSTER_ENGINES, |engine, threads| {
        let verdict = Check::new(Cluster::new(2, |_| Broke))
            .engine(engine)
            .threads(threads)
            .run();
        let violation = verdict.violation().unwrap_or_else(|| panic!("{verdict}"));
        assert!(violation.describe().contains(said), "{engine:?}: {verdict}");
    });
}

/// A number that cannot be copied, or not be dropped, once it is [`FROM`].
#[derive(Debug, PartialEq, Eq, Hash)]
struct Clinging {
    value: u8,
    copies: bool,
    drops: bool,
}

impl Clone for Clinging {
    fn clone(&self) -> Self {
        assert!(self.copies || self.value != FROM, "no copy today");
        Self { ..*self }
    }
}

impl Drop for Clinging {
    fn drop(&mut self) {
        assert!(self.drops || self.value != FROM, "no end today");
    }
}

/// Counts its own ticks up to three.
#[derive(Clone, Copy)]
struct Ticking {
    copies: bool,
    drops: bool,
}

impl Node for Ticking {
    type State = Clinging;
    type Msg = ();

    fn on_start(&self, cx: &mut Context<()>) -> Clinging {
        cx.set_timer(TICK, Duration::ZERO);
        Clinging {
            value: 0,
            copies: self.copies,
            drops: self.drops,
        }
    }

    fn on_timer(&self, count: &mut Clinging, _: Timer, cx: &mut Context<()>) {
        if count.value < 3 {
            count.value += 1;
            cx.set_timer(TICK, Duration::ZERO);
        }
    }

    fn on_message(&self, _: &mut Clinging, _: NodeId, (): (), _: &mut Context<()>) {}
}

#[test]
fn a_clone_or_drop_of_a_node_state_that_panics_is_a_failure_of_the_step() {
    for (copies, drops, message, steps) in [
        (false, true, "Clone of Clinging panicked: no copy today", 3),
        (true, false, "Drop of Clinging panicked: no end today", 2),
    ] {
        each(&CLUSTER_ENGINES, |engine, threads| {
            let ticking = Ticking { copies, drops };
            let verdict = Check::new(Cluster::new(2, move |_| ticking))
                .engine(with_walks(engine, 500))
                .determinism(Determinism::Always)
                .threads(threads)
                .run();
            let violation = verdict.violation().unwrap_or_else(|| panic!("{verdict}"));
            let ViolationKind::Failure(failure) = &violation.kind else {
                panic!("{verdict}");
            };
            assert_eq!(failure.message(), message, "{engine:?}: {verdict}");
            let counterexample = violation.counterexample.as_ref().unwrap();
            assert_eq!(counterexample.len(), steps, "{engine:?}: {verdict}");
        });
    }
}

#[test]
fn a_drop_that_panics_when_the_search_is_over_is_no_obstacle() {
    let ticking = Ticking {
        copies: true,
        drops: false,
    };
    let verdict = Check::new(Cluster::new(2, move |_| ticking))
        .engine(EngineName::Breadth)
        .determinism(Determinism::Off)
        .threads(1)
        .run();
    verdict.assert_holds();
}

/// Counts up, in two ways, without copying a state.
struct Uncopied;

impl System for Uncopied {
    type State = Clinging;
    type Event = u8;

    fn initial(&self) -> Vec<Clinging> {
        let value = 0;
        vec![Clinging {
            value,
            copies: false,
            drops: true,
        }]
    }

    fn events(&self, count: &Clinging, out: &mut Vec<u8>) {
        if count.value < 4 {
            out.extend([1, 2]);
        }
    }

    fn next(&self, count: &Clinging, more: &u8) -> Result<Clinging, Failure> {
        let value = count.value + more;
        Ok(Clinging { value, ..*count })
    }
}

#[test]
fn a_clone_of_a_direct_system_that_panics_is_a_failure_of_the_step() {
    each(&DIRECT_ENGINES, |engine, threads| {
        let check = || {
            let check = Check::new(Uncopied).named("uncopied");
            check.engine(with_walks(engine, 10)).threads(threads)
        };
        let verdict = check().run();
        let violation = verdict
            .violation()
            .unwrap_or_else(|| panic!("{engine:?}: {verdict}"));
        let said = "Clone of Clinging panicked: no copy today";
        assert!(violation.describe().contains(said), "{engine:?}: {verdict}");
        let trace = &violation.counterexample.as_ref().unwrap().trace;
        assert!(trace.steps.len() <= 2, "{engine:?}: {verdict}");
        let again = check().replay(trace).unwrap();
        assert!(again.violation.contains(said), "{}", again.violation);
    });
}

/// A state whose `Debug` does not return.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Unprintable(u8);

impl Debug for Unprintable {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        loop {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Panics at the first message.
struct PanicsUnprintably;

impl Node for PanicsUnprintably {
    type State = Unprintable;
    type Msg = ();

    fn on_start(&self, cx: &mut Context<()>) -> Unprintable {
        cx.broadcast_to_others(());
        Unprintable(0)
    }

    fn on_message(&self, _: &mut Unprintable, _: NodeId, (): (), _: &mut Context<()>) {
        panic!("always");
    }
}

#[test]
fn a_debug_that_does_not_return_loses_no_violation() {
    let check = Check::new(Cluster::new(2, |_| PanicsUnprintably));
    let verdict = check.patience(Duration::from_millis(200)).run();
    assert!(verdict.violation().is_some(), "{verdict:?}");
    let why = "there is no counterexample, because describing it did not come to an end: a `Debug` of the program has not \
               returned for 200ms";
    assert_eq!(verdict.warnings, [why]);
}

/// A counter whose `Hash` does not return behind the third step.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EndlesslyHashed(u8);

impl Hash for EndlesslyHashed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.0 == 3 {
            loop {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.0.hash(state);
    }
}

/// Counts.
struct CountsUp;

impl System for CountsUp {
    type State = EndlesslyHashed;
    type Event = ();

    fn initial(&self) -> Vec<EndlesslyHashed> {
        vec![EndlesslyHashed(0)]
    }

    fn events(&self, _: &EndlesslyHashed, out: &mut Vec<()>) {
        out.push(());
    }

    fn next(&self, state: &EndlesslyHashed, (): &()) -> Result<EndlesslyHashed, Failure> {
        Ok(EndlesslyHashed(state.0 + 1))
    }
}

#[test]
fn a_hash_of_a_direct_system_that_does_not_return_is_a_step_that_does_not() {
    for engine in [EngineName::Breadth, EngineName::Depth, EngineName::Random] {
        for threads in [1, 2] {
            let check = Check::new(CountsUp).engine(engine).threads(threads);
            let verdict = check.patience(Duration::from_millis(100)).run();
            let violation = verdict.violation().map(|violation| violation.describe());
            let violation = violation.unwrap_or_default();
            assert!(
                violation.contains("has not returned for 100ms"),
                "{engine}: {verdict:?}"
            );
        }
    }
}
