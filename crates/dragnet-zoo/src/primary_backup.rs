//! A key-value store on a primary and a backup, with a client that writes.
//!
//! The primary (node 0 at first) stores a write, replicates it to the backup, and tells the client that it is done when
//! the backup has stored it too. It sends heartbeats; a backup that misses them for too long takes over. In a checker "too
//! long" can be any moment, so safety rests on *views*, not on time: the backup takes over in the next view, and from
//! then on no longer stores what the primary of the old view replicates. So the old primary, should it be alive, can
//! finish no write any more; it steps down when it hears a heartbeat of the higher view. The new primary has everything
//! that was ever finished, works alone, and is not relieved in its turn.
//!
//! The client sends one write at a time, and tries the other server whenever an answer is late. Writes are numbered: a
//! server keeps the latest for each key, so that one that arrives late or twice does no harm. Servers keep all that they
//! know on disk. When the backup is gone the primary finishes nothing: two servers without a judge cannot do better.
//!
//! Each link carries at most one heartbeat, and at most one request or reply: what is sent beyond that is lost, which is
//! what keeps the space finite although heartbeats and retries go on for ever.
//!
//! The one parameter, `writes`, says how many writes the client makes, to two keys in turn. With the bug `early-ack` the
//! primary tells the client that a write is done before the backup has it. A crash of the primary then loses the write,
//! and so does a backup that takes over too soon.

use std::collections::BTreeMap;
use std::time::Duration;

use dragnet::catalog::Entry;
use dragnet::nodes::{Either, Network, Snapshot};
use dragnet::{Check, Cluster, Context, Node, NodeId, Timer};
use serde::{Deserialize, Serialize};

/// The store under the name `primary-backup`.
pub fn entry() -> Entry {
    Entry::new(
        "primary-backup",
        "a key-value store on a primary and a backup that takes over",
        |setup| check(cluster(setup.number("writes"), setup.has_bug("early-ack"))),
    )
    .parameter("writes", 2, 0..=8, "how many writes the client makes")
    .bug(
        "early-ack",
        "tells the client that a write is done before the backup has it",
        |bug| bug,
    )
}

fn check(cluster: Cluster<Either<Server, Client>>) -> Check<Cluster<Either<Server, Client>>> {
    Check::new(cluster.serializable())
        .always("an acknowledged write is never lost", |s| {
            let current = servers(s)
                .filter(|store| store.is_primary())
                .max_by_key(|store| store.view);
            s.role::<Client, _>()
                .flat_map(|(_, client)| &client.acknowledged)
                .all(|write| current.is_some_and(|store| store.has_seen(write)))
        })
        .always("no view has two primaries", |s| {
            let mut views: Vec<u8> = servers(s)
                .filter(|store| store.is_primary())
                .map(|store| store.view)
                .collect();
            let primaries = views.len();
            views.dedup();
            views.len() == primaries
        })
        .reachable("the backup takes over", |s| {
            servers(s).any(|store| store.duty == Duty::Alone)
        })
}

const SERVERS: usize = 2;
const CLIENT: NodeId = NodeId(SERVERS);

/// Two servers and a client that makes `writes` writes. When `early_ack`, the primary does not wait for the backup.
pub fn cluster(writes: u8, early_ack: bool) -> Cluster<Either<Server, Client>> {
    let puts = (0..writes).map(|number| {
        Msg::Put(Write {
            number,
            key: number % 2,
            value: 10 + number,
        })
    });
    Cluster::new(SERVERS, |_| Server { early_ack })
        .and(1, |_| Client)
        .network(
            Network::unordered()
                .capacity_of("heartbeats", 1, |msg| matches!(msg, Msg::Heartbeat { .. }))
                .capacity_of("requests or replies", 1, |msg| {
                    !matches!(msg, Msg::Heartbeat { .. })
                }),
        )
        .calls_in_turn(CLIENT, puts)
}

/// Whether a server, up or down, has stored the write with this number.
pub fn written(s: Snapshot<'_, Either<Server, Client>>, number: u8) -> bool {
    servers(s).any(|store| store.latest.values().any(|write| write.number == number))
}

/// Whether the client knows that the write with this number is done.
pub fn acknowledged(s: Snapshot<'_, Either<Server, Client>>, number: u8) -> bool {
    s.role::<Client, _>().any(|(_, client)| {
        client
            .acknowledged
            .iter()
            .any(|write| write.number == number)
    })
}

