//! Verdicts in print.

use std::fmt::{self, Display, Write};
use std::ops::Range;
use std::time::Duration;

use super::turns::{Telling, Turns};
use super::{Counterexample, Outcome, ScheduleWork, Verdict};
use crate::engine::EngineName;
use crate::trace::Step;

/// Whether colours may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    colour: bool,
}

impl Style {
    /// Text alone.
    pub fn plain() -> Self {
        Self { colour: false }
    }

    /// With the colours of a terminal.
    pub fn coloured() -> Self {
        Self { colour: true }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Text that stands out.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Style::plain()))
    }
}

impl Verdict {
    /// The verdict as it is printed: the counterexample, if there is one, and the summary.
    pub fn render(&self, style: Style) -> String {
        let mut text = String::new();
        if let Some(counterexample) = self.counterexample() {
            text.push_str(&counterexample.render(style));
            text.push('\n');
        }
        let verdict = match &self.outcome {
            Outcome::Holds => format!(
                "{} {}",
                style.bold(&self.system),
                style.paint("1;32", "holds")
            ),
            Outcome::Violated(violation) => format!(
                "{} {}: {}",
                style.bold(&self.system),
                style.paint("1;31", "violated"),
                violation.headline()
            ),
            Outcome::Inconclusive(reason) => format!(
                "{} {}: nothing wrong was found, but {reason}",
                style.bold(&self.system),
                style.paint("1;33", "inconclusive")
            ),
        };
        let _ = writeln!(text, "{verdict}");
        for (label, value) in self.lines() {
            let _ = writeln!(text, "  {} {value}", style.dim(&format!("{label:<8}")));
        }
        text
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let statistics = &self.statistics;
        let mut lines = Vec::new();
        if statistics.states == 0 && self.violation().is_some() {
            // A trace that was run again: nothing was searched.
            return lines;
        }
        if !self.within.is_empty() {
            lines.push(("within", self.within.join("; ")));
        }
        for warning in &self.warnings {
            lines.push(("warning", warning.clone()));
        }
        let order = match self.threads {
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads"),
        };
        let idle = match statistics.nodes {
            Some(work) if work.skips_idle => ", deliveries that change nothing left out",
            Some(_) => ", every delivery taken",
            None => "",
        };
        let first = match self.engine {
            EngineName::Auto => format!(" ({} was first)", self.decided_by),
            _ => String::new(),
        };
        if let Some(work) = statistics.schedules {
            self.add_schedules(work, &order, &mut lines);
            return lines;
        }
        let engine = self.explorer.as_deref().unwrap_or(self.engine.name());
        lines.push(("engine", format!("{engine}{first}, {order}{idle}")));
        let rate = statistics.states as f64 / statistics.elapsed.as_secs_f64().max(1e-6);
        lines.push((
            "states",
            format!(
                "{}{} distinct, {} transitions, depth {}",
                if statistics.states_estimated {
                    "about "
                } else {
                    ""
                },
                grouped(statistics.states),
                grouped(statistics.transitions),
                grouped(statistics.depth)
            ),
        ));
        if matches!(self.outcome, Outcome::Inconclusive(_)) && statistics.frontier > 0 {
            lines.push((
                "open",
                format!("{} states not expanded", grouped(statistics.frontier)),
            ));
        }
        if let Some(local) = statistics.local {
            lines.push((
                "judged",
                format!(
                    "{} local states, {} of the whole system put together",
                    grouped(local.local_states),
                    grouped(local.system_states)
                ),
            ));
            lines.push((
                "verified",
                format!(
                    "{} preliminary {} with {} {} over {} states",
                    grouped(local.preliminary_violations),
                    number(local.preliminary_violations, "violation", "violations"),
                    grouped(local.soundness_checks),
                    number(local.soundness_checks, "search", "searches"),
                    grouped(local.soundness_states)
                ),
            ));
        }
        if let Some(work) = statistics.nodes {
            lines.push((
                "nodes",
                format!(
                    "{}{} local states, {} handler runs",
                    match self.decided_by.is_random() {
                        true => "about ",
                        false => "",
                    },
                    grouped(work.local_states),
                    grouped(work.handler_runs)
                ),
            ));
        }
        let digested = statistics.nodes.is_some_and(|work| work.digested);
        if digested {
            lines.push((
                "digest",
                "states or messages with equal digests counted as one; the verdict stands on that"
                    .to_owned(),
            ));
        }
        lines.push((
            "took",
            format!(
                "{}, {} states/s, {} at most",
                seconds(statistics.elapsed),
                grouped(rate as u64),
                bytes(statistics.peak_memory_bytes)
            ),
        ));
        if let Some(kept) = statistics.sampled_states {
            lines.push((
                "sampled",
                format!(
                    "{} states were kept and compared with others of the same fingerprint",
                    grouped(kept)
                ),
            ));
        }
        let missed = if let Some(type_name) = &statistics.coarse_hash {
            format!(
                "states were missed: the `Hash` of {type_name} leaves out fields that `Eq` compares"
            )
        } else if self.decided_by.is_random() {
            "none of those that walks came to: each is judged on every walk".to_owned()
        } else if self.exact && digested {
            "none beside the digests: whole states were compared".to_owned()
        } else if self.exact {
            "none: whole states were compared".to_owned()
        } else {
            format!(
                "a state was missed with probability {:.1e}",
                statistics.collision_probability
            )
        };
        lines.push(("chance", missed));
        if let Some(engine) = self.suggestion {
            let also = "which also explores the nodes one by one, may get further";
            lines.push(("try", format!("the engine {engine}, {also}")));
        }
        lines
    }

