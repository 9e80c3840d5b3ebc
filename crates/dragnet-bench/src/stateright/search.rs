//! How a checker is to search: what both checkers can be told.

use std::fmt::{self, Display};

use clap::ValueEnum;

/// A checker that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Checker {
    /// The Stateright crate.
    Stateright,
    /// This project.
    Dragnet,
}

/// In which order states are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// Level by level.
    Breadth,
    /// Along one execution as far as it goes, then back.
    Depth,
}

/// An order, and how many threads search in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// In which order states are visited.
    pub order: Order,
    /// How many threads search.
    pub threads: usize,
}

impl Search {
    /// Every search that is compared.
    pub const ALL: [Self; 4] = [
        Self::new(Order::Breadth, 1),
        Self::new(Order::Breadth, 2),
        Self::new(Order::Depth, 1),
        Self::new(Order::Depth, 2),
    ];

    const fn new(order: Order, threads: usize) -> Self {
        Self { order, threads }
    }
}

impl Display for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stateright => "Stateright",
            Self::Dragnet => "Dragnet",
        })
    }
}

impl Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Breadth => "breadth",
            Self::Depth => "depth",
        })
    }
}

impl Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = match self.threads {
            1 => "1 thread".to_owned(),
            many => format!("{many} threads"),
        };
        write!(f, "{} first, {threads}", self.order)
    }
}
