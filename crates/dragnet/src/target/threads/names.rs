//! The names of threads: the same in all executions.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::sync::{Mutex, PoisonError};

use super::operation::ThreadId;
use crate::trace::scatter;

/// The threads of all executions: each by whose child it is, and the how manyeth.
pub(crate) struct Names(Mutex<Known>);

struct Known {
    ids: HashMap<(ThreadId, u32), ThreadId>,
    threads: Vec<Named>,
}

struct Named {
    /// The numbers of children on the way from the first thread.
    path: Vec<u32>,
    name: Option<String>,
}

impl Default for Names {
    fn default() -> Self {
        Self(Mutex::new(Known {
            ids: HashMap::new(),
            threads: vec![Named {
                path: Vec::new(),
                name: Some("main".to_owned()),
            }],
        }))
    }
}

impl Names {
    pub(crate) const MAIN: ThreadId = ThreadId(0);

    pub(super) fn child(&self, parent: ThreadId, which: u32, name: Option<&str>) -> ThreadId {
        let known = &mut *self.known();
        let next = ThreadId(known.threads.len() as u32);
        let id = *known.ids.entry((parent, which)).or_insert(next);
        if id == next {
            let mut path = known.threads[parent.0 as usize].path.clone();
            path.push(which + 1);
            known.threads.push(Named { path, name: None });
        }
        let named = &mut known.threads[id.0 as usize];
        if named.name.as_deref() != name {
            named.name = name.map(str::to_owned);
        }
        id
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a thread is called.
    pub(crate) fn of(&self, thread: ThreadId) -> String {
        self.known().threads[thread.0 as usize].to_string()
    }

    /// What each thread is called, by its number.
    pub(crate) fn all(&self) -> Vec<String> {
        let known = self.known();
        known.threads.iter().map(ToString::to_string).collect()
    }

    /// A hash by which every process knows a thread.
    pub(super) fn hash(&self, thread: ThreadId) -> u64 {
        let path = &self.known().threads[thread.0 as usize].path;
        path.iter()
            .fold(1, |hash, &which| scatter(hash ^ scatter(u64::from(which))))
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
