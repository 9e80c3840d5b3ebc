//! The system itself: calls that no replacement stands in front of.

use std::arch::asm;

use libc::{c_int, c_long};

pub(super) type Arguments = [c_long; 6];

/// A system call; what the kernel answers.
///
/// # Safety
/// As the system call with this number.
#[cfg(target_arch = "x86_64")]
unsafe fn enter_kernel(number: c_long, [a, b, c, d, e, f]: Arguments) -> c_long {
    let answer;
    // SAFETY: the convention of Linux on x86_64; the caller answers for what the call does.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

#[cfg(target_arch = "aarch64")]
unsafe fn enter_kernel(number: c_long, [a, b, c, d, e, f]: Arguments) -> c_long {
    let answer;
    // SAFETY: the convention of Linux on aarch64; the caller answers for what the call does.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => answer,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    answer
}

/// A system call as C's `syscall` makes it: -1 and `errno` when it fails.
///
/// # Safety
/// As the system call with this number.
pub(super) unsafe fn syscall(number: c_long, arguments: Arguments) -> c_long {
    // SAFETY: the caller answers for the call.
    match unsafe { enter_kernel(number, arguments) } {
        error @ -4095..=-1 => {
            set_errno(-error as c_int);
            -1
        }
        answer => answer,
    }
}

pub(super) fn set_errno(error: c_int) {
    // SAFETY: libc keeps a place for each thread's `errno`.
    unsafe { *libc::__errno_location() = error };
}

pub(super) fn errno() -> c_int {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() }
}
