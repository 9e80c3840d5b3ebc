//! The `dragnet` binary: the command line for the bundled systems.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg_attr(
        not(feature = "wild"),
        expect(unused_mut, reason = "nothing comes along")
    )]
    let mut entries = dragnet_zoo::entries();
    #[cfg(feature = "wild")]
    entries.extend(dragnet_wild::entries());
    dragnet_cli::main(entries)
}
