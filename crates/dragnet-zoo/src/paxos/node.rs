//! The replica: proposer, acceptor and learner in one node.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use dragnet::{Context, Node, NodeId};
use serde::{Deserialize, Serialize};

/// A node of the protocol, in all three roles at once.
///
/// As a node of its own it decides on [`Value`]s. As a layer of another it decides on whatever that one likes: see
/// [`propose`](Replica::propose), [`receive`](Replica::receive) and [`on_disk`](Replica::on_disk).
#[derive(Clone, Copy, Debug)]
pub struct Replica {
    /// How many nodes, from the first on, are told what acceptors accept.
    pub learners: usize,
    /// What is wrong with it.
    pub mistake: Option<Mistake>,
}

/// A mistake that an implementation of Paxos can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// The proposer goes on with what the response says that completes the majority.
    LastResponse,
    /// The proposer goes on with the first accepted value that it hears of.
    FirstValue,
    /// What the acceptor promised and accepted does not survive a crash.
    ForgetOnRestart,
}

/// What replicas say to each other, what the application asks, and what it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg<V = Value> {
    /// The application wants `value` to be chosen for `index`.
    Propose {
        /// What is decided on.
        index: Index,
        /// What is wanted.
        value: V,
    },
    /// A proposer asks for the promise to ignore smaller ballots.
    Prepare {
        /// What is decided on.
        index: Index,
        /// The proposer's ballot.
        ballot: Ballot,
    },
    /// An acceptor promises, and says what it has accepted so far.
    PrepareResponse {
        /// What is decided on.
        index: Index,
        /// The ballot that the promise is given to.
        ballot: Ballot,
        /// The proposal with the highest ballot that the acceptor has accepted.
        accepted: Option<Accepted<V>>,
    },
    /// A proposer with a majority of promises asks for acceptance.
    Accept {
        /// What is decided on.
        index: Index,
        /// What to accept.
        proposal: Accepted<V>,
    },
    /// An acceptor has accepted.
    Learn {
        /// What is decided on.
        index: Index,
        /// What it has accepted.
        proposal: Accepted<V>,
    },
    /// The answer to the application: this is chosen.
    Chosen {
        /// What was decided on.
        index: Index,
        /// What was chosen.
        value: V,
    },
}

/// Which of many independent decisions a message is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Index(pub u8);

impl Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// What can be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Value(pub u8);

impl Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// The number of a proposal. No two proposers ever use the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ballot {
    /// Higher than any round that the proposer had seen.
    pub round: u8,
    /// The proposer.
    pub node: u8,
}

impl Debug for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.round, self.node)
    }
}

/// A value under a ballot: a proposal that can be accepted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Accepted<V = Value> {
    /// Its ballot, which decides between two of them.
    pub ballot: Ballot,
    /// Its value.
    pub value: V,
}

impl<V: Debug> Debug for Accepted<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}@{:?}", self.value, self.ballot)
    }
}

/// What a replica remembers: a slot for each index that it has heard of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Memory<V = Value> {
    slots: BTreeMap<Index, Slot<V>>,
}

/// What a replica remembers of one index.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Slot<V> {
    /// The highest ballot that the acceptor has promised itself to. On disk.
    promised: Option<Ballot>,
    /// What the acceptor has accepted last. On disk.
    accepted: Option<Accepted<V>>,
    /// The ballot of this node's own last proposal. On disk, so that it is never used again.
    proposed: Option<Ballot>,
    proposer: Proposer<V>,
    /// Which acceptors have accepted what, as far as the learner has heard; forgotten when a value is chosen. Sorted.
    heard: Vec<(Accepted<V>, Nodes)>,
    /// What the learner knows to be chosen. On disk.
    chosen: Option<V>,
}

/// What the proposer is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Proposer<V> {
    #[default]
    Idle,
    /// It waits for a majority of promises.
    Preparing {
        /// What the application wants.
        wanted: V,
        promises: Nodes,
        /// What the promises so far oblige it to propose.
        bound: Option<Accepted<V>>,
    },
    /// It has asked for acceptance and waits to learn what is chosen.
    Accepting,
}

/// A set of nodes, a bit each.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Nodes(u16);

