//! Limits of the checker are never blamed on the program, and those of the user are kept in every loop.

use std::time::{Duration, Instant};

use dragnet::engine::EngineName;
use dragnet::extend::Checkable;
use dragnet::verdict::Style;
use dragnet::{Check, Cluster, Context, Failure, Node, NodeId, Outcome, System, crashes};

const EXHAUSTIVE: [EngineName; 4] = [
    EngineName::Breadth,
    EngineName::Depth,
    EngineName::Local,
    EngineName::Auto,
];

/// Chooses among this many numbers when it hears something.
struct Chooser(usize);

impl Node for Chooser {
    type State = usize;
    type Msg = ();

    fn on_start(&self, cx: &mut Context<()>) -> usize {
        if cx.me() == NodeId(0) {
            cx.send(1, ());
        }
        0
    }

    fn on_message(&self, chosen: &mut usize, _from: NodeId, _msg: (), cx: &mut Context<()>) {
        *chosen = cx.choose(self.0);
    }
}

#[test]
fn a_handler_may_offer_more_choices_than_16_bits_count() {
    for engine in EXHAUSTIVE {
        let check = || Check::new(Cluster::new(2, |_| Chooser(70_000))).engine(engine);
        let verdict = check().always("in range", |s| s.nodes().all(|&chosen| chosen < 70_000));
        verdict.run().assert_holds();
        let verdict = check().always("not the last", |s| s.nodes().all(|&chosen| chosen < 69_999));
        let verdict = verdict.run();
        assert_eq!(verdict.counterexample().unwrap().len(), 1, "{engine:?}");
    }
}

/// Begins in one of so many states.
struct ManyBeginnings(usize);

impl Node for ManyBeginnings {
    type State = usize;
    type Msg = ();

    fn on_start(&self, cx: &mut Context<()>) -> usize {
        cx.choose(self.0)
    }

    fn on_message(&self, _state: &mut usize, _from: NodeId, _msg: (), _cx: &mut Context<()>) {}
}

/// Runs a check within limits, and says why it is inconclusive and how long it took.
fn why_cut<T: Checkable>(check: Check<T>, time: Duration, memory: u64) -> (String, Duration) {
    let began = Instant::now();
    let verdict = check.time(time).memory(memory).run();
    match verdict.outcome {
        Outcome::Inconclusive(why) => (why, began.elapsed()),
        other => panic!("it is not inconclusive: {other:?}"),
    }
}

const SECOND: Duration = Duration::from_secs(1);
const GIB: u64 = 1 << 30;

/// Far more than the limit, and far less than what these checks took without it.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn limits_end_the_loop_over_initial_states() {
    for engine in EXHAUSTIVE {
        let check = || Check::new(Cluster::new(3, |_| ManyBeginnings(250))).engine(engine);
        let (why, took) = why_cut(check(), SECOND / 2, 8 * GIB);
        assert!(why.starts_with("the time limit"), "{engine:?}: {why}");
        assert!(took < SOON, "{engine:?} took {took:?}");
    }
}

/// Sends so many different messages to one node at once.
struct Flood(usize);

impl Node for Flood {
    type State = usize;
    type Msg = usize;

    fn on_start(&self, cx: &mut Context<usize>) -> usize {
        if cx.me() == NodeId(0) {
            for number in 0..self.0 {
                cx.send(1, number);
            }
        }
        0
    }

    fn on_message(&self, sum: &mut usize, _from: NodeId, msg: usize, _cx: &mut Context<usize>) {
        *sum = sum.wrapping_mul(31).wrapping_add(msg);
    }
}

#[test]
fn limits_end_the_loop_over_messages() {
    for engine in EXHAUSTIVE {
        let check = Check::new(Cluster::new(2, |_| Flood(60_000))).engine(engine);
        let (why, took) = why_cut(check, SECOND, 4 * GIB);
        assert!(
            why.starts_with("the time limit") || why.starts_with("the memory limit"),
            "{engine:?}: {why}"
        );
        assert!(took < SOON, "{engine:?} took {took:?}");
    }
}

#[test]
fn more_messages_to_one_node_than_are_counted_are_a_limit_of_the_checker() {
    for engine in [EngineName::Breadth, EngineName::Depth] {
        let verdict = Check::new(Cluster::new(2, |_| Flood(66_000)))
            .engine(engine)
            .run();
        let Outcome::Inconclusive(why) = &verdict.outcome else {
            panic!("{engine:?}: {verdict:?}");
        };
        let limit = "more than 65,536 messages are in flight to Flood 1, ";
        assert!(why.contains(limit), "{engine:?}: {why}");
        assert!(
            why.contains(" from Flood 0 among them"),
            "{engine:?}: {why}"
        );
    }
}

/// Does something that does not end when it hears something.
#[derive(Clone, Copy, Debug)]
enum Endless {
    ChoicesInOneRun,
    ManyCombinations,
    Options,
    Sends,
    Loop,
    Sleeps,
}

impl Node for Endless {
    type State = usize;
    type Msg = ();

    fn on_start(&self, cx: &mut Context<()>) -> usize {
        if cx.me() == NodeId(0) {
            cx.send(1, ());
        }
        0
    }

