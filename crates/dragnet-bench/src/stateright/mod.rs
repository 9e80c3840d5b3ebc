//! Dragnet beside Stateright: every protocol, every search, both checkers in turn.

mod job;
mod protocols;
mod row;
mod search;

use thiserror::Error;

use crate::machine;
use crate::measure::{MeasureError, Measurement};
use crate::turns::{self, Effort};
pub use job::Job;
use job::States;
use protocols::Protocol;
use row::Row;
use search::{Checker, Search};

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
    let header = machine::header(date, &["Stateright"]);
    println!("{header}; best of {}\n", effort.runs);
    println!("{}", row::head());
    for protocol in Protocol::ALL {
        if effort.short_only && !protocol.small {
            continue;
        }
        for search in Search::ALL {
            println!("{}", row(protocol, search, effort.runs)?);
        }
    }
    Ok(())
}

/// Both checkers on one protocol.
fn row(protocol: &'static Protocol, search: Search, runs: u32) -> Result<Row, CompareError> {
    let jobs = [Checker::Stateright, Checker::Dragnet].map(|checker| Job {
        checker,
        protocol,
        order: search.order,
        threads: search.threads,
    });
    let best = turns::best_of(runs, &jobs, hold_to_the_known_count)?;
    Ok(Row {
        protocol,
        search,
        stateright: best[0],
        dragnet: best[1],
    })
}

fn hold_to_the_known_count(job: &Job, measured: &Measurement<States>) -> Result<(), CompareError> {
    let States(found) = measured.found;
    if found == job.protocol.states {
        return Ok(());
    }
    Err(CompareError::Count {
        protocol: job.protocol.title,
        search: job.search(),
        checker: job.checker,
        found,
        known: job.protocol.states,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use search::Order;

    #[test]
    fn a_checker_that_misses_a_state_makes_the_comparison_void() {
        let job = Job {
            checker: Checker::Dragnet,
            protocol: Protocol::named("abd").unwrap(),
            order: Order::Breadth,
            threads: 2,
        };
        let counted = |states| Measurement {
            found: States(states),
            seconds: 1.0,
            peak_bytes: 1,
            added_bytes: 0,
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
