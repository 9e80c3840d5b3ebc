//! Steps that take the process with them, in many states or outside the handlers: each is a violation.
//!
//! The OS threads of all of them stay until the process ends, with the files that were open when they began. So these tests
//! share no process with tests that wait for others to end.

use std::hash::{Hash, Hasher};

use dragnet::engine::EngineName;
use dragnet::nodes::Network;
use dragnet::verdict::Style;
use dragnet::{Check, Cluster, Context, Failure, Node, NodeId, System};

const ENGINES: [EngineName; 5] = [
    EngineName::Breadth,
    EngineName::Depth,
    EngineName::Local,
    EngineName::Auto,
    EngineName::Random,
];

/// Panics while it unwinds.
fn crash() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("the second panic");
        }
    }
    let _bomb = Bomb;
    panic!("the first panic");
}

/// A node that crashes at every message, of which there are many.
#[derive(Clone, Copy, Debug)]
enum Many {
    /// It begins in one of many ways, with a message for each.
    Beginnings,
    /// All messages are there from the start.
    Messages,
    /// One message, and many choices before the crash.
    Choices,
}

const MANY: usize = 60;

struct Fragile(Many);

impl Node for Fragile {
    type State = usize;
    type Msg = usize;

    fn on_start(&self, cx: &mut Context<usize>) -> usize {
        match self.0 {
            Many::Beginnings => {
                let message = cx.choose(MANY);
                cx.send(0, message);
            }
            Many::Messages => (0..MANY).for_each(|message| cx.send(0, message)),
            Many::Choices => cx.send(0, 0),
        }
        0
    }

    fn on_message(&self, state: &mut usize, _from: NodeId, msg: usize, cx: &mut Context<usize>) {
        *state = match self.0 {
            Many::Choices => cx.choose(MANY),
            _ => msg,
        };
        crash();
    }
}

#[test]
fn one_of_many_steps_that_crash_is_a_violation_that_replays() {
    for many in [Many::Beginnings, Many::Messages, Many::Choices] {
        for engine in ENGINES {
            let check = || {
                let cluster = Cluster::new(1, move |_| Fragile(many));
                Check::new(cluster).named("fragile").engine(engine)
            };
            let verdict = check().run();
            let text = verdict.render(Style::plain());
            let said = "the step panicked while it unwound";
            assert!(text.contains(said), "{many:?}, {engine:?}: {text}");
            let Some(found) = verdict.counterexample() else {
                // Each attempt knows one more step of the one state that cannot be expanded.
                assert!(
                    matches!(many, Many::Messages),
                    "{many:?}, {engine:?}: {text}"
                );
                assert!(verdict.violation().is_some(), "{text}");
                continue;
            };
            assert_eq!(found.len(), 1, "{many:?}, {engine:?}: {text}");
            let replayed = check().replay(&found.trace).unwrap();
            assert!(replayed.violation.contains(said), "{}", replayed.violation);
        }
    }
}

/// Many events, each of which crashes.
struct Explosive;

impl System for Explosive {
    type State = usize;
    type Event = usize;

    fn initial(&self) -> Vec<usize> {
        vec![MANY]
    }

    fn events(&self, _state: &usize, out: &mut Vec<usize>) {
        out.extend(0..MANY);
    }

    fn next(&self, _state: &usize, _next: &usize) -> Result<usize, Failure> {
        crash();
        Ok(0)
    }
}

#[test]
fn one_of_many_events_of_a_direct_system_that_crash_is_a_violation_that_replays() {
    for engine in [EngineName::Breadth, EngineName::Depth, EngineName::Random] {
        let check = || Check::new(Explosive).named("explosive").engine(engine);
        let verdict = check().run();
        let text = verdict.render(Style::plain());
        let said = "the step panicked while it unwound";
        assert!(text.contains(said), "{engine:?}: {text}");
        let found = verdict.counterexample().unwrap();
        assert_eq!(found.len(), 1, "{engine:?}: {text}");
        let replayed = check().replay(&found.trace).unwrap();
        assert!(replayed.violation.contains(said), "{}", replayed.violation);
    }
}

