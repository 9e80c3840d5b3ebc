//! What can be written on the command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use dragnet::catalog::{Entry, Values};
use dragnet::engine::{Bytes, DepthBound, Options};
use dragnet::engine::{Engine, EngineName, EngineOption, Pruning, Reduction, Seed};
use dragnet::{Determinism, Faults};

use crate::error::Error;
use crate::output;
use crate::status::Status;
use crate::units;

/// A model checker for real distributed and concurrent programs.
#[derive(Parser)]
#[command(name = "dragnet", version, disable_help_subcommand = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show the systems, their parameters and their seeded bugs
    List(ListArgs),
    /// Explore a system, judge it, print a verdict
    Check(Box<CheckArgs>),
    /// Run a counterexample again, step by step
    Replay(ReplayArgs),
}

#[derive(Args)]
pub(crate) struct ListArgs {
    /// Print an array of JSON objects
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Exit status: 0 when everything holds in the whole space, 1 when something is violated, 2 when the command or its
input is bad, 3 when the search was cut short (or was random) and found nothing wrong.")]
pub(crate) struct CheckArgs {
    /// The system to explore, as `list` names it
    pub(crate) system: String,

    /// Set a parameter of the system
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, String)>,

    /// Turn on a seeded bug, with the parameters and faults that it needs
    #[arg(long, value_name = "NAME")]
    pub(crate) bug: Option<String>,

    /// Let things go wrong: drops, duplicates, crashes, restarts, partitions and resets, each so many times
    #[arg(long, value_name = "drops=1,crashes=1,…")]
    pub(crate) faults: Option<Faults>,

    /// The engine that explores [default: breadth, or dpor for multithreaded programs]
    #[arg(long, value_parser = engine())]
    engine: Option<EngineName>,

    /// How much of what cannot happen is left out, with --engine local or auto [default: adaptive]
    #[arg(long, value_parser = pruning())]
    pruning: Option<Pruning>,

    /// Which schedules are left out because others come to the same, with --engine dpor or auto [default: optimal]
    #[arg(long, value_parser = reduction())]
    reduction: Option<Reduction>,

    /// How often enabled threads are preempted, with --engine dpor or auto [default: any number of times]
    #[arg(long, value_name = "N")]
    preemptions: Option<u32>,

    /// How many threads search [default: one for each core]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    threads: Option<usize>,

    /// How many steps an execution may have
    #[arg(long, value_name = "N")]
    depth: Option<DepthBound>,

    /// How much memory the process may take, such as 512MiB
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    memory: Option<Bytes>,

    /// How long the search may take, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    time: Option<Duration>,

    /// How long a step may take, such as 5s: one that takes longer is a violation [default: 30s, then inconclusive]
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    patience: Option<Duration>,

    /// The seed of random walks, with --engine random or pct: the same seed gives the same walks [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<Seed>,

    /// How many random walks are made, with --engine random or pct [default: 100000]
    #[arg(long, value_name = "N")]
    walks: Option<u64>,

    /// How often priorities change on a random walk, with --engine pct [default: 2]
    #[arg(long, value_name = "N")]
    priority_changes: Option<u32>,

    /// Keep whole states instead of their fingerprints: larger and slower, with no chance of a collision
    #[arg(long)]
    exact: bool,

    /// How often handlers run twice, to see whether they do the same [default: sample]
    #[arg(long, value_parser = determinism())]
    determinism: Option<Determinism>,

    /// Start in this state instead of at the beginning: a file that --save-state has written, or one like it
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,

    /// Where to write the last state of a counterexample, or the first state where there is none
    #[arg(long, value_name = "FILE")]
    pub(crate) save_state: Option<PathBuf>,

    /// Where to write a counterexample [default: SYSTEM[-BUG].trace.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Exit status: 1 when the trace leads to its violation again, 2 when it cannot be read or the system has changed.")]
pub(crate) struct ReplayArgs {
    /// A counterexample that `check` has written
    pub(crate) trace: PathBuf,

    /// Where to write the state that it ends in, to start a check from
    #[arg(long, value_name = "FILE")]
    pub(crate) save_state: Option<PathBuf>,

