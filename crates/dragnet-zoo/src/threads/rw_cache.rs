//! A cache of what is expensive to compute, read by many.
//!
//! A value that is there is read under the lock for readers and given out. A value that is not there is computed and put
//! in under the lock for writers, with a second look first: another thread may have put it in since. So each is computed once.
//!
//! With the bug `check-then-act` there is no second look: two threads that both find nothing both compute.

use std::collections::BTreeMap;

use dragnet::catalog::Entry;
use dragnet::sync::atomic::{AtomicU32, Ordering::SeqCst};
use dragnet::sync::{Arc, RwLock};
use dragnet::{Check, Threads};

use super::{join_all, spawn};

/// The program under the name `rw-cache`.
pub fn entry() -> Entry {
    Entry::new(
        "rw-cache",
        "a cache of what is expensive to compute",
        |setup| {
            let threads = setup.number("threads");
            let keys = setup.number("keys");
            let look = match setup.has_bug("check-then-act") {
                true => Look::Once,
                false => Look::Twice,
            };
            Check::new(Threads::new(move || look_up(threads, keys, look)))
        },
    )
    .parameter("threads", 3, 1..=4, "how many threads look values up")
    .parameter("keys", 2, 1..=3, "how many values each looks up")
    .bug(
        "check-then-act",
        "puts a value in without a second look whether it is there",
        |bug| bug.set("threads", 2).set("keys", 1),
    )
}

/// How often a thread looks for a value before it computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Before it asks for the lock to write, and again under it.
    Twice,
    /// Only before.
    Once,
}

/// Values by their keys, each computed when it is first asked for.
#[derive(Debug)]
pub struct Cache {
    values: RwLock<BTreeMap<usize, u64>>,
    look: Look,
}

impl Cache {
    /// An empty cache.
    pub fn new(look: Look) -> Self {
        Self {
            values: RwLock::default(),
            look,
        }
    }

    /// The value of a key, which `compute` finds out.
    pub fn get(&self, key: usize, compute: impl FnOnce() -> u64) -> u64 {
        if let Some(&value) = self.values.read().unwrap().get(&key) {
            return value;
        }
        match self.look {
            Look::Twice => {
                let mut values = self.values.write().unwrap();
                *values.entry(key).or_insert_with(compute)
            }
            Look::Once => {
                let value = compute();
                self.values.write().unwrap().insert(key, value);
                value
            }
        }
    }
}

/// Threads that look up the same values: each is right, and computed once.
pub fn look_up(threads: usize, keys: usize, look: Look) {
    let cache = Arc::new(Cache::new(look));
    let computed: Arc<[AtomicU32]> = (0..keys).map(|_| AtomicU32::new(0)).collect();
    let threads: Vec<_> = (0..threads)
        .map(|id| {
            let (cache, computed) = (Arc::clone(&cache), Arc::clone(&computed));
            spawn(format!("reader {id}"), move || {
                for key in 0..keys {
                    let value = cache.get(key, || {
                        computed[key].fetch_add(1, SeqCst);
                        square(key)
                    });
                    assert_eq!(value, square(key), "the cache has another value");
                }
            })
        })
        .collect();
    join_all(threads);
    for (key, times) in computed.iter().enumerate() {
        assert_eq!(times.load(SeqCst), 1, "key {key} is computed once");
    }
}

fn square(key: usize) -> u64 {
    (key * key) as u64
}
