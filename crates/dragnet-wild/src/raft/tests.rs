//! What is checked here besides the properties: that the digest holds all that decides what a replica does.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use dragnet::catalog::Selection;
use dragnet::engine::EngineName;
use dragnet::nodes::Past;
use dragnet::trace::Key;
use dragnet::{Node, Outcome, Verdict};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::*;

fn replica(nodes: usize) -> Replica {
    Replica {
        voters: (1..=nodes as u64).collect(),
        mistake: None,
    }
}

fn selected<'e>(entry: &'e Entry, set: &[(&str, &str)]) -> Selection<'e> {
    set.iter()
        .fold(Selection::of(entry), |selection, (name, value)| {
            selection
                .with(name, value)
                .expect("a value that the entry knows")
        })
}

fn verdict(selection: &Selection<'_>, entry: &Entry) -> Verdict {
    let check = entry
        .check(selection)
        .expect("a system that can be checked");
    check.run_under(&Default::default())
}

#[test]
fn one_term_is_safe_under_a_crash() {
    let entry = entry();
    verdict(
        &selected(&entry, &[("terms", "1"), ("heartbeats", "1")]),
        &entry,
    )
    .assert_holds();
}

#[test]
fn two_terms_are_safe_without_faults() {
    let entry = entry();
    let selection = selected(&entry, &[("proposals", "0"), ("campaigns", "2")]);
    verdict(&selection.with_faults(crashes(0)), &entry).assert_holds();
}

/// The property that a bug breaks, and in how few steps; the execution replays.
fn broken_by(bug: &str) -> (String, usize) {
    let entry = entry();
    let selection = selected(&entry, &[]).with_bug(bug).unwrap();
    let verdict = verdict(&selection, &entry);
    let violation = verdict.violation().expect("the bug shows");
    let counterexample = violation.counterexample.as_ref().unwrap();
    let again = entry.check(&selection).unwrap();
    let replay = again.replay(&counterexample.trace).unwrap();
    assert_eq!(replay.property, violation.property);
    (replay.property, counterexample.len())
}

#[test]
fn votes_that_are_sent_before_they_are_on_disk_elect_two_leaders() {
    let broken = broken_by("sends-before-persisting");
    assert_eq!(broken, ("election safety".to_owned(), 8));
}

#[test]
fn entries_that_are_acknowledged_and_not_on_disk_are_missed_by_the_next_leader() {
    let (property, _) = broken_by("keeps-only-committed");
    assert_eq!(property, "leader completeness");
}

/// Something that happens to a replica.
#[derive(Clone, Debug)]
enum Input {
    Packet(Vec<u8>),
    Timer,
    Propose(u8),
    Crash,
}

impl Replica {
    fn take(&self, id: NodeId, server: &mut Server, input: &Input) -> Vec<Message> {
        match input {
            Input::Packet(packet) => self.handle(server, |raft| raft.step(decode(packet))),
            Input::Propose(value) => self.handle(server, |raft| raft.propose(vec![], vec![*value])),
            Input::Timer => self.handle(server, |raft| {
                let leads = raft.raft.state == StateRole::Leader;
                for _ in 0..ticks(if leads { HEARTBEAT } else { ELECTION }) {
                    raft.tick();
                }
                Ok(())
            }),
            Input::Crash => {
                let disk = self.disk(server).expect("a disk");
                *server = self.open(id, disk);
                self.handle(server, |_| Ok(()))
            }
        }
    }

    /// A replica to which all this has happened.
    fn after(&self, id: NodeId, history: &[Input]) -> Server {
        let mut server = self.open(id, Record::default());
        self.handle(&mut server, |_| Ok(()));
        for input in history {
            self.take(id, &mut server, input);
        }
        server
    }

    /// What tells the state of a replica from others.
    fn identity(&self, server: &mut Server) -> (u128, View) {
        let mut digest = StableHasher::new(Key::default());
        assert!(self.digest(server, &mut digest));
        (digest.finish_128(), self.view(server))
    }
}

/// Three replicas to which things happen, with all that they ever sent: what was sent can arrive late, twice or never.
struct Run {
    replica: Replica,
    servers: Vec<Server>,
    histories: Vec<Vec<Input>>,
    sent: Vec<Message>,
}

