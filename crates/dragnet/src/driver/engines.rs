//! Which engine explores, and two of them side by side.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::run::Prepared;
use crate::coarse_hash::CoarseHash;
use crate::explore::draw::Walks;
use crate::explore::limits::Gauge;
use crate::explore::local::{Local, Taken};
use crate::explore::path::{Path, Wrong};
use crate::explore::random::{self, Walked};
use crate::explore::sample::Sample;
#[cfg(feature = "threads")]
use crate::explore::schedules::Schedules;
use crate::explore::store::{Exact, Fingerprints, Store};
#[cfg(feature = "threads")]
use crate::explore::walk::LeftOut;
use crate::explore::walk::{Explored, Space};
use crate::explore::{breadth, depth, quiet};
use crate::options::{Engine, Options};
use crate::panics;
use crate::property::Property;
use crate::system::System;
#[cfg(feature = "threads")]
use crate::system::{ComponentId, FailureKind};
use crate::tables::{Pair, Single};
use crate::target::Target;
use crate::target::parts::Apart;
#[cfg(feature = "threads")]
use crate::target::threads::{
    Moments,
    executor::{Finish, Transition},
};
use crate::verdict::{LocalWork, ScheduleWork};

/// What a search came to, and by which engine.
pub(super) struct Searched {
    pub(super) explored: Explored,
    pub(super) engine: Engine,
    pub(super) gauge: Gauge,
    /// What the local engine did.
    pub(super) local: Option<LocalWork>,
    /// What exploring schedules took.
    pub(super) schedules: Option<ScheduleWork>,
    /// What turned out to bound the system, a phrase each.
    pub(super) bounds: Vec<String>,
    /// What the search took up: it is freed when nobody waits for the verdict any more.
    #[expect(dead_code, reason = "it is kept only to be freed")]
    pub(super) remains: Option<Box<dyn Any + Send>>,
    /// How many states were kept to be compared by equality with others of their fingerprint; none where the system
    /// compares their parts, or all were compared.
    pub(super) sampled: Option<u64>,
    /// Unequal values with one hash, because of which states were taken for others.
    pub(super) coarse_hash: Option<CoarseHash>,
}

