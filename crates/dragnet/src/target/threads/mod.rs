//! Real multi-threaded code, on primitives that mirror those of `std`.
//!
//! Threads run as coroutines on one thread of the operating system. A thread runs undisturbed up to its next operation
//! on something that it shares; which thread goes on there is decided outside. So an execution is a sequence of
//! decisions, and the same decisions give the same execution.

pub mod arc;
pub mod cell;
mod clocks;
pub(crate) mod data_race;
pub(crate) mod describe;
pub(crate) mod execution;
pub(crate) mod handle;
pub(crate) mod happens_before;
pub mod hint;
pub(crate) mod history;
pub(crate) mod host;
pub(crate) mod model;
mod moments;
pub(crate) mod names;
pub mod net;
mod object;
pub(crate) mod operation;
mod run;
pub(crate) mod runtime;
pub(crate) mod spin;
mod state;
pub mod sync;
pub mod thread;
mod thread_state;
pub mod time;

use std::panic::Location;
use std::time::Duration;

use super::nodes::{FaultKind, Faults};
use super::{Setting, Target, TargetKind};
use crate::engine::{Dpor, Engine, Seed};
pub(crate) use moments::lost;
pub use moments::{Moment, Moments, Turn};
use operation::Action;
use runtime::executor::Program;
pub(crate) use runtime::{executor, world};

/// A program with threads: what is checked is every schedule of them that matters.
///
/// The program uses [`dragnet::sync`](crate::sync) and [`dragnet::thread`](crate::thread) where it used `std::sync` and
/// `std::thread`. It fails when a thread panics, and when some threads wait and none can go on.
///
/// ```
/// use dragnet::sync::Arc;
/// use dragnet::sync::atomic::{AtomicU32, Ordering};
/// use dragnet::{Check, Threads, thread};
///
/// let verdict = Check::new(Threads::new(|| {
///     let count = Arc::new(AtomicU32::new(0));
///     let add_one = |count: Arc<AtomicU32>| {
///         // What another thread adds between the two is lost.
///         let seen = count.load(Ordering::SeqCst);
///         count.store(seen + 1, Ordering::SeqCst);
///     };
///     let other = Arc::clone(&count);
///     let other = thread::spawn(move || add_one(other));
///     add_one(Arc::clone(&count));
///     other.join().unwrap();
///     assert_eq!(count.load(Ordering::SeqCst), 2);
/// }))
/// .run();
/// assert!(verdict.violation().is_some());
/// ```
pub struct Threads {
    main: Box<dyn Fn() + Send + Sync>,
    setting: world::Setting,
}

impl Threads {
    /// A program that begins with `main`, which is called once for each execution.
    pub fn new(main: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            main: Box::new(main),
            setting: world::Setting {
                stack_bytes: 256 << 10,
                spurious_wakeups: 0,
                panics_are_fine: false,
                fruitless_turns: 2,
                patience: Duration::from_secs(10),
                faults: Faults::none(),
                seed: Seed(0),
                without_std_arcs: false,
                reports_leaks: false,
            },
        }
    }

    /// The executions of the program as a [`System`](crate::System), for a search of one's own.
    ///
    /// ```
    /// use dragnet::sync::atomic::{AtomicU32, Ordering};
    /// use dragnet::{System, Threads};
    ///
    /// let program = Threads::new(|| {
    ///     let count = AtomicU32::new(0);
    ///     count.fetch_add(1, Ordering::SeqCst);
    /// });
    /// let program = program.system();
    /// let mut run = program.run(&program.initial()[0])?;
    /// while !run.events()?.is_empty() {
    ///     run.take(0)?;
    /// }
    /// assert_eq!(run.steps(), 2, "the addition and the end of the thread");
    /// # Ok::<(), dragnet::Failure>(())
    /// ```
    pub fn system(self) -> Moments {
        Moments::new(Program::new(self.main.into(), self.setting))
    }

    /// How large the stack of each thread is: 256 KiB unless said otherwise. 24 KiB of it are kept free for Dragnet, so that
    /// with 48 KiB or less hardly anything can be done there. A thread that asks for more with
    /// [`thread::Builder::stack_size`](crate::thread::Builder::stack_size) gets that, and those 24 KiB beside it.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.setting.stack_bytes = bytes;
        self
    }

    /// How long a thread may run without coming to an operation that Dragnet sees: 10 seconds unless said otherwise. One
    /// that takes longer, because it waits for something real or computes for long, is a failure.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.setting.patience = patience;
        self
    }

    /// How often threads may wake up at each condition variable though nobody has notified them: never unless said
    /// otherwise.
    pub fn spurious_wakeups(mut self, times: u32) -> Self {
        self.setting.spurious_wakeups = times;
        self
    }

    /// How often a thread goes round a loop without seeing anything new while others can go on: twice unless said
    /// otherwise, and eight times as often if it does not yield, sleep or wait for a while in it. After that it waits for
    /// something that it looks at to change.
    ///
    /// A loop that waits for another thread has no end of schedules without this. One that ends by itself, as it turns out
    /// when the thread is run alone, does not wait: all of its turns are followed.
    pub fn fruitless_turns(mut self, turns: u32) -> Self {
        self.setting.fruitless_turns = turns;
        self
    }

    /// What may go wrong between [processes](crate::process), so often in one execution: [`drops`](crate::drops) and
    /// [`duplicates`](crate::duplicates) of datagrams, [`resets`](crate::resets) of connections,
    /// [`crashes`](crate::crashes) and [`restarts`](crate::restarts) of processes. A second call adds to the first, and
    /// counts where both name the same kind.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.setting.faults = self.setting.faults.and(faults);
        self
    }

    /// What the numbers of [`rand`](crate::rand) follow from: 0 unless said otherwise. They are the same in every execution,
    /// so that a check speaks of one seed.
    ///
    /// ```
    /// use dragnet::{Check, Threads, rand};
    ///
    /// let dice = || assert_ne!(rand::rng().range(1..=6), 4);
    /// let falls = |&seed: &u64| Check::new(Threads::new(dice).seed(seed)).run().violation().is_some();
    /// assert!((0..100).any(|seed| falls(&seed)) && !(0..100).all(|seed| falls(&seed)));
    /// ```
    pub fn seed(mut self, seed: impl Into<Seed>) -> Self {
        self.setting.seed = seed.into();
        self
    }

    /// Promises that no `Arc` of `std` orders accesses to checked cells: whatever happens-before leaves unordered is a data race
    /// then, and nothing is a [warning](crate::Verdict::warnings). An [`Arc`](crate::arc::Arc) of Dragnet's is seen anyway.
    pub fn without_std_arcs(mut self) -> Self {
        self.setting.without_std_arcs = true;
        self
    }

    /// Has it be a failure that an [`Arc`](crate::arc::Arc) of Dragnet's still has owners when all threads have ended: it was
    /// forgotten, given away by `into_raw`, or owns itself in a circle. What a static owns counts as well.
    pub fn report_leaks(mut self) -> Self {
        self.setting.reports_leaks = true;
        self
    }

    /// Lets threads panic: who joins them learns of it, and the locks that they held are poisoned. A panic of the first
    /// thread is a failure still.
    pub fn panics_are_fine(mut self) -> Self {
        self.setting.panics_are_fine = true;
        self
    }
}

