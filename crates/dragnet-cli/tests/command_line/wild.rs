//! Published crates as further systems, when the binary is built with them.

use crate::run::{BAD_INPUT, HOLDS, Place, VIOLATED, assert_says};

#[test]
fn published_crates_stand_beside_the_bundled_systems() {
    let list = Place::new().expect("list", HOLDS);
    let names = ["paxos", "omnipaxos", "noraft", "raft", "foca", "crdts"];
    for name in names {
        let begins = |line: &str| line.split(' ').next() == Some(name);
        assert!(list.stdout.lines().any(begins), "{name} in {}", list.stdout);
    }
    assert_says(
        &list.stdout,
        &["version", "0.5.0 (0.5.0, 0.4.0)", "--faults", "crashes=1"],
    );
}

#[test]
fn a_release_with_a_bug_is_caught_and_its_trace_runs_again_on_that_release() {
    let place = Place::new();
    let check = place.expect("check noraft --set version=0.4.0", VIOLATED);
    assert_says(
        &check.stdout,
        &[
            "noraft violated: `no committed entry is ever overwritten`",
            "equal digests counted as one",
        ],
    );
    let replay = place.expect("replay noraft.trace.json", VIOLATED);
    assert_says(&replay.stdout, &["noraft violated again"]);
}

#[test]
fn the_json_of_a_list_names_the_choices_of_a_parameter() {
    let systems = Place::new().expect("list --json", HOLDS).json();
    let systems = systems.as_array().expect("an array");
    let crdts = systems.iter().find(|system| system["name"] == "crdts");
    let parameters = crdts.expect("it is listed")["parameters"].as_array();
    let mut parameters = parameters.expect("an array").iter();
    let kind = parameters.find(|parameter| parameter["name"] == "type");
    let kind = kind.expect("it has one");
    assert_eq!(kind["default"], "orswot");
    assert_eq!(
        kind["choices"],
        serde_json::json!(["orswot", "map", "list"])
    );
}

#[test]
fn a_name_that_is_none_of_the_choices_is_refused_in_one_line() {
    let run = Place::new().expect("check crdts --set type=banana", BAD_INPUT);
    assert_says(
        run.error_line(),
        &["type cannot be `banana`; it is one of orswot, map, list"],
    );
}
