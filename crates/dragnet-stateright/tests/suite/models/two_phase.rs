//! Two-phase commit after Gray and Lamport, *Consensus on Transaction Commit*: messages are never taken away.

use std::collections::BTreeSet;

use stateright::{Model, Property};

pub struct TwoPhase {
    pub managers: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub managers: Vec<Manager>,
    outcome: Option<Outcome>,
    /// Who has reported to the coordinator.
    reported: BTreeSet<usize>,
    /// Who has said that it is prepared.
    prepared: BTreeSet<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Manager {
    Working,
    Prepared,
    Done(Outcome),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Committed,
    Aborted,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    Hear(usize),
    Decide(Outcome),
    Prepare(usize),
    GiveUp(usize),
    Obey(usize),
}

impl Model for TwoPhase {
    type State = State;
    type Action = Act;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            managers: vec![Manager::Working; self.managers],
            outcome: None,
            reported: BTreeSet::new(),
            prepared: BTreeSet::new(),
        }]
    }

    fn actions(&self, _: &State, acts: &mut Vec<Act>) {
        acts.extend([Outcome::Committed, Outcome::Aborted].map(Act::Decide));
        for one in 0..self.managers {
            acts.extend([
                Act::Hear(one),
                Act::Prepare(one),
                Act::GiveUp(one),
                Act::Obey(one),
            ]);
        }
    }

    /// Every act is offered in every state; those that cannot happen are ignored here.
    fn next_state(&self, state: &State, act: Act) -> Option<State> {
        let mut next = state.clone();
        let possible = match act {
            Act::Hear(one) => {
                state.outcome.is_none() && state.prepared.contains(&one) && {
                    next.reported.insert(one);
                    true
                }
            }
            Act::Decide(outcome) => {
                next.outcome = Some(outcome);
                let all = state.reported.len() == self.managers;
                state.outcome.is_none() && (outcome == Outcome::Aborted || all)
            }
            Act::Prepare(one) => {
                next.managers[one] = Manager::Prepared;
                next.prepared.insert(one);
                state.managers[one] == Manager::Working
            }
            Act::GiveUp(one) => {
                next.managers[one] = Manager::Done(Outcome::Aborted);
                state.managers[one] == Manager::Working
            }
            Act::Obey(one) => {
                next.managers[one] = Manager::Done(state.outcome?);
                true
            }
        };
        possible.then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn all(state: &State, outcome: Outcome) -> bool {
            state
                .managers
                .iter()
                .all(|one| *one == Manager::Done(outcome))
        }
        fn some(state: &State, outcome: Outcome) -> bool {
            state.managers.contains(&Manager::Done(outcome))
        }
        vec![
            Property::always("consistent", |_, state| {
                !(some(state, Outcome::Committed) && some(state, Outcome::Aborted))
            }),
            Property::sometimes("all commit", |_, state| all(state, Outcome::Committed)),
            Property::sometimes("all abort", |_, state| all(state, Outcome::Aborted)),
        ]
    }
}
