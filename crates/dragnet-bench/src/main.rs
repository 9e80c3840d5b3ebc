//! Dragnet compared with other checkers: the same protocols, the same properties, side by side in one run.
//!
//!     cargo run --release -p dragnet-bench -- stateright

mod machine;
mod measure;
mod stateright;
mod table;
mod turns;

use std::error::Error;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, value_parser};

use crate::measure::measure;
use crate::stateright::Effort;

/// Compares Dragnet with other checkers, and prints a Markdown table.
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
    /// Do one job in this process, and print what it took as JSON.
    #[command(hide = true, subcommand)]
    Measure(Job),
}

#[derive(Subcommand)]
enum Job {
    Stateright(stateright::Job),
}

#[derive(Args)]
struct Comparison {
    /// One run of the small protocols only.
    #[arg(long)]
    quick: bool,
    /// How many runs the best is taken of [default: 3, with --quick 1].
    #[arg(long, value_parser = value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// The date to print above the table [default: today].
    #[arg(long)]
    date: Option<String>,
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
        Command::Stateright(Comparison { quick, runs, date }) => {
            let effort = Effort {
                runs: runs.unwrap_or(if quick { 1 } else { 3 }),
                small_only: quick,
            };
            stateright::compare(effort, date)?;
        }
        Command::Measure(Job::Stateright(job)) => {
            println!("{}", serde_json::to_string(&measure(&job)?)?);
        }
    }
    Ok(())
}
