//! Counterexamples as files that replay.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use super::{Fingerprint, SavedState, Step, whole};

const FORMAT: &str = "dragnet-trace";
const VERSION: u32 = 1;

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
    /// What the exploration had learnt that decides which events are enabled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lessons: Vec<String>,
    /// Which of the initial states it starts in.
    pub start: usize,
    /// The fingerprint of that state.
    #[serde(with = "hex")]
    pub fingerprint: Fingerprint,
    /// The steps from there.
    pub steps: Vec<TraceStep>,
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
            lessons: Vec::new(),
            start: 0,
            fingerprint: Fingerprint(0),
            steps: Vec::new(),
        }
    }

    /// Reads a trace from a file.
    pub fn read(path: &Path) -> Result<Self, TraceError> {
        let text = fs::read_to_string(path).map_err(|source| TraceError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let malformed = |reason| TraceError::Malformed {
            path: path.to_owned(),
            reason,
        };
        let trace: Self =
            serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        if trace.format != FORMAT {
            return Err(malformed(format!("its format is `{}`", trace.format)));
        }
        if trace.version != VERSION {
            return Err(malformed(format!(
                "its version is {}, and this Dragnet reads version {VERSION}",
                trace.version
            )));
        }
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
