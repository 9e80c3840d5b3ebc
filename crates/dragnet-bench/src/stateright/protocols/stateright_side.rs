//! How a model is searched with Stateright, and how a property finds the servers in a state.

use std::hash::Hash;
use std::sync::Arc;

use stateright::actor::register::RegisterActorState;
use stateright::{Checker, Model};

use crate::stateright::search::{Order, Search};

/// Searches the whole space of `model`, and counts its states.
///
/// # Panics
/// When a property does not hold.
pub fn states<M>(model: M, search: Search) -> u64
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + PartialEq + Hash + Send + Sync + 'static,
    M::Action: Clone + PartialEq,
{
    let builder = model.checker().threads(search.threads);
    match search.order {
        Order::Breadth => judged(builder.spawn_bfs().join()),
        Order::Depth => judged(builder.spawn_dfs().join()),
    }
}

fn judged<M>(checker: impl Checker<M>) -> u64
where
    M: Model,
    M::State: Clone + PartialEq + Hash,
    M::Action: Clone + PartialEq,
{
    if let Some(name) = checker.discoveries().keys().next() {
        panic!("Stateright: `{name}` does not hold");
    }
    checker.unique_state_count() as u64
}

/// The states of the servers among these actors.
pub fn servers<S, R>(actors: &[Arc<RegisterActorState<S, R>>]) -> impl Iterator<Item = &S> {
    actors.iter().filter_map(|actor| match &**actor {
        RegisterActorState::Server(server) => Some(server),
        RegisterActorState::Client { .. } => None,
    })
}