impl Nodes {
    /// Adds a node; false when it was there already.
    fn insert(&mut self, node: NodeId) -> bool {
        let with = self.0 | 1 << node.0;
        std::mem::replace(&mut self.0, with) != with
    }

    fn are_majority_of(self, nodes: usize) -> bool {
        2 * self.0.count_ones() as usize > nodes
    }
}

impl Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = (0..16).filter(|node| self.0 >> node & 1 == 1);
        f.debug_set().entries(members.map(NodeId)).finish()
    }
}

impl<V> Default for Memory<V> {
    fn default() -> Self {
        let slots = BTreeMap::new();
        Self { slots }
    }
}

impl<V> Default for Slot<V> {
    fn default() -> Self {
        Self {
            promised: None,
            accepted: None,
            proposed: None,
            proposer: Proposer::Idle,
            heard: Vec::new(),
            chosen: None,
        }
    }
}

impl<V> Memory<V> {
    /// What this replica has learned: each index with the value that was chosen for it, in the order of the indexes.
    pub fn choices(&self) -> impl Iterator<Item = (Index, &V)> {
        let slots = self.slots.iter();
        slots.filter_map(|(&index, slot)| slot.chosen.as_ref().map(|value| (index, value)))
    }

    /// The indexes for which this replica has ever made a proposal.
    pub fn proposed(&self) -> impl Iterator<Item = Index> {
        let slots = self.slots.iter();
        slots.filter_map(|(&index, slot)| slot.proposed.map(|_| index))
    }

    /// Whether this replica has ever made a proposal for `index`.
    pub fn has_proposed(&self, index: Index) -> bool {
        let slot = self.slots.get(&index);
        slot.is_some_and(|slot| slot.proposed.is_some())
    }

    /// Whether its proposal for `index` waits for promises.
    pub fn is_preparing(&self, index: Index) -> bool {
        let slot = self.slots.get(&index);
        slot.is_some_and(|slot| matches!(slot.proposer, Proposer::Preparing { .. }))
    }

    fn slot(&mut self, index: Index) -> &mut Slot<V> {
        self.slots.entry(index).or_default()
    }
}

impl Replica {
    /// Begins a proposal of `value` for `index`. When something has been chosen, that is the answer at once.
    pub fn propose<V: Clone>(
        &self,
        memory: &mut Memory<V>,
        index: Index,
        value: V,
        cx: &mut Context<Msg<V>>,
    ) {
        let slot = memory.slot(index);
        if let Some(value) = slot.chosen.clone() {
            cx.answer(Msg::Chosen { index, value });
            return;
        }
        let seen = slot
            .promised
            .max(slot.proposed)
            .map_or(0, |ballot| ballot.round);
        let ballot = Ballot {
            round: seen + 1,
            node: cx.me().0 as u8,
        };
        slot.proposed = Some(ballot);
        slot.proposer = Proposer::Preparing {
            wanted: value,
            promises: Nodes::default(),
            bound: None,
        };
        cx.broadcast(Msg::Prepare { index, ballot });
    }

    /// Handles what another replica says, or this one to itself.
    pub fn receive<V: Clone + Ord + Debug>(
        &self,
        memory: &mut Memory<V>,
        from: NodeId,
        msg: Msg<V>,
        cx: &mut Context<Msg<V>>,
    ) {
        match msg {
            Msg::Prepare { index, ballot } => {
                Self::promise(memory.slot(index), index, ballot, from, cx);
            }
            Msg::PrepareResponse {
                index,
                ballot,
                accepted,
            } => {
                self.hear_promise(memory.slot(index), index, (from, ballot, accepted), cx);
            }
            Msg::Accept { index, proposal } => {
                self.accept(memory.slot(index), index, proposal, cx);
            }
            Msg::Learn { index, proposal } => {
                Self::learn(memory.slot(index), index, proposal, from, cx);
            }
            Msg::Propose { .. } | Msg::Chosen { .. } => {
                panic!("{msg:?} is between a replica and its application, and came from {from}")
            }
        }
    }

