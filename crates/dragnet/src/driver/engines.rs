//! The list of engines: which function explores for each of them.

use std::any::Any;
use std::panic::Location;
use std::sync::atomic::AtomicUsize;

#[cfg(feature = "threads")]
use super::dpor;
use super::host::Host;
use super::run::Prepared;
use super::walks;
use crate::coarse_hash::CoarseHash;
use crate::engine::{Engine, EngineName, Pruning};
use crate::explore::limits::Gauge;
use crate::explore::local::{Local, Taken};
use crate::explore::parent_links::ParentLinks;
use crate::explore::path::{Path, Wrong};
use crate::explore::sample::Sample;
use crate::explore::visited::{Exact, Fingerprints, Visited};
use crate::explore::walk::{Explored, LeftOut, Space};
use crate::explore::{breadth, depth};
use crate::panics;
use crate::property::Property;
use crate::system::System;
use crate::tables::{Pair, Single};
use crate::target::nodes::Nodes;
use crate::verdict::{LocalWork, ScheduleWork};

/// What a search came to, and by which engine.
pub(super) struct Searched {
    pub(super) explored: Explored,
    pub(super) engine: EngineName,
    pub(super) gauge: Gauge,
    /// What the local engine did.
    pub(super) local: Option<LocalWork>,
    /// What exploring schedules took.
    pub(super) schedules: Option<ScheduleWork>,
    /// What turned out to bound the system, a phrase each.
    pub(super) bounds: Vec<String>,
    /// What the search took up: it is freed when nobody waits for the verdict any more.
    pub(super) remains: Option<Box<dyn Any + Send>>,
    /// How many states were kept to be compared by equality with others of their fingerprint; none where the system
    /// compares their parts, or all were compared.
    pub(super) sampled: Option<u64>,
    /// Unequal values with one hash, because of which states were taken for others.
    pub(super) coarse_hash: Option<CoarseHash>,
}

impl Searched {
    /// A search that came to nothing.
    pub(super) fn nothing(engine: EngineName, gauge: Gauge) -> Self {
        Self {
            explored: Explored::to_the_end(&gauge),
            engine,
            gauge,
            local: None,
            schedules: None,
            bounds: Vec::new(),
            remains: None,
            sampled: None,
            coarse_hash: None,
        }
    }

    /// What comes behind a loop that was not followed to its end was not explored.
    pub(super) fn note_unfinished_loop<H: Host>(&mut self, prepared: &Prepared<H>) {
        let explored = &mut self.explored;
        if explored.found.is_none() && explored.left_out.is_none() {
            let unfinished = unfinished_loop(prepared);
            explored.left_out = unfinished.map(|(at, turns)| LeftOut::GaveUp { at, turns });
        }
    }

    /// Whether nothing was cut short.
    pub(super) fn is_complete(&self) -> bool {
        match &self.explored.found {
            Some((_, wrong)) => wrong.is_violation(),
            None => self.explored.left_out.is_none(),
        }
    }
}

/// The check of a cluster whose nodes can be explored one by one, and its properties judged like that.
pub(super) fn taken_apart<H: Host>(prepared: &Prepared<H>) -> Option<&Prepared<Nodes>> {
    let prepared = H::nodes(prepared)?;
    let mut properties = prepared.properties.iter();
    let judges_nodes = !properties.any(Property::looks_at_the_network);
    let has_nodes = prepared.system.parts().nodes() > 0;
    (judges_nodes && !prepared.options.exact && has_nodes).then_some(prepared)
}

/// Where a search has left out what comes behind a loop that ends by itself: the place of the loop, and how many of its turns
/// would have to be followed.
fn unfinished_loop<H: Host>(prepared: &Prepared<H>) -> Option<(&'static Location<'static>, u32)> {
    #[cfg(feature = "threads")]
    if let Some(prepared) = H::threads(prepared) {
        return prepared.system.gave_up();
    }
    _ = prepared;
    None
}

/// What turned out to bound the exploration, a phrase each.
pub(super) fn bounds_met<H: Host>(prepared: &Prepared<H>) -> Vec<String> {
    #[cfg(feature = "threads")]
    if let Some(prepared) = H::threads(prepared) {
        return prepared.system.bounds_met();
    }
    _ = prepared;
    Vec::new()
}

