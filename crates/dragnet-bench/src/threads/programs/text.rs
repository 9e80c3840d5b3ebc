//! The programs themselves.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::super::Program;
use super::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use super::sync::{Condvar, Mutex, MutexGuard, RwLock, mpsc};
use super::thread::{self, JoinHandle};

/// Every program.
pub const PROGRAMS: &[Program] = &[
    Program::correct("readers-2", "a writer and 2 readers", || readers(2)).small(),
    Program::correct("readers-3", "a writer and 3 readers", || readers(3)),
    Program::correct("last-zero-2", "last zero, 2 counters", || last_zero(2)).small(),
    Program::correct("last-zero-3", "last zero, 3 counters", || last_zero(3)),
    Program::correct("indexer", "indexer, 3 threads, 2 words each", || {
        indexer(3, 2)
    }),
    Program::correct("file-system", "file system, 4 threads", || file_system(4)),
    Program::correct(
        "fetch-add-3",
        "atomic counter, 3 threads, twice each",
        || count_atomically(3, 2),
    ),
    Program::correct(
        "fetch-add-4",
        "atomic counter, 4 threads, twice each",
        || count_atomically(4, 2),
    ),
    Program::correct("mutex-counter-2", "counter and mutex, 2 threads", || {
        count_under_lock(2, 1)
    })
    .small(),
    Program::correct(
        "mutex-counter-3",
        "counter and mutex, 3 threads, twice each",
        || count_under_lock(3, 2),
    ),
    Program::correct(
        "mutex-counter-4",
        "counter and mutex, 4 threads, twice each",
        || count_under_lock(4, 2),
    ),
    Program::correct("bounded-queue", "bounded queue, room for 1 of 4", || {
        produce_and_consume(1, 4, Mistake::None)
    }),
    Program::correct("channel", "channel, 3 senders, 2 messages each", || {
        send_and_receive(3, 2)
    }),
    Program::correct("park", "park and unpark, 3 threads", || wake_up(3)),
    Program::correct("rw-cache", "cache and rwlock, 2 threads, 2 keys", || {
        look_up(2, 2, Look::Twice)
    }),
    Program::correct("stack", "lock-free stack, 2 threads", || {
        take_and_give_back(2, 3, Tags::Counted)
    }),
    Program::correct("philosophers", "philosophers, 3", || {
        dine(3, Forks::SmallerFirst)
    }),
    Program::correct("pool", "connection pool, 3 clients of 2", || {
        borrow(3, 2, Pooling::UnderOneLock)
    }),
    Program::wrong("lost-update", "lost update, 2 threads", || {
        count_carelessly(2, 2)
    })
    .small(),
    Program::wrong("all-lost", "all updates but one lost, 4 threads", || {
        count_carelessly(4, 2)
    }),
    Program::wrong("two-locks", "two locks in both orders", lock_in_both_orders).small(),
    Program::wrong("left-first", "philosophers, left fork first, 4", || {
        dine(4, Forks::LeftFirst)
    }),
    Program::wrong("lost-wake-up", "lost wake-up", || {
        produce_and_consume(1, 2, Mistake::LooksOutside)
    })
    .small(),
    Program::wrong("cache-once", "cache without a second look", || {
        look_up(3, 2, Look::Once)
    }),
    Program::wrong("pool-check", "pool, check then act", || {
        borrow(3, 2, Pooling::CheckThenAct)
    }),
    Program::wrong("aba", "lock-free stack without tags", || {
        take_and_give_back(2, 3, Tags::None)
    }),
];

fn join_all<T>(threads: Vec<JoinHandle<T>>) -> Vec<T> {
    let threads = threads.into_iter();
    threads
        .map(|thread| thread.join().expect("the thread does not panic"))
        .collect()
}

/// A writer and readers of one value.
fn readers(n: usize) {
    let shared = Arc::new(AtomicU32::new(1));
    let writer = Arc::clone(&shared);
    let writer = thread::spawn(move || writer.store(2, SeqCst));
    let readers = (0..n).map(|_| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || shared.load(SeqCst))
    });
    let readers = readers.collect();
    writer.join().expect("the writer does not panic");
    for seen in join_all(readers) {
        assert!(seen == 1 || seen == 2, "a reader has seen {seen}");
    }
}

