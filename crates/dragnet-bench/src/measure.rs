//! One search, timed and weighed, in a process of its own.
//!
//! Peak memory belongs to a process, so each measurement is made by a child: this binary, started again with its hidden
//! `measure` command. The child times the check alone, reads its own peak just before it ends and prints one line of
//! JSON, which the parent reads.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs, io};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::protocols::Protocol;
use crate::search::{Checker, Order, Search};

/// What is measured: a checker, a protocol, a search. As arguments, it is what a child is told.
#[derive(Args, Clone, Copy, Debug)]
pub struct Job {
    /// The checker that searches.
    #[arg(value_enum)]
    pub checker: Checker,
    /// The protocol, by name.
    #[arg(value_parser = Protocol::named)]
    pub protocol: &'static Protocol,
    /// In which order it searches.
    #[arg(value_enum)]
    pub order: Order,
    /// With how many threads.
    pub threads: usize,
}

/// What one search took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Unique states found.
    pub states: u64,
    /// The time of the check, without that of the process around it.
    pub seconds: f64,
    /// The largest resident size of the process.
    pub peak_bytes: u64,
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
    #[error("{checker} failed on {protocol} ({search}): {status}")]
    Failed {
        /// Who searched.
        checker: Checker,
        /// What.
        protocol: &'static str,
        /// How.
        search: Search,
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

impl Measurement {
    /// Unique states a second.
    pub fn rate(&self) -> f64 {
        self.states as f64 / self.seconds
    }

    /// Bytes of peak memory a unique state.
    pub fn bytes_a_state(&self) -> f64 {
        self.peak_bytes as f64 / self.states as f64
    }

    /// The better of two measurements of the same job, in time and in memory each by itself.
    pub fn best(self, other: Self) -> Self {
        Self {
            states: self.states,
            seconds: self.seconds.min(other.seconds),
            peak_bytes: self.peak_bytes.min(other.peak_bytes),
        }
    }
}

impl Job {
    /// How it searches.
    pub fn search(&self) -> Search {
        Search {
            order: self.order,
            threads: self.threads,
        }
    }

    /// Does the job in this process.
    pub fn measure(&self) -> Result<Measurement, MeasureError> {
        let start = Instant::now();
        let states = self.protocol.check(self.checker, self.search());
        let seconds = start.elapsed().as_secs_f64();
        Ok(Measurement {
            states,
            seconds,
            peak_bytes: peak_of(&fs::read_to_string("/proc/self/status")?)?,
        })
    }

    /// Does the job in a child process.
    pub fn measure_in_child(&self) -> Result<Measurement, MeasureError> {
        let child = Command::new(env::current_exe()?)
            .args(self.arguments())
            .stderr(Stdio::inherit())
            .output()?;
        if !child.status.success() {
            return Err(MeasureError::Failed {
                checker: self.checker,
                protocol: self.protocol.title,
                search: self.search(),
                status: child.status,
            });
        }
        let line = String::from_utf8_lossy(&child.stdout).trim().to_owned();
        serde_json::from_str(&line).map_err(|error| MeasureError::Unreadable { line, error })
    }

    /// The command line that makes a child do this job.
    fn arguments(&self) -> Vec<OsString> {
        let name = |value: &dyn ToString| OsString::from(value.to_string());
        vec![
            "measure".into(),
            name(&argument(self.checker)),
            self.protocol.name.into(),
            name(&argument(self.order)),
            name(&self.threads),
        ]
    }
}

/// How a value of a fixed set is written on the command line.
fn argument(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.expect("no value is hidden").get_name().to_owned()
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
        let run = |seconds, peak_bytes| Measurement {
            states: 10,
            seconds,
            peak_bytes,
        };
        assert_eq!(run(1.0, 300).best(run(2.0, 200)), run(1.0, 200));
    }

    #[test]
    fn a_measurement_survives_the_way_from_child_to_parent() {
        let measured = Measurement {
            states: 544,
            seconds: 0.25,
            peak_bytes: 4096,
        };
        let line = serde_json::to_string(&measured).unwrap();
        assert_eq!(
            serde_json::from_str::<Measurement>(&line).unwrap(),
            measured
        );
    }
}
