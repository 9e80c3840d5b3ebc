//! What ends a search early: time, memory, a person; and what a person can watch meanwhile.

use std::fs;
use std::io::Read as _;
use std::ops::Deref;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::quiet::{Delivery, Job};
use crate::options::Options;
use crate::quantity::Bytes;
use crate::step_guard::{self, LostStep, Searching, Sighting, StepGuard};

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
    ends_process: bool,
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

    /// Says that the process ends once the verdict is printed: what a search has taken up is not freed before that.
    pub fn before_exit(mut self) -> Self {
        self.ends_process = true;
        self
    }

    pub(crate) fn ends_process(&self) -> bool {
        self.ends_process
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
        self.must_end();
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

/// How long a step may take unless the user says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a search that has to end may take to do so between two states, before steps are interrupted.
const BEFORE_INTERRUPTION: Duration = Duration::from_millis(25);

/// How much longer it may take where no step is known in which it does not end.
const BEFORE_ABANDONMENT: Duration = Duration::from_millis(100);

/// How long describing what was found may take after the search had to end. Without it there is no counterexample.
const REPORTING: Duration = Duration::from_secs(3);

/// How long memory that a search took up is waited for where a limit has cut it short.
const FREEING: Duration = Duration::from_millis(20);

/// A search that is watched: its limits, who can stop it, and its steps.
pub(crate) struct Watched<'a> {
    pub(crate) gauge: &'a Gauge,
    pub(crate) options: &'a Options,
    pub(crate) control: &'a Control,
    pub(crate) began: Instant,
    pub(crate) steps: &'a Arc<StepGuard>,
}

/// How a watched search ended.
pub(crate) enum Ended<R> {
    /// With a result.
    Delivered(R),
    /// A step does not return. The search goes on without anybody who waits for it, if it goes on at all.
    Lost(LostStep),
    /// A limit was reached, and the search did not end: in a step that does not return, if that is known.
    Abandoned(Cut, Option<LostStep>),
    /// Something was found, and to describe it took longer than this.
    Undescribed(Duration),
}