/// Threads that count up an array, and one that looks for its last zero.
fn last_zero(n: usize) {
    let array: Arc<Vec<_>> = Arc::new((0..=n).map(|_| AtomicUsize::new(0)).collect());
    let searched = Arc::clone(&array);
    let search = thread::spawn(move || {
        let mut at = n;
        while searched[at].load(SeqCst) != 0 {
            at -= 1;
        }
        at
    });
    let counters = (1..=n).map(|id| {
        let array = Arc::clone(&array);
        thread::spawn(move || {
            let before = array[id - 1].load(SeqCst);
            array[id].store(before + 1, SeqCst);
        })
    });
    join_all(counters.collect());
    let zero = search.join().expect("the search does not panic");
    assert!(zero <= n, "the search has left the array");
}

/// Threads that insert words into a shared hash table without a lock.
fn indexer(threads: usize, words: usize) {
    const SIZE: usize = 8;
    const EMPTY: usize = 0;
    let table: Arc<Vec<_>> = Arc::new((0..SIZE).map(|_| AtomicUsize::new(EMPTY)).collect());
    let inserters = (0..threads).map(|id| {
        let table = Arc::clone(&table);
        thread::spawn(move || {
            let insert = |word: usize| {
                let mut slot = word * 5 % SIZE;
                while table[slot]
                    .compare_exchange(EMPTY, word, SeqCst, SeqCst)
                    .is_err()
                {
                    slot = (slot + 1) % SIZE;
                }
                slot
            };
            let words = (1..=words).map(|word| word * 11 + id);
            words.map(insert).collect::<Vec<_>>()
        })
    });
    let mut slots = join_all(inserters.collect()).concat();
    slots.sort_unstable();
    slots.dedup();
    assert_eq!(slots.len(), threads * words, "two words share a slot");
}

/// Threads that create files, each with a block of its own.
fn file_system(n: usize) {
    const BLOCKS: usize = 4;
    let busy: Arc<Vec<_>> = Arc::new((0..BLOCKS).map(|_| Mutex::new(false)).collect());
    let inodes: Arc<Vec<_>> = Arc::new((0..n).map(|_| Mutex::new(None)).collect());
    let creators = (0..n).map(|id| {
        let (inodes, busy) = (Arc::clone(&inodes), Arc::clone(&busy));
        thread::spawn(move || {
            let mut file = inodes[id].lock().unwrap();
            *file.get_or_insert_with(|| {
                let mut block = id * 2 % BLOCKS;
                while std::mem::replace(&mut *busy[block].lock().unwrap(), true) {
                    block = (block + 1) % BLOCKS;
                }
                block
            })
        })
    });
    let mut blocks = join_all(creators.collect());
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!(blocks.len(), n, "two files share a block");
}

fn count_atomically(threads: usize, times: usize) {
    let count = Arc::new(AtomicUsize::new(0));
    let counters = (0..threads).map(|_| {
        let count = Arc::clone(&count);
        thread::spawn(move || {
            for _ in 0..times {
                count.fetch_add(1, SeqCst);
            }
        })
    });
    join_all(counters.collect());
    assert_eq!(count.load(SeqCst), threads * times);
}

fn count_under_lock(threads: usize, times: usize) {
    let count = Arc::new(Mutex::new(0));
    let counters = (0..threads).map(|_| {
        let count = Arc::clone(&count);
        thread::spawn(move || {
            for _ in 0..times {
                *count.lock().unwrap() += 1;
            }
        })
    });
    join_all(counters.collect());
    assert_eq!(*count.lock().unwrap(), threads * times);
}

/// Counters that read and write in two steps; so many updates must be left at least.
fn count_carelessly(threads: usize, at_least: u32) {
    let count = Arc::new(AtomicU32::new(0));
    let counters = (0..threads).map(|_| {
        let count = Arc::clone(&count);
        thread::spawn(move || {
            let seen = count.load(SeqCst);
            count.store(seen + 1, SeqCst);
        })
    });
    join_all(counters.collect());
    assert!(count.load(SeqCst) >= at_least, "updates are lost");
}

fn lock_in_both_orders() {
    let locks = Arc::new((Mutex::new(0), Mutex::new(0)));
    let others = Arc::clone(&locks);
    let other = thread::spawn(move || {
        let mut second = others.1.lock().unwrap();
        let mut first = others.0.lock().unwrap();
        (*first, *second) = (1, 1);
    });
    let mut first = locks.0.lock().unwrap();
    let mut second = locks.1.lock().unwrap();
    (*first, *second) = (2, 2);
    drop((first, second));
    other.join().unwrap();
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// Who must wait has looked whether it must before it took the lock under which it waits.
    LooksOutside,
}

