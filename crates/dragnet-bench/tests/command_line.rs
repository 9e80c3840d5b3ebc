//! The command as a user runs it.

use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dragnet-bench"))
        .args(arguments)
        .output()
        .expect("the binary starts")
}

#[test]
fn a_quick_comparison_prints_a_row_for_each_search_of_each_small_protocol() {
    let ran = bench(&["stateright", "--quick", "--date", "2001-02-03"]);
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let table = String::from_utf8(ran.stdout).expect("the table is text");
    assert!(table.starts_with("2001-02-03; "), "{table}");
    for protocol in ["ABD register", "Paxos", "two-phase commit"] {
        let rows = table
            .lines()
            .filter(|line| line.starts_with(&format!("| {protocol}")));
        assert_eq!(rows.count(), 4, "{protocol} in\n{table}");
    }
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
