//! Steps that take the process with them: the exit hook, and what signal handlers do.
//!
//! An OS thread that has overflowed its stack, has panicked while it unwound, or has called `exit` in the middle of a step
//! can be stopped where it is, and the rest of the process lives on. Whatever else ends the process, such as a failed
//! allocation, cannot be survived: then the last line on standard error says in which step it was. What ends the process
//! outside of any step, in a `Hash` or on an OS thread that the program has started, is reported without one, and never with
//! the exit status of success.

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod platform {
    use std::cell::Cell;
    use std::fs;
    use std::sync::Once;
    use std::sync::atomic::Ordering::{Relaxed, SeqCst};
    use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize};

    use libc::{c_int, c_void, siginfo_t, ucontext_t};

    #[cfg(feature = "threads")]
    use super::super::controlled;
    use super::super::{Loss, SEARCHES, Slot, note_exit, slot};
    use crate::signals;

    thread_local! {
        /// Between which addresses this OS thread touches memory when its stack is full.
        static GUARD: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
        /// The panic that is under way ends the process.
        static WILL_ABORT: Cell<bool> = const { Cell::new(false) };
    }

    /// Between which addresses the C library is. What is stopped there may hold a lock of the allocator.
    static LIBRARY: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

    /// A copy of the standard error of the process, which searches lead nowhere for their own OS threads.
    static STDERR: AtomicI32 = AtomicI32::new(libc::STDERR_FILENO);

    /// The signals that end a process because of what it does.
    const FATAL: [c_int; 5] = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGABRT,
        libc::SIGILL,
        libc::SIGFPE,
    ];

    /// Where code of the program under test runs that is no step.
    const OUTSIDE: &str = " while a check ran, outside of its steps: on an OS thread that the program has started, or in \
                           `Hash`, `Eq`, `Clone`, `Drop` or `Debug`\n";

    /// How many seconds a description may take when the process ends.
    const DESCRIPTION_SECONDS: u32 = 2;

    unsafe extern "C" {
        fn on_exit(hook: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    }

    /// Has this OS thread's steps looked after.
    pub(crate) fn install() {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            let (first, last) = library();
            LIBRARY[0].store(first, Relaxed);
            LIBRARY[1].store(last, Relaxed);
            signals::install(&FATAL, on_signal);
            signals::install_last(on_unhandled);
        });
        install_exit_hook();
        signals::ensure_stack();
        GUARD.set(guard());
    }

    /// Keeps a copy of the standard error for last lines.
    pub(crate) fn keep_stderr() {
        static KEPT: Once = Once::new();
        KEPT.call_once(|| {
            // SAFETY: it has no conditions.
            let copy = unsafe { libc::fcntl(libc::STDERR_FILENO, libc::F_DUPFD_CLOEXEC, 3) };
            if copy >= 0 {
                STDERR.store(copy, Relaxed);
            }
        });
    }

    fn write(text: &str) {
        // SAFETY: the text is there.
        unsafe { libc::write(STDERR.load(Relaxed), text.as_ptr().cast(), text.len()) };
    }

    /// Has steps that end the process noticed.
    pub(crate) fn install_exit_hook() {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(hook_exit);
    }

    fn hook_exit() {
        // SAFETY: the hook has the signature that is asked for.
        unsafe { on_exit(at_exit, std::ptr::null_mut()) };
    }

    /// This OS thread, as the system numbers it.
    pub(crate) fn os_thread() -> i32 {
        // SAFETY: it has no conditions.
        unsafe { libc::gettid() }
    }

    /// Whether an OS thread waits for a signal, and for nothing else.
    pub(crate) fn is_paused(thread: i32) -> bool {
        #[cfg(target_arch = "x86_64")]
        const PAUSE: i64 = libc::SYS_pause;
        #[cfg(target_arch = "aarch64")]
        const PAUSE: i64 = libc::SYS_ppoll;
        let call = fs::read_to_string(format!("/proc/self/task/{thread}/syscall"));
        let number = call
            .ok()
            .and_then(|call| call.split(' ').next()?.parse().ok());
        number == Some(PAUSE)
    }

    /// The panic that is under way on this OS thread ends the process.
    pub(crate) fn expect_abort() {
        WILL_ABORT.set(true);
    }

    /// The slot of this OS thread, if it runs a step.
    fn running<'a>() -> Option<&'a Slot> {
        let slot = slot()?;
        (!slot.running.load(Relaxed).is_null()).then_some(slot)
    }

    /// Notes that the step is lost, and never returns.
    fn lose(slot: &Slot, loss: u8) -> ! {
        slot.loss.store(loss, SeqCst);
        loop {
            // SAFETY: it has no conditions.
            unsafe { libc::pause() };
        }
    }

    extern "C" fn at_exit(status: c_int, _: *mut c_void) {
        #[cfg(feature = "threads")]
        if let Some(threads) = controlled::running() {
            hook_exit();
            (threads.on_exit)(status);
        }
        let Some(slot) = running() else {
            if SEARCHES.load(SeqCst) > 0 {
                write("error: the process was ended");
                write(OUTSIDE);
                // SAFETY: it has no conditions.
                unsafe { libc::_exit(if status == 0 { 1 } else { status }) };
            }
            return;
        };
        if slot.guard.is_watched.load(SeqCst) {
            // A hook is called once, and another step may do the same.
            hook_exit();
            note_exit(status);
            slot.status.store(status, SeqCst);
            lose(slot, Loss::EXIT);
        }
        last_line(slot, "the process was ended");
        // SAFETY: it has no conditions.
        unsafe { libc::_exit(1) };
    }

    fn on_signal(signal: c_int, info: *mut siginfo_t, context: &mut ucontext_t) -> bool {
        static ENDING: AtomicBool = AtomicBool::new(false);
        let Some(slot) = running() else {
            return false;
        };
        let is_watched =
            slot.guard.is_watched.load(SeqCst) && !is_in_library(program_counter(context));
        let what = match signal {
            libc::SIGABRT if WILL_ABORT.take() => {
                if slot.guard.is_watched.load(SeqCst) {
                    lose(slot, Loss::DOUBLE_PANIC);
                }
                "a panic while another unwound ends the process"
            }
            libc::SIGSEGV | libc::SIGBUS if is_at_the_end_of_the_stack(info) => {
                if is_watched {
                    lose(slot, Loss::OVERFLOW);
                }
                "a stack overflow ends the process"
            }
            _ => describe(signal),
        };
        // Describing the step may fail in its turn.
        if !ENDING.swap(true, SeqCst) {
            last_line(slot, what);
        }
        signals::end_by(signal);
        true
    }

    /// What a signal does that ends the process.
    fn describe(signal: c_int) -> &'static str {
        match signal {
            libc::SIGABRT => {
                "`abort`, a failed allocation or a panic that cannot unwind ends the process"
            }
            libc::SIGSEGV | libc::SIGBUS => "a bad access to memory ends the process",
            _ => "an instruction that the processor refuses ends the process",
        }
    }

    /// Reports a signal that ends the process where no step runs, or a thread of a multithreaded program.
    fn on_unhandled(signal: c_int, info: *mut siginfo_t, _: &mut ucontext_t) -> bool {
        static ENDING: AtomicBool = AtomicBool::new(false);
        if SEARCHES.load(SeqCst) == 0 || !FATAL.contains(&signal) || ENDING.swap(true, SeqCst) {
            return false;
        }
        write("error: ");
        write(match signal {
            libc::SIGSEGV | libc::SIGBUS if is_at_the_end_of_the_stack(info) => {
                "a stack overflow ends the process"
            }
            _ => describe(signal),
        });
        #[cfg(feature = "threads")]
        if let Some(threads) = controlled::running() {
            write(" in a thread of the program\n");
            within_time(|| {
                let place = crate::panics::catch(threads.describe);
                if let Ok(place) = place {
                    for part in ["the thread: ", &place, "\n"] {
                        write(part);
                    }
                }
            });
            return false;
        }
        write(OUTSIDE);
        false
    }

    /// Does something that may hang: the process ends all the same.
    fn within_time(describe: impl FnOnce()) {
        // SAFETY: it has no conditions.
        unsafe {
            libc::signal(libc::SIGALRM, libc::SIG_DFL);
            libc::alarm(DESCRIPTION_SECONDS);
        }
        describe();
    }

    /// Says in which step the process ends: at first what needs no memory, then the rest, if that works.
    fn last_line(slot: &Slot, what: &str) {
        // SAFETY: the step is in progress on this very OS thread.
        let step = unsafe { &*(*slot.running.load(Relaxed)).step };
        for part in ["error: ", what, ", in a step of ", step.owner(), "\n"] {
            write(part);
        }
        within_time(|| {
            if let Ok(description) = crate::panics::catch(|| step.describe()) {
                for part in ["the step: ", &description, "\n"] {
                    write(part);
                }
            }
        });
    }

    fn is_at_the_end_of_the_stack(info: *mut siginfo_t) -> bool {
        // SAFETY: the system says what it is about.
        let address = unsafe { (*info).si_addr() } as usize;
        let (first, last) = GUARD.get();
        (first..last).contains(&address)
    }

    fn is_in_library(address: usize) -> bool {
        let (first, last) = (LIBRARY[0].load(Relaxed), LIBRARY[1].load(Relaxed));
        (first..last).contains(&address)
    }

    /// Where an OS thread touches memory when its stack is full.
    fn guard() -> (usize, usize) {
        // Versions of the C library differ in whether the guard is part of what they call the stack; large frames may
        // reach beyond it.
        const BESIDE: usize = 64 << 10;
        // SAFETY: the attributes are initialised by the first call, and destroyed once.
        unsafe {
            let mut attributes = std::mem::zeroed();
            if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
                return (0, 0);
            }
            let (mut lowest, mut size, mut guard) = (std::ptr::null_mut(), 0, 0);
            libc::pthread_attr_getstack(&raw const attributes, &raw mut lowest, &raw mut size);
            libc::pthread_attr_getguardsize(&raw const attributes, &raw mut guard);
            libc::pthread_attr_destroy(&raw mut attributes);
            let lowest = lowest as usize;
            (lowest.saturating_sub(guard + BESIDE), lowest + guard)
        }
    }

    /// Where the C library is.
    fn library() -> (usize, usize) {
        let inside = libc::malloc as *const () as usize;
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let mappings: Vec<(usize, usize, &str)> = maps
            .lines()
            .filter_map(|line| {
                let (first, rest) = line.split_once('-')?;
                let (last, _) = rest.split_once(' ')?;
                let number = |text| usize::from_str_radix(text, 16).ok();
                let file = line.split_whitespace().nth(5)?;
                Some((number(first)?, number(last)?, file))
            })
            .collect();
        let of_library = mappings
            .iter()
            .find(|(first, last, _)| (*first..*last).contains(&inside));
        let Some((.., file)) = of_library else {
            return (0, 0);
        };
        let all = mappings.iter().filter(|(.., other)| other == file);
        let (firsts, lasts): (Vec<usize>, Vec<usize>) =
            all.map(|(first, last, _)| (*first, *last)).unzip();
        let first = firsts.into_iter().min().unwrap_or_default();
        (first, lasts.into_iter().max().unwrap_or_default())
    }

    #[cfg(target_arch = "x86_64")]
    fn program_counter(context: &ucontext_t) -> usize {
        context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize
    }

    #[cfg(target_arch = "aarch64")]
    fn program_counter(context: &ucontext_t) -> usize {
        context.uc_mcontext.pc as usize
    }
}

/// Elsewhere nothing is done about it.
#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod platform {
    pub(crate) fn install() {}

    pub(crate) fn keep_stderr() {}

    #[cfg(feature = "threads")]
    pub(crate) fn install_exit_hook() {}

    pub(crate) fn expect_abort() {}

    pub(crate) fn os_thread() -> i32 {
        0
    }

    pub(crate) fn is_paused(_thread: i32) -> bool {
        false
    }
}

#[cfg(feature = "threads")]
pub(crate) use platform::install_exit_hook;
pub(crate) use platform::{expect_abort, install, is_paused, keep_stderr, os_thread};
