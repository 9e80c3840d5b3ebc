//! Processes: components with threads of their own, which share nothing but the network.

use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr};
use std::thread;

#[cfg(feature = "threads")]
use crate::target::threads::host;

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
/// # #[cfg(feature = "threads")] {
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
/// # }
/// ```
///
/// Under a check two processes of one name are refused.
#[track_caller]
pub fn spawn<F>(name: impl Into<String>, main: F) -> Process
where
    F: Fn() + Send + Sync + 'static,
{
    let name = name.into();
    #[cfg(feature = "threads")]
    let main = match host::start(&name, main) {
        Ok(process) => {
            let kind = Kind::Ours(process);
            return Process { name, kind };
        }
        Err(main) => main,
    };
    let thread = thread::Builder::new().name(name.clone()).spawn(main);
    let kind = Kind::Real(thread.expect("the thread can be started"));
    Process { name, kind }
}

/// A process that can be waited for.
#[derive(Debug)]
pub struct Process {
    name: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Real(thread::JoinHandle<()>),
    #[cfg(feature = "threads")]
    Ours(host::Started),
}

impl Process {
    /// Waits for the process to end, or to crash.
    #[track_caller]
    pub fn join(self) -> Result<(), Crashed> {
        let ended = match self.kind {
            Kind::Real(thread) => thread.join().is_ok(),
            #[cfg(feature = "threads")]
            Kind::Ours(process) => process.has_ended(),
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
    #[cfg(feature = "threads")]
    if let Some(ip) = host::ip_of(name) {
        return ip;
    }
    let _ = name;
    Ipv4Addr::LOCALHOST.into()
}

/// The name of the process that calls this: `main` is what the check begins with. Outside of a check there is one only.
pub fn name() -> String {
    #[cfg(feature = "threads")]
    if let Some(name) = host::name() {
        return name;
    }
    FIRST.to_owned()
}

/// What the process is called that a check begins with.
pub(crate) const FIRST: &str = "main";
