//! Steps in progress: code of the program under test may never return, and may take the process with it.
//!
//! Every OS thread of a search has a slot that points to the step which it runs. The thread that watches the search reads
//! the slots: it sees a step that does not return, and describes it. Where the program overflows its stack, panics while it
//! unwinds or ends the process, a [signal handler or exit hook](crash) notes that in the slot and never returns, so the
//! process lives on without that OS thread. Either way the step is *lost*. A search that has lost a step is begun anew with
//! that step [refused](StepGuard::refuse): it fails instead of being run, and is reported like every other failure, by
//! whichever engine, with a counterexample.
//!
//! # Protocol
//!
//! The step that a slot points to lies on the stack of the OS thread that runs it. Its owner takes the pointer out before
//! the step ends, and then looks whether the slot is being read; if so, it waits for the reader. The reader says that it
//! reads before it loads the pointer. Both accesses are sequentially consistent, so one of the two sees the other.

#[cfg(feature = "threads")]
pub(crate) mod controlled;
mod crash;

use std::collections::HashMap;
use std::mem;
use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::panics;
use crate::system::{Failure, FailureKind};

#[cfg(feature = "threads")]
pub(crate) use crash::install_exit_hook;
pub(crate) use crash::{expect_abort, os_thread};

/// Whether code under test has tried to end the process.
static HAS_EXITED: AtomicBool = AtomicBool::new(false);

/// The status with which it has tried to.
static EXIT_STATUS: AtomicI32 = AtomicI32::new(0);

/// Notes that code under test has tried to end the process.
pub(crate) fn note_exit(status: i32) {
    EXIT_STATUS.store(status, SeqCst);
    HAS_EXITED.store(true, SeqCst);
}

/// Whether code under test has tried to end the process. An OS thread is stopped inside `exit` then, which may hold a lock
/// that `exit` takes again: the process can only be ended at once.
pub(crate) fn has_exited() -> bool {
    HAS_EXITED.load(SeqCst)
}

/// The status with which code under test has tried to end the process, if it has.
pub(crate) fn exit_status() -> Option<i32> {
    has_exited().then(|| EXIT_STATUS.load(SeqCst))
}

/// Ends the process at once, without exit hooks, if code under test has tried to end it: an OS thread is stopped inside
/// `exit` then, and that cannot be entered again. For command lines, once they have printed the verdict.
#[doc(hidden)]
pub fn end_process_if_stopped_in_exit(status: i32) {
    use std::io::Write as _;

    if has_exited() {
        let _ = std::io::stdout().flush();
        end_process(status);
    }
}

/// Ends the process at once, without exit hooks. For command lines that are told to stop while a check runs.
#[doc(hidden)]
pub fn end_process(status: i32) -> ! {
    #[cfg(target_os = "linux")]
    // SAFETY: it has no conditions.
    unsafe {
        libc::_exit(status)
    }
    #[cfg(not(target_os = "linux"))]
    std::process::exit(status)
}

/// How many searches run in this process.
static SEARCHES: AtomicUsize = AtomicUsize::new(0);

/// While this exists, a search runs: whatever ends the process is reported, also outside of steps.
pub(crate) struct Searching(());

impl Searching {
    pub(crate) fn begin() -> Self {
        crash::keep_stderr();
        SEARCHES.fetch_add(1, SeqCst);
        Self(())
    }
}

impl Drop for Searching {
    fn drop(&mut self) {
        SEARCHES.fetch_sub(1, SeqCst);
    }
}

/// A step of the program under test: what a person and a repeated search know it by.
pub(crate) trait Step: Sync {
    /// The same for the same step in every search of the same system.
    fn key(&self) -> u64;

    /// The step as a person reads it.
    fn describe(&self) -> String;

    /// Whose step it is, where that can be said without allocating.
    fn owner(&self) -> &str;
}

