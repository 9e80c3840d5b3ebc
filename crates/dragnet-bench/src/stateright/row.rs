//! The comparison as a Markdown table, a row at a time.

use std::fmt::{self, Display};

use super::job::States;
use super::protocols::Protocol;
use super::search::Search;
use crate::measure::Measurement;
use crate::table::{self, NOTHING, grouped};

/// Below this many states the process itself outweighs what the checker keeps, and bytes a state mean nothing.
const WEIGHABLE: u64 = 100_000;

/// The names of the columns, and the line below them.
pub fn head() -> String {
    table::head(
        &["protocol", "order"],
        &[
            "threads",
            "states, Stateright",
            "states, Dragnet",
            "states/s, Stateright",
            "states/s, Dragnet",
            "ratio",
            "bytes/state, Stateright",
            "bytes/state, Dragnet",
        ],
    )
}

/// Both checkers on one protocol with one search.
pub struct Row {
    /// What was checked.
    pub protocol: &'static Protocol,
    /// How.
    pub search: Search,
    /// What it took Stateright.
    pub stateright: Measurement<States>,
    /// What it took Dragnet.
    pub dragnet: Measurement<States>,
}

impl Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            protocol,
            search,
            stateright,
            dragnet,
        } = self;
        let cells = [
            protocol.title.to_owned(),
            search.order.to_string(),
            search.threads.to_string(),
            grouped(stateright.found.0),
            grouped(dragnet.found.0),
            grouped(stateright.rate().round() as u64),
            grouped(dragnet.rate().round() as u64),
            format!("{:.1}", dragnet.rate() / stateright.rate()),
            weight(stateright),
            weight(dragnet),
        ];
        f.write_str(&table::row(&cells))
    }
}

fn weight(measured: &Measurement<States>) -> String {
    if measured.found.0 < WEIGHABLE {
        NOTHING.to_owned()
    } else {
        grouped(measured.bytes_a_state().round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_cell_for_each_column() {
        let measured = |seconds| Measurement {
            found: States(200_000),
            seconds,
            peak_bytes: 8_000_000,
            added_bytes: 0,
        };
        let row = Row {
            protocol: Protocol::named("paxos-2").unwrap(),
            search: Search::ALL[0],
            stateright: measured(2.0),
            dragnet: measured(0.1),
        };
        let row = row.to_string();
        let head = head();
        let columns = head.lines().next().unwrap();
        assert_eq!(row.matches('|').count(), columns.matches('|').count());
        assert!(
            row.ends_with("| 100,000 | 2,000,000 | 20.0 | 40 | 40 |"),
            "{row}"
        );
    }
}
