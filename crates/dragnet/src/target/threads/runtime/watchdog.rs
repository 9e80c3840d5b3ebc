//! Threads that cannot go on by themselves: one that has overflowed its stack, one that blocks on something real, and one
//! that panics while it unwinds.
//!
//! All are taken out of the coroutine that they run in by a signal's handler, which has the coroutine return at once. What
//! was on its stack is lost.

use std::cell::Cell;
use std::time::Duration;

use corosensei::trap::CoroutineTrapHandler;

/// Why a coroutine was made to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trapped {
    /// Its stack is full.
    Overflow,
    /// It has run for too long without coming to an operation.
    Blocked,
    /// It has panicked while it unwound, which would have ended the process.
    Aborted,
    /// It has ended the process with this status.
    Exited(i32),
}

/// How often it is looked whether a coroutine goes on.
const LOOK: Duration = Duration::from_millis(100);

std::thread_local! {
    /// The coroutine that runs on this thread of the operating system.
    static INSIDE: Cell<Option<Inside>> = const { Cell::new(None) };
    static TRAPPED: Cell<Option<Trapped>> = const { Cell::new(None) };
    /// Whether the coroutine that runs here is about to end the process.
    static WILL_ABORT: Cell<bool> = const { Cell::new(false) };
    /// The status with which the coroutine that runs here ends the process.
    static EXITS: Cell<Option<i32>> = const { Cell::new(None) };
}

#[derive(Clone, Copy)]
struct Inside {
    handler: CoroutineTrapHandler<()>,
    pulse: *const Pulse,
}

/// Runs a coroutine, and says whether it was made to return.
#[inline]
pub(super) fn inside<R>(
    pulse: &Pulse,
    handler: CoroutineTrapHandler<()>,
    resume: impl FnOnce() -> R,
) -> (R, Option<Trapped>) {
    INSIDE.set(Some(Inside { handler, pulse }));
    pulse.beat();
    let result = resume();
    INSIDE.set(None);
    (result, TRAPPED.take())
}