/// The steps that the OS threads of a search run, and those that are not run again.
pub(crate) struct StepGuard {
    slots: Mutex<Vec<Arc<Slot>>>,
    phase: AtomicU8,
    refused: Mutex<HashMap<u64, Failure>>,
    has_refused: AtomicBool,
    /// The first step that was given up because the search had to end.
    given_up: Mutex<Option<LostStep>>,
    /// A step that takes the process with it is survived.
    is_watched: AtomicBool,
    /// A step of this search has tried to end the process.
    has_exited: AtomicBool,
}

/// The phases of a search.
const SEARCHING: u8 = 0;
/// The search has to end.
const INTERRUPTED: u8 = 1;
/// What was found is being described, which is not interrupted.
const REPORTING: u8 = 2;
/// It is put into words, by the `Debug` of the program.
const DESCRIBING: u8 = 3;

/// What one OS thread runs.
struct Slot {
    /// The innermost step in progress, or null.
    running: AtomicPtr<Running>,
    /// How many steps have begun.
    begun: AtomicU64,
    is_read: AtomicBool,
    reading: Mutex<()>,
    /// How the step was lost: a [`Loss`].
    loss: AtomicU8,
    /// The status with which the step has ended the process.
    status: AtomicI32,
    /// The OS thread never goes on behind the step that it runs.
    is_abandoned: AtomicBool,
    /// The OS thread, as the system numbers it.
    os_thread: i32,
    guard: Arc<StepGuard>,
}

/// A step in progress. The lifetime of what it points to is kept by the protocol of its slot.
struct Running {
    step: *const (dyn Step + 'static),
}

/// How a step was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// It has not returned for too long.
    Stuck,
    /// It has overflowed its stack.
    Overflow,
    /// It has panicked while it unwound.
    DoublePanic,
    /// It has ended the process with this status.
    Exit(i32),
}

impl Loss {
    const OVERFLOW: u8 = 1;
    const DOUBLE_PANIC: u8 = 2;
    const EXIT: u8 = 3;
}

/// Whether an OS thread waits inside `exit` for another that has called it: of several, `std` has all but the first wait for
/// ever.
pub(crate) fn is_stopped_in_exit(thread: i32) -> bool {
    has_exited() && crash::is_paused(thread)
}

/// A step that does not return.
pub(crate) struct LostStep {
    pub(crate) key: u64,
    pub(crate) description: String,
    pub(crate) loss: Loss,
}

/// A step that an OS thread was seen to run.
#[derive(Clone)]
pub(crate) struct Sighting {
    slot: Arc<Slot>,
    begun: u64,
}

thread_local! {
    /// The slot of this OS thread while it takes part in a search, or null. Signal handlers read it.
    static SLOT: AtomicPtr<Slot> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// While this exists, the OS thread that made it takes part in a search.
pub(crate) struct Entered {
    slot: Arc<Slot>,
    outer: *mut Slot,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let _ = SLOT.try_with(|slot| slot.store(self.outer, Relaxed));
        lock(&self.slot.guard.slots).retain(|slot| !Arc::ptr_eq(slot, &self.slot));
    }
}

/// Has this OS thread take part in a search, if there is one, until what this returns is dropped.
pub(crate) fn enter(guard: Option<&Arc<StepGuard>>) -> Option<Entered> {
    let guard = guard?;
    crash::install();
    let slot = Arc::new(Slot {
        running: AtomicPtr::new(ptr::null_mut()),
        begun: AtomicU64::new(0),
        is_read: AtomicBool::new(false),
        reading: Mutex::new(()),
        loss: AtomicU8::new(0),
        status: AtomicI32::new(0),
        is_abandoned: AtomicBool::new(false),
        os_thread: os_thread(),
        guard: Arc::clone(guard),
    });
    lock(&guard.slots).push(Arc::clone(&slot));
    let at = Arc::as_ptr(&slot).cast_mut();
    let outer = SLOT.with(|known| known.swap(at, Relaxed));
    Some(Entered { slot, outer })
}

/// The slot of this OS thread, if it takes part in a search.
#[inline]
fn slot<'a>() -> Option<&'a Slot> {
    let slot = SLOT.try_with(|slot| slot.load(Relaxed)).ok()?;
    // SAFETY: the slot is taken away before it is freed, by the same OS thread.
    unsafe { slot.as_ref() }
}

