//! The bundled systems of Dragnet: small distributed systems and programs with threads, each with its parameters and
//! seeded bugs.
//!
//! Each module is a program, its specification and its documentation at once. [`entries`] lists them all under the names
//! that a command line gives them.

use dragnet::catalog::Entry;

pub mod one_paxos;
pub mod paxos;
pub mod primary_backup;
pub mod rand_tree;
pub mod ring_election;
pub mod threads;
pub mod tree;
pub mod two_phase_commit;
pub mod two_phase_commit_model;

/// Every bundled system.
///
/// ```
/// use dragnet::catalog::{Selection, find};
///
/// let entries = dragnet_zoo::entries();
/// let commit = find(&entries, "two-phase-commit").unwrap();
/// let buggy = Selection::of(commit).with_bug("majority").unwrap();
/// assert!(!commit.check(&buggy).unwrap().run_under(&Default::default()).holds());
/// ```
pub fn entries() -> Vec<Entry> {
    let mut entries = distributed();
    entries.extend(threads::entries());
    entries
}

/// Every bundled distributed system.
pub fn distributed() -> Vec<Entry> {
    vec![
        paxos::entry(),
        one_paxos::entry(),
        two_phase_commit::entry(),
        two_phase_commit_model::entry(),
        ring_election::entry(),
        primary_backup::entry(),
        tree::entry(),
        rand_tree::entry(),
    ]
}

#[cfg(test)]
mod testing;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_systems_share_a_name() {
        let mut names: Vec<&str> = entries().iter().map(Entry::name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
    }

    #[test]
    fn every_bug_needs_only_what_its_system_has() {
        for entry in entries() {
            for bug in entry.bugs() {
                for &(name, value) in &bug.parameters {
                    let mut parameters = entry.parameters().iter();
                    let fits =
                        parameters.any(|known| known.name == name && known.values.contains(value));
                    assert!(
                        fits,
                        "{}: {} sets {name} to {value}",
                        entry.name(),
                        bug.name
                    );
                }
            }
        }
    }
}