    /// What exploring schedules took.
    fn add_schedules(
        &self,
        work: ScheduleWork,
        order: &str,
        lines: &mut Vec<(&'static str, String)>,
    ) {
        let statistics = &self.statistics;
        let engine = match self.decided_by {
            engine if engine.is_random() => format!("{engine}, {order}"),
            engine => format!("{engine}, reduction {}, {order}", work.reduction),
        };
        lines.push(("engine", engine));
        lines.push((
            "ran",
            format!(
                "{} {} to the end, {} given up, the longest with {} steps",
                grouped(work.executions),
                number(work.executions, "execution", "executions"),
                grouped(work.blocked_executions),
                grouped(statistics.depth)
            ),
        ));
        if work.weakly_ordered > 0 {
            lines.push((
                "memory",
                format!(
                    "explored as sequentially consistent, without stale reads, though {} atomic {} of an execution asked for less",
                    grouped(work.weakly_ordered),
                    number(work.weakly_ordered, "operation", "operations")
                ),
            ));
        }
        let elapsed = statistics.elapsed.as_secs_f64().max(1e-6);
        lines.push((
            "took",
            format!(
                "{}, {} scheduling points/s, {} at most",
                seconds(statistics.elapsed),
                grouped((work.scheduling_points as f64 / elapsed) as u64),
                bytes(statistics.peak_memory_bytes)
            ),
        ));
    }
}

impl Counterexample {
    /// The steps of the execution, numbered.
    pub fn render(&self, style: Style) -> String {
        let mut text = String::new();
        let kind = if self.shortest {
            "shortest execution"
        } else {
            "execution"
        };
        let steps = match self.len() {
            1 => "1 step".to_owned(),
            steps => format!("{steps} steps"),
        };
        let shortened = if self.found_length > self.len() {
            format!(" (found with {}, then shortened)", self.found_length)
        } else {
            String::new()
        };
        let title = format!("Counterexample: the {kind} that was found has {steps}{shortened}");
        let title = if self.shortest {
            format!("Counterexample: the shortest execution has {steps}{shortened}")
        } else {
            title
        };
        let _ = writeln!(text, "{}", style.bold(&title));
        let _ = writeln!(text, "  {}", style.dim("start"));
        for line in &self.start {
            let _ = writeln!(text, "       {}", style.dim(line));
        }
        let width = self.len().to_string().len().max(2);
        let lanes = Lanes {
            names: &self.lanes,
            style,
        };
        lanes.begin(width, &mut text);
        let steps: Vec<&Step> = self.steps().collect();
        let telling = Telling::new(&steps);
        let tell = |which: Range<usize>, text: &mut String| {
            for (number, step) in (1..).zip(&steps).skip(which.start).take(which.len()) {
                if self.trace.stem() == Some(number - 1) {
                    let cycle = match steps.len() - number {
                        0 => format!("↻ the cycle: step {number}, repeated without end"),
                        _ => format!(
                            "↻ the cycle: steps {number} to {}, repeated without end",
                            steps.len()
                        ),
                    };
                    let _ = writeln!(text, "  {}", style.bold(&cycle));
                }
                let margin = lanes.margin(&step.component);
                step.render_beside(number, width, &margin, style, text);
            }
        };
        let mut next = 0;
        while next < steps.len() {
            // Nothing of a lasso is left out.
            let turns = telling.turns_at(next);
            let Some(turns) = turns.filter(|_| self.trace.stem().is_none()) else {
                tell(next..next + 1, &mut text);
                next += 1;
                continue;
            };
            tell(next..next + turns.steps, &mut text);
            next += (turns.between + 1) * turns.steps;
            let indent = " ".repeat(width + 4);
            let Margin { others, .. } = lanes.margin("");
            let _ = writeln!(text, "{indent}{others}{}", style.dim(&format!("⋮ {turns}")));
            tell(next..next + turns.steps, &mut text);
            next += turns.steps;
        }
        let mut ending = self.ending.iter();
        let wrong = ending.next().map_or("", |line| line);
        let _ = writeln!(text, "  {} {wrong}", style.paint("1;31", "✗"));
        for line in ending {
            let _ = writeln!(text, "      {line}");
        }
        text
    }
}

impl Display for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = match self.steps {
            1 => "step".to_owned(),
            steps => format!("{steps} steps"),
        };
        let how = if self.are_same {
            ""
        } else {
            ", with other numbers,"
        };
        let times = self.between as u64;
        let (count, times) = (grouped(times), number(times, "time", "times"));
        write!(f, "the same {steps}{how} {count} {times} more")
    }
}

