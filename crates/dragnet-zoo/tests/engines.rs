//! Every engine says the same of every system.

use dragnet::catalog::{Entry, Selection};
use dragnet::engine::Options;
use dragnet::engine::{EngineName, Random};
use dragnet::{Control, Verdict};

fn run(entry: &Entry, selection: &Selection<'_>, set: impl Fn(&mut Options)) -> Verdict {
    let mut check = entry
        .check(selection)
        .expect("the selection fits the entry");
    set(check.options_mut());
    check.run_under(&Control::default())
}

#[test]
fn breadth_depth_and_exact_agree_on_the_states_of_every_system_with_one_thread_and_two() {
    for entry in dragnet_zoo::distributed() {
        let selection = Selection::of(&entry);
        let mut counts = Vec::new();
        for engine in [EngineName::Breadth, EngineName::Depth] {
            for threads in [1, 2] {
                for exact in [false, true] {
                    let verdict = run(&entry, &selection, |options| {
                        options.engine = engine.into();
                        options.threads = threads;
                        options.exact = exact;
                    });
                    assert!(verdict.holds(), "{}: {:?}", entry.name(), verdict.outcome);
                    counts.push((verdict.states(), verdict.statistics.transitions));
                }
            }
        }
        counts.dedup();
        assert_eq!(counts.len(), 1, "{}: {counts:?}", entry.name());
    }
}

/// Bugs whose space is too large to walk here more than once.
const LARGE: [&str; 2] = ["first-value", "forget-on-restart"];

#[test]
fn breadth_first_gives_the_same_counterexample_with_any_number_of_threads_run_after_run() {
    for entry in dragnet_zoo::distributed() {
        for bug in entry.bugs().iter().filter(|bug| !LARGE.contains(&bug.name)) {
            let selection = Selection::of(&entry)
                .with_bug(bug.name)
                .expect("it is listed");
            let traces: Vec<_> = [1, 2, 2]
                .map(|threads| run(&entry, &selection, |options| options.threads = threads))
                .into_iter()
                .map(|verdict| verdict.counterexample().map(|found| found.trace.clone()))
                .collect();
            assert!(traces[0].is_some(), "{} {}", entry.name(), bug.name);
            assert!(
                traces.windows(2).all(|pair| pair[0] == pair[1]),
                "{} {}",
                entry.name(),
                bug.name
            );
        }
    }
}

#[test]
fn random_walks_find_every_bug_with_a_fixed_seed() {
    for entry in dragnet_zoo::distributed() {
        for bug in entry.bugs() {
            let selection = Selection::of(&entry)
                .with_bug(bug.name)
                .expect("it is listed");
            let verdict = run(&entry, &selection, |options| {
                options.engine = Random::new().seed(1).walks(1_000_000).into();
            });
            assert!(
                verdict.counterexample().is_some(),
                "{} {}",
                entry.name(),
                bug.name
            );
        }
    }
}
