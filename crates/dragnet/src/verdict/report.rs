//! The verdict of a check, and what tests ask of it.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs};

use super::{Counterexample, Style, Violation};
use crate::engine::{EngineName, Reduction};
use crate::step_guard;
use crate::target::NodeWork;
use crate::trace::{Fingerprint, Key, SavedState};

/// What a check found.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a verdict can be a violation: call `.assert_holds()`, or look at its `outcome`"]
#[non_exhaustive]
pub struct Verdict {
    /// The system that was checked.
    pub system: String,
    /// The answer.
    pub outcome: Outcome,
    /// What bounds the system, a phrase each: the space that `holds` speaks of.
    pub within: Vec<String>,
    /// What may be wrong and could not be decided, a sentence each: data races that an `Arc` of `std` may prevent.
    pub warnings: Vec<String>,
    /// How the space was walked.
    pub engine: EngineName,
    /// The name of the user's own engine, where one walked it instead.
    pub explorer: Option<String>,
    /// An engine that may get further, where this one was cut short.
    pub suggestion: Option<EngineName>,
    /// Which engine the verdict is from: another one only where `engine` leaves that open.
    pub decided_by: EngineName,
    /// How many threads walked it.
    pub threads: usize,
    /// The last state of the counterexample, or the first state where there is none, if that was asked for.
    pub state: Option<SavedState>,
    /// Whether whole states were kept rather than fingerprints.
    pub exact: bool,
    /// What it took.
    pub statistics: Statistics,
    pub(crate) inconclusive_is_fine: bool,
}

/// The three things that a check can say.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Every property holds in the whole space.
    Holds,
    /// A property does not hold.
    Violated(Box<Violation>),
    /// Nothing wrong was found, and this is why that is no proof.
    Inconclusive(String),
}

/// What a check took, and how far it came.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Statistics {
    /// Distinct states; where schedules were explored, executions that came to an end.
    pub states: u64,
    /// Whether that is an estimate, with a standard error of less than one in a hundred: random walks keep no states.
    pub states_estimated: bool,
    /// Steps taken.
    pub transitions: u64,
    /// The length of the longest execution.
    pub depth: u64,
    /// States that were known and not yet expanded at the end.
    pub frontier: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// The most memory that the process took up.
    pub peak_memory_bytes: u64,
    /// The chance that two states shared a fingerprint and one of them was missed.
    pub collision_probability: f64,
    /// What the nodes did; none for a direct system.
    pub nodes: Option<NodeWork>,
    /// What the local engine did; none for the others.
    pub local: Option<LocalWork>,
    /// What exploring schedules took; none for other engines.
    pub schedules: Option<ScheduleWork>,
    /// How many states of a direct system were kept, to be compared with others of the same fingerprint: all of them up to
    /// 100,000, then about one in 1,024. None for other targets, whose states are compared part by part, and where
    /// whole states were compared.
    pub sampled_states: Option<u64>,
    /// The type whose `Hash` leaves out fields that `Eq` compares, if one was noticed: states were taken for others, and
    /// nothing is said to hold.
    pub coarse_hash: Option<String>,
}

/// What exploring the schedules of a program with threads took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleWork {
    /// Which schedules were left out because others come to the same.
    pub reduction: Reduction,
    /// Executions that came to an end, no two of which are alike unless that was asked for.
    pub executions: u64,
    /// Executions that were given up because others are like them.
    pub blocked_executions: u64,
    /// Decisions which thread goes on, in all executions.
    pub scheduling_points: u64,
    /// The most operations on atomic values in one execution that asked for less than sequential consistency, and were
    /// judged as if they had.
    pub weakly_ordered: u64,
}

/// What local model checking had to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalWork {
    /// Distinct local states that were reached.
    pub local_states: u64,
    /// Distinct messages that were sent.
    pub messages: u64,
    /// States of the whole system, or of two nodes, that were put together to be judged.
    pub system_states: u64,
    /// How often something wrong was met that might not be able to happen.
    pub preliminary_violations: u64,
    /// How often it was tried to find an execution for it.
    pub soundness_checks: u64,
    /// How many states that took.
    pub soundness_states: u64,
}

impl Verdict {
    /// Whether every property holds in the whole space.
    pub fn holds(&self) -> bool {
        self.outcome == Outcome::Holds
    }

    /// What is wrong, if something is.
    pub fn violation(&self) -> Option<&Violation> {
        match &self.outcome {
            Outcome::Violated(violation) => Some(violation),
            _ => None,
        }
    }

    /// The execution that shows what is wrong, if there is one.
    pub fn counterexample(&self) -> Option<&Counterexample> {
        self.violation()
            .and_then(|violation| violation.counterexample.as_ref())
    }

    /// How many distinct states were visited.
    pub fn states(&self) -> u64 {
        self.statistics.states
    }

    /// Lets [`assert_holds`](Verdict::assert_holds) accept a search that a limit cut short.
    pub fn or_inconclusive(mut self) -> Self {
        self.inconclusive_is_fine = true;
        self
    }

