//! A pool of connections that clients borrow and give back.
//!
//! A client that finds no idle connection waits for one. The pool keeps statistics behind a lock of their own, so that
//! whoever reads them does not get in the way; a connection changes hands and is counted under both locks, so that the
//! two always agree. Whoever needs both locks takes that of the connections first.
//!
//! With the bug `lock-order` a connection is given back the other way round, under the lock of the statistics, and two
//! clients can wait for each other.

use dragnet::catalog::Entry;
use dragnet::sync::{Arc, Condvar, Mutex};
use dragnet::{Check, Threads};

use super::{join_all, spawn};

/// The program under the name `connection-pool`.
pub fn entry() -> Entry {
    Entry::new(
        "connection-pool",
        "a pool of connections that clients borrow and give back",
        |setup| {
            let clients = setup.number("clients");
            let connections = setup.number("connections");
            let order = match setup.has_bug("lock-order") {
                true => Order::StatisticsFirst,
                false => Order::ConnectionsFirst,
            };
            Check::new(Threads::new(move || borrow(clients, connections, order)))
        },
    )
    .parameter("clients", 3, 1..=6, "how many clients borrow a connection")
    .parameter("connections", 2, 1..=4, "how many connections there are")
    .bug(
        "lock-order",
        "gives connections back under the lock of the statistics",
        |bug| bug.set("clients", 2),
    )
}

/// Which lock is taken first when a connection is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// That of the connections, as when one is borrowed.
    ConnectionsFirst,
    /// That of the statistics.
    StatisticsFirst,
}

/// A connection to somewhere.
#[derive(Debug)]
pub struct Connection {
    requests: u32,
}

/// How a pool is used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    borrowed: usize,
    most_borrowed: usize,
    requests: u32,
}

/// Connections that can be borrowed.
#[derive(Debug)]
pub struct Pool {
    idle: Mutex<Vec<Connection>>,
    given_back: Condvar,
    statistics: Mutex<Statistics>,
    order: Order,
}

/// A connection that goes back to its pool when its borrower is done.
#[derive(Debug)]
pub struct Borrowed<'a> {
    pool: &'a Pool,
    connection: Option<Connection>,
}

impl Pool {
    /// A pool of idle connections.
    pub fn new(connections: usize, order: Order) -> Self {
        Self {
            idle: Mutex::new(
                (0..connections)
                    .map(|_| Connection { requests: 0 })
                    .collect(),
            ),
            given_back: Condvar::new(),
            statistics: Mutex::default(),
            order,
        }
    }

    /// Borrows a connection, once one is idle.
    pub fn borrow(&self) -> Borrowed<'_> {
        let mut idle = self.idle.lock().unwrap();
        let connection = loop {
            match idle.pop() {
                Some(connection) => break connection,
                None => idle = self.given_back.wait(idle).unwrap(),
            }
        };
        let mut statistics = self.statistics.lock().unwrap();
        statistics.borrowed += 1;
        statistics.most_borrowed = statistics.most_borrowed.max(statistics.borrowed);
        Borrowed {
            pool: self,
            connection: Some(connection),
        }
    }

    /// How the pool is used.
    pub fn statistics(&self) -> Statistics {
        *self.statistics.lock().unwrap()
    }

    fn give_back(&self, connection: Connection) {
        let (mut idle, mut statistics);
        match self.order {
            Order::ConnectionsFirst => {
                idle = self.idle.lock().unwrap();
                statistics = self.statistics.lock().unwrap();
            }
            Order::StatisticsFirst => {
                statistics = self.statistics.lock().unwrap();
                idle = self.idle.lock().unwrap();
            }
        }
        statistics.borrowed -= 1;
        statistics.requests += connection.requests;
        idle.push(Connection { requests: 0 });
        drop((idle, statistics));
        self.given_back.notify_one();
    }
}

impl Borrowed<'_> {
    /// Asks something of whoever is on the other side.
    pub fn request(&mut self) {
        let connection = self.connection.as_mut();
        connection.expect("it is there until it goes back").requests += 1;
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.give_back(connection);
        }
    }
}

/// Clients that make a request each: in the end every connection is idle again, and every request was counted.
pub fn borrow(clients: usize, connections: usize, order: Order) {
    let pool = Arc::new(Pool::new(connections, order));
    let clients: Vec<_> = (0..clients)
        .map(|id| {
            let pool = Arc::clone(&pool);
            spawn(format!("client {id}"), move || pool.borrow().request())
        })
        .collect();
    let requests = join_all(clients).len();
    let statistics = pool.statistics();
    assert_eq!(statistics.borrowed, 0, "a connection is still borrowed");
    assert_eq!(
        statistics.requests as usize, requests,
        "a request is not counted"
    );
    assert!(
        statistics.most_borrowed <= connections,
        "more are borrowed than there are"
    );
    assert_eq!(
        pool.idle.lock().unwrap().len(),
        connections,
        "a connection is lost"
    );
}