    fn on_message(&self, state: &mut usize, _from: NodeId, _msg: (), cx: &mut Context<()>) {
        match self {
            Self::ChoicesInOneRun => loop {
                *state += cx.choose(2);
            },
            Self::ManyCombinations => *state = (0..4).fold(0, |sum, _| sum * 200 + cx.choose(200)),
            Self::Options => *state = cx.choose(usize::MAX),
            Self::Sends => loop {
                cx.send(0, ());
            },
            Self::Loop => loop {
                *state = std::hint::black_box(*state + 1);
            },
            Self::Sleeps => std::thread::sleep(Duration::from_secs(1_000)),
        }
    }
}

#[test]
fn limits_end_a_handler_that_goes_on_and_on() {
    use Endless::{ChoicesInOneRun, Loop, ManyCombinations, Sends, Sleeps};
    for endless in [ChoicesInOneRun, ManyCombinations, Sends, Loop, Sleeps] {
        for engine in [
            EngineName::Breadth,
            EngineName::Depth,
            EngineName::Local,
            EngineName::Auto,
            EngineName::Random,
        ] {
            // One that loops by itself does so until the process ends.
            let threads = if matches!(endless, Loop) {
                1..=1
            } else {
                1..=2
            };
            // A walk draws one combination of choices, and runs the handler once.
            if matches!((endless, engine), (ManyCombinations, EngineName::Random)) {
                continue;
            }
            for threads in threads {
                let check = Check::new(Cluster::new(2, |_| endless))
                    .engine(engine)
                    .threads(threads);
                let (why, took) = why_cut(check, SECOND / 5, 8 * GIB);
                assert!(
                    why.starts_with("the time limit"),
                    "{endless:?}, {engine:?}: {why}"
                );
                assert!(why.contains("Endless 1"), "{endless:?}, {engine:?}: {why}");
                assert!(took < SOON, "{endless:?}, {engine:?} took {took:?}");
            }
        }
    }
}

/// Counts what it hears, and sends without end, but slowly, at the second message.
struct EndlessAtTwo;

impl Node for EndlessAtTwo {
    type State = usize;
    type Msg = ();

    fn on_start(&self, cx: &mut Context<()>) -> usize {
        cx.broadcast_to_others(());
        0
    }

    fn on_message(&self, heard: &mut usize, _from: NodeId, _msg: (), cx: &mut Context<()>) {
        *heard += 1;
        if *heard == 2 {
            loop {
                std::thread::sleep(Duration::from_millis(1));
                cx.send(0, ());
            }
        }
    }
}

#[test]
fn the_step_that_goes_on_and_on_is_named_and_no_other() {
    for engine in EXHAUSTIVE {
        for threads in [1, 2] {
            let cluster = Cluster::new(3, |_| EndlessAtTwo).faults(crashes(1));
            let check = Check::new(cluster).engine(engine).threads(threads);
            let (why, _) = why_cut(check, SECOND / 5, 8 * GIB);
            assert!(why.contains(" receives () from "), "{engine:?}: {why}");
            assert!(
                why.contains("was still going on after"),
                "{engine:?}: {why}"
            );
        }
    }
}

#[test]
fn more_options_than_can_be_explored_are_refused_at_once() {
    for engine in EXHAUSTIVE {
        let verdict = Check::new(Cluster::new(2, |_| Endless::Options))
            .engine(engine)
            .run();
        let Outcome::Inconclusive(why) = &verdict.outcome else {
            panic!("{verdict:?}");
        };
        assert!(why.contains("choose(18446744073709551615) at"), "{why}");
    }
}

/// A direct system in which something does not return.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stuck {
    Events,
    Next,
    Property,
}

impl Stuck {
    fn here(self, part: Self, state: u8) {
        if self == part && state == 3 {
            std::thread::sleep(Duration::from_secs(1_000));
        }
    }
}

impl System for Stuck {
    type State = u8;
    type Event = u8;

    fn initial(&self) -> Vec<u8> {
        vec![0]
    }

    fn events(&self, state: &u8, out: &mut Vec<u8>) {
        self.here(Self::Events, *state);
        out.extend([1, 2].into_iter().filter(|step| state + step < 10));
    }

    fn next(&self, state: &u8, step: &u8) -> Result<u8, Failure> {
        if *step == 2 {
            self.here(Self::Next, *state);
        }
        Ok(state + step)
    }
}

const WALKED: [EngineName; 3] = [EngineName::Breadth, EngineName::Depth, EngineName::Random];

fn check_of(stuck: Stuck, engine: EngineName, threads: usize) -> Check<Stuck> {
    Check::new(stuck)
        .engine(engine)
        .threads(threads)
        .always("fine", |_| true)
        .always("ends", move |&state| {
            stuck.here(Stuck::Property, state);
            true
        })
}