    /// Panics unless every property holds in the whole space.
    ///
    /// The message is the printed counterexample, the file that it was written to, and the command that runs it again
    /// with the program's own output.
    #[track_caller]
    pub fn assert_holds(&self) {
        match &self.outcome {
            Outcome::Holds => {}
            Outcome::Inconclusive(_) if self.inconclusive_is_fine => {}
            Outcome::Inconclusive(_) => panic!(
                "\n{}\nIf that is good enough here, say `.or_inconclusive()` before `.assert_holds()`.\n",
                self.render(Style::plain())
            ),
            Outcome::Violated(violation) => {
                let again = match &violation.counterexample {
                    Some(counterexample) => self.keep(counterexample),
                    None => String::new(),
                };
                panic!("\n{}{again}", self.render(Style::plain()));
            }
        }
    }

    /// Prints the verdict, writes the counterexample, and ends the process at once: code under test has tried to end it, so
    /// nothing else can be done with it.
    pub(crate) fn end_process(&self) -> ! {
        use std::io::Write as _;

        let again = match &self.outcome {
            Outcome::Holds => {
                "The local engine has run code on a state that no execution reaches, and that code has called `exit`: this \
                 process ends now, with status 1. Another engine does not run it.\n"
                    .to_owned()
            }
            _ => {
                let kept = self.counterexample().map(|found| self.keep(found));
                kept.unwrap_or_default()
            }
        };
        let text = format!("\n{}{again}", self.render(Style::plain()));
        // There is nowhere left to say that this failed.
        let _ = std::io::stderr().write_all(text.as_bytes());
        let status = match &self.outcome {
            Outcome::Inconclusive(_) => 3,
            _ => 1,
        };
        step_guard::end_process(status)
    }

    /// Writes the counterexample beside the build, and says how to run it again.
    fn keep(&self, counterexample: &Counterexample) -> String {
        let path = trace_directory().join(format!("{}.json", file_name(&self.system)));
        let written = fs::create_dir_all(trace_directory())
            .map_err(|error| error.to_string())
            .and_then(|()| {
                counterexample
                    .trace
                    .write(&path)
                    .map_err(|error| error.to_string())
            });
        match written {
            Ok(()) => {
                // Without `--exact`, tests whose names begin alike would run too.
                let test = test_name().map(|name| format!(" {name} -- --exact"));
                format!(
                    "\nThe trace is in {}\nRun it again, with your own output and breakpoints:\n  DRAGNET_REPLAY={} cargo test{}\n",
                    path.display(),
                    shell_word(&path),
                    test.unwrap_or_default(),
                )
            }
            Err(error) => format!("\nThe trace could not be kept: {error}\n"),
        }
    }
}

/// The name of the test that runs on this thread.
fn test_name() -> Option<String> {
    std::thread::current()
        .name()
        .filter(|name| *name != "main")
        .map(str::to_owned)
}

/// The name of a check that nobody named and that is about to run: that of its test, with a number from the second such
/// check of the test on. Each run of the test numbers them alike.
pub(crate) fn next_unnamed() -> String {
    thread_local! {
        static UNNAMED: Cell<u32> = const { Cell::new(0) };
    }
    /// Those that run on threads without a name are told apart in the whole process.
    static NAMELESS: AtomicU32 = AtomicU32::new(0);
    // Each test has a thread of its own.
    let (name, before) = match test_name() {
        Some(test) => (test, UNNAMED.replace(UNNAMED.get() + 1)),
        None => (NO_TEST.to_owned(), NAMELESS.fetch_add(1, Ordering::Relaxed)),
    };
    match before {
        0 => name,
        _ => format!("{name}#{}", before + 1),
    }
}

/// The name of a check that nobody named, outside of a test.
const NO_TEST: &str = "system";

/// The name of a check that nobody named and that replays a trace of `recorded`: the same if that was an unnamed check of
/// this test, whatever its number.
pub(crate) fn unnamed_as(recorded: &str) -> String {
    let test = test_name().unwrap_or_else(|| NO_TEST.to_owned());
    let number = recorded
        .strip_prefix(&test)
        .map(|rest| rest.strip_prefix('#'));
    match number {
        Some(Some(number)) if number.parse::<u32>().is_ok() => recorded.to_owned(),
        _ => test,
    }
}

/// A path as a shell reads it back.
fn shell_word(path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "-_./+:@%,=".contains(c);
    match path.chars().all(plain) {
        true => path,
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

/// `target/dragnet`, found from the running test, or the directory for temporary files.
fn trace_directory() -> PathBuf {
    let target = env::current_exe().ok().and_then(|exe| {
        let inside = exe
            .ancestors()
            .find(|path| path.join("CACHEDIR.TAG").exists())?;
        Some(inside.to_owned())
    });
    target.unwrap_or_else(env::temp_dir).join("dragnet")
}

fn file_name(system: &str) -> String {
    let is_clean = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let clean = |c: char| if is_clean(c) { c } else { '-' };
    let mut name: String = system.chars().map(clean).collect();
    if name != system {
        // Another check may have the name that is left.
        let hash = Fingerprint::of(system, Key::default()).0;
        name.push_str(&format!("-{:08x}", hash >> 32));
    }
    debug_assert!(Path::new(&name).components().count() <= 1);
    name
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn two_checks_never_share_a_trace_file() {
        assert_eq!(file_name("a-b"), "a-b");
        let names = ["a-b", "a/b", "a b", "a::b", "a--b"].map(file_name);
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{names:?}");
            assert_eq!(*name, name.replace(['/', ' ', ':'], ""));
        }
    }
}
