//! The zoo with nodes that can be neither cloned nor compared: whatever kind their states are of, the same is seen.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use dragnet::engine::EngineName;
use dragnet::nodes::{Opaque, OpaqueNode, Past, Snapshot};
use dragnet::trace::StableHasher;
use dragnet::{Check, Cluster, Context, Node, NodeId, Outcome, Timer, crashes};
use dragnet_zoo::{
    one_paxos, paxos, primary_backup, rand_tree, ring_election, tree, two_phase_commit,
};

/// A node whose state is behind a veil: only its view comes out.
struct Veiled<N> {
    node: N,
    digests: bool,
}

/// Not `Clone`, not `Eq`, not `Hash`.
struct Behind<S>(S);

impl<N: Node> OpaqueNode for Veiled<N> {
    type State = Behind<N::State>;
    type Msg = N::Msg;
    type View = N::State;
    type Disk = N::State;

    fn on_start(&self, cx: &mut Context<N::Msg>) -> Behind<N::State> {
        Behind(self.node.on_start(cx))
    }

    fn on_message(
        &self,
        state: &mut Behind<N::State>,
        from: NodeId,
        msg: N::Msg,
        cx: &mut Context<N::Msg>,
    ) {
        self.node.on_message(&mut state.0, from, msg, cx);
    }

    fn on_timer(&self, state: &mut Behind<N::State>, timer: Timer, cx: &mut Context<N::Msg>) {
        self.node.on_timer(&mut state.0, timer, cx);
    }

    fn on_call(&self, state: &mut Behind<N::State>, call: N::Msg, cx: &mut Context<N::Msg>) {
        self.node.on_call(&mut state.0, call, cx);
    }

    fn view(&self, state: &mut Behind<N::State>) -> N::State {
        state.0.clone()
    }

    fn digest(&self, state: &mut Behind<N::State>, digest: &mut StableHasher) -> bool {
        state.0.hash(digest);
        self.digests
    }

    fn disk(&self, state: &mut Behind<N::State>) -> Option<N::State> {
        self.node.durable(&state.0)
    }

    fn on_recover(&self, mut disk: N::State, cx: &mut Context<N::Msg>) -> Behind<N::State> {
        self.node.on_recover(&mut disk, cx);
        Behind(disk)
    }
}

const REPLICA: paxos::Replica = paxos::Replica {
    learners: 2,
    mistake: None,
};

/// More steps than there are where there is an end.
const ALL: u64 = 1_000;

/// What there is to see: the states of the nodes that are up, for each global state once.
type Seen<S> = HashSet<Vec<Option<S>>>;

/// Everything that can be seen of a cluster within so many steps when every delivery is taken, and how many states it has.
fn seen<N, S>(
    cluster: Cluster<N>,
    engine: EngineName,
    depth: u64,
    see: impl Fn(&N::State) -> S + Send + Sync + 'static,
) -> (Seen<S>, u64)
where
    N: Node,
    S: Eq + Hash + Clone + Send + 'static,
{
    let seen = Arc::new(Mutex::new(Seen::new()));
    let sees = Arc::clone(&seen);
    let nodes = cluster.len();
    let look = move |s: Snapshot<'_, N>| {
        let view = (0..nodes).map(|node| s.node(node).map(&see)).collect();
        sees.lock().unwrap().insert(view);
        true
    };
    let verdict = Check::new(cluster)
        .engine(engine)
        .depth(depth)
        .always_with_messages("looked at", move |s, _| look(s))
        .run();
    assert!(!matches!(verdict.outcome, Outcome::Violated(_)));
    let seen = seen.lock().unwrap().clone();
    (seen, verdict.statistics.states)
}

fn compare<N: Node>(depth: u64, make: impl Fn() -> Cluster<N>) {
    let veil = |digests| move |node| Opaque::new(Veiled { node, digests });
    let (hashed, states) = seen(make(), EngineName::Breadth, depth, Clone::clone);
    for engine in [EngineName::Breadth, EngineName::Depth] {
        let bare = |past: &Past<Veiled<N>>| (**past).clone();
        let (by_history, more) = seen(make().map(veil(false)), engine, depth, bare);
        assert_eq!(by_history, hashed);
        assert!(more >= states, "histories merge no more than states do");
        let (by_digest, same) = seen(make().map(veil(true)), engine, depth, bare);
        assert_eq!(by_digest, hashed);
        assert_eq!(same, states);
    }
}

#[test]
fn two_phase_commit_looks_the_same() {
    compare(ALL, || two_phase_commit::cluster(2, 2));
}

#[test]
fn a_tree_looks_the_same() {
    compare(ALL, || tree::cluster(false));
}

#[test]
fn a_ring_looks_the_same() {
    compare(ALL, || ring_election::cluster(4, false));
}

/// Heartbeats have no end, and no two histories are one.
#[test]
fn the_first_steps_of_primary_and_backup_look_the_same() {
    compare(7, || primary_backup::cluster(1, false));
}

#[test]
fn paxos_looks_the_same() {
    compare(ALL, || paxos::cluster(2, 1, 1, REPLICA));
}

#[test]
fn the_first_steps_of_paxos_with_two_proposers_look_the_same() {
    compare(7, || paxos::cluster(3, 2, 1, REPLICA));
}

#[test]
fn paxos_with_a_crash_looks_the_same() {
    compare(ALL, || paxos::cluster(2, 1, 1, REPLICA).faults(crashes(1)));
}

/// Its handlers choose.
#[test]
fn a_random_tree_with_a_crash_looks_the_same() {
    compare(ALL, || {
        rand_tree::cluster(4, 2, 0, false).faults(crashes(1))
    });
}

/// Its handlers run those of a layer below.
#[test]
fn the_first_steps_of_one_paxos_look_the_same() {
    compare(8, || {
        one_paxos::cluster(3, None).calls(2, [one_paxos::Msg::LeaderFailed])
    });
}

#[test]
fn a_bug_is_found_behind_the_veil_too() {
    for digests in [false, true] {
        let veil = |node| Opaque::new(Veiled { node, digests });
        let verdict = Check::new(ring_election::cluster(4, true).map(veil))
            .always("the leader has the highest id", |s| {
                s.nodes()
                    .all(|member| member.leader.is_none_or(|leader| leader == 4))
            })
            .run();
        let violation = verdict.violation().expect("the bug is there");
        assert_eq!(
            violation.counterexample.as_ref().unwrap().steps().count(),
            4
        );
    }
}
