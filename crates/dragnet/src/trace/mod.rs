//! What an execution is made of: fingerprints of its states, steps as a person reads them, and traces that replay.

mod change;
mod file;
mod fingerprint;
mod state;
mod step;
mod whole;

pub use file::{Trace, TraceError, TraceStep};
pub use fingerprint::{Fingerprint, Key, StableHasher};
pub(crate) use fingerprint::{GOLDEN, bind, finish, scatter};
pub use state::{SavedMessage, SavedNode, SavedState, SavedTimer, StateError};
pub use step::{Effect, Exchange, Step};
