//! What ends a search early: bounds, limits, a person.

use crate::run::{INCONCLUSIVE, Place, assert_says};

#[test]
fn a_bound_on_the_depth_makes_the_verdict_inconclusive() {
    let run = Place::new().expect("check paxos --depth 3 --json", INCONCLUSIVE);
    assert_says(
        run.json()["reason"].as_str().expect("a reason"),
        &["more than 3 steps"],
    );
}

#[test]
fn a_time_limit_is_kept() {
    let line = "check paxos --set proposers=3 --time 2s --json";
    let verdict = Place::new().expect(line, INCONCLUSIVE).json();
    assert_says(
        verdict["reason"].as_str().expect("a reason"),
        &["time limit"],
    );
    assert!(verdict["seconds"].as_f64() >= Some(2.0), "{verdict}");
    assert!(verdict["seconds"].as_f64() < Some(4.0), "{verdict}");
}

#[test]
fn a_memory_limit_is_kept() {
    let limit: u64 = 256 << 20;
    let run = Place::new().run("check paxos --set proposers=3 --memory 256MiB --json");
    assert_eq!(run.status, INCONCLUSIVE, "{}", run.stderr);
    let verdict = run.json();
    assert_says(
        verdict["reason"].as_str().expect("a reason"),
        &["memory limit"],
    );
    let peak = verdict["peak_memory_bytes"].as_u64().expect("a number");
    assert!(peak < limit + limit / 10, "{peak} bytes of {limit}");
}

#[cfg(unix)]
mod signals {
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::Duration;

    use crate::run::{INCONCLUSIVE, Place, Run};

    /// Starts a search that would take hours, gives it a second, sends it `signals` all at once and waits for its end.
    fn interrupted(place: &Place, signals: &[&str]) -> Run {
        let child = place
            .dragnet("check paxos --set proposers=3 --json")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("dragnet starts");
        thread::sleep(Duration::from_secs(1));
        let send = |signal: &str| {
            let kill = format!("kill -{signal} {}", child.id());
            let sent = Command::new("sh").args(["-c", &kill]).status();
            assert!(sent.expect("a shell").success(), "{kill}");
        };
        send("STOP");
        signals.iter().for_each(|signal| send(signal));
        send("CONT");
        Run::from(child.wait_with_output().expect("it ends"))
    }

    #[test]
    fn an_interrupt_ends_the_search_with_the_verdict_so_far() {
        for signal in ["INT", "TERM"] {
            let run = interrupted(&Place::new(), &[signal]);
            assert_eq!(run.status, INCONCLUSIVE, "{signal}: {}", run.stderr);
            assert_eq!(run.json()["reason"], "the search was stopped");
            assert!(run.json()["states"].as_u64() > Some(0));
            assert_eq!(run.stderr, "");
        }
    }

    #[test]
    fn interrupts_that_follow_each_other_closely_are_one() {
        for signals in [["INT", "TERM"], ["TERM", "TERM"]] {
            let run = interrupted(&Place::new(), &signals);
            assert_eq!(run.status, INCONCLUSIVE, "{signals:?}: {}", run.stderr);
            assert_eq!(run.json()["reason"], "the search was stopped");
        }
    }
}