/// The servers, also those that are down.
fn servers<'a>(s: Snapshot<'a, Either<Server, Client>>) -> impl Iterator<Item = &'a Store> {
    (0..SERVERS).filter_map(move |id| match s.node(id).or_else(|| s.durable(id)) {
        Some(Either::Left(store)) => Some(store),
        _ => None,
    })
}

const HEARTBEAT: Timer = Timer::new("heartbeat");
const SUSPICION: Timer = Timer::new("suspicion");
const RETRY: Timer = Timer::new("retry");

const BEAT: Duration = Duration::from_millis(100);
const SILENCE: Duration = Duration::from_millis(1_000);
const PATIENCE: Duration = Duration::from_millis(500);

/// A write of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Write {
    /// How many writes the client made before.
    pub number: u8,
    /// What is written to.
    pub key: u8,
    /// What is written.
    pub value: u8,
}

/// What the client and the servers say to each other. The application calls the client with `Put`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// A request to write.
    Put(Write),
    /// The primary of `view` has stored this write, and wants it stored by the backup.
    Replicate {
        /// The view of the primary.
        view: u8,
        /// What to store.
        write: Write,
    },
    /// The backup has stored the write with this number in `view`.
    Replicated {
        /// The view of the primary that asked for it.
        view: u8,
        /// The number of the write.
        number: u8,
    },
    /// There is a primary in this view.
    Heartbeat {
        /// The view.
        view: u8,
    },
    /// The write with this number is done.
    Done {
        /// The number of the write.
        number: u8,
    },
}

/// A server: the primary or the backup.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Whether it answers the client before the backup has the write.
    pub early_ack: bool,
}

/// What a server knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Store {
    view: u8,
    duty: Duty,
    /// The latest write to each key.
    latest: BTreeMap<u8, Write>,
}

/// What a server does in its view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Duty {
    /// It takes writes, and replicates them.
    Primary,
    /// It stores what the primary replicates, and watches it.
    Backup,
    /// It has taken over, and takes writes by itself.
    Alone,
    /// It was primary until the other took over.
    Retired,
}

impl Store {
    /// The view that the server is in.
    pub fn view(&self) -> u8 {
        self.view
    }

    /// What the server does in its view.
    pub fn duty(&self) -> Duty {
        self.duty
    }

    /// Whether the server takes writes.
    pub fn is_primary(&self) -> bool {
        matches!(self.duty, Duty::Primary | Duty::Alone)
    }

    /// Whether `write` is stored, or a later one to the same key.
    pub fn has_seen(&self, write: &Write) -> bool {
        self.latest
            .get(&write.key)
            .is_some_and(|latest| latest.number >= write.number)
    }

    fn store(&mut self, write: Write) {
        if !self.has_seen(&write) {
            self.latest.insert(write.key, write);
        }
    }
}

impl Server {
    fn set_timer(store: &Store, cx: &mut Context<Msg>) {
        match store.duty {
            Duty::Primary | Duty::Alone => cx.set_timer(HEARTBEAT, BEAT),
            Duty::Backup => cx.set_timer(SUSPICION, SILENCE),
            Duty::Retired => {}
        }
    }
}

impl Node for Server {
    type State = Store;
    type Msg = Msg;

    fn on_start(&self, cx: &mut Context<Msg>) -> Store {
        let store = Store {
            view: 0,
            duty: if cx.me() == NodeId(0) {
                Duty::Primary
            } else {
                Duty::Backup
            },
            latest: BTreeMap::new(),
        };
        Self::set_timer(&store, cx);
        store
    }

    fn on_message(&self, store: &mut Store, from: NodeId, msg: Msg, cx: &mut Context<Msg>) {
        match (msg, store.duty) {
            (Msg::Put(write), Duty::Primary) => {
                store.store(write);
                cx.send(
                    other(cx.me()),
                    Msg::Replicate {
                        view: store.view,
                        write,
                    },
                );
                if self.early_ack {
                    cx.send(
                        from,
                        Msg::Done {
                            number: write.number,
                        },
                    );
                }
            }
            (Msg::Put(write), Duty::Alone) => {
                store.store(write);
                cx.send(
                    from,
                    Msg::Done {
                        number: write.number,
                    },
                );
            }
            (Msg::Replicate { view, write }, Duty::Backup) if view == store.view => {
                store.store(write);
                cx.send(
                    from,
                    Msg::Replicated {
                        view,
                        number: write.number,
                    },
                );
            }
            (Msg::Replicated { view, number }, Duty::Primary)
                if view == store.view && !self.early_ack =>
            {
                cx.send(CLIENT, Msg::Done { number });
            }
            (Msg::Heartbeat { view }, Duty::Backup) if view == store.view => {
                Self::set_timer(store, cx)
            }
            (Msg::Heartbeat { view }, Duty::Primary) if view > store.view => {
                store.duty = Duty::Retired;
                cx.cancel_timer(HEARTBEAT);
            }
            _ => {}
        }
    }

