//! A model of two bytes and a rule: small models are made of it.

use stateright::{Model, Property};

pub type State = (u8, u8);

/// In each state the actions `0..actions` are tried, and `next` says where they lead.
pub struct Rules {
    pub initial: Vec<State>,
    pub actions: u8,
    pub next: Box<dyn Fn(State, u8) -> Option<State> + Send + Sync>,
    pub inside: Box<dyn Fn(State) -> bool + Send + Sync>,
    pub properties: Vec<Property<Rules>>,
}

impl Model for Rules {
    type State = State;
    type Action = u8;

    fn init_states(&self) -> Vec<State> {
        self.initial.clone()
    }

    fn actions(&self, _: &State, actions: &mut Vec<u8>) {
        actions.extend(0..self.actions);
    }

    fn next_state(&self, state: &State, action: u8) -> Option<State> {
        (self.next)(*state, action)
    }

    fn within_boundary(&self, state: &State) -> bool {
        (self.inside)(*state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.properties.clone()
    }
}

impl Rules {
    pub fn new(
        initial: impl Into<Vec<State>>,
        actions: u8,
        next: impl Fn(State, u8) -> Option<State> + Send + Sync + 'static,
    ) -> Self {
        Self {
            initial: initial.into(),
            actions,
            next: Box::new(next),
            inside: Box::new(|_| true),
            properties: Vec::new(),
        }
    }

    pub fn within(mut self, inside: impl Fn(State) -> bool + Send + Sync + 'static) -> Self {
        self.inside = Box::new(inside);
        self
    }

    pub fn property(mut self, property: Property<Rules>) -> Self {
        self.properties.push(property);
        self
    }
}

/// Ticks and tocks, and may begin with either.
pub fn clock() -> Rules {
    Rules::new([(0, 0), (1, 0)], 1, |(high, _), _| Some((1 - high, 0)))
}

/// Two processes that load (0), then run (1) and pause (2) for ever.
pub fn processes() -> Rules {
    let advance = |process| if process == 1 { 2 } else { 1 };
    Rules::new([(0, 0)], 2, move |(one, other), which| {
        Some(match which {
            0 => (advance(one), other),
            _ => (one, advance(other)),
        })
    })
}

/// Raises either byte, until it wraps round.
pub fn bytes() -> Rules {
    Rules::new([(0, 0)], 2, |(x, y), which| {
        Some(match which {
            0 => (x.wrapping_add(1), y),
            _ => (x, y.wrapping_add(1)),
        })
    })
}
