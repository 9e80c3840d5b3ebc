//! Dragnet is a model checker for real distributed and concurrent programs.
//!
//! It runs the program's own code, takes every source of nondeterminism into its hands (message order, loss and
//! duplication, crashes, timers, `choose`), walks the executions systematically, and says one of three things: a
//! property is violated, and here is a short execution that replays; it holds in the whole space; or the space was too
//! large, and here is how far the search came.
//!
//! A [`Node`] is a struct with handlers, a [`Cluster`] is nodes with a network, a [`Check`] says what must be true:
//!
//! ```
//! use dragnet::{Check, Cluster, Context, Node, NodeId, crashes, others};
//!
//! /// Keeps what it is told to append once both others have it too.
//! struct Replica { peers: Vec<NodeId> }
//!
//! #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
//! struct Log { entries: Vec<&'static str>, acks: usize, committed: usize }
//!
//! #[derive(Clone, Debug, PartialEq, Eq, Hash)]
//! enum Msg { Append(&'static str), Appended }
//!
//! impl Node for Replica {
//!     type State = Log;
//!     type Msg = Msg;
//!
//!     fn on_start(&self, _cx: &mut Context<Msg>) -> Log {
//!         Log::default()
//!     }
//!
//!     fn on_call(&self, log: &mut Log, call: Msg, cx: &mut Context<Msg>) {
//!         if let Msg::Append(entry) = call {
//!             log.entries.push(entry);
//!             for &peer in &self.peers {
//!                 cx.send(peer, Msg::Append(entry));
//!             }
//!         }
//!     }
//!
//!     fn on_message(&self, log: &mut Log, from: NodeId, msg: Msg, cx: &mut Context<Msg>) {
//!         match msg {
//!             Msg::Append(entry) => {
//!                 log.entries.push(entry);
//!                 cx.send(from, Msg::Appended);
//!             }
//!             Msg::Appended => {
//!                 log.acks += 1;
//!                 log.committed = log.acks / self.peers.len();
//!             }
//!         }
//!     }
//! }
//!
//! Check::new(Cluster::new(3, |id| Replica { peers: others(id, 3) }).calls(0, [Msg::Append("a")]))
//!     .always("what is committed is everywhere", |s| {
//!         s.nodes().all(|log| log.committed == 0 || s.nodes().all(|other| other.entries == log.entries))
//!     })
//!     .reachable("commits", |s| s.nodes().any(|log| log.committed > 0))
//!     .run()
//!     .assert_holds();
//! ```
//!
//! Data flows one way: a *target* ([`System`]) is walked by an *explorer*, each step judged by *properties*, and what
//! comes out is a [`Verdict`].
//!
//! # Features
//!
//! `sterile` (Linux with glibc, x86_64 and aarch64): handlers that read the clock, build hash maps or draw random
//! numbers through `std` or the `getrandom` crates behave the same in every run and every process, with no change to
//! their source. The time begins anew in every run of a handler and moves when somebody looks; random numbers follow
//! from the node, its state and its input; hash maps get the same keys; and each run has a thread of its own, with
//! fresh thread-locals. Other threads keep the real clock and real random numbers.
//!
//! `threads`: [`Threads`], programs with threads. [`sync`], [`thread`](mod@thread), [`net`](mod@net),
//! [`time`](mod@time), [`hint`](mod@hint) and [`thread_local!`] are stand-ins for those of `std`. Under a check each
//! operation on them is a place where another thread may go on; everywhere else they do what the real ones do. Without the
//! feature they are the real ones, so a program can use them always. So can it use [`process`], [`future`], [`rand`],
//! [`choose`], [`cell`](mod@cell) and [`arc`](mod@arc), which `std` has nothing like.
//!
//! `rand_core`: the generator of [`rand`] is one for the crate `rand`.

pub mod catalog;
mod check;
mod coarse_hash;
mod driver;
pub mod engine;
mod explore;
pub mod future;
mod guarded;
mod named;
mod options;
mod panics;
#[cfg(not(feature = "threads"))]
mod plain;
pub mod process;
mod property;
mod quantity;
pub mod rand;
mod run;
mod signals;
mod step_guard;
mod sterile;
pub mod system;
mod tables;
mod target;
pub mod trace;
pub mod verdict;
mod weave;

pub use check::Check;
pub use engine::Engine;
pub use explore::{Control, Progress};
pub use options::Determinism;
#[cfg(not(feature = "threads"))]
pub use plain::{arc, cell, choose};
pub use run::Run;
#[cfg(not(feature = "threads"))]
pub use std::{hint, net, sync, thread, thread_local, time};
#[doc(hidden)]
pub use step_guard::{end_process, end_process_if_stopped_in_exit};
pub use system::{Failure, System};
pub use target::nodes::{
    Cluster, Context, Faults, Node, NodeId, Timer, crashes, drops, duplicates, others, partitions,
    resets, restarts,
};
#[cfg(feature = "threads")]
pub use target::threads::{Threads, arc, cell, choose, hint, net, sync, thread, time};
pub use verdict::{Outcome, Verdict};

/// Nodes and clusters: what is beside [`Node`] and [`Cluster`].
pub mod nodes {
    pub use crate::target::NodeWork;
    pub use crate::target::nodes::{
        ByDebug, BySerde, Cluster, Context, Digest, DigestOf, Digested, Either, Faults,
        FaultsError, InFlight, Network, Node, NodeEvent, NodeId, NodeView, Opaque, OpaqueNode, Own,
        Past, Role, Snapshot, Timer, crashes, drops, duplicates, others, partitions, resets,
        restarts,
    };
    #[doc(hidden)]
    pub use crate::target::nodes::{Nodes, Row};
}

/// Multithreaded programs: what is beside [`Threads`].
#[cfg(feature = "threads")]
pub mod threads {
    pub use crate::target::threads::{Moment, Moments, Threads, Turn};
}

/// What a crate needs that brings an engine of its own, or a kind of target.
pub mod extend {
    pub use crate::driver::{Checkable, Direct};
    pub use crate::explore::custom::{Arrival, Cursor, Explorer, Extent};
    pub use crate::target::{Setting, Target, TargetKind, Watch};
}
