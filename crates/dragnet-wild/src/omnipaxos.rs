//! [`omnipaxos`](https://docs.rs/omnipaxos): a replicated log, by ballots and majorities.
//!
//! Each server hands its `OmniPaxos` what arrives, sends what it wants sent, and reads what has been decided since. An
//! `OmniPaxos` can be neither cloned nor compared, and keeps most of what it knows to itself, so it is an
//! [`OpaqueNode`] without a digest: two states are one when the same happened to them. Its storage is the driver's own,
//! whole and durable after every call, and shows what a server has promised, accepted and decided.
//!
//! Links keep the order of messages, as `omnipaxos` demands, and can be cut (`partitions`). When a link is back, both of
//! its ends are told, and call `reconnected`. The same happens when a server restarts from its storage after a crash: it
//! says so to its peers, each of which answers that the new connection stands, and what they had sent it before that is
//! lost with the old connection. A crash never falls between two writes of one handler. Faults that no such link has
//! (`drops` and `duplicates` of single messages) are outside what `omnipaxos` promises to stand.
//!
//! # Parameters
//!
//! - `servers`: how many servers there are.
//! - `elections`: how often a server is told to become leader (`try_become_leader`), dealt out to the servers in turn.
//! - `appends`: how many entries are appended, each by another server in turn. A server does in turn what it is told to.
//! - `ticks`: how often each server's clock may tick. Every tick ends a heartbeat round of the ballot leader election, and
//!   resends what seems lost. Without ticks heartbeats decide nothing, and are not sent at all.
//! - `sending`: whether a server sends `at-once`, after each step, or `later`, at any moment, what has piled up by then.
//!   Both are as `omnipaxos` wants it, and it joins messages that pile up.
//!
//! All of these bound the system, and together they make it finite.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ::omnipaxos::ballot_leader_election::Ballot;
use ::omnipaxos::macros::Entry as LogEntry;
use ::omnipaxos::messages::Message;
use ::omnipaxos::storage::{NoSnapshot, StopSign, Storage, StorageOp, StorageResult};
use ::omnipaxos::util::LogEntry as Read;
use ::omnipaxos::{ClusterConfig, OmniPaxos, OmniPaxosConfig, ServerConfig};
use dragnet::catalog::Entry;
use dragnet::nodes::{BySerde, Digested, Network, Opaque, OpaqueNode, Snapshot};
use dragnet::{Check, Cluster, Context, NodeId, Timer, others};
use serde::{Deserialize, Serialize};

/// The replicated log under the name `omnipaxos`.
pub fn entry() -> Entry {
    Entry::new(
        "omnipaxos",
        "the replicated log of the crate omnipaxos",
        |setup| {
            check(Scale {
                servers: setup.number("servers"),
                elections: setup.number("elections"),
                appends: setup.number("appends"),
                ticks: setup.number("ticks"),
                sends_later: setup.choice("sending") == "later",
            })
        },
    )
    .parameter("servers", 3, 2..=5, "how many servers there are")
    .parameter(
        "elections",
        2,
        0..=8,
        "how often a server is told to become leader",
    )
    .parameter("appends", 1, 1..=8, "how many entries are appended")
    .parameter("ticks", 0, 0..=8, "how often each server's clock ticks")
    .choice(
        "sending",
        ["at-once", "later"],
        "when a server sends what it has to send",
    )
}

/// How much there is of everything.
struct Scale {
    servers: usize,
    elections: usize,
    appends: usize,
    ticks: u32,
    sends_later: bool,
}

fn check(scale: Scale) -> Check<Cluster<Opaque<Server>>> {
    let Scale {
        servers,
        elections,
        appends,
        ticks,
        sends_later,
    } = scale;
    let server = || Server {
        ticks: ticks > 0,
        sends_later,
    };
    let cluster = Cluster::new(servers, |_| Opaque::new(server()))
        .network(Network::ordered().reconnects_with(Msg::Reconnected))
        .timer_budget(TICK, ticks);
    let cluster = (0..servers).fold(cluster, |cluster, server| {
        let rounds = (server..elections.max(appends)).step_by(servers);
        let calls = rounds.flat_map(|round| {
            let lead = (round < elections).then_some(Msg::Lead);
            let append = (round < appends).then_some(Msg::Append(Command(round)));
            lead.into_iter().chain(append)
        });
        cluster.calls(server, calls)
    });
    Check::new(cluster)
        .always("the decided index never goes back", move |s| {
            records(s, servers).all(|record| record.storage.decided >= record.seen.len())
        })
        .always("a decided entry is never lost", move |s| {
            records(s, servers).all(|record| record.storage.log.starts_with(&record.seen))
        })
        .always("no two servers decide differently", move |s| {
            let seen = || records(s, servers).map(|record| &record.seen);
            let longest = seen().max_by_key(|seen| seen.len()).expect("a server");
            seen().all(|seen| longest.starts_with(seen))
        })
        .always("no entry is decided twice", move |s| {
            let mut seen = records(s, servers).map(|record| &record.seen);
            seen.all(|seen| (1..seen.len()).all(|at| !seen[..at].contains(&seen[at])))
        })
        .reachable("an entry is decided everywhere", move |s| {
            records(s, servers).all(|record| !record.seen.is_empty())
        })
}

