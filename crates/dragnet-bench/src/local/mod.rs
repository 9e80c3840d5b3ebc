//! The figures of *Model Checking a Networked System Without the Network* (Guerraoui and Yabandeh, NSDI 2011) that say
//! how fast local model checking is, measured again on the same system: Paxos as its section 5 has it.
//!
//! What the paper's text gives in numbers stands beside them; its curves are not read off. Differences:
//!
//! - A step is a delivery or a call. The paper counts the start of each node as well, and deliveries that change nothing.
//! - The depth of a local search is the longest history of one node here, and not the length of an execution. A bound on
//!   it includes every execution of as many steps.
//! - Breadth first stands for the paper's depth-first search with growing bounds, which takes steps again for each bound.

mod figures;
mod job;
mod overheads;
mod ratios;

use thiserror::Error;

use crate::machine;
use crate::measure::{MeasureError, Measurement};
use crate::table::NOTHING;
use crate::turns::{self, Effort};
pub use job::Job;
use job::{End, Found, Scenario};

/// After how many seconds a search is given up that need not end.
const PATIENCE: u64 = 20;

/// Why measurements are void.
#[derive(Debug, Error)]
pub enum LocalError {
    /// One could not be made.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// A search ended with the wrong verdict.
    #[error("{job}: ended with {end:?}; what a wrong verdict takes says nothing")]
    Verdict {
        /// What was searched.
        job: String,
        /// How it ended.
        end: End,
    },
}

type Measured = Measurement<Found>;

/// Measures all figures and prints a table for each to stdout; progress goes to stderr.
pub fn compare(effort: Effort, date: Option<String>) -> Result<(), LocalError> {
    println!("{}; best of {}", machine::header(date, &[]), effort.runs);
    figures::in_total(effort)?;
    figures::by_depth(effort)?;
    figures::larger(effort)?;
    overheads::in_the_buggy_system(effort)?;
    ratios::of_threads_and_engines(effort)
}

/// The best of so many runs of each job.
fn best_of(runs: u32, jobs: &[Job]) -> Result<Vec<Measured>, LocalError> {
    turns::best_of(runs, jobs, hold_to_the_truth)
}

/// Agreement holds unless something is seeded, and only a limit is an excuse not to say so.
fn hold_to_the_truth(job: &Job, measured: &Measured) -> Result<(), LocalError> {
    let end = measured.found.end;
    let is_right = match end {
        End::Holds => job.scenario == Scenario::Correct || job.depth.is_some(),
        End::Violated(_) => job.scenario != Scenario::Correct,
        End::Cut => job.depth.is_some() || job.seconds.is_some(),
    };
    if is_right {
        return Ok(());
    }
    Err(LocalError::Verdict {
        job: job.to_string(),
        end,
    })
}

/// The time that a search took, or after which it was given up.
fn time(measured: &Measured, job: &Job) -> String {
    let ran_out = measured.found.end == End::Cut
        && job
            .seconds
            .is_some_and(|most| measured.seconds >= most as f64);
    if ran_out {
        format!("inconclusive after {}", seconds(measured.seconds))
    } else {
        seconds(measured.seconds)
    }
}

fn seconds(seconds: f64) -> String {
    match seconds {
        ..0.01 => format!("{:.1} ms", seconds * 1e3),
        ..1.0 => format!("{:.0} ms", seconds * 1e3),
        ..100.0 => format!("{seconds:.1} s"),
        _ => format!("{seconds:.0} s"),
    }
}

fn bytes(count: u64) -> String {
    let kibibytes = count as f64 / 1024.0;
    match kibibytes {
        ..1024.0 => format!("{kibibytes:.0} KiB"),
        ..1_048_576.0 => format!("{:.1} MiB", kibibytes / 1024.0),
        _ => format!("{:.1} GiB", kibibytes / 1_048_576.0),
    }
}

/// What the paper says, if it does.
fn paper(says: Option<&str>) -> String {
    says.unwrap_or(NOTHING).to_owned()
}

#[cfg(test)]
mod tests {
    use dragnet::engine::EngineName;

    use super::*;
    use job::Local;

    fn ended(end: End, seconds: f64) -> Measured {
        Measurement {
            found: Found {
                end,
                decided_by_local: true,
                states: 94,
                transitions: 391,
                depth: 5,
                handler_runs: 655,
                local: Local::default(),
            },
            seconds,
            peak_bytes: 0,
            added_bytes: 0,
        }
    }

    #[test]
    fn a_wrong_verdict_makes_the_measurements_void() {
        let correct = Job::new(EngineName::Local);
        let buggy = Job {
            scenario: Scenario::LiveState,
            ..correct
        };
        let limited = Job {
            seconds: Some(PATIENCE),
            ..correct
        };
        let fits = |job: &Job, end| hold_to_the_truth(job, &ended(end, 1.0)).is_ok();
        assert!(fits(&correct, End::Holds) && !fits(&correct, End::Violated(9)));
        assert!(fits(&buggy, End::Violated(9)) && !fits(&buggy, End::Holds));
        assert!(fits(&limited, End::Cut) && !fits(&correct, End::Cut));
    }

    #[test]
    fn a_search_that_was_given_up_says_after_what_time() {
        let limited = Job {
            seconds: Some(20),
            depth: Some(3),
            ..Job::new(EngineName::Local)
        };
        let given_up = ended(End::Cut, 20.01);
        assert_eq!(time(&given_up, &limited), "inconclusive after 20.0 s");
        let to_its_bound = ended(End::Cut, 0.25);
        assert_eq!(time(&to_its_bound, &limited), "250 ms");
    }

    #[test]
    fn times_and_sizes_have_the_unit_that_fits() {
        let times = [0.0017, 0.25, 12.345, 1514.0].map(seconds);
        assert_eq!(times, ["1.7 ms", "250 ms", "12.3 s", "1514 s"]);
        let sizes = [200 << 10, 5 << 19, 3 << 29].map(bytes);
        assert_eq!(sizes, ["200 KiB", "2.5 MiB", "1.5 GiB"]);
    }
}
