//! A register that each server keeps for itself alone.

use std::borrow::Cow;

use stateright::Expectation;
use stateright::actor::register::{RegisterActor, RegisterMsg};
use stateright::actor::{Actor, ActorModel, Id, Network, Out};
use stateright::semantics::LinearizabilityTester;
use stateright::semantics::register::Register;

/// What clients of a register did and saw.
pub type History = LinearizabilityTester<Id, Register<char>>;

type Msg = RegisterMsg<u64, char, ()>;

pub struct SingleCopy;

impl Actor for SingleCopy {
    type Msg = Msg;
    type State = char;
    type Timer = ();
    type Random = ();
    type Storage = ();

    fn on_start(&self, _: Id, _: &Option<()>, _: &mut Out<Self>) -> char {
        char::default()
    }

    fn on_msg(&self, _: Id, held: &mut Cow<'_, char>, from: Id, msg: Msg, out: &mut Out<Self>) {
        match msg {
            Msg::Put(request, value) => {
                *held = Cow::Owned(value);
                out.send(from, Msg::PutOk(request));
            }
            Msg::Get(request) => out.send(from, Msg::GetOk(request, **held)),
            _ => {}
        }
    }
}

pub fn model(servers: usize, clients: usize) -> ActorModel<RegisterActor<SingleCopy>, (), History> {
    register((0..servers).map(|_| SingleCopy), clients)
}

/// Servers of a register with clients that each put a value and then get, on an unordered network, judged by the history
/// of what the clients saw.
pub fn register<A, I>(
    servers: impl ExactSizeIterator<Item = A>,
    clients: usize,
) -> ActorModel<RegisterActor<A>, (), History>
where
    A: Actor<Msg = RegisterMsg<u64, char, I>>,
    A::Timer: Ord,
    RegisterMsg<u64, char, I>: Clone + std::fmt::Debug + Ord + std::hash::Hash,
    I: Clone + std::fmt::Debug + Ord + std::hash::Hash,
{
    ActorModel::new((), History::new(Register(char::default())))
        .actors(register_actors(servers, clients))
        .init_network(Network::new_unordered_nonduplicating([]))
        .record_msg_in(RegisterMsg::record_returns)
        .record_msg_out(RegisterMsg::record_invocations)
        .property(Expectation::Always, "linearizable", |_, state| {
            state.history.serialized_history().is_some()
        })
        .property(Expectation::Sometimes, "a value is read", |_, state| {
            state.network.iter_deliverable().any(
                |sent| matches!(sent.msg, RegisterMsg::GetOk(_, value) if *value != char::default()),
            )
        })
}

/// The servers, then the clients.
pub fn register_actors<A>(
    servers: impl ExactSizeIterator<Item = A>,
    clients: usize,
) -> Vec<RegisterActor<A>> {
    let server_count = servers.len();
    let clients = (0..clients).map(|_| RegisterActor::Client {
        put_count: 1,
        server_count,
    });
    servers.map(RegisterActor::Server).chain(clients).collect()
}
