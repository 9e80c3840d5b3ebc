//! What is measured: Paxos as section 5 of the paper has it, searched in some way.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::time::Duration;

use clap::{Args, ValueEnum};
use dragnet::engine::{Engine, EngineName, EngineOption, Pruning};
use dragnet::nodes::{NodeView, Snapshot};
use dragnet::trace::SavedState;
use dragnet::{Check, Cluster, Control, Outcome, Verdict};
use dragnet_zoo::paxos::{self, Index, Memory, Mistake, Replica, Value};
use serde::{Deserialize, Serialize};

use crate::measure::{self, argument};

/// A search of Paxos with one decision. As arguments, it is what a child is told.
#[derive(Args, Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// How many nodes there are.
    #[arg(long)]
    pub nodes: usize,
    /// How many of them propose a value.
    #[arg(long)]
    pub proposers: usize,
    /// What is seeded, and where the search starts.
    #[arg(long, value_enum)]
    pub scenario: Scenario,
    /// How agreement is said.
    #[arg(long, value_enum)]
    pub invariant: Invariant,
    /// The engine that searches.
    #[arg(long)]
    pub engine: EngineName,
    /// How much of what cannot happen the local engine leaves out.
    #[arg(long)]
    pub pruning: Pruning,
    /// With how many threads.
    #[arg(long)]
    pub threads: usize,
    /// How many steps an execution, or the history of a node, may have.
    #[arg(long)]
    pub depth: Option<u64>,
    /// After how many seconds it is given up.
    #[arg(long)]
    pub seconds: Option<u64>,
}

/// What is seeded, and where the search starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Nothing is wrong, and it starts at the beginning.
    Correct,
    /// The bug of section 5.5, from the beginning.
    LastResponse,
    /// That bug, from the live state that the paper's tool started in when it found it.
    LiveState,
}

/// How agreement is said, which decides what the local engine can do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Invariant {
    /// Not at all: there is nothing to judge.
    Absent,
    /// As a condition on the whole system, which says nothing of how it looks at nodes (LMC-GEN).
    Opaque,
    /// As agreement of two nodes each (LMC-OPT).
    Directed,
}

/// How a search ended, and what it went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// How it ended.
    pub end: End,
    /// Whether it was the local engine that decided.
    pub decided_by_local: bool,
    /// Distinct states; local states with their labels or histories where nodes are explored one by one.
    pub states: u64,
    /// Steps taken.
    pub transitions: u64,
    /// The length of the longest execution or history.
    pub depth: u64,
    /// How often a handler ran.
    pub handler_runs: u64,
    /// What the local engine did; all zero for the others.
    pub local: Local,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// Agreement holds in the whole space.
    Holds,
    /// It does not: an execution of so many steps.
    Violated(usize),
    /// A limit cut it short.
    Cut,
}

/// What the local engine did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Local {
    /// Distinct local states.
    pub states: u64,
    /// States of the whole system, or of two nodes, that were put together.
    pub put_together: u64,
    /// How often something wrong was met that might not be able to happen.
    pub preliminary: u64,
    /// How often it was tried to find an execution for it.
    pub searches: u64,
    /// Through how many states.
    pub searched: u64,
}

const LIVE_STATE: &str = include_str!("../../../dragnet-zoo/states/paxos-learned-by-one.json");

impl Job {
    /// Three nodes of which one proposes, nothing is wrong, directed, one thread, no limits.
    pub const fn new(engine: EngineName) -> Self {
        Self {
            nodes: 3,
            proposers: 1,
            scenario: Scenario::Correct,
            invariant: Invariant::Directed,
            engine,
            pruning: Pruning::Adaptive,
            threads: 1,
            depth: None,
            seconds: None,
        }
    }

    fn check(&self) -> Check<Cluster<Replica>> {
        let mistake = match self.scenario {
            Scenario::Correct => None,
            Scenario::LastResponse | Scenario::LiveState => Some(Mistake::LastResponse),
        };
        let replica = Replica {
            learners: self.nodes,
            mistake,
        };
        let cluster = paxos::cluster(self.nodes, self.proposers, 1, replica).serializable();
        let mut check = Check::new(cluster).named("paxos");
        check = match self.invariant {
            Invariant::Absent => check,
            Invariant::Opaque => check.always("agreement", all_agree),
            Invariant::Directed => check.always_agree("agreement", chosen),
        };
        if self.scenario == Scenario::LiveState {
            let state: SavedState =
                serde_json::from_str(LIVE_STATE).expect("the zoo's states can be read");
            check = check
                .starting_from(&state)
                .expect("it is a state of three nodes");
        }
        let engine = Engine::from(self.engine);
        let pruned = engine.with(EngineOption::Pruning(self.pruning));
        check = check.engine(pruned.unwrap_or(engine)).threads(self.threads);
        if let Some(depth) = self.depth {
            check = check.depth(depth);
        }
        if let Some(seconds) = self.seconds {
            check = check.time(Duration::from_secs(seconds));
        }
        check
    }
}

/// What a node has learned, if it has learned something.
fn chosen(node: NodeView<'_, Replica>) -> Option<Vec<(Index, Value)>> {
    let choices = choices_of(node.memory()?);
    (!choices.is_empty()).then_some(choices)
}

