//! `raft` 0.7, TiKV's library, as it is on the registry: leader election and log replication.
//!
//! A [`Replica`] is what a user of the library writes around a `RawNode`. It ticks the node whenever a timer runs out,
//! steps every message into it, proposes what it is called with, and then does what the node's `Ready` asks for, in the
//! order that the library demands: entries and hard state are on disk before the messages go out that depend on them
//! (`persisted_messages`), and committed entries are applied in order. Log, hard state and what was applied survive a
//! crash; a restarted replica opens a new `RawNode` on them.
//!
//! The random election time-out is fixed, to two ticks of the clock, the least that the library takes. A timer of Dragnet
//! runs out at any moment, so every replica can still be the first to campaign, and ticks that only count need no step of
//! their own: when the timer of a leader runs out, the clock ticks once, and heartbeats go out; when that of another
//! replica does, it ticks twice, and the replica campaigns.
//!
//! # What is bounded
//!
//! `nodes` replicas get `proposals` proposals, in turn and at any moment; one that finds no leader is dropped. Nobody goes
//! beyond the term `terms`, nobody campaigns more than `campaigns` times, and nobody sends heartbeats more than
//! `heartbeats` times. Links deliver in order, as TCP does, or in any order (`network`). A handler does all that a `Ready`
//! asks for at once: no crash comes between a write and the messages that follow, nor between the messages that a leader
//! may send early and its own write.
//!
//! # What tells states apart
//!
//! A `RawNode` can be neither cloned nor compared, so a replica is an opaque node with a digest. Its [`View`] is part of
//! what tells two states apart, and shows role, leader, term, vote, commit index and log. The digest adds what else
//! decides what a node does next: on a leader the progress of each peer, on any other node the votes that it has. All
//! else is constant under this driver, or follows, or is never read: `docs/wild.md` goes through it field by field,
//! and the tests of this module put it to the proof.

use std::fmt::{self, Debug};
use std::hash::Hash;
use std::time::Duration;

use dragnet::catalog::Entry;
use dragnet::nodes::{Network, Opaque, OpaqueNode, Snapshot};
use dragnet::trace::StableHasher;
use dragnet::{Check, Cluster, Context, NodeId, Timer, crashes};
use protobuf::Message as _;
use raft::eraftpb::{self, HardState, Message};
use raft::storage::MemStorage;
use raft::{Config, GetEntriesContext, ProgressState, RawNode, StateRole, Storage};
use slog::{Discard, Logger, o};

/// The library under the name `raft`.
pub fn entry() -> Entry {
    Entry::new(
        "raft",
        "the Raft library of TiKV, raft 0.7: elections and a replicated log",
        |setup| {
            let (nodes, terms) = (setup.number("nodes"), setup.number("terms"));
            let (campaigns, proposals) = (setup.number("campaigns"), setup.number("proposals"));
            setup.require(
                nodes * u64::from(campaigns) >= terms,
                "there are more terms than campaigns",
            );
            let replica = Replica {
                voters: (1..=nodes).collect(),
                mistake: MISTAKES
                    .into_iter()
                    .find(|(name, _)| setup.has_bug(name))
                    .map(|(_, mistake)| mistake),
            };
            let network = match setup.choice("network") {
                "ordered" => Network::ordered(),
                _ => Network::unordered(),
            };
            let mut cluster = cluster(replica, proposals)
                .network(network)
                .timer_budget(HEARTBEAT, setup.number("heartbeats"));
            if u64::from(campaigns) < terms {
                cluster = cluster.timer_budget(ELECTION, campaigns);
            }
            check(cluster, proposals, terms)
        },
    )
    .parameter("nodes", 3, 2..=5, "how many replicas there are")
    .parameter("proposals", 1, 0..=3, "how many values are proposed")
    .parameter("terms", 2, 1..=4, "the last term that anybody goes to")
    .parameter("campaigns", 1, 1..=4, "how often each campaigns")
    .parameter("heartbeats", 0, 0..=4, "how often each sends heartbeats")
    .choice("network", ["ordered", "unordered"], "how links deliver")
    .faults(crashes(1))
    .bug(
        "sends-before-persisting",
        "sends the messages of a Ready before its entries and hard state are on disk",
        |bug| bug.set("proposals", 0).set("terms", 1),
    )
    .bug(
        "keeps-only-committed",
        "says that it has entries, and has them on disk when they are committed",
        |bug| bug.set("proposals", 0),
    )
}

