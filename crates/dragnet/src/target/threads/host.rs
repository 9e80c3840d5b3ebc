//! What each process has for itself: threads, an address, sockets; and what may happen to it.

use std::net::IpAddr;
use std::panic::{self, AssertUnwindSafe, Location};
use std::sync::Arc;

use super::model::Model;
use super::net::{self, Addresses, Label, Socket};
use super::operation::{Action, Harm, ObjectId, ProcessId, ThreadId, Way};
use super::thread_state::Body;
use super::world::{self, World};
use crate::process::FIRST;
use crate::trace::scatter;

/// A process of an execution.
pub(super) struct Host {
    pub(super) name: String,
    pub(super) ip: IpAddr,
    /// What breaks when it crashes, by who has made it: which thread, and the how manyeth of its sockets.
    sockets: Vec<((u64, u32), Arc<dyn Socket>)>,
}

impl Host {
    fn new(name: String) -> Self {
        Self {
            ip: net::ip_of(&name),
            name,
            sockets: Vec::new(),
        }
    }

    pub(super) fn first() -> Self {
        Self::new(FIRST.to_owned())
    }
}

/// A process that has been started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started(ObjectId);

impl Started {
    /// Waits until it has come to an end, and says whether that was its own.
    #[track_caller]
    pub(crate) fn has_ended(self) -> bool {
        world::current().is_some_and(|world| {
            world.operate_on(self.0, Action::Join, Location::caller()) == Some(1)
        })
    }
}

/// Starts a process, if an execution runs.
#[track_caller]
pub(crate) fn start<F>(name: &str, main: F) -> Result<Started, F>
where
    F: Fn() + Send + Sync + 'static,
{
    let at = Location::caller();
    let Some(world) = world::current() else {
        return Err(main);
    };
    let (id, process) = world.add_process(name.to_owned(), at);
    let main: Main = Arc::new(main);
    let first = Arc::clone(&main);
    world.spawn_in(
        id,
        name.to_owned(),
        Box::new(move || live(process, &*first)),
    );
    if world.can_suffer(Harm::Process) {
        let name = name.to_owned();
        let fate = format!("fate of {name}");
        world.spawn_outside(
            fate,
            Box::new(move || decide(id, process, &name, &main, at)),
        );
    }
    Ok(Started(process))
}

/// What a process begins with, as often as it does.
type Main = Arc<dyn Fn() + Send + Sync>;

/// What the first thread of a process does.
fn live(process: ObjectId, main: &(dyn Fn() + Send + Sync)) {
    let lived = panic::catch_unwind(AssertUnwindSafe(main));
    if let Some(world) = world::current().filter(|world| !world.is_over()) {
        let end = match lived {
            Ok(()) => Action::Exit,
            Err(_) => Action::Abandon,
        };
        world.operate_on(process, end, Location::caller());
    }
    if let Err(payload) = lived {
        panic::resume_unwind(payload);
    }
}

/// What may happen to a process.
fn decide(
    id: ProcessId,
    process: ObjectId,
    name: &str,
    main: &Main,
    at: &'static Location<'static>,
) {
    let Some(world) = world::current() else {
        return;
    };
    while world.suffer(Harm::Process, at) == Some(Harm::DONE)
        && world.operate_on(process, Action::Crash, at) == Some(1)
    {
        for socket in world.sockets_of(id) {
            socket.break_off();
        }
        if world.suffer(Harm::Crashed, at) != Some(Harm::DONE) {
            return;
        }
        let again = Arc::clone(main);
        world.spawn_in(
            id,
            name.to_owned(),
            Box::new(move || live(process, &*again)),
        );
    }
}

/// The address of a process, if an execution runs.
pub(crate) fn ip_of(name: &str) -> Option<IpAddr> {
    world::current().map(|_| net::ip_of(name))
}

/// The name of the running thread's process, if an execution runs.
pub(crate) fn name() -> Option<String> {
    world::current().map(World::name_of_process)
}

impl World {
    /// The process of the running thread.
    pub(super) fn process(&self) -> ProcessId {
        self.state().borrow().thread(self.running()).process
    }

    /// What it is called.
    pub(super) fn name_of_process(&self) -> String {
        let state = self.state().borrow();
        let host = state.hosts.get(self.process().0 as usize);
        host.map(|host| host.name.clone()).unwrap_or_default()
    }

    /// Its address.
    pub(super) fn ip(&self) -> IpAddr {
        let state = self.state().borrow();
        let host = state.hosts.get(self.process().0 as usize);
        host.expect("what is outside has no sockets").ip
    }

    /// A process without threads.
    pub(super) fn add_process(
        &self,
        name: String,
        at: &'static Location<'static>,
    ) -> (ProcessId, ObjectId) {
        let mut state = self.state().borrow_mut();
        if state.hosts.iter().any(|host| host.name == name) {
            drop(state);
            self.refuse(format!("there are two processes called {name}"));
        }
        let id = ProcessId(state.hosts.len() as u32);
        self.names().process(id, &name);
        state.hosts.push(Host::new(name));
        let object = state.add_object(Model::process(id), Some(at));
        (id, object)
    }

