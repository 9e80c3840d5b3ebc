//! The engine against a naive explorer on random systems.
//!
//! To the naive explorer a state is the list of local states, the list of messages in flight, and the budgets. What it
//! finds must be what every explorer finds.

mod naive;
mod systems;

use std::time::Duration;

use proptest::prelude::*;

use crate::{Engine, Outcome, Pruning, Verdict, ViolationKind};
use naive::{Naive, NaiveVerdict};
use systems::{Judged, RandomSystem, random_system};

fn compare(
    system: &RandomSystem,
    naive: &NaiveVerdict,
    verdict: &Verdict,
) -> Result<(), TestCaseError> {
    match (&naive.wrong, &verdict.outcome) {
        (None, Outcome::Holds) => {
            prop_assert_eq!(naive.states, verdict.states(), "states, {}", verdict.engine);
            prop_assert_eq!(
                naive.transitions,
                verdict.statistics.transitions,
                "transitions, {}",
                verdict.engine
            );
            if verdict.engine == Engine::Breadth {
                prop_assert_eq!(naive.depth, verdict.statistics.depth);
            }
        }
        (Some((length, what)), Outcome::Violated(violation)) => {
            let counterexample = violation
                .counterexample
                .as_ref()
                .expect("it was found on a path");
            if verdict.engine == Engine::Breadth {
                prop_assert!(
                    what.contains(&violation.property),
                    "{what:?} against {violation:?}"
                );
            }
            if verdict.engine == Engine::Breadth || counterexample.shortest {
                prop_assert_eq!(
                    *length,
                    counterexample.len() as u64,
                    "length, {}",
                    verdict.engine
                );
            }
            prop_assert!(!matches!(
                violation.kind,
                ViolationKind::PropertyPanicked(_)
            ));
            let replayed = system
                .check()
                .named(verdict.system.clone())
                .replay(&counterexample.trace);
            prop_assert!(replayed.is_ok(), "{:?}", replayed);
        }
        (expected, found) => prop_assert!(false, "expected {expected:?}, found {found:?}"),
    }
    Ok(())
}

fn cases() -> u32 {
    std::env::var("DRAGNET_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_explorer_finds_what_the_naive_one_finds(system in random_system()) {
        let Some(naive) = Naive::new(&system).explore(4_000) else {
            return Ok(());
        };
        let mut counterexamples = Vec::new();
        for (engine, threads, exact) in [
            (Engine::Breadth, 1, false),
            (Engine::Breadth, 2, false),
            (Engine::Breadth, 2, true),
            (Engine::Depth, 1, false),
            (Engine::Depth, 2, false),
            (Engine::Depth, 1, true),
        ] {
            let mut check = system.check().engine(engine).threads(threads);
            if exact {
                check = check.exact();
            }
            let verdict = check.run();
            compare(&system, &naive, &verdict)?;
            if engine == Engine::Breadth {
                counterexamples.push(verdict.counterexample().map(|found| found.trace.clone()));
            }
        }
        prop_assert!(counterexamples.windows(2).all(|pair| pair[0] == pair[1]), "breadth first is not deterministic");
    }

    #[test]
    fn a_search_of_parts_finds_what_breadth_first_finds(system in random_system(), judged in 0..Judged::ALL.len()) {
        if Naive::new(&system).explore(4_000).is_none() {
            return Ok(());
        }
        let judged = Judged::ALL[judged];
        let check = || system.check_of_nodes(judged).named("random");
        // Not every one of these is bounded as the naive search is.
        let breadth = check().threads(1).time(Duration::from_millis(500)).run();
        if matches!(breadth.outcome, Outcome::Inconclusive(_)) || breadth.states() > 4_000 {
            return Ok(());
        }
        for (pruning, threads) in [
            (Pruning::Plain, 1),
            (Pruning::Coarse, 1),
            (Pruning::Refined, 1),
            (Pruning::Refined, 2),
            (Pruning::Adaptive, 2),
        ] {
            let local = check().engine(Engine::Local).pruning(pruning).threads(threads);
            let most = match pruning {
                Pruning::Plain | Pruning::Coarse => Duration::from_millis(200),
                Pruning::Refined | Pruning::Adaptive => Duration::from_secs(60),
            };
            let local = local.time(most).run();
            match (&breadth.outcome, &local.outcome) {
                (Outcome::Holds, Outcome::Holds) => {
                    // Nothing but what happens is made where the network and the faults can be followed exactly.
                    let exact = system.is_followed_exactly() && !judged.bounds_the_whole();
                    if pruning == Pruning::Refined && exact {
                        let local = local.statistics.local.map(|local| local.local_states);
                        let nodes = breadth.statistics.nodes.map(|nodes| nodes.local_states);
                        prop_assert_eq!(local, nodes);
                    }
                }
                (Outcome::Violated(_), Outcome::Violated(violation)) => {
                    if let Some(counterexample) = &violation.counterexample {
                        let replayed = check().replay(&counterexample.trace);
                        prop_assert!(replayed.is_ok(), "{:?}", replayed);
                    } else {
                        prop_assert_eq!(&violation.kind, &ViolationKind::Unreached);
                    }
                }
                (_, Outcome::Inconclusive(_)) => {
                    prop_assert!(matches!(pruning, Pruning::Plain | Pruning::Coarse), "{pruning} does not end");
                }
                (expected, found) => prop_assert!(false, "{pruning}: expected {expected:?}, found {found:?}"),
            }
        }
    }

    #[test]
    fn a_depth_bound_cuts_exactly_what_lies_behind_it(system in random_system(), bound in 0..12_u64) {
        let Some(naive) = Naive::new(&system).explore(2_000) else {
            return Ok(());
        };
        for engine in [Engine::Breadth, Engine::Depth] {
            let verdict = system.check().engine(engine).depth(bound).threads(2).run();
            match (&naive.wrong, &verdict.outcome) {
                (Some((length, _)), Outcome::Violated(violation)) => {
                    prop_assert!(*length <= bound);
                    let counterexample = violation.counterexample.as_ref().expect("it was found on a path");
                    prop_assert!(counterexample.len() as u64 <= bound);
                }
                (Some((length, _)), outcome) => {
                    prop_assert!(*length > bound, "{engine} missed a violation of {length} steps: {outcome:?}");
                    prop_assert!(matches!(outcome, Outcome::Inconclusive(_)));
                }
                (None, Outcome::Holds) => {
                    prop_assert!(naive.depth <= bound, "{engine}");
                    prop_assert_eq!(naive.states, verdict.states());
                }
                (None, Outcome::Inconclusive(_)) => prop_assert!(naive.depth > bound, "{engine}"),
                (None, Outcome::Violated(violation)) => prop_assert!(false, "{violation:?}"),
            }
        }
    }
}