/// A lane for each component, to the left of the steps.
struct Lanes<'a> {
    names: &'a [String],
    style: Style,
}

/// What is to the left of the first line of a step, and of its others.
#[derive(Default)]
struct Margin {
    first: String,
    others: String,
}

impl Lanes<'_> {
    /// Writes whose lane is which.
    fn begin(&self, width: usize, text: &mut String) {
        let indent = " ".repeat(width + 4);
        for (lane, name) in self.names.iter().enumerate() {
            let others = "│ ".repeat(lane);
            let _ = writeln!(
                text,
                "{indent}{}",
                self.style.dim(&format!("{others}┌ {name}"))
            );
        }
    }

    /// What is to the left of a step of a component.
    fn margin(&self, component: &str) -> Margin {
        if self.names.is_empty() {
            return Margin::default();
        }
        let bar = self.style.dim("│");
        let own = self.style.paint("1;36", "●");
        let marks = self.names.iter().map(|name| match name == component {
            true => own.as_str(),
            false => bar.as_str(),
        });
        let marks: Vec<&str> = marks.collect();
        Margin {
            first: format!("{}  ", marks.join(" ")),
            others: format!("{}  ", vec![bar.as_str(); self.names.len()].join(" ")),
        }
    }
}

impl Step {
    /// Writes the step with its number: who does what, then what changed and what was sent.
    pub fn render(&self, number: usize, width: usize, style: Style, text: &mut String) {
        self.render_beside(number, width, &Margin::default(), style, text);
    }

    fn render_beside(
        &self,
        number: usize,
        width: usize,
        margin: &Margin,
        style: Style,
        text: &mut String,
    ) {
        let who = if self.component.is_empty() {
            String::new()
        } else {
            format!("{} ", style.paint("1;36", &self.component))
        };
        let _ = writeln!(
            text,
            "  {} {}{who}{}",
            style.dim(&format!("{number:>width$}.")),
            margin.first,
            self.action
        );
        let indent = format!("{}{}  ", " ".repeat(width + 4), margin.others);
        for line in &self.changed {
            let _ = writeln!(text, "{indent}{} {line}", style.paint("33", "~"));
        }
        for line in &self.sent {
            let _ = writeln!(text, "{indent}{} {line}", style.paint("34", "→"));
        }
        for line in &self.notes {
            let _ = writeln!(text, "{indent}{} {line}", style.dim("·"));
        }
    }
}

fn number<'w>(count: u64, one: &'w str, many: &'w str) -> &'w str {
    if count == 1 { one } else { many }
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn seconds(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else {
        format!("{seconds:.1} s")
    }
}

fn bytes(count: u64) -> String {
    let mib = count as f64 / f64::from(1 << 20);
    if mib < 1024.0 {
        format!("{mib:.0} MiB")
    } else {
        format!("{:.1} GiB", mib / 1024.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1_194_428), "1,194,428");
        assert_eq!(grouped(100_000), "100,000");
    }
}
