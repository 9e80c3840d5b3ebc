//! Figures 10 to 12: time, states and memory of three nodes of which one proposes; and larger systems.

use std::iter;

use dragnet::engine::{EngineName, Pruning};

use super::job::{End, Invariant, Job};
use super::{LocalError, Measured, PATIENCE, best_of, bytes, paper, seconds, time};
use crate::table::{self, NOTHING, grouped};
use crate::turns::Effort;

/// A search of the figures, with what the paper's text says of it.
struct Subject {
    title: &'static str,
    /// What the paper calls it.
    theirs: &'static str,
    job: Job,
    paper: Paper,
}

/// What the text of sections 5.1 and 5.3 gives in numbers.
#[derive(Default)]
struct Paper {
    time: Option<&'static str>,
    put_together: Option<&'static str>,
    transitions: Option<&'static str>,
    memory: Option<&'static str>,
}

/// The searches, those first that come to an end, and those last that need not.
fn subjects() -> [Subject; 5] {
    let local = |invariant, pruning| Job {
        invariant,
        pruning,
        seconds: (pruning == Pruning::Plain).then_some(PATIENCE),
        ..Job::new(EngineName::Local)
    };
    let generic = || Paper {
        time: Some("5.16 s"),
        transitions: Some("1,186"),
        memory: Some("about 200 KB"),
        ..Paper::default()
    };
    let optimised = || Paper {
        time: Some("189 ms"),
        put_together: Some("0"),
        transitions: Some("1,186"),
        memory: Some("about 200 KB"),
    };
    [
        Subject {
            title: "breadth first",
            theirs: "B-DFS",
            job: Job::new(EngineName::Breadth),
            paper: Paper {
                time: Some("1,514 s"),
                transitions: Some("157,332"),
                memory: Some("under 1 MB"),
                ..Paper::default()
            },
        },
        Subject {
            title: "local, opaque",
            theirs: "LMC-GEN",
            job: local(Invariant::Opaque, Pruning::Adaptive),
            paper: generic(),
        },
        Subject {
            title: "local, directed",
            theirs: "LMC-OPT",
            job: local(Invariant::Directed, Pruning::Adaptive),
            paper: optimised(),
        },
        Subject {
            title: "local, opaque, plain",
            theirs: "LMC-GEN",
            job: local(Invariant::Opaque, Pruning::Plain),
            paper: generic(),
        },
        Subject {
            title: "local, directed, plain",
            theirs: "LMC-OPT",
            job: local(Invariant::Directed, Pruning::Plain),
            paper: optimised(),
        },
    ]
}

/// What it takes to search all there is.
pub fn in_total(effort: Effort) -> Result<(), LocalError> {
    println!("\n### Three nodes, one proposes: in total (figures 10 to 12), one thread\n");
    let columns = [
        "time",
        "paper",
        "states",
        "put together",
        "paper",
        "transitions",
        "paper",
        "handler runs",
        "memory",
        "paper",
    ];
    println!("{}", table::head(&["search", "in the paper"], &columns));
    let (long, short): (Vec<_>, Vec<_>) = subjects()
        .into_iter()
        .partition(|subject| subject.job.seconds.is_some());
    print_in_total(&short, effort.runs)?;
    if !effort.short_only {
        print_in_total(&long, 1)?;
    }
    Ok(())
}

fn print_in_total(subjects: &[Subject], runs: u32) -> Result<(), LocalError> {
    let jobs: Vec<Job> = subjects.iter().map(|subject| subject.job).collect();
    for (subject, measured) in subjects.iter().zip(best_of(runs, &jobs)?) {
        let Subject {
            title,
            theirs,
            job,
            paper: says,
        } = subject;
        let found = measured.found;
        let cells = [
            (*title).to_owned(),
            (*theirs).to_owned(),
            time(&measured, job),
            paper(says.time),
            grouped(found.states),
            of_local(job, found.local.put_together),
            paper(says.put_together),
            grouped(found.transitions),
            paper(says.transitions),
            grouped(found.handler_runs),
            bytes(measured.added_bytes),
            paper(says.memory),
        ];
        println!("{}", table::row(&cells));
    }
    Ok(())
}

/// A number that only local searches have.
fn of_local(job: &Job, number: u64) -> String {
    match job.engine {
        EngineName::Local => grouped(number),
        _ => NOTHING.to_owned(),
    }
}

/// What it takes to search as far as a bound, for all bounds: the curves of the figures.
pub fn by_depth(effort: Effort) -> Result<(), LocalError> {
    let subjects: Vec<Subject> = subjects()
        .into_iter()
        .filter(|subject| subject.job.seconds.is_none() || !effort.short_only)
        .collect();
    let curves: Vec<Vec<Measured>> = subjects
        .iter()
        .map(|subject| curve(subject.job))
        .collect::<Result<_, _>>()?;
    let figures: [(&str, Show); 3] = [
        ("time (figure 10)", |subject, measured| {
            time(measured, &subject.job)
        }),
        (
            "states, and those of the whole system put together (figure 11)",
            |subject, measured| {
                let states = grouped(measured.found.states);
                match subject.job.engine {
                    EngineName::Local => {
                        let together = grouped(measured.found.local.put_together);
                        format!("{states}, {together}")
                    }
                    _ => states,
                }
            },
        ),
        ("memory (figure 12)", |_, measured| {
            bytes(measured.added_bytes)
        }),
    ];
    for (what, show) in figures {
        println!("\n### Three nodes, one proposes: {what}, by depth\n");
        let titles: Vec<&str> = subjects.iter().map(|subject| subject.title).collect();
        println!("{}", table::head(&[], &[&["depth"], &titles[..]].concat()));
        for line in lines(&subjects, &curves, show) {
            println!("{}", table::row(&line));
        }
    }
    Ok(())
}

