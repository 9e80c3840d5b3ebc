//! A cluster: the nodes, the network between them, what is asked of them and what may go wrong.

use std::any::type_name;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::faults::FaultKind;
use super::saved::{Codec, Departure};
use super::{Either, Faults, Network, Node, NodeId, Timer};

/// Nodes, the network between them, and what happens to them from outside.
///
/// ```
/// # use dragnet::{Context, Node, NodeId};
/// # struct Server;
/// # struct Client { server: NodeId }
/// # impl Node for Server {
/// #     type State = ();
/// #     type Msg = u8;
/// #     fn on_start(&self, _: &mut Context<u8>) {}
/// #     fn on_message(&self, _: &mut (), from: NodeId, msg: u8, cx: &mut Context<u8>) { cx.send(from, msg) }
/// # }
/// # impl Node for Client {
/// #     type State = Option<u8>;
/// #     type Msg = u8;
/// #     fn on_start(&self, _: &mut Context<u8>) -> Option<u8> { None }
/// #     fn on_message(&self, got: &mut Option<u8>, _: NodeId, msg: u8, cx: &mut Context<u8>) {
/// #         *got = Some(msg);
/// #         cx.answer(msg);
/// #     }
/// #     fn on_call(&self, _: &mut Option<u8>, call: u8, cx: &mut Context<u8>) { cx.send(self.server, call) }
/// # }
/// use dragnet::nodes::Network;
/// use dragnet::{Check, Cluster, duplicates};
///
/// // One echo server and two clients: roles mix freely as long as they speak the same messages.
/// let cluster = Cluster::new(1, |_| Server)
///     .and(2, |_| Client { server: NodeId(0) })
///     .network(Network::ordered())
///     .calls(1, [7])
///     .calls(2, [9]);
///
/// Check::new(cluster)
///     .always("an echo is what was said", |s| s.role::<Client, _>().all(|(_, got)| matches!(got, None | Some(7 | 9))))
///     .faults(duplicates(1))
///     .run()
///     .assert_holds();
/// ```
pub struct Cluster<N: Node> {
    pub(super) nodes: Vec<N>,
    pub(super) names: Vec<String>,
    pub(super) network: Network<N::Msg>,
    pub(crate) faults: Faults,
    pub(super) workloads: Vec<Workload<N::Msg>>,
    pub(super) timer_budgets: Vec<(Timer, u32)>,
    /// How its states and messages are written and read, if they can be.
    pub(super) codec: Option<Codec<N>>,
    pub(super) departure: Option<Departure<N>>,
}

/// What the application asks of one node.
#[derive(Clone)]
pub(super) struct Workload<M> {
    pub(super) calls: Vec<M>,
    pub(super) in_turn: bool,
}

impl<M> Workload<M> {
    fn nothing() -> Self {
        Self {
            calls: Vec::new(),
            in_turn: false,
        }
    }
}

impl<N: Node> Cluster<N> {
    /// `count` nodes of one kind on an unordered network, where nothing goes wrong and nobody asks for anything.
    pub fn new(count: usize, node: impl FnMut(NodeId) -> N) -> Self {
        let ids = (0..count).map(NodeId);
        Self {
            names: ids.clone().map(|id| role_name::<N>(id)).collect(),
            nodes: ids.map(node).collect(),
            network: Network::unordered(),
            faults: Faults::none(),
            workloads: (0..count).map(|_| Workload::nothing()).collect(),
            timer_budgets: Vec::new(),
            codec: None,
            departure: None,
        }
    }

    /// Adds `count` nodes of another kind that speaks the same messages; their ids follow those that are there.
    pub fn and<C>(self, count: usize, mut node: impl FnMut(NodeId) -> C) -> Cluster<Either<N, C>>
    where
        C: Node<Msg = N::Msg>,
    {
        let first = self.nodes.len();
        let added = (first..first + count).map(NodeId);
        Cluster {
            names: self
                .names
                .into_iter()
                .chain(added.clone().map(role_name::<C>))
                .collect(),
            nodes: self
                .nodes
                .into_iter()
                .map(Either::Left)
                .chain(added.map(|id| Either::Right(node(id))))
                .collect(),
            network: self.network,
            faults: self.faults,
            workloads: self
                .workloads
                .into_iter()
                .chain((0..count).map(|_| Workload::nothing()))
                .collect(),
            timer_budgets: self.timer_budgets,
            codec: None,
            departure: None,
        }
    }

    /// The same cluster with other nodes that speak the same messages: wrapped ones, say.
    pub fn map<M>(self, node: impl FnMut(N) -> M) -> Cluster<M>
    where
        M: Node<Msg = N::Msg>,
    {
        Cluster {
            nodes: self.nodes.into_iter().map(node).collect(),
            names: self.names,
            network: self.network,
            faults: self.faults,
            workloads: self.workloads,
            timer_budgets: self.timer_budgets,
            codec: None,
            departure: None,
        }
    }

    /// How messages travel. Unordered unless said otherwise.
    pub fn network(mut self, network: Network<N::Msg>) -> Self {
        self.network = network;
        self
    }

    /// The application calls `node` with each of `calls`, in this order, at any moment, whether or not the one before
    /// has been answered.
    ///
    /// # Panics
    /// When the cluster has no such node.
    #[track_caller]
    pub fn calls(self, node: impl Into<NodeId>, calls: impl IntoIterator<Item = N::Msg>) -> Self {
        self.workload(node.into(), calls, false)
    }