impl Run {
    fn new() -> Self {
        let replica = replica(3);
        Self {
            servers: (0..3).map(|id| replica.after(NodeId(id), &[])).collect(),
            histories: vec![Vec::new(); 3],
            sent: Vec::new(),
            replica,
        }
    }

    /// Lets something happen, and says to whom.
    fn step(&mut self, (kind, pick): (u8, usize)) -> usize {
        let recent = self.sent.len().min(16);
        let (node, input) = match kind {
            0..3 => (pick % 3, Input::Timer),
            3..5 => (pick % 3, Input::Propose(kind)),
            5 => (pick % 3, Input::Crash),
            _ if recent == 0 => (pick % 3, Input::Timer),
            _ => {
                let message = &self.sent[self.sent.len() - 1 - pick % recent];
                let packet = message.write_to_bytes().unwrap();
                (message.to as usize - 1, Input::Packet(packet))
            }
        };
        let server = &mut self.servers[node];
        self.sent
            .extend(self.replica.take(NodeId(node), server, &input));
        self.histories[node].push(input);
        node
    }
}

/// Steps, messages more often than anything else.
fn steps(count: usize) -> impl Strategy<Value = Vec<(u8, usize)>> {
    proptest::collection::vec((0..40_u8, any::<usize>()), count)
}