impl Watched<'_> {
    /// Runs `search` on an OS thread of its own, [quietly](super::quiet), while this one keeps its limits and shows its progress.
    pub(crate) fn run<R: Send + 'static>(
        &self,
        search: impl FnOnce(&Delivery<R>) + Send + 'static,
    ) -> Ended<R> {
        self.steps.begin();
        let _searching = Searching::begin();
        let job = Job::start({
            let steps = Arc::clone(self.steps);
            move |delivery| {
                let _entered = step_guard::enter(Some(&steps));
                search(delivery);
            }
        });
        let ended = self.watch(&job);
        if let Ended::Delivered(_) = ended {
            job.finish(match self.gauge.cut() {
                _ if self.control.ends_process => Duration::ZERO,
                Some(_) => FREEING,
                None => Duration::MAX,
            });
        }
        ended
    }

    fn watch<R: Send + 'static>(&self, job: &Job<R>) -> Ended<R> {
        let mut shown = self.began;
        let mut memory = MemoryLimit::new(self.options.memory.map(|Bytes(limit)| limit));
        // The steps in progress, with how long each has been seen. Time is counted in looks: where the whole machine
        // stands still for a while, no step is late.
        let mut sightings: Vec<(Sighting, Duration)> = Vec::new();
        let mut since_cut = None;
        let mut described_for = Duration::ZERO;
        loop {
            if let Some(result) = job.wait(BETWEEN_LOOKS) {
                return Ended::Delivered(result);
            }
            if let Some(step) = self.steps.lost() {
                self.gauge.end(Cut::Stopped);
                return Ended::Lost(step);
            }
            if self.control.stop.load(Ordering::Relaxed) {
                self.gauge.end(Cut::Stopped);
            }
            if self
                .options
                .time
                .is_some_and(|limit| self.began.elapsed() >= limit)
            {
                self.gauge.end(Cut::Time);
            }
            if memory.is_reached() {
                self.gauge.end(Cut::Memory);
            }
            let before = std::mem::take(&mut sightings);
            for step in self.steps.in_progress() {
                let known = before.iter().find(|(known, _)| known.is_same(&step));
                let seen = known.map_or(Duration::ZERO, |(_, seen)| *seen + BETWEEN_LOOKS);
                sightings.push((step, seen));
            }
            let patience = self.options.patience.unwrap_or(PATIENCE);
            if self.steps.is_describing() {
                described_for += BETWEEN_LOOKS;
                if described_for >= patience {
                    self.gauge.end(Cut::Stopped);
                    return Ended::Undescribed(patience);
                }
            }
            let mut late = sightings.iter().filter(|(step, seen)| {
                *seen >= patience || *seen >= BETWEEN_LOOKS * 4 && step.is_stopped_in_exit()
            });
            if let Some(step) = late.find_map(|(step, _)| step.abandon()) {
                self.gauge.end(Cut::Stopped);
                return Ended::Lost(step);
            }
            if let Some(cut) = self.gauge.cut() {
                let since = *since_cut.get_or_insert_with(Instant::now);
                if since.elapsed() >= BEFORE_INTERRUPTION {
                    self.steps.interrupt();
                }
                let grace = match self.steps.is_reporting() {
                    true => REPORTING,
                    false => self.grace(cut),
                };
                if since.elapsed() >= grace {
                    let still = sightings
                        .iter()
                        .filter(|(_, seen)| *seen + BETWEEN_LOOKS >= grace / 2);
                    let step = still.map(|(step, _)| step).find_map(Sighting::abandon);
                    let step = step.or_else(|| self.steps.given_up());
                    // On a busy machine its OS thread may not have run since it was interrupted.
                    if step.is_some() || since.elapsed() >= grace + BEFORE_ABANDONMENT {
                        return Ended::Abandoned(cut, step);
                    }
                }
            }
            if shown.elapsed() >= Duration::from_millis(200)
                && let Some(show) = &self.control.progress
            {
                let showing = AssertUnwindSafe(|| show(&progress(self.gauge, self.began)));
                if let Err(payload) = panic::catch_unwind(showing) {
                    // Nobody would watch the search any more.
                    self.gauge.end(Cut::Stopped);
                    panic::resume_unwind(payload);
                }
                shown = Instant::now();
            }
        }
    }

    /// How long a search may take to end by itself after a limit was reached.
    fn grace(&self, cut: Cut) -> Duration {
        let limit = self.options.time.unwrap_or_default();
        match cut {
            Cut::Time => (limit / 50).max(Duration::from_millis(100)),
            Cut::Memory | Cut::States => Duration::from_millis(200),
            Cut::Stopped => Duration::from_millis(500),
        }
    }
}

/// How much memory the process may take.
struct MemoryLimit {
    bytes: Option<u64>,
    looks: u32,
}

impl MemoryLimit {
    /// How many looks pass before the memory of the machine is looked at, where the user has set no limit.
    const LOOKS: u32 = 8;

    fn new(bytes: Option<u64>) -> Self {
        Self { bytes, looks: 0 }
    }

    fn is_reached(&mut self) -> bool {
        self.looks += 1;
        if self.bytes.is_none() && self.looks.is_multiple_of(Self::LOOKS) {
            self.bytes = Some(machine_limit());
        }
        self.bytes
            .is_some_and(|limit| limit > 0 && resident_bytes() >= limit)
    }
}

/// Nine tenths of what the process can have without being killed; 0 where the system does not say.
fn machine_limit() -> u64 {
    let available = file_bytes("/proc/meminfo", "MemAvailable:");
    if available == 0 {
        return 0;
    }
    let of_machine = available + resident_bytes();
    let of_group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let of_group = of_group.and_then(|text| text.trim().parse::<u64>().ok());
    of_machine.min(of_group.unwrap_or(u64::MAX)) / 10 * 9
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
    file_bytes("/proc/self/status", field)
}

fn file_bytes(file: &str, field: &str) -> u64 {
    // Room for all of it: a check that takes a tenth of a millisecond asks for it, too.
    let mut status = String::with_capacity(4 << 10);
    let file = fs::File::open(file);
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