/// Replicas like this one that are called with `proposals` values, in turn.
fn cluster(replica: Replica, proposals: u8) -> Cluster<Opaque<Replica>> {
    let nodes = replica.voters.len();
    let cluster = Cluster::new(nodes, |_| Opaque::new(replica.clone()));
    (0..nodes).fold(cluster, |cluster, node| {
        let values = (1..=proposals).skip(node).step_by(nodes);
        cluster.calls(node, values.map(Msg::Propose))
    })
}

fn check(
    cluster: Cluster<Opaque<Replica>>,
    proposals: u8,
    terms: u64,
) -> Check<Cluster<Opaque<Replica>>> {
    let nodes = cluster.len();
    Check::new(cluster)
        .within(format!("no term after {terms}"), move |s| {
            s.nodes().all(|view| view.record.term <= terms)
        })
        .always("election safety", move |s| {
            pairs(s, nodes).all(|(one, other)| !one.led.iter().any(|term| other.led.contains(term)))
        })
        .always("log matching", move |s| {
            pairs(s, nodes).all(|(one, other)| logs_match(&one.log, &other.log))
        })
        .always("leader completeness", move |s| {
            let mut leaders = s.nodes().filter(|view| view.role == Role::Leader);
            leaders.all(|leader| {
                let log = &leader.record.log;
                records(s, nodes).all(|record| {
                    let applied = record.applied.iter().enumerate();
                    let mut earlier =
                        applied.filter(|(_, applied)| applied.during < leader.record.term);
                    earlier.all(|(index, applied)| log.get(index) == Some(&applied.item))
                })
            })
        })
        .always("state machine safety", move |s| {
            let lasting = |record: &Record| {
                let mut both = record.applied.iter().zip(&record.log);
                record.applied.len() <= record.log.len()
                    && both.all(|(applied, item)| applied.item == *item)
            };
            let agreeing = |(one, other): (&Record, &Record)| {
                let mut both = one.applied.iter().zip(&other.applied);
                both.all(|(one, other)| one.item == other.item)
            };
            records(s, nodes).all(lasting) && pairs(s, nodes).all(agreeing)
        })
        .reachable("every term has a leader", move |s| {
            (1..=terms).all(|term| records(s, nodes).any(|record| record.led.contains(&term)))
        })
        .reachable("every proposal is applied everywhere", move |s| {
            (1..=proposals).all(|value| {
                let applied = |applied: &Applied| applied.item.value == Some(value);
                records(s, nodes).all(|record| record.applied.iter().any(applied))
            })
        })
}

/// What the replicas have written, also those that are down.
fn records<'a>(s: Snapshot<'a, Opaque<Replica>>, nodes: usize) -> impl Iterator<Item = &'a Record> {
    (0..nodes).filter_map(move |id| record(s, id))
}

fn record<'a>(s: Snapshot<'a, Opaque<Replica>>, id: usize) -> Option<&'a Record> {
    match s.node(id) {
        Some(up) => Some(&up.record),
        None => s.durable(id)?.disk(),
    }
}

/// Every two of them.
fn pairs<'a>(
    s: Snapshot<'a, Opaque<Replica>>,
    nodes: usize,
) -> impl Iterator<Item = (&'a Record, &'a Record)> {
    (0..nodes).flat_map(move |one| {
        (one + 1..nodes).filter_map(move |other| Some((record(s, one)?, record(s, other)?)))
    })
}

