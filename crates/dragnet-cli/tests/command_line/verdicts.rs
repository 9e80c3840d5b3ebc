//! What `check` says, to people and to programs, and where it leaves its traces.

use std::fs;

use serde_json::Value;

use crate::run::{HOLDS, INCONCLUSIVE, Place, VIOLATED, assert_says, keys};

#[test]
fn a_system_that_holds_exits_with_0_and_says_so() {
    let run = Place::new().expect("check two-phase-commit", HOLDS);
    assert_says(&run.stdout, &["two-phase-commit holds", "within", "states"]);
    assert!(
        !run.stdout.contains('\x1b'),
        "no colours where nobody looks"
    );
    assert_eq!(run.stderr, "", "no progress where nobody looks");
}

#[test]
fn handlers_that_run_twice_every_time_or_never_come_to_the_same() {
    for determinism in ["off", "sample", "always"] {
        // With two threads, both may run a handler at the same moment.
        let arguments = format!("check paxos --threads 1 --determinism {determinism}");
        let run = Place::new().expect(&arguments, HOLDS);
        assert_says(&run.stdout, &["3,381 distinct", "155 handler runs"]);
    }
}

#[test]
fn a_bug_exits_with_1_and_its_trace_replays_to_the_same_violation() {
    let place = Place::new();
    let check = place.expect("check tree --bug forwards-early", VIOLATED);
    assert_says(
        &check.stdout,
        &[
            "Counterexample",
            "tree violated: `nothing is received before it is sent`",
            "The trace is in tree-forwards-early.trace.json; run it again with: \
             dragnet replay tree-forwards-early.trace.json\n",
        ],
    );
    let replay = place.expect("replay tree-forwards-early.trace.json", VIOLATED);
    let steps = |text: &str| {
        let (_, rest) = text.split_once("  start\n").expect("a counterexample");
        rest.split_once("\n\n").expect("its end").0.to_owned()
    };
    assert_eq!(steps(&replay.stdout), steps(&check.stdout));
    assert_says(&replay.stdout, &["tree violated again: `nothing is"]);
}

#[test]
fn every_seeded_bug_shows_by_its_name_alone_and_replays() {
    let place = Place::new();
    let systems = place.expect("list --json", HOLDS).json();
    for system in systems.as_array().expect("an array") {
        let name = system["name"].as_str().expect("a name");
        for bug in system["bugs"].as_array().expect("an array") {
            let bug = bug["name"].as_str().expect("a name");
            // Walks come upon these bugs much faster than a search level by level.
            let check = place.run(&format!(
                "check {name} --bug {bug} --engine random --trace bug.json --json"
            ));
            assert_eq!(
                check.status, VIOLATED,
                "{name} --bug {bug}: {}",
                check.stdout
            );
            let replay = place.run("replay bug.json --json");
            assert_eq!(
                replay.status, VIOLATED,
                "{name} --bug {bug}: {}",
                replay.stderr
            );
            for field in [
                "system",
                "parameters",
                "bug",
                "faults",
                "property",
                "violation",
                "length",
            ] {
                assert_eq!(
                    replay.json()[field],
                    check.json()[field],
                    "{name} --bug {bug}"
                );
            }
        }
    }
}

#[test]
fn the_trace_goes_where_it_is_told() {
    let place = Place::new();
    let run = place.expect(
        "check tree --bug forwards-early --trace here.json",
        VIOLATED,
    );
    assert_says(&run.stdout, &["dragnet replay here.json"]);
    assert_eq!(place.files(), ["here.json"]);
}

