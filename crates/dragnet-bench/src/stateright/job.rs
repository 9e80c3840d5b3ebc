//! What is measured: a checker, a protocol, a search.

use std::ffi::OsString;
use std::fmt::{self, Display};

use clap::Args;
use serde::{Deserialize, Serialize};

use super::protocols::Protocol;
use super::search::{Checker, Order, Search};
use crate::measure::{self, Measurement, argument};

/// A checker that searches a protocol. As arguments, it is what a child is told.
#[derive(Args, Clone, Copy, Debug)]
pub struct Job {
    /// The checker that searches.
    #[arg(value_enum)]
    pub checker: Checker,
    /// The protocol, by name.
    #[arg(value_parser = Protocol::named)]
    pub protocol: &'static Protocol,
    /// In which order it searches.
    #[arg(value_enum)]
    pub order: Order,
    /// With how many threads.
    pub threads: usize,
}

/// How many unique states a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct States(pub u64);

impl Measurement<States> {
    /// Unique states a second.
    pub fn rate(&self) -> f64 {
        self.found.0 as f64 / self.seconds
    }

    /// Bytes of peak memory a unique state.
    pub fn bytes_a_state(&self) -> f64 {
        self.peak_bytes as f64 / self.found.0 as f64
    }
}

impl Job {
    /// How it searches.
    pub fn search(&self) -> Search {
        Search {
            order: self.order,
            threads: self.threads,
        }
    }
}

impl measure::Job for Job {
    type Found = States;

    fn arguments(&self) -> Vec<OsString> {
        vec![
            "stateright".into(),
            argument(self.checker).into(),
            self.protocol.name.into(),
            argument(self.order).into(),
            self.threads.to_string().into(),
        ]
    }

    fn run(&self) -> States {
        States(self.protocol.check(self.checker, self.search()))
    }
}

impl Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = self.protocol.title;
        write!(f, "{title} ({}): {}", self.search(), self.checker)
    }
}
