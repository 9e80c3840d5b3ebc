//! A blocking queue with room for so many items, on one mutex and two condition variables.
//!
//! Producers wait while it is full and consumers while it is empty; when the producers are done it is closed, and the
//! consumers take what is left and go home. It is the bounded buffer of every textbook on operating systems, and so are
//! its mistakes:
//!
//! - `single-condvar`: producers and consumers wait at the same condition variable, and whoever has changed the queue
//!   wakes one of them. When a consumer wakes another consumer, which finds nothing, a producer sleeps for ever although
//!   there is room.
//! - `if-instead-of-while`: who wakes up does not look again whether what it has waited for is so. A second consumer can
//!   have come between and taken the item; a notification can be for an item that its consumer has taken without waiting;
//!   and condition variables may wake a thread for no reason, which the parameter `spurious` allows.

use std::collections::VecDeque;

use dragnet::catalog::Entry;
use dragnet::sync::{Arc, Condvar, Mutex, MutexGuard};
use dragnet::{Check, Threads};

use super::{join_all, spawn};

/// The program under the name `bounded-queue`.
pub fn entry() -> Entry {
    Entry::new(
        "bounded-queue",
        "a blocking queue between producers and consumers",
        |setup| {
            let load = Load {
                producers: setup.number("producers"),
                consumers: setup.number("consumers"),
                capacity: setup.number("capacity"),
                items: setup.number("items"),
                mistake: if setup.has_bug("single-condvar") {
                    Some(Mistake::SingleCondvar)
                } else if setup.has_bug("if-instead-of-while") {
                    Some(Mistake::IfInsteadOfWhile)
                } else {
                    None
                },
            };
            let threads = Threads::new(move || produce_and_consume(load));
            Check::new(threads.spurious_wakeups(setup.number("spurious")))
        },
    )
    .parameter("producers", 1, 1..=4, "how many threads put items in")
    .parameter("consumers", 2, 1..=4, "how many threads take items out")
    .parameter(
        "capacity",
        1,
        1..=4,
        "how many items the queue has room for",
    )
    .parameter("items", 2, 1..=8, "how many items each producer has")
    .parameter(
        "spurious",
        0,
        0..=4,
        "how often threads wake up for no reason at each condition variable",
    )
    .bug(
        "single-condvar",
        "both sides wait at one condition variable, and the wrong one is woken",
        |bug| bug,
    )
    .bug(
        "if-instead-of-while",
        "who wakes up does not look again whether what it waited for is so",
        |bug| bug.set("items", 1),
    )
}

/// What can be wrong with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Both sides wait at one condition variable.
    SingleCondvar,
    /// Who wakes up does not look again.
    IfInsteadOfWhile,
}

/// A blocking queue with room for so many items.
#[derive(Debug)]
pub struct BoundedQueue<T> {
    state: Mutex<State<T>>,
    has_room: Condvar,
    has_items: Condvar,
    capacity: usize,
    mistake: Option<Mistake>,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    closed: bool,
}

impl<T> BoundedQueue<T> {
    /// An empty queue.
    pub fn new(capacity: usize, mistake: Option<Mistake>) -> Self {
        Self {
            state: Mutex::new(State {
                items: VecDeque::with_capacity(capacity),
                closed: false,
            }),
            has_room: Condvar::new(),
            has_items: Condvar::new(),
            capacity,
            mistake,
        }
    }

    /// Puts an item in, once there is room.
    pub fn push(&self, item: T) {
        let is_full = |state: &State<T>| state.items.len() == self.capacity;
        let mut state = self.wait_while(is_full, self.room());
        assert!(!is_full(&state), "there is no room in the queue");
        state.items.push_back(item);
        drop(state);
        self.has_items.notify_one();
    }

    /// Takes an item out, once there is one; `None` when there never will be.
    pub fn pop(&self) -> Option<T> {
        let is_empty = |state: &State<T>| state.items.is_empty() && !state.closed;
        let mut state = self.wait_while(is_empty, &self.has_items);
        let item = state.items.pop_front();
        assert!(item.is_some() || state.closed, "the queue is empty");
        drop(state);
        self.room().notify_one();
        item
    }

    /// Says that no more items come.
    pub fn close(&self) {
        self.state.lock().unwrap().closed = true;
        self.has_items.notify_all();
    }

    /// Where those wait who need room.
    fn room(&self) -> &Condvar {
        match self.mistake {
            Some(Mistake::SingleCondvar) => &self.has_items,
            _ => &self.has_room,
        }
    }

    fn wait_while(
        &self,
        must_wait: impl Fn(&State<T>) -> bool,
        changed: &Condvar,
    ) -> MutexGuard<'_, State<T>> {
        let mut state = self.state.lock().unwrap();
        if self.mistake == Some(Mistake::IfInsteadOfWhile) {
            if must_wait(&state) {
                state = changed.wait(state).unwrap();
            }
            return state;
        }
        while must_wait(&state) {
            state = changed.wait(state).unwrap();
        }
        state
    }
}

/// Who uses the queue, and how much.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// How many threads put items in.
    pub producers: usize,
    /// How many threads take items out.
    pub consumers: usize,
    /// How many items the queue has room for.
    pub capacity: usize,
    /// How many items each producer has.
    pub items: usize,
    /// What is wrong with the queue.
    pub mistake: Option<Mistake>,
}

/// Producers and consumers at a queue: every item arrives once, and those of one producer in its order.
pub fn produce_and_consume(load: Load) {
    let queue = Arc::new(BoundedQueue::new(load.capacity, load.mistake));
    let producers: Vec<_> = (0..load.producers)
        .map(|producer| {
            let queue = Arc::clone(&queue);
            spawn(format!("producer {producer}"), move || {
                for item in 0..load.items {
                    queue.push((producer, item));
                }
            })
        })
        .collect();
    let consumers: Vec<_> = (0..load.consumers)
        .map(|consumer| {
            let queue = Arc::clone(&queue);
            spawn(format!("consumer {consumer}"), move || {
                std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>()
            })
        })
        .collect();
    join_all(producers);
    queue.close();
    let consumed = join_all(consumers);
    for one in &consumed {
        for producer in 0..load.producers {
            let items = one.iter().filter(|(whose, _)| *whose == producer);
            assert!(items.is_sorted(), "items have overtaken each other");
        }
    }
    let mut all = consumed.concat();
    all.sort_unstable();
    let sent = (0..load.producers).flat_map(|p| (0..load.items).map(move |item| (p, item)));
    assert!(all.into_iter().eq(sent), "not every item arrived once");
}