fn cases(count: u32) -> TestRunner {
    let config = ProptestConfig {
        cases: count,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    TestRunner::new(config)
}

#[test]
fn states_with_one_digest_have_one_future() {
    let compared = Cell::new(0);
    let outcome = cases(100).run(&(steps(160), steps(12)), |(steps, future)| {
        let mut run = Run::new();
        let mut known: HashMap<_, Vec<Input>> = HashMap::new();
        for step in steps {
            let node = run.step(step);
            let id = NodeId(node);
            let identity = (node, run.replica.identity(&mut run.servers[node]));
            let history = &run.histories[node];
            let first = known.entry(identity).or_insert_with(|| history.clone());
            if first.len() == history.len() {
                continue;
            }
            compared.set(compared.get() + 1);
            let mut one = run.replica.after(id, first);
            let mut other = run.replica.after(id, history);
            let to_it: Vec<&Message> = run.sent.iter().filter(|m| m.to == id_of(id)).collect();
            for &(kind, pick) in &future {
                let input = match kind {
                    0..5 => Input::Timer,
                    5..8 => Input::Propose(kind),
                    8 => Input::Crash,
                    _ if to_it.is_empty() => Input::Timer,
                    _ => Input::Packet(to_it[pick % to_it.len()].write_to_bytes().unwrap()),
                };
                let sent = run.replica.take(id, &mut one, &input);
                prop_assert_eq!(sent, run.replica.take(id, &mut other, &input));
                let identity = run.replica.identity(&mut one);
                prop_assert_eq!(identity, run.replica.identity(&mut other));
            }
        }
        Ok(())
    });
    outcome.unwrap();
    assert!(compared.get() > 1_000, "only {} pairs", compared.get());
}

#[test]
fn what_the_digest_leaves_out_is_as_it_is_said_to_be() {
    let outcome = cases(200).run(&steps(160), |steps| {
        let mut run = Run::new();
        for step in steps {
            let node = run.step(step);
            let server = &run.servers[node];
            let record = server.record();
            prop_assert_eq!(&server.synced, &record);
            prop_assert!(!server.raft.has_ready());

            let raft = &server.raft.raft;
            prop_assert_eq!(raft.hard_state().term, record.term);
            prop_assert_eq!(raft.hard_state().vote, record.vote);
            prop_assert_eq!(raft.hard_state().commit, record.commit);
            prop_assert!(raft.msgs.is_empty() && raft.read_states.is_empty());
            prop_assert!(raft.lead_transferee.is_none() && raft.promotable());
            prop_assert_eq!(raft.pending_request_snapshot, 0);
            prop_assert_eq!(raft.pending_read_count(), 0);
            prop_assert_eq!(raft.uncommitted_size(), 0);
            if raft.state != StateRole::Leader {
                prop_assert_eq!(raft.election_elapsed, 0);
            }

            let log = &raft.raft_log;
            prop_assert!(log.unstable.entries.is_empty() && log.unstable.snapshot.is_none());
            prop_assert_eq!(log.unstable.entries_size, 0);
            prop_assert_eq!(log.unstable.offset, log.last_index() + 1);
            prop_assert_eq!(log.persisted, log.last_index());
            prop_assert_eq!(log.last_index(), record.log.len() as u64);
            prop_assert_eq!(log.applied, log.committed);
            prop_assert_eq!(log.applied, record.applied.len() as u64);

            for (_, peer) in raft.prs().iter() {
                prop_assert!(peer.state != ProgressState::Snapshot && !peer.ins.full());
                prop_assert_eq!(peer.pending_snapshot, 0);
                prop_assert_eq!(peer.pending_request_snapshot, 0);
                prop_assert_eq!(peer.commit_group_id, 0);
            }
        }
        Ok(())
    });
    outcome.unwrap();
}

/// A replica that is told from others by all that happened to it.
struct ByHistory(Replica);

impl OpaqueNode for ByHistory {
    type State = Server;
    type Msg = Msg;
    type View = View;
    type Disk = Record;

    fn on_start(&self, cx: &mut Context<Msg>) -> Server {
        self.0.on_start(cx)
    }

    fn on_message(&self, server: &mut Server, from: NodeId, msg: Msg, cx: &mut Context<Msg>) {
        self.0.on_message(server, from, msg, cx);
    }

    fn on_timer(&self, server: &mut Server, timer: Timer, cx: &mut Context<Msg>) {
        self.0.on_timer(server, timer, cx);
    }

    fn on_call(&self, server: &mut Server, call: Msg, cx: &mut Context<Msg>) {
        self.0.on_call(server, call, cx);
    }

    fn view(&self, server: &mut Server) -> View {
        self.0.view(server)
    }

    fn disk(&self, server: &mut Server) -> Option<Record> {
        self.0.disk(server)
    }

    fn on_recover(&self, disk: Record, cx: &mut Context<Msg>) -> Server {
        self.0.on_recover(disk, cx)
    }
}

/// What can be seen of a cluster within so many steps when every delivery is taken, and how many states it has.
fn seen<N>(cluster: Cluster<Opaque<N>>, depth: u64) -> (HashSet<Vec<Option<View>>>, u64)
where
    N: OpaqueNode<Msg = Msg, View = View>,
    Opaque<N>: Node<State = Past<N>, Msg = Msg>,
{
    let seen = Arc::new(Mutex::new(HashSet::new()));
    let sees = Arc::clone(&seen);
    let nodes = cluster.len();
    let verdict = Check::new(cluster)
        .engine(EngineName::Breadth)
        .depth(depth)
        .always_with_messages("looked at", move |s, _| {
            let views = (0..nodes).map(|id| s.node(id).map(|past| View::clone(past)));
            sees.lock().unwrap().insert(views.collect());
            true
        })
        .run();
    assert!(!matches!(verdict.outcome, Outcome::Violated(_)));
    let seen = seen.lock().unwrap().clone();
    (seen, verdict.statistics.states)
}

fn compare(depth: u64, cluster: impl Fn() -> Cluster<Opaque<Replica>>) {
    let nodes = cluster().len();
    let (by_digest, states) = seen(cluster(), depth);
    let by_history = cluster().map(|_| Opaque::new(ByHistory(replica(nodes))));
    let (by_history, more) = seen(by_history, depth);
    assert_eq!(by_digest, by_history);
    assert!(more > states, "histories tell more states apart");
}

#[test]
fn all_of_two_replicas_looks_the_same_by_digest_and_by_history() {
    compare(1_000, || {
        cluster(replica(2), 1)
            .network(Network::ordered())
            .timer_budget(ELECTION, 1)
            .timer_budget(HEARTBEAT, 1)
            .faults(crashes(1))
    });
}

#[test]
fn the_first_steps_of_three_replicas_look_the_same_by_digest_and_by_history() {
    compare(7, || {
        cluster(replica(3), 1)
            .timer_budget(HEARTBEAT, 1)
            .faults(crashes(1))
    });
}
