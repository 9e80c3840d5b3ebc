//! What a user can get wrong, each in one line that says what to do about it.

use std::io;
use std::path::PathBuf;

use dragnet::catalog::SelectionError;
use dragnet::engine::{EngineName, UnreadOption};
use dragnet::trace::{StateError, TraceError};
use dragnet::verdict::ReplayError;
use thiserror::Error;

#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{error}{hint}", error = .0, hint = did_you_mean(.0))]
    Selection(#[from] SelectionError),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(
        "a state of {0} cannot be written: its cluster is not `.serializable()`, or JSON has no form for its states (maps \
         need keys that are strings or numbers)"
    )]
    NoState(String),
    #[error("{} has {steps} steps; --after takes a number up to that", trace.display())]
    NotSoManySteps { trace: PathBuf, steps: usize },
    #[error(
        "{flag}: {source}: choose --engine {}, or leave it out",
        reader(source)
    )]
    Unread {
        flag: &'static str,
        source: UnreadOption,
    },
    #[error("{system} cannot be checked like this: {objection}")]
    Unfit { system: String, objection: String },
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    #[error(
        "{} is a trace of `{system}`, which is none of the systems here ({}); replay it with the program that recorded it",
        trace.display(),
        known.join(", ")
    )]
    TraceOfAnotherSystem {
        trace: PathBuf,
        system: String,
        known: Vec<String>,
    },
    #[error("{} does not fit {system} as it is now: {source}; check it again to record a new trace", trace.display())]
    TraceDoesNotFit {
        trace: PathBuf,
        system: String,
        source: Box<SelectionError>,
    },
    #[error("cannot replay {}: {source}", trace.display())]
    Replay { trace: PathBuf, source: ReplayError },
}

/// An engine that reads an option, whatever the system is where there is one.
fn reader(unread: &UnreadOption) -> EngineName {
    let mut readers = unread.readers.iter().copied();
    let first = unread.readers[0];
    // What `auto` reads depends on the kind of system.
    readers
        .find(|&engine| engine != EngineName::Auto)
        .unwrap_or(first)
}

/// A suggestion when what was asked for is nearly the name of something.
fn did_you_mean(error: &SelectionError) -> String {
    let (name, known) = match error {
        SelectionError::NoSuchSystem { name, known }
        | SelectionError::NoSuchParameter { name, known, .. }
        | SelectionError::NoSuchBug { name, known, .. } => (name, known),
        SelectionError::BadValue { .. }
        | SelectionError::NoFaults { .. }
        | SelectionError::Unfit { .. } => return String::new(),
    };
    match closest(name, known) {
        Some(close) => format!("; did you mean `{close}`?"),
        None => String::new(),
    }
}

/// The known name that is nearest to `name`, if a few slips of the finger explain the difference.
fn closest<'k>(name: &str, known: &'k [String]) -> Option<&'k str> {
    let slips = |known: &str| known.chars().count().max(3) / 3;
    known
        .iter()
        .map(|known| (edit_distance(name, known), known.as_str()))
        .filter(|&(distance, known)| distance <= slips(known))
        .min()
        .map(|(_, known)| known)
}

/// How many characters must be added, removed or replaced to make `from` into `to`.
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    // The distances of what was read of `from` to each prefix of `to`.
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (read, have) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = read + 1;
        for (at, &want) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(have != want);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("abc", ""), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("paxo", "paxos"), 1);
    }

    #[test]
    fn a_near_name_is_suggested_and_a_far_one_is_not() {
        let known = ["paxos", "two-phase-commit", "tree"].map(str::to_owned);
        assert_eq!(closest("paxo", &known), Some("paxos"));
        assert_eq!(closest("Paxos", &known), Some("paxos"));
        assert_eq!(closest("two-fase-comit", &known), Some("two-phase-commit"));
        assert_eq!(closest("raft", &known), None);
        assert_eq!(closest("", &known), None);
    }
}
