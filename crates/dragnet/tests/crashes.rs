//! Steps that take the process with them: the verdict says which step it was, and the process lives on where it can.

use std::process::{Command, Output};
use std::time::Duration;
use std::{env, process, thread};

use dragnet::engine::EngineName;
use dragnet::verdict::Style;
use dragnet::{Check, Cluster, Context, Failure, Node, NodeId, System};

const ENGINES: [EngineName; 5] = [
    EngineName::Breadth,
    EngineName::Depth,
    EngineName::Local,
    EngineName::Auto,
    EngineName::Random,
];

/// How a step goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Crash {
    Overflow,
    DoublePanic,
    Exit,
    OutOfMemory,
}

impl Crash {
    fn happen(self) {
        match self {
            Self::Overflow => assert!(descend(0) > 0),
            Self::DoublePanic => {
                struct Bomb;
                impl Drop for Bomb {
                    fn drop(&mut self) {
                        panic!("the second panic");
                    }
                }
                let _bomb = Bomb;
                panic!("the first panic");
            }
            Self::Exit => process::exit(0),
            Self::OutOfMemory => {
                let layout = std::alloc::Layout::from_size_align(isize::MAX as usize - 64, 8);
                std::alloc::handle_alloc_error(layout.unwrap());
            }
        }
    }
}

#[inline(never)]
#[expect(unconditional_recursion, reason = "it is to overflow the stack")]
fn descend(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    descend(std::hint::black_box(depth + 1)) + frame[7]
}

/// Node 1 crashes at the second message that it hears.
struct Crasher(Crash);

impl Node for Crasher {
    type State = u8;
    type Msg = u8;

    fn on_start(&self, cx: &mut Context<u8>) -> u8 {
        if cx.me() == NodeId(0) {
            cx.send(1, 1);
            cx.send(1, 2);
        }
        0
    }

    fn on_message(&self, heard: &mut u8, _from: NodeId, msg: u8, _cx: &mut Context<u8>) {
        *heard += 1;
        if *heard == 2 && msg == 2 {
            self.0.happen();
        }
    }
}

/// Counts to three, and crashes on the way from two to three.
struct Counter(Crash);

impl System for Counter {
    type State = u8;
    type Event = u8;

    fn initial(&self) -> Vec<u8> {
        vec![0]
    }

    fn events(&self, state: &u8, out: &mut Vec<u8>) {
        out.extend((*state < 3).then_some(state + 1));
    }

    fn next(&self, state: &u8, next: &u8) -> Result<u8, Failure> {
        if *state == 2 {
            self.0.happen();
        }
        Ok(*next)
    }
}

#[test]
fn a_handler_that_crashes_is_a_violation_that_replays() {
    for (crash, said) in [
        (Crash::Overflow, "the step overflowed its stack"),
        (Crash::DoublePanic, "the step panicked while it unwound"),
    ] {
        for engine in ENGINES {
            for threads in [1, 2] {
                let check = || {
                    let cluster = Cluster::new(2, move |_| Crasher(crash));
                    Check::new(cluster)
                        .named("crasher")
                        .engine(engine)
                        .threads(threads)
                };
                let verdict = check().run();
                let text = verdict.render(Style::plain());
                assert!(text.contains(said), "{crash:?}, {engine:?}: {text}");
                let found = verdict.counterexample().unwrap();
                assert_eq!(found.len(), 2, "{crash:?}, {engine:?}: {text}");
                let replayed = check().replay(&found.trace).unwrap();
                assert!(replayed.violation.contains(said), "{}", replayed.violation);
            }
        }
    }
}

#[test]
fn a_step_of_a_direct_system_that_crashes_is_a_violation_that_replays() {
    for (crash, said) in [
        (Crash::Overflow, "the step overflowed its stack"),
        (Crash::DoublePanic, "the step panicked while it unwound"),
    ] {
        for engine in [EngineName::Breadth, EngineName::Depth, EngineName::Random] {
            let check = || Check::new(Counter(crash)).named("counter").engine(engine);
            let verdict = check().run();
            let text = verdict.render(Style::plain());
            assert!(text.contains(said), "{crash:?}, {engine:?}: {text}");
            let found = verdict.counterexample().unwrap();
            assert_eq!(found.len(), 3, "{crash:?}, {engine:?}: {text}");
            let replayed = check().replay(&found.trace).unwrap();
            assert!(replayed.violation.contains(said), "{}", replayed.violation);
        }
    }
}

/// Counts what it hears from the others.
struct Listener;

impl Node for Listener {
    type State = u8;
    type Msg = u8;

    fn on_start(&self, cx: &mut Context<u8>) -> u8 {
        cx.broadcast_to_others(7);
        0
    }

    fn on_message(&self, heard: &mut u8, _from: NodeId, _msg: u8, _cx: &mut Context<u8>) {
        *heard += 1;
    }
}

