//! The comparison as Markdown tables, a row at a time.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use serde::{Serialize, Serializer};

use super::checker::{Checker, End};
use super::job::Found;
use super::programs::Program;
use crate::measure::Measurement;
use crate::table::{self, NOTHING, grouped};

/// The columns of the programs in which nothing is wrong.
pub fn exhaustive_head() -> String {
    let checkers = Checker::EXHAUSTIVE;
    let mut numbers: Vec<String> = Vec::new();
    numbers.extend(checkers.map(|checker| format!("executions and time, {checker}")));
    numbers.push("optimal / loom".to_owned());
    numbers.extend(checkers.map(|checker| format!("a second, {checker}")));
    numbers.push("none / DFS".to_owned());
    numbers.push("optimal / DFS".to_owned());
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    table::head(&["program"], &numbers)
}

/// The columns of those in which something is.
pub fn bugs_head() -> String {
    let numbers = Checker::HUNTERS.map(|checker| checker.to_string());
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    table::head(&["time and executions to the bug"], &numbers)
}

/// All checkers on one program.
#[derive(Serialize)]
pub struct Row {
    /// What was checked.
    #[serde(serialize_with = "by_name")]
    pub program: &'static Program,
    /// After how many seconds a check was cut.
    #[serde(skip)]
    pub seconds: f64,
    /// What it took each.
    pub measured: BTreeMap<Checker, Measurement<Found>>,
}

fn by_name<S: Serializer>(program: &Program, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(program.name)
}

impl Row {
    fn exhaustive(&self) -> Vec<String> {
        let [optimal, none, loom, dfs] =
            Checker::EXHAUSTIVE.map(|checker| &self.measured[&checker]);
        let all = [optimal, none, loom, dfs];
        let mut cells = vec![self.program.title.to_owned()];
        cells.extend(all.map(executions));
        cells.push(ratio(optimal, loom));
        cells.extend(all.map(|measured| grouped(measured.rate().round() as u64)));
        for dragnet in [none, optimal] {
            cells.push(format!("{:.2}", dragnet.rate() / dfs.rate()));
        }
        cells
    }

    fn bugs(&self) -> Vec<String> {
        let mut cells = vec![self.program.title.to_owned()];
        cells.extend(Checker::HUNTERS.map(|checker| self.to_the_bug(&self.measured[&checker])));
        cells
    }

    fn to_the_bug(&self, measured: &Measurement<Found>) -> String {
        let (executions, _, seconds) = measured.of_one();
        match measured.found.end {
            End::Wrong(_) => format!("{} ({})", time(seconds), grouped(executions)),
            _ => format!("not in {} s ({})", self.seconds, grouped(executions)),
        }
    }
}

/// How many executions there are, or were when it was cut, how many were given up besides, and the time that all of them took.
fn executions(measured: &Measurement<Found>) -> String {
    let (executions, blocked, seconds) = measured.of_one();
    let more = match measured.found.end {
        End::Cut => "> ",
        _ => "",
    };
    let blocked = match blocked {
        0 => String::new(),
        some => format!(" + {}", grouped(some)),
    };
    format!(
        "{more}{}{blocked} in {}",
        grouped(executions),
        time(seconds)
    )
}

/// The executions of one, given up or not, by those of the other.
fn ratio(one: &Measurement<Found>, other: &Measurement<Found>) -> String {
    let count = |measured: &Measurement<Found>| {
        let (executions, blocked, _) = measured.of_one();
        (executions + blocked) as f64
    };
    let ratio = count(one) / count(other);
    match (&one.found.end, &other.found.end) {
        (End::Complete, End::Complete) => format!("{ratio:.3}"),
        (End::Complete, _) => format!("< {}", up(ratio)),
        _ => NOTHING.to_owned(),
    }
}

/// A bound, never below what it bounds.
fn up(ratio: f64) -> String {
    format!("{:.3}", (ratio * 1_000.0).ceil() / 1_000.0)
}

fn time(seconds: f64) -> String {
    match seconds {
        ..0.001 => format!("{:.0} µs", seconds * 1e6),
        ..0.1 => format!("{:.1} ms", seconds * 1e3),
        ..1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

impl Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells = match self.program.is_wrong {
            true => self.bugs(),
            false => self.exhaustive(),
        };
        f.write_str(&table::row(&cells))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(end: End, executions: u64, blocked: u64) -> Measurement<Found> {
        Measurement {
            found: Found {
                end,
                checks: 2,
                executions: executions * 2,
                blocked: blocked * 2,
            },
            seconds: 2.0,
            peak_bytes: 0,
            added_bytes: 0,
        }
    }

    #[test]
    fn a_row_says_what_was_run_what_was_cut_and_what_that_comes_to() {
        let counts = [
            measured(End::Complete, 8, 1),
            measured(End::Complete, 7_560, 0),
            measured(End::Complete, 36, 0),
            measured(End::Cut, 15_120, 0),
        ];
        let row = Row {
            program: Program::named("readers-3").unwrap(),
            seconds: 5.0,
            measured: Checker::EXHAUSTIVE.into_iter().zip(counts).collect(),
        };
        assert_eq!(
            row.to_string(),
            "| a writer and 3 readers | 8 + 1 in 1.0 s | 7,560 in 1.0 s | 36 in 1.0 s | > 15,120 in 1.0 s | 0.250 | 8 | 7,560 | 36 | 15,120 | 0.50 | 0.00 |"
        );
        let columns = exhaustive_head();
        let columns = columns.lines().next().unwrap();
        assert_eq!(
            row.to_string().matches('|').count(),
            columns.matches('|').count()
        );
    }

    #[test]
    fn a_bug_has_a_time_and_executions_unless_it_is_not_found() {
        let bug = || End::Wrong("deadlock".to_owned());
        let counts = [
            measured(bug(), 2, 0),
            measured(bug(), 3, 0),
            measured(bug(), 4_000, 0),
            measured(bug(), 5, 0),
            measured(End::Cut, 6_000, 0),
            measured(bug(), 7, 0),
            measured(bug(), 8, 0),
        ];
        let row = Row {
            program: Program::named("aba").unwrap(),
            seconds: 5.0,
            measured: Checker::HUNTERS.into_iter().zip(counts).collect(),
        };
        assert_eq!(
            row.to_string(),
            "| lock-free stack without tags | 1.0 s (2) | 1.0 s (3) | 1.0 s (4,000) | 1.0 s (5) | not in 5 s (6,000) \
             | 1.0 s (7) | 1.0 s (8) |"
        );
    }
}
