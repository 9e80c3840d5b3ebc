//! How messages travel.

use std::fmt::{self, Display};
use std::sync::Arc;

/// How messages travel between nodes: in any order, as over UDP, or in order on each link, as over TCP.
///
/// ```
/// use dragnet::nodes::Network;
///
/// #[derive(Clone, Debug, PartialEq, Eq, Hash)]
/// enum Msg { Heartbeat, Write(u8) }
///
/// let udp = Network::<Msg>::unordered();
/// let tcp = Network::<Msg>::ordered().capacity(4);
/// let lean = Network::unordered().capacity_of("heartbeats", 1, |msg| matches!(msg, Msg::Heartbeat));
/// assert_eq!(lean.to_string(), "unordered network, at most 1 of heartbeats a link");
/// ```
pub struct Network<M> {
    pub(super) order: Order,
    pub(super) capacity: Option<usize>,
    pub(super) classes: Vec<Class<M>>,
    /// What both ends of a link receive that was cut and is back.
    pub(super) reconnects_with: Option<M>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Any,
    PerLink,
}

/// Messages that share a capacity of their own on each link.
pub(super) struct Class<M> {
    name: String,
    pub(super) capacity: usize,
    pub(super) holds: Arc<dyn Fn(&M) -> bool + Send + Sync>,
}

impl<M> Clone for Class<M> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            capacity: self.capacity,
            holds: Arc::clone(&self.holds),
        }
    }
}

impl<M> Network<M> {
    /// Messages overtake each other freely.
    pub fn unordered() -> Self {
        Self::with_order(Order::Any)
    }

    /// Messages from one node to another arrive in the order in which they were sent.
    ///
    /// Only the oldest message of a link can be delivered, lost or duplicated; a crash loses what is on its way to the
    /// node.
    pub fn ordered() -> Self {
        Self::with_order(Order::PerLink)
    }

    fn with_order(order: Order) -> Self {
        Self {
            order,
            capacity: None,
            classes: Vec::new(),
            reconnects_with: None,
        }
    }

    /// At most `messages` are in flight from one node to another; what is sent on a full link is lost.
    pub fn capacity(mut self, messages: usize) -> Self {
        self.capacity = Some(messages);
        self
    }

    /// At most `messages` of those that `which` picks are in flight from one node to another; one more is lost.
    ///
    /// This is how a periodic message keeps its space finite. A network has at most 64 capacities, that of
    /// [`capacity`](Self::capacity) included.
    pub fn capacity_of(
        mut self,
        name: impl Into<String>,
        messages: usize,
        which: impl Fn(&M) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.classes.push(Class {
            name: name.into(),
            capacity: messages,
            holds: Arc::new(which),
        });
        self
    }

    /// When a partition heals, each end of each link that it had cut receives `notice` from the other, before anything
    /// that is sent there later on an ordered network: as from a transport that says that a connection has been made
    /// again, and that what was on its way is lost.
    ///
    /// ```
    /// use dragnet::nodes::Network;
    /// use dragnet::{Check, Cluster, Context, Node, NodeId, partitions};
    ///
    /// struct Peer;
    ///
    /// impl Node for Peer {
    ///     type State = bool;
    ///     type Msg = &'static str;
    ///
    ///     fn on_start(&self, _: &mut Context<&'static str>) -> bool { false }
    ///
    ///     fn on_message(&self, back: &mut bool, _: NodeId, _: &'static str, _: &mut Context<&'static str>) {
    ///         *back = true;
    ///     }
    /// }
    ///
    /// let links = Network::ordered().reconnects_with("you are back");
    /// Check::new(Cluster::new(2, |_| Peer).network(links).faults(partitions(1)))
    ///     .reachable("both know", |s| s.nodes().all(|back| *back))
    ///     .run()
    ///     .assert_holds();
    /// ```
    pub fn reconnects_with(mut self, notice: M) -> Self {
        self.reconnects_with = Some(notice);
        self
    }

    pub(super) fn is_limited(&self) -> bool {
        self.capacities() > 0
    }

    /// How many capacities a link has: its own, and those of classes of messages.
    pub(super) fn capacities(&self) -> usize {
        self.classes.len() + usize::from(self.capacity.is_some())
    }
}

impl<M: Clone> Clone for Network<M> {
    fn clone(&self) -> Self {
        Self {
            order: self.order,
            capacity: self.capacity,
            classes: self.classes.clone(),
            reconnects_with: self.reconnects_with.clone(),
        }
    }
}

impl<M> Display for Network<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.order {
            Order::Any => "unordered network",
            Order::PerLink => "ordered network",
        })?;
        if let Some(capacity) = self.capacity {
            let messages = if capacity == 1 { "message" } else { "messages" };
            write!(f, ", at most {capacity} {messages} a link")?;
        }
        for class in &self.classes {
            write!(f, ", at most {} of {} a link", class.capacity, class.name)?;
        }
        Ok(())
    }
}

impl<M> fmt::Debug for Network<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}
