//! The ABD register as nodes of a Dragnet cluster.

use std::collections::BTreeSet;

use dragnet::{Check, Cluster, Context, Node, NodeId, others};

use super::{Internal, Phase, Server, majority, stamps_are_unique};
use crate::stateright::protocols::dragnet_side;
use crate::stateright::protocols::register::{Client, Msg};
use crate::stateright::search::Search;

struct Abd {
    servers: usize,
}

impl Node for Abd {
    type State = Server;
    type Msg = Msg<Internal>;

    fn on_start(&self, cx: &mut Context<Msg<Internal>>) -> Server {
        Server::new(cx.me().0)
    }

    fn on_message(
        &self,
        server: &mut Server,
        from: NodeId,
        msg: Msg<Internal>,
        cx: &mut Context<Msg<Internal>>,
    ) {
        let me = cx.me().0;
        match msg {
            Msg::Put(request, value) if server.phase.is_none() => {
                server.phase = Some(server.ask(me, request, from.0, Some(value)));
                self.tell_others(Internal::Query(request), cx);
            }
            Msg::Get(request) if server.phase.is_none() => {
                server.phase = Some(server.ask(me, request, from.0, None));
                self.tell_others(Internal::Query(request), cx);
            }
            Msg::Internal(Internal::Query(request)) => {
                cx.send(from, Msg::Internal(Internal::Holds(request, server.held)));
            }
            Msg::Internal(Internal::Holds(asked, held)) if server.is_asking_for(asked) => {
                if let Some(Phase::Asking {
                    request,
                    client,
                    write,
                    answers,
                }) = &mut server.phase
                {
                    answers.insert(from.0, held);
                    if answers.len() == majority(self.servers) {
                        let record = Server::to_record(me, answers, *write);
                        let phase = Phase::Recording {
                            request: *request,
                            client: *client,
                            read: write.is_none().then_some(record.value),
                            recorded: BTreeSet::from([me]),
                        };
                        self.tell_others(Internal::Record(*request, record), cx);
                        server.record(record);
                        server.phase = Some(phase);
                    }
                }
            }
            Msg::Internal(Internal::Record(request, stamped)) => {
                cx.send(from, Msg::Internal(Internal::Recorded(request)));
                server.record(stamped);
            }
            Msg::Internal(Internal::Recorded(asked)) if server.is_recording_for(asked) => {
                if let Some(Phase::Recording {
                    request,
                    client,
                    read,
                    recorded,
                }) = &mut server.phase
                {
                    recorded.insert(from.0);
                    if recorded.len() == majority(self.servers) {
                        let answer = match *read {
                            Some(value) => Msg::GetOk(*request, value),
                            None => Msg::PutOk(*request),
                        };
                        cx.send(*client, answer);
                        server.phase = None;
                    }
                }
            }
            _ => {}
        }
    }
}

impl Abd {
    fn tell_others(&self, what: Internal, cx: &mut Context<Msg<Internal>>) {
        for server in others(cx.me(), self.servers) {
            cx.send(server, Msg::Internal(what.clone()));
        }
    }
}

/// Searches the whole space with this many servers and clients, and counts its states.
pub fn check(servers: usize, clients: usize, search: Search) -> u64 {
    let cluster = Cluster::new(servers, |_| Abd { servers }).and(clients, |_| Client::of(servers));
    let check = Check::new(cluster).always("a stamp stands for one value", |s| {
        stamps_are_unique(|| s.role::<Abd, _>().map(|(_, server)| server))
    });
    dragnet_side::states(check, search)
}
