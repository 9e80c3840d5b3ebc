//! What threads do, in words.

mod network;

use std::collections::HashMap;
use std::mem::discriminant;
use std::panic::Location;

pub(super) use network::address;

use super::execution::ExecutionView;
use super::model::{EventId, GONE, MOVED, Model};
use super::names::Names;
use super::object::Object;
use super::operation::{Action, Counted, ObjectId, ProcessId, ThreadId, Ways};
use super::state::State;
use crate::trace::Step;

/// What everything is called that is part of no process.
pub(super) const OUTSIDE: &str = "outside";

/// Whether a place is one of Dragnet's own or of the standard library, where no user looks.
pub(super) fn is_own(at: &Location<'_>) -> bool {
    let here = Location::caller().file();
    let mut parts = here.rsplitn(3, ['/', '\\']);
    let own = parts.nth(2).unwrap_or(here);
    at.file().starts_with(own) || at.file().starts_with("/rustc/")
}

/// A place in the source.
fn place(at: &Location<'_>) -> String {
    format!("{}:{}:{}", at.file(), at.line(), at.column())
}

/// The same, short: the file's name and the line.
fn short_place(at: &Location<'_>) -> String {
    let mut parts = at.file().rsplit(['/', '\\']);
    let file = parts.next().unwrap_or_default();
    let line = at.line();
    match (file, parts.next()) {
        ("mod.rs" | "lib.rs" | "main.rs", Some(folder)) => format!("{folder}/{file}:{line}"),
        _ => format!("{file}:{line}"),
    }
}

/// "2nd " for the second of several, and nothing for the first.
fn ordinal(number: usize) -> String {
    let ending = match (number % 10, number % 100) {
        (1, other) if other != 11 => "st",
        (2, other) if other != 12 => "nd",
        (3, other) if other != 13 => "rd",
        _ => "th",
    };
    match number {
        1 => String::new(),
        _ => format!("{number}{ending} "),
    }
}

/// Where the two threads are that have done most of the last events: the place that came up most often for each.
pub(crate) fn most_frequent_places(
    execution: ExecutionView<'_>,
) -> [Option<&'static Location<'static>>; 2] {
    let mut places: HashMap<ThreadId, HashMap<_, u32>> = HashMap::new();
    for event in execution.events().iter().rev().take(1_000) {
        let at = event.operation.at;
        if !is_own(at) {
            *places
                .entry(event.thread)
                .or_default()
                .entry(at)
                .or_default() += 1;
        }
    }
    let haunts = places.into_values().filter_map(|places| {
        let all: u32 = places.values().sum();
        let most = places.into_iter().max_by_key(|&(at, times)| (times, at));
        most.map(|(at, _)| (all, at))
    });
    let mut haunts: Vec<_> = haunts.collect();
    haunts.sort_unstable_by(|one, other| other.cmp(one));
    let mut haunts = haunts.into_iter().map(|(_, at)| at);
    [haunts.next(), haunts.next()]
}

/// The number of objects before one that are of the same kind and were made on the same line.
fn siblings_before(state: &State, id: ObjectId) -> usize {
    let this = state.object(id);
    let line = |object: &Object| object.made.map(|made| (made.file(), made.line()));
    let is_sibling = |other: &&Object| {
        line(other) == line(this) && discriminant(&other.model) == discriminant(&this.model)
    };
    let before = state.objects[..id.0 as usize].iter();
    before.filter(is_sibling).count()
}