struct BoundedQueue {
    items: Mutex<VecDeque<usize>>,
    has_room: Condvar,
    has_items: Condvar,
    capacity: usize,
    mistake: Mistake,
}

impl BoundedQueue {
    fn push(&self, item: usize) {
        let is_full = |items: &VecDeque<usize>| items.len() == self.capacity;
        let mut items = self.wait_while(is_full, &self.has_room);
        items.push_back(item);
        drop(items);
        self.has_items.notify_one();
    }

    fn pop(&self) -> usize {
        let mut items = self.wait_while(VecDeque::is_empty, &self.has_items);
        let item = items.pop_front().expect("it has waited for an item");
        drop(items);
        self.has_room.notify_one();
        item
    }

    fn wait_while(
        &self,
        must_wait: impl Fn(&VecDeque<usize>) -> bool,
        changed: &Condvar,
    ) -> MutexGuard<'_, VecDeque<usize>> {
        let mut items = self.items.lock().unwrap();
        while must_wait(&items) {
            if self.mistake == Mistake::LooksOutside {
                drop(items);
                items = self.items.lock().unwrap();
            }
            items = changed.wait(items).unwrap();
        }
        items
    }
}

/// A producer and a consumer at a blocking queue.
fn produce_and_consume(capacity: usize, items: usize, mistake: Mistake) {
    let queue = Arc::new(BoundedQueue {
        items: Mutex::new(VecDeque::new()),
        has_room: Condvar::new(),
        has_items: Condvar::new(),
        capacity,
        mistake,
    });
    let filled = Arc::clone(&queue);
    let producer = thread::spawn(move || (0..items).for_each(|item| filled.push(item)));
    let consumed: Vec<_> = (0..items).map(|_| queue.pop()).collect();
    producer.join().expect("the producer does not panic");
    assert!(consumed.into_iter().eq(0..items), "items change places");
}

/// Several senders and one receiver.
fn send_and_receive(senders: usize, messages: usize) {
    let (sender, receiver) = mpsc::channel();
    let threads = (0..senders).map(|id| {
        let sender = sender.clone();
        thread::spawn(move || {
            for message in 0..messages {
                sender.send((id, message)).expect("the receiver is there");
            }
        })
    });
    let threads = threads.collect();
    let mut next = vec![0; senders];
    for _ in 0..senders * messages {
        let (id, message) = receiver.recv().expect("the sender is there");
        assert_eq!(message, next[id], "messages overtake each other");
        next[id] += 1;
    }
    join_all(threads);
}

/// Threads that park, once each, until they are woken or for no reason.
fn wake_up(n: usize) {
    let awake = Arc::new(AtomicUsize::new(0));
    let parked = (0..n).map(|_| {
        let awake = Arc::clone(&awake);
        thread::spawn(move || {
            thread::park();
            awake.fetch_add(1, SeqCst);
        })
    });
    let parked: Vec<_> = parked.collect();
    for parked in &parked {
        parked.thread().unpark();
    }
    join_all(parked);
    assert_eq!(awake.load(SeqCst), n);
}

#[derive(Clone, Copy)]
enum Look {
    Twice,
    Once,
}

/// Threads that look up the same values in a cache: each is computed once.
fn look_up(threads: usize, keys: usize, look: Look) {
    let cache = Arc::new(RwLock::new(BTreeMap::new()));
    let computed = Arc::new(AtomicUsize::new(0));
    let readers = (0..threads).map(|_| {
        let (cache, computed) = (Arc::clone(&cache), Arc::clone(&computed));
        thread::spawn(move || {
            let compute = |key| {
                computed.fetch_add(1, SeqCst);
                key * key
            };
            for key in 0..keys {
                let known = cache.read().unwrap().get(&key).copied();
                let value = match (known, look) {
                    (Some(value), _) => value,
                    (None, Look::Twice) => {
                        let mut values = cache.write().unwrap();
                        *values.entry(key).or_insert_with(|| compute(key))
                    }
                    (None, Look::Once) => {
                        let value = compute(key);
                        cache.write().unwrap().insert(key, value);
                        value
                    }
                };
                assert_eq!(value, key * key, "the cache has another value");
            }
        })
    });
    join_all(readers.collect());
    assert_eq!(computed.load(SeqCst), keys, "each is computed once");
}

