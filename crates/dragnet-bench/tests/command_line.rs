//! The command as a user runs it.

use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dragnet-bench"))
        .args(arguments)
        .output()
        .expect("the binary starts")
}

fn output_of(arguments: &[&str]) -> String {
    let ran = bench(arguments);
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    String::from_utf8(ran.stdout).expect("tables are text")
}

#[test]
fn a_quick_comparison_prints_a_row_for_each_search_of_each_small_protocol() {
    let table = output_of(&["stateright", "--quick", "--date", "2001-02-03"]);
    assert!(table.starts_with("2001-02-03; "), "{table}");
    for protocol in ["ABD register", "Paxos", "two-phase commit"] {
        let rows = table
            .lines()
            .filter(|line| line.starts_with(&format!("| {protocol}")));
        assert_eq!(rows.count(), 4, "{protocol} in\n{table}");
    }
}

#[test]
fn quick_measurements_of_the_local_engine_print_every_table_beside_what_the_paper_says() {
    let text = output_of(&["local", "--quick", "--date", "2001-02-03"]);
    assert!(text.starts_with("2001-02-03; "), "{text}");
    for figure in [
        "(figures 10 to 12)",
        "(figure 10)",
        "(figure 11)",
        "(figure 12)",
        "(figure 13)",
    ] {
        assert!(text.contains(figure), "{figure} in\n{text}");
    }
    let global = text
        .lines()
        .find(|line| line.starts_with("| breadth first | B-DFS |"))
        .expect("the global search has a row");
    for exact in ["| 1,514 s | 3,381 |", "| 13,360 | 157,332 |"] {
        assert!(global.contains(exact), "{exact} in {global}");
    }
    assert!(text.contains("| the live state | default | violated, 9 steps |"));
    assert!(!text.contains("inconclusive"), "{text}");
    for table in text.split("\n\n").filter(|part| part.starts_with('|')) {
        let mut widths: Vec<usize> = table.lines().map(|row| row.matches('|').count()).collect();
        widths.dedup();
        assert_eq!(
            widths.len(),
            1,
            "rows with a cell for each column:\n{table}"
        );
    }
}

/// What was measured with small programs, by program and checker.
fn quick_threads() -> serde_json::Value {
    let arguments = ["threads", "--quick", "--seconds", "60", "--json"];
    let text = output_of(&arguments);
    serde_json::from_str(&text).expect("what was measured is JSON")
}

/// Executions of one check, with those that were given up.
fn executions(measured: &serde_json::Value) -> u64 {
    let found = &measured["found"];
    let count = |name: &str| found[name].as_u64().expect("it is a count");
    (count("executions") + count("blocked")) / count("checks")
}

/// Without a reduction Dragnet and shuttle's depth-first scheduler both run every interleaving, but not as many of them:
/// in shuttle a thread can be interrupted where it spawns another and where it begins, in Dragnet where it ends.
#[test]
fn dragnet_runs_no_more_executions_than_loom_and_finds_the_same_bugs() {
    let report = quick_threads();
    let rows = report["rows"].as_array().expect("there are rows");
    let (mut correct, mut wrong) = (0, 0);
    for row in rows {
        let (program, measured) = (&row["program"], &row["measured"]);
        if measured.get("dragnet").is_some() {
            wrong += 1;
            for (checker, measured) in measured.as_object().expect("there are checkers") {
                let end = &measured["found"]["end"];
                assert!(end.get("Wrong").is_some(), "{checker} on {program}: {end}");
            }
            continue;
        }
        correct += 1;
        let of = |checker: &str| executions(&measured[checker]);
        assert!(of("dragnet-optimal") <= of("loom"), "{program}: {measured}");
        assert!(of("dragnet-optimal") <= of("dragnet-none"), "{program}");
    }
    assert_eq!((correct, wrong), (3, 3));
}

#[test]
fn programs_with_threads_are_compared_in_a_table_each_for_those_that_are_right_and_those_that_are_not()
 {
    let arguments = [
        "threads",
        "--runs",
        "1",
        "--seconds",
        "0.1",
        "readers-2",
        "two-locks",
    ];
    let text = output_of(&arguments);
    for row in [
        "| a writer and 2 readers | 4 in ",
        "| two locks in both orders | ",
    ] {
        assert!(text.contains(row), "{row} in\n{text}");
    }
    let ran = bench(&["threads", "raft"]);
    assert_eq!(ran.status.code(), Some(2));
    let complaint = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(complaint.contains("choose one of readers-2"), "{complaint}");
}

#[test]
fn a_protocol_that_does_not_exist_is_refused_with_those_that_do() {
    let ran = bench(&["measure", "stateright", "dragnet", "raft", "breadth", "1"]);
    assert_eq!(ran.status.code(), Some(2));
    let complaint = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(
        complaint.contains("choose one of abd, paxos-2"),
        "{complaint}"
    );
}
