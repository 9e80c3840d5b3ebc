//! The `dragnet` binary: the command line for the bundled systems.

use std::process::ExitCode;

fn main() -> ExitCode {
    dragnet_cli::main(dragnet_zoo::entries())
}
