//! The checkers that are compared, and how each runs a program.

use std::any::Any;
use std::fmt::{self, Display};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use clap::ValueEnum;
use dragnet::engine::{Dpor, Engine, Pct, Random, Reduction};
use dragnet::{Check, Outcome, Threads};
use serde::{Deserialize, Serialize};
use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler};
use shuttle::{FailurePersistence, Runner};

/// How many changes of priority are made on a random walk by priorities: bugs that need no more are found with a chance that
/// is known.
const PRIORITY_CHANGES: u32 = 2;

/// A crate whose primitives programs are written on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Dragnet,
    Loom,
    Shuttle,
}

/// A way to explore the schedules of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checker {
    /// Dragnet as it is by default, on all cores.
    Dragnet,
    /// Dragnet with one thread: one execution of each class.
    DragnetOptimal,
    /// Dragnet with one thread: every interleaving.
    DragnetNone,
    /// Dragnet with one thread: at random.
    DragnetRandom,
    /// Dragnet with one thread: with random priorities.
    DragnetPct,
    /// loom, without a bound on preemptions.
    Loom,
    /// shuttle, depth first: every interleaving.
    ShuttleDfs,
    /// shuttle, at random.
    ShuttleRandom,
    /// shuttle, with random priorities.
    ShuttlePct,
}

/// What a check came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// There are no more executions.
    Complete,
    /// The time was over.
    Cut,
    /// Something wrong was found.
    Wrong(String),
}

/// One check of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    pub end: End,
    /// Executions, without those that were given up; up to the bug, with it, if there is one.
    pub executions: u64,
    /// Executions that were given up because others are like them.
    pub blocked: u64,
}

impl Checker {
    /// Those that run all that there is to run.
    pub const EXHAUSTIVE: [Self; 4] = [
        Self::DragnetOptimal,
        Self::DragnetNone,
        Self::Loom,
        Self::ShuttleDfs,
    ];

    /// Those that look for bugs.
    pub const HUNTERS: [Self; 7] = [
        Self::Dragnet,
        Self::DragnetRandom,
        Self::DragnetPct,
        Self::Loom,
        Self::ShuttleDfs,
        Self::ShuttleRandom,
        Self::ShuttlePct,
    ];

    /// Whose primitives it understands.
    pub fn tool(self) -> Tool {
        match self {
            Self::Dragnet
            | Self::DragnetOptimal
            | Self::DragnetNone
            | Self::DragnetRandom
            | Self::DragnetPct => Tool::Dragnet,
            Self::Loom => Tool::Loom,
            Self::ShuttleDfs | Self::ShuttleRandom | Self::ShuttlePct => Tool::Shuttle,
        }
    }

    /// Whether another seed gives another check.
    pub fn draws(self) -> bool {
        matches!(
            self,
            Self::DragnetRandom | Self::DragnetPct | Self::ShuttleRandom | Self::ShuttlePct
        )
    }

    /// Checks a program for as long as there is time.
    pub fn check(self, program: fn(), seed: u64, time: Duration) -> Checked {
        let check = || Check::new(Threads::new(program)).time(time);
        let one = |reduction| check().threads(1).engine(Dpor::new().reduction(reduction));
        let walks = |engine: Engine| check().threads(1).engine(engine);
        let random = Random::new().seed(seed).walks(u64::MAX);
        let pct = Pct::new().seed(seed).walks(u64::MAX);
        let endless = usize::MAX;
        match self {
            Self::Dragnet => by_dragnet(check()),
            Self::DragnetOptimal => by_dragnet(one(Reduction::Optimal)),
            Self::DragnetNone => by_dragnet(one(Reduction::None)),
            Self::DragnetRandom => by_dragnet(walks(random.into())),
            Self::DragnetPct => by_dragnet(walks(pct.priority_changes(PRIORITY_CHANGES).into())),
            Self::Loom => by_loom(program, time),
            Self::ShuttleDfs => by_shuttle(DfsScheduler::new(None, false), program, time),
            Self::ShuttleRandom => {
                let scheduler = RandomScheduler::new_from_seed(seed, endless);
                by_shuttle(scheduler, program, time)
            }
            Self::ShuttlePct => {
                // It counts where priorities begin as a change.
                let depth = PRIORITY_CHANGES as usize + 1;
                let scheduler = PctScheduler::new_from_seed(seed, depth, endless);
                by_shuttle(scheduler, program, time)
            }
        }
    }
}

fn by_dragnet(check: Check<Threads>) -> Checked {
    let verdict = check.run();
    let work = verdict.statistics.schedules;
    let work = work.expect("schedules are what is explored");
    Checked {
        end: match verdict.outcome {
            Outcome::Holds => End::Complete,
            Outcome::Inconclusive(_) => End::Cut,
            Outcome::Violated(violation) => End::Wrong(violation.property),
        },
        executions: work.executions,
        blocked: work.blocked_executions,
    }
}

/// loom asks for the time after so many executions.
const LOOM_INTERVAL: usize = 16;

fn by_loom(program: fn(), time: Duration) -> Checked {
    let mut loom = loom::model::Builder::new();
    loom.preemption_bound = None;
    loom.max_branches = 100_000;
    loom.max_duration = Some(time);
    loom.checkpoint_interval = LOOM_INTERVAL;
    counted(time, program, |program| loom.check(program))
}

fn by_shuttle(scheduler: impl Scheduler + 'static, program: fn(), time: Duration) -> Checked {
    let mut config = shuttle::Config::new();
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    config.max_time = Some(time);
    let runner = Runner::new(scheduler, config);
    counted(time, program, |program| {
        runner.run(program);
    })
}

/// Has a checker that tells of what is wrong by a panic run a program, and counts how often it does.
fn counted(
    time: Duration,
    program: fn(),
    check: impl FnOnce(Box<dyn Fn() + Send + Sync>),
) -> Checked {
    let executions = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&executions);
    let program = Box::new(move || {
        count.fetch_add(1, Relaxed);
        program();
    });
    let start = std::time::Instant::now();
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let checked = panic::catch_unwind(AssertUnwindSafe(|| check(program)));
    panic::set_hook(hook);
    Checked {
        end: match checked {
            Err(payload) => End::Wrong(message(&*payload)),
            Ok(()) if start.elapsed() >= time => End::Cut,
            Ok(()) => End::Complete,
        },
        executions: executions.load(Relaxed),
        blocked: 0,
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic").to_owned()
}

impl Display for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dragnet => "Dragnet",
            Self::DragnetOptimal => "Dragnet, optimal",
            Self::DragnetNone => "Dragnet, none",
            Self::DragnetRandom => "Dragnet, random",
            Self::DragnetPct => "Dragnet, PCT",
            Self::Loom => "loom",
            Self::ShuttleDfs => "shuttle, DFS",
            Self::ShuttleRandom => "shuttle, random",
            Self::ShuttlePct => "shuttle, PCT",
        })
    }
}
