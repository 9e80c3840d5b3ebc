//! Two kinds of nodes in one cluster.

use std::fmt::{self, Debug};

use serde::{Deserialize, Serialize};

use super::{Context, Node, NodeId, Timer};

/// A node of one kind or of another: what [`Cluster::and`](super::Cluster::and) makes of two kinds.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Either<A, B> {
    /// The kind that was there first.
    Left(A),
    /// The kind that was added.
    Right(B),
}

impl<A: Debug, B: Debug> Debug for Either<A, B> {
    /// Shows what is inside: which kind it is goes without saying.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Either::Left(inner) => inner.fmt(f),
            Either::Right(inner) => inner.fmt(f),
        }
    }
}

/// Calls the same handler on whichever kind it is. A node and its state always agree in kind: states come only from
/// the node's own handlers, and from files whose states the node recognises.
macro_rules! either_kind {
    ($node:expr, $state:expr, |$n:ident, $s:ident| $body:expr) => {
        match ($node, $state) {
            (Either::Left($n), Either::Left($s)) => $body,
            (Either::Right($n), Either::Right($s)) => $body,
            _ => unreachable!("a node's state is of the node's own kind"),
        }
    };
}

impl<A, B> Node for Either<A, B>
where
    A: Node,
    B: Node<Msg = A::Msg>,
{
    type State = Either<A::State, B::State>;
    type Msg = A::Msg;

    fn on_start(&self, cx: &mut Context<A::Msg>) -> Self::State {
        match self {
            Either::Left(node) => Either::Left(node.on_start(cx)),
            Either::Right(node) => Either::Right(node.on_start(cx)),
        }
    }

    fn on_message(
        &self,
        state: &mut Self::State,
        from: NodeId,
        msg: A::Msg,
        cx: &mut Context<A::Msg>,
    ) {
        either_kind!(self, state, |node, state| node
            .on_message(state, from, msg, cx));
    }

    fn on_timer(&self, state: &mut Self::State, timer: Timer, cx: &mut Context<A::Msg>) {
        either_kind!(self, state, |node, state| node.on_timer(state, timer, cx));
    }

    fn on_call(&self, state: &mut Self::State, call: A::Msg, cx: &mut Context<A::Msg>) {
        either_kind!(self, state, |node, state| node.on_call(state, call, cx));
    }

    fn waiting(&self, state: &Self::State) -> bool {
        either_kind!(self, state, |node, state| node.waiting(state))
    }

    fn durable(&self, state: &Self::State) -> Option<Self::State> {
        match (self, state) {
            (Either::Left(node), Either::Left(state)) => node.durable(state).map(Either::Left),
            (Either::Right(node), Either::Right(state)) => node.durable(state).map(Either::Right),
            _ => unreachable!("a node's state is of the node's own kind"),
        }
    }

    fn on_recover(&self, state: &mut Self::State, cx: &mut Context<A::Msg>) {
        either_kind!(self, state, |node, state| node.on_recover(state, cx));
    }

    fn recognises(&self, state: &Self::State) -> bool {
        match (self, state) {
            (Either::Left(node), Either::Left(state)) => node.recognises(state),
            (Either::Right(node), Either::Right(state)) => node.recognises(state),
            _ => false,
        }
    }
}

/// A kind of node that a cluster has: what [`Snapshot::role`](super::Snapshot::role) can be asked for. `At` is found by
/// the compiler.
pub trait Role<N: Node, At>: Node {
    /// Whether a node is of kind `N`.
    fn is(&self) -> bool;
    /// The state of a node of kind `N`, if `state` is one.
    fn of(state: &Self::State) -> Option<&N::State>;
}

/// Marks where in an [`Either`] a kind stands.
#[derive(Debug)]
pub struct Added;

/// Marks where in an [`Either`] a kind stands.
#[derive(Debug)]
pub struct First;

/// Marks where in an [`Either`] a kind stands.
#[derive(Debug)]
pub struct Before<At>(At);

impl<A, B> Role<B, Added> for Either<A, B>
where
    A: Node,
    B: Node<Msg = A::Msg>,
{
    fn is(&self) -> bool {
        matches!(self, Either::Right(_))
    }

    fn of(state: &Self::State) -> Option<&B::State> {
        match state {
            Either::Left(_) => None,
            Either::Right(state) => Some(state),
        }
    }
}

impl<A, B> Role<A, First> for Either<A, B>
where
    A: Node,
    B: Node<Msg = A::Msg>,
{
    fn is(&self) -> bool {
        matches!(self, Either::Left(_))
    }

    fn of(state: &Self::State) -> Option<&A::State> {
        match state {
            Either::Left(state) => Some(state),
            Either::Right(_) => None,
        }
    }
}

impl<A, B, C, D, At> Role<C, Before<At>> for Either<Either<A, D>, B>
where
    C: Node,
    Either<A, D>: Role<C, At>,
    B: Node<Msg = <Either<A, D> as Node>::Msg>,
{
    fn is(&self) -> bool {
        match self {
            Either::Left(node) => node.is(),
            Either::Right(_) => false,
        }
    }

    fn of(state: &Self::State) -> Option<&C::State> {
        match state {
            Either::Left(state) => <Either<A, D> as Role<C, At>>::of(state),
            Either::Right(_) => None,
        }
    }
}
