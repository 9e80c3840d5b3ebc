//! Two-phase commit as Gray and Lamport specify it (*Consensus on Transaction Commit*, 2004), as the zoo has it: a direct
//! system without nodes or network.
//!
//! Here a checker is all that there is to measure, since both take the very same steps over the very same states: the
//! model for Stateright passes on what the zoo's system says. Only how a state is hashed is each checker's own.

pub mod dragnet;
pub mod stateright;

use dragnet_zoo::two_phase_commit_model::{RmState, State};

/// The property: no resource manager has committed where another has aborted.
fn consistent(rms: u8, state: State) -> bool {
    let some = |wanted| (0..rms).any(|rm| state.rm(rm) == wanted);
    !(some(RmState::Committed) && some(RmState::Aborted))
}
