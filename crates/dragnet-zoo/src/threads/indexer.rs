//! Threads that insert words into a shared hash table without a lock.
//!
//! The first example of Flanagan and Godefroid (*Dynamic partial-order reduction for model checking software*, POPL
//! 2005). Every thread inserts four words of its own; a slot is taken by compare-and-exchange, and a word whose slot is
//! taken goes to the next. No static analysis can tell that up to eleven threads never meet: with `n` = 11 there is one
//! execution, with 12 there are 8.

use dragnet::catalog::Entry;
use dragnet::sync::Arc;
use dragnet::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use dragnet::{Check, Threads};

use super::{join_all, spawn};

/// The program under the name `indexer`.
pub fn entry() -> Entry {
    Entry::new(
        "indexer",
        "threads that insert words into a shared hash table",
        |setup| {
            let n = setup.number("n");
            Check::new(Threads::new(move || indexer(n)))
        },
    )
    .parameter("n", 12, 1..=15, "how many threads insert words")
}

const SIZE: usize = 128;
const WORDS: usize = 4;
const EMPTY: usize = 0;

/// `n` threads with a table.
pub fn indexer(n: usize) {
    let table: Arc<[AtomicUsize]> = (0..SIZE).map(|_| AtomicUsize::new(EMPTY)).collect();
    let inserters = (0..n).map(|id| {
        let table = Arc::clone(&table);
        spawn(format!("inserter {id}"), move || {
            let insert = |word| insert(&table, word);
            words(id).map(insert).collect::<Vec<usize>>()
        })
    });
    let inserters: Vec<_> = inserters.collect();
    let mut slots = join_all(inserters).concat();
    slots.sort_unstable();
    slots.dedup();
    assert_eq!(slots.len(), n * WORDS, "two words share a slot");
}

/// The words of one thread. No two threads have one in common.
fn words(id: usize) -> impl Iterator<Item = usize> {
    (1..=WORDS).map(move |message| message * 11 + id)
}

/// Puts a word into the first slot from its own on that is empty, and says which that was.
fn insert(table: &[AtomicUsize], word: usize) -> usize {
    let mut slot = word * 7 % SIZE;
    while table[slot]
        .compare_exchange(EMPTY, word, SeqCst, SeqCst)
        .is_err()
    {
        slot = (slot + 1) % SIZE;
    }
    slot
}