/// An object as a person knows it.
fn object(state: &State, id: ObjectId, names: &Names) -> String {
    let object = state.object(id);
    if let Some(thread) = object.thread {
        return names.of(thread);
    }
    if let Some(label) = object.label {
        return network::object(state, label);
    }
    if let Model::Process { id, .. } = object.model {
        return state.hosts[id.0 as usize].name.clone();
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
        Model::Pipe(_) => "connection",
        Model::Process { .. } => "process",
        Model::Faults(_) => "faults",
        Model::Counted { .. } => "Arc",
    };
    let Some(made) = object.made else {
        return format!("a {what}");
    };
    let which = ordinal(siblings_before(state, id) + 1);
    format!("the {which}{what} of {}", short_place(made))
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
    let label = state.object(operation.object).label;
    let action = match operation.action {
        done if label.is_some() => {
            let label = label.expect("it has one");
            let done = (done, event.effect.changes.is_some());
            network::action(state, label, done, answer, &names.of(event.thread))
        }
        Action::Load | Action::Store | Action::Modify => {
            let values = state.thread(event.thread).values.as_ref();
            access(operation.action, values, &it)
        }
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
        Action::Unlock(_) | Action::WriteUnlock(_) | Action::ReadUnlock => format!("unlocks {it}"),
        Action::Downgrade(_) => format!("goes on with {it} as a reader"),
        Action::Wait { .. } => format!("begins to wait at {it}"),
        Action::Wake { .. } if come => format!("is woken at {it}"),
        Action::Wake { .. } if event.way == Ways::TIMEOUT => {
            format!("has waited at {it} for as long as it wanted")
        }
        Action::Wake { .. } => format!("wakes up for no reason at {it}"),
        Action::NotifyOne => {
            let last = state.events.len() as EventId - 1;
            match woken(event.way, &state.model_before(operation.object, last)) {
                Some(thread) => format!("notifies {} at {it}", names.of(thread)),
                None => format!("notifies one at {it}, where nobody waits"),
            }
        }
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
        Action::Look => match state.object(operation.object).model {
            Model::Mutex { .. } | Model::RwLock { .. } => {
                format!("looks whether {it} is poisoned")
            }
            _ => format!("looks whether {it} is done"),
        },
        Action::AwaitDone => format!("has waited for {it} to be done"),
        Action::Arrive => format!("comes to {it}"),
        Action::Depart => format!("passes {it}"),
        Action::Put(_) => format!("puts something into {it}"),
        Action::Take { .. } | Action::TryTake { .. } => format!("takes something from {it}"),
        Action::Shut => format!("has nothing more for {it}"),
        Action::Reset => format!("breaks {it}"),
        Action::Exit => "ends its process".to_owned(),
        Action::Crash if succeeds => format!("crashes {it}"),
        Action::Crash => format!("comes too late to crash {it}"),
        Action::Suffer(harm) => network::suffered(harm, event.way, &names.of(event.thread)),
        Action::Own => format!("makes the value of {it}"),
        Action::Retain(Counted::Strong) => format!("clones {it}"),
        Action::Retain(Counted::Weak) => format!("makes a weak reference to {it}"),
        Action::Release(Counted::Strong) if succeeds => format!("drops {it}, the last one"),
        Action::Release(Counted::Strong) => format!("drops {it}, which others still have"),
        Action::Release(Counted::Weak) => format!("drops a weak reference to {it}"),
        Action::ReadCount => format!("reads a count of {it}"),
        Action::Upgrade if succeeds => format!("upgrades a weak reference to {it}"),
        Action::Upgrade => format!("finds that nobody has {it} any more"),
        Action::Unwrap | Action::IntoInner if succeeds => format!("takes the value out of {it}"),
        Action::MakeUnique if answer == MOVED => {
            format!("moves the value of {it} away from weak references")
        }
        Action::Unwrap | Action::Unique | Action::MakeUnique if !succeeds => {
            format!("finds that others have {it}")
        }
        Action::Unwrap | Action::IntoInner => format!("drops {it}, which others still have"),
        Action::Unique | Action::MakeUnique => format!("finds that nobody else has {it}"),
        Action::Choose(count) => format!("chooses {} of {count}", event.way),
        Action::Yield => match &state.thread(event.thread).values {
            Some((_, time)) => format!("sleeps for {time}"),
            None => "lets others go first".to_owned(),
        },
    };
    let notes = match operation.action {
        Action::End => Vec::new(),
        // Where a guard is dropped cannot be known.
        Action::Unlock(_) | Action::WriteUnlock(_) | Action::ReadUnlock => {
            let locked = locked_at(state, operation.object, event.thread);
            let locked = locked.map(|at| format!("which it locked at {}", place(at)));
            locked.into_iter().collect()
        }
        _ if is_own(operation.at) => Vec::new(),
        _ => vec![format!("at {}", place(operation.at))],
    };
    let component = match state.thread(event.thread).process {
        ProcessId::OUTSIDE => OUTSIDE.to_owned(),
        _ => names.of(event.thread),
    };
    Step {
        component,
        action,
        notes,
        ..Step::default()
    }
}

/// What is done with an atomic value.
fn access(action: Action, values: Option<&(String, String)>, it: &str) -> String {
    match (action, values) {
        (Action::Load, Some((before, _))) => format!("reads {before} from {it}"),
        (Action::Load, None) => format!("reads {it}"),
        (Action::Store, Some((_, after))) => format!("writes {after} to {it}"),
        (Action::Store, None) => format!("writes {it}"),
        (_, Some((before, after))) if before == after => format!("finds {before} in {it}"),
        (_, Some((before, after))) => format!("changes {it} from {before} to {after}"),
        (_, None) => format!("reads and writes {it}"),
    }
}

/// Where a thread last locked something.
fn locked_at(
    state: &State,
    object: ObjectId,
    thread: ThreadId,
) -> Option<&'static Location<'static>> {
    let events = state.object(object).events.iter().rev();
    let mut own = events
        .map(|&event| &state.events[event as usize])
        .filter(|event| event.thread == thread);
    let locks = |action| {
        matches!(
            action,
            Action::Lock
                | Action::TryLock
                | Action::Write
                | Action::TryWrite
                | Action::Read
                | Action::TryRead
                | Action::Enter
        )
    };
    own.find(|event| locks(event.operation.action))
        .map(|event| event.operation.at)
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
        _ if state.can_go_on(thread) && state.goes_round(thread, &pending) => {
            match state.thread(thread).round.acts {
                true => {
                    "others to change what it looks at, and goes round until they do".to_owned()
                }
                false => format!("{it} to change, and goes round until it does"),
            }
        }
        Action::Lock | Action::Read | Action::Write | Action::Enter => {
            let holders = state.object(pending.object).model.holders();
            let holders = holders.map(|holder| {
                let who = match holder == thread {
                    true => "it itself".to_owned(),
                    false => names.of(holder),
                };
                let since = locked_at(state, pending.object, holder);
                let since = since.map(|at| format!(" since {}", short_place(at)));
                format!("{who} holds{}", since.unwrap_or_default())
            });
            let holders: Vec<String> = holders.collect();
            format!("{it}, which {}", holders.join(" and "))
        }
        Action::Take { .. } => {
            let label = state.object(pending.object).label;
            label.map_or(it, |label| network::awaited(state, label))
        }
        Action::Wake { .. } => format!("a notification at {it}"),
        Action::Receive { .. } => format!("a message on {it}"),
        Action::Send | Action::Handed => format!("room on {it}"),
        Action::Join => format!("{it} to end"),
        Action::Park { .. } => "somebody to unpark it".to_owned(),
        Action::Depart => format!("the others at {it}"),
        Action::AwaitDone => format!("{it} to be done"),
        _ => return None,
    };
    let place = place(pending.at);
    let leaked = match thread != Names::MAIN && state.thread(Names::MAIN).ended {
        true => ", left behind by main, which has ended",
        false => "",
    };
    Some(format!("{what}; it is at {place}{leaked}"))
}
