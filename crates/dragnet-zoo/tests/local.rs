//! A search of parts says of every system what breadth first says.

use std::time::Duration;

use dragnet::catalog::{AnyCheck, Entry, Selection};
use dragnet::engine::{Local, Pruning};
use dragnet::{Control, Outcome, Verdict};

const LEVELS: [Pruning; 4] = [
    Pruning::Plain,
    Pruning::Coarse,
    Pruning::Refined,
    Pruning::Adaptive,
];

fn check(entry: &Entry, selection: &Selection<'_>) -> Box<dyn AnyCheck> {
    entry
        .check(selection)
        .expect("the selection fits the entry")
}

/// The verdict at one level, unless the engine cannot judge the properties.
fn verdict(
    entry: &Entry,
    selection: &Selection<'_>,
    pruning: Pruning,
    time: Duration,
) -> Option<Verdict> {
    let mut check = check(entry, selection);
    let options = check.options_mut();
    options.engine = Local::new().pruning(pruning).into();
    options.time = Some(time);
    check
        .objection()
        .is_none()
        .then(|| check.run_under(&Control::default()))
}

/// How long a level may take that need not end.
fn patience(pruning: Pruning) -> Duration {
    match pruning {
        Pruning::Plain | Pruning::Coarse => Duration::from_secs(1),
        _ => Duration::from_secs(120),
    }
}

#[test]
fn every_system_holds_at_every_level_that_ends() {
    for entry in dragnet_zoo::distributed() {
        let selection = Selection::of(&entry);
        for pruning in LEVELS {
            let Some(verdict) = verdict(&entry, &selection, pruning, patience(pruning)) else {
                continue;
            };
            let may_not_end = matches!(pruning, Pruning::Plain | Pruning::Coarse);
            let fits = match &verdict.outcome {
                Outcome::Holds => true,
                Outcome::Inconclusive(_) => may_not_end,
                Outcome::Violated(_) => false,
            };
            assert!(fits, "{} {pruning}: {:?}", entry.name(), verdict.outcome);
        }
    }
}

/// A bug that takes a global search many millions of states, and a local one too long for a test.
const LARGE: &str = "first-value";

#[test]
fn every_bug_is_found_at_every_level_that_ends_and_its_execution_replays() {
    for entry in dragnet_zoo::distributed() {
        for bug in entry.bugs().iter().filter(|bug| bug.name != LARGE) {
            let selection = Selection::of(&entry)
                .with_bug(bug.name)
                .expect("it is listed");
            for pruning in LEVELS {
                let Some(verdict) = verdict(&entry, &selection, pruning, patience(pruning)) else {
                    continue;
                };
                let Some(found) = verdict.counterexample() else {
                    let cut = matches!(verdict.outcome, Outcome::Inconclusive(_));
                    let may_not_end = matches!(pruning, Pruning::Plain | Pruning::Coarse);
                    assert!(
                        cut && may_not_end,
                        "{} {} {pruning}: {:?}",
                        entry.name(),
                        bug.name,
                        verdict.outcome
                    );
                    continue;
                };
                let mut again = check(&entry, &selection);
                again.set_name(verdict.system.clone());
                again
                    .replay(&found.trace)
                    .unwrap_or_else(|error| panic!("{} {}: {error}", entry.name(), bug.name));
            }
        }
    }
}
