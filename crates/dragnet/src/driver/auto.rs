//! Local model checking and breadth first side by side.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::engines::{Searched, explore, explore_parts, taken_apart, within_limits};
use super::host::Host;
use super::run::Prepared;
use crate::engine::{Auto, Breadth, EngineName};
use crate::explore::limits::Gauge;
use crate::explore::quiet;
use crate::explore::walk::Space;
use crate::system::System;
use crate::target::nodes::Nodes;
use crate::verdict::LocalWork;

/// How long the local engine has the cores to itself.
const HEAD_START: Duration = Duration::from_secs(2);

/// The nodes of a cluster are explored by two engines; what cannot be taken apart is explored by one alone.
pub(super) fn explore_auto<H: Host>(
    prepared: &Prepared<H>,
    auto: Auto,
    gauge: &Gauge,
    workers: usize,
) -> Searched {
    if let Some(prepared) = taken_apart(prepared) {
        return race(prepared, auto, gauge, workers);
    }
    #[cfg(feature = "threads")]
    if H::threads(prepared).is_some() {
        return explore(prepared, auto.dpor.into(), Gauge::shared(gauge), workers);
    }
    let breadth = Breadth::new().into();
    explore(prepared, breadth, Gauge::shared(gauge), workers)
}

/// Local model checking by itself for a moment, then breadth first beside it: whichever has a verdict first.
fn race(prepared: &Prepared<Nodes>, auto: Auto, gauge: &Gauge, workers: usize) -> Searched {
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
        let (threads, space) = (&threads, &space);
        let told = done.clone();
        quiet::spawn_worker(scope, move || {
            let searched = panic::catch_unwind(AssertUnwindSafe(|| {
                let mut work = LocalWork::default();
                let explored = within_limits(|| {
                    let pruning = auto.local.pruning;
                    explore_parts(prepared, space, pruning, &local_gauge, threads, &mut work)
                });
                Searched {
                    explored,
                    local: Some(work),
                    coarse_hash: prepared.system.coarse_hash(),
                    ..Searched::nothing(EngineName::Local, local_gauge)
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
            let search = || explore(prepared, Breadth::new().into(), breadth_gauge, for_breadth);
            _ = done.send(panic::catch_unwind(AssertUnwindSafe(search)));
        });
        let mut last = None;
        for searched in news {
            match searched {
                // Of two that were cut short, breadth first tells more.
                Ok(searched) if !searched.is_complete() => {
                    if last.is_none() || searched.engine == EngineName::Breadth {
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
