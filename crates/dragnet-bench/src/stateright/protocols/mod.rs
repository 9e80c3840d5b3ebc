//! The protocols, each written once for each checker: the same steps, the same data, the same property.

mod abd;
mod dragnet_side;
mod paxos;
mod register;
mod stateright_side;
mod two_phase_commit;

use std::fmt;

use crate::stateright::search::{Checker, Search};

/// A protocol of a certain size, as both checkers see it.
pub struct Protocol {
    /// How it is called on the command line.
    pub name: &'static str,
    /// How it is called in the table.
    pub title: &'static str,
    /// How many unique states it has.
    pub states: u64,
    /// Whether it is searched in a moment.
    pub small: bool,
    stateright: fn(Search) -> u64,
    dragnet: fn(Search) -> u64,
}

impl Protocol {
    /// Every protocol that is compared.
    pub const ALL: &[Self] = &[
        Self {
            name: "abd",
            title: "ABD register, 2 servers, 2 clients",
            states: 325,
            small: true,
            stateright: |search| abd::stateright::check(2, 2, search),
            dragnet: |search| abd::dragnet::check(2, 2, search),
        },
        Self {
            name: "paxos-2",
            title: "Paxos, 3 servers, 2 clients",
            states: 16_668,
            small: true,
            stateright: |search| paxos::stateright::check(2, search),
            dragnet: |search| paxos::dragnet::check(2, search),
        },
        Self {
            name: "paxos-3",
            title: "Paxos, 3 servers, 3 clients",
            states: 1_194_428,
            small: false,
            stateright: |search| paxos::stateright::check(3, search),
            dragnet: |search| paxos::dragnet::check(3, search),
        },
        Self {
            name: "paxos-4",
            title: "Paxos, 3 servers, 4 clients",
            states: 2_372_188,
            small: false,
            stateright: |search| paxos::stateright::check(4, search),
            dragnet: |search| paxos::dragnet::check(4, search),
        },
        Self {
            name: "two-phase-commit-7",
            title: "two-phase commit, 7 RMs",
            states: 296_448,
            small: true,
            stateright: |search| two_phase_commit::stateright::check(7, search),
            dragnet: |search| two_phase_commit::dragnet::check(7, search),
        },
        Self {
            name: "two-phase-commit-9",
            title: "two-phase commit, 9 RMs",
            states: 10_340_352,
            small: false,
            stateright: |search| two_phase_commit::stateright::check(9, search),
            dragnet: |search| two_phase_commit::dragnet::check(9, search),
        },
    ];

    /// The protocol of this name.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        let found = Self::ALL.iter().find(|protocol| protocol.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|protocol| protocol.name).collect();
            format!("choose one of {}", names.join(", "))
        })
    }

    /// Searches the whole space, and says how many unique states it has.
    ///
    /// # Panics
    /// When the protocol's property does not hold.
    pub fn check(&self, checker: Checker, search: Search) -> u64 {
        match checker {
            Checker::Stateright => (self.stateright)(search),
            Checker::Dragnet => (self.dragnet)(search),
        }
    }
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_that_both_checkers_find_the_known_space(name: &str) {
        let protocol = Protocol::named(name).unwrap();
        for checker in [Checker::Stateright, Checker::Dragnet] {
            for search in Search::ALL {
                let found = protocol.check(checker, search);
                assert_eq!(found, protocol.states, "{checker} on {name}, {search}");
            }
        }
    }

    #[test]
    fn both_checkers_find_the_same_space_of_the_abd_register() {
        assert_that_both_checkers_find_the_known_space("abd");
    }

    #[test]
    fn both_checkers_find_the_same_space_of_paxos() {
        assert_that_both_checkers_find_the_known_space("paxos-2");
    }

    #[test]
    fn both_checkers_find_the_same_space_of_two_phase_commit() {
        assert_that_both_checkers_find_the_known_space("two-phase-commit-7");
    }
}
