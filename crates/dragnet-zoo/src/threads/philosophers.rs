//! Philosophers around a table who need both forks beside them to eat (E. W. Dijkstra, *Hierarchical ordering of
//! sequential processes*, 1971).
//!
//! A fork is a mutex. Everybody takes the fork with the smaller number first, so nobody can wait for a fork whose holder
//! waits, by way of others, for this one. With the bug `left-first` everybody takes the fork on the left first: when all
//! do so at once, all starve.

use dragnet::catalog::Entry;
use dragnet::sync::{Arc, Mutex};
use dragnet::{Check, Threads};

use super::{join_all, spawn};

/// The program under the name `locked-philosophers`.
pub fn entry() -> Entry {
    Entry::new(
        "locked-philosophers",
        "philosophers who share forks",
        |setup| {
            let n = setup.number("n");
            let order = match setup.has_bug("left-first") {
                true => Order::LeftFirst,
                false => Order::SmallerFirst,
            };
            Check::new(Threads::new(move || dine(n, order)))
        },
    )
    .parameter("n", 3, 2..=8, "how many philosophers there are")
    .bug(
        "left-first",
        "everybody takes the fork on the left first",
        |bug| bug,
    )
}

/// Which fork a philosopher takes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The one with the smaller number.
    SmallerFirst,
    /// The one on the left.
    LeftFirst,
}

/// A fork, and how often somebody has eaten with it.
type Fork = Mutex<u32>;

/// `n` philosophers who eat once each.
pub fn dine(n: usize, order: Order) {
    let forks: Arc<[Fork]> = (0..n).map(|_| Mutex::new(0)).collect();
    let philosophers: Vec<_> = (0..n)
        .map(|seat| {
            let forks = Arc::clone(&forks);
            spawn(format!("philosopher {seat}"), move || {
                let (left, right) = (seat, (seat + 1) % n);
                let (first, second) = match order {
                    Order::SmallerFirst => (left.min(right), left.max(right)),
                    Order::LeftFirst => (left, right),
                };
                let mut first = forks[first].lock().unwrap();
                let mut second = forks[second].lock().unwrap();
                *first += 1;
                *second += 1;
            })
        })
        .collect();
    join_all(philosophers);
    for fork in forks.iter() {
        assert_eq!(*fork.lock().unwrap(), 2, "both neighbours have eaten");
    }
}
