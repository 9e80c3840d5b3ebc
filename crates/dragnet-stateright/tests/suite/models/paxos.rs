//! Single-decree Paxos behind a register: a put is a proposal, and who knows the decision answers a get.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use stateright::actor::register::{RegisterActor, RegisterMsg};
use stateright::actor::{Actor, ActorModel, Id, Out, majority, model_peers};

use super::single_copy::{History, register};

type Msg = RegisterMsg<u64, char, Internal>;
type Ballot = (u32, Id);
/// What a client put: its request, who it is, the value.
type Proposal = (u64, Id, char);
type Vote = (Ballot, Proposal);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Internal {
    Prepare(Ballot),
    Promise(Ballot, Option<Vote>),
    Accept(Vote),
    Accepted(Ballot),
    Decided(Vote),
}

pub struct Paxos {
    others: Vec<Id>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    ballot: Ballot,
    vote: Option<Vote>,
    decided: bool,
    proposal: Option<Proposal>,
    promises: BTreeMap<Id, Option<Vote>>,
    accepted_by: BTreeSet<Id>,
}

impl Server {
    pub fn decision(&self) -> Option<char> {
        self.vote
            .filter(|_| self.decided)
            .map(|(_, (_, _, value))| value)
    }
}

impl Paxos {
    fn tell(&self, what: Internal, out: &mut Out<Self>) {
        out.broadcast(&self.others, &Msg::Internal(what));
    }

    fn is_majority(&self, servers: usize) -> bool {
        servers == majority(self.others.len() + 1)
    }
}

impl Actor for Paxos {
    type Msg = Msg;
    type State = Server;
    type Timer = ();
    type Random = ();
    type Storage = ();

    fn on_start(&self, _: Id, _: &Option<()>, _: &mut Out<Self>) -> Server {
        Server {
            ballot: (0, Id::from(0)),
            vote: None,
            decided: false,
            proposal: None,
            promises: BTreeMap::new(),
            accepted_by: BTreeSet::new(),
        }
    }

    fn on_msg(
        &self,
        me: Id,
        server: &mut Cow<'_, Server>,
        from: Id,
        msg: Msg,
        out: &mut Out<Self>,
    ) {
        if let Some(value) = server.decision() {
            if let Msg::Get(request) = msg {
                out.send(from, Msg::GetOk(request, value));
            }
            return;
        }
        match msg {
            Msg::Put(request, value) if server.proposal.is_none() => {
                let server = server.to_mut();
                server.proposal = Some((request, from, value));
                server.ballot = (server.ballot.0 + 1, me);
                server.promises = BTreeMap::from([(me, server.vote)]);
                self.tell(Internal::Prepare(server.ballot), out);
            }
            Msg::Internal(Internal::Prepare(ballot)) if ballot > server.ballot => {
                let server = server.to_mut();
                server.ballot = ballot;
                out.send(from, Msg::Internal(Internal::Promise(ballot, server.vote)));
            }
            Msg::Internal(Internal::Promise(ballot, vote)) if ballot == server.ballot => {
                let server = server.to_mut();
                server.promises.insert(from, vote);
                if self.is_majority(server.promises.len()) {
                    // What may have been chosen before must be proposed again.
                    let last = server.promises.values().flatten().max();
                    let proposal = last.map(|&(_, proposal)| proposal).or(server.proposal);
                    let proposal = proposal.expect("who asked for promises has a proposal");
                    server.proposal = Some(proposal);
                    server.vote = Some((ballot, proposal));
                    server.accepted_by.insert(me);
                    self.tell(Internal::Accept((ballot, proposal)), out);
                }
            }
            Msg::Internal(Internal::Accept(vote)) if vote.0 >= server.ballot => {
                let server = server.to_mut();
                server.ballot = vote.0;
                server.vote = Some(vote);
                out.send(from, Msg::Internal(Internal::Accepted(vote.0)));
            }
            Msg::Internal(Internal::Accepted(ballot)) if ballot == server.ballot => {
                let server = server.to_mut();
                server.accepted_by.insert(from);
                if self.is_majority(server.accepted_by.len()) {
                    server.decided = true;
                    let proposal = server.proposal.expect("who asked for votes has a proposal");
                    self.tell(Internal::Decided((ballot, proposal)), out);
                    out.send(proposal.1, Msg::PutOk(proposal.0));
                }
            }
            Msg::Internal(Internal::Decided(vote)) => {
                let server = server.to_mut();
                server.ballot = vote.0;
                server.vote = Some(vote);
                server.decided = true;
            }
            _ => {}
        }
    }
}

pub fn servers(count: usize) -> impl ExactSizeIterator<Item = Paxos> {
    (0..count).map(move |me| Paxos {
        others: model_peers(me, count),
    })
}

pub fn model(replicas: usize, clients: usize) -> ActorModel<RegisterActor<Paxos>, (), History> {
    register(servers(replicas), clients)
}
