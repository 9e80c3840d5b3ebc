//! Running the binary.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use assert_cmd::assert::OutputAssertExt;
use serde_json::Value;
use tempfile::TempDir;

const DRAGNET: &str = env!("CARGO_BIN_EXE_dragnet");

pub(crate) const HOLDS: i32 = 0;
pub(crate) const VIOLATED: i32 = 1;
pub(crate) const BAD_INPUT: i32 = 2;
pub(crate) const INCONCLUSIVE: i32 = 3;

/// A directory to run in, which goes away with its traces.
pub(crate) struct Place(TempDir);

/// What a run came to.
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory for traces"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn dragnet(&self, line: &str) -> Command {
        let mut command = Command::new(DRAGNET);
        command
            .args(line.split_whitespace())
            .current_dir(self.path());
        command
    }

    pub(crate) fn run(&self, line: &str) -> Run {
        Run::of(&mut self.dragnet(line))
    }

    /// Runs and expects this status; the panic of a failure shows the whole output.
    pub(crate) fn expect(&self, line: &str, status: i32) -> Run {
        let done = self.dragnet(line).assert().code(status);
        Run::from(done.get_output().clone())
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).expect("the directory is there");
        entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect()
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Run {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from(command.output().expect("dragnet starts"))
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not one JSON value ({error}): {}", self.stdout))
    }

    /// The one line of an error, which nothing on standard output accompanies.
    #[track_caller]
    pub(crate) fn error(&self) -> &str {
        assert_eq!(self.stdout, "", "an error leaves standard output alone");
        self.error_line()
    }

    #[track_caller]
    pub(crate) fn error_line(&self) -> &str {
        self.error_line_beside(BAD_INPUT)
    }

    /// The one line of an error in a run that ends with `status`.
    #[track_caller]
    pub(crate) fn error_line_beside(&self, status: i32) -> &str {
        assert_eq!(self.status, status, "{}", self.stderr);
        let line = self
            .stderr
            .strip_prefix("error: ")
            .and_then(|rest| rest.strip_suffix('\n'))
            .unwrap_or_else(|| panic!("not an error line: {}", self.stderr));
        assert!(!line.contains('\n'), "more than one line: {line}");
        line
    }
}

#[track_caller]
pub(crate) fn assert_says(line: &str, parts: &[&str]) {
    for part in parts {
        assert!(line.contains(part), "`{part}` is missing in: {line}");
    }
}

pub(crate) fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object().expect("an object");
    object.keys().map(String::as_str).collect()
}