#[derive(Clone, Copy)]
enum Tags {
    Counted,
    None,
}

/// The free slots of a pool in a Treiber stack: the head has a tag in its upper half, and both are one more than a slot.
struct FreeSlots {
    head: AtomicU64,
    next: Vec<AtomicU32>,
    tags: Tags,
}

impl FreeSlots {
    fn take(&self) -> Option<u32> {
        let mut head = self.head.load(SeqCst);
        loop {
            let slot = (head as u32).checked_sub(1)?;
            let next = self.next[slot as usize].load(SeqCst);
            match self.replace(head, next) {
                Ok(_) => return Some(slot),
                Err(now) => head = now,
            }
        }
    }

    fn give_back(&self, slot: u32) {
        let mut head = self.head.load(SeqCst);
        loop {
            self.next[slot as usize].store(head as u32, SeqCst);
            match self.replace(head, slot + 1) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn replace(&self, head: u64, link: u32) -> Result<u64, u64> {
        let tag = match self.tags {
            Tags::Counted => (head >> 32) + 1,
            Tags::None => 0,
        };
        let new = tag << 32 | u64::from(link);
        self.head.compare_exchange(head, new, SeqCst, SeqCst)
    }
}

/// Every thread takes two slots and gives the first one back: in the end each slot has one owner, or is free.
fn take_and_give_back(threads: usize, slots: u32, tags: Tags) {
    let below = |slot| if slot + 1 < slots { slot + 2 } else { 0 };
    let free = Arc::new(FreeSlots {
        head: AtomicU64::new(1),
        next: (0..slots).map(|slot| AtomicU32::new(below(slot))).collect(),
        tags,
    });
    let users = (0..threads).map(|_| {
        let free = Arc::clone(&free);
        thread::spawn(move || {
            let first = free.take();
            let second = free.take();
            if let Some(slot) = first {
                free.give_back(slot);
            }
            second
        })
    });
    let users = join_all(users.collect());
    let mut owned: Vec<u32> = users.into_iter().flatten().collect();
    // What is broken may go in a circle.
    owned.extend(std::iter::from_fn(|| free.take()).take(slots as usize + 1));
    owned.sort_unstable();
    assert!(owned.into_iter().eq(0..slots), "a slot has no one owner");
}

#[derive(Clone, Copy)]
enum Forks {
    SmallerFirst,
    LeftFirst,
}

/// Philosophers who eat once each.
fn dine(n: usize, order: Forks) {
    let forks: Arc<Vec<_>> = Arc::new((0..n).map(|_| Mutex::new(0)).collect());
    let philosophers = (0..n).map(|seat| {
        let forks = Arc::clone(&forks);
        thread::spawn(move || {
            let (left, right) = (seat, (seat + 1) % n);
            let (first, second) = match order {
                Forks::SmallerFirst => (left.min(right), left.max(right)),
                Forks::LeftFirst => (left, right),
            };
            let mut first = forks[first].lock().unwrap();
            let mut second = forks[second].lock().unwrap();
            *first += 1;
            *second += 1;
        })
    });
    join_all(philosophers.collect());
    for fork in forks.iter() {
        assert_eq!(*fork.lock().unwrap(), 2, "both neighbours have eaten");
    }
}

#[derive(Clone, Copy)]
enum Pooling {
    UnderOneLock,
    CheckThenAct,
}

/// Clients that borrow a connection if one is idle, and give it back.
fn borrow(clients: usize, connections: usize, pooling: Pooling) {
    let idle = Arc::new(Mutex::new((0..connections).collect::<Vec<_>>()));
    let was_used = Arc::new(AtomicBool::new(false));
    let threads = (0..clients).map(|_| {
        let (idle, was_used) = (Arc::clone(&idle), Arc::clone(&was_used));
        thread::spawn(move || {
            let connection = match pooling {
                Pooling::UnderOneLock => idle.lock().unwrap().pop(),
                Pooling::CheckThenAct => {
                    let is_idle = !idle.lock().unwrap().is_empty();
                    is_idle.then(|| idle.lock().unwrap().pop().expect("one is idle"))
                }
            };
            if let Some(connection) = connection {
                was_used.store(true, SeqCst);
                idle.lock().unwrap().push(connection);
            }
        })
    });
    join_all(threads.collect());
    assert!(was_used.load(SeqCst), "nobody got a connection");
    assert_eq!(idle.lock().unwrap().len(), connections, "one is lost");
}
