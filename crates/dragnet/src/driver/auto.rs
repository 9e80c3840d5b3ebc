//! Local model checking and breadth first side by side.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::engines::{Searched, explore, explore_parts, taken_apart, within_limits};
use super::run::Prepared;
use crate::engine::{Auto, Breadth, Engine, EngineName};
use crate::explore::limits::Gauge;
use crate::explore::quiet;
use crate::explore::walk::Space;
use crate::system::System;
use crate::target::Target;
use crate::verdict::LocalWork;

/// How long the local engine has the cores to itself.
const HEAD_START: Duration = Duration::from_secs(2);

/// Local model checking by itself for a moment, then breadth first beside it: whichever has a verdict first.
pub(super) fn race<T: Target>(
    prepared: &Prepared<T>,
    auto: Auto,
    gauge: &Gauge,
    workers: usize,
) -> Searched {
    let Some(apart) = taken_apart(prepared) else {
        // What cannot be taken apart is explored by one engine alone.
        let alone = match T::multithreaded(&prepared.system) {
            Some(_) => Engine::Dpor(auto.dpor),
            None => Breadth::new().into(),
        };
        return explore(prepared, alone, Gauge::shared(gauge), workers);
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
                    let pruning = auto.local.pruning;
                    explore_parts(
                        prepared,
                        space,
                        apart,
                        pruning,
                        &local_gauge,
                        threads,
                        &mut work,
                    )
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
