//! The kinds of targets, as the driver explores them.
//!
//! Clusters of whatever nodes are one host, and so are all multithreaded programs: what explores, shortens and replays them is
//! compiled with this library, and not once more with each program that is checked. Only a [`System`] of the user's own is
//! explored by code that is compiled for it.

use std::marker::PhantomData;

use super::replay::{execute_steps, replay};
use super::run::{Prepared, run};
use crate::explore::Control;
use crate::system::System;
use crate::target::Target;
use crate::target::nodes::{Cluster, Node, Nodes, Row};
#[cfg(feature = "threads")]
use crate::target::threads::{Moments, Threads};
use crate::trace::{SavedState, Trace};
use crate::verdict::{Replay, ReplayError, Verdict};

/// A [`Target`] of which a [`Check`](crate::Check) can be run: a [`Cluster`], a multithreaded program, or any [`System`]
/// itself.
pub trait Checkable: Target {
    /// How it is explored: as a [`Direct`] system, where a crate brings a target of its own.
    type Host: Host<System = Self::System>;
}

impl<S: System + 'static> Checkable for S {
    type Host = Direct<S>;
}

impl<N: Node> Checkable for Cluster<N> {
    type Host = Nodes;
}

#[cfg(feature = "threads")]
impl Checkable for Threads {
    type Host = Moments;
}

/// A kind of target: its system, and what only this kind offers.
#[doc(hidden)]
pub trait Host: Sized + 'static {
    type System: System;

    /// The prepared check, where it is one of a cluster.
    fn nodes(_prepared: &Prepared<Self>) -> Option<&Prepared<Nodes>> {
        None
    }

    /// The prepared check, where it is one of a multithreaded program.
    #[cfg(feature = "threads")]
    fn threads(_prepared: &Prepared<Self>) -> Option<&Prepared<Moments>> {
        None
    }

    /// A state as a file has it, if states can be written.
    fn save(
        _system: &Self::System,
        _name: &str,
        _state: &<Self::System as System>::State,
    ) -> Option<SavedState> {
        None
    }

    /// Explores.
    fn check(prepared: Prepared<Self>, control: &Control) -> Verdict;

    /// Runs a trace again.
    fn replay(prepared: &Prepared<Self>, trace: &Trace) -> Result<Replay, ReplayError>;

    /// Runs a trace again, for somebody who watches each step.
    fn execute_steps(prepared: &Prepared<Self>, trace: &Trace) -> Result<Verdict, ReplayError>;
}

/// What a host does with a prepared check. Never inlined: for the hosts of this library it is compiled here.
macro_rules! entry_points {
    () => {
        #[inline(never)]
        fn check(prepared: Prepared<Self>, control: &Control) -> Verdict {
            run(prepared, control)
        }

        #[inline(never)]
        fn replay(prepared: &Prepared<Self>, trace: &Trace) -> Result<Replay, ReplayError> {
            replay(prepared, trace)
        }

        #[inline(never)]
        fn execute_steps(prepared: &Prepared<Self>, trace: &Trace) -> Result<Verdict, ReplayError> {
            execute_steps(prepared, trace)
        }
    };
}

/// A [`System`] that is not Dragnet's own.
pub struct Direct<S>(PhantomData<fn() -> S>);

impl<S: System + 'static> Host for Direct<S> {
    type System = S;

    entry_points!();
}

impl Host for Nodes {
    type System = Self;

    fn nodes(prepared: &Prepared<Self>) -> Option<&Prepared<Nodes>> {
        Some(prepared)
    }

    fn save(system: &Self, name: &str, row: &Row) -> Option<SavedState> {
        system.save(name, row)
    }

    entry_points!();
}

#[cfg(feature = "threads")]
impl Host for Moments {
    type System = Self;

    fn threads(prepared: &Prepared<Self>) -> Option<&Prepared<Moments>> {
        Some(prepared)
    }

    entry_points!();
}
