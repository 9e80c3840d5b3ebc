//! `replay`: a counterexample once more, step by step.

use std::path::Path;

use dragnet::Faults;
use dragnet::catalog::{Entry, Selection, SelectionError, find};
use dragnet::trace::{Trace, TraceError};

use crate::args::ReplayArgs;
use crate::error::Error;
use crate::status::Status;
use crate::{json, output};

pub(crate) fn run(args: &ReplayArgs, entries: &[Entry]) -> Result<Status, Error> {
    let file = &args.trace;
    let trace = Trace::read(file)?;
    let entry = find(entries, &trace.system).map_err(|_| Error::TraceOfAnotherSystem {
        trace: file.clone(),
        system: trace.system.clone(),
        known: entries
            .iter()
            .map(|entry| entry.name().to_owned())
            .collect(),
    })?;
    let faults = faults(&trace, file)?;
    let check = select(entry, &trace, faults)
        .and_then(|selection| entry.check(&selection))
        .map_err(|error| Error::TraceDoesNotFit {
            trace: file.clone(),
            system: trace.system.clone(),
            source: Box::new(error),
        })?;
    let replay = check.replay(&trace).map_err(|source| Error::Replay {
        trace: file.clone(),
        source,
    })?;
    if let Some(to) = &args.save_state {
        let steps = replay.counterexample.len();
        let after = args.after.unwrap_or(replay.states.len().saturating_sub(1));
        if after > steps {
            let trace = file.clone();
            return Err(Error::NotSoManySteps { trace, steps });
        }
        let state = replay.states.get(after);
        state
            .ok_or_else(|| Error::NoState(trace.system.clone()))?
            .write(to)?;
    }
    if args.json {
        output::print(&format!("{}\n", json::replay(&replay, &trace, file)))?;
    } else {
        let style = output::style();
        let steps = replay.counterexample.render(style);
        let system = style.bold(&trace.system);
        output::print(&format!(
            "{steps}\n{system} violated again: {}\n",
            replay.violation
        ))?;
    }
    Ok(Status::Violated)
}

fn faults(trace: &Trace, file: &Path) -> Result<Faults, TraceError> {
    trace.faults.parse().map_err(|error| TraceError::Malformed {
        path: file.to_owned(),
        reason: format!("{error}"),
    })
}

/// The system as it was set up when the trace was recorded.
fn select<'e>(
    entry: &'e Entry,
    trace: &Trace,
    faults: Faults,
) -> Result<Selection<'e>, SelectionError> {
    let mut selection = Selection::of(entry).with_faults(faults);
    if let Some(bug) = &trace.bug {
        selection = selection.with_bug(bug)?;
    }
    trace
        .parameters
        .iter()
        .try_fold(selection, |selection, (name, value)| {
            selection.with(name, &json::text(value))
        })
}