    /// As [`calls`](Cluster::calls), but each call is made only after the one before has been answered with
    /// [`Context::answer`](super::Context::answer), or its node has crashed.
    ///
    /// # Panics
    /// When the cluster has no such node.
    #[track_caller]
    pub fn calls_in_turn(
        self,
        node: impl Into<NodeId>,
        calls: impl IntoIterator<Item = N::Msg>,
    ) -> Self {
        self.workload(node.into(), calls, true)
    }

    #[track_caller]
    fn workload(
        mut self,
        node: NodeId,
        calls: impl IntoIterator<Item = N::Msg>,
        in_turn: bool,
    ) -> Self {
        let nodes = self.nodes.len();
        assert!(
            node.0 < nodes,
            "calls for {node}, but the cluster has only {nodes} nodes"
        );
        self.workloads[node.0] = Workload {
            calls: calls.into_iter().collect(),
            in_turn,
        };
        self
    }

    /// On each node, `timer` runs out at most `times` in one execution. This bounds the system: `holds` is then said of
    /// executions within the budget.
    pub fn timer_budget(mut self, timer: Timer, times: u32) -> Self {
        self.timer_budgets.retain(|(known, _)| *known != timer);
        self.timer_budgets.push((timer, times));
        self
    }

    /// What may go wrong. Nothing unless said otherwise; a second call adds to the first, and counts where both name the
    /// same kind.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = self.faults.and(faults);
        self
    }

    /// Has states of the cluster written to files and read from them, so that a check can start in one. Say it last: a
    /// cluster with other nodes has other states.
    ///
    /// ```
    /// use dragnet::catalog::AnyCheck;
    /// use dragnet::trace::SavedState;
    /// use dragnet::{Check, Cluster, Context, Node, NodeId};
    ///
    /// struct Counter;
    ///
    /// impl Node for Counter {
    ///     type State = u8;
    ///     type Msg = u8;
    ///
    ///     fn on_start(&self, cx: &mut Context<u8>) -> u8 { 0 }
    ///     fn on_message(&self, count: &mut u8, _: NodeId, more: u8, _: &mut Context<u8>) { *count += more }
    /// }
    ///
    /// let text = r#"{
    ///     "format": "dragnet-state", "version": 1, "system": "counters",
    ///     "nodes": [{ "state": 3 }, { "state": 0 }],
    ///     "in_flight": [{ "from": 1, "to": 0, "msg": 4 }]
    /// }"#;
    /// let state: SavedState = serde_json::from_str(text).unwrap();
    /// let verdict = Check::new(Cluster::new(2, |_| Counter).serializable())
    ///     .named("counters")
    ///     .always_for_each("nobody counts to seven", |node| node.state() != Some(&7))
    ///     .starting_from(&state)
    ///     .unwrap()
    ///     .run();
    /// assert_eq!(verdict.counterexample().unwrap().len(), 1);
    /// ```
    pub fn serializable(mut self) -> Self
    where
        N::State: Serialize + DeserializeOwned,
        N::Msg: Serialize + DeserializeOwned,
    {
        self.codec = Some(Codec::new());
        self
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes at all.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Why it cannot be explored as it is, if it cannot.
    pub(crate) fn objection(&self) -> Option<String> {
        let nodes = self.nodes.len();
        let capacities = self.network.capacities();
        if nodes > 64 {
            Some(format!(
                "a cluster has at most 64 nodes, and this one has {nodes}"
            ))
        } else if nodes > 16 && self.faults.budget(FaultKind::Partition) > 0 {
            Some(format!(
                "with partitions a cluster has at most 16 nodes, and this one has {nodes}"
            ))
        } else if capacities > 64 {
            Some(format!(
                "a network has at most 64 capacities, and this one has {capacities}"
            ))
        } else if self.faults.budget(FaultKind::Reset) > 0 {
            Some("a cluster has no connections that break; `drops` loses its messages".to_owned())
        } else {
            None
        }
    }

    /// What bounds the system, a phrase each: the `within` of a verdict.
    pub(crate) fn bounds(&self) -> Vec<String> {
        let mut bounds = vec![
            match self.nodes.len() {
                1 => "1 node".to_owned(),
                nodes => format!("{nodes} nodes"),
            },
            self.network.to_string(),
        ];
        let calls: usize = self.workloads.iter().map(|work| work.calls.len()).sum();
        if calls > 0 {
            bounds.push(if calls == 1 {
                "1 call".to_owned()
            } else {
                format!("{calls} calls")
            });
        }
        for (timer, times) in &self.timer_budgets {
            let times = if *times == 1 {
                "once".to_owned()
            } else {
                format!("{times} times")
            };
            bounds.push(format!("timer {timer} at most {times} a node"));
        }
        if self.departure.is_some() {
            bounds.push("from a given state".to_owned());
        }
        bounds.push(if self.faults.is_none() {
            "no faults".to_owned()
        } else {
            format!("faults {}", self.faults)
        });
        bounds
    }
}

/// The last part of a type's path, without its parameters: `dragnet_zoo::paxos::Replica` is a `Replica`. An
/// `Opaque<Replica>` is one too.
fn role_name<N>(id: NodeId) -> String {
    let path = type_name::<N>();
    let path = path
        .strip_prefix("dragnet::target::nodes::opaque::Opaque<")
        .unwrap_or(path);
    let path = path.split(['<', '>']).next().unwrap_or(path);
    format!("{} {}", path.rsplit("::").next().unwrap_or(path), id.0)
}
