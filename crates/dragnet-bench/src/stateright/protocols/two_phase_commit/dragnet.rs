//! Two-phase commit as a direct system of Dragnet.

use dragnet::Check;
use dragnet_zoo::two_phase_commit_model::TwoPhase;

use super::consistent;
use crate::stateright::protocols::dragnet_side;
use crate::stateright::search::Search;

/// Searches the whole space with this many resource managers, and counts its states.
pub fn check(rms: u8, search: Search) -> u64 {
    let check = Check::new(TwoPhase { rms });
    let check = check.always("consistent", move |state| consistent(rms, *state));
    dragnet_side::states(check, search)
}
