//! States of a cluster as files that a check can start from.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::whole;

const FORMAT: &str = "dragnet-state";
const VERSION: u32 = 1;

/// A state of a cluster: each node's, and what is in flight. A check can start there instead of at the beginning: from
/// the live state of a running system, or from where a counterexample has led.
///
/// Fault budgets are not part of it: they count from there on. Neither is a partition: in a saved state the network is
/// whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedState {
    format: String,
    version: u32,
    /// The system whose state it is.
    pub system: String,
    /// The nodes, in the order of their ids.
    pub nodes: Vec<SavedNode>,
    /// What is on its way, on each link the oldest first.
    #[serde(default)]
    pub in_flight: Vec<SavedMessage>,
}

/// A node of a [`SavedState`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedNode {
    /// Its name, for whoever reads it.
    #[serde(default)]
    pub name: String,
    /// Its state, while it is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
    /// What is on its disk, while it is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable: Option<Value>,
    /// The timers that are set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<SavedTimer>,
    /// How often each timer with a budget has run out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ran_out: Vec<(SavedTimer, u32)>,
    /// How many calls of its workload have been made.
    #[serde(default)]
    pub called: u32,
    /// How many of them have been answered.
    #[serde(default)]
    pub answered: u32,
}

/// A timer of a [`SavedNode`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SavedTimer {
    /// One that is alone of its name.
    Named(String),
    /// One of many.
    Numbered(String, u64),
}

/// A message of a [`SavedState`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedMessage {
    /// The id of the node that has sent it.
    pub from: usize,
    /// The id of the node that it goes to.
    pub to: usize,
    /// What it says.
    pub msg: Value,
}

/// A saved state that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StateError {
    /// The file cannot be read.
    #[error("cannot read the state {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not a saved state.
    #[error("{} is not a Dragnet state ({reason}); `check --save-state` writes one", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file cannot be written.
    #[error("cannot write the state {}: {source}; name another file with --save-state", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It does not fit the system.
    #[error("the state does not fit {system}: {reason}")]
    Unfit {
        /// The system at hand.
        system: String,
        /// What does not fit.
        reason: String,
    },
}

impl SavedState {
    /// A state of `system`.
    pub fn new(system: String, nodes: Vec<SavedNode>, in_flight: Vec<SavedMessage>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            system,
            nodes,
            in_flight,
        }
    }

    /// Reads a state from a file.
    pub fn read(path: &Path) -> Result<Self, StateError> {
        let text = fs::read_to_string(path).map_err(|source| StateError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let malformed = |reason| StateError::Malformed {
            path: path.to_owned(),
            reason,
        };
        let state: Self =
            serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        if state.format != FORMAT {
            return Err(malformed(format!("its format is `{}`", state.format)));
        }
        if state.version != VERSION {
            let reason = format!("its version is {}, this is {VERSION}", state.version);
            return Err(malformed(reason));
        }
        Ok(state)
    }

    /// Writes the state to a file, whole or not at all: what was there before stays until the new one is complete.
    pub fn write(&self, path: &Path) -> Result<(), StateError> {
        whole::write(path, self).map_err(|source| StateError::Unwritable {
            path: path.to_owned(),
            source,
        })
    }
}
