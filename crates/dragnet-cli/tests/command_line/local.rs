//! The local engine, `auto`, and checks that start in a saved state.

use std::fs;

use serde_json::Value;

use super::run::{BAD_INPUT, HOLDS, INCONCLUSIVE, Place, VIOLATED, assert_says};

/// A state of the zoo, as a path.
fn state(name: &str) -> String {
    format!(
        "{}/../dragnet-zoo/states/{name}",
        env!("CARGO_MANIFEST_DIR")
    )
}

#[test]
fn five_nodes_hold_without_a_state_of_the_whole_system() {
    for nodes in [3, 5, 7] {
        let line = format!("check paxos --set nodes={nodes} --engine local --json");
        let verdict = Place::new().expect(&line, HOLDS).json();
        assert_eq!(verdict["engine"], "local");
        assert_eq!(verdict["decided_by"], "local");
        assert_eq!(verdict["system_states"], 0, "{nodes} nodes");
        assert_eq!(verdict["preliminary_violations"], 0);
        for count in [
            "local_states",
            "messages",
            "handler_runs",
            "soundness_checks",
            "soundness_states",
        ] {
            assert!(verdict[count].as_u64() > Some(0), "{count}: {verdict}");
        }
    }
}

#[test]
fn what_the_local_engine_finds_replays() {
    let place = Place::new();
    place.expect("check paxos --bug last-response --engine local", VIOLATED);
    place.expect("replay paxos-last-response.trace.json", VIOLATED);
}

#[test]
fn auto_says_whose_verdict_it_is() {
    let verdict = Place::new()
        .expect("check paxos --engine auto --json", HOLDS)
        .json();
    assert_eq!(verdict["engine"], "auto");
    assert_eq!(verdict["decided_by"], "local");
    let run = Place::new().expect("check paxos --engine auto", HOLDS);
    assert_says(&run.stdout, &["auto (local was first)"]);
}

#[test]
fn auto_goes_breadth_first_where_only_that_can_judge() {
    for system in ["tree", "two-phase-commit-model"] {
        let line = format!("check {system} --engine auto --json");
        let verdict = Place::new().expect(&line, HOLDS).json();
        assert_eq!(verdict["decided_by"], "breadth");
    }
}

#[test]
fn what_the_local_engine_cannot_judge_is_said_in_a_line_with_who_can() {
    let run = Place::new().run("check tree --engine local");
    assert_eq!(run.status, BAD_INPUT);
    assert_says(
        run.error_line(),
        &[
            "`everything has arrived` looks at what is in flight",
            "breadth, depth or random",
        ],
    );
    let run = Place::new().run("check two-phase-commit-model --engine local");
    assert_eq!(run.status, BAD_INPUT);
    assert_says(
        run.error_line(),
        &["this is no cluster", "breadth, depth or random"],
    );
    let run = Place::new().run("check paxos --engine local --exact");
    assert_eq!(run.status, BAD_INPUT);
    assert_says(run.error_line(), &["use the engine breadth or depth"]);
    let run = Place::new().run("check paxos --pruning coarse");
    assert_eq!(run.status, BAD_INPUT);
    assert_says(run.error_line(), &["--engine local"]);
}

#[test]
fn a_search_that_was_cut_short_suggests_auto() {
    let run = Place::new().expect("check paxos --depth 3", INCONCLUSIVE);
    assert_says(&run.stdout, &["the engine auto"]);
    let run = Place::new().expect("check two-phase-commit-model --depth 3", INCONCLUSIVE);
    assert!(!run.stdout.contains("auto"));
}

#[test]
fn every_engine_starts_from_a_saved_state_and_its_trace_replays() {
    for engine in ["breadth", "depth", "random", "local", "auto"] {
        let place = Place::new();
        let from = state("paxos-learned-by-one.json");
        let line = format!("check paxos --bug last-response --engine {engine} --from {from}");
        let run = place.expect(&line, VIOLATED);
        assert_says(&run.stdout, &["from a given state"]);
        place.expect("replay paxos-last-response.trace.json", VIOLATED);
    }
    let from = state("paxos-learned-by-one.json");
    let line = format!("check paxos --set proposers=2 --engine local --from {from}");
    Place::new().expect(&line, HOLDS);
}

