//! `list`: the systems, their parameters and their seeded bugs.

use std::fmt::Write;

use dragnet::Faults;
use dragnet::catalog::{Bug, Entry};
use dragnet::verdict::Style;
use serde_json::Value;

use crate::args::ListArgs;
use crate::error::Error;
use crate::status::Status;
use crate::{json, output};

pub(crate) fn run(args: &ListArgs, entries: &[Entry]) -> Result<Status, Error> {
    if args.json {
        let systems: Vec<Value> = entries.iter().map(json::entry).collect::<Result<_, _>>()?;
        output::print(&format!("{}\n", Value::from(systems)))?;
    } else {
        output::print(&table(entries, output::style()))?;
    }
    Ok(Status::Done)
}

fn table(entries: &[Entry], style: Style) -> String {
    let blocks: Vec<String> = entries.iter().map(|entry| block(entry, style)).collect();
    blocks.join("\n")
}

fn block(entry: &Entry, style: Style) -> String {
    let parameters = entry.parameters().iter().map(|parameter| Row {
        name: parameter.name.to_owned(),
        value: format!("{} ({})", parameter.default, parameter.values),
        summary: parameter.summary,
    });
    let bugs = entry.bugs().iter().map(|bug| Row {
        name: format!("--bug {}", bug.name),
        value: needs(bug),
        summary: bug.summary,
    });
    let faults = (entry.own_faults() != Faults::none()).then(|| Row {
        name: "--faults".to_owned(),
        value: entry.own_faults().to_string(),
        summary: "what goes wrong unless you say otherwise; 0 of a kind turns it off",
    });
    let rows: Vec<Row> = parameters.chain(faults).chain(bugs).collect();
    let width =
        |column: fn(&Row) -> &str| rows.iter().map(|row| column(row).len()).max().unwrap_or(0);
    let (names, values) = (width(|row| &row.name), width(|row| &row.value));
    let mut text = format!("{}  {}\n", style.bold(entry.name()), entry.summary());
    for row in &rows {
        let Row {
            name,
            value,
            summary,
        } = row;
        let _ = writeln!(text, "  {name:names$}  {value:values$}  {summary}");
    }
    text
}

/// A line about a parameter or a bug.
struct Row {
    name: String,
    value: String,
    summary: &'static str,
}

/// The parameters and faults that a bug brings.
fn needs(bug: &Bug) -> String {
    let mut needs: Vec<String> = bug
        .parameters
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if bug.faults != Faults::none() {
        needs.push(format!("faults {}", bug.faults));
    }
    needs.join(", ")
}