/// What of a measurement a figure shows.
type Show = fn(&Subject, &Measured) -> String;

/// With growing bounds, until there is nothing deeper or no patience for it.
fn curve(job: Job) -> Result<Vec<Measured>, LocalError> {
    let mut curve = Vec::new();
    for depth in 1.. {
        let bounded = Job {
            depth: Some(depth),
            ..job
        };
        let measured = best_of(1, &[bounded])?.remove(0);
        curve.push(measured);
        let is_over = measured.found.end != End::Cut
            || job
                .seconds
                .is_some_and(|most| measured.seconds >= most as f64);
        if is_over {
            break;
        }
    }
    Ok(curve)
}

/// The lines of a figure: a depth, then what each curve has there, and nothing where it is over.
fn lines(
    subjects: &[Subject],
    curves: &[Vec<Measured>],
    show: Show,
) -> impl Iterator<Item = Vec<String>> {
    let deepest = curves.iter().map(Vec::len).max().unwrap_or(0);
    (0..deepest).map(move |at| {
        let cells = subjects.iter().zip(curves).map(|(subject, curve)| {
            let point = curve.get(at);
            point.map_or_else(String::new, |measured| show(subject, measured))
        });
        iter::once((at + 1).to_string()).chain(cells).collect()
    })
}

/// More nodes than the paper had, and the two proposers that neither of its searches could finish.
pub fn larger(effort: Effort) -> Result<(), LocalError> {
    println!("\n### More nodes, more proposers, two threads\n");
    let columns = [
        "time",
        "paper",
        "states or histories",
        "local states",
        "put together",
        "transitions",
        "memory",
    ];
    println!("{}", table::head(&["nodes, proposers", "search"], &columns));
    let of = |engine, nodes, proposers| Job {
        nodes,
        proposers,
        threads: 2,
        ..Job::new(engine)
    };
    let alone = [of(EngineName::Local, 5, 1), of(EngineName::Local, 7, 1)];
    let beside =
        [EngineName::Breadth, EngineName::Local, EngineName::Auto].map(|engine| of(engine, 3, 2));
    let rows: &[&[Job]] = if effort.short_only {
        &[&alone[..1]]
    } else {
        &[&alone, &beside]
    };
    for jobs in rows {
        for (job, measured) in jobs.iter().zip(best_of(effort.runs, jobs)?) {
            let never = (job.proposers > 1).then_some("not within hours");
            let found = measured.found;
            let cells = [
                format!("{}, {}", job.nodes, job.proposers),
                search(job, &measured),
                seconds(measured.seconds),
                paper(never.filter(|_| job.engine != EngineName::Auto)),
                grouped(found.states),
                of_local(job, found.local.states),
                of_local(job, found.local.put_together),
                grouped(found.transitions),
                bytes(measured.added_bytes),
            ];
            println!("{}", table::row(&cells));
        }
    }
    Ok(())
}

/// How a search is called, and which of two was first.
fn search(job: &Job, measured: &Measured) -> String {
    match job.engine {
        EngineName::Local => "local, directed".to_owned(),
        EngineName::Auto if measured.found.decided_by_local => "auto (local was first)".to_owned(),
        EngineName::Auto => "auto (breadth first was first)".to_owned(),
        engine => format!("{engine} first"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::{Found, Local};
    use super::*;
    use crate::measure::Measurement;

    #[test]
    fn a_curve_that_is_over_leaves_its_cells_empty() {
        let measured = |states| Measurement {
            found: Found {
                end: End::Cut,
                decided_by_local: false,
                states,
                transitions: 0,
                depth: 0,
                handler_runs: 0,
                local: Local::default(),
            },
            seconds: 0.0,
            peak_bytes: 0,
            added_bytes: 0,
        };
        let curves = [vec![measured(2), measured(1_005)], vec![measured(6)]];
        let subjects = subjects();
        let lines = lines(&subjects[..2], &curves, |_, measured| {
            grouped(measured.found.states)
        });
        let lines: Vec<Vec<String>> = lines.collect();
        assert_eq!(lines, [["1", "2", "6"], ["2", "1,005", ""]]);
    }

    #[test]
    fn only_a_search_that_need_not_end_has_a_limit() {
        for subject in subjects() {
            let may_not_end = subject.job.pruning == Pruning::Plain;
            assert_eq!(
                subject.job.seconds.is_some(),
                may_not_end,
                "{}",
                subject.title
            );
        }
    }
}
