//! What Dragnet found in foca 1.0, by hand: members under `Config::new_lan`, whose packets are lost for a while.
//!
//! These tests pass while foca does what it should not. When one of them fails, it has been mended.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZeroU32;
use std::time::Duration;

use foca::{
    AccumulatingRuntime, Config, Error, Foca, Identity, Member, NoCustomBroadcast, PostcardCodec,
    State, Timer,
};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde::{Deserialize, Serialize};

struct Peer<T: Identity> {
    foca: Foca<T, PostcardCodec, SmallRng, NoCustomBroadcast>,
    runtime: AccumulatingRuntime<T>,
    now: Duration,
    /// The next last.
    timers: Vec<(Duration, Timer<T>)>,
}

impl<T> Peer<T>
where
    T: Identity + Serialize + for<'de> Deserialize<'de>,
{
    fn new<const OTHERS: usize>(me: T, others: [T; OTHERS]) -> Self {
        let members = NonZeroU32::new(1 + OTHERS as u32).unwrap();
        let config = Config::new_lan(members);
        let mut peer = Self {
            foca: Foca::new(me, config, SmallRng::seed_from_u64(0), PostcardCodec),
            runtime: AccumulatingRuntime::new(),
            now: Duration::ZERO,
            timers: Vec::new(),
        };
        let known = others.into_iter().map(Member::alive);
        peer.foca
            .apply_many(known, false, &mut peer.runtime)
            .unwrap();
        peer.drain();
        peer
    }

    /// Sets the timers, and hands out the packets, each with whom it is for.
    fn drain(&mut self) -> Vec<(T, Vec<u8>)> {
        while let Some((after, timer)) = self.runtime.to_schedule() {
            self.timers.push((self.now + after, timer));
        }
        self.timers.sort_by(|one, other| other.cmp(one));
        std::iter::from_fn(|| self.runtime.to_send())
            .map(|(to, data)| (to, data.to_vec()))
            .collect()
    }

    /// Hears nothing until it has declared everybody down; returns what it sent whenever it did so.
    fn declare_the_others_down(&mut self) -> Vec<(T, Vec<u8>)> {
        let mut told = Vec::new();
        while self.foca.num_members() > 0 {
            let (due, timer) = self.timers.pop().expect("it goes on probing");
            self.now = due;
            let before = self.foca.num_members();
            self.foca.handle_timer(timer, &mut self.runtime).unwrap();
            let packets = self.drain();
            if self.foca.num_members() < before {
                told.extend(packets);
            }
        }
        told
    }

    fn receive(&mut self, packet: &[u8]) -> Vec<(T, Vec<u8>)> {
        self.foca.handle_data(packet, &mut self.runtime).unwrap();
        self.drain()
    }

    /// Lets every timer run out that is not there to forget somebody; returns what is sent.
    fn let_time_pass(&mut self) -> Vec<(T, Vec<u8>)> {
        let (forgetting, others) = std::mem::take(&mut self.timers)
            .into_iter()
            .partition(|(_, timer)| matches!(timer, Timer::RemoveDown(_)));
        self.timers = forgetting;
        for (_, timer) in others.into_iter().rev() {
            self.foca.handle_timer(timer, &mut self.runtime).unwrap();
        }
        self.drain()
    }
}

#[test]
fn two_members_that_hold_each_other_down_answer_each_other_for_ever() {
    let address = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    let mut alice = Peer::new(address(1), [address(2)]);
    let mut bob = Peer::new(address(2), [address(1)]);
    let (_, mut packet) = alice.declare_the_others_down().pop().unwrap();
    bob.declare_the_others_down();

    for _ in 0..1_000 {
        packet = bob.receive(&packet).pop().expect("Bob answers").1;
        packet = alice.receive(&packet).pop().expect("Alice answers").1;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Renewing {
    address: u8,
    bump: u8,
}

impl Identity for Renewing {
    type Addr = u8;

    fn renew(&self) -> Option<Self> {
        let bump = self.bump + 1;
        Some(Self { bump, ..*self })
    }

    fn addr(&self) -> u8 {
        self.address
    }

    fn win_addr_conflict(&self, adversary: &Self) -> bool {
        self.bump > adversary.bump
    }
}

fn first(address: u8) -> Renewing {
    Renewing { address, bump: 0 }
}

/// Has everybody declare everybody else down, loses nothing from then on, and lets time pass.
fn declare_each_other_down<const PEERS: usize>(peers: &mut [Peer<Renewing>; PEERS]) {
    let mut packets: Vec<_> = peers
        .iter_mut()
        .flat_map(Peer::declare_the_others_down)
        .collect();
    for round in 0.. {
        assert!(round < 10, "they go on talking");
        if packets.is_empty() {
            break;
        }
        let mut answers = Vec::new();
        for (to, packet) in packets {
            answers.extend(peers[usize::from(to.address)].receive(&packet));
        }
        packets = answers;
    }
    for peer in peers {
        assert_eq!(peer.foca.identity().bump, 1, "it has come back");
        assert!(peer.let_time_pass().is_empty());
        assert!(peer.let_time_pass().is_empty());
        assert_eq!(peer.foca.num_members(), 0);
        let mut known = peer.foca.iter_membership_state();
        assert!(known.all(|member| member.state() == State::Down));
    }
}

#[test]
fn two_members_that_declare_each_other_down_never_meet_again() {
    declare_each_other_down(&mut [
        Peer::new(first(0), [first(1)]),
        Peer::new(first(1), [first(0)]),
    ]);
}

#[test]
fn three_members_that_declare_each_other_down_never_meet_again() {
    declare_each_other_down(&mut [
        Peer::new(first(0), [first(1), first(2)]),
        Peer::new(first(1), [first(0), first(2)]),
        Peer::new(first(2), [first(0), first(1)]),
    ]);
}

#[test]
fn a_member_whose_news_of_its_return_is_lost_is_down_for_ever() {
    let mut alice = Peer::new(first(1), [first(2)]);
    let mut bob = Peer::new(first(2), [first(1)]);
    let (_, to_bob) = alice.declare_the_others_down().pop().unwrap();
    let lost = bob.receive(&to_bob);
    assert_eq!((lost.len(), bob.foca.identity().bump), (1, 1));

    // Bob takes Alice for active, and never says a word to her again.
    for peer in [&mut alice, &mut bob] {
        assert!(peer.let_time_pass().is_empty());
        assert!(peer.let_time_pass().is_empty());
    }
    assert_eq!((alice.foca.num_members(), bob.foca.num_members()), (0, 1));
}

#[test]
fn a_member_that_came_back_announces_itself_to_who_it_was_and_refuses_the_packet() {
    let mut alice = Peer::new(
        Renewing {
            bump: 1,
            ..first(1)
        },
        [first(2)],
    );
    // As the others tell everybody after a member has come back.
    let gossip = std::iter::once(Member::new(first(1), 0, State::Down));
    alice
        .foca
        .apply_many(gossip, false, &mut alice.runtime)
        .unwrap();
    alice.drain();

    let is_announcing =
        |(_, timer): &(Duration, Timer<Renewing>)| matches!(timer, Timer::PeriodicAnnounceDown(_));
    let at = alice.timers.iter().position(is_announcing).unwrap();
    let (_, timer) = alice.timers.remove(at);
    alice.foca.handle_timer(timer, &mut alice.runtime).unwrap();
    let (to, packet) = alice.drain().pop().expect("she announces herself");
    assert_eq!(to, first(1), "the address is her own");
    let refused = alice.foca.handle_data(&packet, &mut alice.runtime);
    assert_eq!(refused, Err(Error::DataFromOurselves));
}
