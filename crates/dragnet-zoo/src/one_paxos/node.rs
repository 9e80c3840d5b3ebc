//! The replica: leader, acceptor and learner in one node, above the log that says who is what.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use dragnet::{Context, Node, NodeId};
use serde::{Deserialize, Serialize};

use crate::paxos::{self, Index, Value};

/// A node of the protocol, which can take every role.
#[derive(Clone, Copy, Debug)]
pub struct Replica {
    /// The layer below, which keeps the log of roles.
    pub utility: paxos::Replica,
    /// What is wrong with it.
    pub mistake: Option<Mistake>,
}

/// A mistake that an implementation of 1Paxos can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// The first acceptor is set to `*(members.begin()++)`, which is the first member, where `*(++members.begin())` was
    /// meant.
    SharedInitialRole,
}

/// What replicas say to each other, what the application asks, and what it is answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// The application wants `value` to be chosen for `index`.
    Propose {
        /// What is decided on.
        index: Index,
        /// What is wanted.
        value: Value,
    },
    /// The application's fault detector takes the leader for failed, and wants this node to lead.
    LeaderFailed,
    /// The application's fault detector takes the acceptor for failed, and wants this node, the leader, to replace it.
    AcceptorFailed,
    /// A leader asks the acceptor for the promise to ignore earlier epochs.
    Prepare {
        /// The epoch that began with the leader or with the acceptor.
        epoch: Epoch,
    },
    /// The acceptor promises, and says what it has accepted so far.
    Promise {
        /// The epoch that the promise is given to.
        epoch: Epoch,
        /// What it has accepted for each index.
        accepted: Values,
    },
    /// The leader asks the acceptor for acceptance.
    Accept {
        /// The leader's epoch.
        epoch: Epoch,
        /// What is decided on.
        index: Index,
        /// What to accept.
        value: Value,
    },
    /// The acceptor has accepted, so that the value is chosen.
    Learn {
        /// What was decided on.
        index: Index,
        /// What was chosen.
        value: Value,
    },
    /// What the replicas of the log say to each other.
    Utility(paxos::Msg<Entry>),
    /// The answer to the application: this is chosen.
    Chosen {
        /// What was decided on.
        index: Index,
        /// What was chosen.
        value: Value,
    },
    /// The answer to the application's suspicion: these are the roles now.
    Now(Roles),
}

/// A value for each of some indexes.
pub type Values = BTreeMap<Index, Value>;

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Entry {
    /// This node leads from now on.
    LeaderChange(NodeId),
    /// Another node accepts from now on.
    AcceptorChange {
        /// Which one.
        acceptor: NodeId,
        /// Everything that the acceptor before it may have accepted, then or later.
        proposals: Values,
    },
}

/// How many entries the log has: each begins an epoch, with another leader or another acceptor.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Epoch(pub u8);

impl Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

/// Who leads and who accepts, and since which epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Roles {
    /// The epoch that began with the last change.
    pub epoch: Epoch,
    /// The node that proposes.
    pub leader: NodeId,
    /// The node that accepts.
    pub acceptor: NodeId,
}

impl Roles {
    /// The roles before anybody has entered anything in the log.
    pub const FIRST: Self = Self {
        epoch: Epoch(0),
        leader: NodeId(0),
        acceptor: NodeId(1),
    };

    /// The roles after all of `log`.
    fn after<'a>(log: impl Iterator<Item = &'a Entry>) -> Self {
        log.fold(Self::FIRST, |roles, entry| {
            let epoch = Epoch(roles.epoch.0 + 1);
            match *entry {
                Entry::LeaderChange(leader) => Self {
                    epoch,
                    leader,
                    ..roles
                },
                Entry::AcceptorChange { acceptor, .. } => Self {
                    epoch,
                    acceptor,
                    ..roles
                },
            }
        })
    }

    /// The node that would accept after the present acceptor, if there is one besides the leader.
    fn next_acceptor(self, nodes: usize) -> Option<NodeId> {
        (1..nodes)
            .map(|step| NodeId((self.acceptor.0 + step) % nodes))
            .find(|&node| node != self.leader)
    }
}

/// A value that was accepted in an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Accepted {
    /// The epoch of the leader who proposed it.
    pub epoch: Epoch,
    /// The value.
    pub value: Value,
}

impl Debug for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}@{:?}", self.value, self.epoch)
    }
}

/// What a replica remembers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Memory {
    /// The log, as the layer below knows it.
    utility: paxos::Memory<Entry>,
    /// Which roles this node knows of. On disk.
    roles: Roles,
    /// What it does as the leader. On disk.
    lead: Lead,
    /// The last epoch that the acceptor has promised itself to. On disk.
    promised: Epoch,
    /// What the acceptor has accepted. On disk.
    accepted: BTreeMap<Index, Accepted>,
    /// What the learner knows to be chosen. On disk.
    chosen: Values,
    /// What the application wants and has not been answered. A leader proposes it where it is not bound otherwise.
    wanted: Values,
    /// The change of roles that the application wants and has not been answered.
    wish: Option<Wish>,
}

