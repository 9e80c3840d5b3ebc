//! Slots that are handed out by a free list: a slot is released by a counter that its last user decrements.

use super::*;

#[derive(Clone, Copy, Debug)]
struct Orders {
    publish: Ordering,
    get: Ordering,
    put: Ordering,
    clear: Ordering,
}

const CORRECT: Orders = Orders {
    publish: Release,
    get: Acquire,
    put: Release,
    clear: Acquire,
};

/// The lifecycle of a slot: its generation far above, how many use it, and whether there is something in it.
const PRESENT: usize = 1 << 40;

struct Slab {
    lifecycle: AtomicUsize,
    value: Data,
    orders: Orders,
}

impl Slab {
    fn insert(&self, value: u32) {
        self.value.write(value);
        self.lifecycle.store(PRESENT, self.orders.publish);
    }

    fn get(&self) -> Option<u32> {
        let mut seen = self.lifecycle.load(Relaxed);
        while seen >= PRESENT {
            let next = self
                .lifecycle
                .compare_exchange(seen, seen + 1, self.orders.get, Relaxed);
            match next {
                Ok(_) => {
                    let value = self.value.read();
                    self.lifecycle.fetch_sub(1, self.orders.put);
                    return Some(value);
                }
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Takes the value away if nobody uses it.
    fn remove(&self) -> bool {
        let removed = self
            .lifecycle
            .compare_exchange(PRESENT, 0, self.orders.clear, Relaxed);
        if removed.is_ok() {
            self.value.write(0);
        }
        removed.is_ok()
    }
}

fn is_racy(orders: Orders) -> bool {
    races(move || {
        let slab = Arc::new(Slab {
            lifecycle: AtomicUsize::new(0),
            value: Data::default(),
            orders,
        });
        let (reader, remover) = (Arc::clone(&slab), Arc::clone(&slab));
        let reader = thread::spawn(move || {
            assert!(reader.get().is_none_or(|value| value == 7));
        });
        let remover = thread::spawn(move || remover.remove());
        slab.insert(7);
        reader.join().unwrap();
        remover.join().unwrap();
    })
}

#[test]
fn its_orderings_are_enough() {
    assert!(!is_racy(CORRECT));
}

#[test]
fn each_ordering_that_is_needed_is_missed() {
    let weaker = [
        Orders {
            publish: Relaxed,
            ..CORRECT
        },
        Orders {
            get: Relaxed,
            ..CORRECT
        },
        Orders {
            put: Relaxed,
            ..CORRECT
        },
        Orders {
            clear: Relaxed,
            ..CORRECT
        },
    ];
    for orders in weaker {
        assert!(is_racy(orders), "{orders:?}");
    }
}
