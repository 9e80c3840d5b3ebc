//! `check`: explore a system, judge it, print a verdict, keep the counterexample.

use std::path::PathBuf;

use dragnet::catalog::{AnyCheck, Entry, Selection, find};
use dragnet::trace::{SavedState, StateError, TraceError};
use dragnet::{Outcome, Verdict};

use crate::args::CheckArgs;
use crate::error::Error;
use crate::progress::Line;
use crate::status::Status;
use crate::{interrupt, json, output, trace_file};

pub(crate) fn run(args: &CheckArgs, entries: &[Entry], program: &str) -> Result<Status, Error> {
    let entry = find(entries, &args.system)?;
    let selection = select(entry, args)?;
    let mut check = entry.check(&selection)?;
    let options = check.options_mut();
    args.apply_to(options)?;
    let seed = options.engine.seed();
    if let Some(file) = &args.from {
        check.start_from(&SavedState::read(file)?)?;
    }
    if let Some(objection) = check.objection() {
        return Err(Error::Unfit {
            system: args.system.clone(),
            objection,
        });
    }
    // A long search must not end with nowhere to put what it found.
    if let Some(path) = args.trace.clone() {
        let probed = trace_file::probe(&path);
        probed.map_err(|source| TraceError::Unwritable { path, source })?;
    }
    if let Some(path) = args.save_state.clone() {
        let probed = trace_file::probe(&path);
        probed.map_err(|source| StateError::Unwritable { path, source })?;
    }

    let mut verdict = search(check);
    let kept = keep(&mut verdict, &selection, args);
    let file = kept.as_ref().ok().and_then(Option::as_deref);
    let text = if args.json {
        format!("{}\n", json::verdict(&verdict, &selection, seed, file))
    } else {
        let mut text = verdict.render(output::style());
        if let Some(file) = file {
            let again = trace_file::replay_command(program, file);
            text.push_str(&format!(
                "\nThe trace is in {}; run it again with: {again}\n",
                file.display()
            ));
        }
        text
    };
    let printed = output::print(&text);
    let saved = save_state(&verdict, args);
    let mut status = Status::from(&verdict.outcome);
    let done = [printed, kept.map(drop).map_err(Error::from), saved];
    for error in done.into_iter().filter_map(Result::err) {
        output::report(&error);
        // A violation stays one, whatever becomes of its files.
        if status != Status::Violated {
            status = Status::BadInput;
        }
    }
    Ok(status)
}

/// Writes the state that was asked for, if one was.
fn save_state(verdict: &Verdict, args: &CheckArgs) -> Result<(), Error> {
    let Some(file) = &args.save_state else {
        return Ok(());
    };
    let state = verdict
        .state
        .as_ref()
        .ok_or_else(|| Error::NoState(args.system.clone()))?;
    Ok(state.write(file)?)
}

/// The system as the arguments set it up.
fn select<'e>(entry: &'e Entry, args: &CheckArgs) -> Result<Selection<'e>, Error> {
    let mut selection = Selection::of(entry);
    if let Some(bug) = &args.bug {
        selection = selection.with_bug(bug)?;
    }
    for (name, value) in &args.set {
        selection = selection.with(name, value)?;
    }
    Ok(match args.faults {
        Some(faults) => selection.with_faults(faults),
        None => selection,
    })
}

/// Searches, while a person can watch and interrupt.
fn search(check: Box<dyn AnyCheck>) -> Verdict {
    let line = Line::new();
    let control = line.control().before_exit();
    interrupt::stops(control.stopper());
    check.run_under(&control)
}

/// Writes the counterexample, if there is one, to its file, and says which that is.
fn keep(
    verdict: &mut Verdict,
    selection: &Selection<'_>,
    args: &CheckArgs,
) -> Result<Option<PathBuf>, TraceError> {
    let Outcome::Violated(violation) = &mut verdict.outcome else {
        return Ok(None);
    };
    let Some(counterexample) = &mut violation.counterexample else {
        return Ok(None);
    };
    let trace = &mut counterexample.trace;
    trace_file::complete(trace, selection);
    let file = args
        .trace
        .clone()
        .unwrap_or_else(|| trace_file::default_path(&trace.system, trace.bug.as_deref()));
    trace.write(&file)?;
    Ok(Some(file))
}
