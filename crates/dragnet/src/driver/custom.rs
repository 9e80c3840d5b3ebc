//! Engines that are written outside of Dragnet.

use super::engines::{Searched, bounds_met};
use super::host::Host;
use super::run::Prepared;
use crate::engine::EngineName;
use crate::explore::custom::{self, Explorer};
use crate::explore::limits::Gauge;
use crate::explore::path::{Path, Wrong};
use crate::explore::sample::Sample;
use crate::explore::walk::Explored;
use crate::panics;
use crate::system::System;

pub(super) fn explore<H: Host>(
    prepared: &Prepared<H>,
    explorer: &dyn Explorer,
    gauge: Gauge,
) -> Searched {
    let sample = (!H::System::COMPARES_PARTS).then(Sample::new);
    let space = prepared.space();
    let depth = prepared.options.depth;
    let explore = || custom::explore(&space, explorer, sample.as_ref(), &gauge, depth);
    let explored = panics::catch_limit(explore)
        .unwrap_or_else(|limit| Explored::found(Path::starting(0), Wrong::Failed(limit)));
    let mut searched = Searched {
        explored,
        bounds: bounds_met(prepared),
        coarse_hash: match &sample {
            Some(sample) => sample.unequal().cloned(),
            None => prepared.system.coarse_hash(),
        },
        // Nothing is known of the order in which it explores.
        ..Searched::nothing(EngineName::Depth, gauge)
    };
    searched.sampled = sample.map(|sample| sample.kept());
    searched.note_unfinished_loop(prepared);
    let explored = &searched.explored;
    if explored.found.is_none() && explored.left_out.is_none() {
        let name = explorer.name();
        let claim =
            format!("all that the engine {name} says it has explored, which is not Dragnet's");
        searched.bounds.push(claim);
    }
    searched
}