    fn on_timer(&self, store: &mut Store, timer: Timer, cx: &mut Context<Msg>) {
        if timer == SUSPICION {
            store.view += 1;
            store.duty = Duty::Alone;
        }
        cx.send(other(cx.me()), Msg::Heartbeat { view: store.view });
        Self::set_timer(store, cx);
    }

    fn durable(&self, store: &Store) -> Option<Store> {
        Some(store.clone())
    }

    fn on_recover(&self, store: &mut Store, cx: &mut Context<Msg>) {
        Self::set_timer(store, cx);
    }
}

/// The server that `server` is not.
fn other(server: NodeId) -> NodeId {
    NodeId(SERVERS - 1 - server.0)
}

/// The client.
#[derive(Clone, Copy, Debug)]
pub struct Client;

/// What the client knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Requests {
    /// The server that it takes for the primary.
    primary: NodeId,
    waiting: Option<Write>,
    /// The writes that it knows to be done.
    acknowledged: Vec<Write>,
}

impl Client {
    fn request(requests: &Requests, cx: &mut Context<Msg>) {
        if let Some(write) = requests.waiting {
            cx.send(requests.primary, Msg::Put(write));
            cx.set_timer(RETRY, PATIENCE);
        }
    }
}

impl Node for Client {
    type State = Requests;
    type Msg = Msg;

    fn on_start(&self, _cx: &mut Context<Msg>) -> Requests {
        Requests {
            primary: NodeId(0),
            waiting: None,
            acknowledged: Vec::new(),
        }
    }

    fn on_call(&self, requests: &mut Requests, call: Msg, cx: &mut Context<Msg>) {
        let Msg::Put(write) = call else {
            panic!("the application can only write, and called {call:?}");
        };
        requests.waiting = Some(write);
        Self::request(requests, cx);
    }

    fn on_message(&self, requests: &mut Requests, _from: NodeId, msg: Msg, cx: &mut Context<Msg>) {
        if let (Msg::Done { number }, Some(write)) = (msg, requests.waiting)
            && write.number == number
        {
            requests.waiting = None;
            requests.acknowledged.push(write);
            cx.cancel_timer(RETRY);
            cx.answer(msg);
        }
    }

    fn on_timer(&self, requests: &mut Requests, _retry: Timer, cx: &mut Context<Msg>) {
        requests.primary = other(requests.primary);
        Self::request(requests, cx);
    }

    fn durable(&self, requests: &Requests) -> Option<Requests> {
        Some(Requests {
            waiting: None,
            ..requests.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use dragnet::{crashes, drops, restarts};

    use super::*;
    use crate::testing::{bug_verdict, default_verdict, verdict};

    #[test]
    fn two_writes_survive_a_change_of_primary() {
        let verdict = default_verdict(&entry());
        verdict.assert_holds();
        assert_eq!(verdict.states(), 14_716);
    }

    #[test]
    fn crashes_and_losses_do_no_harm() {
        let faults = crashes(1).and(drops(1));
        verdict(&entry(), |selection| Ok(selection.with_faults(faults))).assert_holds();
    }

    #[test]
    fn a_crash_for_good_does_no_harm() {
        let faults = crashes(1).and(restarts(0));
        verdict(&entry(), |selection| Ok(selection.with_faults(faults))).assert_holds();
    }

    #[test]
    fn a_write_that_is_acknowledged_early_can_be_lost() {
        assert!(!bug_verdict(&entry(), "early-ack").holds());
    }

    #[test]
    fn writes_are_written_before_they_are_acknowledged() {
        Check::new(cluster(2, false))
            .always("acknowledged means written", |s| {
                !acknowledged(s, 1) || written(s, 1)
            })
            .reachable("the second write is acknowledged", |s| acknowledged(s, 1))
            .run()
            .assert_holds();
    }
}
