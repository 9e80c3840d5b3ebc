//! Panics of the code under test, caught with their message and place and kept off the terminal.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

use crate::system::{Failure, FailureKind};
use crate::trace::short_type_name;

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs code of the program under test; a panic in it comes back as a failure.
pub(crate) fn catch<T>(code: impl FnOnce() -> T) -> Result<T, Failure> {
    let outer = CATCHING.replace(true);
    if !outer {
        install_hook();
    }
    let result = panic::catch_unwind(AssertUnwindSafe(code));
    CATCHING.set(outer);
    result.map_err(failure)
}

/// Runs code that calls the implementation of `name`, a trait, for `T`; a panic comes back as a failure that says so.
pub(crate) fn catch_in<T: ?Sized, R>(name: &str, code: impl FnOnce() -> R) -> Result<R, Failure> {
    catch(code).map_err(|failure| in_implementation::<T>(name, failure))
}

/// The failure that a panic in an implementation of a trait for `T` is.
#[cold]
pub(crate) fn in_implementation<T: ?Sized>(name: &str, failure: Failure) -> Failure {
    match failure.kind() {
        FailureKind::Panic => {
            let type_name = short_type_name::<T>();
            let message = format!("{name} of {type_name} panicked: {}", failure.message());
            let location = failure.location().map(str::to_owned);
            Failure::new(FailureKind::Fault, message, location)
        }
        _ => failure,
    }
}

/// Runs code of the program under test that catches panics itself, and keeps them off the terminal.
#[cfg(feature = "threads")]
pub(crate) fn quietly<T>(code: impl FnOnce() -> T) -> T {
    match catch(code) {
        Ok(done) => done,
        Err(failure) => raise(failure),
    }
}

/// The failure that the panic last caught on this thread is.
pub(crate) fn failure(payload: Box<dyn Any + Send>) -> Failure {
    match payload.downcast::<Failure>() {
        Ok(raised) => *raised,
        Err(payload) => {
            let location = LOCATION.take();
            let failure = Failure::new(FailureKind::Panic, message(&*payload), location);
            // What was thrown may panic when it is dropped, and so may what it throws then.
            if let Err(thrown) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                std::mem::forget(thrown);
            }
            failure
        }
    }
}

/// Gives up with `failure`, which [`catch`] hands on.
pub(crate) fn raise(failure: Failure) -> ! {
    panic::resume_unwind(Box::new(failure))
}

/// Gives up because of a limit of the checker, which is never blamed on the program: the verdict is inconclusive, with
/// this message.
pub(crate) fn limit(message: impl Into<String>) -> ! {
    raise(Failure::new(FailureKind::Limit, message.into(), None))
}

/// Runs code of the checker itself; the [limit] that it gives up at, if it does, comes back as a failure. Every other panic
/// goes on.
pub(crate) fn catch_limit<T>(code: impl FnOnce() -> T) -> Result<T, Failure> {
    let result = panic::catch_unwind(AssertUnwindSafe(code));
    result.map_err(|payload| match payload.downcast::<Failure>() {
        Ok(failure) if failure.kind() == FailureKind::Limit => *failure,
        Ok(failure) => raise(*failure),
        Err(payload) => panic::resume_unwind(payload),
    })
}

/// Hands every panic outside [`catch`] to the hook that was there before.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            let is_fatal = is_fatal(info);
            if is_fatal {
                crate::step_guard::expect_abort();
            }
            #[cfg(feature = "threads")]
            if let Some(threads) = crate::step_guard::controlled::registered() {
                (threads.on_panic)(is_fatal);
                if CATCHING.get() {
                    (threads.on_caught_panic)();
                }
            }
            if CATCHING.get() {
                LOCATION.replace(info.location().map(ToString::to_string));
            } else {
                before(info);
            }
        }));
    });
}

/// Whether the process ends with a panic, because it comes where nothing can unwind. `std` says so only in words.
fn is_fatal(info: &PanicHookInfo<'_>) -> bool {
    let said = message(info.payload());
    said == "panic in a destructor during cleanup"
        || said == "panic in a function that cannot unwind"
}

/// What a panic said.
pub(crate) fn message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else if let Some(raised) = payload.downcast_ref::<Failure>() {
        raised.to_string()
    } else {
        "a panic without a message".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_caught_and_other_panics_go_on() {
        let failure = catch_limit(|| -> () { limit("too many") }).unwrap_err();
        assert_eq!(
            (failure.kind(), failure.message()),
            (FailureKind::Limit, "too many")
        );
        let failure = catch(|| catch_limit(|| -> () { panic!("a mistake") })).unwrap_err();
        assert_eq!(failure.message(), "a mistake");
    }

    #[test]
    fn a_panic_keeps_its_message_and_place() {
        let failure = catch(|| -> () { panic!("the log is {} entries short", 2) }).unwrap_err();
        assert_eq!(failure.message(), "the log is 2 entries short");
        assert!(
            failure.location().unwrap().contains("panics.rs"),
            "{failure}"
        );
    }
}
