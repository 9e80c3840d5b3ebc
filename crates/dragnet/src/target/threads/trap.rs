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
}

/// How often it is looked whether a coroutine goes on.
const LOOK: Duration = Duration::from_millis(100);

std::thread_local! {
    /// The coroutine that runs on this thread of the operating system.
    static INSIDE: Cell<Option<Inside>> = const { Cell::new(None) };
    static TRAPPED: Cell<Option<Trapped>> = const { Cell::new(None) };
    /// Whether the coroutine that runs here is about to end the process.
    static WILL_ABORT: Cell<bool> = const { Cell::new(false) };
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

pub(super) use signals::{Pulse, expect_abort, on_duty};

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod signals {
    use std::ptr;
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};
    use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

    use corosensei::trap::TrapHandlerRegs;
    use libc::{c_int, c_void, sigaction, siginfo_t, ucontext_t};

    use super::{Duration, INSIDE, Inside, LOOK, TRAPPED, Trapped, WILL_ABORT};

    std::thread_local! {
        /// The stack for handlers of this thread of the operating system, if it has none otherwise.
        static OWN_STACK: Option<OwnStack> = OwnStack::unless_there_is_one();
    }

    /// Ignored by who does not handle it.
    const WAKE: c_int = libc::SIGURG;

    /// Tells that an executor goes on.
    pub(in super::super) struct Pulse {
        beats: AtomicU64,
        /// How many milliseconds may pass between two beats.
        patience: AtomicU64,
        /// The thread of the operating system on which it runs an execution now.
        thread: Mutex<Option<libc::pthread_t>>,
        /// Whether it has been too long since the last beat.
        is_late: AtomicBool,
        /// Whether somebody looks after it, for as long as it exists.
        is_watched: AtomicBool,
    }

    impl Pulse {
        pub(in super::super) fn new() -> Arc<Self> {
            Arc::new(Self {
                beats: AtomicU64::new(0),
                patience: AtomicU64::new(0),
                thread: Mutex::new(None),
                is_late: AtomicBool::new(false),
                is_watched: AtomicBool::new(false),
            })
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
        static HANDLERS: Once = Once::new();
        HANDLERS.call_once(|| {
            for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT, WAKE] {
                handle(signal);
            }
        });
        OWN_STACK.with(|_| ());
        let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        pulse.patience.store(patience, Relaxed);
        // SAFETY: it has no conditions.
        *lock(&pulse.thread) = Some(unsafe { libc::pthread_self() });
        if !pulse.is_watched.load(Relaxed) {
            watch(pulse);
            pulse.is_watched.store(true, Relaxed);
        }
        Watched(pulse)
    }

    impl Drop for Watched<'_> {
        fn drop(&mut self) {
            *lock(&self.0.thread) = None;
            self.0.is_late.store(false, Relaxed);
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
                let still = match known {
                    Some(&(_, same, still)) if same == beats && thread.is_some() => still + LOOK,
                    _ => Duration::ZERO,
                };
                seen.push((Weak::clone(pulse), beats, still));
                if let Some(thread) = *thread
                    && still.as_millis() > this.patience.load(Relaxed).into()
                {
                    this.is_late.store(true, Relaxed);
                    // SAFETY: the thread is there for as long as `thread` is locked.
                    unsafe { libc::pthread_kill(thread, WAKE) };
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

    /// Who handled a signal before.
    static BEFORE: Mutex<Vec<(c_int, usize, c_int)>> = Mutex::new(Vec::new());

    fn handle(signal: c_int) {
        // SAFETY: both are plain data, and the handler has the signature that `SA_SIGINFO` asks for.
        unsafe {
            let mut action: sigaction = std::mem::zeroed();
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            action.sa_sigaction = on_signal as *const () as usize;
            libc::sigfillset(&raw mut action.sa_mask);
            let mut before: sigaction = std::mem::zeroed();
            if libc::sigaction(signal, &raw const action, &raw mut before) == 0 {
                lock(&BEFORE).push((signal, before.sa_sigaction, before.sa_flags));
            }
        }
    }

    /// A stack for handlers: a thread whose own is full has no room for them.
    struct OwnStack {
        /// Only its capacity is used.
        _memory: Vec<u8>,
    }

    impl OwnStack {
        fn unless_there_is_one() -> Option<Self> {
            const BYTES: usize = 64 << 10;
            let mut memory: Vec<u8> = Vec::with_capacity(BYTES);
            // SAFETY: the memory is given to the system until this is dropped.
            unsafe {
                let mut present: libc::stack_t = std::mem::zeroed();
                libc::sigaltstack(ptr::null(), &raw mut present);
                if present.ss_flags & libc::SS_DISABLE == 0 {
                    return None;
                }
                present.ss_sp = memory.as_mut_ptr().cast();
                present.ss_size = BYTES;
                present.ss_flags = 0;
                libc::sigaltstack(&raw const present, ptr::null_mut());
            }
            Some(Self { _memory: memory })
        }
    }

    impl Drop for OwnStack {
        fn drop(&mut self) {
            // SAFETY: the thread ends, and no handler runs on it now.
            unsafe {
                let mut none: libc::stack_t = std::mem::zeroed();
                none.ss_flags = libc::SS_DISABLE;
                libc::sigaltstack(&raw const none, ptr::null_mut());
            }
        }
    }

    extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the system calls this with the context of what it interrupts.
        let context_there = unsafe { &mut *context.cast::<ucontext_t>() };
        let inside = INSIDE.get();
        let inside =
            inside.filter(|it| it.handler.stack_ptr_in_bounds(stack_pointer(context_there)));
        let why = match (signal, inside) {
            // SAFETY: the pulse belongs to the executor that runs the coroutine.
            (WAKE, Some(it)) if unsafe { &*it.pulse }.is_late.swap(false, Relaxed) => {
                Trapped::Blocked
            }
            (WAKE, _) => return,
            (libc::SIGABRT, Some(_)) if WILL_ABORT.take() => {
                speak_again();
                Trapped::Aborted
            }
            (libc::SIGABRT, _) => return pass_on(signal, info, context),
            (_, Some(it)) if is_near_limit(info, &it) => Trapped::Overflow,
            _ => return pass_on(signal, info, context),
        };
        if let Some(it) = inside {
            // SAFETY: the stack pointer is inside the coroutine, whose stack is not used any more: the executor unwinds
            // nothing of this execution.
            let registers = unsafe {
                it.handler
                    .setup_trap_handler(move || TRAPPED.set(Some(why)))
            };
            leave_for(context_there, &registers);
        }
    }

    /// Whether a fault is at the end of the stack, and not somewhere else in memory.
    fn is_near_limit(info: *mut siginfo_t, inside: &Inside) -> bool {
        // SAFETY: the system says what it is about.
        let address = unsafe { (*info).si_addr() } as usize;
        inside.handler.stack_ptr_in_bounds(address)
    }

    /// Has who handled a signal before do so now.
    fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        let before = BEFORE.try_lock().ok().and_then(|before| {
            let mut before = before.iter();
            before.find(|(other, ..)| *other == signal).copied()
        });
        match before {
            Some((_, handler, flags)) if handler > libc::SIG_IGN => {
                // SAFETY: this is what was installed, with the signature that its flags ask for.
                unsafe {
                    if flags & libc::SA_SIGINFO != 0 {
                        type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
                        std::mem::transmute::<usize, Handler>(handler)(signal, info, context);
                    } else {
                        std::mem::transmute::<usize, extern "C" fn(c_int)>(handler)(signal);
                    }
                }
            }
            _ => {
                // SAFETY: the fault comes again, and ends the process.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
        }
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
mod signals {
    use std::sync::Arc;

    use super::Duration;

    pub(in super::super) struct Pulse;

    impl Pulse {
        pub(in super::super) fn new() -> Arc<Self> {
            Arc::new(Self)
        }

        pub(in super::super) fn beat(&self) {}
    }

    pub(in super::super) fn on_duty(_pulse: &Arc<Pulse>, _patience: Duration) {}

    pub(in super::super) fn expect_abort() {}
}
