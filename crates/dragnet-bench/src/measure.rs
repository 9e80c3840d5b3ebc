//! One job, timed and weighed, in a process of its own.
//!
//! Peak memory belongs to a process, so each measurement is made by a child: this binary, started again with its hidden
//! `measure` command. The child times the check alone, reads its own peak just before it ends and prints one line of
//! JSON, which the parent reads.

use std::ffi::OsString;
use std::fmt::Display;
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs, io};

use clap::ValueEnum;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What can be measured: a check of something. Its text says which one, for a person who waits.
pub trait Job: Display {
    /// What it finds out, whatever it takes.
    type Found: Clone + Serialize + DeserializeOwned;

    /// What follows `measure` on the command line of a child that is to do this job.
    fn arguments(&self) -> Vec<OsString>;

    /// Does the job.
    fn run(&self) -> Self::Found;

    /// What is to be as little as can be: the time, where every run does the same.
    fn cost(measured: &Measurement<Self::Found>) -> f64 {
        measured.seconds
    }
}

/// What a job found, and what that took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement<F> {
    /// What was found.
    pub found: F,
    /// The time of the check, without that of the process around it.
    pub seconds: f64,
    /// The largest resident size of the process.
    pub peak_bytes: u64,
    /// How much of that was not there before the check.
    pub added_bytes: u64,
}

/// Why there is no measurement.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The child could not be started, or its memory not be read.
    #[error("cannot run a measurement: {0}")]
    Process(#[from] io::Error),
    /// `/proc` does not say what the peak was.
    #[error("/proc/self/status has no VmHWM: peak memory is measured on Linux only")]
    NoPeak,
    /// The child ended badly; what it said is on stderr.
    #[error("{job}: failed with {status}")]
    Failed {
        /// What it was to do.
        job: String,
        /// How the child ended.
        status: std::process::ExitStatus,
    },
    /// The child said something else than a measurement.
    #[error("a measurement printed `{line}`: {error}")]
    Unreadable {
        /// What it printed.
        line: String,
        /// What is wrong with it.
        error: serde_json::Error,
    },
}

impl<F> Measurement<F> {
    /// The better of two measurements of the same job, in cost and in memory each by itself; what was found is what the
    /// cheaper one found.
    pub fn best(self, other: Self, cost: impl Fn(&Self) -> f64) -> Self {
        let peak_bytes = self.peak_bytes.min(other.peak_bytes);
        let added_bytes = self.added_bytes.min(other.added_bytes);
        let cheaper = if cost(&other) < cost(&self) {
            other
        } else {
            self
        };
        Self {
            peak_bytes,
            added_bytes,
            ..cheaper
        }
    }
}

/// Does a job in this process.
pub fn measure<J: Job>(job: &J) -> Result<Measurement<J::Found>, MeasureError> {
    let before = own_peak()?;
    let start = Instant::now();
    let found = job.run();
    let seconds = start.elapsed().as_secs_f64();
    let peak_bytes = own_peak()?;
    Ok(Measurement {
        found,
        seconds,
        peak_bytes,
        added_bytes: peak_bytes.saturating_sub(before),
    })
}

/// Does a job in a child process.
pub fn measure_in_child<J: Job>(job: &J) -> Result<Measurement<J::Found>, MeasureError> {
    let child = Command::new(env::current_exe()?)
        .arg("measure")
        .args(job.arguments())
        .stderr(Stdio::inherit())
        .output()?;
    if !child.status.success() {
        return Err(MeasureError::Failed {
            job: job.to_string(),
            status: child.status,
        });
    }
    let line = String::from_utf8_lossy(&child.stdout).trim().to_owned();
    serde_json::from_str(&line).map_err(|error| MeasureError::Unreadable { line, error })
}

/// How a value of a fixed set is written on the command line.
pub fn argument(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.expect("no value is hidden").get_name().to_owned()
}

fn own_peak() -> Result<u64, MeasureError> {
    peak_of(&fs::read_to_string("/proc/self/status")?)
}

/// The peak resident size that the text of a `/proc/*/status` file tells.
fn peak_of(status: &str) -> Result<u64, MeasureError> {
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"))
        .and_then(|kilobytes| kilobytes.parse::<u64>().ok())
        .map(|kilobytes| kilobytes * 1024)
        .ok_or(MeasureError::NoPeak)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(found: u64, seconds: f64, peak_bytes: u64) -> Measurement<u64> {
        Measurement {
            found,
            seconds,
            peak_bytes,
            added_bytes: peak_bytes / 2,
        }
    }

    #[test]
    fn the_peak_is_the_high_water_mark_and_not_the_present_size() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(peak_of(status).unwrap(), 2048 * 1024);
        assert!(matches!(
            peak_of("VmRSS:\t1 kB\n"),
            Err(MeasureError::NoPeak)
        ));
    }

    #[test]
    fn the_best_of_two_runs_is_the_shorter_time_and_the_lower_peak() {
        let best = run(7, 1.0, 200);
        let time = |measured: &Measurement<u64>| measured.seconds;
        assert_eq!(run(7, 1.0, 300).best(run(8, 2.0, 200), time), best);
        assert_eq!(run(8, 2.0, 200).best(run(7, 1.0, 300), time), best);
    }

    #[test]
    fn a_measurement_survives_the_way_from_child_to_parent() {
        let measured = run(544, 0.25, 4096);
        let line = serde_json::to_string(&measured).unwrap();
        assert_eq!(
            serde_json::from_str::<Measurement<u64>>(&line).unwrap(),
            measured
        );
    }
}
