//! What processes do to each other over the network, in words.

use std::net::SocketAddr;

use super::super::model::{GONE, RESET};
use super::super::net::{FIRST_FREE_PORT, Label};
use super::super::operation::{Action, Harm, Way};
use super::super::state::State;

/// An address as a person knows it: the process, and the port if somebody has chosen it.
pub(in super::super) fn address(state: &State, address: SocketAddr) -> String {
    let ip = address.ip();
    let mut hosts = state.hosts.iter();
    let host = match hosts.find(|host| host.ip == ip) {
        Some(host) => host.name.clone(),
        None if ip.is_loopback() => "localhost".to_owned(),
        None => ip.to_string(),
    };
    match address.port() {
        port if port < FIRST_FREE_PORT => format!("{host}:{port}"),
        _ => host,
    }
}

/// What something is called that is not in the source.
pub(super) fn object(state: &State, label: Label) -> String {
    match label {
        Label::Port(at) => port(state, at),
        Label::Backlog(at) => format!("the listener at {}", address(state, at)),
        Label::Inbox(at) => format!("the socket at {}", address(state, at)),
        Label::Bytes { from, to } => {
            let (from, to) = (address(state, from), address(state, to));
            format!("the connection from {from} to {to}")
        }
        Label::Handles { local, peer } => {
            let of = peer.unwrap_or(local);
            format!("the handles of the socket for {}", address(state, of))
        }
    }
}

/// What there is one of for each number.
fn port(state: &State, at: SocketAddr) -> String {
    match at.port() < FIRST_FREE_PORT {
        true => address(state, at),
        false => format!("a free port of {}", address(state, at)),
    }
}

/// What is done to it. `changes` says whether that made a difference.
pub(super) fn action(
    state: &State,
    label: Label,
    (action, changes): (Action, bool),
    answer: u32,
    who: &str,
) -> String {
    let takes = matches!(action, Action::Take { .. } | Action::TryTake { .. });
    let puts = matches!(action, Action::Put(_));
    match label {
        Label::Port(at) => {
            let at = port(state, at);
            match action {
                Action::Load => format!("looks for who is at {at}"),
                Action::Modify if changes => format!("binds {at}"),
                Action::Modify => format!("tries to bind {at}, which is in use"),
                _ => format!("gives up {at}"),
            }
        }
        Label::Backlog(at) => {
            let at = address(state, at);
            match (action, answer) {
                (_, 1) if puts => format!("connects to {at}"),
                _ if puts => format!("tries to connect to {at}, where nobody listens any more"),
                (_, 1) if takes => format!("accepts a connection at {at}"),
                _ if takes => format!("finds that nobody has connected to {at}"),
                _ => format!("listens no more at {at}"),
            }
        }
        Label::Inbox(at) => {
            let at = address(state, at);
            match (action, answer) {
                (_, 1) if puts => format!("has a {who} arrive at {at}"),
                _ if puts => format!("has a {who} come to {at}, where nobody is any more"),
                (_, 1) if takes => format!("receives a datagram at {at}"),
                (Action::Take { .. }, _) => {
                    format!("has waited for a datagram at {at} for as long as it wanted")
                }
                _ if takes => format!("finds no datagram at {at}"),
                _ => format!("receives no more at {at}"),
            }
        }
        Label::Bytes { from, to } => {
            let (from, to) = (address(state, from), address(state, to));
            match (action, answer) {
                (Action::Put(_), GONE) => format!("writes to {to}, which reads no more"),
                (Action::Put(_), RESET) => format!("writes to {to}, and the connection has broken"),
                (Action::Put(1), _) => format!("writes 1 byte to {to}"),
                (Action::Put(size), _) => format!("writes {size} bytes to {to}"),
                (_, GONE) if takes => format!("finds that {from} writes no more"),
                (_, RESET) if takes => format!("reads from {from}, and the connection has broken"),
                (_, 1) if takes => format!("reads what {from} has written"),
                (Action::Take { .. }, _) => {
                    format!("has waited for {from} to write for as long as it wanted")
                }
                _ if takes => format!("finds that {from} has written nothing"),
                (Action::Shut, _) => format!("writes no more to {to}"),
                (Action::HangUp, _) => format!("reads no more from {from}"),
                _ => format!("breaks the connection from {from} to {to}"),
            }
        }
        Label::Handles {
            peer: Some(peer), ..
        } => format!(
            "drops a handle of its connection to {}",
            address(state, peer)
        ),
        Label::Handles { local, .. } => {
            format!("drops a handle of its socket at {}", address(state, local))
        }
    }
}

/// What somebody waits for there.
pub(super) fn awaited(state: &State, label: Label) -> String {
    match label {
        Label::Bytes { from, .. } => format!("{} to write something", address(state, from)),
        Label::Backlog(at) => format!("somebody to connect to {}", address(state, at)),
        Label::Inbox(at) => format!("a datagram at {}", address(state, at)),
        Label::Port(_) | Label::Handles { .. } => object(state, label),
    }
}

/// What becomes of something that may come to harm. `what` is what that is, as who decides it is called.
pub(super) fn suffered(harm: Harm, way: Way, who: &str) -> String {
    let what = who.strip_prefix("fate of ").unwrap_or(who);
    match (harm, way) {
        (Harm::Datagram, Harm::LOST) => "sends a datagram, which is lost".to_owned(),
        (Harm::Datagram, Harm::TWICE) => "sends a datagram, which comes twice".to_owned(),
        (Harm::Datagram, _) => "sends a datagram, which is spared".to_owned(),
        (Harm::Connection, Harm::DONE) => format!("is going to break {what}"),
        (Harm::Connection, _) => format!("spares {what}"),
        (Harm::Process, Harm::DONE) => format!("is going to crash {what}"),
        (Harm::Process, _) => format!("spares {what}"),
        (Harm::Crashed, Harm::DONE) => format!("starts {what} again"),
        (Harm::Crashed, _) => format!("lets {what} stay down"),
    }
}
