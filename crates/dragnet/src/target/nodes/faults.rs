//! What can go wrong, as budgets: how often each kind of harm may be done in one execution.

use std::fmt::{self, Display};

use thiserror::Error;

/// How often each kind of fault may happen in one execution. Nothing goes wrong by default.
///
/// ```
/// use dragnet::{Faults, crashes, drops};
///
/// let faults = drops(2).and(crashes(1));
/// assert_eq!(faults, "drops=2,crashes=1".parse().unwrap());
/// assert_eq!(faults.to_string(), "drops=2,crashes=1");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    given: [Option<u32>; FaultKind::ALL.len()],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    Drop,
    Duplicate,
    Crash,
    Restart,
    Partition,
    Reset,
}

impl FaultKind {
    pub(crate) const ALL: [Self; 6] = [
        Self::Drop,
        Self::Duplicate,
        Self::Crash,
        Self::Restart,
        Self::Partition,
        Self::Reset,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Drop => "drops",
            Self::Duplicate => "duplicates",
            Self::Crash => "crashes",
            Self::Restart => "restarts",
            Self::Partition => "partitions",
            Self::Reset => "resets",
        }
    }
}

/// A list of faults that could not be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "`{0}` is not a fault budget; write for example drops=1,crashes=1 with any of drops, duplicates, crashes, \
     restarts, partitions and resets"
)]
pub struct FaultsError(String);

impl Faults {
    /// Nothing goes wrong.
    pub fn none() -> Self {
        Self::default()
    }

    fn one(kind: FaultKind, budget: u32) -> Self {
        let mut faults = Self::default();
        faults.given[kind as usize] = Some(budget);
        faults
    }

    /// Both budgets together; where both name a kind, `other` counts.
    pub fn and(self, other: Faults) -> Self {
        let mut both = self;
        for (mine, theirs) in both.given.iter_mut().zip(other.given) {
            *mine = theirs.or(*mine);
        }
        both
    }

    /// The budget of one kind. Restarts that nobody spoke of are as many as there are crashes.
    pub(crate) fn budget(&self, kind: FaultKind) -> u32 {
        let given = |kind: FaultKind| self.given[kind as usize];
        match kind {
            FaultKind::Restart => given(kind).or(given(FaultKind::Crash)),
            _ => given(kind),
        }
        .unwrap_or(0)
    }

    /// Whether nothing can go wrong.
    pub fn is_none(&self) -> bool {
        FaultKind::ALL.iter().all(|&kind| self.budget(kind) == 0)
    }
}

impl Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for kind in FaultKind::ALL {
            if let Some(budget) = self.given[kind as usize] {
                let comma = if first { "" } else { "," };
                write!(f, "{comma}{}={budget}", kind.name())?;
                first = false;
            }
        }
        Ok(())
    }
}

impl std::str::FromStr for Faults {
    type Err = FaultsError;

    fn from_str(text: &str) -> Result<Self, FaultsError> {
        let mut faults = Self::none();
        for item in text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            let bad = || FaultsError(item.to_owned());
            let (name, budget) = item.split_once('=').ok_or_else(bad)?;
            let kind = FaultKind::ALL
                .into_iter()
                .find(|kind| kind.name() == name.trim())
                .ok_or_else(bad)?;
            let budget = budget.trim().parse().map_err(|_| bad())?;
            faults = faults.and(Self::one(kind, budget));
        }
        Ok(faults)
    }
}

/// Up to `budget` messages in flight, or datagrams between processes, are lost.
pub fn drops(budget: u32) -> Faults {
    Faults::one(FaultKind::Drop, budget)
}

/// Up to `budget` messages in flight, or datagrams between processes, arrive once more.
pub fn duplicates(budget: u32) -> Faults {
    Faults::one(FaultKind::Duplicate, budget)
}

/// Up to `budget` times a node or a process stops and loses what is not durable. Each can come back unless
/// [`restarts`] says otherwise.
pub fn crashes(budget: u32) -> Faults {
    Faults::one(FaultKind::Crash, budget)
}

/// Up to `budget` times a node or a process that has crashed comes back.
pub fn restarts(budget: u32) -> Faults {
    Faults::one(FaultKind::Restart, budget)
}

/// Up to `budget` times the network falls in two. What is in flight between the halves is lost, and so is what they send
/// each other until it heals.
pub fn partitions(budget: u32) -> Faults {
    Faults::one(FaultKind::Partition, budget)
}

/// Up to `budget` connections between processes of a program with [`Threads`](crate::Threads) break.
pub fn resets(budget: u32) -> Faults {
    Faults::one(FaultKind::Reset, budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crashed_node_can_come_back_unless_restarts_are_forbidden() {
        assert_eq!(crashes(2).budget(FaultKind::Restart), 2);
        assert_eq!(crashes(2).and(restarts(0)).budget(FaultKind::Restart), 0);
    }

    #[test]
    fn a_malformed_budget_is_named() {
        for text in ["drops", "drops=x", "rain=1", "drops=-1"] {
            let error = text.parse::<Faults>().unwrap_err();
            assert!(
                error.to_string().starts_with(&format!("`{text}`")),
                "{error}"
            );
        }
    }
}