impl Searched {
    /// A search that came to nothing.
    pub(super) fn nothing(engine: Engine, gauge: Gauge) -> Self {
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

    /// Whether nothing was cut short.
    fn is_complete(&self) -> bool {
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

/// The engine that explores what cannot be taken apart.
fn alone<T: Target>(prepared: &Prepared<T>) -> Engine {
    #[cfg(feature = "threads")]
    if T::moments(&prepared.system).is_some() {
        return Engine::Schedules;
    }
    let _ = prepared;
    Engine::Breadth
}

/// How long the local engine has the cores to itself.
const HEAD_START: Duration = Duration::from_secs(2);

/// Local model checking by itself for a moment, then breadth first beside it: whichever has a verdict first.
pub(super) fn race<T: Target>(prepared: &Prepared<T>, gauge: &Gauge, workers: usize) -> Searched {
    let Some(apart) = taken_apart(prepared) else {
        return explore(prepared, alone(prepared), Gauge::shared(gauge), workers);
    };
    let threads = AtomicUsize::new(workers);
    let space = prepared.space();
    let space = Space {
        first_worker: space.first_worker + workers,
        ..space
    };
    let (done, news) = mpsc::channel();
    let local_gauge = Gauge::shared(gauge);
    let breadth_gauge = Gauge::inside(gauge, None);
    let (local_stop, breadth_stop) = (local_gauge.stopper(), breadth_gauge.stopper());
    thread::scope(|scope| {
        let (threads, apart, space) = (&threads, &apart, &space);
        let told = done.clone();
        quiet::spawn_worker(scope, move || {
            let searched = panic::catch_unwind(AssertUnwindSafe(|| {
                let mut work = LocalWork::default();
                let explored = within_limits(|| {
                    search_parts(prepared, space, apart, &local_gauge, threads, &mut work)
                });
                Searched {
                    explored,
                    engine: Engine::Local,
                    gauge: local_gauge,
                    local: Some(work),
                    schedules: None,
                    bounds: Vec::new(),
                    sampled: None,
                    coarse_hash: prepared.system.coarse_hash(),
                    remains: None,
                }
            }));
            _ = told.send(searched);
        });
        let first = news.recv_timeout(HEAD_START).ok();
        if let Some(local) = first.map(or_panic)
            && (local.is_complete() || gauge.must_end())
        {
            return local;
        }
        // The larger share, where there is more than one to share.
        let for_local = (workers / 3).max(1);
        threads.store(for_local, Relaxed);
        let for_breadth = (workers - for_local).max(1);
        quiet::spawn_worker(scope, move || {
            let search = || explore(prepared, Engine::Breadth, breadth_gauge, for_breadth);
            _ = done.send(panic::catch_unwind(AssertUnwindSafe(search)));
        });
        let mut last = None;
        for searched in news {
            match searched {
                // Of two that were cut short, breadth first tells more.
                Ok(searched) if !searched.is_complete() => {
                    if last.is_none() || searched.engine == Engine::Breadth {
                        last = Some(searched);
                    }
                }
                over => {
                    local_stop.end();
                    breadth_stop.end();
                    return or_panic(over);
                }
            }
        }
        last.expect("both say how they end")
    })
}

/// The result of another OS thread; a panic there goes on here, with its message.
fn or_panic<R>(result: thread::Result<R>) -> R {
    result.unwrap_or_else(|payload| panic::resume_unwind(payload))
}

fn search_parts<T: Target>(
    prepared: &Prepared<T>,
    space: &Space<'_, T::System>,
    apart: &Apart<'_, T::System>,
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
        pruning: prepared.options.pruning,
        longest: prepared.options.depth,
    };
    local.explore(work)
}

/// What a search comes to, which may be a limit of the checker itself.
fn within_limits(search: impl FnOnce() -> Explored) -> Explored {
    panics::catch_limit(search)
        .unwrap_or_else(|limit| Explored::found(Path::starting(0), Wrong::Failed(limit)))
}

pub(super) fn explore<T: Target>(
    prepared: &Prepared<T>,
    engine: Engine,
    gauge: Gauge,
    workers: usize,
) -> Searched {
    if engine.is_random() {
        return walk(prepared, engine, gauge, workers);
    }
    if engine == Engine::Schedules
        && let Some((explored, work, bounds)) = search_schedules(prepared, &gauge, workers)
    {
        return Searched {
            explored,
            engine,
            gauge,
            local: None,
            schedules: Some(work),
            bounds,
            remains: None,
            sampled: None,
            coarse_hash: None,
        };
    }
    let space = prepared.space();
    let options = &prepared.options;
    let domain = &prepared.domain;
    let mut local = None;
    let mut remains: Option<Box<dyn Any + Send>> = None;
    let sample = (!T::System::COMPARES_PARTS && !options.exact).then(Sample::new);
    let search = Search {
        space: &space,
        gauge: &gauge,
        options,
        workers,
    };
    let apart = match engine {
        Engine::Local => taken_apart(prepared),
        _ => None,
    };
    #[cfg_attr(not(feature = "threads"), expect(unused_mut))]
    let mut explored = if let Some(apart) = apart {
        let threads = AtomicUsize::new(workers);
        let mut work = LocalWork::default();
        let explored =
            within_limits(|| search_parts(prepared, &space, &apart, &gauge, &threads, &mut work));
        local = Some(work);
        explored
    } else if options.exact {
        let store = Box::new(Exact::new(domain));
        let explored = within_limits(|| match engine {
            Engine::Depth => search.depth(&*store),
            _ => search.breadth(&*store),
        });
        remains = Some(store);
        explored
    } else {
        let numbered = || Fingerprints::<T::System, Pair>::new(domain, sample.as_ref());
        let plain = || Fingerprints::<T::System, Single>::new(domain, sample.as_ref());
        match engine {
            Engine::Depth if options.depth.is_some() => search.depth(&numbered()),
            Engine::Depth => search.depth(&plain()),
            _ => search.breadth(&numbered()),
        }
    };
    #[cfg(feature = "threads")]
    if let (None, None, Some((at, turns))) = (
        &explored.found,
        explored.left_out,
        T::moments(&prepared.system).and_then(crate::target::threads::Moments::gave_up),
    ) {
        explored.left_out = Some(crate::explore::walk::LeftOut::GaveUp { at, turns });
    }
    let coarse_hash = match &sample {
        _ if options.exact => None,
        Some(sample) => sample.unequal().cloned(),
        None => prepared.system.coarse_hash(),
    };
    Searched {
        explored,
        engine,
        gauge,
        local,
        schedules: None,
        bounds: T::bounds_met(&prepared.system),
        remains,
        sampled: sample.map(|sample| sample.kept()),
        coarse_hash,
    }
}

/// Random walks, whatever the target is.
fn walk<T: Target>(
    prepared: &Prepared<T>,
    engine: Engine,
    gauge: Gauge,
    workers: usize,
) -> Searched {
    let options = &prepared.options;
    let sample = (!T::System::COMPARES_PARTS && !options.exact).then(Sample::new);
    let space = prepared.space();
    let walked = panics::catch_limit(|| {
        random::explore(&space, sample.as_ref(), &gauge, workers, &walks(options))
    });
    let walked = walked.unwrap_or_else(|limit| Walked {
        explored: Explored::found(Path::starting(0), Wrong::Failed(limit)),
        ended: 0,
    });
    let mut searched = Searched {
        explored: walked.explored,
        engine,
        local: None,
        schedules: None,
        bounds: T::bounds_met(&prepared.system),
        remains: None,
        coarse_hash: match &sample {
            Some(sample) => sample.unequal().cloned(),
            None => prepared.system.coarse_hash(),
        },
        sampled: sample.map(|sample| sample.kept()),
        gauge,
    };
    simplify_walk(prepared, workers, walked.ended, &mut searched);
    searched
}

/// Where schedules were drawn, says what that took, and puts the simplest execution with the same end in the place of what was
/// found.
#[cfg(feature = "threads")]
fn simplify_walk<T: Target>(
    prepared: &Prepared<T>,
    workers: usize,
    ended: u64,
    searched: &mut Searched,
) {
    // Where states are judged, an execution with the same end may not show what is wrong.
    if !prepared.within.is_empty() || !prepared.properties.are_about_the_end() {
        return;
    }
    let Some(moments) = T::moments(&prepared.system) else {
        return;
    };
    searched.schedules = Some(ScheduleWork {
        reduction: prepared.options.reduction,
        executions: ended,
        blocked_executions: 0,
        scheduling_points: searched.gauge.transitions.load(Relaxed),
        weakly_ordered: moments.weakly_ordered(),
    });
    if searched.explored.found.is_none() && ended <= workers as u64 {
        searched.explored.found = outliving(prepared, &searched.gauge);
    }
    let Some((path, wrong)) = &searched.explored.found else {
        return;
    };
    let finish = match wrong {
        Wrong::Failed(failure) => Finish::Failed(failure.clone()),
        _ => Finish::Stuck,
    };
    if wrong.is_violation()
        && let Some(decisions) = moments.decisions(&path.events)
    {
        // Which walk goes wrong first does not depend on how many workers there are.
        let schedules = schedules(prepared, moments, &searched.gauge, 1);
        searched.explored.found = Some(simplest(prepared, &schedules, decisions, finish));
    }
}

/// Without the feature there are no programs with threads.
#[cfg(not(feature = "threads"))]
fn simplify_walk<T: Target>(
    _prepared: &Prepared<T>,
    _workers: usize,
    _ended: u64,
    _searched: &mut Searched,
) {
}

/// How the schedules of a program are explored.
#[cfg(feature = "threads")]
fn schedules<'a, T: Target>(
    prepared: &Prepared<T>,
    moments: &'a Moments,
    gauge: &'a Gauge,
    workers: usize,
) -> Schedules<'a> {
    Schedules {
        program: moments.program(),
        reduction: prepared.options.reduction,
        longest: prepared.options.depth,
        preemptions: prepared.options.preemptions,
        gauge,
        workers,
        watch: &|_, finish| *finish == Finish::Complete,
    }
}

