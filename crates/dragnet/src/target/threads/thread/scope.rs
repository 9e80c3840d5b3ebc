//! Threads that borrow from the one that starts them.

use std::fmt::{self, Debug};
use std::io;
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex};

use super::{Builder, Child, Result, Thread};
use crate::target::threads::world;

/// A scope in which threads are started that end with it, like [`std::thread::Scope`].
pub struct Scope<'scope, 'env: 'scope> {
    real: Option<&'scope std::thread::Scope<'scope, 'env>>,
    children: Mutex<Vec<Arc<dyn Joinable + Send + Sync + 'scope>>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

trait Joinable {
    /// Waits for the thread to end; true if it has panicked and nobody has been told.
    fn wait(&self) -> bool;
}

impl<T> Joinable for Child<T> {
    #[track_caller]
    fn wait(&self) -> bool {
        let at = panic::Location::caller();
        self.thread.operate(super::Action::Join, at);
        let lived = self.packet.lock().expect("nobody panics here");
        matches!(*lived, Some(Err(_)))
    }
}

/// Runs `body` with a scope, and waits for every thread that it starts there, like [`std::thread::scope`].
#[track_caller]
pub fn scope<'env, F, T>(body: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    if world::current().is_none() {
        return std::thread::scope(|real| {
            let scope = Scope {
                // SAFETY: the reference is used only while `body` runs, inside the real scope.
                real: Some(unsafe { &*std::ptr::from_ref(real) }),
                children: Mutex::new(Vec::new()),
                scope: PhantomData,
                env: PhantomData,
            };
            // SAFETY: what `body` can do with the longer lifetime is to start threads, which the real scope waits for.
            body(unsafe { &*std::ptr::from_ref(&scope) })
        });
    }
    let scope = Scope {
        real: None,
        children: Mutex::new(Vec::new()),
        scope: PhantomData,
        env: PhantomData,
    };
    // SAFETY: the scope outlives its threads, which are waited for below.
    let lived = panic::catch_unwind(AssertUnwindSafe(|| {
        body(unsafe { &*std::ptr::from_ref(&scope) })
    }));
    let mut has_panicked = false;
    loop {
        let child = scope.children.lock().expect("nobody panics here").pop();
        let Some(child) = child else { break };
        has_panicked |= child.wait();
    }
    match lived {
        Err(payload) => panic::resume_unwind(payload),
        Ok(_) if has_panicked => panic!("a scoped thread panicked"),
        Ok(result) => result,
    }
}

impl Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

impl<T> Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle").finish_non_exhaustive()
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a thread that may borrow what lives longer than the scope.
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, body: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        match self.real {
            Some(real) => ScopedJoinHandle(Kind::real(real.spawn(body))),
            None => self.start(Builder::new(), body),
        }
    }

    fn start<F, T>(&'scope self, builder: Builder, body: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let world = world::current().expect("the scope was made in an execution");
        let child = Arc::new(Child::start(world, builder, body));
        let known: Arc<dyn Joinable + Send + Sync + 'scope> = child.clone();
        self.children
            .lock()
            .expect("nobody panics here")
            .push(known);
        ScopedJoinHandle(Kind::Ours(child))
    }
}

impl Builder {
    /// Starts the thread in a scope, from which it may borrow.
    #[track_caller]
    pub fn spawn_scoped<'scope, F, T>(
        self,
        scope: &'scope Scope<'scope, '_>,
        body: F,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        match scope.real {
            Some(real) => {
                let started = self.real().spawn_scoped(real, body);
                started.map(|real| ScopedJoinHandle(Kind::real(real)))
            }
            None => Ok(scope.start(self, body)),
        }
    }
}

/// A thread of a scope that can be waited for, like [`std::thread::ScopedJoinHandle`].
pub struct ScopedJoinHandle<'scope, T>(Kind<'scope, T>);

enum Kind<'scope, T> {
    Real(Thread, std::thread::ScopedJoinHandle<'scope, T>),
    Ours(Arc<Child<T>>),
}

impl<'scope, T> Kind<'scope, T> {
    fn real(real: std::thread::ScopedJoinHandle<'scope, T>) -> Self {
        Self::Real(Thread::of(real.thread()), real)
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits for the thread to end.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        match self.0 {
            Kind::Real(_, real) => real.join(),
            Kind::Ours(child) => child.join(),
        }
    }

    /// Whether the thread has ended.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Kind::Real(_, real) => real.is_finished(),
            Kind::Ours(child) => child.is_finished(),
        }
    }

    /// The thread itself.
    pub fn thread(&self) -> &Thread {
        match &self.0 {
            Kind::Real(thread, _) => thread,
            Kind::Ours(child) => &child.thread,
        }
    }
}