/// Whether two logs are the same up to the last place where they have an entry of the same term.
fn logs_match(one: &[Item], other: &[Item]) -> bool {
    let mut terms = one
        .iter()
        .zip(other)
        .map(|(one, other)| one.term == other.term);
    let last = terms.rposition(|same| same);
    last.is_none_or(|last| one[..=last] == other[..=last])
}

const HEARTBEAT: Timer = Timer::new("heartbeat");
const ELECTION: Timer = Timer::new("election");

const HEARTBEAT_TICKS: u32 = 1;
const ELECTION_TICKS: u32 = 2;

/// What travels, and what a replica is called with.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Msg {
    /// A message of the library, encoded.
    Packet(Vec<u8>),
    /// A value to agree on.
    Propose(u8),
}

impl From<Message> for Msg {
    fn from(message: Message) -> Self {
        Self::Packet(message.write_to_bytes().expect("a message can be encoded"))
    }
}

fn decode(packet: &[u8]) -> Message {
    Message::parse_from_bytes(packet).expect("a packet holds a message")
}

impl Debug for Msg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packet = match self {
            Self::Packet(packet) => packet,
            Self::Propose(value) => return write!(f, "Propose({value})"),
        };
        let message = decode(packet);
        let kind = format!("{:?}", message.msg_type);
        write!(
            f,
            "{} of term {}",
            kind.trim_start_matches("Msg"),
            message.term
        )?;
        let numbers = [
            ("index", message.index),
            ("log term", message.log_term),
            ("commit", message.commit),
            ("commit term", message.commit_term),
            ("hint", message.reject_hint),
        ];
        for (name, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
            write!(f, ", {name} {number}")?;
        }
        if message.reject {
            write!(f, ", rejects")?;
        }
        if !message.entries.is_empty() {
            let items: Vec<Item> = message.entries.iter().map(Item::from).collect();
            write!(f, ", {items:?}")?;
        }
        Ok(())
    }
}

/// What a node of the cluster is set up with.
#[derive(Clone, Debug)]
pub struct Replica {
    /// The ids of all members, as the library counts them: from one.
    voters: Vec<u64>,
    mistake: Option<Mistake>,
}

/// How a driver can break the contract of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// It leaves what it writes in a cache until something else happens, and sends before that.
    WritesLate,
    /// It writes no entry that is not committed.
    KeepsOnlyCommitted,
}

const MISTAKES: [(&str, Mistake); 2] = [
    ("sends-before-persisting", Mistake::WritesLate),
    ("keeps-only-committed", Mistake::KeepsOnlyCommitted),
];

/// A replica at work.
pub struct Server {
    raft: RawNode<MemStorage>,
    applied: Vec<Applied>,
    led: Vec<u64>,
    /// What is on disk; the storage of `raft` is a cache before it.
    synced: Record,
}

/// What can be seen of a replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    role: Role,
    /// Whom it takes for the leader; zero for nobody.
    leader: u64,
    record: Record,
}

/// What a replica is in its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It votes, and copies the log of a leader.
    Follower,
    /// It wants to lead.
    Candidate,
    /// It leads.
    Leader,
}

/// What a replica writes, and which terms it has led.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Record {
    term: u64,
    vote: u64,
    commit: u64,
    log: Vec<Item>,
    applied: Vec<Applied>,
    /// For election safety to look back on; no replica reads it, and no crash takes it away.
    led: Vec<u64>,
}

/// An entry of the log: what was proposed, or nothing where a leader began its term.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Item {
    term: u64,
    value: Option<u8>,
}

impl From<&eraftpb::Entry> for Item {
    fn from(entry: &eraftpb::Entry) -> Self {
        Self {
            term: entry.term,
            value: entry.data.first().copied(),
        }
    }
}

impl Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Some(value) => write!(f, "{value} of term {}", self.term),
            None => write!(f, "beginning of term {}", self.term),
        }
    }
}

/// An entry that was applied, and the term in which the replica was then.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Applied {
    item: Item,
    during: u64,
}

impl Debug for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in term {}", self.item, self.during)
    }
}

