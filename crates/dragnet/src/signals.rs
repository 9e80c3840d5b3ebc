//! Signals that end a process: who handles them, in which order, on which stack.
//!
//! A handler says whether it has dealt with the signal. What none deals with goes to whoever was asked before.

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod platform {
    use std::ptr;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
    use std::sync::{Mutex, PoisonError};

    use libc::{c_int, c_void, sigaction, siginfo_t, ucontext_t};

    /// Deals with a signal, or says that it does not.
    pub(crate) type Handler = fn(c_int, *mut siginfo_t, &mut ucontext_t) -> bool;

    /// The most handlers that there are.
    const HANDLERS: usize = 4;

    static INSTALLED: [AtomicUsize; HANDLERS] = [const { AtomicUsize::new(0) }; HANDLERS];

    /// Asked where no handler has dealt with a signal.
    static LAST: AtomicUsize = AtomicUsize::new(0);

    /// Who handled a signal before.
    static BEFORE: Mutex<Vec<(c_int, usize, c_int)>> = Mutex::new(Vec::new());

    /// Has `handler` asked about each of `signals` from now on.
    pub(crate) fn install(signals: &[c_int], handler: Handler) {
        let free = INSTALLED.iter().find(|slot| {
            slot.compare_exchange(0, handler as usize, AcqRel, Acquire)
                .is_ok()
        });
        assert!(free.is_some(), "there are more handlers than expected");
        let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        for &signal in signals {
            if before.iter().any(|(known, ..)| *known == signal) {
                continue;
            }
            // SAFETY: both are plain data, and the handler has the signature that `SA_SIGINFO` asks for.
            unsafe {
                let mut action: sigaction = std::mem::zeroed();
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                action.sa_sigaction = on_signal as *const () as usize;
                libc::sigfillset(&raw mut action.sa_mask);
                let mut old: sigaction = std::mem::zeroed();
                if libc::sigaction(signal, &raw const action, &raw mut old) == 0 {
                    before.push((signal, old.sa_sigaction, old.sa_flags));
                }
            }
        }
    }

    /// Has `handler` asked about signals that no other deals with.
    pub(crate) fn install_last(handler: Handler) {
        LAST.store(handler as usize, Release);
    }

    extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the system calls this with the context of what it interrupts.
        let interrupted = unsafe { &mut *context.cast::<ucontext_t>() };
        for slot in INSTALLED.iter().chain([&LAST]) {
            let handler = slot.load(Acquire);
            if handler == 0 {
                continue;
            }
            // SAFETY: only handlers are installed.
            let handler = unsafe { std::mem::transmute::<usize, Handler>(handler) };
            if handler(signal, info, interrupted) {
                return;
            }
        }
        pass_on(signal, info, context);
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
                    let mut now: sigaction = std::mem::zeroed();
                    libc::sigaction(signal, ptr::null(), &raw mut now);
                    // It leaves the signal to the system, which ends the process.
                    if now.sa_sigaction == libc::SIG_DFL {
                        libc::raise(signal);
                    }
                }
            }
            _ => end_by(signal),
        }
    }

    /// Has the system end the process as soon as the handler returns: a fault would come again, but a signal that the
    /// program has sent to itself would not.
    pub(crate) fn end_by(signal: c_int) {
        // SAFETY: these have no conditions.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }

    std::thread_local! {
        /// The stack for handlers of this OS thread, if it has none otherwise.
        static OWN_STACK: Option<OwnStack> = OwnStack::unless_there_is_one();
    }

    /// Gives this OS thread a stack for handlers: one whose own is full has no room for them.
    pub(crate) fn ensure_stack() {
        OWN_STACK.with(|_| ());
    }

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
                if present.ss_flags & libc::SS_DISABLE == 0 && present.ss_size >= BYTES {
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
            // SAFETY: the OS thread ends, and no handler runs on it now.
            unsafe {
                let mut none: libc::stack_t = std::mem::zeroed();
                none.ss_flags = libc::SS_DISABLE;
                libc::sigaltstack(&raw const none, ptr::null_mut());
            }
        }
    }
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(crate) use platform::{end_by, ensure_stack, install, install_last};
