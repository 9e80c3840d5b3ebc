//! What an execution is made of: fingerprints of its states, steps as a person reads them, and traces that replay.

mod change;
mod file;
mod fingerprint;
mod print;
mod state;
mod step;
mod whole;

pub(crate) use change::shorten_apart;
pub use file::{Trace, TraceError, TraceStep};
pub use fingerprint::{Fingerprint, Key, StableHasher};
pub(crate) use fingerprint::{GOLDEN, bind, finish, scatter};
pub(crate) use print::{debug, short_type_name};
pub use state::{SavedMessage, SavedNode, SavedState, SavedTimer, StateError};
pub use step::Step;
