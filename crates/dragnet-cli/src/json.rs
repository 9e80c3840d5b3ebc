//! What the commands print for programs. The names of fields are a promise.

use std::path::Path;

use dragnet::catalog::{Entry, Selection, Values};
use dragnet::engine::{EngineName, Seed};
use dragnet::trace::Trace;
use dragnet::verdict::Replay;
use dragnet::{Outcome, Verdict};
use serde_json::{Map, Value, json};

use crate::error::Error;

/// An object that is filled in the order in which it prints.
#[derive(Default)]
struct Object(Map<String, Value>);

impl Object {
    fn set(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }
}

/// Values under the names of their parameters.
pub(crate) fn parameters(values: &[(&'static str, dragnet::catalog::Value)]) -> Map<String, Value> {
    values
        .iter()
        .map(|&(name, set)| (name.to_owned(), value(set)))
        .collect()
}

fn value(set: dragnet::catalog::Value) -> Value {
    match set {
        dragnet::catalog::Value::Number(number) => number.into(),
        dragnet::catalog::Value::Choice(name) => name.into(),
    }
}

/// What a parameter was set to, as a command line would say it.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(name) => name.clone(),
        other => other.to_string(),
    }
}

/// A verdict on what was selected; `seed` is what random walks started from, `trace` the file of the counterexample.
pub(crate) fn verdict(
    verdict: &Verdict,
    selection: &Selection<'_>,
    seed: Option<Seed>,
    trace: Option<&Path>,
) -> Value {
    let statistics = &verdict.statistics;
    let violation = verdict.violation();
    let counterexample = verdict.counterexample();
    let (word, reason) = match &verdict.outcome {
        Outcome::Holds => ("holds", None),
        Outcome::Violated(_) => ("violated", None),
        Outcome::Inconclusive(reason) => ("inconclusive", Some(reason.as_str())),
    };
    let mut object = Object::default();
    object
        .set("system", verdict.system.as_str())
        .set("parameters", parameters(&selection.parameters()))
        .set("bug", selection.bug().map(|bug| bug.name))
        .set("faults", selection.faults().to_string())
        .set("within", verdict.within.clone())
        .set(
            "engine",
            verdict.explorer.as_deref().unwrap_or(verdict.engine.name()),
        )
        .set("decided_by", verdict.decided_by.name())
        .set("threads", verdict.threads)
        .set("exact", verdict.exact);
    if let Some(Seed(seed)) = seed {
        object.set("seed", seed);
    }
    object
        .set("verdict", word)
        .set("property", violation.map(|found| found.property.as_str()))
        .set("violation", violation.map(|found| found.describe()))
        .set("reason", reason)
        .set("states", statistics.states)
        .set("transitions", statistics.transitions)
        .set("depth", statistics.depth)
        .set("frontier", statistics.frontier)
        .set("seconds", statistics.elapsed.as_secs_f64())
        .set("peak_memory_bytes", statistics.peak_memory_bytes)
        .set("collision_probability", statistics.collision_probability)
        .set("coarse_hash", statistics.coarse_hash.as_deref());
    if statistics.states_estimated {
        object.set("states_estimated", true);
    }
    if let Some(kept) = statistics.sampled_states {
        object.set("sampled_states", kept);
    }
    if let Some(work) = statistics.nodes {
        object
            .set(
                "idle_deliveries",
                if work.skips_idle { "left out" } else { "taken" },
            )
            .set("local_states", work.local_states)
            .set("handler_runs", work.handler_runs)
            .set("digested", work.digested);
    }
    if let Some(local) = statistics.local {
        object.set("local_states", local.local_states);
    }
    if matches!(verdict.engine, EngineName::Local | EngineName::Auto) {
        // Null where breadth first was faster.
        let local = statistics.local;
        object
            .set("messages", local.map(|local| local.messages))
            .set("system_states", local.map(|local| local.system_states))
            .set(
                "preliminary_violations",
                local.map(|local| local.preliminary_violations),
            )
            .set(
                "soundness_checks",
                local.map(|local| local.soundness_checks),
            )
            .set(
                "soundness_states",
                local.map(|local| local.soundness_states),
            );
    }
    if let Some(work) = statistics.schedules {
        object
            .set("reduction", work.reduction.name())
            .set("executions", work.executions)
            .set("blocked_executions", work.blocked_executions)
            .set("scheduling_points", work.scheduling_points)
            .set("weakly_ordered", work.weakly_ordered);
    }
    if statistics.schedules.is_some() || !verdict.warnings.is_empty() {
        object.set("warnings", verdict.warnings.clone());
    }
    object
        .set("length", counterexample.map(|found| found.len()))
        .set("shortest", counterexample.map(|found| found.shortest))
        .set("trace", trace.map(|file| file.to_string_lossy()));
    Value::Object(object.0)
}

/// A trace in `file` that was run again. Whether there is a shorter one was not looked at.
pub(crate) fn replay(replay: &Replay, trace: &Trace, file: &Path) -> Value {
    json!({
        "system": trace.system,
        "parameters": trace.parameters,
        "bug": trace.bug,
        "faults": trace.faults,
        "verdict": "violated",
        "property": replay.property,
        "violation": replay.violation,
        "length": replay.counterexample.len(),
        "shortest": null,
        "trace": file.to_string_lossy(),
    })
}

/// A system as `list` shows it.
pub(crate) fn entry(entry: &Entry) -> Result<Value, Error> {
    let check = entry.check(&Selection::of(entry))?;
    let parameters_of = entry.parameters().iter().map(|parameter| {
        let mut object = Object::default();
        object
            .set("name", parameter.name)
            .set("default", value(parameter.default));
        match &parameter.values {
            Values::Numbers(range) => object
                .set("minimum", *range.start())
                .set("maximum", *range.end()),
            Values::Choices(names) => object.set("choices", names.clone()),
        };
        object.set("summary", parameter.summary);
        Value::Object(object.0)
    });
    let bugs = entry.bugs().iter().map(|bug| {
        json!({
            "name": bug.name,
            "summary": bug.summary,
            "parameters": parameters(&bug.parameters),
            "faults": bug.faults.to_string(),
        })
    });
    Ok(json!({
        "name": entry.name(),
        "summary": entry.summary(),
        "target": check.target_kind(),
        "parameters": parameters_of.collect::<Vec<_>>(),
        "faults": entry.own_faults().to_string(),
        "properties": check.properties(),
        "bugs": bugs.collect::<Vec<_>>(),
    }))
}