impl Replica {
    /// A replica that finds `disk`.
    fn open(&self, me: NodeId, disk: Record) -> Server {
        let storage = MemStorage::new_with_conf_state((self.voters.clone(), vec![]));
        let entries: Vec<eraftpb::Entry> = (1..).zip(&disk.log).map(entry_of).collect();
        storage.wl().append(&entries).expect("a log without gaps");
        storage.wl().set_hardstate(HardState {
            term: disk.term,
            vote: disk.vote,
            commit: disk.commit,
            ..HardState::default()
        });
        let config = Config {
            id: id_of(me),
            applied: disk.applied.len() as u64,
            heartbeat_tick: HEARTBEAT_TICKS as usize,
            election_tick: ELECTION_TICKS as usize,
            min_election_tick: ELECTION_TICKS as usize,
            max_election_tick: ELECTION_TICKS as usize + 1,
            max_size_per_msg: raft::NO_LIMIT,
            ..Config::default()
        };
        Server {
            raft: RawNode::new(&config, storage, &Logger::root(Discard, o!()))
                .expect("a configuration that the library takes"),
            applied: disk.applied.clone(),
            led: disk.led.clone(),
            synced: disk,
        }
    }

    fn writes_late(&self) -> bool {
        self.mistake == Some(Mistake::WritesLate)
    }

    /// Lets something happen to the node, and does what it then asks for. What comes back is to be sent.
    fn handle(
        &self,
        server: &mut Server,
        happens: impl FnOnce(&mut RawNode<MemStorage>) -> raft::Result<()>,
    ) -> Vec<Message> {
        if self.writes_late() {
            server.sync();
        }
        match happens(&mut server.raft) {
            Ok(()) | Err(raft::Error::ProposalDropped) => {}
            Err(error) => panic!("the library refuses its input: {error}"),
        }
        let mut sent = Vec::new();
        while server.raft.has_ready() {
            let mut ready = server.raft.ready();
            sent.append(&mut ready.take_messages());
            server.write(ready.entries(), ready.hs());
            server.apply(ready.take_committed_entries());
            if !self.writes_late() {
                server.sync();
            }
            sent.append(&mut ready.take_persisted_messages());
            let mut light = server.raft.advance(ready);
            if let Some(commit) = light.commit_index() {
                server.raft.store().wl().mut_hard_state().commit = commit;
            }
            sent.append(&mut light.take_messages());
            server.apply(light.take_committed_entries());
            server.raft.advance_apply();
        }
        let term = server.raft.raft.term;
        if server.raft.raft.state == StateRole::Leader && server.led.last() != Some(&term) {
            server.led.push(term);
        }
        if !self.writes_late() {
            server.sync();
        }
        sent
    }
}

impl Server {
    fn write(&mut self, entries: &[eraftpb::Entry], hard_state: Option<&HardState>) {
        let mut storage = self.raft.store().wl();
        storage.append(entries).expect("a log without gaps");
        if let Some(hard_state) = hard_state {
            storage.set_hardstate(hard_state.clone());
        }
    }

    fn apply(&mut self, entries: Vec<eraftpb::Entry>) {
        for entry in entries {
            assert_eq!(
                entry.index,
                self.applied.len() as u64 + 1,
                "applied in order"
            );
            self.applied.push(Applied {
                item: Item::from(&entry),
                during: self.raft.raft.term,
            });
        }
    }

    fn sync(&mut self) {
        self.synced = self.record();
    }

    /// What it has written, be it on disk or in a cache.
    fn record(&self) -> Record {
        let storage = self.raft.store();
        let hard_state = storage.rl().hard_state().clone();
        let end = storage.last_index().expect("a storage in memory") + 1;
        let log = if end == 1 {
            Vec::new()
        } else {
            let entries = storage.entries(1, end, None, GetEntriesContext::empty(false));
            let entries = entries.expect("a storage that is never compacted");
            entries.iter().map(Item::from).collect()
        };
        Record {
            term: hard_state.term,
            vote: hard_state.vote,
            commit: hard_state.commit,
            log,
            applied: self.applied.clone(),
            led: self.led.clone(),
        }
    }
}

