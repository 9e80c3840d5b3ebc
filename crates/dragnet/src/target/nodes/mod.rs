//! Event-handler nodes, the network between them, and what can go wrong.

mod canonical;
mod cell;
mod cluster;
mod context;
mod digested;
mod either;
mod environment;
mod explain;
mod faults;
mod guard;
mod handlers;
mod inbox;
mod interned;
mod layer;
mod local;
mod network;
mod node;
mod opaque;
mod outcome;
mod parts;
#[cfg(test)]
mod reference;
mod row;
mod run;
mod saved;
mod snapshot;
mod steps;
mod system;
mod view;

pub use canonical::BySerde;
pub use cluster::Cluster;
pub use context::Context;
pub use digested::{ByDebug, Digest, DigestOf, Digested, Own};
pub use either::{Either, Role};
pub(crate) use faults::FaultKind;
pub use faults::{Faults, FaultsError, crashes, drops, duplicates, partitions, resets, restarts};
pub use network::Network;
pub use node::{Node, NodeId, Timer, others};
pub use opaque::{Opaque, OpaqueNode, Past};
pub use row::Row;
pub use snapshot::{InFlight, Snapshot};
pub use steps::NodeEvent;
pub use system::Nodes;
pub use view::NodeView;
pub(crate) use view::{Classes, for_each, for_pairs, for_some, on_local};
