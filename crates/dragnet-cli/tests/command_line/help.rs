//! What there is to check, and how to ask for it.

use crate::run::{BAD_INPUT, HOLDS, Place, assert_says, keys};

#[test]
fn list_shows_people_every_system_parameter_and_bug() {
    let run = Place::new().expect("list", HOLDS);
    assert_says(
        &run.stdout,
        &[
            "paxos  single-decree Paxos",
            "proposers",
            "1 (0 to 9)",
            "--bug last-response",
            "overlap=1, faults crashes=1",
            "two-phase-commit-model",
        ],
    );
}

#[test]
fn list_shows_programs_the_same() {
    let systems = Place::new().expect("list --json", HOLDS).json();
    let systems = systems.as_array().expect("an array");
    let paxos = systems
        .iter()
        .find(|system| system["name"] == "paxos")
        .expect("paxos");
    assert_eq!(
        keys(paxos),
        [
            "name",
            "summary",
            "target",
            "parameters",
            "faults",
            "properties",
            "bugs"
        ]
    );
    assert_eq!(paxos["target"], "nodes");
    assert_eq!(
        keys(&paxos["parameters"][1]),
        ["name", "default", "minimum", "maximum", "summary"]
    );
    assert_eq!(paxos["parameters"][1]["name"], "proposers");
    assert_eq!(paxos["parameters"][1]["maximum"], 9);
    let properties = paxos["properties"].as_array().expect("an array");
    assert!(properties.contains(&"agreement".into()), "{properties:?}");
    let forgets = paxos["bugs"]
        .as_array()
        .expect("an array")
        .last()
        .expect("a bug");
    assert_eq!(keys(forgets), ["name", "summary", "parameters", "faults"]);
    assert_eq!(forgets["parameters"]["proposers"], 2);
    assert_eq!(forgets["faults"], "crashes=1");
}

#[test]
fn no_command_at_all_shows_the_help() {
    let run = Place::new().expect("", BAD_INPUT);
    assert_eq!(run.stdout, "");
    assert_says(&run.stderr, &["Usage: dragnet", "Examples:"]);
}

#[test]
fn help_has_examples_and_a_version_is_told() {
    let place = Place::new();
    let help = place.expect("--help", HOLDS).stdout;
    assert_says(
        &help,
        &["dragnet check paxos --bug last-response", "dragnet replay"],
    );
    assert_says(
        &place.expect("check --help", HOLDS).stdout,
        &["Exit status", "--memory"],
    );
    let version = format!("dragnet {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(place.expect("--version", HOLDS).stdout, version);
}