/// What a node does as the leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Lead {
    /// Nothing: another node leads.
    Follows,
    /// It waits for the acceptor's promise.
    Prepares,
    /// It proposes. These are all its proposals, with everything that earlier leaders may have had accepted: no index
    /// ever gets another value.
    Leads { proposals: Values },
    /// It has asked for another acceptor, with these proposals. One more would escape those who come after it, so there
    /// is none before the log has gone on: not even after a crash, since the entry may be chosen without its doing.
    HandsOver { proposals: Values },
}

/// A change of roles that the application wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Wish {
    /// This node is to lead.
    Lead,
    /// Another acceptor is to take the place of this one.
    Replace(NodeId),
}

impl Memory {
    /// What this node knows to be chosen.
    pub fn choices(&self) -> impl Iterator<Item = (Index, Value)> {
        self.chosen.iter().map(|(&index, &value)| (index, value))
    }

    /// Which roles this node knows of.
    pub fn roles(&self) -> Roles {
        self.roles
    }

    /// Whether this node leads and may propose.
    pub fn leads(&self) -> bool {
        matches!(self.lead, Lead::Leads { .. })
    }

    /// The log from its beginning as far as this node knows it without a gap.
    fn log(&self) -> impl Iterator<Item = &Entry> {
        let entries = self.utility.choices().zip(0..);
        entries
            .take_while(|&((index, _), position)| index == Index(position))
            .map(|((_, entry), _)| entry)
    }

    /// What acceptors before the present one may have accepted.
    fn carried_over(&self) -> Values {
        let proposals = self.log().filter_map(|entry| match entry {
            Entry::AcceptorChange { proposals, .. } => Some(proposals),
            Entry::LeaderChange(_) => None,
        });
        proposals.last().cloned().unwrap_or_default()
    }

    /// The entry that fulfils `wish` if it is the next one, or `None` when that is fulfilled or cannot be.
    ///
    /// It is made for its place in the log: whoever proposes it there knows all entries before.
    fn entry_for(&self, wish: Wish, cx: &Context<Msg>) -> Option<Entry> {
        let roles = self.roles;
        match (wish, &self.lead) {
            (Wish::Lead, _) => {
                let could = cx.me() != roles.leader && cx.me() != roles.acceptor;
                could.then_some(Entry::LeaderChange(cx.me()))
            }
            (Wish::Replace(failed), Lead::Leads { proposals } | Lead::HandsOver { proposals })
                if roles.acceptor == failed =>
            {
                let acceptor = roles.next_acceptor(cx.nodes())?;
                let proposals = proposals.clone();
                Some(Entry::AcceptorChange {
                    acceptor,
                    proposals,
                })
            }
            // Only who knows everything that the acceptor may have accepted can do without it.
            (Wish::Replace(_), _) => None,
        }
    }
}

impl Replica {
    /// The application wants something chosen.
    fn want(memory: &mut Memory, index: Index, value: Value, cx: &mut Context<Msg>) {
        if let Some(&value) = memory.chosen.get(&index) {
            cx.answer(Msg::Chosen { index, value });
            return;
        }
        memory.wanted.insert(index, value);
        if let Lead::Leads { proposals } = &mut memory.lead
            && !proposals.contains_key(&index)
        {
            proposals.insert(index, value);
            Self::ask(memory.roles, index, value, cx);
        }
    }

    /// Asks for acceptance whom this node takes for the acceptor: a leader does not look into the log for it.
    fn ask(roles: Roles, index: Index, value: Value, cx: &mut Context<Msg>) {
        cx.send(
            roles.acceptor,
            Msg::Accept {
                epoch: roles.epoch,
                index,
                value,
            },
        );
    }

    /// Proposes the entry that the application's wish takes, or answers it.
    fn pursue(&self, memory: &mut Memory, cx: &mut Context<Msg>) {
        let Some(wish) = memory.wish else {
            return;
        };
        let Some(entry) = memory.entry_for(wish, cx) else {
            memory.wish = None;
            cx.answer(Msg::Now(memory.roles));
            return;
        };
        if let Entry::AcceptorChange { proposals, .. } = &entry {
            memory.lead = Lead::HandsOver {
                proposals: proposals.clone(),
            };
        }
        let index = Index(memory.roles.epoch.0);
        cx.layer(Msg::Utility, |cx| {
            self.utility.propose(&mut memory.utility, index, entry, cx);
        });
    }

    /// Takes the roles that the log gives, where it has gone on.
    fn follow(&self, memory: &mut Memory, cx: &mut Context<Msg>) {
        let now = Roles::after(memory.log());
        if now.epoch == memory.roles.epoch {
            return;
        }
        memory.roles = now;
        memory.lead = Lead::Follows;
        if now.leader == cx.me() {
            Self::prepare(memory, cx);
        }
        self.pursue(memory, cx);
    }

