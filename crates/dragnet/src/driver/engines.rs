//! The list of engines: which function explores for each of them.

use std::any::Any;
use std::sync::atomic::AtomicUsize;

#[cfg(feature = "threads")]
use super::dpor;
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
use crate::target::Target;
use crate::target::parts::Apart;
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
    pub(super) fn note_unfinished_loop<T: Target>(&mut self, prepared: &Prepared<T>) {
        let explored = &mut self.explored;
        if explored.found.is_none() && explored.left_out.is_none() {
            let unfinished = T::unfinished_loop(&prepared.system);
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

/// The system taken apart, if it can be and its properties can be judged like that.
pub(super) fn taken_apart<T: Target>(prepared: &Prepared<T>) -> Option<Apart<'_, T::System>> {
    let mut properties = prepared.properties.iter();
    let judges_nodes = !properties.any(Property::looks_at_the_network);
    let apart = T::apart(&prepared.system)?;
    (judges_nodes && !prepared.options.exact && apart.parts.nodes() > 0).then_some(apart)
}

/// Explores the nodes of a system that was taken apart, one by one.
pub(super) fn explore_parts<T: Target>(
    prepared: &Prepared<T>,
    space: &Space<'_, T::System>,
    apart: &Apart<'_, T::System>,
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
    let whole = Taken::new(space, apart, &prepared.domain);
    let local = Local {
        parts: apart.parts,
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
pub(super) fn explore<T: Target>(
    prepared: &Prepared<T>,
    engine: Engine,
    gauge: Gauge,
    workers: usize,
) -> Searched {
    if let Some(walks) = engine.walks() {
        return walks::explore(prepared, engine, walks, gauge, workers);
    }
    #[cfg(feature = "threads")]
    if let (Some(moments), Engine::Dpor(dpor)) = (T::multithreaded(&prepared.system), engine) {
        return dpor::explore(prepared, moments, dpor, gauge, workers);
    }
    let space = prepared.space();
    let options = &prepared.options;
    let domain = &prepared.domain;
    let mut searched = Searched::nothing(engine.name(), gauge);
    let sample = (!T::System::COMPARES_PARTS && !options.exact).then(Sample::new);
    let search = Search {
        space: &space,
        gauge: &searched.gauge,
        depth: options.longest(),
        workers,
    };
    let apart = match engine {
        Engine::Local(local) => taken_apart(prepared).map(|apart| (local.pruning, apart)),
        _ => None,
    };
    searched.explored = if let Some((pruning, apart)) = apart {
        let (threads, gauge) = (AtomicUsize::new(workers), &searched.gauge);
        let mut work = LocalWork::default();
        let explored = within_limits(|| {
            explore_parts(
                prepared, &space, &apart, pruning, gauge, &threads, &mut work,
            )
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
        let numbered = || Fingerprints::<T::System, Pair>::new(domain, sample.as_ref());
        let plain = || Fingerprints::<T::System, Single>::new(domain, sample.as_ref());
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
    searched.bounds = T::bounds_met(&prepared.system);
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
