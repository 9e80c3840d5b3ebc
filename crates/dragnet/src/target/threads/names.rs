//! The names of threads and processes: the same in all executions.

use std::fmt::{self, Display};
use std::sync::{Mutex, PoisonError};

use super::operation::{ProcessId, ThreadId};
use crate::process::FIRST;
use crate::system::Actor;
use crate::trace::scatter;

/// The threads of all executions: each by whose child it is, and the how manyeth.
pub(crate) struct Names(Mutex<Known>);

struct Known {
    threads: Vec<Named>,
    processes: Vec<String>,
}

struct Named {
    /// The numbers of children on the way from the first thread.
    path: Vec<u32>,
    name: Option<String>,
    /// By which every process knows it.
    hash: u64,
    children: Vec<ThreadId>,
}

impl Named {
    fn new(path: Vec<u32>, name: Option<String>) -> Self {
        let steps = path.iter();
        let hash = steps.fold(1, |hash, &which| scatter(hash ^ scatter(u64::from(which))));
        Self {
            path,
            name,
            hash,
            children: Vec::new(),
        }
    }
}

impl Default for Names {
    fn default() -> Self {
        Self(Mutex::new(Known {
            threads: vec![Named::new(Vec::new(), Some("main".to_owned()))],
            processes: vec![FIRST.to_owned()],
        }))
    }
}

impl Names {
    pub(crate) const MAIN: ThreadId = ThreadId(0);

    /// A child of a thread, with the hash by which every process knows it.
    pub(super) fn child(
        &self,
        parent: ThreadId,
        which: u32,
        name: Option<&str>,
    ) -> (ThreadId, u64) {
        let threads = &mut self.known().threads;
        let siblings = &threads[parent.0 as usize].children;
        // Children are numbered in the order in which they are spawned, so that this is one more than are known at most.
        let id = siblings.get(which as usize).copied().unwrap_or_else(|| {
            let id = ThreadId(threads.len() as u32);
            let mut path = threads[parent.0 as usize].path.clone();
            path.push(which + 1);
            threads.push(Named::new(path, None));
            threads[parent.0 as usize].children.push(id);
            id
        });
        let named = &mut threads[id.0 as usize];
        if named.name.as_deref() != name {
            named.name = name.map(str::to_owned);
        }
        (id, named.hash)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a thread is called.
    pub(crate) fn of(&self, thread: ThreadId) -> String {
        self.known().threads[thread.0 as usize].to_string()
    }

    /// The thread that an actor is.
    pub(super) fn thread(&self, actor: Actor) -> Option<ThreadId> {
        let Actor::Component(_, hash) = actor else {
            return None;
        };
        let known = self.known();
        let number = known.threads.iter().position(|named| named.hash == hash)?;
        Some(ThreadId(number as u32))
    }

    /// Takes note of what a process is called.
    pub(super) fn process(&self, ProcessId(process): ProcessId, name: &str) {
        let processes = &mut self.known().processes;
        let number = process as usize;
        if processes.get(number).is_none_or(|known| known != name) {
            processes.resize(processes.len().max(number + 1), String::new());
            processes[number] = name.to_owned();
        }
    }

    /// What each process is called, by its number.
    pub(super) fn processes(&self) -> Vec<String> {
        self.known().processes.clone()
    }

    /// A hash by which every process knows a thread.
    pub(super) fn hash(&self, thread: ThreadId) -> u64 {
        self.known().threads[thread.0 as usize].hash
    }
}

impl Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None => {
                let path: Vec<String> = self.path.iter().map(ToString::to_string).collect();
                write!(f, "thread {}", path.join("."))
            }
        }
    }
}
