//! Two-phase commit as a Stateright model.

use dragnet::System;
use dragnet_zoo::two_phase_commit_model::{Act, State, TwoPhase};
use stateright::{Model, Property};

use super::consistent;
use crate::stateright::protocols::stateright_side;
use crate::stateright::search::Search;

struct Specification(TwoPhase);

impl Model for Specification {
    type State = State;
    type Action = Act;

    fn init_states(&self) -> Vec<State> {
        self.0.initial()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Act>) {
        self.0.events(state, actions);
    }

    fn next_state(&self, state: &State, act: Act) -> Option<State> {
        self.0.next(state, &act).ok()
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always(
            "consistent",
            |model: &Self, state: &State| consistent(model.0.rms, *state),
        )]
    }
}

/// Searches the whole space with this many resource managers, and counts its states.
pub fn check(rms: u8, search: Search) -> u64 {
    stateright_side::states(Specification(TwoPhase { rms }), search)
}