/// The guard of the search that this OS thread takes part in.
pub(crate) fn current() -> Option<Arc<StepGuard>> {
    slot().map(|slot| Arc::clone(&slot.guard))
}

/// Runs `code`, which is `step`, unless that is refused: then it panics with the failure that the step is.
#[inline]
pub(crate) fn run<R>(step: &dyn Step, code: impl FnOnce() -> R) -> R {
    let Some(slot) = slot() else {
        return code();
    };
    if let Some(failure) = refusal(|| step.key()) {
        panics::raise(failure);
    }
    // SAFETY: the pointer is taken out of the slot before `step` ends, and nobody reads it after that: see the protocol.
    let step = unsafe { mem::transmute::<*const dyn Step, *const (dyn Step + 'static)>(step) };
    let mut running = Running { step };
    let _in_progress = InProgress {
        slot,
        outer: slot.running.load(Relaxed),
    };
    slot.begun.store(slot.begun.load(Relaxed) + 1, Relaxed);
    slot.running.store(&raw mut running, Release);
    code()
}

/// The failure that a step is instead of being run, if it is one.
#[inline]
pub(crate) fn refusal(key: impl FnOnce() -> u64) -> Option<Failure> {
    match refuses_some() {
        true => lock(&slot()?.guard.refused).get(&key()).cloned(),
        false => None,
    }
}

/// Whether some step fails instead of being run.
#[inline]
pub(crate) fn refuses_some() -> bool {
    slot().is_some_and(|slot| slot.guard.has_refused.load(Relaxed))
}

/// Gives up a step in which the target itself or its program goes on and on, if the search has to end. `doing` describes the
/// step.
#[inline]
pub(crate) fn give_up_if_interrupted(doing: impl FnOnce() -> String) {
    if let Some(slot) = slot()
        && (slot.guard.phase.load(Relaxed) == INTERRUPTED || slot.is_abandoned.load(Relaxed))
    {
        slot.note_given_up();
        panics::limit(doing());
    }
}

/// What was found by the search that this OS thread takes part in is described from now on, which is not interrupted.
pub(crate) fn report() {
    if let Some(slot) = slot() {
        slot.guard.phase.store(REPORTING, SeqCst);
    }
}

/// The counterexample of the search that this OS thread takes part in is put into words from now on.
pub(crate) fn describe() {
    if let Some(slot) = slot() {
        slot.guard.phase.store(DESCRIBING, SeqCst);
    }
}

impl StepGuard {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            slots: Mutex::default(),
            phase: AtomicU8::new(SEARCHING),
            refused: Mutex::default(),
            has_refused: AtomicBool::new(false),
            given_up: Mutex::default(),
            is_watched: AtomicBool::new(false),
            has_exited: AtomicBool::new(false),
        })
    }

    /// Begins a search. From now on a step that takes the process with it is survived, also one of an OS thread that goes on
    /// when the search is over.
    pub(crate) fn begin(&self) {
        *lock(&self.given_up) = None;
        self.phase.store(SEARCHING, SeqCst);
        self.is_watched.store(true, SeqCst);
    }

    /// Ends the loops of the target itself, over choices or messages, and those of handlers that do something in them.
    pub(crate) fn interrupt(&self) {
        let _ = self
            .phase
            .compare_exchange(SEARCHING, INTERRUPTED, SeqCst, SeqCst);
    }

    /// Whether what was found is being described.
    pub(crate) fn is_reporting(&self) -> bool {
        matches!(self.phase.load(SeqCst), REPORTING | DESCRIBING)
    }

    /// Whether a counterexample that is short enough is put into words.
    pub(crate) fn is_describing(&self) -> bool {
        self.phase.load(SeqCst) == DESCRIBING
    }

    /// Has a lost step fail from now on, instead of being run; `patience` is for how long it was waited for.
    pub(crate) fn refuse(&self, step: &LostStep, patience: Duration) -> Failure {
        let failure = step.failure(patience);
        lock(&self.refused).insert(step.key, failure.clone());
        self.has_refused.store(true, Relaxed);
        if matches!(step.loss, Loss::Exit(_)) {
            self.has_exited.store(true, Relaxed);
        }
        failure
    }

    /// Whether a step of this search has tried to end the process.
    pub(crate) fn has_exited(&self) -> bool {
        self.has_exited.load(Relaxed)
    }

    /// Runs refused steps like all others from now on, and lets them take the process with them.
    pub(crate) fn allow_all(&self) {
        self.is_watched.store(false, SeqCst);
        lock(&self.refused).clear();
        self.has_refused.store(false, Relaxed);
    }

    /// A step that an OS thread has lost by itself.
    pub(crate) fn lost(&self) -> Option<LostStep> {
        let slots = lock(&self.slots).clone();
        slots.iter().find_map(|slot| {
            let loss = match slot.loss.load(SeqCst) {
                Loss::OVERFLOW => Loss::Overflow,
                Loss::DOUBLE_PANIC => Loss::DoublePanic,
                Loss::EXIT => Loss::Exit(slot.status.load(SeqCst)),
                _ => return None,
            };
            // It is told once.
            slot.loss.store(0, SeqCst);
            slot.is_abandoned.store(true, SeqCst);
            slot.read(loss)
        })
    }

    /// The step that was given up because the search had to end, if there was one. To unwind it can take long, too.
    pub(crate) fn given_up(&self) -> Option<LostStep> {
        lock(&self.given_up).take()
    }

    /// The steps that are in progress now.
    pub(crate) fn in_progress(&self) -> Vec<Sighting> {
        let slots = lock(&self.slots);
        let running = slots.iter().filter(|slot| {
            !slot.running.load(Relaxed).is_null() && !slot.is_abandoned.load(Relaxed)
        });
        running
            .map(|slot| Sighting {
                begun: slot.begun.load(Relaxed),
                slot: Arc::clone(slot),
            })
            .collect()
    }
}

