//! Two-phase commit as Gray and Lamport specify it in *Consensus on Transaction Commit*: a transaction manager (TM),
//! resource managers (RMs) and a set of messages that only grows.
//!
//! This is a direct [`System`]: no nodes, no network, a state of 64 bits and the actions of the specification. It serves
//! as a measure. The number of its states is published for many checkers: 288 with three RMs, 8,832 with five, 296,448
//! with seven.
//!
//! The one parameter, `rms`, says how many resource managers there are.

use std::fmt::{self, Debug};

use dragnet::catalog::Entry;
use dragnet::system::{Actor, ComponentId, Task};
use dragnet::trace::{Fingerprint, Key};
use dragnet::{Check, Failure, System};

/// The most resource managers that fit into a state.
const MOST: u64 = 12;

/// The specification under the name `two-phase-commit-model`.
pub fn entry() -> Entry {
    Entry::new(
        "two-phase-commit-model",
        "two-phase commit as specified by Gray and Lamport, as a direct system",
        |setup| {
            check(TwoPhase {
                rms: setup.number("rms"),
            })
        },
    )
    .parameter("rms", 5, 1..=MOST, "how many resource managers there are")
}

fn check(model: TwoPhase) -> Check<TwoPhase> {
    let rms = model.rms;
    Check::new(model)
        .always("consistent", move |s| {
            !(s.any(rms, RmState::Committed) && s.any(rms, RmState::Aborted))
        })
        .reachable("all commit", move |s| s.all(rms, RmState::Committed))
        .reachable("all abort", move |s| s.all(rms, RmState::Aborted))
}

/// The specification for a number of resource managers.
#[derive(Clone, Copy, Debug)]
pub struct TwoPhase {
    /// How many resource managers there are: at most 12.
    pub rms: u8,
}

/// A state of the specification, packed into one word.
///
/// From the lowest bit: two bits for each RM, a bit for each RM that the TM knows to be prepared, a bit for each
/// `Prepared` message that was sent, two bits for the TM. `Commit` was sent exactly when the TM has committed, and
/// `Abort` exactly when it has aborted, so that these need no bits of their own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct State(u64);

/// What a resource manager has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RmState {
    /// It works, and may still go either way.
    Working,
    /// It is ready to commit, and waits for the TM.
    Prepared,
    /// It has committed.
    Committed,
    /// It has aborted.
    Aborted,
}

/// What the transaction manager has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TmState {
    /// Nothing yet.
    Init,
    /// To commit.
    Committed,
    /// To abort.
    Aborted,
}

/// A step of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The TM receives `Prepared` from this RM.
    TmReceivesPrepared(u8),
    /// The TM, knowing that all RMs are prepared, commits.
    TmCommits,
    /// The TM aborts of its own accord.
    TmAborts,
    /// This RM prepares.
    RmPrepares(u8),
    /// This RM aborts of its own accord.
    RmChoosesToAbort(u8),
    /// This RM is told to commit.
    RmReceivesCommit(u8),
    /// This RM is told to abort.
    RmReceivesAbort(u8),
}

const KNOWN: u32 = 2 * MOST as u32;
const SENT: u32 = KNOWN + MOST as u32;
const TM: u32 = SENT + MOST as u32;

impl State {
    const INITIAL: Self = Self(0);

    /// What resource manager `rm` has done.
    pub fn rm(self, rm: u8) -> RmState {
        match self.0 >> (2 * rm) & 3 {
            0 => RmState::Working,
            1 => RmState::Prepared,
            2 => RmState::Committed,
            _ => RmState::Aborted,
        }
    }

    /// What the transaction manager has decided.
    pub fn tm(self) -> TmState {
        match self.0 >> TM & 3 {
            0 => TmState::Init,
            1 => TmState::Committed,
            _ => TmState::Aborted,
        }
    }

    /// Whether the transaction manager knows that `rm` is prepared.
    pub fn tm_knows(self, rm: u8) -> bool {
        self.0 >> (KNOWN + u32::from(rm)) & 1 == 1
    }

    /// Whether `rm` has sent `Prepared`.
    pub fn has_sent_prepared(self, rm: u8) -> bool {
        self.0 >> (SENT + u32::from(rm)) & 1 == 1
    }

    fn with_rm(self, rm: u8, state: RmState) -> Self {
        Self(self.0 & !(3 << (2 * rm)) | (state as u64) << (2 * rm))
    }

    fn with_tm(self, state: TmState) -> Self {
        Self(self.0 & !(3 << TM) | (state as u64) << TM)
    }

    fn any(self, rms: u8, state: RmState) -> bool {
        (0..rms).any(|rm| self.rm(rm) == state)
    }

    fn all(self, rms: u8, state: RmState) -> bool {
        (0..rms).all(|rm| self.rm(rm) == state)
    }

