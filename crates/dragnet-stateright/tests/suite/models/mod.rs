//! Models and actors as users of Stateright write them, among them those whose state counts Stateright publishes.

pub mod abd;
pub mod counting;
pub mod paxos;
pub mod ping_pong;
pub mod rules;
pub mod scripted;
pub mod single_copy;
pub mod two_phase;

use std::collections::HashSet;
use std::hash::Hash;

use dragnet::Check;
use dragnet::engine::EngineName;
use dragnet::extend::Checkable;
use stateright::Model;

/// Every state of a model, found in the plainest way: Stateright's rules, whole states. `None` if there are more than
/// `limit`.
pub fn space<M>(model: &M, limit: usize) -> Option<HashSet<M::State>>
where
    M: Model<State: Clone + Eq + Hash>,
{
    let inside = |state: &M::State| model.within_boundary(state);
    let mut open: Vec<M::State> = model.init_states().into_iter().filter(inside).collect();
    let mut seen: HashSet<M::State> = open.iter().cloned().collect();
    while let Some(state) = open.pop() {
        for next in model.next_states(&state).into_iter().filter(inside) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
        if seen.len() > limit {
            return None;
        }
    }
    Some(seen)
}

/// Asserts that the space of a check has this many states, breadth and depth first, on one thread and on two.
#[track_caller]
pub fn assert_states<T: Checkable>(check: impl Fn() -> Check<T>, expected: u64) {
    for engine in [EngineName::Breadth, EngineName::Depth] {
        for threads in [1, 2] {
            let verdict = check().engine(engine).threads(threads).run();
            verdict.assert_holds();
            let states = verdict.states();
            assert_eq!(states, expected, "{engine} first, {threads} threads");
        }
    }
}
