//! omnipaxos 0.2.3 behind the command line of Dragnet: the release in which a decided index can go back.

use std::process::ExitCode;

#[path = "../../../crates/dragnet-wild/src/omnipaxos.rs"]
mod omnipaxos;

fn main() -> ExitCode {
    dragnet_cli::main([omnipaxos::entry()])
}