    fn tm_knows_all(self, rms: u8) -> bool {
        let all = (1 << rms) - 1;
        self.0 >> KNOWN & all == all
    }
}

impl Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = 0..MOST as u8;
        let rms: Vec<RmState> = all.clone().map(|rm| self.rm(rm)).collect();
        let touched = rms
            .iter()
            .rposition(|&rm| rm != RmState::Working)
            .map_or(0, |last| last + 1);
        let known: Vec<u8> = all.clone().filter(|&rm| self.tm_knows(rm)).collect();
        let sent: Vec<u8> = all.filter(|&rm| self.has_sent_prepared(rm)).collect();
        f.debug_struct("State")
            .field("tm", &self.tm())
            .field("rms", &&rms[..touched])
            .field("known_to_be_prepared", &known)
            .field("sent_prepared", &sent)
            .finish()
    }
}

impl System for TwoPhase {
    type State = State;
    type Event = Act;

    fn initial(&self) -> Vec<State> {
        vec![State::INITIAL]
    }

    fn events(&self, state: &State, out: &mut Vec<Act>) {
        let tm = state.tm();
        if tm == TmState::Init {
            if state.tm_knows_all(self.rms) {
                out.push(Act::TmCommits);
            }
            out.push(Act::TmAborts);
        }
        for rm in 0..self.rms {
            if tm == TmState::Init && state.has_sent_prepared(rm) {
                out.push(Act::TmReceivesPrepared(rm));
            }
            if state.rm(rm) == RmState::Working {
                out.push(Act::RmPrepares(rm));
                out.push(Act::RmChoosesToAbort(rm));
            }
            match tm {
                TmState::Init => {}
                TmState::Committed => out.push(Act::RmReceivesCommit(rm)),
                TmState::Aborted => out.push(Act::RmReceivesAbort(rm)),
            }
        }
    }

    fn next(&self, state: &State, act: &Act) -> Result<State, Failure> {
        Ok(match *act {
            Act::TmReceivesPrepared(rm) => State(state.0 | 1 << (KNOWN + u32::from(rm))),
            Act::TmCommits => state.with_tm(TmState::Committed),
            Act::TmAborts => state.with_tm(TmState::Aborted),
            Act::RmPrepares(rm) => {
                let prepared = state.with_rm(rm, RmState::Prepared);
                State(prepared.0 | 1 << (SENT + u32::from(rm)))
            }
            Act::RmChoosesToAbort(rm) | Act::RmReceivesAbort(rm) => {
                state.with_rm(rm, RmState::Aborted)
            }
            Act::RmReceivesCommit(rm) => state.with_rm(rm, RmState::Committed),
        })
    }

    /// A state is a word already: mixing it with a bijection is cheaper than hashing it, and no two states collide.
    fn fingerprint(&self, state: &State, key: Key) -> Fingerprint {
        let mut word = state.0.wrapping_add(1) ^ key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        word = (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        Fingerprint(word ^ (word >> 32))
    }

    fn waiting(&self, state: &State) -> Vec<Actor> {
        let undecided = |rm: &u8| matches!(state.rm(*rm), RmState::Working | RmState::Prepared);
        let waiting = (0..self.rms).filter(undecided);
        waiting.map(|rm| rm_component(rm).into()).collect()
    }

    fn task(&self, _state: &State, act: &Act) -> Task {
        Task::of(match *act {
            Act::TmReceivesPrepared(_) | Act::TmCommits | Act::TmAborts => ComponentId(0),
            Act::RmPrepares(rm)
            | Act::RmChoosesToAbort(rm)
            | Act::RmReceivesCommit(rm)
            | Act::RmReceivesAbort(rm) => rm_component(rm),
        })
    }

    fn components(&self) -> Vec<String> {
        let rms = (0..self.rms).map(|rm| format!("RM {rm}"));
        std::iter::once("TM".to_owned()).chain(rms).collect()
    }
}

fn rm_component(rm: u8) -> ComponentId {
    ComponentId(1 + usize::from(rm))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::verdict;

    fn states(rms: &str) -> u64 {
        let verdict = verdict(&entry(), |selection| selection.with("rms", rms));
        verdict.assert_holds();
        verdict.states()
    }

    #[test]
    fn three_resource_managers_have_288_states() {
        assert_eq!(states("3"), 288);
    }

    #[test]
    fn five_resource_managers_have_8832_states() {
        assert_eq!(states("5"), 8_832);
    }

    #[test]
    fn seven_resource_managers_have_296448_states() {
        assert_eq!(states("7"), 296_448);
    }

    #[test]
    fn a_state_reads_like_the_specification() {
        let model = TwoPhase { rms: 2 };
        let prepared = model.next(&State::INITIAL, &Act::RmPrepares(1)).unwrap();
        assert_eq!(
            format!("{prepared:?}"),
            "State { tm: Init, rms: [Working, Prepared], known_to_be_prepared: [], sent_prepared: [1] }"
        );
    }
}