    /// Write the state after so many steps instead, with --save-state
    #[arg(long, value_name = "N", requires = "save_state")]
    pub(crate) after: Option<usize>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl CheckArgs {
    /// How to search; what was not said stays as it is. An option that the engine does not read is refused.
    pub(crate) fn apply_to(&self, options: &mut Options) -> Result<(), Error> {
        options.engine = self.engine.map_or(options.engine, Engine::from);
        for (flag, option) in self.engine_options() {
            let with = options.engine.with(option);
            options.engine = with.map_err(|source| Error::Unread { flag, source })?;
        }
        options.exact |= self.exact;
        options.keep_state |= self.save_state.is_some();
        options.determinism = self.determinism.unwrap_or(options.determinism);
        options.threads = self.threads.unwrap_or(options.threads);
        options.depth = self.depth.or(options.depth);
        options.memory = self.memory.or(options.memory);
        options.time = self.time.or(options.time);
        options.patience = self.patience.or(options.patience);
        Ok(())
    }

    /// The options of the engine that were given, with their flags.
    fn engine_options(&self) -> impl Iterator<Item = (&'static str, EngineOption)> {
        let options = [
            ("--pruning", self.pruning.map(EngineOption::Pruning)),
            ("--reduction", self.reduction.map(EngineOption::Reduction)),
            (
                "--preemptions",
                self.preemptions.map(EngineOption::Preemptions),
            ),
            ("--seed", self.seed.map(EngineOption::Seed)),
            ("--walks", self.walks.map(EngineOption::Walks)),
            (
                "--priority-changes",
                self.priority_changes.map(EngineOption::PriorityChanges),
            ),
        ];
        let given = |(flag, option): (&'static str, Option<EngineOption>)| Some((flag, option?));
        options.into_iter().filter_map(given)
    }
}

/// Reads the command line. What is wrong with it, or the help that it asks for, is printed here.
pub(crate) fn parse(
    arguments: &[OsString],
    program: &str,
    entries: &[Entry],
) -> Result<Command, Status> {
    CommandLine::command()
        .after_help(examples(program, entries))
        .try_get_matches_from(arguments)
        .and_then(|matches| CommandLine::from_arg_matches(&matches))
        .map(|line| line.command)
        .map_err(|error| explain(&error, program))
}

/// Prints what clap has to say: help as it is, an error in one line.
fn explain(error: &clap::Error, program: &str) -> Status {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A reader who has closed the pipe has seen enough.
            let _ = error.print();
            Status::Done
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            Status::BadInput
        }
        _ => {
            output::report(&in_one_line(&error.render().to_string(), program));
            Status::BadInput
        }
    }
}

/// The essence of an error that clap has laid out over many lines, and where to read on.
fn in_one_line(text: &str, program: &str) -> String {
    let mut line = String::new();
    for part in text.lines().map(str::trim) {
        if let Some(usage) = part.strip_prefix("Usage: ") {
            let command: Vec<&str> = usage
                .split(' ')
                .take_while(|word| !word.starts_with(['[', '<', '-']))
                .collect();
            let help = if line.ends_with("<SYSTEM>") {
                format!("; `{program} list` names the systems")
            } else {
                format!("; see `{} --help`", command.join(" "))
            };
            line.push_str(&help);
        }
        if part.starts_with("Usage:") || part.starts_with("For more information") {
            break;
        }
        // How to pass what looks like an option as a value is never what was meant: no command takes free text.
        if part.is_empty() || part.starts_with("tip: to pass") {
            continue;
        }
        match part.strip_prefix("error: ") {
            Some(first) => line.push_str(first),
            None if part.starts_with("tip:") => line.push_str(&format!("; {part}")),
            None => line.push_str(&format!(" {part}")),
        }
    }
    line
}

/// What to try first, with names that exist.
fn examples(program: &str, entries: &[Entry]) -> String {
    let mut lines = vec![("list".to_owned(), "what there is to check")];
    if let Some(entry) = entries.first() {
        let check = format!("check {}", entry.name());
        lines.push((check.clone(), "explore it, and say whether it holds"));
        let numbers = entry
            .parameters()
            .iter()
            .find_map(|parameter| match &parameter.values {
                Values::Numbers(range) => Some((parameter.name, range.end())),
                Values::Choices(_) => None,
            });
        if let Some((name, largest)) = numbers {
            let set = format!("{check} --set {name}={largest}");
            lines.push((format!("{set} --time 30s"), "a larger one, for so long"));
        }
        if let Some(bug) = entry.bugs().first() {
            let buggy = format!("{check} --bug {}", bug.name);
            lines.push((
                format!("{buggy} --trace bug.json"),
                "a bug, and how it shows",
            ));
            lines.push((
                "replay bug.json".to_owned(),
                "the same execution, step by step",
            ));
        }
    }
    let width = lines.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
    let mut text = "Examples:".to_owned();
    for (line, meaning) in lines {
        text.push_str(&format!("\n  {program} {line:width$}  {meaning}"));
    }
    text
}

fn engine() -> impl TypedValueParser<Value = EngineName> {
    let names = EngineName::ALL.map(|engine| PossibleValue::new(engine.name()));
    // What the engine dpor was called before.
    let former = PossibleValue::new("schedules").hide(true);
    PossibleValuesParser::new(names.into_iter().chain([former]))
        .try_map(|name| name.parse::<EngineName>())
}

fn pruning() -> impl TypedValueParser<Value = Pruning> {
    let names = Pruning::ALL.map(Pruning::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Pruning>())
}

fn reduction() -> impl TypedValueParser<Value = Reduction> {
    let names = Reduction::ALL.map(Reduction::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Reduction>())
}

fn determinism() -> impl TypedValueParser<Value = Determinism> {
    let names = Determinism::ALL.map(Determinism::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Determinism>())
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("write it as NAME=VALUE, for example nodes=3")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn an_assignment_has_a_name_and_a_value() {
        let read = |text| assignment(text).ok();
        let pair = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        assert_eq!(read("nodes=3"), pair("nodes", "3"));
        assert_eq!(read(" nodes = 3 "), pair("nodes", "3"));
        assert_eq!(read("a=b=c"), pair("a", "b=c"));
        assert_eq!(read("nodes"), None);
    }

    #[test]
    fn an_error_over_many_lines_becomes_one() {
        let text = |error: clap::Error| in_one_line(&error.render().to_string(), "dragnet");
        let said = |line: &str| {
            let words = line.split_whitespace();
            text(
                CommandLine::try_parse_from(words)
                    .err()
                    .expect("it is wrong"),
            )
        };
        assert_eq!(
            said("dragnet check paxos --engine dept"),
            "invalid value 'dept' for '--engine <ENGINE>' [possible values: breadth, depth, random, pct, local, auto, \
             dpor]; \
             tip: a similar value exists: 'depth'"
        );
        assert_eq!(
            said("dragnet check"),
            "the following required arguments were not provided: <SYSTEM>; `dragnet list` names the systems"
        );
        assert_eq!(
            said("dragnet check paxos --wrong"),
            "unexpected argument '--wrong' found; see `dragnet check --help`"
        );
        assert_eq!(
            said("dragnet replay"),
            "the following required arguments were not provided: <TRACE>; see `dragnet replay --help`"
        );
    }
}
