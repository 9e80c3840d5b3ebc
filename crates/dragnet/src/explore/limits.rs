//! What ends a search early: time, memory, a person; and what a person can watch meanwhile.

use std::fs;
use std::io::Read as _;
use std::ops::Deref;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::quiet;
use crate::options::Options;

/// Watches a search and can stop it.
///
/// ```
/// use dragnet::Control;
///
/// let control = Control::default().on_progress(|progress| eprintln!("{} states", progress.states));
/// let stop = control.stopper();
/// // From another thread or a signal handler: the search ends with the verdict so far.
/// stop.store(true, std::sync::atomic::Ordering::Relaxed);
/// ```
#[derive(Default)]
pub struct Control {
    stop: Arc<AtomicBool>,
    progress: Option<Watch>,
}

type Watch = Box<dyn Fn(&Progress) + Send + Sync>;

/// How far a search has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Distinct states so far.
    pub states: u64,
    /// Steps taken so far.
    pub transitions: u64,
    /// The length of the longest execution so far.
    pub depth: u64,
    /// States that are known and not yet expanded.
    pub frontier: u64,
    /// What the process takes up now.
    pub memory_bytes: u64,
    /// How long it has been going.
    pub elapsed: Duration,
}

impl Control {
    /// Calls `watch` several times a second while a search runs.
    pub fn on_progress(mut self, watch: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Box::new(watch));
        self
    }

    /// A flag that ends the search when it is set.
    pub fn stopper(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }
}

/// Why a search was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Time,
    Memory,
    Stopped,
    /// A fixed number of states, which only the search for a shorter counterexample sets.
    States,
}

impl Cut {
    const ALL: [Self; 4] = [Self::Time, Self::Memory, Self::Stopped, Self::States];
}

/// What a running search counts, and whether it must end.
pub(crate) struct Gauge {
    cut: Arc<AtomicU8>,
    /// What ends the searches that this one is part of, however deep.
    outer: Vec<Arc<AtomicU8>>,
    counts: Arc<Counts>,
    max_states: u64,
}

/// What a running search counts.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) states: AtomicU64,
    pub(crate) transitions: AtomicU64,
    pub(crate) depth: AtomicU64,
    pub(crate) frontier: AtomicU64,
}

impl Deref for Gauge {
    type Target = Counts;

    fn deref(&self) -> &Counts {
        &self.counts
    }
}

impl Gauge {
    pub(crate) fn new() -> Self {
        Self {
            cut: Arc::default(),
            outer: Vec::new(),
            counts: Arc::default(),
            max_states: u64::MAX,
        }
    }

    /// A gauge that ends the search at this many states.
    pub(crate) fn up_to(max_states: u64) -> Self {
        Self {
            max_states,
            ..Self::new()
        }
    }

    /// A gauge for a search that is part of another, and may end at a number of states of its own.
    pub(crate) fn inside(outer: &Self, max_states: Option<u64>) -> Self {
        let around = outer.outer.iter().chain([&outer.cut]);
        Self {
            outer: around.map(Arc::clone).collect(),
            ..Self::up_to(max_states.unwrap_or(u64::MAX))
        }
    }

    /// A gauge for the search that another watches: it ends with that, or by itself, and counts for both.
    pub(crate) fn shared(outer: &Self) -> Self {
        Self {
            counts: Arc::clone(&outer.counts),
            ..Self::inside(outer, None)
        }
    }

