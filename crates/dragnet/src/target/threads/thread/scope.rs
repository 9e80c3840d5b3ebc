//! Threads that borrow from the one that starts them.

use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex};

use super::{Child, Result, Thread};
use crate::target::threads::world;

/// A scope in which threads are started that end with it, like [`std::thread::Scope`].
pub struct Scope<'scope, 'env: 'scope> {
    real: Option<&'scope std::thread::Scope<'scope, 'env>>,
    children: Mutex<Vec<Arc<dyn Joinable + 'scope>>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

trait Joinable {
    fn wait(&self);
}

impl<T> Joinable for Child<T> {
    #[track_caller]
    fn wait(&self) {
        if let Some(world) = world::current() {
            let object = world.object_of(self.id);
            let at = panic::Location::caller();
            world.operate_on(object, super::Action::Join, at);
        }
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
    loop {
        let child = scope.children.lock().expect("nobody panics here").pop();
        let Some(child) = child else { break };
        child.wait();
    }
    lived.unwrap_or_else(|payload| panic::resume_unwind(payload))
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a thread that may borrow what lives longer than the scope.
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, body: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        if let Some(real) = self.real {
            return ScopedJoinHandle(Kind::Real(real.spawn(body)));
        }
        let world = world::current().expect("the scope was made in an execution");
        let child = Arc::new(Child::start(world, None, body));
        let known: Arc<dyn Joinable + 'scope> = child.clone();
        self.children
            .lock()
            .expect("nobody panics here")
            .push(known);
        ScopedJoinHandle(Kind::Ours(child))
    }
}

/// A thread of a scope that can be waited for, like [`std::thread::ScopedJoinHandle`].
pub struct ScopedJoinHandle<'scope, T>(Kind<'scope, T>);

enum Kind<'scope, T> {
    Real(std::thread::ScopedJoinHandle<'scope, T>),
    Ours(Arc<Child<T>>),
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits for the thread to end.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        match self.0 {
            Kind::Real(real) => real.join(),
            Kind::Ours(child) => child.join(),
        }
    }

    /// Whether the thread has ended.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Kind::Real(real) => real.is_finished(),
            Kind::Ours(child) => child.is_finished(),
        }
    }

    /// The thread itself.
    pub fn thread(&self) -> &Thread {
        match &self.0 {
            Kind::Real(real) => Thread::of(real.thread()),
            Kind::Ours(child) => &child.thread,
        }
    }
}
