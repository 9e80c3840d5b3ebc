//! The driver of `noraft`, compiled once for each release.

use std::fmt::{self, Debug};
use std::hash::Hash;
use std::time::Duration;

use dragnet::nodes::{ByDebug, Digest, DigestOf, Digested, Network, Snapshot};
use dragnet::trace::StableHasher;
use dragnet::{Check, Cluster, Context, Node, NodeId, Timer};

use super::noraft::{
    self, Action, ClusterConfig, Log, LogEntries, LogEntry, LogIndex, LogPosition, NodeGeneration,
    Role, Term,
};
use crate::noraft::Bounds;

/// What runs out on a leader: it shows its followers that it is there.
const HEARTBEAT: Timer = Timer::new("heartbeat");
const BEAT: Duration = Duration::from_millis(100);

/// What runs out on everybody else: it stands for election.
const ELECTION: Timer = Timer::new("election");
const PATIENCE: Duration = Duration::from_millis(1_000);

/// The cluster within these bounds, and what must hold in it.
pub(crate) fn check(bounds: &Bounds) -> Check<Cluster<Raft>> {
    let &Bounds { nodes, terms, .. } = bounds;
    Check::new(cluster(bounds))
        .within(format!("terms up to {terms}"), move |s| {
            s.nodes()
                .all(|replica| replica.raft.current_term().get() <= terms)
        })
        .always("no committed entry is ever overwritten", move |s| {
            replicas(s, nodes).all(|one| {
                one.has_what_it_committed() && replicas(s, nodes).all(|two| one.agrees_with(two))
            })
        })
        .always("no term has two leaders at once", |s| {
            s.pairs()
                .all(|(one, two)| !one.leads_the_term_of(two) || !two.leads_the_term_of(one))
        })
        .always("logs that share an entry share all before it", |s| {
            s.pairs().all(|(one, two)| one.matches(two))
        })
        .reachable("a command is committed", |s| {
            s.nodes().any(|replica| replica.has_committed_a_command())
        })
}

fn cluster(bounds: &Bounds) -> Cluster<Raft> {
    // The crate allows messages to overtake each other, and to be discarded when a link is busy.
    let network = match bounds.capacity {
        0 => Network::unordered(),
        capacity => Network::unordered().capacity(capacity),
    };
    let cluster = Cluster::new(bounds.nodes, |_| Raft)
        .network(network)
        .timer_budget(ELECTION, bounds.elections)
        .timer_budget(HEARTBEAT, bounds.heartbeats);
    (0..bounds.proposers).fold(cluster, |cluster, node| {
        cluster.calls(node, vec![Msg::Propose; bounds.commands])
    })
}

/// What the replicas know, also those that are down.
fn replicas<'a>(s: Snapshot<'a, Raft>, nodes: usize) -> impl Iterator<Item = &'a Replica> {
    (0..nodes).filter_map(move |id| Some(&**s.node(id).or_else(|| s.durable(id))?))
}

/// A node of the cluster. Node 0 creates it, with all others as voters.
pub(crate) struct Raft;

/// What nodes say to each other, and what the application asks of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Msg {
    /// A message of the crate.
    Raft(noraft::Message),
    /// Propose a command.
    Propose,
}

/// A node of the crate, what it had its driver save, and what it has ever said to be committed.
#[derive(Clone)]
pub(crate) struct Replica {
    raft: noraft::Node,
    disk: Disk,
    /// The term of each entry that was committed here, which with its index names it: a term has one leader, and a
    /// leader proposes one entry at an index.
    committed: Vec<Term>,
}

/// What survives a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Disk {
    term: Term,
    voted_for: Option<noraft::NodeId>,
    log: LogEntries,
}

impl Node for Raft {
    type State = Digested<Replica>;
    type Msg = Msg;

    fn on_start(&self, cx: &mut Context<Msg>) -> Self::State {
        let mut replica = Replica::new(id(cx.me()));
        if cx.me() == NodeId(0) {
            let voters: Vec<_> = (0..cx.nodes()).map(|node| id(NodeId(node))).collect();
            replica.raft.create_cluster(&voters);
        }
        replica.act(cx);
        replica.into()
    }

    fn on_message(
        &self,
        replica: &mut Self::State,
        _from: NodeId,
        msg: Msg,
        cx: &mut Context<Msg>,
    ) {
        if let Msg::Raft(message) = msg {
            replica.raft.handle_message(&message);
            replica.act(cx);
        }
    }

    fn on_timer(&self, replica: &mut Self::State, _timer: Timer, cx: &mut Context<Msg>) {
        replica.raft.handle_election_timeout();
        replica.act(cx);
    }

    fn on_call(&self, replica: &mut Self::State, _propose: Msg, cx: &mut Context<Msg>) {
        replica.raft.propose_command();
        replica.act(cx);
    }