    /// Counts from zero again.
    pub(crate) fn restart(&self) {
        for count in [&self.states, &self.transitions, &self.depth, &self.frontier] {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Whether the search must end. Asked once for each few states.
    pub(crate) fn must_end(&self) -> bool {
        if self.states.load(Ordering::Relaxed) > self.max_states {
            self.end(Cut::States);
        }
        for outer in &self.outer {
            let code = outer.load(Ordering::Relaxed);
            if code != 0 {
                self.end(Cut::ALL[usize::from(code) - 1]);
            }
        }
        self.cut.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn cut(&self) -> Option<Cut> {
        match self.cut.load(Ordering::Relaxed) {
            0 => None,
            cut => Some(Cut::ALL[usize::from(cut) - 1]),
        }
    }

    pub(crate) fn add(&self, states: u64, transitions: u64) {
        self.states.fetch_add(states, Ordering::Relaxed);
        self.transitions.fetch_add(transitions, Ordering::Relaxed);
    }

    pub(crate) fn reach(&self, depth: u64) {
        self.depth.fetch_max(depth, Ordering::Relaxed);
    }

    /// What ends this search alone, because another has its verdict.
    pub(crate) fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.cut))
    }

    fn end(&self, cut: Cut) {
        let code = Cut::ALL
            .iter()
            .position(|&known| known == cut)
            .expect("all are listed") as u8
            + 1;
        let _ = self
            .cut
            .compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Ends a search.
pub(crate) struct Stopper(Arc<AtomicU8>);

impl Stopper {
    pub(crate) fn end(&self) {
        let stopped = Cut::ALL.iter().position(|&cut| cut == Cut::Stopped);
        let code = stopped.expect("all are listed") as u8 + 1;
        let _ = self
            .0
            .compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// How long a search goes on between two looks at its limits.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Runs `search` on a thread of its own, [quietly](quiet), while this one keeps its limits and shows its progress.
pub(crate) fn watched<R: Send>(
    gauge: &Gauge,
    options: &Options,
    control: &Control,
    search: impl FnOnce() -> R + Send,
) -> R {
    let began = Instant::now();
    let mut shown = began;
    quiet::run_watched(search, BETWEEN_LOOKS, || {
        if control.stop.load(Ordering::Relaxed) {
            gauge.end(Cut::Stopped);
        }
        if options.time.is_some_and(|limit| began.elapsed() >= limit) {
            gauge.end(Cut::Time);
        }
        if options
            .memory
            .is_some_and(|limit| resident_bytes() >= limit)
        {
            gauge.end(Cut::Memory);
        }
        if let Some(show) = &control.progress
            && shown.elapsed() >= Duration::from_millis(200)
        {
            let showing = AssertUnwindSafe(|| show(&progress(gauge, began)));
            if let Err(payload) = panic::catch_unwind(showing) {
                // Nobody would watch the search any more.
                gauge.end(Cut::Stopped);
                panic::resume_unwind(payload);
            }
            shown = Instant::now();
        }
    })
}

fn progress(gauge: &Gauge, began: Instant) -> Progress {
    Progress {
        states: gauge.states.load(Ordering::Relaxed),
        transitions: gauge.transitions.load(Ordering::Relaxed),
        depth: gauge.depth.load(Ordering::Relaxed),
        frontier: gauge.frontier.load(Ordering::Relaxed),
        memory_bytes: resident_bytes(),
        elapsed: began.elapsed(),
    }
}

/// The memory that the process takes up now; 0 where the system does not say.
fn resident_bytes() -> u64 {
    status_bytes("VmRSS:")
}

/// The most memory that the process has taken up so far; 0 where the system does not say.
pub(crate) fn peak_resident_bytes() -> u64 {
    status_bytes("VmHWM:")
}

fn status_bytes(field: &str) -> u64 {
    // Room for all of it: a check that takes a tenth of a millisecond asks for it, too.
    let mut status = String::with_capacity(4 << 10);
    let file = fs::File::open("/proc/self/status");
    let read = file.and_then(|mut file| file.read_to_string(&mut status));
    let known = if read.is_ok() { &status } else { "" };
    known
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_ends_with_every_search_that_it_is_part_of() {
        let outermost = Gauge::new();
        let shared = Gauge::shared(&outermost);
        let innermost = Gauge::inside(&Gauge::inside(&shared, None), Some(1_000));
        assert!(!innermost.must_end());
        outermost.end(Cut::Time);
        assert!(innermost.must_end());
        assert_eq!(innermost.cut(), Some(Cut::Time));
    }
}
