//! The functions of libc that are replaced in this process.
//!
//! A definition in the program stands before the one in libc. That holds for calls that the linker resolves, and, since
//! libc defines the same names and the linker therefore exports ours, for `dlsym`, which the `getrandom` crates ask.
//! Each replacement asks whether its thread runs a handler, and makes the real system call when it does not.
//!
//! `syscall` is among them because `getrandom` 0.2 makes its call through it, and so does `std` when it waits with a
//! time-out: a handler's deadline means nothing to the kernel.

use std::arch::naked_asm;
use std::collections::hash_map::RandomState;
use std::ffi::{CStr, c_void};
use std::time::{Duration, SystemTime};
use std::{ptr, slice};

use libc::{c_int, c_long, c_uint, clockid_t, size_t, ssize_t, time_t, timespec, timeval};

use super::real;
use super::world::{self, Clock, Purpose, World};

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    match world::ask(|world| world.look_at(clock_of(clock))) {
        Some(now) => {
            // SAFETY: the caller passes a place for the time.
            unsafe { time.write(timespec_of(now)) };
            0
        }
        // SAFETY: the arguments are the caller's.
        None => unsafe { call(libc::SYS_clock_gettime, [clock.into(), address(time)]) as c_int },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int {
    match world::ask(|world| world.look_at(Clock::Wall)) {
        Some(now) => {
            let timespec { tv_sec, tv_nsec } = timespec_of(now);
            let tv_usec = tv_nsec / 1000;
            // SAFETY: the caller passes a place for the time.
            unsafe { time.write(timeval { tv_sec, tv_usec }) };
            0
        }
        // SAFETY: the arguments are the caller's.
        None => unsafe { call(libc::SYS_gettimeofday, [address(time), address(zone)]) as c_int },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn time(place: *mut time_t) -> time_t {
    let mut now = timespec_of(Duration::ZERO);
    // SAFETY: a place for the time is passed.
    unsafe { clock_gettime(libc::CLOCK_REALTIME_COARSE, &mut now) };
    if !place.is_null() {
        // SAFETY: a caller that does not pass null passes a place for the time.
        unsafe { place.write(now.tv_sec) };
    }
    now.tv_sec
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nanosleep(time: *const timespec, rest: *mut timespec) -> c_int {
    // SAFETY: the caller passes a time, or null.
    match unsafe { sleep_here(libc::CLOCK_MONOTONIC, 0, time) } {
        Some(()) => 0,
        // SAFETY: the arguments are the caller's.
        None => unsafe { call(libc::SYS_nanosleep, [address(time), address(rest)]) as c_int },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    rest: *mut timespec,
) -> c_int {
    // SAFETY: the caller passes a time, or null.
    if unsafe { sleep_here(clock, flags, time) }.is_some() {
        return 0;
    }
    let arguments = [clock.into(), flags.into(), address(time), address(rest)];
    // This one returns its error.
    let before = real::errno();
    // SAFETY: the arguments are the caller's.
    match unsafe { call(libc::SYS_clock_nanosleep, arguments) } {
        -1 => {
            let error = real::errno();
            real::set_errno(before);
            error
        }
        slept => slept as c_int,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(bytes: *mut c_void, length: size_t, flags: c_uint) -> ssize_t {
    // SAFETY: the caller passes room for so many bytes.
    match unsafe { draw_here(bytes, length, flags) } {
        Some(()) => length as ssize_t,
        None => {
            let arguments = [address(bytes), length as c_long, flags.into()];
            // SAFETY: the arguments are the caller's.
            unsafe { call(libc::SYS_getrandom, arguments) as ssize_t }
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getentropy(bytes: *mut c_void, length: size_t) -> c_int {
    const MOST: size_t = 256;
    if length > MOST {
        real::set_errno(libc::EIO);
        return -1;
    }
    loop {
        // SAFETY: the caller passes room for so many bytes. So few come all at once or not at all.
        match unsafe { getrandom(bytes, length, 0) } {
            -1 if real::errno() == libc::EINTR => {}
            -1 => return -1,
            _ => return 0,
        }
    }
}

/// C's `syscall` takes any number of arguments, which Rust cannot declare; but it receives them where a function of
/// seven does. The jump hides from the optimiser that the two differ.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn syscall() -> c_long {
    #[cfg(target_arch = "x86_64")]
    naked_asm!("jmp {}", sym system_call);
    #[cfg(target_arch = "aarch64")]
    naked_asm!("b {}", sym system_call);
}

unsafe extern "C" fn system_call(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    // SAFETY: the arguments are the caller's, and mean what they mean to the call with this number. Narrower arguments
    // may have any upper bits, which the casts cut off.
    unsafe {
        match number {
            libc::SYS_getrandom => getrandom(pointer(a), b as size_t, c as c_uint) as c_long,
            libc::SYS_clock_gettime => clock_gettime(a as clockid_t, pointer(b)).into(),
            libc::SYS_gettimeofday => gettimeofday(pointer(a), pointer(b)).into(),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_time => time(pointer(a)),
            libc::SYS_nanosleep => nanosleep(pointer(a), pointer(b)).into(),
            libc::SYS_clock_nanosleep
                if sleep_here(a as clockid_t, b as c_int, pointer(c)).is_some() =>
            {
                0
            }
            libc::SYS_futex => match wait_here(a, b as c_int, c, pointer(d)) {
                Some(answer) => answer,
                None => real::syscall(number, [a, b, c, d, e, f]),
            },
            _ => real::syscall(number, [a, b, c, d, e, f]),
        }
    }
}

/// Sleeps as a handler does, if this thread runs one and the time is sound.
///
/// # Safety
/// `time` is null or points to a time.
unsafe fn sleep_here(clock: clockid_t, flags: c_int, time: *const timespec) -> Option<()> {
    // SAFETY: the caller's promise.
    let time = duration_of(unsafe { time.as_ref() }?)?;
    world::ask(|world| match flags & libc::TIMER_ABSTIME {
        0 => world.pass(time),
        _ => world.pass_until(clock_of(clock), time),
    })
}

/// Draws as a handler does, if this thread runs one.
///
/// # Safety
/// There is room for `length` bytes.
unsafe fn draw_here(bytes: *mut c_void, length: size_t, flags: c_uint) -> Option<()> {
    // `std` asks like this for the keys of its maps, and nobody asks so for numbers that matter.
    let purpose = match flags & (libc::GRND_INSECURE | libc::GRND_NONBLOCK) {
        0 => Purpose::Numbers,
        _ => Purpose::HashKeys,
    };
    world::ask(|world| {
        if length > 0 {
            let bytes = bytes.cast::<u8>();
            // SAFETY: the caller's promise; the bytes are initialised before they are borrowed.
            let bytes = unsafe {
                ptr::write_bytes(bytes, 0, length);
                slice::from_raw_parts_mut(bytes, length)
            };
            world.fill(bytes, purpose);
        }
    })
}

/// Waits on a futex with a time-out as a handler does, if this thread runs one: nobody else acts in a handler, so the
/// time-out comes, and at once.
///
/// # Safety
/// As the system call `futex`.
unsafe fn wait_here(
    futex: c_long,
    operation: c_int,
    expected: c_long,
    timeout: *const timespec,
) -> Option<c_long> {
    let command = operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    if !matches!(command, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET) {
        return None;
    }
    // SAFETY: the commands above take a time or null.
    let timeout = duration_of(unsafe { timeout.as_ref() }?)?;
    world::ask(|_| ())?;
    let at_once = timespec_of(Duration::ZERO);
    let private = operation & libc::FUTEX_PRIVATE_FLAG;
    let wait = [
        futex,
        (libc::FUTEX_WAIT | private).into(),
        expected,
        address(&at_once),
    ];
    // SAFETY: the caller's call, with a time-out of its own.
    let answer = unsafe { call(libc::SYS_futex, wait) };
    if answer == -1 && real::errno() == libc::ETIMEDOUT {
        world::ask(|world: &mut World| match command {
            libc::FUTEX_WAIT => world.pass(timeout),
            _ if operation & libc::FUTEX_CLOCK_REALTIME != 0 => {
                world.pass_until(Clock::Wall, timeout);
            }
            _ => world.pass_until(Clock::Monotonic, timeout),
        });
    }
    Some(answer)
}

fn clock_of(clock: clockid_t) -> Clock {
    match clock {
        libc::CLOCK_REALTIME
        | libc::CLOCK_REALTIME_COARSE
        | libc::CLOCK_REALTIME_ALARM
        | libc::CLOCK_TAI => Clock::Wall,
        _ => Clock::Monotonic,
    }
}

fn timespec_of(time: Duration) -> timespec {
    timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(time_t::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

fn duration_of(time: &timespec) -> Option<Duration> {
    let nanos = u32::try_from(time.tv_nsec).ok();
    let nanos = nanos.filter(|&nanos| nanos < 1_000_000_000)?;
    Some(Duration::new(time.tv_sec.try_into().ok()?, nanos))
}

/// The real system call.
///
/// # Safety
/// As the system call with this number.
unsafe fn call<const N: usize>(number: c_long, arguments: [c_long; N]) -> c_long {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    // SAFETY: the caller's promise.
    unsafe { real::syscall(number, all) }
}

fn address<T>(pointer: *const T) -> c_long {
    pointer.expose_provenance() as c_long
}

fn pointer<T>(address: c_long) -> *mut T {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// Whether the replacements are in their place; to be asked on a thread that has a [world](world).
///
/// When somebody else's functions are there, nothing is sterile, and nobody would notice. This also names them all,
/// without which the linker could leave them out.
pub(super) fn in_place() -> Result<(), String> {
    let replacements: [(&CStr, *const c_void); _] = [
        (c"clock_gettime", clock_gettime as *const c_void),
        (c"gettimeofday", gettimeofday as *const c_void),
        (c"time", time as *const c_void),
        (c"nanosleep", nanosleep as *const c_void),
        (c"clock_nanosleep", clock_nanosleep as *const c_void),
        (c"getrandom", getrandom as *const c_void),
        (c"getentropy", getentropy as *const c_void),
        (c"syscall", syscall as *const c_void),
    ];
    for (name, ours) in replacements {
        // SAFETY: the name ends with a zero.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        // A static program finds nothing, and needs to find nothing.
        if !found.is_null() && !ptr::eq(found, ours) {
            return Err(format!(
                "the feature `sterile` of dragnet replaces `{}`, but this program does not export it: link it with \
                 `-rdynamic`, for instance by RUSTFLAGS=\"-C link-arg=-rdynamic\"",
                name.to_string_lossy(),
            ));
        }
    }
    let std_asks = |question: fn()| {
        let before = world::ask(|world| *world);
        question();
        world::ask(|world| *world) != before
    };
    let asks_for_time = std_asks(|| _ = SystemTime::now());
    let asks_for_keys = std_asks(|| _ = RandomState::new());
    if asks_for_time && asks_for_keys {
        Ok(())
    } else {
        Err(
            "the feature `sterile` of dragnet is on, but `std` in this program has a clock and random numbers of its \
             own"
                .to_owned(),
        )
    }
}
