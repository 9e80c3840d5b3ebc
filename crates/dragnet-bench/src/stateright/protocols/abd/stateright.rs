//! The ABD register as actors of a Stateright model.

use std::borrow::Cow;
use std::collections::BTreeSet;

use stateright::Expectation;
use stateright::actor::register::{RegisterActor, RegisterMsg};
use stateright::actor::{Actor, ActorModel, Id, Network, Out, model_peers};

use super::{Internal, Phase, Server, majority, stamps_are_unique};
use crate::stateright::protocols::register::Request;
use crate::stateright::protocols::stateright_side;
use crate::stateright::search::Search;

type Msg = RegisterMsg<Request, char, Internal>;

struct Abd {
    others: Vec<Id>,
}

impl Actor for Abd {
    type Msg = Msg;
    type State = Server;
    type Timer = ();
    type Random = ();
    type Storage = ();

    fn on_start(&self, me: Id, _storage: &Option<()>, _out: &mut Out<Self>) -> Server {
        Server::new(me.into())
    }

    fn on_msg(
        &self,
        me: Id,
        server: &mut Cow<'_, Server>,
        from: Id,
        msg: Msg,
        out: &mut Out<Self>,
    ) {
        let (me, from_index) = (usize::from(me), usize::from(from));
        match msg {
            Msg::Put(request, value) if server.phase.is_none() => {
                let server = server.to_mut();
                server.phase = Some(server.ask(me, request, from_index, Some(value)));
                self.tell_others(Internal::Query(request), out);
            }
            Msg::Get(request) if server.phase.is_none() => {
                let server = server.to_mut();
                server.phase = Some(server.ask(me, request, from_index, None));
                self.tell_others(Internal::Query(request), out);
            }
            Msg::Internal(Internal::Query(request)) => {
                out.send(from, Msg::Internal(Internal::Holds(request, server.held)));
            }
            Msg::Internal(Internal::Holds(asked, held)) if server.is_asking_for(asked) => {
                let server = server.to_mut();
                if let Some(Phase::Asking {
                    request,
                    client,
                    write,
                    answers,
                }) = &mut server.phase
                {
                    answers.insert(from_index, held);
                    if answers.len() == self.majority() {
                        let record = Server::to_record(me, answers, *write);
                        let phase = Phase::Recording {
                            request: *request,
                            client: *client,
                            read: write.is_none().then_some(record.value),
                            recorded: BTreeSet::from([me]),
                        };
                        self.tell_others(Internal::Record(*request, record), out);
                        server.record(record);
                        server.phase = Some(phase);
                    }
                }
            }
            Msg::Internal(Internal::Record(request, stamped)) => {
                out.send(from, Msg::Internal(Internal::Recorded(request)));
                if stamped.stamp > server.held.stamp {
                    server.to_mut().record(stamped);
                }
            }
            Msg::Internal(Internal::Recorded(asked)) if server.is_recording_for(asked) => {
                let server = server.to_mut();
                if let Some(Phase::Recording {
                    request,
                    client,
                    read,
                    recorded,
                }) = &mut server.phase
                {
                    recorded.insert(from_index);
                    if recorded.len() == self.majority() {
                        let answer = match *read {
                            Some(value) => Msg::GetOk(*request, value),
                            None => Msg::PutOk(*request),
                        };
                        out.send((*client).into(), answer);
                        server.phase = None;
                    }
                }
            }
            _ => {}
        }
    }
}

impl Abd {
    fn majority(&self) -> usize {
        majority(self.others.len() + 1)
    }

    fn tell_others(&self, what: Internal, out: &mut Out<Self>) {
        out.broadcast(&self.others, &Msg::Internal(what));
    }
}

/// Searches the whole space with this many servers and clients, and counts its states.
pub fn check(servers: usize, clients: usize, search: Search) -> u64 {
    let replicas = (0..servers).map(|me| {
        RegisterActor::Server(Abd {
            others: model_peers(me, servers),
        })
    });
    let clients = (0..clients).map(|_| RegisterActor::Client {
        put_count: 1,
        server_count: servers,
    });
    let model = ActorModel::new((), ())
        .actors(replicas)
        .actors(clients)
        .init_network(Network::new_unordered_nonduplicating([]))
        .property(
            Expectation::Always,
            "a stamp stands for one value",
            |_, state| stamps_are_unique(|| stateright_side::servers(&state.actor_states)),
        );
    stateright_side::states(model, search)
}
