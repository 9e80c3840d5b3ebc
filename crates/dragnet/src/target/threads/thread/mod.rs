//! Threads, with the names and signatures of `std::thread`.

mod local;
mod scope;

use std::any::Any;
use std::fmt::{self, Debug};
use std::io;
use std::num::NonZeroUsize;
use std::panic::{self, AssertUnwindSafe, Location};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::operation::{Action, ThreadId as OurId};
use super::world::{self, World};

pub use local::{AccessError, LocalKey};
pub use scope::{Scope, ScopedJoinHandle, scope};
pub use std::thread::Result;

/// Starts a thread, like [`std::thread::spawn`].
#[track_caller]
pub fn spawn<F, T>(body: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new()
        .spawn(body)
        .expect("the thread can be started")
}

/// How a thread is started, like [`std::thread::Builder`].
#[derive(Debug, Default)]
pub struct Builder {
    name: Option<String>,
    stack_size: Option<usize>,
}

impl Builder {
    /// A thread without a name.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the thread is called, in counterexamples too.
    pub fn name(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    /// How large its stack is at least. Under a check a thread has as much as it asks for here or as the check gives every
    /// thread (`Threads::stack_size`), whichever is more.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// Starts the thread.
    pub fn spawn<F, T>(self, body: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let Some(world) = world::current() else {
            return self
                .real()
                .spawn(body)
                .map(|real| JoinHandle(Kind::Real(Thread::of(real.thread()), real)));
        };
        Ok(JoinHandle(Kind::Ours(Child::start(world, self, body))))
    }

    fn real(self) -> std::thread::Builder {
        let mut real = std::thread::Builder::new();
        if let Some(name) = self.name {
            real = real.name(name);
        }
        if let Some(bytes) = self.stack_size {
            real = real.stack_size(bytes);
        }
        real
    }
}

/// A thread that can be waited for, like [`std::thread::JoinHandle`].
pub struct JoinHandle<T>(Kind<T>);

impl<T> Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}

enum Kind<T> {
    Real(Thread, std::thread::JoinHandle<T>),
    Ours(Child<T>),
}

/// A thread of an execution, and what it has come to.
struct Child<T> {
    thread: Thread,
    packet: Arc<Mutex<Option<Result<T>>>>,
}

impl<T> Child<T> {
    /// The caller makes sure that what `body` borrows lives as long as the thread.
    fn start<'a, F>(world: &World, builder: Builder, body: F) -> Self
    where
        F: FnOnce() -> T + 'a,
        T: 'a,
    {
        let packet = Arc::new(Mutex::new(None));
        let result = Arc::clone(&packet);
        let fine = world.setting.panics_are_fine;
        let body = move || {
            let lived = match panic::catch_unwind(AssertUnwindSafe(body)) {
                Err(payload) if !fine || world::is_over(&*payload) => panic::resume_unwind(payload),
                lived => lived,
            };
            *result.lock().expect("nobody panics here") = Some(lived);
        };
        let body: Box<dyn FnOnce() + 'a> = Box::new(body);
        // SAFETY: executions take threads apart before those that they borrow from, youngest first, and a scope does not
        // end before its threads have.
        let body: Box<dyn FnOnce() + 'static> = unsafe { std::mem::transmute(body) };
        let Builder { name, stack_size } = builder;
        let id = world.spawn(name.clone(), stack_size, body);
        Self {
            thread: Thread::ours(world, id, name),
            packet,
        }
    }

    #[track_caller]
    fn join(&self) -> Result<T> {
        self.thread.operate(Action::Join, Location::caller());
        let mut packet = self.packet.lock().expect("nobody panics here");
        packet.take().unwrap_or_else(|| {
            let why: Box<dyn Any + Send> = Box::new("the execution is over");
            Err(why)
        })
    }

    #[track_caller]
    fn is_finished(&self) -> bool {
        let answer = self.thread.operate(Action::IsFinished, Location::caller());
        answer != Some(0)
    }
}

