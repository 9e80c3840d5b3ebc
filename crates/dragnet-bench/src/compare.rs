//! The comparison itself: every protocol, every search, both checkers in turn.

use thiserror::Error;

use crate::machine;
use crate::measure::{Job, MeasureError, Measurement};
use crate::protocols::Protocol;
use crate::search::{Checker, Search};
use crate::table::{HEAD, Row};

/// How long a checker searches before it is the other's turn, if a search does not take longer.
const SECONDS_A_TURN: f64 = 2.0;
const MOST_SEARCHES_A_TURN: u32 = 10;

/// How thorough a comparison is.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How many runs the best is taken of.
    pub runs: u32,
    /// Whether only the small protocols are compared.
    pub small_only: bool,
}

/// Why a comparison is void.
#[derive(Debug, Error)]
pub enum CompareError {
    /// A measurement could not be made.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// The checkers did not search the same space.
    #[error(
        "{protocol} ({search}): {checker} found {found} unique states where there are {known}; speeds over different \
         spaces cannot be compared"
    )]
    Count {
        /// What was searched.
        protocol: &'static str,
        /// How.
        search: Search,
        /// Who miscounted.
        checker: Checker,
        /// Its count.
        found: u64,
        /// The right one.
        known: u64,
    },
}

/// Compares both checkers and prints the table to stdout, each row as soon as it is known; progress goes to stderr.
pub fn compare(effort: Effort, date: Option<String>) -> Result<(), CompareError> {
    println!("{}; best of {}\n", machine::header(date), effort.runs);
    println!("{HEAD}");
    for protocol in Protocol::ALL {
        if effort.small_only && !protocol.small {
            continue;
        }
        for search in Search::ALL {
            println!("{}", row(protocol, search, effort.runs)?);
        }
    }
    Ok(())
}

/// Both checkers on one protocol. Their runs alternate, so that a busy moment of the machine meets both.
fn row(protocol: &'static Protocol, search: Search, runs: u32) -> Result<Row, CompareError> {
    let mut best: [Option<Measurement>; 2] = [None; 2];
    for run in 1..=runs {
        for (best, checker) in best.iter_mut().zip([Checker::Stateright, Checker::Dragnet]) {
            eprintln!(
                "{} ({search}): {checker}, run {run} of {runs}",
                protocol.title
            );
            let measured = turn(checker, protocol, search)?;
            *best = Some(best.map_or(measured, |best| best.best(measured)));
        }
    }
    let [stateright, dragnet] = best.map(|best| best.expect("there is at least one run"));
    Ok(Row {
        protocol,
        search,
        stateright,
        dragnet,
    })
}

/// One checker's turn: a short search is repeated, or a busy moment of the machine would be all of it.
fn turn(
    checker: Checker,
    protocol: &'static Protocol,
    search: Search,
) -> Result<Measurement, CompareError> {
    let mut best = measure(checker, protocol, search)?;
    let mut seconds = best.seconds;
    for _ in 1..MOST_SEARCHES_A_TURN {
        if seconds >= SECONDS_A_TURN {
            break;
        }
        let measured = measure(checker, protocol, search)?;
        seconds += measured.seconds;
        best = best.best(measured);
    }
    Ok(best)
}

fn measure(
    checker: Checker,
    protocol: &'static Protocol,
    search: Search,
) -> Result<Measurement, CompareError> {
    let job = Job {
        checker,
        protocol,
        order: search.order,
        threads: search.threads,
    };
    let measured = job.measure_in_child()?;
    hold_to_the_known_count(&job, &measured)?;
    Ok(measured)
}

fn hold_to_the_known_count(job: &Job, measured: &Measurement) -> Result<(), CompareError> {
    if measured.states == job.protocol.states {
        return Ok(());
    }
    Err(CompareError::Count {
        protocol: job.protocol.title,
        search: job.search(),
        checker: job.checker,
        found: measured.states,
        known: job.protocol.states,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Order;

    #[test]
    fn a_checker_that_misses_a_state_makes_the_comparison_void() {
        let job = Job {
            checker: Checker::Dragnet,
            protocol: Protocol::named("abd").unwrap(),
            order: Order::Breadth,
            threads: 2,
        };
        let counted = |states| Measurement {
            states,
            seconds: 1.0,
            peak_bytes: 1,
        };
        assert!(hold_to_the_known_count(&job, &counted(325)).is_ok());
        let void = hold_to_the_known_count(&job, &counted(324)).unwrap_err();
        assert_eq!(
            void.to_string(),
            "ABD register, 2 servers, 2 clients (breadth first, 2 threads): Dragnet found 324 unique states where there \
             are 325; speeds over different spaces cannot be compared"
        );
    }
}
