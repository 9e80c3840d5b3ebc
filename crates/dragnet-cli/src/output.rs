//! What goes to the terminal or into a pipe.

use std::env;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};

use dragnet::verdict::Style;

use crate::error::Error;

/// Prints to standard output. A reader who has closed the pipe has seen enough: that is no error.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    match write(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}

/// Writes to standard output without its lock: an OS thread that was stopped in a step of the program may hold it for ever.
#[cfg(unix)]
fn write(text: &str) -> io::Result<()> {
    use std::os::fd::AsFd;

    let out = io::stdout().as_fd().try_clone_to_owned()?;
    std::fs::File::from(out).write_all(text.as_bytes())
}

#[cfg(not(unix))]
fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Prints an error as one line on standard error.
pub(crate) fn report(error: &dyn Display) {
    let text: String = error
        .to_string()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    // There is nowhere left to say that this failed.
    let _ = writeln!(io::stderr(), "error: {text}");
}

/// Colours when a person looks at standard output and has nothing against them.
pub(crate) fn style() -> Style {
    let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if io::stdout().is_terminal() && !refused {
        Style::coloured()
    } else {
        Style::plain()
    }
}