fn choices_of(memory: &Memory) -> Vec<(Index, Value)> {
    let choices = memory.choices();
    choices.map(|(index, &value)| (index, value)).collect()
}

/// The same as agreement of what each has `chosen`.
fn all_agree(s: Snapshot<'_, Replica>) -> bool {
    let mut learned = s
        .nodes()
        .map(choices_of)
        .filter(|choices| !choices.is_empty());
    let first = learned.next();
    learned.all(|choices| Some(choices) == first)
}

impl Found {
    fn of(verdict: &Verdict) -> Self {
        let statistics = &verdict.statistics;
        let local = statistics.local.unwrap_or_default();
        Self {
            end: match &verdict.outcome {
                Outcome::Holds => End::Holds,
                Outcome::Violated(violation) => End::Violated(
                    violation
                        .counterexample
                        .as_ref()
                        .map_or(0, |execution| execution.len()),
                ),
                Outcome::Inconclusive(_) => End::Cut,
            },
            decided_by_local: verdict.decided_by == EngineName::Local,
            states: statistics.states,
            transitions: statistics.transitions,
            depth: statistics.depth,
            handler_runs: statistics.nodes.map_or(0, |work| work.handler_runs),
            local: Local {
                states: local.local_states,
                put_together: local.system_states,
                preliminary: local.preliminary_violations,
                searches: local.soundness_checks,
                searched: local.soundness_states,
            },
        }
    }
}

impl measure::Job for Job {
    type Found = Found;

    fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["local".into()];
        let mut say = |name: &str, value: String| {
            arguments.extend([name.into(), value.into()]);
        };
        say("--nodes", self.nodes.to_string());
        say("--proposers", self.proposers.to_string());
        say("--scenario", argument(self.scenario));
        say("--invariant", argument(self.invariant));
        say("--engine", self.engine.to_string());
        say("--pruning", self.pruning.to_string());
        say("--threads", self.threads.to_string());
        for (name, limit) in [("--depth", self.depth), ("--seconds", self.seconds)] {
            if let Some(limit) = limit {
                say(name, limit.to_string());
            }
        }
        arguments
    }

    fn run(&self) -> Found {
        Found::of(&self.check().run_under(&Control::default()))
    }
}

impl Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            nodes, proposers, ..
        } = self;
        write!(f, "{nodes} nodes, {proposers} proposing")?;
        match self.scenario {
            Scenario::Correct => {}
            Scenario::LastResponse => f.write_str(", with the bug")?,
            Scenario::LiveState => f.write_str(", with the bug, from the live state")?,
        }
        if let Some(depth) = self.depth {
            write!(f, ", at most {depth} steps")?;
        }
        let threads = match self.threads {
            1 => "1 thread".to_owned(),
            many => format!("{many} threads"),
        };
        write!(f, " ({threads}): {}", self.engine)?;
        if self.engine == EngineName::Local {
            let invariant = match self.invariant {
                Invariant::Absent => "nothing to judge",
                Invariant::Opaque => "opaque",
                Invariant::Directed => "directed",
            };
            write!(f, ", {}, {invariant}", self.pruning)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::measure::Job as _;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        job: Job,
    }

    #[test]
    fn a_child_is_told_all_of_a_job() {
        let limited = Job {
            nodes: 5,
            proposers: 2,
            scenario: Scenario::LastResponse,
            invariant: Invariant::Opaque,
            pruning: Pruning::Plain,
            threads: 2,
            depth: Some(7),
            seconds: Some(20),
            ..Job::new(EngineName::Local)
        };
        for job in [limited, Job::new(EngineName::Auto)] {
            assert_eq!(Line::parse_from(job.arguments()).job, job);
        }
    }

    #[test]
    fn both_ways_to_say_agreement_hold_of_the_same_space() {
        let local = Job::new(EngineName::Local);
        let opaque = Job {
            invariant: Invariant::Opaque,
            ..local
        };
        let [breadth, directed, opaque] =
            [Job::new(EngineName::Breadth), local, opaque].map(|job| job.run());
        assert_eq!((breadth.end, breadth.states), (End::Holds, 3_381));
        assert_eq!((directed.end, directed.local.states), (End::Holds, 94));
        assert_eq!((opaque.end, opaque.local.states), (End::Holds, 94));
        assert_eq!(directed.local.put_together, 0);
        assert!(opaque.local.put_together > opaque.local.states);
    }

    #[test]
    fn both_ways_to_say_agreement_find_the_bug_from_the_live_state() {
        for invariant in [Invariant::Opaque, Invariant::Directed] {
            let job = Job {
                proposers: 2,
                scenario: Scenario::LiveState,
                invariant,
                ..Job::new(EngineName::Local)
            };
            assert_eq!(job.run().end, End::Violated(9), "{job}");
        }
    }

    #[test]
    fn nothing_is_wrong_where_nothing_is_judged() {
        let job = Job {
            proposers: 2,
            scenario: Scenario::LiveState,
            invariant: Invariant::Absent,
            depth: Some(6),
            ..Job::new(EngineName::Local)
        };
        assert_eq!(job.run().end, End::Cut);
    }
}