impl Sighting {
    /// Whether both are the same step.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.slot, &other.slot) && self.begun == other.begun
    }

    /// Whether its OS thread [waits inside `exit`](is_stopped_in_exit).
    pub(crate) fn is_stopped_in_exit(&self) -> bool {
        is_stopped_in_exit(self.slot.os_thread)
    }

    /// The step, if it is still in progress. Its OS thread never goes on behind it.
    pub(crate) fn abandon(&self) -> Option<LostStep> {
        let reading = Reading::of(&self.slot);
        if self.slot.begun.load(SeqCst) != self.begun {
            return None;
        }
        let loss = match exit_status() {
            Some(status) if self.is_stopped_in_exit() => Loss::Exit(status),
            _ => Loss::Stuck,
        };
        let lost = reading.step(loss)?;
        self.slot.is_abandoned.store(true, SeqCst);
        Some(lost)
    }
}

impl Slot {
    fn read(&self, loss: Loss) -> Option<LostStep> {
        Reading::of(self).step(loss)
    }

    #[cold]
    fn note_given_up(&self) {
        if let Some(step) = self.read(Loss::Stuck) {
            lock(&self.guard.given_up).get_or_insert(step);
        }
    }
}

/// While this exists, the step that a slot points to does not end.
struct Reading<'a> {
    slot: &'a Slot,
    _lock: MutexGuard<'a, ()>,
}

impl<'a> Reading<'a> {
    fn of(slot: &'a Slot) -> Self {
        let lock = lock(&slot.reading);
        slot.is_read.store(true, SeqCst);
        Self { slot, _lock: lock }
    }

    fn step(&self, loss: Loss) -> Option<LostStep> {
        let running = self.slot.running.load(SeqCst);
        if running.is_null() {
            return None;
        }
        // SAFETY: its owner has not taken it out, or is told that it is read and waits: see the protocol.
        let step = unsafe { &*(*running).step };
        let key = panics::catch(|| step.key()).unwrap_or_default();
        let description = panics::catch(|| step.describe());
        Some(LostStep {
            key,
            description: description.unwrap_or_else(|_| step.owner().to_owned()),
            loss,
        })
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.slot.is_read.store(false, SeqCst);
    }
}