#[test]
fn the_first_node_that_leads_and_accepts_for_itself_disagrees_from_the_state_of_the_paper() {
    for engine in ["breadth", "local"] {
        let place = Place::new();
        let from = state("one-paxos-shared-initial-role.json");
        let bug = "check one-paxos --bug shared-initial-role";
        let line = format!("{bug} --engine {engine} --from {from} --json");
        let verdict = place.expect(&line, VIOLATED).json();
        assert_eq!(verdict["length"], 3);
        let from = state("one-paxos-led-by-the-third.json");
        let line = format!("check one-paxos --engine {engine} --from {from}");
        place.expect(&line, HOLDS);
    }
}

#[test]
fn a_state_that_was_saved_can_be_started_from() {
    let place = Place::new();
    place.expect(
        "check two-phase-commit --bug majority --save-state end.json",
        VIOLATED,
    );
    place.expect(
        "check two-phase-commit --bug majority --from end.json --trace end.trace",
        VIOLATED,
    );
    let trace = "two-phase-commit-majority.trace.json";
    let save = format!("replay {trace} --save-state early.json --after 1");
    place.expect(&save, VIOLATED);
    let verdict = place.expect(
        "check two-phase-commit --bug majority --from early.json --json",
        VIOLATED,
    );
    assert_eq!(verdict.json()["length"], 4);
    place.expect("check paxos --save-state start.json", HOLDS);
    place.expect("check paxos --from start.json", HOLDS);
    let run = place.run(&format!("replay {trace} --save-state no.json --after 99"));
    assert_eq!(run.status, BAD_INPUT);
    assert_says(run.error_line(), &["--after"]);
}

#[test]
fn where_no_state_can_be_written_there_is_no_search_either() {
    let place = Place::new();
    for (line, parts) in [
        (
            "check paxos --save-state nowhere/state.json",
            ["cannot write the state", "nowhere"],
        ),
        (
            "check two-phase-commit-model --save-state state.json",
            [
                "two-phase-commit-model cannot be checked like this",
                "serializable",
            ],
        ),
    ] {
        let run = place.run(line);
        assert_eq!(run.status, BAD_INPUT, "{line}");
        assert_says(run.error_line(), &parts);
        assert_eq!(run.stdout, "", "nothing was searched");
    }
}

#[test]
fn a_state_in_which_nodes_have_changed_kinds_is_refused_in_a_line() {
    let place = Place::new();
    place.expect("check two-phase-commit --save-state start.json", HOLDS);
    let path = place.path().join("start.json");
    let mut state: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let participant = state["nodes"][1]["state"].clone();
    state["nodes"][0]["state"] = participant;
    fs::write(&path, state.to_string()).unwrap();
    let run = place.run("check two-phase-commit --from start.json");
    assert_eq!(run.status, BAD_INPUT);
    assert_says(
        run.error_line(),
        &["does not fit two-phase-commit", "node 0 is another kind"],
    );
}

#[test]
fn a_state_that_does_not_fit_is_refused_in_a_line() {
    let place = Place::new();
    let one = state("one-paxos-shared-initial-role.json");
    let paxos = state("paxos-learned-by-one.json");
    let misspelt = place.path().join("misspelt.json");
    let text = fs::read_to_string(&paxos).expect("a state");
    fs::write(&misspelt, text.replace("in_flight", "inflight")).expect("a file");
    for (line, parts) in [
        (
            format!("check paxos --from {one}"),
            ["does not fit paxos", "one-paxos"],
        ),
        (
            format!("check paxos --set nodes=5 --from {paxos}"),
            ["it has 5 nodes", "has 3"],
        ),
        (
            "check paxos --from nowhere.json".to_owned(),
            ["cannot read", "nowhere.json"],
        ),
        (
            format!("check paxos --from {}", misspelt.display()),
            ["not a Dragnet state", "inflight"],
        ),
        (
            "check paxos --from /dev/null".to_owned(),
            ["not a Dragnet state", "--save-state"],
        ),
    ] {
        let run = place.run(&line);
        assert_eq!(run.status, BAD_INPUT, "{line}");
        assert_says(run.error_line(), &parts);
        assert_eq!(run.stdout, "");
    }
}