#[test]
fn a_property_that_crashes_is_a_violation() {
    for engine in ENGINES {
        let verdict = Check::new(Cluster::new(3, |_| Listener))
            .engine(engine)
            .always("fine", |_| true)
            .always("fits on the stack", |s| {
                s.nodes().all(|&heard| heard != 1 || descend(0) > 0)
            })
            .run();
        let text = verdict.render(Style::plain());
        let said =
            "the property `fits on the stack` cannot be judged: the step overflowed its stack";
        assert!(text.contains(said), "{engine:?}: {text}");
    }
}

/// What a test of this file does in a process of its own.
fn in_a_process(test: &str) -> Output {
    let this = env::current_exe().unwrap();
    let mut command = Command::new(this);
    command.args([test, "--exact", "--ignored", "--nocapture"]);
    command.output().unwrap()
}

fn text_of(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn a_program_that_ends_the_process_is_a_violation() {
    for test in ["a_handler_exits", "a_direct_system_exits"] {
        let output = in_a_process(test);
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(1), "{test}: {text}");
        let said = "the step ended the process with status 0";
        assert!(text.contains(said), "{test}: {text}");
        assert!(text.contains("The trace is in"), "{test}: {text}");
    }
}

#[test]
fn what_ends_the_process_outside_of_steps_is_reported_and_no_success() {
    for (test, said) in [
        ("an_os_thread_of_a_handler_exits", "the process was ended"),
        ("a_debug_overflows_its_stack", "a stack overflow"),
    ] {
        let output = in_a_process(test);
        let text = text_of(&output);
        assert!(!output.status.success(), "{test}: {text}");
        assert!(text.contains(said), "{test}: {text}");
        assert!(text.contains("outside of its steps"), "{test}: {text}");
    }
}

#[test]
fn a_check_that_holds_does_not_end_the_process_for_another_whose_handler_exits() {
    let output = in_a_process("one_of_two_checks_exits");
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let said = "the step ended the process with status 0";
    assert!(text.contains(said), "{text}");
}

#[test]
fn the_last_line_names_the_step_in_which_a_process_is_aborted() {
    let output = in_a_process("a_handler_is_out_of_memory");
    let text = text_of(&output);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("a failed allocation"), "{text}");
    assert!(text.contains("in a step of Crasher 1"), "{text}");
    assert!(
        text.contains("the step: Crasher 1 receives 2 from Crasher 0"),
        "{text}"
    );
}

#[test]
#[ignore = "it ends the process: another test runs it in a process of its own"]
fn a_handler_exits() {
    let cluster = Cluster::new(2, |_| Crasher(Crash::Exit));
    Check::new(cluster).run().assert_holds();
}

#[test]
#[ignore = "it ends the process: another test runs it in a process of its own"]
fn an_os_thread_of_a_handler_exits() {
    struct Starter;
    impl Node for Starter {
        type State = u8;
        type Msg = u8;
        fn on_start(&self, _cx: &mut Context<u8>) -> u8 {
            let exits = thread::spawn(|| process::exit(0));
            exits.join().map_or(0, |()| 1)
        }
        fn on_message(&self, _: &mut u8, _: NodeId, _: u8, _: &mut Context<u8>) {}
    }
    Check::new(Cluster::new(1, |_| Starter))
        .run()
        .assert_holds();
}

#[test]
#[ignore = "it ends the process: another test runs it in a process of its own"]
fn a_debug_overflows_its_stack() {
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct Endless(u8);
    impl std::fmt::Debug for Endless {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "{}", descend(self.0.into()))
        }
    }
    struct Silent;
    impl Node for Silent {
        type State = Endless;
        type Msg = u8;
        fn on_start(&self, cx: &mut Context<u8>) -> Endless {
            cx.send(0, 1);
            Endless(0)
        }
        fn on_message(&self, state: &mut Endless, _: NodeId, _: u8, _: &mut Context<u8>) {
            state.0 += 1;
        }
    }
    Check::new(Cluster::new(1, |_| Silent))
        .always("nothing is heard", |s| s.nodes().all(|state| state.0 == 0))
        .run()
        .assert_holds();
}

#[test]
#[ignore = "it ends the process: another test runs it in a process of its own"]
fn one_of_two_checks_exits() {
    let slowly = |milliseconds| {
        thread::sleep(Duration::from_millis(milliseconds));
        true
    };
    thread::spawn(move || {
        let cluster = Cluster::new(2, |_| Crasher(Crash::Exit));
        let check = Check::new(cluster).always("slow", move |_| slowly(300));
        let _ = check.run();
    });
    // Until the other has its verdict.
    loop {
        let check = Check::new(Cluster::new(2, |_| Listener));
        let check = check.always("slow", move |_| slowly(50));
        check.run().assert_holds();
    }
}

#[test]
#[ignore = "it ends the process: another test runs it in a process of its own"]
fn a_direct_system_exits() {
    Check::new(Counter(Crash::Exit)).run().assert_holds();
}

#[test]
#[ignore = "it ends the process: another test runs it in a process of its own"]
fn a_handler_is_out_of_memory() {
    let cluster = Cluster::new(2, |_| Crasher(Crash::OutOfMemory));
    Check::new(cluster).run().assert_holds();
}