/// What is known of each server, also of those that are down.
fn records<'a>(
    s: Snapshot<'a, Opaque<Server>>,
    servers: usize,
) -> impl Iterator<Item = &'a Record> {
    let up = move |id| s.node(id).map(|past| &**past);
    let down = move |id| s.durable(id).and_then(|past| past.disk());
    (0..servers).filter_map(move |id| up(id).or_else(|| down(id)))
}

const TICK: Timer = Timer::new("tick");
const SEND: Timer = Timer::new("send");
const PERIOD: Duration = Duration::from_millis(10);

/// What is appended to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, LogEntry)]
struct Command(usize);

/// What servers say to each other, and what the application asks of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "nearly all are of that one")]
enum Msg {
    /// What one `OmniPaxos` has to say to another.
    Protocol(Digested<Message<Command>, BySerde>),
    /// The sender has restarted from its storage, and connects again.
    Restarted,
    /// The connection to the sender had been lost, and stands again.
    Reconnected,
    /// The application wants this server to be the leader.
    Lead,
    /// The application appends to the log.
    Append(Command),
}

/// A server.
struct Server {
    /// Whether its clock ticks.
    ticks: bool,
    /// Whether it lets what is to be sent pile up.
    sends_later: bool,
}

/// A server while it runs.
struct Running {
    paxos: OmniPaxos<Command, SharedStorage>,
    storage: SharedStorage,
    /// Everything that was ever decided, as the application has read it.
    seen: Vec<Command>,
    /// The peers to which there is a connection, as far as this server knows.
    connected: Vec<NodeId>,
}

/// What can be seen of a server, and what is left of it when it crashes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Record {
    storage: Digested<Stored, BySerde>,
    /// Everything that was ever decided: here only to be compared with what is.
    seen: Vec<Command>,
}

impl Server {
    fn run(&self, record: Record, connected: Vec<NodeId>, cx: &mut Context<Msg>) -> Running {
        let storage = SharedStorage(Arc::new(Mutex::new((*record.storage).clone())));
        let config = OmniPaxosConfig {
            cluster_config: ClusterConfig {
                configuration_id: 1,
                nodes: (0..cx.nodes()).map(|id| pid(NodeId(id))).collect(),
                flexible_quorum: None,
            },
            server_config: ServerConfig {
                pid: pid(cx.me()),
                election_tick_timeout: 1,
                resend_message_tick_timeout: 1,
                // That much memory is taken at once, and far fewer messages are ever waiting.
                buffer_size: 8,
                ..ServerConfig::default()
            },
        };
        let mut running = Running {
            paxos: config
                .build(storage.clone())
                .expect("a valid configuration"),
            storage,
            seen: record.seen,
            connected,
        };
        if self.ticks {
            cx.set_timer(TICK, PERIOD);
        }
        self.settle(&mut running, cx);
        running
    }

    /// Reads what has been decided, and sends what is to be sent, or sees to it that it will be.
    fn settle(&self, running: &mut Running, cx: &mut Context<Msg>) {
        let decided = running.paxos.read_decided_suffix(running.seen.len());
        let decided = decided.into_iter().flatten().map(|read| match read {
            Read::Decided(command) => command,
            other => unreachable!("{other:?} among what is decided"),
        });
        running.seen.extend(decided);
        if self.sends_later {
            cx.set_timer(SEND, PERIOD);
        } else {
            self.send(running, cx);
        }
    }

    fn send(&self, running: &mut Running, cx: &mut Context<Msg>) {
        let mut outgoing = Vec::new();
        running.paxos.take_outgoing_messages(&mut outgoing);
        for message in outgoing {
            if self.ticks || !matches!(message, Message::BLE(_)) {
                let to = message.get_receiver() as usize - 1;
                cx.send(to, Msg::Protocol(message.into()));
            }
        }
    }
}

