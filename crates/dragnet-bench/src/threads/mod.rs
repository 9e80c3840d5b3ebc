//! Dragnet beside loom and shuttle on programs with threads: how many executions each runs until it knows that nothing is
//! wrong, how many of them a second, and how long it takes until it knows that something is.

mod checker;
mod job;
mod programs;
mod rows;

use serde::Serialize;
use thiserror::Error;

use crate::machine;
use crate::measure::{MeasureError, Measurement};
use crate::turns::{self, Effort};
use checker::{Checker, End};
use job::Found;
pub use job::Job;
use programs::Program;
use rows::Row;

/// Why a comparison is void.
#[derive(Debug, Error)]
pub enum ThreadsError {
    /// A measurement could not be made.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// A checker came to the wrong verdict.
    #[error("{job}: ended with {end:?}; what a wrong verdict takes says nothing")]
    Verdict {
        /// What was checked.
        job: String,
        /// How it ended.
        end: End,
    },
    /// What was measured could not be written.
    #[error("cannot write what was measured: {0}")]
    Json(#[from] serde_json::Error),
}

/// What is compared, and how it is told.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How thorough it is.
    pub effort: Effort,
    /// After how many seconds a check is cut.
    pub seconds: f64,
    /// The programs, or all where none is named.
    pub programs: Vec<&'static str>,
    /// Whether it is told as JSON.
    pub as_json: bool,
}

/// All that was measured.
#[derive(Serialize)]
struct Report {
    header: String,
    seconds: f64,
    rows: Vec<Row>,
}

/// Compares the checkers and prints the tables to stdout, each row as soon as it is known, or all of it as JSON; progress
/// goes to stderr.
pub fn compare(plan: &Plan, date: Option<String>) -> Result<(), ThreadsError> {
    let header = machine::header(date, &["loom", "shuttle"]);
    let header = format!(
        "{header}; best of {}, cut after {} s",
        plan.effort.runs, plan.seconds
    );
    let tell = |line: &str| {
        if !plan.as_json {
            println!("{line}");
        }
    };
    tell(&header);
    let mut rows = Vec::new();
    for (is_wrong, head) in [(false, rows::exhaustive_head()), (true, rows::bugs_head())] {
        let programs: Vec<_> = plan
            .programs()
            .filter(|program| program.is_wrong == is_wrong)
            .collect();
        if programs.is_empty() {
            continue;
        }
        tell(&format!("\n{head}"));
        for program in programs {
            let row = row(program, plan)?;
            tell(&row.to_string());
            rows.push(row);
        }
    }
    if plan.as_json {
        let report = Report {
            header,
            seconds: plan.seconds,
            rows,
        };
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    Ok(())
}

impl Plan {
    fn programs(&self) -> impl Iterator<Item = &'static Program> {
        let all = Program::all(checker::Tool::Dragnet).iter();
        all.filter(|program| match self.programs.is_empty() {
            true => program.is_small || !self.effort.short_only,
            false => self.programs.contains(&program.name),
        })
    }
}

/// The name of a program, if it is one.
pub fn program_name(name: &str) -> Result<&'static str, String> {
    Program::named(name).map(|program| program.name)
}

/// All checkers on one program.
fn row(program: &'static Program, plan: &Plan) -> Result<Row, ThreadsError> {
    let checkers: &[Checker] = match program.is_wrong {
        true => &Checker::HUNTERS,
        false => &Checker::EXHAUSTIVE,
    };
    let jobs: Vec<_> = checkers
        .iter()
        .map(|&checker| Job {
            checker,
            program,
            seconds: plan.seconds,
        })
        .collect();
    let best = turns::best_of(plan.effort.runs, &jobs, hold_to_the_truth)?;
    let measured = checkers.iter().copied().zip(best);
    Ok(Row {
        program,
        seconds: plan.seconds,
        measured: measured.collect(),
    })
}

/// Only time is an excuse not to come to the right verdict.
fn hold_to_the_truth(job: &Job, measured: &Measurement<Found>) -> Result<(), ThreadsError> {
    let end = &measured.found.end;
    let is_right = match end {
        End::Complete => !job.program.is_wrong,
        End::Cut => true,
        End::Wrong(_) => job.program.is_wrong,
    };
    if is_right {
        return Ok(());
    }
    Err(ThreadsError::Verdict {
        job: job.to_string(),
        end: end.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_verdict_makes_the_comparison_void() {
        let judge = |name, end| {
            let job = Job {
                checker: Checker::Loom,
                program: Program::named(name).unwrap(),
                seconds: 1.0,
            };
            let found = Found {
                end,
                checks: 1,
                executions: 1,
                blocked: 0,
            };
            let measured = Measurement {
                found,
                seconds: 1.0,
                peak_bytes: 0,
                added_bytes: 0,
            };
            hold_to_the_truth(&job, &measured).map_err(|error| error.to_string())
        };
        let bug = || End::Wrong("deadlock".to_owned());
        assert_eq!(judge("stack", End::Complete), Ok(()));
        assert_eq!(judge("aba", bug()), Ok(()));
        assert_eq!(judge("aba", End::Cut), Ok(()));
        assert_eq!(
            judge("aba", End::Complete),
            Err(
                "lock-free stack without tags: loom: ended with Complete; what a wrong verdict takes says nothing"
                    .to_owned()
            )
        );
        assert!(judge("stack", bug()).is_err());
    }

    #[test]
    fn every_tool_has_the_same_programs_under_names_of_their_own() {
        use checker::Tool;
        let names = |tool| {
            let programs = Program::all(tool).iter();
            programs.map(|program| program.name).collect::<Vec<_>>()
        };
        let mut dragnets = names(Tool::Dragnet);
        assert_eq!(dragnets, names(Tool::Loom));
        assert_eq!(dragnets, names(Tool::Shuttle));
        let count = dragnets.len();
        dragnets.sort_unstable();
        dragnets.dedup();
        assert_eq!(dragnets.len(), count);
    }
}
