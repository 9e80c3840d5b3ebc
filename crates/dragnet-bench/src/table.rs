//! The comparison as a Markdown table, a row at a time.

use std::fmt::{self, Display};

use crate::measure::Measurement;
use crate::protocols::Protocol;
use crate::search::Search;

/// Below this many states the process itself outweighs what the checker keeps, and bytes a state mean nothing.
const WEIGHABLE: u64 = 100_000;

/// The names of the columns, and the line below them.
pub const HEAD: &str = "\
| protocol | order | threads | states, Stateright | states, Dragnet | states/s, Stateright | states/s, Dragnet | ratio | bytes/state, Stateright | bytes/state, Dragnet |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|";

/// Both checkers on one protocol with one search.
pub struct Row {
    /// What was checked.
    pub protocol: &'static Protocol,
    /// How.
    pub search: Search,
    /// What it took Stateright.
    pub stateright: Measurement,
    /// What it took Dragnet.
    pub dragnet: Measurement,
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
            grouped(stateright.states),
            grouped(dragnet.states),
            grouped(stateright.rate().round() as u64),
            grouped(dragnet.rate().round() as u64),
            format!("{:.1}", dragnet.rate() / stateright.rate()),
            weight(stateright),
            weight(dragnet),
        ];
        write!(f, "| {} |", cells.join(" | "))
    }
}

fn weight(measured: &Measurement) -> String {
    if measured.states < WEIGHABLE {
        "–".to_owned()
    } else {
        grouped(measured.bytes_a_state().round() as u64)
    }
}

/// A number with a comma between each three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups_of_three() {
        let numbers = [0, 999, 1_000, 10_340_352];
        assert_eq!(numbers.map(grouped), ["0", "999", "1,000", "10,340,352"]);
    }

    #[test]
    fn a_row_has_a_cell_for_each_column() {
        let measured = |seconds| Measurement {
            states: 200_000,
            seconds,
            peak_bytes: 8_000_000,
        };
        let row = Row {
            protocol: Protocol::named("paxos-2").unwrap(),
            search: Search::ALL[0],
            stateright: measured(2.0),
            dragnet: measured(0.1),
        };
        let row = row.to_string();
        let columns = HEAD.lines().next().unwrap();
        assert_eq!(row.matches('|').count(), columns.matches('|').count());
        assert!(
            row.ends_with("| 100,000 | 2,000,000 | 20.0 | 40 | 40 |"),
            "{row}"
        );
    }
}