/// Objects that outlive an execution are noticed by the next one on the same OS thread. Where each has run one at most, one of
/// them runs two more.
#[cfg(feature = "threads")]
fn outliving<T: Target>(prepared: &Prepared<T>, gauge: &Gauge) -> Option<(Path, Wrong)> {
    let walks = Walks {
        seed: 0,
        count: 2,
        longest: prepared.options.depth,
        priority_changes: None,
    };
    let gauge = Gauge::inside(gauge, None);
    let walked = random::explore(&prepared.space(), None, &gauge, 1, &walks);
    walked.explored.found.filter(|(_, wrong)| {
        let refused = FailureKind::Nondeterminism;
        matches!(wrong, Wrong::Failed(failure) if failure.kind() == refused)
    })
}

/// The simplest execution that ends like one that was found.
#[cfg(feature = "threads")]
fn simplest<T: Target>(
    prepared: &Prepared<T>,
    schedules: &Schedules<'_>,
    decisions: Vec<Transition>,
    finish: Finish,
) -> (Path, Wrong) {
    let property = prepared.properties.deadlock().unwrap_or_default();
    match &finish {
        Finish::Failed(failure) if !failure.kind().is_violation() => {}
        Finish::Failed(failure) => prepared.note_found(&Wrong::Failed(failure.clone())),
        _ => prepared.note_found(&Wrong::Deadlock(property, Vec::new())),
    }
    let found = schedules.simplest(decisions, finish);
    let waiting = found.waiting.iter();
    let waiting = waiting.map(|thread| ComponentId(thread.0 as usize));
    let wrong = match found.finish {
        Finish::Failed(failure) => Wrong::Failed(failure),
        _ => Wrong::Deadlock(property, waiting.collect()),
    };
    let path = Path {
        start: 0,
        events: found.positions,
    };
    (path, wrong)
}

