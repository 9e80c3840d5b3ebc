//! Processes: components with threads of their own, which share nothing but the network.

use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{self, AssertUnwindSafe, Location};
use std::sync::Arc;

use super::host::FIRST;
use super::net::ip_of;
use super::operation::{Action, Harm, ObjectId, ProcessId};
use super::world;

/// Starts a process, which does `main` and then ends.
///
/// Its threads are `main`'s and those that they start. It has an [address](address_of) of its own in the
/// [network](crate::net), which its name stands for, and statics of its own. With a budget for
/// [`crashes`](crate::crashes) it may stop at any time: its connections break, and all that it knew is lost. Where it comes
/// back, `main` is called once more. Locks, channels and the like that two processes share are refused; what the check
/// begins with may share them with any process, as a means to look into it.
///
/// Outside of a check it is a thread.
///
/// ```
/// use std::io::Read;
///
/// use dragnet::net::{TcpListener, TcpStream};
/// use dragnet::{Check, Threads, crashes, process, restarts};
///
/// let hear = || {
///     let listener = TcpListener::bind("main:7000").unwrap();
///     process::spawn("client", || {
///         let stream = TcpStream::connect("main:7000").unwrap();
///     });
///     let (mut stream, _) = listener.accept().unwrap();
///     let heard = stream.read(&mut [0]);
///     assert_eq!(heard.expect("the client does not crash"), 0);
/// };
/// Check::new(Threads::new(hear)).run().assert_holds();
/// let verdict = Check::new(Threads::new(hear)).faults(crashes(1).and(restarts(0))).run();
/// assert!(verdict.violation().is_some());
/// ```
///
/// # Panics
/// Under a check, when there is a process of this name.
#[track_caller]
pub fn spawn<F>(name: impl Into<String>, main: F) -> Process
where
    F: Fn() + Send + Sync + 'static,
{
    let name = name.into();
    let Some(world) = world::current() else {
        let thread = std::thread::Builder::new().name(name.clone()).spawn(main);
        let thread = thread.expect("the thread can be started");
        return Process {
            name,
            kind: Kind::Real(thread),
        };
    };
    let (id, object) = world.add_process(name.clone(), Location::caller());
    let main: Arc<dyn Fn() + Send + Sync> = Arc::new(main);
    let first = Arc::clone(&main);
    world.spawn_in(id, name.clone(), Box::new(move || live(object, &*first)));
    let (fate, at) = (format!("fate of {name}"), Location::caller());
    if world.can_suffer(Harm::ToProcess) {
        let name = name.clone();
        world.spawn_outside(fate, Box::new(move || keep(id, object, &name, &main, at)));
    }
    Process {
        name,
        kind: Kind::Ours(object),
    }
}

/// What the first thread of a process does.
fn live(process: ObjectId, main: &(dyn Fn() + Send + Sync)) {
    let lived = panic::catch_unwind(AssertUnwindSafe(main));
    if let Some(world) = world::current().filter(|world| !world.is_over()) {
        world.operate_on(process, Action::Exit, Location::caller());
    }
    if let Err(payload) = lived {
        panic::resume_unwind(payload);
    }
}

/// What may happen to a process.
fn keep(
    id: ProcessId,
    process: ObjectId,
    name: &str,
    main: &Arc<dyn Fn() + Send + Sync>,
    at: &'static Location<'static>,
) {
    let Some(world) = world::current() else {
        return;
    };
    while world.suffer(Harm::ToProcess, at) == Some(Harm::DONE)
        && world.operate_on(process, Action::Crash, at) == Some(1)
    {
        for socket in world.sockets_of(id) {
            socket.break_off();
        }
        if world.suffer(Harm::ToCrashed, at) != Some(Harm::DONE) {
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

/// A process that can be waited for.
#[derive(Debug)]
pub struct Process {
    name: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Real(std::thread::JoinHandle<()>),
    Ours(ObjectId),
}

impl Process {
    /// Waits for the process to end, or to crash.
    #[track_caller]
    pub fn join(self) -> Result<(), Crashed> {
        let ended = match self.kind {
            Kind::Real(thread) => thread.join().is_ok(),
            Kind::Ours(object) => world::current().is_some_and(|world| {
                world.operate_on(object, Action::Join, Location::caller()) == Some(1)
            }),
        };
        let name = self.name;
        ended.then_some(()).ok_or(Crashed { name })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address.
    pub fn address(&self) -> IpAddr {
        address_of(&self.name)
    }
}

/// A process has not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crashed {
    name: String,
}

impl Display for Crashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} has crashed", self.name)
    }
}

impl std::error::Error for Crashed {}

/// The address of the process with this name, whether or not it has been started. Outside of a check all processes have
/// that of this machine for itself.
pub fn address_of(name: &str) -> IpAddr {
    match world::current() {
        Some(_) => ip_of(name),
        None => Ipv4Addr::LOCALHOST.into(),
    }
}

/// The name of the process that calls this: `main` is what the check begins with. Outside of a check there is one only.
pub fn name() -> String {
    match world::current() {
        Some(world) => world.name_of_process(),
        None => FIRST.to_owned(),
    }
}
