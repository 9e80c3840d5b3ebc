//! Figure 13: what states of the whole system and their verification add to exploring, where there is a bug to find.

use dragnet::engine::{EngineName, Pruning};

use super::job::{End, Invariant, Job, Scenario};
use super::{LocalError, Measured, PATIENCE, best_of, time};
use crate::table::{self, NOTHING, grouped};
use crate::turns::Effort;

/// What the text gives in numbers, in the columns of the table. These are two runs: 773 checks of 45 ms each do not fit
/// into 11 s. Where the one of section 5.4 starts is not said.
const PAPER: [[&str; 11]; 2] = [
    [
        "not said",
        "paper, section 5.4",
        "violated",
        NOTHING,
        NOTHING,
        "28",
        NOTHING,
        NOTHING,
        NOTHING,
        "773",
        "427,731 sequences",
    ],
    [
        "the live state",
        "paper, section 5.5",
        "violated",
        "11 s",
        NOTHING,
        NOTHING,
        NOTHING,
        NOTHING,
        NOTHING,
        NOTHING,
        NOTHING,
    ],
];

/// Measures how the bug of section 5.5 is found.
pub fn in_the_buggy_system(effort: Effort) -> Result<(), LocalError> {
    println!(
        "\n### Finding the bug of section 5.5 (figure 13), three nodes, two propose, one thread\n"
    );
    let columns = [
        "time",
        "exploring all to that depth",
        "depth",
        "local states",
        "put together",
        "preliminary violations",
        "soundness checks",
        "states gone through",
    ];
    println!("{}", table::head(&["from", "pruning", "verdict"], &columns));
    for scenario in [Scenario::LastResponse, Scenario::LiveState] {
        for pruning in [Pruning::Adaptive, Pruning::Plain] {
            let is_short = scenario == Scenario::LiveState && pruning == Pruning::Adaptive;
            if effort.short_only && !is_short {
                continue;
            }
            let runs = match pruning {
                Pruning::Plain => 1,
                _ => effort.runs,
            };
            println!("{}", table::row(&row(scenario, pruning, runs)?));
        }
    }
    for says in PAPER {
        println!("{}", table::row(&says.map(str::to_owned)));
    }
    Ok(())
}

fn row(scenario: Scenario, pruning: Pruning, runs: u32) -> Result<[String; 11], LocalError> {
    let job = Job {
        proposers: 2,
        scenario,
        pruning,
        seconds: (pruning == Pruning::Plain).then_some(PATIENCE),
        ..Job::new(EngineName::Local)
    };
    let found = best_of(runs, &[job])?.remove(0);
    // Whoever has nothing to find goes on to the end: the bound keeps it from going further.
    let alone = Job {
        invariant: Invariant::Absent,
        depth: Some(found.found.depth),
        seconds: Some(PATIENCE),
        ..job
    };
    let explored = best_of(runs, &[alone])?.remove(0);
    Ok(cells(&job, &found, time(&explored, &alone)))
}

fn cells(job: &Job, measured: &Measured, alone: String) -> [String; 11] {
    let found = measured.found;
    let start = match job.scenario {
        Scenario::LiveState => "the live state",
        Scenario::LastResponse | Scenario::Correct => "the beginning",
    };
    let verdict = match found.end {
        End::Holds => "holds".to_owned(),
        End::Violated(steps) => format!("violated, {steps} steps"),
        End::Cut => "none".to_owned(),
    };
    let pruning = match job.pruning {
        Pruning::Adaptive => "default".to_owned(),
        pruning => pruning.to_string(),
    };
    [
        start.to_owned(),
        pruning,
        verdict,
        time(measured, job),
        alone,
        grouped(found.depth),
        grouped(found.local.states),
        grouped(found.local.put_together),
        grouped(found.local.preliminary),
        grouped(found.local.searches),
        grouped(found.local.searched),
    ]
}