    fn prepare(memory: &mut Memory, cx: &mut Context<Msg>) {
        memory.lead = Lead::Prepares;
        let epoch = memory.roles.epoch;
        cx.send(memory.roles.acceptor, Msg::Prepare { epoch });
    }

    fn promise(memory: &mut Memory, epoch: Epoch, leader: NodeId, cx: &mut Context<Msg>) {
        if epoch >= memory.promised {
            memory.promised = epoch;
            let values = memory.accepted.iter();
            let accepted = values.map(|(&index, known)| (index, known.value));
            cx.send(
                leader,
                Msg::Promise {
                    epoch,
                    accepted: accepted.collect(),
                },
            );
        }
    }

    fn hear_promise(memory: &mut Memory, epoch: Epoch, accepted: Values, cx: &mut Context<Msg>) {
        if memory.lead != Lead::Prepares || memory.roles.epoch != epoch {
            return;
        }
        // What may have been accepted goes before what is wanted, and is the same wherever it comes from.
        let mut proposals = memory.wanted.clone();
        proposals.extend(memory.carried_over());
        proposals.extend(accepted);
        for (&index, &value) in &proposals {
            Self::ask(memory.roles, index, value, cx);
        }
        memory.lead = Lead::Leads { proposals };
    }

    fn accept(memory: &mut Memory, index: Index, proposal: Accepted, cx: &mut Context<Msg>) {
        if proposal.epoch >= memory.promised && memory.accepted.get(&index) != Some(&proposal) {
            memory.promised = proposal.epoch;
            memory.accepted.insert(index, proposal);
            let value = proposal.value;
            cx.broadcast(Msg::Learn { index, value });
        }
    }

    fn learn(memory: &mut Memory, index: Index, value: Value, cx: &mut Context<Msg>) {
        if memory.chosen.contains_key(&index) {
            return;
        }
        memory.chosen.insert(index, value);
        if memory.wanted.remove(&index).is_some() {
            cx.answer(Msg::Chosen { index, value });
        }
    }
}

impl Node for Replica {
    type State = Memory;
    type Msg = Msg;

    fn on_start(&self, cx: &mut Context<Msg>) -> Memory {
        let mut roles = Roles::FIRST;
        if self.mistake == Some(Mistake::SharedInitialRole) {
            roles.acceptor = roles.leader;
        }
        let lead = if roles.leader == cx.me() {
            // Nobody came before the first leader, so that it needs no promise.
            Lead::Leads {
                proposals: Values::new(),
            }
        } else {
            Lead::Follows
        };
        Memory {
            utility: paxos::Memory::default(),
            roles,
            lead,
            promised: Epoch(0),
            accepted: BTreeMap::new(),
            chosen: Values::new(),
            wanted: Values::new(),
            wish: None,
        }
    }

    fn on_call(&self, memory: &mut Memory, call: Msg, cx: &mut Context<Msg>) {
        match call {
            Msg::Propose { index, value } => Self::want(memory, index, value, cx),
            Msg::LeaderFailed => {
                memory.wish = Some(Wish::Lead);
                self.pursue(memory, cx);
            }
            Msg::AcceptorFailed => {
                memory.wish = Some(Wish::Replace(memory.roles.acceptor));
                self.pursue(memory, cx);
            }
            other => panic!("the application can propose and suspect, and called {other:?}"),
        }
    }

    fn on_message(&self, memory: &mut Memory, from: NodeId, msg: Msg, cx: &mut Context<Msg>) {
        match msg {
            Msg::Prepare { epoch } => Self::promise(memory, epoch, from, cx),
            Msg::Promise { epoch, accepted } => Self::hear_promise(memory, epoch, accepted, cx),
            Msg::Accept {
                epoch,
                index,
                value,
            } => Self::accept(memory, index, Accepted { epoch, value }, cx),
            Msg::Learn { index, value } => Self::learn(memory, index, value, cx),
            Msg::Utility(msg) => {
                cx.layer(Msg::Utility, |cx| {
                    self.utility.receive(&mut memory.utility, from, msg, cx);
                });
                self.follow(memory, cx);
            }
            other => {
                panic!("{other:?} is between a replica and its application, and came from {from}")
            }
        }
    }

    fn durable(&self, memory: &Memory) -> Option<Memory> {
        Some(Memory {
            utility: self.utility.on_disk(&memory.utility),
            wanted: Values::new(),
            wish: None,
            ..memory.clone()
        })
    }

    fn on_recover(&self, memory: &mut Memory, cx: &mut Context<Msg>) {
        if memory.lead == Lead::Prepares {
            Self::prepare(memory, cx);
        }
    }
}
