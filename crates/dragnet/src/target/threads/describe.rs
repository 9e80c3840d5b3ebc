//! What threads do, in words.

use std::panic::Location;

use super::model::{GONE, Model};
use super::operation::{Action, ObjectId, ThreadId, Ways};
use super::world::{Names, State};
use crate::trace::Step;

/// A place in the source.
fn place(at: &Location<'_>) -> String {
    format!("{}:{}:{}", at.file(), at.line(), at.column())
}

/// An object as a person knows it.
fn object(state: &State, id: ObjectId, names: &Names) -> String {
    let object = state.object(id);
    if let Some(thread) = object.thread {
        return names.of(thread);
    }
    let what = match object.model {
        Model::Memory => "atomic value",
        Model::Mutex { .. } => "mutex",
        Model::RwLock { .. } => "read-write lock",
        Model::Condvar(_) => "condition variable",
        Model::Channel(_) => "channel",
        Model::Thread { .. } => "thread",
        Model::Once(_) => "once",
        Model::Barrier(_) => "barrier",
    };
    match object.made {
        Some(made) => format!("the {what} made at {}", place(made)),
        None => format!("a {what}"),
    }
}

/// The last event of an execution, told for a person.
pub(super) fn last_step(state: &State, names: &Names) -> Step {
    let Some(event) = state.events.last() else {
        return Step::default();
    };
    let operation = event.operation;
    let it = object(state, operation.object, names);
    let answer = state.thread(event.thread).answer;
    let succeeds = answer == 1;
    let come = event.way == Ways::COME;
    let action = match operation.action {
        Action::Load => format!("reads {it}"),
        Action::Store => format!("writes {it}"),
        Action::Modify => format!("reads and writes {it}"),
        Action::Lock | Action::Write | Action::Read => {
            let how = if operation.action == Action::Read {
                "for reading "
            } else {
                ""
            };
            format!("locks {how}{it}")
        }
        Action::TryLock | Action::TryWrite | Action::TryRead if succeeds => format!("locks {it}"),
        Action::TryLock | Action::TryWrite | Action::TryRead => {
            format!("tries to lock {it}, which is held")
        }
        Action::Unlock | Action::WriteUnlock | Action::ReadUnlock => format!("unlocks {it}"),
        Action::Downgrade => format!("goes on with {it} as a reader"),
        Action::Wait => format!("begins to wait at {it}"),
        Action::Wake { .. } if come => format!("is woken at {it}"),
        Action::Wake { .. } if event.way == Ways::TIMEOUT => {
            format!("has waited at {it} for as long as it wanted")
        }
        Action::Wake { .. } => format!("wakes up for no reason at {it}"),
        Action::NotifyOne => match woken(event.way, &event.before) {
            Some(thread) => format!("notifies {} at {it}", names.of(thread)),
            None => format!("notifies one at {it}, where nobody waits"),
        },
        Action::NotifyAll => format!("notifies all at {it}"),
        Action::Send | Action::TrySend if answer == GONE => {
            format!("sends to {it}, where nobody receives any more")
        }
        Action::Send => format!("sends to {it}"),
        Action::TrySend if succeeds => format!("sends to {it}"),
        Action::TrySend => format!("tries to send to {it}, which is full"),
        Action::Await => format!("begins to wait for a message on {it}"),
        Action::Handed => format!("has handed over its message at {it}"),
        Action::Receive { .. } | Action::TryReceive if answer == GONE => {
            format!("finds that nobody sends to {it} any more")
        }
        Action::Receive { .. } | Action::TryReceive if succeeds => format!("receives from {it}"),
        Action::Receive { .. } => {
            format!("has waited for a message on {it} for as long as it wanted")
        }
        Action::TryReceive => format!("tries to receive from {it}, which is empty"),
        Action::Close => format!("drops a sender of {it}"),
        Action::HangUp => format!("drops the receiver of {it}"),
        Action::End => "ends".to_owned(),
        Action::Join => format!("joins {it}"),
        Action::IsFinished => format!("asks whether {it} has ended"),
        Action::Park { .. } if come => "parks and goes on, because it was unparked".to_owned(),
        Action::Park { .. } => "has parked for as long as it wanted".to_owned(),
        Action::Unpark => format!("unparks {it}"),
        Action::Enter if event.way == Ways::DONE => format!("finds that {it} is done"),
        Action::Enter => format!("begins {it}"),
        Action::Complete => format!("is done with {it}"),
        Action::Abandon => format!("gives up {it}"),
        Action::Look => format!("looks whether {it} is done"),
        Action::Arrive => format!("comes to {it}"),
        Action::Depart => format!("passes {it}"),
        Action::Choose(count) => format!("chooses {} of {count}", event.way),
        Action::Yield => "lets others go first".to_owned(),
    };
    let notes = match operation.action {
        Action::End => Vec::new(),
        _ => vec![format!("at {}", place(operation.at))],
    };
    Step {
        component: names.of(event.thread),
        action,
        notes,
        ..Step::default()
    }
}

/// Who is woken by a notification.
fn woken(way: u32, before: &Model) -> Option<ThreadId> {
    match before {
        Model::Condvar(condvar) => condvar.waiting().find(|waiter| waiter.0 == way),
        _ => None,
    }
}

/// What a thread waits for.
pub(super) fn awaited(state: &State, thread: ThreadId, names: &Names) -> Option<String> {
    let pending = state.pending(thread)?;
    let it = object(state, pending.object, names);
    let what = match pending.action {
        Action::Lock | Action::Read | Action::Write | Action::Enter => {
            let holders = state.object(pending.object).model.holders();
            let own = holders.contains(&thread);
            let holders: Vec<String> = holders.iter().map(|&holder| names.of(holder)).collect();
            match own {
                true => format!("{it}, which it holds itself"),
                false => format!("{it}, which {} holds", holders.join(" and ")),
            }
        }
        Action::Wake { .. } => format!("a notification at {it}"),
        Action::Receive { .. } => format!("a message on {it}"),
        Action::Send | Action::Handed => format!("room on {it}"),
        Action::Join => format!("{it} to end"),
        Action::Park { .. } => "somebody to unpark it".to_owned(),
        Action::Depart => format!("the others at {it}"),
        _ if state.goes_round(thread, &pending, 1) => {
            format!("{it} to change, and goes round until it does")
        }
        _ => return None,
    };
    Some(format!("{what} (at {})", place(pending.at)))
}
