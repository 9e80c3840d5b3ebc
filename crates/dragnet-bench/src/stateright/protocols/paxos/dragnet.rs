//! Paxos as nodes of a Dragnet cluster.

use dragnet::{Check, Cluster, Context, Node, NodeId, others};

use super::{Ballot, Internal, MAJORITY, Proposal, SERVERS, Server, Vote, agree};
use crate::stateright::protocols::dragnet_side;
use crate::stateright::protocols::register::{Client, Msg};
use crate::stateright::search::Search;

struct Paxos;

impl Node for Paxos {
    type State = Server;
    type Msg = Msg<Internal>;

    fn on_start(&self, _cx: &mut Context<Msg<Internal>>) -> Server {
        Server::default()
    }

    fn on_message(
        &self,
        server: &mut Server,
        from: NodeId,
        msg: Msg<Internal>,
        cx: &mut Context<Msg<Internal>>,
    ) {
        if let Some(decision) = server.decision() {
            if let Msg::Get(request) = msg {
                cx.send(from, Msg::GetOk(request, decision.value));
            }
            return;
        }
        let me = cx.me();
        match msg {
            Msg::Put(request, value) if server.proposal.is_none() => {
                server.proposal = Some(Proposal {
                    request,
                    client: from.0,
                    value,
                });
                server.ballot = Ballot {
                    round: server.ballot.round + 1,
                    leader: me.0,
                };
                server.promises.insert(me.0, server.accepted);
                tell_others(Internal::Prepare(server.ballot), cx);
            }
            Msg::Internal(Internal::Prepare(ballot)) if ballot > server.ballot => {
                server.ballot = ballot;
                cx.send(
                    from,
                    Msg::Internal(Internal::Prepared(ballot, server.accepted)),
                );
            }
            Msg::Internal(Internal::Prepared(ballot, accepted)) if ballot == server.ballot => {
                server.promises.insert(from.0, accepted);
                if server.promises.len() == MAJORITY {
                    let proposal = server.choose();
                    let vote = Vote { ballot, proposal };
                    server.proposal = Some(proposal);
                    server.accepted = Some(vote);
                    server.acceptances.insert(me.0);
                    tell_others(Internal::Accept(vote), cx);
                }
            }
            Msg::Internal(Internal::Accept(vote)) if vote.ballot >= server.ballot => {
                server.ballot = vote.ballot;
                server.accepted = Some(vote);
                cx.send(from, Msg::Internal(Internal::Accepted(vote.ballot)));
            }
            Msg::Internal(Internal::Accepted(ballot)) if ballot == server.ballot => {
                server.acceptances.insert(from.0);
                if server.acceptances.len() == MAJORITY {
                    server.decided = true;
                    let proposal = server.proposal.expect("a leader has proposed");
                    tell_others(Internal::Decided(Vote { ballot, proposal }), cx);
                    cx.send(proposal.client, Msg::PutOk(proposal.request));
                }
            }
            Msg::Internal(Internal::Decided(vote)) => {
                server.ballot = vote.ballot;
                server.accepted = Some(vote);
                server.decided = true;
            }
            _ => {}
        }
    }
}

fn tell_others(what: Internal, cx: &mut Context<Msg<Internal>>) {
    for server in others(cx.me(), SERVERS) {
        cx.send(server, Msg::Internal(what.clone()));
    }
}

/// Searches the whole space with this many clients, and counts its states.
pub fn check(clients: usize, search: Search) -> u64 {
    let cluster = Cluster::new(SERVERS, |_| Paxos).and(clients, |_| Client::of(SERVERS));
    let check = Check::new(cluster).always("agreement", |s| {
        agree(s.role::<Paxos, _>().map(|(_, server)| server))
    });
    dragnet_side::states(check, search)
}
