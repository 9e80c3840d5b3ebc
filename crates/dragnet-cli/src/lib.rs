//! The command line of Dragnet, for the bundled systems and for your own.
//!
//! The `dragnet` binary is [`main`] with the systems of `dragnet-zoo`. A program of yours gets the same commands, options
//! and exit statuses for its own systems with the same call; leave out the bundled ones with `default-features = false`.

mod args;
mod check;
mod error;
mod interrupt;
mod json;
mod list;
mod output;
mod progress;
mod replay;
mod status;
mod trace_file;
mod units;

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use dragnet::catalog::Entry;

use args::Command;
use status::Status;

/// Runs the command line for `entries`: `list` shows them, `check` explores one, `replay` runs a counterexample again.
///
/// The exit status is 0 when what was checked holds, 1 when it is violated, 2 when the command or its input is bad, and
/// 3 when the search was cut short before it found anything wrong.
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use dragnet::catalog::Entry;
/// use dragnet::{Check, Cluster, Context, Node, NodeId};
///
/// /// Tells all others what it has heard of, once.
/// struct Gossip;
///
/// impl Node for Gossip {
///     type State = bool;
///     type Msg = ();
///
///     fn on_start(&self, cx: &mut Context<()>) -> bool {
///         let knows = cx.me() == NodeId(0);
///         if knows {
///             cx.broadcast_to_others(());
///         }
///         knows
///     }
///
///     fn on_message(&self, knows: &mut bool, _from: NodeId, _msg: (), cx: &mut Context<()>) {
///         if !std::mem::replace(knows, true) {
///             cx.broadcast_to_others(());
///         }
///     }
/// }
///
/// fn main() -> ExitCode {
///     dragnet_cli::main([Entry::new("gossip", "news that travel by word of mouth", |setup| {
///         Check::new(Cluster::new(setup.number("nodes"), |_| Gossip))
///             .reachable("everybody knows", |s| s.nodes().all(|&knows| knows))
///     })
///     .parameter("nodes", 3, 1..=6, "how many talk to each other")])
/// }
/// ```
pub fn main(entries: impl IntoIterator<Item = Entry>) -> ExitCode {
    let entries: Vec<Entry> = entries.into_iter().collect();
    let arguments: Vec<OsString> = env::args_os().collect();
    let program = program_name(&arguments);
    let status = match args::parse(&arguments, &program, &entries) {
        Ok(command) => run(&command, &entries, &program),
        Err(status) => status,
    };
    // A step that has tried to end the process is stopped inside `exit`, which cannot be entered again.
    dragnet::end_process_if_stopped_in_exit(status as i32);
    status.into()
}

fn run(command: &Command, entries: &[Entry], program: &str) -> Status {
    let done = match command {
        Command::List(args) => list::run(args, entries),
        Command::Check(args) => check::run(args, entries, program),
        Command::Replay(args) => replay::run(args, entries),
    };
    done.unwrap_or_else(|error| {
        output::report(&error);
        Status::BadInput
    })
}

/// What the user called: the name that messages tell them to call again.
fn program_name(arguments: &[OsString]) -> String {
    arguments
        .first()
        .and_then(|path| Path::new(path).file_name())
        .map_or_else(
            || "dragnet".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        )
}