    /// A thread with which a process begins.
    pub(super) fn spawn_in(&self, process: ProcessId, name: String, body: Body) -> ThreadId {
        // It knows nothing of what it did before a crash.
        let mut state = self.state().borrow_mut();
        state.statics.retain(|(owner, _), _| *owner != process);
        drop(state);
        self.spawn_as(process, Some(name), None, body)
    }

    /// A thread that is part of no process, and that no program knows of.
    pub(super) fn spawn_outside(&self, name: String, body: Body) -> ThreadId {
        self.spawn_as(ProcessId::OUTSIDE, Some(name), None, body)
    }

    /// Whether something of a kind may go wrong at all.
    pub(super) fn can_suffer(&self, harm: Harm) -> bool {
        let mut ways = 1..;
        let mut kinds = std::iter::from_fn(|| harm.kind(ways.next()?));
        kinds.any(|kind| self.setting.faults.budget(kind) > 0)
    }

    /// What happens to something: nothing, or one of the ways in which it may go wrong. `None` when the execution is over.
    pub(super) fn suffer(&self, harm: Harm, at: &'static Location<'static>) -> Option<Way> {
        if !self.can_suffer(harm) {
            return Some(Harm::NONE);
        }
        let faults = {
            let mut state = self.state().borrow_mut();
            let budgets = || Model::faults(&self.setting.faults);
            match state.faults {
                Some(object) => object,
                None => {
                    let object = state.add_object(budgets(), None);
                    state.faults = Some(object);
                    object
                }
            }
        };
        self.operate_on(faults, Action::Suffer(harm), at)
    }

    /// Has something break at some time or never, if that may be.
    pub(super) fn tempt(
        &self,
        harm: Harm,
        name: impl FnOnce() -> String,
        breaks: impl FnOnce() + 'static,
    ) {
        if self.can_suffer(harm) {
            let at = Location::caller();
            self.spawn_outside(
                name(),
                Box::new(move || {
                    let world = world::current();
                    if world.and_then(|world| world.suffer(harm, at)) == Some(Harm::DONE) {
                        breaks();
                    }
                }),
            );
        }
    }

    /// Takes note of a socket of the running thread's process, if that may crash.
    pub(super) fn keep<S: Socket + 'static>(&self, socket: &Arc<S>) {
        if !self.can_suffer(Harm::Process) {
            return;
        }
        let process = self.process().0 as usize;
        let mut state = self.state().borrow_mut();
        let thread = state.thread_mut(self.running());
        thread.sockets += 1;
        let maker = (thread.hash, thread.sockets);
        if let Some(host) = state.hosts.get_mut(process) {
            host.sockets
                .push((maker, Arc::clone(socket) as Arc<dyn Socket>));
        }
    }

    /// Forgets a socket that is closed. A process that crashes while it closes one has it still.
    pub(super) fn give_up<S: Socket + 'static>(&self, socket: &Arc<S>) {
        if self.is_over() || !self.can_suffer(Harm::Process) {
            return;
        }
        let process = self.process().0 as usize;
        let this = Arc::as_ptr(socket).cast::<()>();
        let mut state = self.state().borrow_mut();
        if let Some(host) = state.hosts.get_mut(process) {
            let is_other = |other: &Arc<dyn Socket>| Arc::as_ptr(other).cast::<()>() != this;
            host.sockets.retain(|(_, other)| is_other(other));
        }
    }

    /// What the threads of a process have made and not given up. The order does not depend on who was first.
    pub(super) fn sockets_of(&self, process: ProcessId) -> Vec<Arc<dyn Socket>> {
        let mut state = self.state().borrow_mut();
        let host = &mut state.hosts[process.0 as usize];
        let mut sockets = std::mem::take(&mut host.sockets);
        sockets.sort_unstable_by_key(|&(maker, _)| maker);
        sockets.into_iter().map(|(_, socket)| socket).collect()
    }

    /// Forgets all that was open when the execution ended. Sockets that have not been accepted are dropped with it.
    pub(super) fn forget_sockets(&self) {
        let mut state = self.state().borrow_mut();
        let hosts = state.hosts.iter_mut();
        let sockets: Vec<_> = hosts
            .flat_map(|host| std::mem::take(&mut host.sockets))
            .collect();
        drop(state);
        drop(sockets);
    }

    /// A number for a port, another one each time.
    pub(super) fn draw_port(&self) -> u64 {
        let mut state = self.state().borrow_mut();
        let thread = state.thread_mut(self.running());
        thread.sockets += 1;
        scatter(thread.hash ^ scatter(u64::from(thread.sockets)))
    }

    pub(super) fn with_addresses<R>(&self, ask: impl FnOnce(&mut Addresses) -> R) -> R {
        ask(&mut self.state().borrow_mut().addresses)
    }

    /// An object that no other execution knows.
    pub(super) fn add_object(&self, model: Model, label: Label) -> ObjectId {
        let object = self.state().borrow_mut().add_object(model, None);
        self.label(object, label);
        object
    }

    /// Says what an object is called.
    pub(super) fn label(&self, object: ObjectId, label: Label) {
        self.state().borrow_mut().objects[object.0 as usize].label = Some(label);
    }
}
