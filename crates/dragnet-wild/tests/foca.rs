//! What Dragnet found in foca 1.0, by hand: two members under `Config::new_lan`, whose packets are lost for a while.
//!
//! These tests pass while foca does what it should not. When one of them fails, it has been mended.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZeroU32;
use std::time::Duration;

use foca::{
    AccumulatingRuntime, Config, Foca, Identity, Member, NoCustomBroadcast, PostcardCodec, State,
    Timer,
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
    fn new(me: T, other: T) -> Self {
        let config = Config::new_lan(NonZeroU32::new(2).unwrap());
        let mut peer = Self {
            foca: Foca::new(me, config, SmallRng::seed_from_u64(0), PostcardCodec),
            runtime: AccumulatingRuntime::new(),
            now: Duration::ZERO,
            timers: Vec::new(),
        };
        let known = std::iter::once(Member::alive(other));
        peer.foca
            .apply_many(known, false, &mut peer.runtime)
            .unwrap();
        peer.drain();
        peer
    }

    /// Sets the timers, and hands out the packets.
    fn drain(&mut self) -> Vec<Vec<u8>> {
        while let Some((after, timer)) = self.runtime.to_schedule() {
            self.timers.push((self.now + after, timer));
        }
        self.timers.sort_by(|one, other| other.cmp(one));
        std::iter::from_fn(|| self.runtime.to_send())
            .map(|(_, data)| data.to_vec())
            .collect()
    }

    /// Hears nothing until it has declared the other down; returns what it sends then.
    fn declare_the_other_down(&mut self) -> Vec<u8> {
        loop {
            let (due, timer) = self.timers.pop().expect("it goes on probing");
            self.now = due;
            self.foca.handle_timer(timer, &mut self.runtime).unwrap();
            let mut packets = self.drain();
            if self.foca.num_members() == 0 {
                return packets.pop().expect("it tells the one it declares down");
            }
        }
    }

    fn receive(&mut self, packet: &[u8]) -> Vec<Vec<u8>> {
        self.foca.handle_data(packet, &mut self.runtime).unwrap();
        self.drain()
    }

    /// Lets every timer run out that is not there to forget somebody; returns what is sent.
    fn let_time_pass(&mut self) -> Vec<Vec<u8>> {
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
    let mut alice = Peer::new(address(1), address(2));
    let mut bob = Peer::new(address(2), address(1));
    let mut packet = alice.declare_the_other_down();
    bob.declare_the_other_down();

    for _ in 0..1_000 {
        packet = bob.receive(&packet).pop().expect("Bob answers");
        packet = alice.receive(&packet).pop().expect("Alice answers");
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

#[test]
fn two_members_that_declare_each_other_down_never_meet_again() {
    let identity = |address| Renewing { address, bump: 0 };
    let mut alice = Peer::new(identity(1), identity(2));
    let mut bob = Peer::new(identity(2), identity(1));
    let to_bob = alice.declare_the_other_down();
    let to_alice = bob.declare_the_other_down();

    // From here on nothing is lost. Both come back under a new identity, and both tell so to an old one.
    let from_bob = bob.receive(&to_bob);
    let from_alice = alice.receive(&to_alice);
    assert_eq!(
        (alice.foca.identity().bump, bob.foca.identity().bump),
        (1, 1)
    );
    for packet in from_bob {
        assert!(alice.receive(&packet).is_empty());
    }
    for packet in from_alice {
        assert!(bob.receive(&packet).is_empty());
    }

    for peer in [&mut alice, &mut bob] {
        assert!(peer.let_time_pass().is_empty());
        assert!(peer.let_time_pass().is_empty());
        assert_eq!(peer.foca.num_members(), 0);
        let mut known = peer.foca.iter_membership_state();
        assert!(known.all(|member| member.state() == State::Down));
    }
}

#[test]
fn a_member_whose_news_of_its_return_is_lost_is_down_for_ever() {
    let identity = |address| Renewing { address, bump: 0 };
    let mut alice = Peer::new(identity(1), identity(2));
    let mut bob = Peer::new(identity(2), identity(1));
    let to_bob = alice.declare_the_other_down();
    let lost = bob.receive(&to_bob);
    assert_eq!((lost.len(), bob.foca.identity().bump), (1, 1));

    // Bob takes Alice for active, and never says a word to her again.
    for peer in [&mut alice, &mut bob] {
        assert!(peer.let_time_pass().is_empty());
        assert!(peer.let_time_pass().is_empty());
    }
    assert_eq!((alice.foca.num_members(), bob.foca.num_members()), (0, 1));
}
