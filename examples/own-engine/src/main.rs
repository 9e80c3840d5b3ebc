//! An engine of one's own: iterative deepening, written on the cursor that `dragnet::extend` offers.
//!
//! It explores depth first up to a bound on the steps of an execution, and begins anew with a larger bound until nothing is cut
//! any more. So the first violation that it meets is a shortest one. It knows neither the target nor its properties: the same
//! 60 lines check nodes, direct systems and multithreaded programs.
//!
//! `cargo run --release -p own-engine` has it look for the seeded bugs of the bundled systems.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use dragnet::catalog::{Entry, Selection};
use dragnet::engine::DepthBound;
use dragnet::extend::{Arrival, Cursor, Explorer, Extent};
use dragnet::trace::Fingerprint;
use dragnet::{Control, Verdict};

/// Depth first within 1 step, then within 2, and so on.
struct IterativeDeepening;

impl Explorer for IterativeDeepening {
    fn name(&self) -> &str {
        "iterative-deepening"
    }

    fn explore(&self, cursor: &mut dyn Cursor) -> Extent {
        let last = cursor.depth().map_or(u64::MAX, |DepthBound(steps)| steps);
        for bound in 1..=last {
            let mut search = Bounded::default();
            for start in 0..cursor.starts() {
                if cursor.begin(start) == Arrival::Inside && search.below(cursor, bound).is_break()
                {
                    return Extent::Part("the search ended early");
                }
            }
            if !search.cut {
                return Extent::Everything;
            }
        }
        Extent::Part("executions that are longer than the bound were left out")
    }
}

/// A depth-first search within a bound.
#[derive(Default)]
struct Bounded {
    /// For each visited state, how many steps could be taken from there.
    visited: HashMap<Fingerprint, u64>,
    /// Whether the bound has left out anything.
    cut: bool,
}

impl Bounded {
    /// Searches behind the state of the cursor, so many steps deep. It breaks off when the search is over.
    fn below(&mut self, cursor: &mut dyn Cursor, left: u64) -> ControlFlow<()> {
        if cursor.must_end() {
            return ControlFlow::Break(());
        }
        // A state that is met again with more steps to go is expanded again.
        let known = self.visited.insert(cursor.fingerprint(), left);
        if let Some(known) = known.filter(|&known| known >= left) {
            self.visited.insert(cursor.fingerprint(), known);
            return ControlFlow::Continue(());
        }
        let enabled = cursor.enabled();
        if left == 0 {
            self.cut |= enabled > 0;
            return ControlFlow::Continue(());
        }
        let here = cursor.steps();
        for position in 0..enabled {
            match cursor.take(position) {
                Arrival::Inside => {
                    self.below(cursor, left - 1)?;
                    cursor.back_to(here);
                }
                Arrival::Outside => {}
                _ => return ControlFlow::Break(()),
            }
        }
        ControlFlow::Continue(())
    }
}

/// Looks for a seeded bug, for so long.
fn look_for(entry: &Entry, bug: &str, time: Duration) -> Verdict {
    let selection = Selection::of(entry).with_bug(bug).expect("it is listed");
    let mut check = entry.check(&selection).expect("its parameters fit");
    check.set_explorer(Arc::new(IterativeDeepening));
    check.options_mut().time = Some(time);
    check.run_under(&Control::default())
}

fn main() {
    let systems = dragnet_zoo::distributed()
        .into_iter()
        .chain(dragnet_zoo::threads::entries());
    for entry in systems {
        for bug in entry.bugs() {
            let verdict = look_for(&entry, bug.name, Duration::from_secs(30));
            let found = match verdict.counterexample() {
                Some(found) => format!("{} steps", found.len()),
                None => "not found".to_owned(),
            };
            let seconds = verdict.statistics.elapsed.as_secs_f64();
            println!(
                "{:24} {:24} {found:12} {seconds:6.2} s",
                entry.name(),
                bug.name
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use dragnet::catalog::find;
    use dragnet::engine::Breadth;
    use dragnet::verdict::Counterexample;

    use super::*;

    /// How many steps it takes to the bug, by this engine and breadth first.
    fn steps_to(system: &str, bug: &str) -> [Option<usize>; 2] {
        let mut systems = dragnet_zoo::distributed();
        systems.extend(dragnet_zoo::threads::entries());
        let entry = find(&systems, system).expect("it is bundled");
        let selection = Selection::of(entry).with_bug(bug).expect("it is listed");
        let mut breadth_first = entry.check(&selection).expect("its parameters fit");
        breadth_first.options_mut().engine = Breadth::new().into();
        let verdicts = [
            look_for(entry, bug, Duration::from_secs(120)),
            breadth_first.run_under(&Control::default()),
        ];
        verdicts.map(|verdict| verdict.counterexample().map(Counterexample::len))
    }

    #[test]
    fn bugs_of_nodes_and_of_threads_are_found_by_shortest_executions() {
        for (system, bug) in [
            ("two-phase-commit", "majority"),
            ("primary-backup", "early-ack"),
            ("ring-election", "wrong-comparison"),
            ("locked-philosophers", "left-first"),
            ("connection-pool", "lock-order"),
        ] {
            let [steps, shortest] = steps_to(system, bug);
            assert!(steps.is_some(), "{system} {bug}");
            assert_eq!(steps, shortest, "{system} {bug}");
        }
    }

    #[test]
    fn what_has_no_violation_holds_as_this_engine_says() {
        let systems = dragnet_zoo::distributed();
        let entry = find(&systems, "tree").expect("it is bundled");
        let mut check = entry
            .check(&Selection::of(entry))
            .expect("it can be checked");
        check.set_explorer(Arc::new(IterativeDeepening));
        let verdict = check.run_under(&Control::default());
        assert!(verdict.holds(), "{verdict}");
        assert!(
            verdict
                .within
                .iter()
                .any(|bound| bound.contains("iterative-deepening"))
        );
    }
}
