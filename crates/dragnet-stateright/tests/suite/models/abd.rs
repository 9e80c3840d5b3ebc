//! The register of Attiya, Bar-Noy and Dolev: each operation asks a majority, then has a majority store.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use stateright::actor::register::{RegisterActor, RegisterMsg};
use stateright::actor::{Actor, ActorModel, Id, Out, majority, model_peers};

use super::single_copy::{History, register};

type Msg = RegisterMsg<u64, char, Internal>;
/// Later ones win; the server makes them unique.
type Stamp = (u64, Id);
type Version = (Stamp, char);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Internal {
    Ask(u64),
    Has(u64, Version),
    Store(u64, Version),
    Stored(u64),
}

pub struct Abd {
    others: Vec<Id>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    version: Version,
    work: Option<Work>,
}

/// What a replica does for a client, one thing at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Work {
    request: u64,
    client: Id,
    step: Step,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    Asking {
        put: Option<char>,
        versions: BTreeMap<Id, Version>,
    },
    Storing {
        got: Option<char>,
        stored: BTreeSet<Id>,
    },
}

impl Abd {
    fn majority(&self) -> usize {
        majority(self.others.len() + 1)
    }
}

impl Actor for Abd {
    type Msg = Msg;
    type State = Replica;
    type Timer = ();
    type Random = ();
    type Storage = ();

    fn on_start(&self, me: Id, _: &Option<()>, _: &mut Out<Self>) -> Replica {
        Replica {
            version: ((0, me), char::default()),
            work: None,
        }
    }

    fn on_msg(
        &self,
        me: Id,
        replica: &mut Cow<'_, Replica>,
        from: Id,
        msg: Msg,
        out: &mut Out<Self>,
    ) {
        let (request, put) = match msg {
            Msg::Put(request, value) => (request, Some(value)),
            Msg::Get(request) => (request, None),
            Msg::Internal(internal) => return self.on_internal(me, replica, from, internal, out),
            Msg::PutOk(_) | Msg::GetOk(..) => return,
        };
        if replica.work.is_none() {
            let versions = BTreeMap::from([(me, replica.version)]);
            replica.to_mut().work = Some(Work {
                request,
                client: from,
                step: Step::Asking { put, versions },
            });
            out.broadcast(&self.others, &Msg::Internal(Internal::Ask(request)));
        }
    }
}

impl Abd {
    fn on_internal(
        &self,
        me: Id,
        replica: &mut Cow<'_, Replica>,
        from: Id,
        msg: Internal,
        out: &mut Out<Self>,
    ) {
        let working_on = replica.work.as_ref().map(|work| (work.request, &work.step));
        match (msg, working_on) {
            (Internal::Ask(request), _) => {
                out.send(from, Msg::Internal(Internal::Has(request, replica.version)));
            }
            (Internal::Store(request, version), _) => {
                out.send(from, Msg::Internal(Internal::Stored(request)));
                if version.0 > replica.version.0 {
                    replica.to_mut().version = version;
                }
            }
            (Internal::Has(request, version), Some((current, Step::Asking { put, versions })))
                if request == current =>
            {
                let (put, mut versions) = (*put, versions.clone());
                versions.insert(from, version);
                let enough = versions.len() == self.majority();
                let latest = versions.values().max().copied().unwrap_or(version);
                let replica = replica.to_mut();
                let step = if enough {
                    let store = put.map_or(latest, |value| ((latest.0.0 + 1, me), value));
                    out.broadcast(
                        &self.others,
                        &Msg::Internal(Internal::Store(request, store)),
                    );
                    replica.version = replica.version.max(store);
                    Step::Storing {
                        got: put.is_none().then_some(store.1),
                        stored: BTreeSet::from([me]),
                    }
                } else {
                    Step::Asking { put, versions }
                };
                if let Some(work) = &mut replica.work {
                    work.step = step;
                }
            }
            (Internal::Stored(request), Some((current, Step::Storing { stored, .. })))
                if request == current && !stored.contains(&from) =>
            {
                let majority = self.majority();
                let replica = replica.to_mut();
                if let Some(Work {
                    client,
                    step: Step::Storing { got, stored },
                    ..
                }) = &mut replica.work
                {
                    stored.insert(from);
                    if stored.len() == majority {
                        let answer =
                            got.map_or(Msg::PutOk(request), |value| Msg::GetOk(request, value));
                        out.send(*client, answer);
                        replica.work = None;
                    }
                }
            }
            _ => {}
        }
    }
}

pub fn servers(count: usize) -> impl ExactSizeIterator<Item = Abd> {
    (0..count).map(move |me| Abd {
        others: model_peers(me, count),
    })
}

pub fn model(replicas: usize, clients: usize) -> ActorModel<RegisterActor<Abd>, (), History> {
    register(servers(replicas), clients)
}
