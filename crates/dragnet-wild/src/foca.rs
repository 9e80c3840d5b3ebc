//! Cluster membership with [`foca`](https://docs.rs/foca/1): SWIM, where members probe each other, suspect those who do not
//! answer, and declare them down unless they refute it.
//!
//! The cluster begins quiet: everybody knows everybody, as after `apply_many` of a saved state, and nothing is in flight.
//! From then on only foca acts. Its timers run out in the order in which they are due on that member, for foca wants them
//! so; how fast time passes on one member compared with another, or with the network, is explored in every way. When two
//! are due at once the order is that of foca's own `Ord`. Its random numbers come from a small generator with a fixed seed.
//!
//! The configuration is `Config::new_lan`, with `notify_down_members` and `periodic_announce_to_down_members` as there. What
//! only makes news spread faster (`periodic_gossip`, `periodic_announce`) is off, and suspicion and announcements take a few
//! probe periods instead of minutes, so that they come up within few steps. Identities renew themselves, as the example that
//! comes with foca does it; with `identity` set to `plain` they are bare addresses, like the `SocketAddr` for which foca
//! implements `Identity` itself.
//!
//! What must hold, of executions in which at most `timers` timers run out on each member:
//!
//! - *No storm.* What is sent when a timer runs out is answered, and the answers may be answered, but not more than
//!   `storm` times in a row. The longest chain that probing takes has four messages; where no timer runs out, messages that
//!   never end are a chain that never ends.
//! - *Nobody is down for ever.* A member acts by itself while it knows somebody active and has a timer that does more than
//!   forget somebody: when the last active member goes, foca turns to ignoring its timers. When nothing is in flight and
//!   nobody acts by itself, nothing will ever happen again, whether or not the network is whole by then. Nobody who is alive
//!   may then be down in the eyes of another. This is asked of renewing identities only: a plain one that is down stays so,
//!   as foca says, until it is forgotten.
//!
//! A member is an opaque node without a digest: foca hides its probes and its backlog of updates. Two states of it are one
//! only when the same happened to it, so spaces are large for what they are. The network is unordered, and a link carries at
//! most `packets` packets; what is sent beyond that is lost, as it may be over UDP.

use std::collections::BTreeSet;
use std::fmt::{self, Debug};
use std::num::NonZeroU32;
use std::time::Duration;

use ::foca::{
    AccumulatingRuntime, Codec, Config, Error, Foca, Header, Identity, NoCustomBroadcast,
    PeriodicParams, PostcardCodec, State,
};
use dragnet::catalog::Entry;
use dragnet::nodes::{Network, Opaque, OpaqueNode};
use dragnet::{Check, Cluster, Context, NodeId, Timer, others, partitions};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde::{Deserialize, Serialize};

/// The members under the name `foca`.
pub fn entry() -> Entry {
    Entry::new("foca", "cluster membership with foca 1", |setup| {
        let renews = setup.choice("identity") == "renewing";
        let (packets, timers) = (setup.number("packets"), setup.number("timers"));
        let cluster = cluster(setup.number("members"), renews, packets, timers);
        check(cluster, renews, setup.number("storm"))
    })
    .choice(
        "identity",
        ["renewing", "plain"],
        "whether members that are declared down come back under a new identity",
    )
    .parameter("members", 2, 2..=4, "how many members there are")
    .parameter(
        "timers",
        6,
        0..=100,
        "how many timers run out on each member",
    )
    .parameter("packets", 1, 1..=16, "how many packets a link carries")
    .parameter(
        "storm",
        8,
        4..=100,
        "how often an answer may be answered in turn",
    )
    .faults(partitions(1))
}

fn check(
    cluster: Cluster<Opaque<Member>>,
    renews: bool,
    storm: u64,
) -> Check<Cluster<Opaque<Member>>> {
    let check = Check::new(cluster)
        .always("no storm", move |s| {
            s.nodes().all(|member| member.longest_chain <= storm)
        })
        .reachable("a member is declared down", |s| {
            s.nodes().any(|member| !member.down.is_empty())
        });
    if !renews {
        return check;
    }
    check.always_with_messages("nobody is down for ever", |s, messages| {
        let over = messages.is_empty() && s.nodes().all(|member| !member.goes_on);
        let is_alive = |id: &Id| s.node(id.node).is_some();
        !over || s.nodes().all(|member| !member.down.iter().any(is_alive))
    })
}

/// So many members, whose links carry so many packets and whose timers run out so often.
pub fn cluster(
    members: usize,
    renews: bool,
    packets: usize,
    timers: u32,
) -> Cluster<Opaque<Member>> {
    Cluster::new(members, |_| Opaque::new(Member { renews }))
        .network(Network::unordered().capacity(packets))
        .timer_budget(NEXT, timers)
}

/// The next of a member's timers.
const NEXT: Timer = Timer::new("next");

/// Who a member is: the node that it runs on, and how often it came back if it ever does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Id {
    node: usize,
    life: Option<u8>,
}

impl Identity for Id {
    type Addr = usize;

    fn renew(&self) -> Option<Self> {
        let life = Some(self.life? + 1);
        Some(Self { life, ..*self })
    }

    fn addr(&self) -> usize {
        self.node
    }

    fn win_addr_conflict(&self, adversary: &Self) -> bool {
        self.life > adversary.life
    }
}

/// What members send each other.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Packet {
    data: Vec<u8>,
    /// How many packets before it were each the answer to the one before.
    chain: u64,
}

impl Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match PostcardCodec.decode_header(&self.data[..]) {
            Ok(header) => {
                let Header::<Id> {
                    src, dst, message, ..
                } = header;
                write!(f, "{message:?} from {src:?} to {dst:?}")
            }
            Err(error) => write!(f, "{error}"),
        }
    }
}

