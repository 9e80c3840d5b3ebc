//! Published crates as targets of Dragnet: code that nobody wrote for it, as it is on the registry.
//!
//! Each module is a driver as small as a user's would be: it hands the crate its inputs, sends what the crate wants sent,
//! keeps what the crate wants kept, and says what must hold. [`entries`] lists them all under the names that a command
//! line gives them.

use dragnet::catalog::Entry;

pub mod crdts;
pub mod foca;
pub mod noraft;
pub mod omnipaxos;
pub mod raft;

/// Every published crate that Dragnet has a driver for.
pub fn entries() -> Vec<Entry> {
    vec![
        omnipaxos::entry(),
        noraft::entry(),
        raft::entry(),
        foca::entry(),
        crdts::entry(),
    ]
}
