//! Where counterexamples are written.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use dragnet::catalog::Selection;
use dragnet::trace::Trace;

use crate::json;

/// Where a counterexample goes when nobody says otherwise.
pub(crate) fn default_path(system: &str, bug: Option<&str>) -> PathBuf {
    let clean = |c: char| {
        if c.is_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '-'
        }
    };
    let stem = match bug {
        Some(bug) => format!("{system}-{bug}"),
        None => system.to_owned(),
    };
    let stem: String = stem.chars().map(clean).collect();
    PathBuf::from(format!("{stem}.trace.json"))
}

/// Finds out whether a file could be written to `path`, and leaves no trace of having tried.
pub(crate) fn probe(path: &Path) -> io::Result<()> {
    match path.file_name() {
        None => Err(io::Error::from(ErrorKind::IsADirectory)),
        // Writing replaces what is there, which must not be a directory, a device or a pipe.
        Some(_) if path.exists() && !path.is_file() => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it is there and is not a file",
        )),
        Some(name) => {
            let name = name.to_string_lossy();
            let probe = path.with_file_name(format!(".{name}.{}.probe", std::process::id()));
            File::create_new(&probe).and_then(|_| fs::remove_file(&probe))
        }
    }
}

/// Writes into a trace what replaying it has to set up.
pub(crate) fn complete(trace: &mut Trace, selection: &Selection<'_>) {
    trace.parameters = json::parameters(&selection.parameters());
    trace.bug = selection.bug().map(|bug| bug.name.to_owned());
    trace.faults = selection.faults().to_string();
}

/// The command that replays the trace in `path`, ready to be pasted into a shell.
pub(crate) fn replay_command(program: &str, path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "-_./+:@%,=".contains(c);
    if path.chars().all(plain) && !path.starts_with('-') {
        format!("{program} replay {path}")
    } else {
        format!("{program} replay -- '{}'", path.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_file_is_named_after_the_system_and_the_bug() {
        assert_eq!(default_path("paxos", None), Path::new("paxos.trace.json"));
        assert_eq!(
            default_path("my/own system", Some("off by one")),
            Path::new("my-own-system-off-by-one.trace.json")
        );
    }

    #[test]
    fn a_replay_command_survives_the_shell() {
        let command = |path: &str| replay_command("dragnet", Path::new(path));
        assert_eq!(command("a/b.json"), "dragnet replay a/b.json");
        assert_eq!(
            command("my bug's.json"),
            r"dragnet replay -- 'my bug'\''s.json'"
        );
        assert_eq!(command("-x"), "dragnet replay -- '-x'");
    }

    #[test]
    fn what_is_not_a_file_is_never_replaced() {
        for path in ["", "/", "..", "/dev/null", "."] {
            assert!(probe(Path::new(path)).is_err(), "{path}");
        }
    }
}
