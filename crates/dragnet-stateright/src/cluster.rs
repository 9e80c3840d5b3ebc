//! Actors as a cluster of nodes.

use dragnet::Cluster;
use stateright::actor::Network;
use thiserror::Error;

use crate::node::{ActorNode, CheckableActor};

/// A cluster of these actors, in this order, on the network that equals `network`.
///
/// | Stateright | Dragnet |
/// |---|---|
/// | `new_unordered_nonduplicating` | [`Network::unordered`](dragnet::nodes::Network::unordered) |
/// | `new_ordered` | [`Network::ordered`](dragnet::nodes::Network::ordered) |
/// | `new_unordered_duplicating` | refused: it delivers a message again without end |
/// | messages in the initial network | refused: a cluster begins with what its nodes send |
///
/// What else an [`ActorModel`](stateright::actor::ActorModel) says stays behind, and is said of the cluster and its check
/// anew: history (none), properties, the boundary ([`Check::within`](dragnet::Check::within)), losses and crashes
/// ([`Cluster::faults`]). Fault budgets count what happens in one execution, where Stateright's lossy network loses
/// without end and its `max_crashes` counts those that are down at the same time.
///
/// ```
/// # use std::borrow::Cow;
/// # use stateright::actor::{Actor, Id, Out};
/// # struct Greeter { next: Id }
/// # impl Actor for Greeter {
/// #     type Msg = &'static str;
/// #     type State = u8;
/// #     type Timer = ();
/// #     type Random = ();
/// #     type Storage = ();
/// #     fn on_start(&self, _: Id, _: &Option<()>, out: &mut Out<Self>) -> u8 {
/// #         out.send(self.next, "hello");
/// #         0
/// #     }
/// #     fn on_msg(&self, _: Id, heard: &mut Cow<u8>, _: Id, _: &'static str, _: &mut Out<Self>) {
/// #         *heard.to_mut() += 1;
/// #     }
/// # }
/// use dragnet::{Check, drops};
/// use stateright::actor::Network;
///
/// let greeters = [Greeter { next: 1.into() }, Greeter { next: 0.into() }];
/// let cluster = dragnet_stateright::cluster(greeters, &Network::new_ordered([])).unwrap();
///
/// Check::new(cluster)
///     .always("nobody hears it twice", |s| s.nodes().all(|heard| **heard < 2))
///     .faults(drops(1))
///     .run()
///     .assert_holds();
/// ```
pub fn cluster<A: CheckableActor>(
    actors: impl IntoIterator<Item = A>,
    network: &Network<A::Msg>,
) -> Result<Cluster<ActorNode<A>>, NoEquivalent> {
    let equivalent = match network {
        Network::UnorderedDuplicating(..) => return Err(NoEquivalent::Duplicating),
        Network::UnorderedNonDuplicating(_) => dragnet::nodes::Network::unordered(),
        Network::Ordered(_) => dragnet::nodes::Network::ordered(),
    };
    if network.len() > 0 {
        return Err(NoEquivalent::InFlight(network.len()));
    }
    let actors: Vec<A> = actors.into_iter().collect();
    let mut each = actors.into_iter();
    let count = each.len();
    let cluster = Cluster::new(count, |id| {
        ActorNode::new(id, each.next().expect("there is an actor for each node"))
    });
    Ok(cluster.network(equivalent))
}

/// A network that Dragnet's nodes do not have.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum NoEquivalent {
    /// Every message can arrive again without end.
    #[error(
        "an unordered duplicating network delivers messages again without end, and nodes have a budget for that: take \
         an unordered nonduplicating one and `faults(duplicates(n))`, or check the actor model itself"
    )]
    Duplicating,
    /// There are messages before anybody has sent one.
    #[error(
        "the initial network holds messages ({0}), and a cluster begins with what its nodes send: send them in \
         `on_start`, or check the actor model itself"
    )]
    InFlight(usize),
}