impl OpaqueNode for Server {
    type State = Running;
    type Msg = Msg;
    type View = Record;
    type Disk = Record;

    fn on_start(&self, cx: &mut Context<Msg>) -> Running {
        let blank = Record {
            storage: Stored::default().into(),
            seen: Vec::new(),
        };
        self.run(blank, others(cx.me(), cx.nodes()), cx)
    }

    fn on_message(&self, running: &mut Running, from: NodeId, msg: Msg, cx: &mut Context<Msg>) {
        match msg {
            Msg::Protocol(message) if running.connected.contains(&from) => {
                running.paxos.handle_incoming((*message).clone());
            }
            Msg::Protocol(_) => {} // It was sent over a connection that is gone.
            Msg::Restarted => {
                cx.send(from, Msg::Reconnected);
                running.reconnected(from);
            }
            Msg::Reconnected => running.reconnected(from),
            Msg::Lead | Msg::Append(_) => unreachable!("only the application says so"),
        }
        self.settle(running, cx);
    }

    fn on_timer(&self, running: &mut Running, timer: Timer, cx: &mut Context<Msg>) {
        if timer == SEND {
            self.send(running, cx);
        } else {
            running.paxos.tick();
            cx.set_timer(TICK, PERIOD);
            self.settle(running, cx);
        }
    }

    fn on_call(&self, running: &mut Running, call: Msg, cx: &mut Context<Msg>) {
        match call {
            Msg::Lead => running.paxos.try_become_leader(),
            Msg::Append(command) => running.paxos.append(command).expect("no reconfiguration"),
            _ => unreachable!("only servers say so"),
        }
        self.settle(running, cx);
    }

    fn view(&self, running: &mut Running) -> Record {
        Record {
            storage: running.storage.lock().clone().into(),
            seen: running.seen.clone(),
        }
    }

    fn disk(&self, running: &mut Running) -> Option<Record> {
        Some(self.view(running))
    }

    fn on_recover(&self, record: Record, cx: &mut Context<Msg>) -> Running {
        cx.broadcast_to_others(Msg::Restarted);
        self.run(record, Vec::new(), cx)
    }
}

impl Running {
    fn reconnected(&mut self, peer: NodeId) {
        if !self.connected.contains(&peer) {
            self.connected.push(peer);
        }
        self.paxos.reconnected(pid(peer));
    }
}

/// What `omnipaxos` calls a server: its pids begin with 1.
fn pid(id: NodeId) -> u64 {
    id.0 as u64 + 1
}

/// What a server has in its storage.
#[derive(Clone, Debug, Default, Serialize)]
struct Stored {
    promise: Option<Ballot>,
    accepted_round: Option<Ballot>,
    decided: usize,
    log: Vec<Command>,
}

/// The storage of a server in the hands of its `OmniPaxos`, and in those of its driver to look at.
#[derive(Clone)]
struct SharedStorage(Arc<Mutex<Stored>>);

impl SharedStorage {
    fn lock(&self) -> MutexGuard<'_, Stored> {
        self.0.lock().expect("no handler panics while it writes")
    }
}

impl Storage<Command> for SharedStorage {
    fn write_atomically(&mut self, ops: Vec<StorageOp<Command>>) -> StorageResult<()> {
        ops.into_iter().try_for_each(|op| match op {
            StorageOp::AppendEntry(entry) => self.append_entry(entry),
            StorageOp::AppendEntries(entries) => self.append_entries(entries),
            StorageOp::AppendOnPrefix(from, entries) => self.append_on_prefix(from, entries),
            StorageOp::SetPromise(ballot) => self.set_promise(ballot),
            StorageOp::SetDecidedIndex(index) => self.set_decided_idx(index),
            StorageOp::SetAcceptedRound(ballot) => self.set_accepted_round(ballot),
            StorageOp::SetCompactedIdx(index) => self.set_compacted_idx(index),
            StorageOp::Trim(index) => self.trim(index),
            StorageOp::SetStopsign(sign) => self.set_stopsign(sign),
            StorageOp::SetSnapshot(snapshot) => self.set_snapshot(snapshot),
        })
    }

    fn append_entry(&mut self, entry: Command) -> StorageResult<()> {
        self.append_entries(vec![entry])
    }

