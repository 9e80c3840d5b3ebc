//! What more threads gain, and what it costs to let two engines race.

use dragnet::engine::{EngineName, Pruning};

use super::job::Job;
use super::{LocalError, Measured, best_of, seconds};
use crate::table;
use crate::turns::Effort;

/// Two ways to search the same, of which the second is to be held to the first.
struct Pair {
    title: &'static str,
    jobs: [Job; 2],
    goal: Goal,
}

/// How the second of a pair is to do.
#[derive(Clone, Copy)]
enum Goal {
    /// At least so many times as fast.
    Faster(f64),
    /// At most so many times the time.
    Within(f64),
    /// At most so many seconds more.
    Longer(f64),
}

impl Goal {
    fn describe(self) -> String {
        match self {
            Self::Faster(times) => format!("{times} times as fast"),
            Self::Within(times) => format!("{times} times the time"),
            Self::Longer(more) => format!("{more} s more"),
        }
    }

    /// How the second does.
    fn result(self, first: f64, second: f64) -> String {
        match self {
            Self::Faster(_) => format!("{:.2} times as fast", first / second),
            Self::Within(_) => format!("{:.2} times the time", second / first),
            Self::Longer(_) => format!("{:.2} s more", (second - first).max(0.0)),
        }
    }

    fn is_reached(self, first: f64, second: f64) -> bool {
        match self {
            Self::Faster(times) => first / second >= times,
            Self::Within(times) => second / first <= times,
            Self::Longer(more) => second - first <= more,
        }
    }
}

fn pairs() -> [Pair; 4] {
    let of = |engine, nodes, proposers| Job {
        nodes,
        proposers,
        threads: 2,
        ..Job::new(engine)
    };
    let threads = |nodes, pruning| {
        [1, 2].map(|threads| Job {
            threads,
            pruning,
            ..of(EngineName::Local, nodes, 1)
        })
    };
    [
        Pair {
            title: "5 nodes, 1 proposes: local, then auto",
            jobs: [of(EngineName::Local, 5, 1), of(EngineName::Auto, 5, 1)],
            goal: Goal::Longer(0.2),
        },
        Pair {
            title: "3 nodes, 2 propose: breadth first, then auto",
            jobs: [of(EngineName::Breadth, 3, 2), of(EngineName::Auto, 3, 2)],
            goal: Goal::Within(1.4),
        },
        Pair {
            title: "9 nodes, 1 proposes, local and coarse: one thread, then two",
            jobs: threads(9, Pruning::Coarse),
            goal: Goal::Faster(1.6),
        },
        Pair {
            title: "8 nodes, 1 proposes, local and refined: one thread, then two",
            jobs: threads(8, Pruning::Refined),
            goal: Goal::Faster(1.6),
        },
    ]
}

/// Measures each pair in turn, and holds it to its goal.
pub fn of_threads_and_engines(effort: Effort) -> Result<(), LocalError> {
    println!("\n### Threads and engines\n");
    let columns = [
        "the first",
        "the second",
        "the second is",
        "goal",
        "reached",
    ];
    println!("{}", table::head(&["what"], &columns));
    let pairs = pairs();
    let pairs = if effort.short_only {
        &pairs[..1]
    } else {
        &pairs[..]
    };
    for pair in pairs {
        let best = best_of(effort.runs, &pair.jobs)?;
        println!("{}", table::row(&cells(pair, &best[0], &best[1])));
    }
    Ok(())
}

fn cells(pair: &Pair, first: &Measured, second: &Measured) -> [String; 6] {
    let (first, second) = (first.seconds, second.seconds);
    let reached = pair.goal.is_reached(first, second);
    [
        pair.title.to_owned(),
        seconds(first),
        seconds(second),
        pair.goal.result(first, second),
        pair.goal.describe(),
        if reached { "yes" } else { "no" }.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_reached_from_the_side_that_it_names() {
        assert!(Goal::Faster(1.6).is_reached(16.0, 10.0));
        assert!(!Goal::Faster(1.6).is_reached(15.0, 10.0));
        assert!(Goal::Within(1.4).is_reached(10.0, 14.0));
        assert!(!Goal::Within(1.4).is_reached(10.0, 15.0));
        assert!(Goal::Longer(0.2).is_reached(1.0, 1.1));
        assert!(!Goal::Longer(0.2).is_reached(1.0, 1.3));
    }

    #[test]
    fn a_result_is_said_in_the_words_of_its_goal() {
        assert_eq!(Goal::Faster(1.6).result(18.0, 10.0), "1.80 times as fast");
        assert_eq!(Goal::Within(1.4).result(10.0, 13.0), "1.30 times the time");
        assert_eq!(Goal::Longer(0.2).result(1.0, 0.9), "0.00 s more");
    }

    #[test]
    fn pairs_differ_in_engine_or_threads_alone() {
        for Pair { title, jobs, .. } in pairs() {
            let [first, second] = jobs;
            let alike = Job {
                engine: first.engine,
                threads: first.threads,
                ..second
            };
            assert_eq!(alike, first, "{title}");
            assert_ne!(first, second, "{title}");
        }
    }
}
