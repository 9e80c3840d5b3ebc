//! Paxos as actors of a Stateright model.

use std::borrow::Cow;

use stateright::Expectation;
use stateright::actor::register::{RegisterActor, RegisterMsg};
use stateright::actor::{Actor, ActorModel, Id, Network, Out, model_peers};

use super::{Ballot, Internal, MAJORITY, Proposal, SERVERS, Server, Vote, agree};
use crate::stateright::protocols::register::Request;
use crate::stateright::protocols::stateright_side;
use crate::stateright::search::Search;

type Msg = RegisterMsg<Request, char, Internal>;

struct Paxos {
    others: Vec<Id>,
}

impl Actor for Paxos {
    type Msg = Msg;
    type State = Server;
    type Timer = ();
    type Random = ();
    type Storage = ();

    fn on_start(&self, _me: Id, _storage: &Option<()>, _out: &mut Out<Self>) -> Server {
        Server::default()
    }

    fn on_msg(
        &self,
        me: Id,
        server: &mut Cow<'_, Server>,
        from: Id,
        msg: Msg,
        out: &mut Out<Self>,
    ) {
        if let Some(decision) = server.decision() {
            if let Msg::Get(request) = msg {
                out.send(from, Msg::GetOk(request, decision.value));
            }
            return;
        }
        let (me, from_index) = (usize::from(me), usize::from(from));
        match msg {
            Msg::Put(request, value) if server.proposal.is_none() => {
                let server = server.to_mut();
                server.proposal = Some(Proposal {
                    request,
                    client: from_index,
                    value,
                });
                server.ballot = Ballot {
                    round: server.ballot.round + 1,
                    leader: me,
                };
                server.promises.insert(me, server.accepted);
                self.tell_others(Internal::Prepare(server.ballot), out);
            }
            Msg::Internal(Internal::Prepare(ballot)) if ballot > server.ballot => {
                server.to_mut().ballot = ballot;
                out.send(
                    from,
                    Msg::Internal(Internal::Prepared(ballot, server.accepted)),
                );
            }
            Msg::Internal(Internal::Prepared(ballot, accepted)) if ballot == server.ballot => {
                let server = server.to_mut();
                server.promises.insert(from_index, accepted);
                if server.promises.len() == MAJORITY {
                    let proposal = server.choose();
                    let vote = Vote { ballot, proposal };
                    server.proposal = Some(proposal);
                    server.accepted = Some(vote);
                    server.acceptances.insert(me);
                    self.tell_others(Internal::Accept(vote), out);
                }
            }
            Msg::Internal(Internal::Accept(vote)) if vote.ballot >= server.ballot => {
                let server = server.to_mut();
                server.ballot = vote.ballot;
                server.accepted = Some(vote);
                out.send(from, Msg::Internal(Internal::Accepted(vote.ballot)));
            }
            Msg::Internal(Internal::Accepted(ballot)) if ballot == server.ballot => {
                let server = server.to_mut();
                server.acceptances.insert(from_index);
                if server.acceptances.len() == MAJORITY {
                    server.decided = true;
                    let proposal = server.proposal.expect("a leader has proposed");
                    self.tell_others(Internal::Decided(Vote { ballot, proposal }), out);
                    out.send(proposal.client.into(), Msg::PutOk(proposal.request));
                }
            }
            Msg::Internal(Internal::Decided(vote)) => {
                let server = server.to_mut();
                server.ballot = vote.ballot;
                server.accepted = Some(vote);
                server.decided = true;
            }
            _ => {}
        }
    }
}

impl Paxos {
    fn tell_others(&self, what: Internal, out: &mut Out<Self>) {
        out.broadcast(&self.others, &Msg::Internal(what));
    }
}

/// Searches the whole space with this many clients, and counts its states.
pub fn check(clients: usize, search: Search) -> u64 {
    let servers = (0..SERVERS).map(|me| {
        RegisterActor::Server(Paxos {
            others: model_peers(me, SERVERS),
        })
    });
    let clients = (0..clients).map(|_| RegisterActor::Client {
        put_count: 1,
        server_count: SERVERS,
    });
    let model = ActorModel::new((), ())
        .actors(servers)
        .actors(clients)
        .init_network(Network::new_unordered_nonduplicating([]))
        .property(Expectation::Always, "agreement", |_, state| {
            agree(stateright_side::servers(&state.actor_states))
        });
    stateright_side::states(model, search)
}