/// Explores the nodes of a cluster one by one.
pub(super) fn explore_parts(
    prepared: &Prepared<Nodes>,
    space: &Space<'_, Nodes>,
    pruning: Pruning,
    gauge: &Gauge,
    threads: &AtomicUsize,
    work: &mut LocalWork,
) -> Explored {
    let _attendance = space.attend();
    match space.initial() {
        Err(found) => return found,
        Ok(initial) if initial.is_empty() => return Explored::to_the_end(gauge),
        Ok(_) => {}
    }
    let whole = Taken::new(space, &prepared.domain);
    let local = Local {
        parts: space.system.parts(),
        whole: &whole,
        gauge,
        domain: &prepared.domain,
        workers: threads,
        first_worker: space.first_worker,
        pruning,
        longest: prepared.options.longest(),
    };
    local.explore(work)
}

/// What a search comes to, which may be a limit of the checker itself.
pub(super) fn within_limits(search: impl FnOnce() -> Explored) -> Explored {
    panics::catch_limit(search)
        .unwrap_or_else(|limit| Explored::found(Path::starting(0), Wrong::Failed(limit)))
}

/// Explores with one engine. Two at once are for [`auto`](super::auto).
pub(super) fn explore<H: Host>(
    prepared: &Prepared<H>,
    engine: Engine,
    gauge: Gauge,
    workers: usize,
) -> Searched {
    if let Some(walks) = engine.walks() {
        return walks::explore(prepared, engine, walks, gauge, workers);
    }
    #[cfg(feature = "threads")]
    if let (Some(prepared), Engine::Dpor(dpor)) = (H::threads(prepared), engine) {
        return dpor::explore(prepared, dpor, gauge, workers);
    }
    let space = prepared.space();
    let options = &prepared.options;
    let domain = &prepared.domain;
    let mut searched = Searched::nothing(engine.name(), gauge);
    let sample = (!H::System::COMPARES_PARTS && !options.exact).then(Sample::new);
    let search = Search {
        space: &space,
        gauge: &searched.gauge,
        depth: options.longest(),
        workers,
    };
    let nodes = match engine {
        Engine::Local(local) => taken_apart(prepared).map(|nodes| (local.pruning, nodes)),
        _ => None,
    };
    searched.explored = if let Some((pruning, nodes)) = nodes {
        let (threads, gauge) = (AtomicUsize::new(workers), &searched.gauge);
        let mut work = LocalWork::default();
        let explored = within_limits(|| {
            explore_parts(nodes, &nodes.space(), pruning, gauge, &threads, &mut work)
        });
        searched.local = Some(work);
        explored
    } else if options.exact {
        let visited = Box::new(Exact::new(domain));
        let explored = within_limits(|| match engine {
            Engine::Depth(_) => search.depth(&*visited),
            _ => search.breadth(&*visited),
        });
        searched.remains = Some(visited);
        explored
    } else {
        let numbered = || Fingerprints::<H::System, Pair>::new(domain, sample.as_ref());
        let plain = || Fingerprints::<H::System, Single>::new(domain, sample.as_ref());
        match engine {
            Engine::Depth(_) if options.depth.is_some() => search.depth(&numbered()),
            Engine::Depth(_) => search.depth(&plain()),
            // The local engine explores like this what it cannot take apart.
            _ => search.breadth(&numbered()),
        }
    };
    searched.note_unfinished_loop(prepared);
    searched.coarse_hash = match &sample {
        _ if options.exact => None,
        Some(sample) => sample.unequal().cloned(),
        None => prepared.system.coarse_hash(),
    };
    searched.bounds = bounds_met(prepared);
    searched.sampled = sample.map(|sample| sample.kept());
    searched
}

/// An exploration that only lacks its visited set.
struct Search<'a, S: System> {
    space: &'a Space<'a, S>,
    gauge: &'a Gauge,
    depth: Option<u64>,
    workers: usize,
}

impl<S: System> Search<'_, S> {
    fn breadth(&self, links: &(impl ParentLinks<S> + Sync)) -> Explored {
        breadth::explore(self.space, links, self.gauge, self.workers, self.depth)
    }

    fn depth(&self, visited: &(impl Visited<S> + Sync)) -> Explored {
        depth::explore(self.space, visited, self.gauge, self.workers, self.depth)
    }
}