/// Takes a step out of its slot when it ends.
struct InProgress<'a> {
    slot: &'a Slot,
    outer: *mut Running,
}

impl Drop for InProgress<'_> {
    #[inline]
    fn drop(&mut self) {
        let slot = self.slot;
        slot.running.swap(self.outer, SeqCst);
        if slot.is_read.load(SeqCst) || slot.is_abandoned.load(Relaxed) {
            slot.wait_for_reader();
        }
    }
}

impl Slot {
    #[cold]
    fn wait_for_reader(&self) {
        drop(lock(&self.reading));
        if self.is_abandoned.load(SeqCst) {
            // Another search goes on with the same tables, and does not know of this OS thread.
            loop {
                std::thread::park();
            }
        }
    }
}

impl LostStep {
    fn failure(&self, patience: Duration) -> Failure {
        let message = match self.loss {
            Loss::Stuck => format!("the step has not returned for {patience:?}"),
            Loss::Overflow => "the step overflowed its stack".to_owned(),
            Loss::DoublePanic => {
                "the step panicked while it unwound, which ends the process".to_owned()
            }
            Loss::Exit(status) => format!("the step ended the process with status {status}"),
        };
        Failure::new(FailureKind::Fault, message, None)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    struct Named(&'static str);

    impl Step for Named {
        fn key(&self) -> u64 {
            self.0.len() as u64
        }

        fn describe(&self) -> String {
            format!("{} steps", self.0)
        }

        fn owner(&self) -> &str {
            self.0
        }
    }

    #[test]
    fn a_step_is_seen_from_another_thread_while_it_runs_and_no_longer() {
        let guard = StepGuard::new();
        let (began, begins) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let worker = thread::spawn({
            let guard = Arc::clone(&guard);
            move || {
                let _entered = enter(Some(&guard));
                run(&Named("outer"), || {
                    run(&Named("inner"), || {
                        began.send(()).unwrap();
                        ends.recv().unwrap();
                    });
                });
            }
        });
        begins.recv().unwrap();
        let seen = guard.in_progress();
        assert_eq!(seen.len(), 1);
        let step = seen[0].slot.read(Loss::Stuck).unwrap();
        assert_eq!(step.description, "inner steps");
        end.send(()).unwrap();
        worker.join().unwrap();
        assert!(guard.in_progress().is_empty());
        assert!(seen[0].abandon().is_none());
    }

    #[test]
    fn an_abandoned_step_never_goes_on() {
        let guard = StepGuard::new();
        let (began, begins) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let (over, went_on) = mpsc::channel::<()>();
        thread::spawn({
            let guard = Arc::clone(&guard);
            move || {
                let _entered = enter(Some(&guard));
                run(&Named("slow"), || {
                    began.send(()).unwrap();
                    ends.recv().unwrap();
                });
                over.send(()).unwrap();
            }
        });
        begins.recv().unwrap();
        let seen = guard.in_progress();
        assert_eq!(seen[0].abandon().unwrap().description, "slow steps");
        end.send(()).unwrap();
        let waited = went_on.recv_timeout(std::time::Duration::from_millis(50));
        assert_eq!(waited, Err(mpsc::RecvTimeoutError::Timeout));
        assert!(guard.in_progress().is_empty());
    }

    #[test]
    fn a_refused_step_fails_instead_of_being_run() {
        let guard = StepGuard::new();
        let _entered = enter(Some(&guard));
        let run = |step| panics::catch(|| run(&Named(step), || "ran"));
        assert_eq!(run("ends"), Ok("ran"));
        let lost = LostStep {
            key: Named("ends").key(),
            description: String::new(),
            loss: Loss::Stuck,
        };
        guard.refuse(&lost, Duration::from_secs(2));
        let failure = run("ends").unwrap_err();
        assert_eq!(failure.message(), "the step has not returned for 2s");
        assert_eq!(run("other"), Ok("ran"));
    }
}
