//! Dragnet compared with other checkers, and its engines with each other: the same protocols, the same properties, side by
//! side in one run.
//!
//!     cargo run --release -p dragnet-bench -- stateright
//!     cargo run --release -p dragnet-bench -- local
//!     cargo run --release -p dragnet-bench -- threads

mod local;
mod machine;
mod measure;
mod stateright;
mod table;
mod threads;
mod turns;

use std::error::Error;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, value_parser};

use crate::measure::measure;
use crate::turns::Effort;

/// Compares Dragnet with other checkers and its engines with each other, and prints Markdown tables.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare with Stateright on protocols written for both.
    Stateright(Comparison),
    /// Measure the figures of the paper on local model checking again, on the same system.
    Local(Comparison),
    /// Compare with loom and shuttle on programs with threads.
    Threads(ThreadsComparison),
    /// Do one job in this process, and print what it took as JSON.
    #[command(hide = true, subcommand)]
    Measure(Job),
}

#[derive(Subcommand)]
enum Job {
    Stateright(stateright::Job),
    Local(local::Job),
    Threads(threads::Job),
}

#[derive(Args)]
struct Comparison {
    /// One run of what is short only.
    #[arg(long)]
    quick: bool,
    /// How many runs the best is taken of [default: 3, with --quick 1].
    #[arg(long, value_parser = value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// The date to print above the tables [default: today].
    #[arg(long)]
    date: Option<String>,
}

#[derive(Args)]
struct ThreadsComparison {
    #[command(flatten)]
    comparison: Comparison,
    /// After how many seconds a check is cut.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Print what was measured as JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// The programs [default: all, with --quick small ones].
    #[arg(value_parser = threads::program_name)]
    programs: Vec<&'static str>,
}

impl Comparison {
    fn effort(&self) -> Effort {
        Effort {
            runs: self.runs.unwrap_or(if self.quick { 1 } else { 3 }),
            short_only: self.quick,
        }
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Stateright(comparison) => {
            stateright::compare(comparison.effort(), comparison.date)?;
        }
        Command::Local(comparison) => local::compare(comparison.effort(), comparison.date)?,
        Command::Threads(arguments) => {
            let plan = threads::Plan {
                effort: arguments.comparison.effort(),
                seconds: arguments.seconds,
                programs: arguments.programs,
                as_json: arguments.json,
            };
            threads::compare(&plan, arguments.comparison.date)?;
        }
        Command::Measure(Job::Stateright(job)) => print_measured(&job)?,
        Command::Measure(Job::Local(job)) => print_measured(&job)?,
        Command::Measure(Job::Threads(job)) => print_measured(&job)?,
    }
    Ok(())
}

/// What the parent reads.
fn print_measured<J: measure::Job>(job: &J) -> Result<(), Box<dyn Error>> {
    println!("{}", serde_json::to_string(&measure(job)?)?);
    Ok(())
}