/// One of the numbers below `count`: under a check of [`Threads`] every one of them is tried; outside it is 0.
///
/// ```
/// use dragnet::{Check, Threads, choose};
///
/// let verdict = Check::new(Threads::new(|| assert_ne!(choose(3), 2))).run();
/// assert!(verdict.violation().is_some());
/// ```
///
/// With more than 2^24 numbers to choose from the check is inconclusive.
///
/// # Panics
/// When there is nothing to choose from.
#[track_caller]
pub fn choose(count: usize) -> usize {
    assert!(count > 0, "there is nothing to choose from");
    let Some(world) = world::current() else {
        return 0;
    };
    let options = match u32::try_from(count) {
        Ok(options) if options <= MOST_OPTIONS => options,
        _ => world.exceed(format!(
            "a thread chooses among {count} numbers at {}, and {MOST_OPTIONS} are the most that are explored",
            Location::caller()
        )),
    };
    let action = Action::Choose(options);
    let chosen = world.operate_on_self(action, Location::caller());
    chosen.unwrap_or_default() as usize
}

/// Every number is a transition of its own, listed at each step until the choice is made.
const MOST_OPTIONS: u32 = 1 << 24;

/// What bounds an exploration in which a thread went round without seeing anything new.
pub(crate) fn round_bound(turns: u32) -> String {
    let often = turns.saturating_mul(spin::detection::WITHOUT_STEPPING_ASIDE);
    format!(
        "a loop that sees nothing new turns {turns} times while other threads can go on, or {often} times if it does not yield"
    )
}

/// What bounds an exploration in which random numbers were drawn.
pub(crate) fn seed_bound(seed: Seed) -> String {
    format!("the random numbers of seed {seed}")
}

impl Target for Threads {
    type System = Moments;
    type View<'a> = &'a Moment;

    fn prepare(self, _setting: &Setting) -> Moments {
        self.system()
    }

    fn view<'a>(_system: &'a Moments, state: &'a Moment) -> &'a Moment {
        state
    }

    fn kind(&self) -> TargetKind {
        TargetKind::Threads
    }

    fn bounds(&self) -> Vec<String> {
        let mut bounds = match self.setting.spurious_wakeups {
            0 => Vec::new(),
            1 => vec!["1 wake-up for no reason at each condition variable".to_owned()],
            times => vec![format!(
                "{times} wake-ups for no reason at each condition variable"
            )],
        };
        if !self.setting.faults.is_none() {
            bounds.push(format!("faults {}", self.setting.faults));
        }
        bounds
    }

    fn faults_mut(&mut self) -> Option<&mut Faults> {
        Some(&mut self.setting.faults)
    }

    fn objection(&self) -> Option<String> {
        let parted = self.setting.faults.budget(FaultKind::Partition) > 0;
        parted.then(|| {
            "processes are not parted from each other; `drops` loses their datagrams, and `resets` breaks their connections"
                .to_owned()
        })
    }

    fn preferred_engine(&self) -> Engine {
        Dpor::new().into()
    }

    fn must_not_deadlock(&self) -> bool {
        true
    }
}