impl<T> JoinHandle<T> {
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

/// A thread, like [`std::thread::Thread`].
#[derive(Clone, Debug)]
pub struct Thread(Which);

#[derive(Clone, Debug)]
enum Which {
    Real(std::thread::Thread),
    Ours {
        id: OurId,
        /// The execution that it is one of.
        execution: u64,
        name: Option<String>,
    },
}

impl Thread {
    fn ours(world: &World, id: OurId, name: Option<String>) -> Self {
        let execution = world.serial();
        Self(Which::Ours {
            id,
            execution,
            name,
        })
    }

    /// The running thread does something to this one, if that is one of the same execution. One that is older ends the
    /// execution.
    fn operate(&self, action: Action, at: &'static Location<'static>) -> Option<u32> {
        let Which::Ours { id, execution, .. } = self.0 else {
            return None;
        };
        let world = world::current()?;
        if execution != world.serial() {
            if world.is_over() {
                return None;
            }
            world.refuse("a thread of another execution is used; start it inside".to_owned());
        }
        world.operate_on(world.object_of(id), action, at)
    }

    fn of(real: &std::thread::Thread) -> Self {
        Self(Which::Real(real.clone()))
    }

    /// Lets the thread go on that has parked, or the next time that it parks.
    #[track_caller]
    pub fn unpark(&self) {
        match &self.0 {
            Which::Real(real) => real.unpark(),
            Which::Ours { .. } => {
                self.operate(Action::Unpark, Location::caller());
            }
        }
    }

    /// What tells it from all others.
    pub fn id(&self) -> ThreadId {
        ThreadId(match &self.0 {
            Which::Real(real) => Id::Real(real.id()),
            Which::Ours { id, .. } => Id::Ours(*id),
        })
    }

    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Which::Real(real) => real.name(),
            Which::Ours { name, .. } => name.as_deref(),
        }
    }
}

/// What tells a thread from all others, like [`std::thread::ThreadId`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadId(Id);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Id {
    Real(std::thread::ThreadId),
    Ours(OurId),
}

impl Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Id::Real(real) => real.fmt(f),
            Id::Ours(id) => write!(f, "ThreadId({})", id.0 + 1),
        }
    }
}

/// How many threads can run at once. Under a check that is 2, on any machine.
pub fn available_parallelism() -> io::Result<NonZeroUsize> {
    match world::current() {
        None => std::thread::available_parallelism(),
        Some(_) => Ok(NonZeroUsize::MIN.saturating_add(1)),
    }
}

/// The thread that calls this.
pub fn current() -> Thread {
    match world::current() {
        None => Thread(Which::Real(std::thread::current())),
        Some(world) => {
            let id = world.running();
            Thread::ours(world, id, world.name_of(id))
        }
    }
}

/// Waits until somebody unparks this thread.
#[track_caller]
pub fn park() {
    park_at(None, Location::caller());
}

/// Waits until somebody unparks this thread, or the time is over.
#[track_caller]
pub fn park_timeout(time: Duration) {
    park_at(Some(time), Location::caller());
}

/// Waits until somebody unparks this thread, or the time is over if there is one, as if that stood somewhere else.
pub(crate) fn park_at(time: Option<Duration>, at: &'static Location<'static>) {
    let Some(world) = world::current() else {
        match time {
            None => std::thread::park(),
            Some(time) => std::thread::park_timeout(time),
        }
        return;
    };
    let timed = time.is_some();
    let answer = world.operate_on_self(Action::Park { timed }, at);
    if let (Some(0), Some(time)) = (answer, time) {
        world.pass(time);
    }
}

/// Lets other threads go first.
#[track_caller]
pub fn yield_now() {
    match world::current() {
        None => std::thread::yield_now(),
        Some(world) => {
            world.operate_on_self(Action::Yield, Location::caller());
        }
    }
}

/// Waits. Under a check no time passes but for this thread and those that hear from it, and others do any number of
/// steps meanwhile.
#[track_caller]
pub fn sleep(time: Duration) {
    match world::current() {
        None => std::thread::sleep(time),
        Some(world) => {
            world.operate_on_self(Action::Yield, Location::caller());
            if world.is_told() {
                world.tell(String::new(), format!("{time:?}"));
            }
            world.pass(time);
        }
    }
}

/// Whether this thread unwinds because of a panic.
pub fn panicking() -> bool {
    world::is_panicking()
}
