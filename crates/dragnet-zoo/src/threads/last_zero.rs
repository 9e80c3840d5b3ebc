//! Threads that count up an array, and one that looks for its last zero.
//!
//! A benchmark of Abdulla, Aronis, Jonsson and Sagonas (*Optimal dynamic partial order reduction*, POPL 2014). Thread
//! `i` sets element `i` to one more than the element before it; the search goes down from the last element until it
//! finds a zero. How far it looks depends on the schedule, which is what makes a reduction without wake-up trees run into
//! executions that turn out to be like others. `n` writers have 64 executions when `n` is 5, and 3,328 when it is 10.

use dragnet::catalog::Entry;
use dragnet::sync::Arc;
use dragnet::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use dragnet::{Check, Threads};

use super::{join_all, spawn};

/// The program under the name `lastzero`.
pub fn entry() -> Entry {
    Entry::new(
        "lastzero",
        "threads that count up an array, and one that looks for its last zero",
        |setup| {
            let n = setup.number("n");
            Check::new(Threads::new(move || last_zero(n)))
        },
    )
    .parameter("n", 5, 1..=15, "how many threads count")
}

/// A search among `n` threads that write.
pub fn last_zero(n: usize) {
    let array: Arc<[AtomicUsize]> = (0..=n).map(|_| AtomicUsize::new(0)).collect();
    let searched = Arc::clone(&array);
    let search = spawn("search", move || {
        let mut at = n;
        while searched[at].load(SeqCst) != 0 {
            // Nobody writes the first element, so the search ends there at the latest.
            at -= 1;
        }
        at
    });
    let counters: Vec<_> = (1..=n)
        .map(|id| {
            let array = Arc::clone(&array);
            spawn(format!("counter {id}"), move || {
                let before = array[id - 1].load(SeqCst);
                array[id].store(before + 1, SeqCst);
            })
        })
        .collect();
    join_all(counters);
    let zero = search.join().expect("the search does not panic");
    assert!(zero <= n, "the search has left the array");
    for (at, count) in array.iter().enumerate() {
        let count = count.load(SeqCst);
        assert!(
            count <= at && (count > 0) == (at > 0),
            "element {at} is {count}"
        );
    }
}
