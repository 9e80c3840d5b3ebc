//! A queue in which workers leave work for each other. It closes when all of them wait and there is none.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;

pub(super) struct WorkQueue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    /// How many workers wait for work that is not there.
    idle: AtomicUsize,
    workers: usize,
}

struct State<T> {
    items: VecDeque<T>,
    waiting: usize,
    closed: bool,
}

impl<T> WorkQueue<T> {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            state: Mutex::new(State {
                items: VecDeque::new(),
                waiting: 0,
                closed: false,
            }),
            changed: Condvar::new(),
            idle: AtomicUsize::new(0),
            workers,
        }
    }

    pub(super) fn push(&self, items: impl IntoIterator<Item = T>) {
        self.state.lock().unwrap().items.extend(items);
        self.changed.notify_all();
    }

    pub(super) fn has_idle_workers(&self) -> bool {
        self.idle.load(Ordering::Relaxed) > 0
    }

    /// The next item; `None` when there will be no more.
    pub(super) fn pop(&self) -> Option<T> {
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        loop {
            if state.closed {
                return None;
            }
            if let Some(item) = state.items.pop_front() {
                state.waiting -= 1;
                let idle = state.waiting.saturating_sub(state.items.len());
                self.idle.store(idle, Ordering::Relaxed);
                return Some(item);
            }
            if state.waiting == self.workers {
                state.closed = true;
                self.changed.notify_all();
                return None;
            }
            self.idle.store(state.waiting, Ordering::Relaxed);
            state = self.changed.wait(state).unwrap();
        }
    }

    pub(super) fn close(&self) {
        self.state.lock().unwrap().closed = true;
        self.changed.notify_all();
    }

    /// Closes the queue when a worker panics: nobody else would.
    pub(super) fn close_on_panic(&self) -> CloseOnPanic<'_, T> {
        CloseOnPanic(self)
    }
}

pub(super) struct CloseOnPanic<'a, T>(&'a WorkQueue<T>);

impl<T> Drop for CloseOnPanic<'_, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.close();
        }
    }
}