    fn append_entries(&mut self, entries: Vec<Command>) -> StorageResult<()> {
        self.lock().log.extend(entries);
        Ok(())
    }

    fn append_on_prefix(&mut self, from: usize, entries: Vec<Command>) -> StorageResult<()> {
        self.lock().log.truncate(from);
        self.append_entries(entries)
    }

    fn set_promise(&mut self, ballot: Ballot) -> StorageResult<()> {
        self.lock().promise = Some(ballot);
        Ok(())
    }

    fn get_promise(&self) -> StorageResult<Option<Ballot>> {
        Ok(self.lock().promise)
    }

    fn set_accepted_round(&mut self, ballot: Ballot) -> StorageResult<()> {
        self.lock().accepted_round = Some(ballot);
        Ok(())
    }

    fn get_accepted_round(&self) -> StorageResult<Option<Ballot>> {
        Ok(self.lock().accepted_round)
    }

    fn set_decided_idx(&mut self, index: usize) -> StorageResult<()> {
        self.lock().decided = index;
        Ok(())
    }

    fn get_decided_idx(&self) -> StorageResult<usize> {
        Ok(self.lock().decided)
    }

    fn get_entries(&self, from: usize, to: usize) -> StorageResult<Vec<Command>> {
        Ok(self.lock().log.get(from..to).unwrap_or_default().to_vec())
    }

    fn get_suffix(&self, from: usize) -> StorageResult<Vec<Command>> {
        Ok(self.lock().log.get(from..).unwrap_or_default().to_vec())
    }

    fn get_log_len(&self) -> StorageResult<usize> {
        Ok(self.lock().log.len())
    }

    // Nobody reconfigures the cluster or compacts the log here.

    fn set_stopsign(&mut self, _sign: Option<StopSign>) -> StorageResult<()> {
        Err("no stop sign is ever stored".into())
    }

    fn get_stopsign(&self) -> StorageResult<Option<StopSign>> {
        Ok(None)
    }

    fn trim(&mut self, _index: usize) -> StorageResult<()> {
        Err("the log is never compacted".into())
    }

    fn set_compacted_idx(&mut self, _index: usize) -> StorageResult<()> {
        Err("the log is never compacted".into())
    }

    fn get_compacted_idx(&self) -> StorageResult<usize> {
        Ok(0)
    }

    fn set_snapshot(&mut self, _snapshot: Option<NoSnapshot>) -> StorageResult<()> {
        Err("the log is never compacted".into())
    }

    fn get_snapshot(&self) -> StorageResult<Option<NoSnapshot>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use ::omnipaxos::messages::sequence_paxos::{PaxosMessage, PaxosMsg};
    use dragnet::{Faults, Verdict, crashes, partitions};

    use super::*;

    /// Whether a leader synchronises a follower for a second time, which it does when their connection was lost.
    fn synchronises_again(msg: &Msg) -> bool {
        let Msg::Protocol(message) = msg else {
            return false;
        };
        matches!(
            &**message,
            Message::SequencePaxos(PaxosMessage { msg: PaxosMsg::AcceptSync(sync), .. })
                if sync.seq_num.session == 2
        )
    }

    const PAIR: Scale = Scale {
        servers: 2,
        elections: 1,
        appends: 1,
        ticks: 0,
        sends_later: false,
    };

    fn leader_and_follower(faults: Faults) -> Verdict {
        check(PAIR)
            .faults(faults)
            .reachable_with_messages("a second session", |_, messages| {
                messages.iter().any(|(_, _, msg)| synchronises_again(msg))
            })
            .run()
    }

    #[test]
    fn a_follower_that_was_cut_off_is_synchronised_again() {
        leader_and_follower(partitions(1)).assert_holds();
    }

    #[test]
    fn a_follower_that_restarts_is_synchronised_again() {
        leader_and_follower(crashes(1)).assert_holds();
    }

    #[test]
    fn while_the_connection_stands_nobody_is_synchronised_again() {
        let verdict = leader_and_follower(Faults::none());
        let violation = verdict.violation().expect("there is only one session");
        assert_eq!(violation.property, "a second session");
    }

    #[test]
    fn heartbeats_elect_a_leader_that_decides() {
        let scale = Scale {
            elections: 0,
            ticks: 1,
            ..PAIR
        };
        check(scale).run().assert_holds();
    }

    #[test]
    fn messages_that_pile_up_do_no_harm() {
        let scale = Scale {
            elections: 2,
            sends_later: true,
            ..PAIR
        };
        check(scale).run().assert_holds();
    }
}