/// The code of a member.
pub struct Member {
    /// Whether it comes back under a new identity.
    renews: bool,
}

/// A member while it runs.
pub struct Running {
    foca: Foca<Id, PostcardCodec, SmallRng, NoCustomBroadcast>,
    /// How much time has passed, and what is due when, the next last.
    now: Duration,
    timers: Vec<(Duration, ::foca::Timer<Id>)>,
    longest_chain: u64,
}

/// What can be seen of a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    identity: Id,
    active: BTreeSet<Id>,
    down: BTreeSet<Id>,
    /// Its timers, the next last.
    timers: Vec<String>,
    /// Whether it will do something by itself.
    goes_on: bool,
    /// The longest chain of answers that it was the last to add to.
    longest_chain: u64,
}

impl Member {
    fn identity(&self, node: NodeId) -> Id {
        Id {
            node: node.0,
            life: self.renews.then_some(0),
        }
    }

    fn config(members: usize) -> Config {
        let members = u32::try_from(members).ok().and_then(NonZeroU32::new);
        let lan = Config::new_lan(members.expect("a cluster has members"));
        Config {
            suspect_to_down_after: lan.probe_period,
            periodic_gossip: None,
            periodic_announce: None,
            periodic_announce_to_down_members: lan.periodic_announce_to_down_members.map(
                |announce| PeriodicParams {
                    frequency: lan.probe_period * 4,
                    ..announce
                },
            ),
            ..lan
        }
    }
}

impl Running {
    /// Lets foca do something, then does what it wants done. What it sends is the next of a `chain`.
    fn drive(
        &mut self,
        chain: u64,
        cx: &mut Context<Packet>,
        input: impl FnOnce(
            &mut Foca<Id, PostcardCodec, SmallRng, NoCustomBroadcast>,
            &mut AccumulatingRuntime<Id>,
        ) -> Result<(), Error>,
    ) {
        let mut runtime = AccumulatingRuntime::new();
        let done = input(&mut self.foca, &mut runtime);
        cx.assert(
            done.is_ok(),
            format!("foca takes what it is given: {done:?}"),
        );
        while let Some((to, data)) = runtime.to_send() {
            let data = data.to_vec();
            cx.send(to.node, Packet { data, chain });
            self.longest_chain = self.longest_chain.max(chain);
        }
        while let Some((after, timer)) = runtime.to_schedule() {
            self.timers.push((self.now + after, timer));
        }
        self.timers.sort_by(|one, other| other.cmp(one));
        if !self.timers.is_empty() {
            cx.set_timer(NEXT, Duration::ZERO);
        }
        while let Some(notification) = runtime.to_notify() {
            cx.observe(notification);
        }
    }
}

impl OpaqueNode for Member {
    type State = Running;
    type Msg = Packet;
    type View = View;
    type Disk = ();

    fn on_start(&self, cx: &mut Context<Packet>) -> Running {
        let identity = self.identity(cx.me());
        let rng = SmallRng::seed_from_u64(cx.me().0 as u64);
        let config = Self::config(cx.nodes());
        let mut running = Running {
            foca: Foca::new(identity, config, rng, PostcardCodec),
            now: Duration::ZERO,
            timers: Vec::new(),
            longest_chain: 0,
        };
        let everybody = others(cx.me(), cx.nodes())
            .into_iter()
            .map(|node| ::foca::Member::alive(self.identity(node)));
        running.drive(0, cx, |foca, runtime| {
            foca.apply_many(everybody, false, runtime)
        });
        running
    }

    fn on_message(
        &self,
        running: &mut Running,
        _from: NodeId,
        packet: Packet,
        cx: &mut Context<Packet>,
    ) {
        running.drive(packet.chain + 1, cx, |foca, runtime| {
            foca.handle_data(&packet.data, runtime)
        });
    }

    fn on_timer(&self, running: &mut Running, _next: Timer, cx: &mut Context<Packet>) {
        let (due, timer) = running.timers.pop().expect("it is set while there is one");
        running.now = due;
        running.drive(0, cx, |foca, runtime| foca.handle_timer(timer, runtime));
    }

    fn view(&self, running: &mut Running) -> View {
        let (down, active) = running
            .foca
            .iter_membership_state()
            .partition::<Vec<_>, _>(|member| member.state() == State::Down);
        let identities =
            |members: Vec<&::foca::Member<Id>>| members.iter().map(|member| *member.id()).collect();
        View {
            identity: *running.foca.identity(),
            active: identities(active),
            down: identities(down),
            timers: running
                .timers
                .iter()
                .map(|timer| format!("{timer:?}"))
                .collect(),
            goes_on: running.foca.num_members() > 0
                && running
                    .timers
                    .iter()
                    .any(|(_, timer)| !matches!(timer, ::foca::Timer::RemoveDown(_))),
            longest_chain: running.longest_chain,
        }
    }
}

#[cfg(test)]
mod tests {
    use dragnet::engine::EngineName;

    use super::*;

    fn assert_finds(property: &str, check: impl Fn() -> Check<Cluster<Opaque<Member>>>) {
        let verdict = check().run();
        let violation = verdict.violation().expect("something is wrong");
        assert_eq!(violation.property, property);
        let trace = &verdict.counterexample().unwrap().trace;
        check().replay(trace).expect("what was found replays");
    }

    #[test]
    fn two_members_that_a_partition_separates_are_down_for_ever() {
        assert_finds("nobody is down for ever", || {
            check(cluster(2, true, 1, 6), true, 8).faults(partitions(1))
        });
    }

    #[test]
    fn two_members_without_renewal_storm_at_each_other() {
        assert_finds("no storm", || {
            check(cluster(2, false, 4, 6), false, 8).engine(EngineName::Random)
        });
    }
}