pub(super) use platform::{Pulse, begin_duty, end_duty, exit, expect_abort, on_duty};

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod platform {
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};
    use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

    use corosensei::trap::TrapHandlerRegs;
    use libc::{c_int, siginfo_t, ucontext_t};

    use crate::{signals, step_guard};

    use super::{Duration, EXITS, INSIDE, Inside, LOOK, TRAPPED, Trapped, WILL_ABORT};

    /// Ignored by who does not handle it.
    const WAKE: c_int = libc::SIGURG;

    /// Tells that an executor goes on.
    pub(in super::super) struct Pulse {
        beats: AtomicU64,
        /// How many milliseconds may pass between two beats.
        patience: AtomicU64,
        /// The thread of the operating system on which it runs an execution now.
        thread: Mutex<Option<OsThread>>,
        /// Whether it has been too long since the last beat.
        is_late: AtomicBool,
        /// Whether it is late because it waits inside `exit`.
        is_in_exit: AtomicBool,
        /// Whether somebody looks after it, for as long as it exists.
        is_watched: AtomicBool,
        /// Whether the execution is paused between two steps: then it is never late.
        is_paused: AtomicBool,
    }

    #[derive(Clone, Copy)]
    struct OsThread {
        handle: libc::pthread_t,
        number: i32,
    }

    impl Pulse {
        pub(in super::super) fn new() -> Arc<Self> {
            Arc::new(Self {
                beats: AtomicU64::new(0),
                patience: AtomicU64::new(0),
                thread: Mutex::new(None),
                is_late: AtomicBool::new(false),
                is_in_exit: AtomicBool::new(false),
                is_watched: AtomicBool::new(false),
                is_paused: AtomicBool::new(false),
            })
        }

        /// The execution is paused, or goes on.
        #[inline]
        pub(in super::super) fn set_paused(&self, is_paused: bool) {
            if is_paused {
                self.is_paused.store(true, Relaxed);
            } else {
                // Whoever looks next sees that it goes on, and counts anew.
                self.beat();
                self.is_late.store(false, Relaxed);
                self.is_paused.store(false, Relaxed);
            }
        }

        #[inline]
        pub(in super::super) fn beat(&self) {
            self.beats.store(self.beats.load(Relaxed) + 1, Relaxed);
        }
    }

    /// While this exists, executions are watched on this thread of the operating system.
    pub(in super::super) struct Watched<'a>(&'a Pulse);

    /// Has an execution watched until what this gives is dropped: it must not stop for longer than `patience`.
    pub(in super::super) fn on_duty(pulse: &Arc<Pulse>, patience: Duration) -> Watched<'_> {
        begin_duty(pulse, patience);
        Watched(pulse)
    }

    /// Has an execution watched until [`end_duty`], which must be called on the same OS thread.
    pub(in super::super) fn begin_duty(pulse: &Arc<Pulse>, patience: Duration) {
        static HANDLERS: Once = Once::new();
        HANDLERS.call_once(|| {
            signals::install(
                &[libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT, WAKE],
                on_signal,
            );
        });
        step_guard::install_exit_hook();
        signals::ensure_stack();
        let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        pulse.patience.store(patience, Relaxed);
        *lock(&pulse.thread) = Some(OsThread {
            // SAFETY: it has no conditions.
            handle: unsafe { libc::pthread_self() },
            number: step_guard::os_thread(),
        });
        if !pulse.is_watched.load(Relaxed) {
            watch(pulse);
            pulse.is_watched.store(true, Relaxed);
        }
    }

    /// An execution is not watched any more.
    pub(in super::super) fn end_duty(pulse: &Pulse) {
        *lock(&pulse.thread) = None;
        pulse.is_late.store(false, Relaxed);
        pulse.is_paused.store(false, Relaxed);
    }

    impl Drop for Watched<'_> {
        fn drop(&mut self) {
            end_duty(self.0);
        }
    }

    fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is watched, and whether somebody does.
    static WATCHED: Mutex<(Vec<Weak<Pulse>>, bool)> = Mutex::new((Vec::new(), false));

    fn watch(pulse: &Arc<Pulse>) {
        let (watched, is_there) = &mut *lock(&WATCHED);
        watched.push(Arc::downgrade(pulse));
        if !*is_there {
            let watch = std::thread::Builder::new().name("dragnet watch".to_owned());
            *is_there = watch.spawn(keep_watch).is_ok();
        }
    }

    /// Interrupts threads of the operating system whose coroutines do not go on, until there is nothing to watch.
    fn keep_watch() {
        // Time is counted in looks: where the whole machine stands still for a while, nobody is late.
        let mut seen: Vec<(Weak<Pulse>, u64, Duration)> = Vec::new();
        loop {
            std::thread::sleep(LOOK);
            let mut watched = lock(&WATCHED);
            watched.0.retain(|pulse| pulse.strong_count() > 0);
            if watched.0.is_empty() {
                watched.1 = false;
                return;
            }
            let before = std::mem::take(&mut seen);
            for pulse in &watched.0 {
                let Some(this) = pulse.upgrade() else {
                    continue;
                };
                let thread = lock(&this.thread);
                let beats = this.beats.load(Relaxed);
                let known = before.iter().find(|(other, ..)| other.ptr_eq(pulse));
                let is_running = thread.is_some() && !this.is_paused.load(Relaxed);
                let still = match known {
                    Some(&(_, same, still)) if same == beats && is_running => still + LOOK,
                    _ => Duration::ZERO,
                };
                seen.push((Weak::clone(pulse), beats, still));
                let Some(thread) = thread.filter(|_| is_running) else {
                    continue;
                };
                let is_in_exit = !still.is_zero() && step_guard::is_stopped_in_exit(thread.number);
                if is_in_exit || still.as_millis() > this.patience.load(Relaxed).into() {
                    this.is_in_exit.store(is_in_exit, Relaxed);
                    this.is_late.store(true, Relaxed);
                    // SAFETY: the thread is there for as long as it is locked.
                    unsafe { libc::pthread_kill(thread.handle, WAKE) };
                }
            }
        }
    }

    /// What is said to the standard error while this is set goes nowhere: a copy of it.
    static HUSHED: AtomicI32 = AtomicI32::new(-1);

    /// The coroutine that runs is about to end the process, for a reason that is nobody's fault: nothing is said of it.
    pub(in super::super) fn expect_abort() {
        WILL_ABORT.set(true);
        // SAFETY: these have no conditions.
        unsafe {
            let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            let copy = libc::fcntl(libc::STDERR_FILENO, libc::F_DUPFD_CLOEXEC, 0);
            if copy >= 0 && HUSHED.compare_exchange(-1, copy, Relaxed, Relaxed).is_ok() {
                libc::dup2(nowhere, libc::STDERR_FILENO);
            } else {
                libc::close(copy);
            }
            libc::close(nowhere);
        }
    }

    /// Takes the running thread, which ends the process, out of its coroutine. Returns where there is none.
    pub(in super::super) fn exit(status: i32) {
        if INSIDE.get().is_some() {
            EXITS.set(Some(status));
            // SAFETY: it has no conditions.
            unsafe { libc::raise(WAKE) };
            EXITS.set(None);
        }
    }

    fn speak_again() {
        let copy = HUSHED.swap(-1, Relaxed);
        if copy >= 0 {
            // SAFETY: it was opened to be used here.
            unsafe {
                libc::dup2(copy, libc::STDERR_FILENO);
                libc::close(copy);
            }
        }
    }

    /// Takes a thread that cannot go on out of the coroutine that it runs in.
    fn on_signal(signal: c_int, info: *mut siginfo_t, context: &mut ucontext_t) -> bool {
        let inside = INSIDE.get();
        let inside = inside.filter(|it| it.handler.stack_ptr_in_bounds(stack_pointer(context)));
        let Some(it) = inside else {
            return signal == WAKE;
        };
        // SAFETY: the pulse belongs to the executor that runs the coroutine.
        let pulse = unsafe { &*it.pulse };
        let why = match (signal, EXITS.take()) {
            (WAKE, Some(status)) => Trapped::Exited(status),
            (WAKE, _) if pulse.is_late.swap(false, Relaxed) => match step_guard::exit_status() {
                Some(status) if pulse.is_in_exit.load(Relaxed) => Trapped::Exited(status),
                _ => Trapped::Blocked,
            },
            (WAKE, _) => return true,
            (libc::SIGABRT, _) if WILL_ABORT.take() => {
                speak_again();
                Trapped::Aborted
            }
            (libc::SIGABRT, _) => return false,
            _ if is_near_limit(info, &it) => Trapped::Overflow,
            _ => return false,
        };
        // SAFETY: the stack pointer is inside the coroutine, whose stack is not used any more: the executor unwinds
        // nothing of this execution.
        let registers = unsafe {
            it.handler
                .setup_trap_handler(move || TRAPPED.set(Some(why)))
        };
        leave_for(context, &registers);
        true
    }

    /// Whether a fault is at the end of the stack, and not somewhere else in memory.
    fn is_near_limit(info: *mut siginfo_t, inside: &Inside) -> bool {
        // SAFETY: the system says what it is about.
        let address = unsafe { (*info).si_addr() } as usize;
        inside.handler.stack_ptr_in_bounds(address)
    }

    #[cfg(target_arch = "x86_64")]
    fn stack_pointer(context: &ucontext_t) -> usize {
        context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize
    }

    #[cfg(target_arch = "x86_64")]
    fn leave_for(context: &mut ucontext_t, registers: &TrapHandlerRegs) {
        let of = &mut context.uc_mcontext.gregs;
        of[libc::REG_RIP as usize] = registers.rip as i64;
        of[libc::REG_RSP as usize] = registers.rsp as i64;
        of[libc::REG_RBP as usize] = registers.rbp as i64;
        of[libc::REG_RDI as usize] = registers.rdi as i64;
        of[libc::REG_RSI as usize] = registers.rsi as i64;
    }

    #[cfg(target_arch = "aarch64")]
    fn stack_pointer(context: &ucontext_t) -> usize {
        context.uc_mcontext.sp as usize
    }

    #[cfg(target_arch = "aarch64")]
    fn leave_for(context: &mut ucontext_t, registers: &TrapHandlerRegs) {
        let of = &mut context.uc_mcontext;
        of.pc = registers.pc;
        of.sp = registers.sp;
        of.regs[0] = registers.x0;
        of.regs[1] = registers.x1;
        of.regs[29] = registers.x29;
        of.regs[30] = registers.lr;
    }
}

/// Elsewhere nothing is done about either.
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod platform {
    use std::sync::Arc;

    use super::Duration;

    pub(in super::super) struct Pulse;

    #[derive(Clone, Copy)]
    struct OsThread {
        handle: libc::pthread_t,
        number: i32,
    }

    impl Pulse {
        pub(in super::super) fn new() -> Arc<Self> {
            Arc::new(Self)
        }

        pub(in super::super) fn beat(&self) {}

        pub(in super::super) fn set_paused(&self, _is_paused: bool) {}
    }

    pub(in super::super) fn on_duty(_pulse: &Arc<Pulse>, _patience: Duration) {}

    pub(in super::super) fn begin_duty(_pulse: &Arc<Pulse>, _patience: Duration) {}

    pub(in super::super) fn end_duty(_pulse: &Pulse) {}

    pub(in super::super) fn expect_abort() {}

    pub(in super::super) fn exit(_status: i32) {}
}
