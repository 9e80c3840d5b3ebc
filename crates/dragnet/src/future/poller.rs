//! Polls a future on the thread that calls, which waits in between.

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::thread::{self, Thread};
use crate::time::Instant;

/// Polls a future until it is ready, and parks the thread while it waits.
///
/// ```
/// assert_eq!(dragnet::future::block_on(async { 1 + 1 }), 2);
/// ```
///
/// Wakers [unpark](Thread::unpark) the thread. Under a check a future must not park the thread by itself: it would take
/// the wake-ups of the others that are polled there.
#[track_caller]
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    let poller = Poller::new(Location::caller());
    let done = poller.poll(pin!(future.into_future()), || false);
    done.expect("nobody stops it")
}

/// A thread that polls a future, and what it waits for.
pub(super) struct Poller {
    signal: Arc<Signal>,
    waker: Waker,
    alarms: RefCell<Vec<Weak<Alarm>>>,
    /// Whether it waits for nothing, and only lets others go first.
    yields: Cell<bool>,
    /// Where the future waits, as far as that is known: otherwise where it comes from.
    place: Cell<&'static Location<'static>>,
}

/// Wakes a thread that polls a future.
///
/// Under a check the token of an unparked thread is enough, and decides alone what can happen next. Outside, what a future
/// calls may park the thread for reasons of its own and take the token, so there is a flag beside it.
struct Signal {
    woken: AtomicBool,
    thread: Thread,
}

/// Somebody is to be woken when it is late enough, unless this has been dropped by then.
pub(super) struct Alarm {
    at: Instant,
    waker: Waker,
}

crate::thread_local! {
    /// Who polls a future on this thread.
    static POLLER: RefCell<Option<Rc<Poller>>> = const { RefCell::new(None) };
}

/// Whether this thread is one of an execution under a check.
#[cfg(feature = "threads")]
fn is_checked() -> bool {
    crate::target::threads::world::current().is_some()
}

#[cfg(not(feature = "threads"))]
fn is_checked() -> bool {
    false
}

#[cfg(feature = "threads")]
use crate::thread::park_at;

#[cfg(not(feature = "threads"))]
fn park_at(time: Option<Duration>, _at: &'static Location<'static>) {
    match time {
        None => thread::park(),
        Some(time) => thread::park_timeout(time),
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, SeqCst);
        self.thread.unpark();
    }
}

impl Poller {
    /// The thread that calls, for a future that comes from `origin`.
    pub(super) fn new(origin: &'static Location<'static>) -> Rc<Self> {
        let signal = Arc::new(Signal {
            woken: AtomicBool::new(false),
            thread: thread::current(),
        });
        // `Waker::will_wake` is sure to know clones from each other, and not the first waker from them.
        let waker = Waker::from(Arc::clone(&signal)).clone();
        Rc::new(Self {
            signal,
            waker,
            alarms: RefCell::default(),
            yields: Cell::new(false),
            place: Cell::new(origin),
        })
    }

    /// Who polls on this thread, if somebody does.
    pub(super) fn current() -> Option<Rc<Self>> {
        POLLER.with(|poller| poller.borrow().clone())
    }

    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Takes note of where the future that is polled on this thread waits: a deadlock is told with that.
    pub(super) fn note(place: &'static Location<'static>) {
        if let Some(poller) = Self::current() {
            poller.place.set(place);
        }
    }

    /// Polls a future until it is ready, or until it is to stop.
    pub(super) fn poll<F: Future>(
        self: &Rc<Self>,
        mut future: Pin<&mut F>,
        is_stopped: impl Fn() -> bool,
    ) -> Option<F::Output> {
        let _turn = Turn::begin(self);
        let mut context = Context::from_waker(&self.waker);
        let origin = self.place.get();
        while !is_stopped() {
            self.place.set(origin);
            if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
                return Some(done);
            }
            self.wait();
        }
        None
    }

    /// Waits until the future may be ready.
    fn wait(&self) {
        if self.yields.take() {
            thread::yield_now();
        } else if is_checked() || !self.signal.woken.swap(false, SeqCst) {
            let left = self
                .next_alarm()
                .map(|at| at.saturating_duration_since(Instant::now()));
            if left != Some(Duration::ZERO) {
                park_at(left, self.place.get());
            }
        }
        self.ring();
    }

    /// When the next alarm is due.
    fn next_alarm(&self) -> Option<Instant> {
        let alarms = self.alarms.borrow();
        let set = alarms.iter().filter_map(Weak::upgrade);
        set.map(|alarm| alarm.at).min()
    }

    /// Wakes those for whom it is late enough.
    fn ring(&self) {
        if self.alarms.borrow().is_empty() {
            return;
        }
        let now = Instant::now();
        let mut due = Vec::new();
        self.alarms
            .borrow_mut()
            .retain(|alarm| match alarm.upgrade() {
                Some(alarm) if alarm.at <= now => {
                    due.push(alarm);
                    false
                }
                set => set.is_some(),
            });
        for alarm in due {
            // The future itself is polled next in any case.
            if !alarm.waker.will_wake(&self.waker) {
                alarm.waker.wake_by_ref();
            }
        }
    }

    /// Has somebody woken at a time.
    pub(super) fn set_alarm(&self, at: Instant, waker: &Waker) -> Arc<Alarm> {
        let alarm = Arc::new(Alarm {
            at,
            waker: waker.clone(),
        });
        let mut alarms = self.alarms.borrow_mut();
        alarms.retain(|alarm| alarm.strong_count() > 0);
        alarms.push(Arc::downgrade(&alarm));
        alarm
    }

    /// Has the future polled again as soon as others have had their turn.
    pub(super) fn yield_once(&self) {
        self.yields.set(true);
    }
}

/// For as long as it is there, a poller is the one of its thread.
struct Turn {
    outer: Option<Rc<Poller>>,
}

impl Turn {
    fn begin(poller: &Rc<Poller>) -> Self {
        let outer = POLLER.with(|current| current.replace(Some(Rc::clone(poller))));
        Self { outer }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let outer = self.outer.take();
        if let Some(outer) = &outer {
            // Its wake-ups may have been taken by the inner one.
            outer.waker.wake_by_ref();
        }
        POLLER.with(|current| current.replace(outer));
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[test]
    fn a_wake_up_while_the_future_is_polled_is_not_lost() {
        let mut polls = 0;
        block_on(poll_fn(|context| {
            polls += 1;
            context.waker().wake_by_ref();
            // What takes the token, as channels of `std` do.
            std::thread::park();
            match polls {
                3 => Poll::Ready(()),
                _ => Poll::Pending,
            }
        }));
        assert_eq!(polls, 3);
    }

    #[test]
    fn who_blocks_inside_of_another_takes_no_wake_up_from_it() {
        let mut polls = 0;
        block_on(poll_fn(|context| {
            polls += 1;
            context.waker().wake_by_ref();
            block_on(crate::future::sleep(Duration::from_millis(1)));
            match polls {
                2 => Poll::Ready(()),
                _ => Poll::Pending,
            }
        }));
        assert!(Poller::current().is_none());
    }

    #[test]
    fn alarms_that_were_dropped_do_not_ring() {
        let poller = Poller::new(Location::caller());
        let soon = Instant::now();
        let kept = poller.set_alarm(soon + Duration::from_secs(60), poller.waker());
        drop(poller.set_alarm(soon, poller.waker()));
        assert_eq!(poller.next_alarm(), Some(kept.at));
        poller.ring();
        assert_eq!(poller.alarms.borrow().len(), 1);
    }
}
