//! Counterexamples as files that replay.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use super::{Fingerprint, SavedState, Step, whole};

const FORMAT: &str = "dragnet-trace";
/// The version of a trace that ends.
const VERSION: u32 = 1;
/// The version of a trace with a cycle, which says something else than its steps alone.
const VERSION_WITH_CYCLE: u32 = 2;

/// A recorded execution: for each step the position of the event among those enabled, and the fingerprint of the state
/// after it, beside a form that a person can read.
///
/// It needs no serialisable types of the program under test, and it notices when the program has changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Trace {
    format: String,
    version: u32,
    /// The system that was explored.
    pub system: String,
    /// The parameters that it was set up with.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// The bug that was turned on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bug: Option<String>,
    /// The fault budgets, as the command line takes them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub faults: String,
    /// The property that the execution violates.
    pub property: String,
    /// What is wrong in its last step or state.
    pub violation: String,
    /// The state that the exploration started in, where that is not the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<SavedState>,
    /// The facts about the program that decide which events are enabled.
    #[serde(default, alias = "lessons", skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    /// Which of the initial states it starts in.
    pub start: usize,
    /// The fingerprint of that state.
    #[serde(with = "hex")]
    pub fingerprint: Fingerprint,
    /// The steps from there.
    pub steps: Vec<TraceStep>,
    /// The number of steps in the stem, where the steps behind it are a cycle: the state after the last of them is the state
    /// before the first, so that the execution has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stem: Option<usize>,
}

/// A step of a [`Trace`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TraceStep {
    /// Its position among the enabled events.
    pub event: usize,
    /// The fingerprint of the state after it; none when the program failed in it.
    #[serde(default, with = "hex_option", skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
    /// The step for a person.
    #[serde(flatten)]
    pub step: Step,
}

/// A trace that could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read the trace {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not a trace, or only part of one.
    #[error(
        "{} is not a whole Dragnet trace ({reason}); run the check again to record it anew",
        path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file cannot be written.
    #[error("cannot write the trace {}: {source}; name another file with --trace", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Trace {
    /// A trace of `system` that violates `property`.
    pub(crate) fn new(system: String, property: String, violation: String) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            system,
            parameters: Map::new(),
            bug: None,
            faults: String::new(),
            property,
            violation,
            from: None,
            facts: Vec::new(),
            start: 0,
            fingerprint: Fingerprint(0),
            steps: Vec::new(),
            stem: None,
        }
    }

    /// The number of steps in the stem, where the steps behind it are repeated without end.
    pub fn stem(&self) -> Option<usize> {
        self.stem
    }

    /// Closes a cycle: the steps behind a stem of so many are repeated without end.
    ///
    /// # Panics
    /// Where there are no steps behind the stem, or the last of them does not lead back to where the cycle begins.
    pub fn close_cycle(&mut self, stem: usize) {
        self.stem = Some(stem);
        self.version = VERSION_WITH_CYCLE;
        if let Err(reason) = self.check_cycle() {
            panic!("{reason}");
        }
    }

    /// Why the cycle is none, if it is none.
    fn check_cycle(&self) -> Result<(), String> {
        let Some(stem) = self.stem else {
            return Ok(());
        };
        let Some(last) = self.steps.get(stem..).and_then(<[TraceStep]>::last) else {
            return Err(format!(
                "its cycle begins behind {stem} steps, and it has {}",
                self.steps.len()
            ));
        };
        let entry = match stem.checked_sub(1) {
            None => Some(self.fingerprint),
            Some(before) => self.steps[before].fingerprint,
        };
        match entry.is_some() && entry == last.fingerprint {
            true => Ok(()),
            false => Err("its last step does not lead back to where its cycle begins".to_owned()),
        }
    }

    /// Reads a trace from a file.
    pub fn read(path: &Path) -> Result<Self, TraceError> {
        let text = fs::read_to_string(path).map_err(|source| TraceError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, path)
    }

    /// Reads a trace from the text of a file.
    fn parse(text: &str, path: &Path) -> Result<Self, TraceError> {
        let malformed = |reason| TraceError::Malformed {
            path: path.to_owned(),
            reason,
        };
        let trace: Self =
            serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        if trace.format != FORMAT {
            return Err(malformed(format!("its format is `{}`", trace.format)));
        }
        let version = match trace.stem {
            None => VERSION,
            Some(_) => VERSION_WITH_CYCLE,
        };
        if trace.version != version {
            return Err(malformed(format!(
                "its version is {}, and this Dragnet reads versions {VERSION} and {VERSION_WITH_CYCLE}, the latter with a cycle",
                trace.version
            )));
        }
        trace.check_cycle().map_err(malformed)?;
        Ok(trace)
    }

    /// Writes the trace to a file, whole or not at all: what was there before stays until the new one is complete.
    pub fn write(&self, path: &Path) -> Result<(), TraceError> {
        let unwritable = |source| TraceError::Unwritable {
            path: path.to_owned(),
            source,
        };
        whole::write(path, self).map_err(unwritable)
    }
}

mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::trace::Fingerprint;

    pub(super) fn serialize<S: Serializer>(
        fingerprint: &Fingerprint,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(fingerprint)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Fingerprint, D::Error> {
        let text = String::deserialize(deserializer)?;
        Fingerprint::parse(&text)
            .ok_or_else(|| D::Error::custom(format!("`{text}` is not a fingerprint")))
    }
}

mod hex_option {
    use serde::{Deserializer, Serializer};

    use super::hex;
    use crate::trace::Fingerprint;

    pub(super) fn serialize<S: Serializer>(
        fingerprint: &Option<Fingerprint>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match fingerprint {
            Some(fingerprint) => hex::serialize(fingerprint, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Fingerprint>, D::Error> {
        hex::deserialize(deserializer).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(states: &[u64]) -> Trace {
        let mut trace = Trace::new("turns".to_owned(), "progress".to_owned(), "none".to_owned());
        trace.fingerprint = Fingerprint(states[0]);
        trace.steps = states[1..]
            .iter()
            .map(|&state| TraceStep {
                event: 0,
                fingerprint: Some(Fingerprint(state)),
                step: Step::default(),
            })
            .collect();
        trace
    }

    fn read_back(text: &str) -> Result<Trace, TraceError> {
        Trace::parse(text, Path::new("t.json"))
    }

    #[test]
    fn a_lasso_is_read_as_it_was_written() {
        for (states, stem) in [(&[1, 2, 3, 2][..], 1), (&[1, 2, 1], 0), (&[1, 2, 2], 1)] {
            let mut lasso = trace(states);
            lasso.close_cycle(stem);
            let read = read_back(&serde_json::to_string(&lasso).unwrap()).unwrap();
            assert_eq!((read.stem(), &read), (Some(stem), &lasso));
        }
    }

    #[test]
    fn a_trace_that_ends_has_the_version_that_it_always_had() {
        let plain = serde_json::to_value(trace(&[1, 2])).unwrap();
        assert_eq!(plain["version"], 1);
        assert!(plain.get("stem").is_none());
        assert_eq!(read_back(&plain.to_string()).unwrap().stem(), None);
    }

    #[test]
    fn a_cycle_that_does_not_close_is_refused() {
        let mut lasso = trace(&[1, 2, 3, 2]);
        lasso.close_cycle(1);
        let whole = serde_json::to_value(&lasso).unwrap();
        for (field, value) in [
            ("stem", 0),
            ("stem", 3),
            ("stem", 9),
            ("version", 1),
            ("version", 3),
        ] {
            let mut other = whole.clone();
            other[field] = value.into();
            let refused = read_back(&other.to_string());
            assert!(
                matches!(refused, Err(TraceError::Malformed { .. })),
                "{field} = {value}: {refused:?}"
            );
        }
    }
}
