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