#[test]
fn a_step_of_a_direct_system_that_does_not_return_is_named_at_the_limit() {
    for (stuck, step) in [
        (Stuck::Events, "3"),
        (Stuck::Next, "3"),
        (Stuck::Property, "judged in 3"),
    ] {
        for engine in WALKED {
            for threads in [1, 2] {
                let (why, took) = why_cut(check_of(stuck, engine, threads), SECOND / 5, 8 * GIB);
                assert!(
                    why.starts_with("the time limit"),
                    "{stuck:?}, {engine:?}: {why}"
                );
                assert!(
                    why.contains("does not return") && why.contains(step),
                    "{stuck:?}, {engine:?}: {why}"
                );
                assert!(took < SOON, "{stuck:?}, {engine:?} took {took:?}");
            }
        }
    }
}

#[test]
fn a_step_that_takes_longer_than_the_patience_is_a_violation() {
    let patience = SECOND / 5;
    for (stuck, described) in [
        (Stuck::Events, "the step has not returned for 200ms"),
        (Stuck::Next, "the step has not returned for 200ms"),
        (Stuck::Property, "`ends`"),
    ] {
        for engine in WALKED {
            let verdict = check_of(stuck, engine, 2).patience(patience).run();
            let violation = verdict
                .violation()
                .unwrap_or_else(|| panic!("{stuck:?}, {engine:?}: {verdict:?}"));
            let text = verdict.render(Style::plain());
            assert!(text.contains(described), "{stuck:?}, {engine:?}: {text}");
            let steps = violation.counterexample.as_ref().unwrap().len();
            assert_eq!(
                steps,
                if stuck == Stuck::Next { 3 } else { 2 },
                "{stuck:?}, {engine:?}: {text}"
            );
        }
    }
    for engine in [
        EngineName::Breadth,
        EngineName::Depth,
        EngineName::Local,
        EngineName::Auto,
        EngineName::Random,
    ] {
        let check = || {
            Check::new(Cluster::new(2, |_| Endless::Sleeps))
                .named("sleeps")
                .engine(engine)
                .patience(patience)
        };
        let verdict = check().run();
        let counterexample = verdict
            .counterexample()
            .unwrap_or_else(|| panic!("{engine:?}: {verdict:?}"));
        assert_eq!(counterexample.len(), 1, "{engine:?}");
        let replayed = check().replay(&counterexample.trace).unwrap();
        assert!(
            replayed.violation.contains("has not returned for 200ms"),
            "{}",
            replayed.violation
        );
    }
}

/// A state whose `Debug` does not return once something was heard.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Unprintable(bool);

impl std::fmt::Debug for Unprintable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 {
            std::thread::sleep(Duration::from_secs(3_600));
        }
        f.write_str("nothing heard")
    }
}

struct Hearer;

impl Node for Hearer {
    type State = Unprintable;
    type Msg = ();

    fn on_start(&self, cx: &mut Context<()>) -> Unprintable {
        cx.send(0, ());
        Unprintable(false)
    }

    fn on_message(&self, heard: &mut Unprintable, _: NodeId, (): (), _: &mut Context<()>) {
        heard.0 = true;
    }
}

#[test]
fn a_violation_counts_though_a_limit_ends_the_description_of_its_counterexample() {
    let verdict = Check::new(Cluster::new(1, |_| Hearer))
        .always("nothing is heard", |s| s.nodes().all(|state| !state.0))
        .time(Duration::from_secs(1))
        .run();
    let violation = verdict.violation().expect("it was found");
    assert_eq!(violation.property, "nothing is heard");
    assert!(violation.counterexample.is_none());
    let text = verdict.render(Style::plain());
    assert!(text.contains("there is no counterexample"), "{text}");
}

/// Counts, and has two events that print alike, of which one does not return at three.
struct AlikeInPrint;

#[derive(Clone, PartialEq, Eq)]
struct Go(u8);

impl std::fmt::Debug for Go {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Go")
    }
}

impl System for AlikeInPrint {
    type State = u8;
    type Event = Go;

    fn initial(&self) -> Vec<u8> {
        vec![0]
    }

    fn events(&self, _: &u8, out: &mut Vec<Go>) {
        out.extend([Go(0), Go(1)]);
    }

    fn next(&self, count: &u8, &Go(which): &Go) -> Result<u8, Failure> {
        if (*count, which) == (3, 1) {
            std::thread::sleep(Duration::from_secs(3_600));
        }
        Ok((count + 1).min(6))
    }
}

#[test]
fn of_two_events_that_print_alike_the_one_that_does_not_return_is_blamed() {
    for engine in [EngineName::Breadth, EngineName::Depth] {
        let patience = Duration::from_millis(200);
        let check = || Check::new(AlikeInPrint).engine(engine).patience(patience);
        let verdict = check().named("alike").run();
        let counterexample = verdict.counterexample().expect("a step does not return");
        let last = counterexample.trace.steps.last().expect("it takes steps");
        assert_eq!((counterexample.len(), last.event), (4, 1), "{engine}");
        let replayed = check().named("alike").replay(&counterexample.trace);
        assert!(replayed.is_ok(), "{engine}: {replayed:?}");
    }
}

#[test]
fn unnamed_checks_on_threads_without_a_name_are_told_apart() {
    let name = || {
        let check = || Check::new(Cluster::new(1, |_| Hearer)).run().system;
        std::thread::spawn(check).join().unwrap()
    };
    assert_ne!(name(), name());
}