#[test]
fn a_check_that_holds_leaves_no_file() {
    let place = Place::new();
    place.expect("check tree --trace here.json", HOLDS);
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn the_same_bug_gives_the_same_trace_with_any_number_of_threads() {
    let place = Place::new();
    let trace = |threads: u32| {
        let line =
            format!("check primary-backup --bug early-ack --threads {threads} --trace t.json");
        assert_eq!(place.run(&line).status, VIOLATED);
        fs::read_to_string(place.path().join("t.json")).expect("a trace")
    };
    assert_eq!(trace(1), trace(3));
}

#[test]
fn depth_first_search_finds_the_same_space() {
    let place = Place::new();
    let states = |engine: &str| {
        place
            .expect(&format!("check paxos --engine {engine} --json"), HOLDS)
            .json()["states"]
            .clone()
    };
    assert_eq!(states("depth"), states("breadth"));
}

#[test]
fn json_of_a_node_system_has_every_field_in_order() {
    let run = Place::new().expect("check paxos --set learners=2 --threads 2 --json", HOLDS);
    assert_eq!(run.stdout.lines().count(), 1);
    let verdict = run.json();
    assert_eq!(
        keys(&verdict),
        [
            "system",
            "parameters",
            "bug",
            "faults",
            "within",
            "engine",
            "decided_by",
            "threads",
            "exact",
            "verdict",
            "property",
            "violation",
            "reason",
            "states",
            "transitions",
            "depth",
            "frontier",
            "seconds",
            "peak_memory_bytes",
            "collision_probability",
            "coarse_hash",
            "idle_deliveries",
            "local_states",
            "handler_runs",
            "digested",
            "length",
            "shortest",
            "trace",
        ]
    );
    assert_eq!(verdict["system"], "paxos");
    assert_eq!(verdict["parameters"]["learners"], 2);
    assert_eq!(verdict["parameters"]["nodes"], 3);
    assert_eq!(verdict["faults"], "");
    assert_eq!(verdict["within"][0], "3 nodes");
    assert_eq!(verdict["engine"], "breadth");
    assert_eq!(verdict["threads"], 2);
    assert_eq!(verdict["exact"], false);
    assert_eq!(verdict["verdict"], "holds");
    assert_eq!(verdict["digested"], false);
    for field in [
        "bug",
        "property",
        "violation",
        "reason",
        "coarse_hash",
        "length",
        "shortest",
        "trace",
    ] {
        assert!(verdict[field].is_null(), "{field} of {verdict}");
    }
    for field in [
        "states",
        "transitions",
        "depth",
        "peak_memory_bytes",
        "local_states",
        "handler_runs",
    ] {
        assert!(verdict[field].as_u64() > Some(0), "{field} of {verdict}");
    }
    for field in ["seconds", "collision_probability"] {
        assert!(verdict[field].is_f64(), "{field} of {verdict}");
    }
}

#[test]
fn json_of_a_direct_system_has_no_nodes_to_tell_of() {
    let run = Place::new().expect("check two-phase-commit-model --exact --json", HOLDS);
    let verdict = run.json();
    assert_eq!(verdict["exact"], true);
    assert_eq!(verdict["collision_probability"], 0.0);
    assert!(verdict.get("local_states").is_none());
    assert!(verdict.get("handler_runs").is_none());
    assert!(verdict.get("seed").is_none());
    assert!(verdict.get("sampled_states").is_none());
}

#[test]
fn a_direct_system_says_how_many_of_its_states_were_compared() {
    let place = Place::new();
    let run = place.expect("check two-phase-commit-model --set rms=3 --json", HOLDS);
    let verdict = run.json();
    assert_eq!(verdict["sampled_states"], verdict["states"]);
    let run = place.expect("check two-phase-commit-model --set rms=3", HOLDS);
    let kept = format!("{} states were kept and compared", verdict["states"]);
    assert_says(&run.stdout, &[&kept]);
}

#[test]
fn json_of_a_violation_says_what_where_and_how_long() {
    let place = Place::new();
    let run = place.expect(
        "check primary-backup --bug early-ack --faults crashes=1,restarts=0 --json",
        VIOLATED,
    );
    let verdict = run.json();
    assert_eq!(verdict["bug"], "early-ack");
    assert_eq!(verdict["faults"], "crashes=1,restarts=0");
    assert_eq!(verdict["verdict"], "violated");
    assert_eq!(verdict["property"], "an acknowledged write is never lost");
    assert_eq!(verdict["shortest"], true);
    let file = verdict["trace"].as_str().expect("a file");
    assert_eq!(file, "primary-backup-early-ack.trace.json");
    let text = fs::read_to_string(place.path().join(file)).expect("a trace");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        trace["steps"].as_array().map(Vec::len),
        verdict["length"].as_u64().map(|n| n as usize)
    );
    assert_eq!(trace["parameters"], verdict["parameters"]);
    assert_eq!(trace["bug"], "early-ack");
    assert_eq!(trace["faults"], "crashes=1,restarts=0");
}

#[test]
fn json_of_random_walks_has_their_seed_and_no_proof() {
    for engine in ["random", "pct"] {
        let line = format!("check two-phase-commit --engine {engine} --walks 50 --seed 7 --json");
        let verdict = Place::new().expect(&line, INCONCLUSIVE).json();
        assert_eq!(verdict["engine"], engine);
        assert_eq!(verdict["seed"], 7);
        assert_eq!(verdict["reason"], "50 random walks are no proof");
    }
}

#[test]
fn the_engine_dpor_is_understood_under_its_former_name() {
    for name in ["dpor", "schedules"] {
        let run = Place::new().expect(&format!("check readers --engine {name} --json"), HOLDS);
        let verdict = run.json();
        assert_eq!(verdict["engine"], "dpor");
        assert_eq!(verdict["executions"], 256);
    }
}
