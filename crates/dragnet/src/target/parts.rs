//! What local model checking asks of a target: its nodes one by one, by the numbers under which they are interned.

use std::sync::Arc;

use super::nodes::FaultKind;

/// A system of nodes, taken apart: local states, inputs and what one makes of the other, without any network.
///
/// Everything is named by the numbers of the interned tables, so that an explorer of parts knows no types of the
/// program under test.
pub trait Parts: Sync {
    /// How many nodes there are.
    fn nodes(&self) -> usize;

    /// The ways in which a node can begin.
    fn starts(&self, node: usize) -> Vec<Beginning>;

    /// A hash of a local state, bound to its node.
    fn local_hash(&self, local: u32) -> u64;

    /// Whether the node of a local state is up.
    fn is_up(&self, local: u32) -> bool;

    /// The inputs that a node in a local state gives itself: its next call, its timers.
    fn own_inputs(&self, local: u32) -> &[u32];

    /// The inputs with which a node crashes and restarts.
    fn crash_and_restart(&self, node: usize) -> (u32, u32);

    /// What kind of input this is.
    fn nature(&self, input: u32) -> Nature;

    /// A hash of an input's content, the same in every run.
    fn input_hash(&self, input: u32) -> u64;

    /// What `input` does to a node in `local`, which runs its handler unless that has been done before.
    fn run(&self, local: u32, input: u32) -> Ran;

    /// What came of one of the choices that a run, given by its number, offered.
    fn outcome(&self, run: u32, choice: usize) -> PartOutcome<'_>;

    /// The message that both ends of a link receive when it comes back, on its way to one of them.
    fn notice(&self, from: usize, to: usize) -> Option<Sent>;

    /// How many messages each pool of a link has room for. One that belongs to several pools takes up room in each.
    fn pools(&self) -> Vec<u32>;

    /// The pools that a message belongs to, a bit each.
    fn pools_of(&self, envelope: u32) -> u64;

    /// How messages travel.
    fn links(&self) -> Links;

    /// How often a kind of fault may happen.
    fn budget(&self, kind: FaultKind) -> u32;
}

/// One way in which a node can begin.
#[derive(Clone, Debug)]
pub struct Beginning {
    pub local: u32,
    pub sent: Arc<[Sent]>,
}

/// A message on its way to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sent {
    pub to: u32,
    pub envelope: u32,
}

/// An input's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nature {
    /// A message arrives.
    Delivery {
        /// Who sent it.
        from: usize,
        /// Who receives it.
        to: usize,
    },
    /// A call of the workload, the how manyeth.
    Call(u32),
    /// A timer runs out.
    RunOut,
    /// The node crashes.
    Crash,
    /// The node restarts.
    Restart,
}

/// A handler that has run, once for each choice that it offers.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    /// The number of what came of it: the same for the same local state and input.
    pub number: u32,
    pub choices: usize,
    /// Whatever is chosen, nothing changes.
    pub idle: bool,
}

/// What came of one choice.
#[derive(Clone, Copy)]
pub struct PartOutcome<'a> {
    pub local: u32,
    pub sent: &'a [Sent],
    pub fails: bool,
}

/// How messages travel, as far as it matters to one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    /// In order on each link.
    pub ordered: bool,
    /// A full link loses what is sent.
    pub limited: bool,
}