    fn durable(&self, replica: &Self::State) -> Option<Self::State> {
        Some(replica.restarted().into())
    }

    fn on_recover(&self, replica: &mut Self::State, cx: &mut Context<Msg>) {
        replica.act(cx);
    }
}

impl Replica {
    fn new(id: noraft::NodeId) -> Self {
        Self {
            raft: noraft::Node::start(id),
            disk: Disk {
                term: Term::ZERO,
                voted_for: None,
                log: LogEntries::new(LogPosition::ZERO),
            },
            committed: Vec::new(),
        }
    }

    /// The replica after a crash. The crate wants a generation that it has not had before.
    fn restarted(&self) -> Self {
        let generation = NodeGeneration::new(self.raft.generation().get() + 1);
        let Disk {
            term,
            voted_for,
            ref log,
        } = self.disk;
        let log = Log::new(ClusterConfig::new(), log.clone());
        Self {
            raft: noraft::Node::restart(self.raft.id(), generation, term, voted_for, log),
            disk: self.disk.clone(),
            committed: self.committed.clone(),
        }
    }

    /// Does what the crate wants done. Messages leave when the handler is through, after everything is saved.
    fn act(&mut self, cx: &mut Context<Msg>) {
        while let Some(action) = self.raft.actions_mut().next() {
            match action {
                Action::SetElectionTimeout => match self.raft.role() {
                    Role::Leader => {
                        cx.cancel_timer(ELECTION);
                        cx.set_timer(HEARTBEAT, BEAT);
                    }
                    Role::Candidate | Role::Follower => {
                        cx.cancel_timer(HEARTBEAT);
                        cx.set_timer(ELECTION, PATIENCE);
                    }
                },
                Action::SaveCurrentTerm => self.disk.term = self.raft.current_term(),
                Action::SaveVotedFor => self.disk.voted_for = self.raft.voted_for(),
                Action::AppendLogEntries(entries) => {
                    let log = &mut self.disk.log;
                    log.truncate(entries.prev_position().index.get() as usize);
                    log.extend(entries.iter());
                }
                Action::BroadcastMessage(message) => {
                    for peer in self.raft.peers() {
                        cx.send(peer.get() as usize, Msg::Raft(message.clone()));
                    }
                }
                Action::SendMessage(to, message) => {
                    cx.send(to.get() as usize, Msg::Raft(message));
                }
                Action::InstallSnapshot(_) => unreachable!("nobody takes snapshots"),
            }
        }
        let news = self.committed.len() as u64 + 1..=self.raft.commit_index().get();
        self.committed.extend(news.map(|index| {
            let term = self.raft.log().entries().get_term(LogIndex::new(index));
            term.expect("what is committed is in the log")
        }));
    }

    /// Each entry that was committed here, by its place.
    fn committed(&self) -> impl Iterator<Item = LogPosition> {
        let terms = self.committed.iter().copied();
        terms.zip(1..).map(|(term, index)| LogPosition {
            term,
            index: LogIndex::new(index),
        })
    }

    fn has_what_it_committed(&self) -> bool {
        self.committed()
            .all(|position| self.raft.log().entries().contains(position))
    }

    fn agrees_with(&self, other: &Self) -> bool {
        self.committed
            .iter()
            .zip(&other.committed)
            .all(|(one, two)| one == two)
    }

    fn leads_the_term_of(&self, other: &Self) -> bool {
        self.raft.role().is_leader() && self.raft.current_term() == other.raft.current_term()
    }

    /// Once two logs differ, they never agree again.
    fn matches(&self, other: &Self) -> bool {
        let [one, two] = [self, other].map(|replica| replica.raft.log().entries());
        let shared = one.last_position().index.min(two.last_position().index);
        let same = |&index: &LogIndex| one.get_term(index) == two.get_term(index);
        let places = (1..=shared.get()).map(LogIndex::new);
        !places.skip_while(same).any(|index| same(&index))
    }

    fn has_committed_a_command(&self) -> bool {
        let log = self.raft.log().entries();
        self.committed()
            .any(|entry| log.get_entry(entry.index) == Some(LogEntry::Command))
    }
}

impl Digest for Replica {
    /// The crate keeps votes and followers to itself, but prints all that it has, in order.
    fn digest(&self, into: &mut StableHasher) {
        ByDebug::digest(&self.raft, into);
        self.disk.hash(into);
        self.committed.hash(into);
    }
}

impl Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let log: Vec<LogEntry> = self.raft.log().entries().iter().collect();
        f.debug_struct("Replica")
            .field("role", &self.raft.role())
            .field("term", &self.raft.current_term())
            .field("voted_for", &self.raft.voted_for())
            .field("log", &log)
            .field("committed", &self.committed)
            .finish()
    }
}

/// A node under the name that the crate has for it.
fn id(node: NodeId) -> noraft::NodeId {
    noraft::NodeId::new(node.0 as u64)
}
