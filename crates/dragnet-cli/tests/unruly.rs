//! The command line with systems whose steps never return, or take the process with them.
//!
//! This is both: with `check` or `replay` it is a command line for such systems, and otherwise the tests that run it.

use std::process::{Command, ExitCode, Output};
use std::time::{Duration, Instant};
use std::{env, hint, io, process, thread};

use dragnet::catalog::Entry;
use dragnet::{Check, Cluster, Context, Node, NodeId};

/// What node 1 does with the second message that it hears.
#[derive(Clone, Copy)]
enum Unruly {
    Exits,
    Overflows,
    Aborts,
    Loops,
    Sleeps,
    /// While it holds the lock of standard output.
    SleepsInPrint,
    ExitsInPrint,
}

impl Node for Unruly {
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
        if *heard < 2 || msg != 2 {
            return;
        }
        match self {
            Self::Exits => process::exit(0),
            Self::Overflows => *heard = descend(0),
            Self::Aborts => process::abort(),
            Self::Loops => loop {
                *heard = hint::black_box(*heard).wrapping_add(1);
            },
            Self::Sleeps => thread::sleep(Duration::from_secs(3_600)),
            Self::SleepsInPrint => {
                let _locked = io::stdout().lock();
                thread::sleep(Duration::from_secs(3_600));
            }
            Self::ExitsInPrint => {
                let _locked = io::stdout().lock();
                process::exit(0);
            }
        }
    }
}

#[expect(unconditional_recursion, reason = "it is to overflow the stack")]
fn descend(depth: u8) -> u8 {
    let frame = hint::black_box([depth; 500]);
    descend(depth.wrapping_add(1)).wrapping_add(frame[7])
}

fn entries() -> Vec<Entry> {
    let entry = |name, unruly: Unruly| {
        Entry::new(name, "a step that does not return", move |_| {
            Check::new(Cluster::new(2, move |_| unruly))
        })
    };
    vec![
        entry("exits", Unruly::Exits),
        entry("overflows", Unruly::Overflows),
        entry("aborts", Unruly::Aborts),
        entry("loops", Unruly::Loops),
        entry("sleeps", Unruly::Sleeps),
        entry("sleeps-in-print", Unruly::SleepsInPrint),
        entry("exits-in-print", Unruly::ExitsInPrint),
    ]
}

/// A run of the command line in a directory of its own.
fn run(place: &tempfile::TempDir, line: &str) -> Output {
    let this = env::current_exe().expect("this is a program");
    let mut command = Command::new(this);
    command.args(line.split_whitespace()).current_dir(place);
    command.output().expect("it starts")
}

fn expect(place: &tempfile::TempDir, line: &str, status: i32, said: &[&str]) -> String {
    let output = run(place, line);
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert_eq!(output.status.code(), Some(status), "{line}: {text}");
    for part in said {
        assert!(text.contains(part), "{line} does not say {part:?}: {text}");
    }
    text
}

const VIOLATED: i32 = 1;
const INCONCLUSIVE: i32 = 3;

fn a_step_that_ends_the_process_is_a_violation_that_replays() {
    let place = tempfile::tempdir().expect("a directory");
    let said = "the step ended the process with status 0";
    for engine in ["breadth", "depth", "local", "auto", "random"] {
        let line = format!("check exits --trace exits.json --engine {engine}");
        expect(&place, &line, VIOLATED, &[said, "receives 2 from"]);
        expect(&place, "replay exits.json", VIOLATED, &[said]);
    }
    expect(&place, "check exits-in-print", VIOLATED, &[said]);
    let json = expect(&place, "check exits --json", VIOLATED, &[]);
    assert!(json.contains(r#""verdict":"violated""#), "{json}");
}

fn a_step_that_overflows_its_stack_is_a_violation_that_replays() {
    let place = tempfile::tempdir().expect("a directory");
    let said = "the step overflowed its stack";
    expect(&place, "check overflows --trace it.json", VIOLATED, &[said]);
    expect(&place, "replay it.json", VIOLATED, &[said]);
}

fn a_process_that_is_aborted_names_the_step_in_its_last_line() {
    let place = tempfile::tempdir().expect("a directory");
    let output = run(&place, "check aborts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{text}");
    let step = "the step: Unruly 1 receives 2 from Unruly 0";
    assert!(text.contains(step), "{text}");
}

fn a_step_that_does_not_return_is_named_at_the_time_limit() {
    let place = tempfile::tempdir().expect("a directory");
    for system in ["loops", "sleeps", "sleeps-in-print"] {
        let began = Instant::now();
        let line = format!("check {system} --time 500ms");
        let step = "in a step that does not return: Unruly 1 receives 2 from Unruly 0";
        expect(&place, &line, INCONCLUSIVE, &["the time limit", step]);
        assert!(began.elapsed() < Duration::from_secs(10), "{line}");
    }
}

fn a_step_that_takes_longer_than_the_patience_is_a_violation_that_replays() {
    let place = tempfile::tempdir().expect("a directory");
    let said = "the step has not returned for 300ms";
    let line = "check loops --patience 300ms --trace it.json";
    expect(&place, line, VIOLATED, &[said]);
    expect(
        &place,
        "replay it.json",
        VIOLATED,
        &["has not returned for"],
    );
}

type Test = (&'static str, fn());

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let first = arguments.first().map(String::as_str);
    if matches!(first, Some("check" | "replay" | "list")) {
        return dragnet_cli::main(entries());
    }
    let tests: [Test; 5] = [
        (
            "a_step_that_ends_the_process_is_a_violation_that_replays",
            a_step_that_ends_the_process_is_a_violation_that_replays,
        ),
        (
            "a_step_that_overflows_its_stack_is_a_violation_that_replays",
            a_step_that_overflows_its_stack_is_a_violation_that_replays,
        ),
        (
            "a_process_that_is_aborted_names_the_step_in_its_last_line",
            a_process_that_is_aborted_names_the_step_in_its_last_line,
        ),
        (
            "a_step_that_does_not_return_is_named_at_the_time_limit",
            a_step_that_does_not_return_is_named_at_the_time_limit,
        ),
        (
            "a_step_that_takes_longer_than_the_patience_is_a_violation_that_replays",
            a_step_that_takes_longer_than_the_patience_is_a_violation_that_replays,
        ),
    ];
    let is_asked = |option: &str| arguments.iter().any(|argument| argument == option);
    let filters: Vec<&String> = arguments
        .iter()
        .filter(|text| !text.starts_with('-'))
        .collect();
    let wanted = tests.into_iter().filter(|(name, _)| {
        !is_asked("--ignored")
            && (filters.is_empty() || filters.iter().any(|part| name.contains(*part)))
    });
    let mut passed = 0;
    for (name, test) in wanted {
        if is_asked("--list") {
            println!("{name}: test");
        } else {
            test();
            println!("test {name} ... ok");
            passed += 1;
        }
    }
    if !is_asked("--list") {
        println!("test result: ok. {passed} passed; 0 failed");
    }
    ExitCode::SUCCESS
}
