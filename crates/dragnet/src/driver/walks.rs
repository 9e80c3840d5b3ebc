//! Random walks, whatever the target is.

#[cfg(feature = "threads")]
use super::dpor;
use super::engines::{Searched, bounds_met};
use super::host::Host;
use super::run::Prepared;
use crate::engine::{self, Engine};
use crate::explore::draw::Walks;
use crate::explore::limits::Gauge;
use crate::explore::path::{Path, Wrong};
use crate::explore::random::{self, Walked};
use crate::explore::sample::Sample;
use crate::explore::walk::Explored;
use crate::panics;
use crate::system::System;

pub(super) fn explore<H: Host>(
    prepared: &Prepared<H>,
    engine: Engine,
    walks: engine::Walks,
    gauge: Gauge,
    workers: usize,
) -> Searched {
    let options = &prepared.options;
    let walks = Walks {
        seed: walks.seed,
        count: walks.count,
        longest: options.longest(),
        priority_changes: match engine {
            Engine::Pct(pct) => Some(pct.priority_changes),
            _ => None,
        },
    };
    let sample = (!H::System::COMPARES_PARTS && !options.exact).then(Sample::new);
    let space = prepared.space();
    let walked =
        panics::catch_limit(|| random::explore(&space, sample.as_ref(), &gauge, workers, &walks));
    let walked = walked.unwrap_or_else(|limit| Walked {
        explored: Explored::found(Path::starting(0), Wrong::Failed(limit)),
        ended: 0,
    });
    let mut searched = Searched {
        explored: walked.explored,
        coarse_hash: match &sample {
            Some(sample) => sample.unequal().cloned(),
            None => prepared.system.coarse_hash(),
        },
        bounds: bounds_met(prepared),
        ..Searched::nothing(engine.name(), gauge)
    };
    searched.sampled = sample.map(|sample| sample.kept());
    #[cfg(feature = "threads")]
    if let Some(prepared) = H::threads(prepared) {
        dpor::simplify_walk(prepared, workers, walked.ended, &mut searched);
    }
    searched
}
