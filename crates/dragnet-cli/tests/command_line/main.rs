//! The `dragnet` binary as scripts and people meet it.

mod errors;
mod help;
mod limits;
mod local;
mod run;
mod verdicts;
#[cfg(feature = "wild")]
mod wild;