fn id_of(node: NodeId) -> u64 {
    node.0 as u64 + 1
}

fn entry_of((index, item): (u64, &Item)) -> eraftpb::Entry {
    eraftpb::Entry {
        index,
        term: item.term,
        data: item.value.into_iter().collect(),
        ..eraftpb::Entry::default()
    }
}

/// Sends what is to be sent, and sets the timer that the role of the replica needs.
fn go_on(server: &Server, sent: Vec<Message>, cx: &mut Context<Msg>) {
    for message in sent {
        cx.send(message.to as usize - 1, message.into());
    }
    let leads = server.raft.raft.state == StateRole::Leader;
    let (set, cancelled) = if leads {
        (HEARTBEAT, ELECTION)
    } else {
        (ELECTION, HEARTBEAT)
    };
    cx.cancel_timer(cancelled);
    cx.set_timer(set, Duration::from_millis(100) * ticks(set));
}

/// How often the clock ticks until a timer runs out.
fn ticks(timer: Timer) -> u32 {
    match timer {
        HEARTBEAT => HEARTBEAT_TICKS,
        _ => ELECTION_TICKS,
    }
}

impl OpaqueNode for Replica {
    type State = Server;
    type Msg = Msg;
    type View = View;
    type Disk = Record;

    fn on_start(&self, cx: &mut Context<Msg>) -> Server {
        self.on_recover(Record::default(), cx)
    }

    fn on_message(&self, server: &mut Server, _from: NodeId, msg: Msg, cx: &mut Context<Msg>) {
        let Msg::Packet(packet) = msg else {
            panic!("replicas send packets, and this is {msg:?}");
        };
        let sent = self.handle(server, |raft| raft.step(decode(&packet)));
        go_on(server, sent, cx);
    }

    fn on_timer(&self, server: &mut Server, timer: Timer, cx: &mut Context<Msg>) {
        let sent = self.handle(server, |raft| {
            for _ in 0..ticks(timer) {
                raft.tick();
            }
            Ok(())
        });
        go_on(server, sent, cx);
    }

    fn on_call(&self, server: &mut Server, call: Msg, cx: &mut Context<Msg>) {
        let Msg::Propose(value) = call else {
            panic!("the application can only propose, and called {call:?}");
        };
        let sent = self.handle(server, |raft| raft.propose(vec![], vec![value]));
        go_on(server, sent, cx);
    }

    fn view(&self, server: &mut Server) -> View {
        let raft = &server.raft.raft;
        View {
            role: match raft.state {
                StateRole::Follower => Role::Follower,
                StateRole::Candidate | StateRole::PreCandidate => Role::Candidate,
                StateRole::Leader => Role::Leader,
            },
            leader: raft.leader_id,
            record: server.record(),
        }
    }

    fn digest(&self, server: &mut Server, digest: &mut StableHasher) -> bool {
        let raft = &server.raft.raft;
        for id in &self.voters {
            if raft.state == StateRole::Leader {
                let peer = raft.prs().get(*id).expect("every voter is tracked");
                let replicates = peer.state == ProgressState::Replicate;
                (peer.matched, peer.next_idx, replicates, peer.paused).hash(digest);
            } else {
                raft.prs().votes().get(id).hash(digest);
            }
        }
        if self.writes_late() {
            server.synced.hash(digest);
        }
        true
    }

    fn disk(&self, server: &mut Server) -> Option<Record> {
        let mut disk = Record {
            led: server.led.clone(),
            ..server.synced.clone()
        };
        if self.mistake == Some(Mistake::KeepsOnlyCommitted) {
            disk.log.truncate(disk.commit as usize);
        }
        Some(disk)
    }

    fn on_recover(&self, disk: Record, cx: &mut Context<Msg>) -> Server {
        let mut server = self.open(cx.me(), disk);
        let sent = self.handle(&mut server, |_| Ok(()));
        go_on(&server, sent, cx);
        server
    }
}

#[cfg(test)]
mod tests;
