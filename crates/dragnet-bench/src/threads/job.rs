//! What is measured: a checker and a program.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};

use super::checker::{Checker, End};
use super::programs::Program;
use crate::measure::{self, Measurement, argument};

/// What is short is done again until so much time has passed,
const SECONDS: f64 = 0.5;
/// or so often.
const MOST_CHECKS: u64 = 10_000;
/// How many seeds the mean is taken of at least, where a checker draws.
const SEEDS: u64 = 20;

/// A checker that runs a program. As arguments, it is what a child is told.
#[derive(Args, Clone, Copy, Debug)]
pub struct Job {
    /// The checker.
    #[arg(value_enum)]
    pub checker: Checker,
    /// The program, by name.
    #[arg(value_parser = Program::named)]
    pub program: &'static Program,
    /// After how many seconds a check is cut.
    pub seconds: f64,
}

/// What came of some checks that are all the same, but for the seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// How the last ended, as the others did.
    pub end: End,
    /// How many there were.
    pub checks: u64,
    /// Executions that came to an end, in all of them.
    pub executions: u64,
    /// Executions that were given up.
    pub blocked: u64,
}

impl Measurement<Found> {
    /// Executions a second.
    pub fn rate(&self) -> f64 {
        self.found.executions as f64 / self.seconds
    }

    /// Executions of one check, those that were given up besides, and its time.
    pub fn of_one(&self) -> (u64, u64, f64) {
        let Found {
            checks,
            executions,
            blocked,
            ..
        } = self.found;
        let mean = |count: u64| (count as f64 / checks as f64).round() as u64;
        let seconds = self.seconds / checks as f64;
        (mean(executions), mean(blocked), seconds)
    }
}

impl measure::Job for Job {
    type Found = Found;

    fn arguments(&self) -> Vec<OsString> {
        vec![
            "threads".into(),
            argument(self.checker).into(),
            self.program.name.into(),
            self.seconds.to_string().into(),
        ]
    }

    fn run(&self) -> Found {
        let program = self.program.on(self.checker.tool()).run;
        let start = Instant::now();
        let seeds = if self.checker.draws() { SEEDS } else { 1 };
        let (mut executions, mut blocked) = (0, 0);
        for checks in 1.. {
            let time = Duration::from_secs_f64(self.seconds);
            let checked = self.checker.check(program, checks, time);
            executions += checked.executions;
            blocked += checked.blocked;
            let passed = start.elapsed().as_secs_f64();
            let enough = checks >= seeds && (passed >= SECONDS || checks >= MOST_CHECKS);
            if enough || checked.end == End::Cut || passed >= self.seconds {
                return Found {
                    end: checked.end,
                    checks,
                    executions,
                    blocked,
                };
            }
        }
        unreachable!("there is an end to everything")
    }

    /// The time of an execution: how many there are in a given time is not the same for all runs.
    fn cost(measured: &Measurement<Found>) -> f64 {
        1.0 / measured.rate()
    }
}

impl Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.program.title, self.checker)
    }
}
