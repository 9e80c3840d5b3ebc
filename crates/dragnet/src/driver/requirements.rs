//! What an engine needs of a check: a target that offers it, and options that it reads.

use crate::check::Check;
use crate::engine::{Dpor, Engine, EngineName, Local};
use crate::options::Determinism;
use crate::property::{Claim, Property};
use crate::target::{Target, TargetKind};

/// The changes are drawn before a walk begins.
const MOST_PRIORITY_CHANGES: u32 = 1_000_000;

/// As many OS threads as a search may have.
const MOST_WORKERS: usize = 1024;

/// Why the check cannot be explored by its engine, if it cannot, with the engines that can.
pub(crate) fn unmet_requirement<T: Target>(check: &Check<T>) -> Option<String> {
    if check.options.threads > MOST_WORKERS {
        return Some(format!(
            "a search has at most {MOST_WORKERS} threads, and {} are asked for",
            check.options.threads
        ));
    }
    let is_multithreaded = check.target.kind() == TargetKind::Threads;
    if check.options.patience.is_some() && is_multithreaded {
        return Some(
            "a multithreaded program has a patience of its own, `Threads::patience`; leave this one out"
                .to_owned(),
        );
    }
    if check.options.exact && is_multithreaded {
        return Some(
            "happens-before histories of a multithreaded program are told apart by their fingerprints, and never compared \
             as a whole; leave `exact` out"
                .to_owned(),
        );
    }
    let options = &check.options;
    if options.exact && check.explorer.is_some() {
        return Some(
            "an engine of one's own tells states apart by their fingerprints; leave `exact` out"
                .to_owned(),
        );
    }
    if options.exact && options.engine.walks().is_some() {
        return Some(format!(
            "the engine {} keeps no states, so there are none to compare as a whole; leave `exact` out",
            options.engine
        ));
    }
    if options.determinism != Determinism::default() && check.target.kind() != TargetKind::Nodes {
        return Some(
            "only handlers of nodes are run twice, and this has none; leave `determinism` out"
                .to_owned(),
        );
    }
    match options.engine {
        Engine::Auto(auto) if is_multithreaded && auto.local != Local::default() => Some(
            "the engine auto explores a multithreaded program with dpor, which has no pruning; leave it out"
                .to_owned(),
        ),
        Engine::Auto(auto) if !is_multithreaded && auto.dpor != Dpor::default() => Some(
            "the engine auto explores this with local and breadth, which have no reduction and no bound on preemptions; \
             leave them out"
                .to_owned(),
        ),
        Engine::Pct(pct) if pct.priority_changes > MOST_PRIORITY_CHANGES => Some(format!(
            "priorities change at most {MOST_PRIORITY_CHANGES} times on a walk, and {} are asked for",
            pct.priority_changes
        )),
        Engine::Local(_) if check.options.exact => Some(
            "the local engine tells pasts apart by their fingerprints; use the engine breadth or depth to have \
             whole states compared"
                .to_owned(),
        ),
        Engine::Local(_) => unmet_by_parts(check),
        Engine::Dpor(_) => unmet_by_schedules(check),
        _ => None,
    }
}

/// Why schedules cannot be explored, if they cannot.
fn unmet_by_schedules<T: Target>(check: &Check<T>) -> Option<String> {
    if check.target.kind() != TargetKind::Threads {
        let others = EngineName::ALL
            .into_iter()
            .filter(|&engine| engine != EngineName::Dpor);
        let others: Vec<&str> = others.map(EngineName::name).collect();
        return Some(format!(
            "the engine dpor runs multithreaded programs, and this is none; use another engine: {}",
            others.join(", ")
        ));
    }
    let is_of_states =
        |property: &&Property<T::System>| !matches!(property.claim, Claim::DeadlockFree);
    let of_states = check
        .properties
        .iter()
        .find(is_of_states)
        .map(|property| &property.name);
    let of_states = of_states.or_else(|| check.within.first().map(|bound| &bound.name))?;
    Some(format!(
        "`{of_states}` reads every state of every schedule, and the engine dpor leaves out schedules that are equivalent to \
         others; use the engine breadth, depth or random, or assert it in the program"
    ))
}

/// Why nodes cannot be explored one by one, if they cannot.
fn unmet_by_parts<T: Target>(check: &Check<T>) -> Option<String> {
    const OTHERS: &str = "use the engine breadth, depth or random, or auto";
    if check.target.kind() == TargetKind::Threads {
        return Some(
            "the local engine explores the nodes of a cluster one by one, and this is a multithreaded program; use the engine \
             dpor, breadth, depth or random"
                .to_owned(),
        );
    }
    if check.target.kind() != TargetKind::Nodes {
        return Some(format!(
            "the local engine explores the nodes of a cluster one by one, and this is no cluster; {OTHERS}"
        ));
    }
    let of_the_network = |property: &&Property<T::System>| property.looks_at_the_network();
    let property = check.properties.iter().find(of_the_network)?;
    Some(format!(
        "`{}` looks at what is in flight, and the local engine explores nodes without the network between them; \
         {OTHERS}",
        property.name
    ))
}
