//! Bad usage, bad input, and output that goes nowhere: one clear line each.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::run::{BAD_INPUT, HOLDS, Place, Run, VIOLATED, assert_says};

#[test]
fn bad_usage_gets_one_line_that_names_the_choices() {
    let place = Place::new();
    let cases: &[(&str, &[&str])] = &[
        (
            "check nonsense",
            &["no system `nonsense`", "paxos, two-phase-commit"],
        ),
        ("check paxo", &["did you mean `paxos`?"]),
        ("check", &["<SYSTEM>", "dragnet list"]),
        (
            "check paxos --set proposers=banana",
            &["proposers cannot be `banana`", "from 0 to 9"],
        ),
        (
            "check paxos --set proposers=10",
            &["proposers cannot be `10`", "from 0 to 9"],
        ),
        (
            "check paxos --set proposers=5",
            &["paxos cannot be checked", "more proposers than nodes"],
        ),
        (
            "check paxos --set propsers=2",
            &[
                "no parameter `propsers`",
                "nodes, proposers",
                "did you mean `proposers`?",
            ],
        ),
        ("check paxos --set proposers", &["NAME=VALUE"]),
        (
            "check paxos --bug nonsense",
            &["no bug `nonsense`", "last-response, first-value"],
        ),
        (
            "check paxos --bug last-responce",
            &["did you mean `last-response`?"],
        ),
        (
            "check paxos --determinism perhaps",
            &["perhaps", "off, sample, always"],
        ),
        (
            "check paxos --engine sideways",
            &["sideways", "breadth, depth, random"],
        ),
        (
            "check paxos --faults rain=1",
            &[
                "`rain=1`",
                "drops, duplicates, crashes, restarts, partitions and resets",
            ],
        ),
        (
            "check two-phase-commit-model --faults drops=1",
            &["direct system"],
        ),
        ("check paxos --memory lots", &["512MiB", "GiB"]),
        ("check paxos --time soon", &["30s", "ms, s, m, h"]),
        ("check paxos --threads 0", &["1..=1024"]),
        ("check paxos --depth -1", &["-1"]),
        (
            "check paxos --walks 9",
            &["--walks", "breadth", "random and pct", "--engine random"],
        ),
        (
            "check paxos --engine depth --seed 9",
            &["--seed", "depth", "random and pct"],
        ),
        (
            "check readers --pruning plain",
            &["--pruning", "dpor", "local and auto"],
        ),
        (
            "check paxos --engine local --reduction none",
            &["--reduction", "local", "auto and dpor"],
        ),
        (
            "check paxos --preemptions 1",
            &["--preemptions", "breadth", "auto and dpor", "--engine dpor"],
        ),
        (
            "check paxos --engine dpor",
            &["multithreaded", "breadth, depth, random, pct, local, auto"],
        ),
        (
            "check paxos --engine auto --preemptions 1",
            &["auto", "local and breadth", "leave them out"],
        ),
        (
            "check readers --engine auto --pruning refined",
            &["auto", "dpor", "no pruning"],
        ),
        (
            "check paxos --engine random --exact",
            &["random", "keeps no states", "leave `exact` out"],
        ),
        (
            "check readers --determinism always",
            &["handlers of nodes", "leave `determinism` out"],
        ),
        (
            "check readers --engine local",
            &["multithreaded program", "use the engine dpor, breadth"],
        ),
        (
            "check readers --exact",
            &["their fingerprints", "leave `exact` out"],
        ),
        (
            "check paxos --engine random --priority-changes 3",
            &["--priority-changes", "--engine pct"],
        ),
        (
            "check paxos --engine pct --priority-changes 4294967295",
            &["at most 1000000 times", "4294967295"],
        ),
        (
            "check paxos --nonsense",
            &["--nonsense", "dragnet check --help"],
        ),
        ("chek paxos", &["'check'"]),
        ("replay", &["<TRACE>", "dragnet replay --help"]),
        (
            "replay nowhere.json",
            &["cannot read the trace nowhere.json"],
        ),
    ];
    for (line, parts) in cases {
        assert_says(place.run(line).error(), parts);
        if !line.starts_with("chek") {
            let with_json = place.run(&format!("{line} --json"));
            assert_says(with_json.error(), parts);
        }
    }
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn a_truncated_trace_is_refused_at_every_length() {
    let place = Place::new();
    place.expect("check tree --bug forwards-early --trace t.json", VIOLATED);
    let whole = fs::read_to_string(place.path().join("t.json")).expect("a trace");
    for part in [0, 1, whole.len() / 3, whole.len() / 2, whole.len() - 3] {
        fs::write(place.path().join("part.json"), &whole[..part]).expect("a file");
        for line in ["replay part.json", "replay part.json --json"] {
            assert_says(
                place.run(line).error(),
                &["part.json is not a whole Dragnet trace"],
            );
        }
    }
}

#[test]
fn a_trace_that_was_changed_is_refused() {
    let place = Place::new();
    place.expect(
        "check primary-backup --bug early-ack --trace t.json",
        VIOLATED,
    );
    let text = fs::read_to_string(place.path().join("t.json")).expect("a trace");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    type Change = fn(&mut Value);
    let cases: &[(&str, Change, &[&str])] = &[
        (
            "another system",
            |trace| trace["system"] = "paxos".into(),
            &["does not fit paxos"],
        ),
        (
            "a system that is not here",
            |trace| trace["system"] = "raft".into(),
            &["trace of `raft`", "paxos, two-phase-commit"],
        ),
        (
            "a bug that is not there",
            |trace| trace["bug"] = "late-ack".into(),
            &[
                "does not fit primary-backup",
                "no bug `late-ack`",
                "early-ack",
            ],
        ),
        (
            "no bug",
            |trace| trace["bug"] = Value::Null,
            &["the system has changed", "in step"],
        ),
        (
            "a parameter out of range",
            |trace| trace["parameters"]["writes"] = 99.into(),
            &["does not fit primary-backup", "writes cannot be `99`"],
        ),
        (
            "a parameter that is no number",
            |trace| trace["parameters"]["writes"] = "many".into(),
            &["does not fit primary-backup", "from 0 to 8"],
        ),
        (
            "another parameter",
            |trace| trace["parameters"]["writes"] = 0.into(),
            &["the system has changed"],
        ),
        (
            "other faults",
            |trace| trace["faults"] = "crashes=1".into(),
            &["the system has changed"],
        ),
        (
            "nonsense for faults",
            |trace| trace["faults"] = "rain".into(),
            &["not a whole Dragnet trace", "`rain`"],
        ),
        (
            "an event that is not enabled",
            |trace| trace["steps"][0]["event"] = 999.into(),
            &["the system has changed", "in step 1"],
        ),
        (
            "another initial state",
            |trace| trace["start"] = 7.into(),
            &["the system has changed", "no such initial state"],
        ),
        (
            "fewer steps",
            |trace| trace["steps"].as_array_mut().expect("steps").truncate(1),
            &["the system has changed", "not violated any more"],
        ),
        (
            "another format",
            |trace| trace["format"] = "holiday photo".into(),
            &["not a whole Dragnet trace", "holiday photo"],
        ),
        (
            "another version",
            |trace| trace["version"] = 99.into(),
            &["not a whole Dragnet trace", "version is 99"],
        ),
    ];
    for (what, change, parts) in cases {
        let mut changed = trace.clone();
        change(&mut changed);
        fs::write(place.path().join("changed.json"), changed.to_string()).expect("a file");
        for line in ["replay changed.json", "replay changed.json --json"] {
            let run = place.run(line);
            assert_eq!(run.status, BAD_INPUT, "{what}: {}", run.stderr);
            assert_says(run.error(), parts);
        }
    }
}

#[test]
fn a_trace_that_cannot_be_written_is_refused_before_the_search() {
    let place = Place::new();
    fs::write(place.path().join("file"), "").expect("a file");
    // Searching this would take minutes.
    for bad in ["file/below.json", "missing/t.json", ".", "/dev/null"] {
        let line = format!("check paxos --set nodes=9 --set proposers=9 --trace {bad}");
        let run = place.run(&line);
        assert_says(run.error(), &["cannot write the trace", bad, "--trace"]);
    }
    assert_eq!(place.files(), ["file"]);
}

#[test]
fn a_violation_whose_trace_cannot_be_written_is_still_one() {
    let place = Place::new();
    fs::create_dir(place.path().join("tree-forwards-early.trace.json")).expect("a directory");
    let run = place.run("check tree --bug forwards-early");
    assert_says(&run.stdout, &["Counterexample", "tree violated"]);
    assert!(!run.stdout.contains("run it again"), "{}", run.stdout);
    assert_says(
        run.error_line_beside(VIOLATED),
        &[
            "cannot write the trace tree-forwards-early.trace.json",
            "--trace",
        ],
    );
    let json = place.run("check tree --bug forwards-early --json");
    assert_eq!(json.json()["verdict"], "violated");
    assert!(json.json()["trace"].is_null());
    assert_says(
        json.error_line_beside(VIOLATED),
        &["cannot write the trace"],
    );
}

#[test]
fn a_full_disk_behind_standard_output_hides_no_violation() {
    let full = fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full");
    let place = Place::new();
    let run = Run::of(
        place
            .dragnet("check tree --bug forwards-early")
            .stdout(full),
    );
    assert_says(run.error_line_beside(VIOLATED), &["standard output"]);
    assert_eq!(place.files(), ["tree-forwards-early.trace.json"]);
}

#[test]
fn a_reader_who_leaves_early_is_no_error() {
    let place = Place::new();
    for line in ["list", "list --json", "--help", "check two-phase-commit"] {
        let mut child = place
            .dragnet(line)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("dragnet starts");
        drop(child.stdout.take());
        let run = Run::from(child.wait_with_output().expect("it ends"));
        assert_eq!(run.status, HOLDS, "{line}");
        assert_eq!(run.stderr, "", "{line}");
    }
}

#[test]
fn a_full_disk_behind_standard_output_is_an_error() {
    let full = fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full");
    let run = Run::of(Place::new().dragnet("list").stdout(full));
    assert_says(run.error(), &["standard output"]);
}
