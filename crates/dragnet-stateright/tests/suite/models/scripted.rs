//! An actor whose handlers are closures: small actors are made of it, and random ones.

use std::borrow::Cow;

use stateright::actor::{Actor, ActorModel, ActorModelState, Id, Network, Out, model_timeout};

pub type State = Vec<u8>;

/// What happens to an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    Message(u8),
    Timeout(u8),
    Random(u8),
}

type Start = dyn Fn(Id, Option<u8>, &mut Out<Scripted>) -> State + Send + Sync;
type On = dyn Fn(&mut Cow<'_, State>, Input, &mut Out<Scripted>) + Send + Sync;

pub struct Scripted {
    start: Box<Start>,
    on: Box<On>,
}

impl Scripted {
    pub fn new(
        start: impl Fn(Id, Option<u8>, &mut Out<Self>) -> State + Send + Sync + 'static,
        on: impl Fn(&mut Cow<'_, State>, Input, &mut Out<Self>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            start: Box::new(start),
            on: Box::new(on),
        }
    }
}

impl Actor for Scripted {
    type Msg = u8;
    type State = State;
    type Timer = u8;
    type Random = u8;
    type Storage = u8;

    fn on_start(&self, me: Id, saved: &Option<u8>, out: &mut Out<Self>) -> State {
        (self.start)(me, *saved, out)
    }

    fn on_msg(&self, _: Id, state: &mut Cow<'_, State>, _: Id, msg: u8, out: &mut Out<Self>) {
        (self.on)(state, Input::Message(msg), out);
    }

    fn on_timeout(&self, _: Id, state: &mut Cow<'_, State>, timer: &u8, out: &mut Out<Self>) {
        (self.on)(state, Input::Timeout(*timer), out);
    }

    fn on_random(&self, _: Id, state: &mut Cow<'_, State>, random: &u8, out: &mut Out<Self>) {
        (self.on)(state, Input::Random(*random), out);
    }
}

/// A model of these actors.
pub fn model(
    actors: impl IntoIterator<Item = Scripted>,
    network: Network<u8>,
) -> ActorModel<Scripted> {
    ActorModel::new((), ()).actors(actors).init_network(network)
}

/// What all actors of a state remember.
pub fn row(state: &ActorModelState<Scripted>) -> Vec<State> {
    state
        .actor_states
        .iter()
        .map(|one| State::clone(one))
        .collect()
}

/// Does nothing at all.
pub fn idler() -> Scripted {
    Scripted::new(|_, _, _| State::new(), |_, _, _| {})
}

/// Sets a timer, and does nothing when it runs out.
pub fn sleeper() -> Scripted {
    let start = |_, _, out: &mut Out<Scripted>| {
        out.set_timer(0, model_timeout());
        State::new()
    };
    Scripted::new(start, |_, _, _| {})
}

/// Throws a die once.
pub fn die(sides: u8) -> Scripted {
    let start = move |_, _, out: &mut Out<Scripted>| {
        out.choose_random("throw", (1..=sides).collect());
        State::new()
    };
    Scripted::new(start, |state, input, _| {
        if let Input::Random(side) = input {
            state.to_mut().push(side);
        }
    })
}

/// Notes its choices: 1 for one, 2 or 3 for the other. With 1 the other becomes 3, and is open once more if it was made
/// already.
pub fn rethinker() -> Scripted {
    let start = |_, _, out: &mut Out<Scripted>| {
        out.choose_random("one", vec![1]);
        out.choose_random("other", vec![2, 3]);
        State::new()
    };
    Scripted::new(start, |state, input, out| {
        if let Input::Random(chosen) = input {
            if chosen == 1 {
                out.choose_random("other", vec![3]);
            }
            state.to_mut().push(chosen);
        }
    })
}

/// Two actors, the first of which sends the second a 2 and then a 1; it notes what it gets.
pub fn countdown() -> [Scripted; 2] {
    counted_down_to(|state, input, _| {
        if let Input::Message(number) = input {
            state.to_mut().push(number);
        }
    })
}

/// Two actors, the first of which sends the second a 2 and then a 1; it waits for the 1.
pub fn waiting_for_one() -> [Scripted; 2] {
    counted_down_to(|state, input, _| {
        if input == Input::Message(1) {
            *state = Cow::Owned(vec![1]);
        }
    })
}

fn counted_down_to(
    on: impl Fn(&mut Cow<'_, State>, Input, &mut Out<Scripted>) + Copy + Send + Sync + 'static,
) -> [Scripted; 2] {
    let start = |me: Id, _, out: &mut Out<Scripted>| {
        if me == Id::from(0) {
            out.send(1.into(), 2);
            out.send(1.into(), 1);
        }
        State::new()
    };
    [Scripted::new(start, on), Scripted::new(start, on)]
}

/// Counts to `limit` on its timer, in memory since it started and on disk in all.
pub fn diarist(limit: u8) -> Scripted {
    let start = |_, saved: Option<u8>, out: &mut Out<Scripted>| {
        out.set_timer(0, model_timeout());
        vec![0, saved.unwrap_or(0)]
    };
    Scripted::new(start, move |state, _, out| {
        let state = state.to_mut();
        state.iter_mut().for_each(|count| *count += 1);
        out.save(state[1]);
        if state[1] < limit {
            out.set_timer(0, model_timeout());
        }
    })
}
