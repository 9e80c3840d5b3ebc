//! How a check is searched with Dragnet.

use dragnet::Check;
use dragnet::engine::EngineName;
use dragnet::extend::Checkable;

use crate::stateright::search::{Order, Search};

/// Searches the whole space of `check`, and counts its states.
///
/// # Panics
/// When a property does not hold.
pub fn states<T: Checkable>(check: Check<T>, search: Search) -> u64 {
    let engine = match search.order {
        Order::Breadth => EngineName::Breadth,
        Order::Depth => EngineName::Depth,
    };
    let verdict = check.engine(engine).threads(search.threads).run();
    verdict.assert_holds();
    verdict.states()
}