#[test]
fn a_property_that_crashes_on_many_states_is_a_violation() {
    for engine in ENGINES {
        let verdict = Check::new(Cluster::new(1, |_| Starter))
            .engine(engine)
            .always("crashes", |s| {
                if s.nodes().any(|&begun| begun > 0) {
                    crash();
                }
                true
            })
            .run();
        let text = verdict.render(Style::plain());
        let said = "panicked while it unwound";
        assert!(text.contains(said), "{engine:?}: {text}");
    }
}

/// Chooses one of many states when it hears its own message.
struct Starter;

impl Node for Starter {
    type State = usize;
    type Msg = ();

    fn on_start(&self, cx: &mut Context<()>) -> usize {
        cx.send(0, ());
        0
    }

    fn on_message(&self, state: &mut usize, _from: NodeId, (): (), cx: &mut Context<()>) {
        *state = 1 + cx.choose(MANY);
    }
}

/// Code of a node that is not a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Waiting,
    Class,
    ClassAtStart,
    Hash,
    HashAtStart,
    Eq,
}

/// A count whose `Hash` or `Eq` crashes at two, or at the start.
#[derive(Clone, Debug)]
struct Count(u8, Place);

impl Hash for Count {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if (self.1 == Place::Hash && self.0 == 2) || (self.1 == Place::HashAtStart && self.0 == 0) {
            crash();
        }
        self.0.hash(state);
    }
}

impl PartialEq for Count {
    fn eq(&self, other: &Self) -> bool {
        if self.1 == Place::Eq && self.0 == 2 && other.0 == 2 {
            crash();
        }
        self.0 == other.0
    }
}

impl Eq for Count {}

/// Two nodes that send each other numbers up to two.
struct PingPong(Place);

impl Node for PingPong {
    type State = Count;
    type Msg = u8;

    fn on_start(&self, cx: &mut Context<u8>) -> Count {
        if cx.me() == NodeId(0) {
            cx.send(1, 1);
        }
        Count(0, self.0)
    }

    fn on_message(&self, count: &mut Count, from: NodeId, msg: u8, cx: &mut Context<u8>) {
        count.0 = msg;
        if msg < 2 {
            cx.send(from, msg + 1);
        }
    }

    fn waiting(&self, count: &Count) -> bool {
        if self.0 == Place::Waiting && count.0 == 2 {
            crash();
        }
        false
    }
}

#[test]
fn code_of_a_node_outside_its_handlers_that_crashes_is_a_violation() {
    for place in [
        Place::Waiting,
        Place::Class,
        Place::ClassAtStart,
        Place::Hash,
        Place::HashAtStart,
        Place::Eq,
    ] {
        // Node by node nothing is known of deadlocks.
        let engines = ENGINES.into_iter();
        let engines =
            engines.filter(|&engine| place != Place::Waiting || engine != EngineName::Local);
        for engine in engines {
            let network = Network::unordered().capacity_of("twos", 9, move |&msg: &u8| {
                if (place == Place::Class && msg == 2) || (place == Place::ClassAtStart && msg == 1)
                {
                    crash();
                }
                true
            });
            let cluster = Cluster::new(2, move |_| PingPong(place)).network(network);
            // With several workers, one may go on with a state that crashes another where it is compared.
            let check = Check::new(cluster).engine(engine).threads(1);
            let check = match place {
                Place::Waiting => check.deadlock_free(),
                _ => check,
            };
            let verdict = check.run();
            let text = verdict.render(Style::plain());
            let said = "the step panicked while it unwound";
            assert!(text.contains(said), "{place:?}, {engine:?}: {text}");
            // Where there is no state to start in, there is no execution.
            let has_state = !matches!(place, Place::ClassAtStart | Place::HashAtStart);
            let is_shown = verdict.counterexample().is_some();
            assert_eq!(is_shown, has_state, "{place:?}, {engine:?}: {text}");
        }
    }
}