    /// What of `memory` survives a crash.
    pub fn on_disk<V: Clone>(&self, memory: &Memory<V>) -> Memory<V> {
        let mut disk = memory.clone();
        for slot in disk.slots.values_mut() {
            slot.proposer = Proposer::Idle;
            slot.heard.clear();
            if self.mistake == Some(Mistake::ForgetOnRestart) {
                slot.promised = None;
                slot.accepted = None;
            }
        }
        disk
    }

    fn promise<V: Clone>(
        slot: &mut Slot<V>,
        index: Index,
        ballot: Ballot,
        from: NodeId,
        cx: &mut Context<Msg<V>>,
    ) {
        if Some(ballot) > slot.promised {
            slot.promised = Some(ballot);
            let accepted = slot.accepted.clone();
            cx.send(
                from,
                Msg::PrepareResponse {
                    index,
                    ballot,
                    accepted,
                },
            );
        }
    }

    fn hear_promise<V: Clone + Ord>(
        &self,
        slot: &mut Slot<V>,
        index: Index,
        (from, ballot, accepted): (NodeId, Ballot, Option<Accepted<V>>),
        cx: &mut Context<Msg<V>>,
    ) {
        let Proposer::Preparing {
            wanted,
            promises,
            bound,
        } = &mut slot.proposer
        else {
            return;
        };
        if slot.proposed != Some(ballot) || !promises.insert(from) {
            return;
        }
        let before = bound.take();
        *bound = match self.mistake {
            Some(Mistake::LastResponse) => accepted,
            Some(Mistake::FirstValue) => before.or(accepted),
            _ => accepted.max(before),
        };
        if promises.are_majority_of(cx.nodes()) {
            let value = bound
                .as_ref()
                .map_or(&*wanted, |bound| &bound.value)
                .clone();
            slot.proposer = Proposer::Accepting;
            cx.broadcast(Msg::Accept {
                index,
                proposal: Accepted { ballot, value },
            });
        }
    }

    fn accept<V: Clone + Eq>(
        &self,
        slot: &mut Slot<V>,
        index: Index,
        proposal: Accepted<V>,
        cx: &mut Context<Msg<V>>,
    ) {
        if Some(proposal.ballot) >= slot.promised && slot.accepted.as_ref() != Some(&proposal) {
            slot.promised = Some(proposal.ballot);
            slot.accepted = Some(proposal.clone());
            for learner in 0..self.learners {
                let proposal = proposal.clone();
                cx.send(learner, Msg::Learn { index, proposal });
            }
        }
    }

    fn learn<V: Clone + Ord>(
        slot: &mut Slot<V>,
        index: Index,
        proposal: Accepted<V>,
        from: NodeId,
        cx: &mut Context<Msg<V>>,
    ) {
        if slot.chosen.is_some() {
            return;
        }
        let at = match slot
            .heard
            .binary_search_by(|(known, _)| known.cmp(&proposal))
        {
            Ok(at) => at,
            Err(at) => {
                slot.heard.insert(at, (proposal.clone(), Nodes::default()));
                at
            }
        };
        let acceptors = &mut slot.heard[at].1;
        acceptors.insert(from);
        if acceptors.are_majority_of(cx.nodes()) {
            let value = proposal.value;
            slot.chosen = Some(value.clone());
            slot.heard.clear();
            // Whoever still wanted something chosen has its answer, and need not go on.
            if !matches!(std::mem::take(&mut slot.proposer), Proposer::Idle) {
                cx.answer(Msg::Chosen { index, value });
            }
        }
    }
}

impl Node for Replica {
    type State = Memory;
    type Msg = Msg;

    fn on_start(&self, _cx: &mut Context<Msg>) -> Memory {
        Memory::default()
    }

    fn on_call(&self, memory: &mut Memory, call: Msg, cx: &mut Context<Msg>) {
        match call {
            Msg::Propose { index, value } => self.propose(memory, index, value, cx),
            other => panic!("the application can only propose, and called {other:?}"),
        }
    }

    fn on_message(&self, memory: &mut Memory, from: NodeId, msg: Msg, cx: &mut Context<Msg>) {
        self.receive(memory, from, msg, cx);
    }

    fn durable(&self, memory: &Memory) -> Option<Memory> {
        Some(self.on_disk(memory))
    }
}
