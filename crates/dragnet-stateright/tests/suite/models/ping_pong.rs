//! Two actors that count each other's messages up to a limit.

use std::borrow::Cow;

use stateright::Expectation;
use stateright::actor::{Actor, ActorModel, Id, Out};

pub struct Player {
    serves_to: Option<Id>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ball {
    Ping(u32),
    Pong(u32),
}

impl Actor for Player {
    type Msg = Ball;
    type State = u32;
    type Timer = ();
    type Random = ();
    type Storage = ();

    fn on_start(&self, _: Id, _: &Option<()>, out: &mut Out<Self>) -> u32 {
        if let Some(other) = self.serves_to {
            out.send(other, Ball::Ping(0));
        }
        0
    }

    fn on_msg(&self, _: Id, count: &mut Cow<'_, u32>, from: Id, ball: Ball, out: &mut Out<Self>) {
        let back = match ball {
            Ball::Ping(number) if number == **count => Ball::Pong(number),
            Ball::Pong(number) if number == **count => Ball::Ping(number + 1),
            _ => return,
        };
        *count.to_mut() += 1;
        out.send(from, back);
    }
}

pub fn players() -> [Player; 2] {
    [Some(1), Some(0)].map(|other| Player {
        serves_to: other.filter(|&other| other == 1).map(Id::from),
    })
}

/// The game up to `limit`, on Stateright's default network, with all that it demands.
pub fn model(limit: u32) -> ActorModel<Player, u32> {
    safe_model(limit)
        .property(
            Expectation::Eventually,
            "reaches the limit",
            |model, state| state.actor_states.iter().any(|count| **count == model.cfg),
        )
        .property(
            Expectation::Eventually,
            "exceeds the limit",
            |model, state| state.actor_states.iter().any(|count| **count > model.cfg),
        )
}

/// The game up to `limit` without liveness.
pub fn safe_model(limit: u32) -> ActorModel<Player, u32> {
    ActorModel::new(limit, ())
        .actors(players())
        .within_boundary(|limit, state| state.actor_states.iter().all(|count| **count <= *limit))
        .property(
            Expectation::Always,
            "counts differ by one at most",
            |_, state| state.actor_states[0].abs_diff(*state.actor_states[1]) <= 1,
        )
        .property(
            Expectation::Sometimes,
            "can reach the limit",
            |model, state| state.actor_states.iter().any(|count| **count == model.cfg),
        )
}
