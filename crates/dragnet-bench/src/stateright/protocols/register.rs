//! A register and its clients, as Stateright's `actor::register` has them, for Dragnet.
//!
//! A client puts one value at one server and, when that is done, gets from the next. Stateright brings its own client;
//! this one sends the same requests in the same order.

use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;

use dragnet::{Context, Node, NodeId};

/// The number of a request. Each client uses multiples of its id.
pub type Request = u64;

/// What clients and servers say to each other; `I` is what the servers say among themselves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Msg<I> {
    /// Between servers.
    Internal(I),
    /// Writes a value.
    Put(Request, char),
    /// Asks for the value.
    Get(Request),
    /// The value has been written.
    PutOk(Request),
    /// The value is this.
    GetOk(Request, char),
}

/// Puts one value, then gets. Clients come after the servers, which are the first `servers` nodes.
pub struct Client<I> {
    servers: usize,
    between_servers: PhantomData<fn() -> I>,
}

/// How far a client is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Progress {
    awaiting: Option<Request>,
    requests: u64,
}

impl<I> Client<I> {
    /// A client of these servers.
    pub fn of(servers: usize) -> Self {
        Self {
            servers,
            between_servers: PhantomData,
        }
    }

    /// The server that client `me` turns to after `requests` requests.
    fn server(&self, me: NodeId, requests: u64) -> NodeId {
        NodeId((me.0 + requests as usize) % self.servers)
    }
}

impl<I> Node for Client<I>
where
    I: Clone + Eq + Hash + Debug + Send + Sync + 'static,
{
    type State = Progress;
    type Msg = Msg<I>;

    fn on_start(&self, cx: &mut Context<Msg<I>>) -> Progress {
        let me = cx.me();
        let request = me.0 as Request;
        let value = char::from(b'A' + (me.0 - self.servers) as u8);
        cx.send(self.server(me, 0), Msg::Put(request, value));
        Progress {
            awaiting: Some(request),
            requests: 1,
        }
    }

    fn on_message(
        &self,
        progress: &mut Progress,
        _from: NodeId,
        msg: Msg<I>,
        cx: &mut Context<Msg<I>>,
    ) {
        match msg {
            Msg::PutOk(request) if progress.awaiting == Some(request) => {
                let me = cx.me();
                let next = (progress.requests + 1) * me.0 as Request;
                cx.send(self.server(me, progress.requests), Msg::Get(next));
                progress.awaiting = Some(next);
                progress.requests += 1;
            }
            Msg::GetOk(request, _) if progress.awaiting == Some(request) => {
                progress.awaiting = None;
                progress.requests += 1;
            }
            _ => {}
        }
    }
}
