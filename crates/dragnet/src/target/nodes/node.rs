//! The handler API: what a user writes.

use std::fmt::{self, Debug, Display};
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use super::Context;
use crate::trace::debug;

/// The code of one node: a struct with the node's configuration and a handler for each thing that can happen to it.
///
/// A handler changes the node's state through `&mut`, and acts on the world through its [`Context`]. It must be
/// deterministic: everything that it does follows from the state, the input and what [`Context::choose`] returned, so
/// no clock, no random numbers, no shared statics. (The feature `sterile` takes clock and random numbers into Dragnet's
/// hands, for code that reads them all the same.) Only [`on_start`](Node::on_start) and
/// [`on_message`](Node::on_message) must be written.
///
/// ```
/// use dragnet::{Check, Cluster, Context, Node, NodeId};
///
/// /// Node 0 sends a token round the ring; everybody counts how often it came by.
/// struct Ring { next: NodeId }
///
/// impl Node for Ring {
///     type State = u8;
///     type Msg = u8;
///
///     fn on_start(&self, cx: &mut Context<u8>) -> u8 {
///         if cx.me() == NodeId(0) {
///             cx.send(self.next, 1);
///         }
///         0
///     }
///
///     fn on_message(&self, seen: &mut u8, _from: NodeId, hops: u8, cx: &mut Context<u8>) {
///         *seen += 1;
///         if hops < 6 {
///             cx.send(self.next, hops + 1);
///         }
///     }
/// }
///
/// Check::new(Cluster::new(3, |id| Ring { next: NodeId((id.0 + 1) % 3) }))
///     .always("nobody sees it three times", |s| s.nodes().all(|&seen| seen < 3))
///     .reachable("all see it twice", |s| s.nodes().all(|&seen| seen == 2))
///     .run()
///     .assert_holds();
/// ```
pub trait Node: Send + Sync + 'static {
    /// What a node remembers. Dragnet interns it, and shows with `Debug` what a step changed.
    type State: Clone + Eq + Hash + Debug + Send + Sync + 'static;

    /// What nodes say to each other, and what the workload asks of them.
    type Msg: Clone + Eq + Hash + Debug + Send + Sync + 'static;

    /// The state in which the node begins; it may send and set timers.
    fn on_start(&self, cx: &mut Context<Self::Msg>) -> Self::State;

    /// A message has arrived.
    fn on_message(
        &self,
        state: &mut Self::State,
        from: NodeId,
        msg: Self::Msg,
        cx: &mut Context<Self::Msg>,
    );

    /// A timer has run out. It is no longer set; a periodic one is set again here.
    fn on_timer(&self, _state: &mut Self::State, timer: Timer, _cx: &mut Context<Self::Msg>) {
        panic!("the timer {timer} ran out, and this node has no `on_timer`");
    }

    /// The application asks for something: the next call of the node's workload.
    fn on_call(&self, _state: &mut Self::State, call: Self::Msg, _cx: &mut Context<Self::Msg>) {
        let call = debug(&call);
        panic!("{call} was called, and this node has no `on_call`");
    }

    /// Whether a node that is up waits for something besides answers to its calls: when nothing can happen any more, a
    /// node that waits is a deadlock, and one that does not is done.
    fn waiting(&self, _state: &Self::State) -> bool {
        false
    }

    /// What of `state` is on disk, and so survives a crash: a state whose volatile parts are as after a fresh start.
    ///
    /// `None`, the default, means that nothing survives; the node then begins again with [`on_start`](Node::on_start).
    fn durable(&self, _state: &Self::State) -> Option<Self::State> {
        None
    }

    /// The node restarts and finds on disk what [`durable`](Node::durable) kept.
    fn on_recover(&self, _state: &mut Self::State, _cx: &mut Context<Self::Msg>) {}

    /// Whether a state that was read from a file is of this node's kind.
    #[doc(hidden)]
    fn recognises(&self, _state: &Self::State) -> bool {
        true
    }
}

/// A node of a cluster: its index, from zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub usize);

impl From<usize> for NodeId {
    fn from(index: usize) -> Self {
        Self(index)
    }
}

impl Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

impl Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

/// Every node of a cluster of `nodes` but `me`.
///
/// ```
/// use dragnet::{NodeId, others};
///
/// assert_eq!(others(NodeId(1), 3), [NodeId(0), NodeId(2)]);
/// ```
pub fn others(me: NodeId, nodes: usize) -> Vec<NodeId> {
    (0..nodes).map(NodeId).filter(|&id| id != me).collect()
}

/// A timer of a node, known by its name and, where a node has many of a kind, a number.
///
/// A checker has no clock: a timer that is set can run out at any moment, before or after anything else.
///
/// ```
/// use dragnet::Timer;
///
/// const HEARTBEAT: Timer = Timer::new("heartbeat");
/// assert_eq!(HEARTBEAT.to_string(), "heartbeat");
/// assert_eq!(Timer::numbered("retry", 3).to_string(), "retry 3");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timer {
    name: &'static str,
    number: Option<u64>,
}

impl Timer {
    /// The timer called `name`.
    pub const fn new(name: &'static str) -> Self {
        Self { name, number: None }
    }

    /// One of many timers called `name`.
    pub const fn numbered(name: &'static str, number: u64) -> Self {
        Self {
            name,
            number: Some(number),
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Its number, if it has one.
    pub const fn number(self) -> Option<u64> {
        self.number
    }
}

impl Display for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            None => f.write_str(self.name),
            Some(number) => write!(f, "{} {number}", self.name),
        }
    }
}

impl Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}
