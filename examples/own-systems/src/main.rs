//! A system of one's own behind the command line of Dragnet: a lock service whose leases run out.
//!
//! A client that was granted the lock writes to a store. Its lease may run out meanwhile, and the lock go to the next
//! client, without the first one knowing: a lock alone cannot keep its late write away. So each grant carries a *fencing
//! token* that is higher than all before, each write carries the token of its grant, and the store refuses a token lower
//! than one that it has seen.
//!
//! ```sh
//! cargo run --release -p own-systems -- list
//! cargo run --release -p own-systems -- check lock-service --set clients=3
//! cargo run --release -p own-systems -- check lock-service --bug no-fencing
//! ```

use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::Duration;

use dragnet::catalog::Entry;
use dragnet::nodes::Either;
use dragnet::{Check, Cluster, Context, Node, NodeId, Timer};

fn main() -> ExitCode {
    dragnet_cli::main([entry()])
}

fn entry() -> Entry {
    Entry::new(
        "lock-service",
        "leases with fencing tokens that guard a store",
        |setup| check(setup.number("clients"), !setup.has_bug("no-fencing")),
    )
    .parameter("clients", 2, 1..=5, "how many clients want the lock")
    .bug(
        "no-fencing",
        "the store takes writes whatever their token",
        |bug| bug,
    )
}

fn check(clients: usize, fencing: bool) -> Check<Cluster<Members>> {
    let cluster = Cluster::new(1, |_| Locks)
        .and(1, |_| Store { fencing })
        .and(clients, |_| Client);
    Check::new(cluster)
        .always("writes keep the order of their grants", |s| {
            s.role::<Store, _>().all(|(_, writes)| writes.is_sorted())
        })
        .reachable("every client writes", move |s| {
            s.role::<Store, _>()
                .any(|(_, writes)| writes.len() == clients)
        })
}

type Members = Either<Either<Locks, Store>, Client>;
type Token = u32;

const LOCKS: NodeId = NodeId(0);
const STORE: NodeId = NodeId(1);
const LEASE: Timer = Timer::new("lease");

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Msg {
    Acquire,
    Granted(Token),
    Write(Token),
    Written(Token),
    Release(Token),
}

/// Grants the lock to one client after the other.
struct Locks;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Grants {
    token: Token,
    held: bool,
    waiting: VecDeque<NodeId>,
}

impl Locks {
    fn grant_next(grants: &mut Grants, cx: &mut Context<Msg>) {
        cx.cancel_timer(LEASE);
        grants.held = false;
        if let Some(client) = grants.waiting.pop_front() {
            grants.held = true;
            grants.token += 1;
            cx.send(client, Msg::Granted(grants.token));
            cx.set_timer(LEASE, Duration::from_secs(10));
        }
    }
}

impl Node for Locks {
    type State = Grants;
    type Msg = Msg;

    fn on_start(&self, _cx: &mut Context<Msg>) -> Grants {
        Grants::default()
    }

    fn on_message(&self, grants: &mut Grants, from: NodeId, msg: Msg, cx: &mut Context<Msg>) {
        match msg {
            Msg::Acquire => {
                grants.waiting.push_back(from);
                if !grants.held {
                    Self::grant_next(grants, cx);
                }
            }
            // One whose lease has run out has nothing left to release.
            Msg::Release(token) if token == grants.token && grants.held => {
                Self::grant_next(grants, cx);
            }
            _ => {}
        }
    }

    fn on_timer(&self, grants: &mut Grants, _lease: Timer, cx: &mut Context<Msg>) {
        Self::grant_next(grants, cx);
    }
}

/// What the lock guards: it remembers the token of each write that it took.
struct Store {
    fencing: bool,
}

impl Node for Store {
    type State = Vec<Token>;
    type Msg = Msg;

    fn on_start(&self, _cx: &mut Context<Msg>) -> Vec<Token> {
        Vec::new()
    }

    fn on_message(&self, writes: &mut Vec<Token>, from: NodeId, msg: Msg, cx: &mut Context<Msg>) {
        if let Msg::Write(token) = msg
            && !(self.fencing && writes.last().is_some_and(|&last| last > token))
        {
            writes.push(token);
            cx.send(from, Msg::Written(token));
        }
    }
}

/// Takes the lock, writes once, and gives it back.
struct Client;

impl Node for Client {
    type State = ();
    type Msg = Msg;

    fn on_start(&self, cx: &mut Context<Msg>) {
        cx.send(LOCKS, Msg::Acquire);
    }

    fn on_message(&self, _: &mut (), _from: NodeId, msg: Msg, cx: &mut Context<Msg>) {
        match msg {
            Msg::Granted(token) => cx.send(STORE, Msg::Write(token)),
            Msg::Written(token) => cx.send(LOCKS, Msg::Release(token)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_fencing_no_late_write_gets_through() {
        check(3, true).run().assert_holds();
    }

    #[test]
    fn without_fencing_a_lease_that_runs_out_does_harm() {
        let verdict = check(2, false).run();
        let violation = verdict.violation().expect("a late write gets through");
        assert_eq!(violation.property, "writes keep the order of their grants");
    }
}