/// Every schedule that matters, if the target is a program with threads.
#[cfg(feature = "threads")]
fn search_schedules<T: Target>(
    prepared: &Prepared<T>,
    gauge: &Gauge,
    workers: usize,
) -> Option<(Explored, ScheduleWork, Vec<String>)> {
    let moments = T::moments(&prepared.system)?;
    let schedules = schedules(prepared, moments, gauge, workers);
    let mut outlives = None;
    let explored = panics::catch_limit(|| {
        let explored = schedules.explore();
        let executions = explored.executions + explored.blocked_executions;
        if explored.found.is_none() && executions <= workers as u64 {
            outlives = outliving(prepared, gauge);
        }
        explored
    });
    let explored = match explored {
        Ok(explored) => explored,
        Err(limit) => {
            let found = Explored::found(Path::starting(0), Wrong::Failed(limit));
            let work = ScheduleWork {
                reduction: prepared.options.reduction,
                executions: 0,
                blocked_executions: 0,
                scheduling_points: 0,
                weakly_ordered: 0,
            };
            return Some((found, work, Vec::new()));
        }
    };
    let work = ScheduleWork {
        reduction: prepared.options.reduction,
        executions: explored.executions,
        blocked_executions: explored.blocked_executions,
        scheduling_points: explored.scheduling_points,
        weakly_ordered: explored.weakly_ordered,
    };
    let seed = moments.program().setting.seed;
    let drawn = explored
        .has_drawn
        .then(|| crate::target::threads::seed_bound(seed));
    let turns = moments.program().setting.fruitless_turns;
    let bounds = explored
        .went_round
        .then(|| crate::target::threads::round_bound(turns));
    let most = prepared.options.preemptions;
    let most = most.map(|most| match most {
        1 => "at most 1 interruption of threads that could go on".to_owned(),
        most => format!("at most {most} interruptions of threads that could go on"),
    });
    let bounds: Vec<String> = most.into_iter().chain(bounds).chain(drawn).collect();
    if let Some((path, wrong)) = outlives {
        return Some((Explored::found(path, wrong), work, bounds));
    }
    let Some((decisions, finish)) = explored.found else {
        let mut ended = Explored::to_the_end(gauge);
        if let (None, Some(at)) = (ended.left_out, explored.endless_at) {
            ended.left_out = Some(LeftOut::Endless { at });
        } else if let (None, Some((at, turns))) = (ended.left_out, explored.gave_up) {
            ended.left_out = Some(LeftOut::GaveUp { at, turns });
        } else if ended.left_out.is_none() && explored.cut_deeper {
            ended.left_out = Some(LeftOut::Deeper);
        }
        return Some((ended, work, bounds));
    };
    let (path, wrong) = simplest(prepared, &schedules, decisions, finish);
    Some((Explored::found(path, wrong), work, bounds))
}

/// Without the feature there are no programs with threads.
#[cfg(not(feature = "threads"))]
fn search_schedules<T: Target>(
    _prepared: &Prepared<T>,
    _gauge: &Gauge,
    _workers: usize,
) -> Option<(Explored, ScheduleWork, Vec<String>)> {
    None
}

/// Which random walks to make.
fn walks(options: &Options) -> Walks {
    Walks {
        seed: options.seed,
        count: options.walks,
        longest: options.depth,
        priority_changes: (options.engine == Engine::Pct).then_some(options.priority_changes),
    }
}

/// An exploration that only lacks its store.
struct Search<'a, S: System> {
    space: &'a Space<'a, S>,
    gauge: &'a Gauge,
    options: &'a Options,
    workers: usize,
}

impl<S: System> Search<'_, S> {
    fn breadth(&self, store: &impl Store<S>) -> Explored {
        breadth::explore(
            self.space,
            store,
            self.gauge,
            self.workers,
            self.options.depth,
        )
    }

    fn depth(&self, store: &impl Store<S>) -> Explored {
        depth::explore(
            self.space,
            store,
            self.gauge,
            self.workers,
            self.options.depth,
        )
    }
}
