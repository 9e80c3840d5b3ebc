//! A channel for one message, and its orderings: those of the crate `oneshot` where they are needed.

use super::*;

const EMPTY: usize = 0;
const MESSAGE: usize = 1;
const DISCONNECTED: usize = 2;
const WAITING: usize = 3;

#[derive(Clone, Copy, Debug)]
struct Orders {
    send: Ordering,
    receive: Ordering,
    wait: Ordering,
    take_waiter: Ordering,
    disconnect: Ordering,
}

const CORRECT: Orders = Orders {
    send: AcqRel,
    receive: Acquire,
    wait: Release,
    take_waiter: Acquire,
    disconnect: AcqRel,
};

struct Channel {
    state: AtomicUsize,
    message: UnsafeCell<Option<Box<u32>>>,
    waiter: UnsafeCell<Option<thread::Thread>>,
    orders: Orders,
}

// SAFETY: the state says who may come to what.
unsafe impl Sync for Channel {}
// SAFETY: the same.
unsafe impl Send for Channel {}

impl Channel {
    fn new(orders: Orders) -> Self {
        Self {
            state: AtomicUsize::new(EMPTY),
            message: UnsafeCell::new(None),
            waiter: UnsafeCell::new(None),
            orders,
        }
    }

    fn send(&self, message: u32) {
        // SAFETY: the receiver looks only once the state says so.
        self.message
            .with_mut(|place| unsafe { *place = Some(Box::new(message)) });
        self.tell(MESSAGE, self.orders.send);
    }

    /// The sender goes without a message.
    fn disconnect(&self) {
        self.tell(DISCONNECTED, self.orders.disconnect);
    }

    fn tell(&self, what: usize, order: Ordering) {
        if self.state.swap(what, order) == WAITING {
            fence(self.orders.take_waiter);
            // SAFETY: the receiver has left it there and does not come back to it.
            let waiter = self.waiter.with_mut(|waiter| unsafe { (*waiter).take() });
            waiter.expect("it waits").unpark();
        }
    }

    fn receive(&self) -> Option<u32> {
        let mut state = self.state.load(self.orders.receive);
        if state == EMPTY {
            // SAFETY: the sender looks only once the state says so.
            self.waiter
                .with_mut(|waiter| unsafe { *waiter = Some(thread::current()) });
            let waits =
                self.state
                    .compare_exchange(EMPTY, WAITING, self.orders.wait, self.orders.receive);
            if waits.is_ok() {
                loop {
                    thread::park();
                    if self.state.load(self.orders.receive) != WAITING {
                        break;
                    }
                }
            }
            state = self.state.load(self.orders.receive);
        }
        match state {
            // SAFETY: the sender is done with it.
            MESSAGE => self
                .message
                .with_mut(|place| unsafe { (*place).take() })
                .map(|message| *message),
            _ => None,
        }
    }
}

fn is_racy(orders: Orders, sends: bool) -> bool {
    races(move || {
        let channel = Arc::new(Channel::new(orders));
        let sender = Arc::clone(&channel);
        let sender = thread::spawn(move || match sends {
            true => sender.send(7),
            false => sender.disconnect(),
        });
        assert_eq!(channel.receive(), sends.then_some(7));
        sender.join().unwrap();
    })
}

#[test]
fn its_orderings_are_enough() {
    assert!(!is_racy(CORRECT, true));
    assert!(!is_racy(CORRECT, false));
}

#[test]
fn each_ordering_that_is_needed_is_missed() {
    let weaker = [
        Orders {
            send: Acquire,
            ..CORRECT
        },
        Orders {
            receive: Relaxed,
            ..CORRECT
        },
        Orders {
            wait: Relaxed,
            ..CORRECT
        },
    ];
    for orders in weaker {
        assert!(is_racy(orders, true), "{orders:?}");
    }
    let no_acquire = Orders {
        send: Release,
        take_waiter: Release,
        ..CORRECT
    };
    assert!(is_racy(no_acquire, true));
}
