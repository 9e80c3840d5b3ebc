//! What must not change from process to process, and what a test prints.

use std::env;
use std::process::{Command, Output};

use dragnet::trace::{Fingerprint, Key};
use dragnet::{Check, Cluster, Context, Node, NodeId};

/// Answers every greeting, and talks while it does.
struct Chatty;

impl Node for Chatty {
    type State = Vec<&'static str>;
    type Msg = &'static str;

    fn on_start(&self, cx: &mut Context<&'static str>) -> Vec<&'static str> {
        cx.broadcast_to_others("hello");
        Vec::new()
    }

    fn on_message(
        &self,
        heard: &mut Vec<&'static str>,
        from: NodeId,
        msg: &'static str,
        cx: &mut Context<&'static str>,
    ) {
        println!("handling {msg} from {from}");
        eprintln!("on standard error too");
        heard.push(msg);
        if msg == "hello" {
            cx.send(from, "hello yourself");
        }
    }
}

fn chat() -> Check<Cluster<Chatty>> {
    Check::new(Cluster::new(2, |_| Chatty))
        .named("chat")
        .always("never two answers", |s| {
            s.nodes().any(|heard| heard.len() < 2)
        })
}

/// Runs one of the tests below in a process of its own.
fn child(test: &str, replay: Option<&str>) -> Output {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args([test, "--exact", "--nocapture", "--include-ignored"])
        .env("DRAGNET_CHILD", "1");
    if let Some(trace) = replay {
        command.env("DRAGNET_REPLAY", trace);
    }
    command.output().unwrap()
}

fn is_child() -> bool {
    env::var_os("DRAGNET_CHILD").is_some()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn fingerprints_are_the_same_in_two_processes() {
    let mine = format!(
        "fingerprints {} {} {:?}",
        Fingerprint::of(&("state", [1_u64, 2], Some(3_usize), 'x'), Key(7)),
        Fingerprint::of(&vec![Some("a"), None], Key(0)),
        chat().run().counterexample().unwrap().trace,
    );
    if is_child() {
        println!("{mine}");
        return;
    }
    let theirs = text(&child("fingerprints_are_the_same_in_two_processes", None).stdout);
    assert!(
        theirs.contains(&mine),
        "another process came to\n{theirs}\nand this one to\n{mine}"
    );
}

#[test]
fn a_failing_test_says_how_to_run_its_trace_again_and_the_trace_lets_the_program_speak() {
    if is_child() {
        chat().run().assert_holds();
        return;
    }
    let name =
        "a_failing_test_says_how_to_run_its_trace_again_and_the_trace_lets_the_program_speak";
    let explored = child(name, None);
    assert!(!explored.status.success());
    let printed = text(&explored.stdout) + &text(&explored.stderr);
    assert!(printed.contains("never two answers"), "{printed}");
    assert!(
        !printed.contains("handling hello from n0\n"),
        "exploring is silent:\n{printed}"
    );
    assert!(
        !printed.contains("on standard error too"),
        "exploring is silent:\n{printed}"
    );
    let line = printed
        .lines()
        .find(|line| line.contains("DRAGNET_REPLAY="))
        .expect(&printed);
    let command = format!("cargo test {name} -- --exact");
    assert!(line.ends_with(&command), "{line}");
    let trace = line
        .trim()
        .strip_prefix("DRAGNET_REPLAY=")
        .unwrap()
        .split(' ')
        .next()
        .unwrap();

    let replayed = child(name, Some(trace));
    assert!(
        !replayed.status.success(),
        "a replayed violation is one again"
    );
    let printed = text(&replayed.stdout);
    let spoken = printed
        .lines()
        .filter(|line| line.starts_with("handling "))
        .count();
    let steps = printed
        .lines()
        .filter(|line| line.contains(" receives "))
        .count();
    assert!(
        spoken > 0 && spoken <= steps,
        "each step speaks once:\n{printed}"
    );
    assert!(text(&replayed.stderr).contains("on standard error too"));
}

/// Greets, and hears no more than it is told.
fn unnamed(most: usize) -> Check<Cluster<Chatty>> {
    Check::new(Cluster::new(2, |_| Chatty)).always("not so many", move |s| {
        s.nodes().all(|heard| heard.len() <= most)
    })
}

/// The line of a failed test's output that runs its trace again: the trace, and the arguments of `cargo test`.
fn command_in(printed: &str) -> (String, Vec<String>) {
    let line = printed
        .lines()
        .find_map(|line| line.trim().strip_prefix("DRAGNET_REPLAY="))
        .expect(printed);
    let (trace, arguments) = line.split_once(" cargo test ").expect(line);
    let arguments = arguments.split(' ').map(str::to_owned);
    (trace.to_owned(), arguments.collect())
}

/// Runs this file's tests as `cargo test` with these arguments does.
fn cargo_test(arguments: &[String], trace: &str) -> Output {
    Command::new(env::current_exe().unwrap())
        .args(arguments.iter().filter(|argument| *argument != "--"))
        .env("DRAGNET_CHILD", "1")
        .env("DRAGNET_REPLAY", trace)
        .output()
        .unwrap()
}

#[test]
fn the_second_unnamed_check_of_a_test_has_a_trace_of_its_own_that_replays() {
    let name = "the_second_unnamed_check_of_a_test_has_a_trace_of_its_own_that_replays";
    if is_child() {
        unnamed(2).run().assert_holds();
        let found = unnamed(1).run();
        // A test can ask for the counterexample of any of its checks again.
        let trace = &found.counterexample().unwrap().trace;
        unnamed(1).replay(trace).unwrap();
        assert!(unnamed(0).run().violation().is_some());
        found.assert_holds();
        return;
    }
    let printed = text(&child(name, None).stderr);
    let (trace, arguments) = command_in(&printed);
    assert!(trace.contains(&format!("/{name}-2-")), "{trace}");
    assert!(printed.contains(&format!("{name}#2 violated")), "{printed}");

    let replayed = text(&cargo_test(&arguments, &trace).stdout);
    assert!(
        replayed.contains(&format!("steps of `{name}#2`")),
        "{replayed}"
    );
    assert!(!replayed.contains("has changed"), "{replayed}");
}

#[test]
fn a_replay_runs_one_test() {
    if is_child() {
        unnamed(1).run().assert_holds();
        return;
    }
    let printed = text(&child("a_replay_runs_one_test", None).stderr);
    let (trace, arguments) = command_in(&printed);
    let replayed = text(&cargo_test(&arguments, &trace).stdout);
    assert!(replayed.contains("running 1 test\n"), "{replayed}");
    assert!(
        replayed.contains("steps of `a_replay_runs_one_test`"),
        "{replayed}"
    );
}

#[test]
fn a_replay_runs_one_test_and_not_this_one() {
    // The name begins as that of the test above does.
}
