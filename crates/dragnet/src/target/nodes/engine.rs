//! The interned engine: a cluster as a [`System`].
//!
//! A handler is a deterministic function of (local state, input, choices), so it runs once for each such triple. Local
//! states, inputs and inboxes are interned to `u32`s beside their content hash; what a handler did is memoised under
//! (local state, input); a global state is a [`Row`] of numbers, and a successor a few table look-ups, whatever the
//! size of the node states.
//!
//! All tables are shared by all threads and only grow.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use super::cluster::{Cluster, Workload};
use super::context::{Context, TimerChange};
use super::faults::{FaultKind, Faults};
use super::inbox::{Envelopes, Inboxes};
use super::local::{Envelope, Input, Life, Local};
use super::network::{Network, Order};
use super::row::{ENVIRONMENT, Row, inbox_slot, local_slot};
use super::{InFlight, Node, NodeId, Snapshot, Timer};
use crate::panics;
use crate::system::{ComponentId, EventKind, Failure, System};
use crate::tables::{FlatTable, Interner};
use crate::target::Watch;
use crate::trace::{Effect, Exchange, Fingerprint, Key, Step, bind, finish, scatter};

/// A cluster, ready to be explored.
pub struct Nodes<N: Node> {
    nodes: Vec<N>,
    names: Vec<String>,
    network: Network<N::Msg>,
    workloads: Vec<Workload<N::Msg>>,
    timer_budgets: Vec<(Timer, u32)>,
    faults: Faults,
    /// Deliveries that change nothing are left out, and their envelopes stay in flight.
    skips_idle: bool,
    key: Key,
    /// For each place in a row, what its hash is bound with.
    slots: Vec<u64>,
    locals: Vec<Interner<LocalItem<N::State>>>,
    inputs: Interner<InputItem<N::Msg>>,
    inboxes: Inboxes,
    environments: Interner<Environment>,
    outcomes: boxcar::Vec<OutcomeSet<N::Msg>>,
    memo: FlatTable,
    handler_runs: AtomicU64,
}

/// A local state with what follows from it alone.
struct LocalItem<S> {
    local: Local<S>,
    /// The inputs that the node gives itself: its next call, its timers.
    own: Box<[u32]>,
}

impl<S: PartialEq> PartialEq for LocalItem<S> {
    fn eq(&self, other: &Self) -> bool {
        self.local == other.local
    }
}

impl<S: Eq> Eq for LocalItem<S> {}

struct InputItem<M> {
    input: Input<M>,
    /// A hash of the content that does not depend on the key: what events are ordered by.
    order: u64,
    /// Which capacity classes of the network a message belongs to, a bit each.
    classes: u64,
}

impl<M: PartialEq> PartialEq for InputItem<M> {
    fn eq(&self, other: &Self) -> bool {
        self.input == other.input
    }
}

impl<M: Eq> Eq for InputItem<M> {}

/// What is left of the fault budgets, and which nodes a partition has put on the other side.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Environment {
    left: [u32; FaultKind::ALL.len()],
    cut: Option<u64>,
}

impl Environment {
    fn allows(&self, kind: FaultKind) -> bool {
        self.left[kind as usize] > 0
    }

    fn spend(&self, kind: FaultKind) -> Self {
        let mut after = self.clone();
        after.left[kind as usize] -= 1;
        after
    }

    fn separates(&self, from: usize, to: usize) -> bool {
        self.cut
            .is_some_and(|far| (far >> from ^ far >> to) & 1 == 1)
    }
}

/// Everything that one input can do to one local state: an outcome for each combination of choices.
struct OutcomeSet<M> {
    outcomes: Box<[Outcome<M>]>,
    /// Whatever is chosen, nothing changes.
    idle: bool,
}

struct Outcome<M> {
    local: u32,
    /// What the change of the local state adds to the sum of a row.
    delta: u64,
    sent: Box<[u32]>,
    rest: Option<Box<Rest<M>>>,
}

/// The parts of an outcome that are rarely there.
#[derive(Default)]
struct Rest<M> {
    failure: Option<Failure>,
    answers: Vec<M>,
    observations: Vec<String>,
    choices: Vec<usize>,
}

/// A step of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct NodeEvent {
    kind: Kind,
    node: u16,
    /// The `head` of an inbox that is meant.
    head: u16,
    choice: u16,
    /// The input; for a partition, the nodes on the far side.
    input: u32,
    /// The outcomes of the input in this state.
    outcomes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Own,
    Deliver,
    Drop,
    Duplicate,
    Crash,
    Restart,
    Partition,
    Heal,
}

impl PartialEq for NodeEvent {
    /// The same action, in whichever state.
    fn eq(&self, other: &Self) -> bool {
        (self.kind, self.node, self.choice, self.input)
            == (other.kind, other.node, other.choice, other.input)
    }
}

impl Eq for NodeEvent {}

impl<N: Node> Nodes<N> {
    pub(crate) fn new(cluster: Cluster<N>, watch: Watch, key: Key) -> Self {
        let Cluster {
            nodes,
            names,
            network,
            faults,
            workloads,
            timer_budgets,
        } = cluster;
        assert!(
            nodes.len() <= 64,
            "a cluster has at most 64 nodes, and this one has {}",
            nodes.len()
        );
        assert!(
            nodes.len() <= 16 || faults.budget(FaultKind::Partition) == 0,
            "with partitions a cluster has at most 16 nodes, and this one has {}",
            nodes.len()
        );
        // An envelope that is left in flight takes up room on a link with a capacity, and stands before others on an
        // ordered one: there, deliveries that change nothing are always taken.
        let skips_idle =
            watch == Watch::NodeStates && network.order == Order::Any && !network.is_limited();
        Self {
            slots: (0..2 * nodes.len() + 1)
                .map(|slot| scatter(key.0 ^ scatter(slot as u64 + 1)))
                .collect(),
            locals: nodes.iter().map(|_| Interner::new()).collect(),
            inputs: Interner::new(),
            inboxes: Inboxes::new(network.order, key),
            environments: Interner::new(),
            outcomes: boxcar::Vec::new(),
            memo: FlatTable::memo(),
            handler_runs: AtomicU64::new(0),
            nodes,
            names,
            network,
            workloads,
            timer_budgets,
            faults,
            skips_idle,
            key,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn local(&self, node: usize, id: u32) -> &Local<N::State> {
        &self.locals[node].get(id).local
    }

    pub(super) fn input(&self, id: u32) -> &Input<N::Msg> {
        &self.inputs.get(id).input
    }

    pub(super) fn in_flight_to(&self, inbox: u32) -> &[u32] {
        self.inboxes.envelopes(inbox)
    }

    pub(crate) fn snapshot<'a>(&'a self, row: &'a Row) -> Snapshot<'a, N> {
        Snapshot::new(self, row)
    }

    pub(crate) fn in_flight<'a>(&'a self, row: &'a Row) -> InFlight<'a, N> {
        InFlight::new(self, row)
    }

    pub(crate) fn skips_idle(&self) -> bool {
        self.skips_idle
    }

    /// How many distinct local states there are, and how often a handler ran.
    pub(crate) fn work(&self) -> (u64, u64) {
        let locals: usize = self.locals.iter().map(Interner::len).sum();
        (locals as u64, self.handler_runs.load(Ordering::Relaxed))
    }

    fn intern_local(&self, node: usize, local: Local<N::State>) -> u32 {
        let hash = Fingerprint::of(&local, self.key).0;
        let mut own = Vec::new();
        if local.is_up() {
            let work = &self.workloads[node];
            let next = local.called;
            if (next as usize) < work.calls.len() && !(work.in_turn && local.waits()) {
                own.push(self.intern_input(Input::Call(NodeId(node), next)));
            }
            for &timer in &local.timers {
                let budget = self.timer_budgets.iter().find(|(known, _)| *known == timer);
                if budget.is_none_or(|&(_, times)| local.times_run_out(timer) < times) {
                    own.push(self.intern_input(Input::RunOut(NodeId(node), timer)));
                }
            }
        }
        let own = own.into();
        self.locals[node].intern(LocalItem { local, own }, hash).0
    }

    fn intern_input(&self, input: Input<N::Msg>) -> u32 {
        let hash = Fingerprint::of(&input, self.key).0;
        let order = if self.key == Key::default() {
            hash
        } else {
            Fingerprint::of(&input, Key::default()).0
        };
        let mut classes = 0;
        if let Input::Deliver(envelope) = &input {
            for (bit, class) in self.network.classes.iter().enumerate() {
                classes |= u64::from((class.holds)(&envelope.msg)) << bit;
            }
        }
        let item = InputItem {
            input,
            order,
            classes,
        };
        self.inputs.intern(item, hash).0
    }

    fn intern_environment(&self, environment: Environment) -> u32 {
        let hash = Fingerprint::of(&environment, self.key).0;
        self.environments.intern(environment, hash).0
    }

    /// What `input` can do to a node in `local`: looked up, or found out by running the handler.
    #[inline]
    fn outcomes_of(&self, local: u32, input: u32) -> u32 {
        let key = scatter((u64::from(local) << 32 | u64::from(input)).wrapping_add(1));
        match self.memo.get(key) {
            Some(known) => (known - 1) as u32,
            None => self.run_handler(local, input, key),
        }
    }

    #[cold]
    fn run_handler(&self, local: u32, input: u32, key: u64) -> u32 {
        let node = self.input(input).node().0;
        let before = self.local(node, local);
        let mut outcomes = Vec::new();
        let mut idle = true;
        let mut combination = Some(Context::new(NodeId(node), self.nodes.len()));
        while let Some(mut cx) = combination {
            let after = self.handle(before, self.input(input), &mut cx);
            idle &= cx.sent.is_empty()
                && cx.observations.is_empty()
                && cx.failure.is_none()
                && after == *before;
            outcomes.push(self.outcome(node, local, after, &mut cx));
            combination = cx.next_combination();
        }
        let outcomes = outcomes.into_boxed_slice();
        assert!(
            outcomes.len() <= usize::from(u16::MAX),
            "a handler offers more than 65,535 choices"
        );
        let id = self.outcomes.push(OutcomeSet { outcomes, idle });
        self.memo.upsert(key, id as u64 + 1, |old, _| old);
        (self.memo.get(key).expect("it has just been set") - 1) as u32
    }

    /// The local state after one run of a handler. What else it did is in `cx`, a panic as its failure.
    fn handle(
        &self,
        before: &Local<N::State>,
        input: &Input<N::Msg>,
        cx: &mut Context<N::Msg>,
    ) -> Local<N::State> {
        self.handler_runs.fetch_add(1, Ordering::Relaxed);
        let mut after = before.clone();
        let ran = panics::catch(|| self.run_once(&mut after, input, cx));
        if let Err(failure) = ran {
            cx.failure = Some(failure);
            return before.clone();
        }
        for &(timer, change) in &cx.timers {
            match change {
                TimerChange::Set => after.set_timer(timer),
                TimerChange::Cancelled => after.cancel_timer(timer),
            }
        }
        after.answered = (after.answered + cx.answers.len() as u32).min(after.called);
        after
    }

    fn run_once(
        &self,
        local: &mut Local<N::State>,
        input: &Input<N::Msg>,
        cx: &mut Context<N::Msg>,
    ) {
        let node = &self.nodes[input.node().0];
        match input {
            Input::Deliver(envelope) => {
                node.on_message(local.state_mut(), envelope.from, envelope.msg.clone(), cx);
            }
            &Input::RunOut(_, timer) => {
                local.cancel_timer(timer);
                if self.timer_budgets.iter().any(|(known, _)| *known == timer) {
                    local.count_run_out(timer);
                }
                node.on_timer(local.state_mut(), timer, cx);
            }
            &Input::Call(NodeId(id), call) => {
                local.called += 1;
                let call = self.workloads[id].calls[call as usize].clone();
                node.on_call(local.state_mut(), call, cx);
            }
            Input::Crash(_) => {
                let durable = node.durable(local.state_mut());
                local.life = Life::Down(durable);
                local.timers.clear();
                local.answered = local.called;
            }
            Input::Restart(_) => {
                let state = match &mut local.life {
                    Life::Down(Some(durable)) => {
                        node.on_recover(durable, cx);
                        durable.clone()
                    }
                    _ => node.on_start(cx),
                };
                local.life = Life::Up(state);
            }
        }
    }

    fn outcome(
        &self,
        node: usize,
        before: u32,
        after: Local<N::State>,
        cx: &mut Context<N::Msg>,
    ) -> Outcome<N::Msg> {
        let local = self.intern_local(node, after);
        let slot = self.slots[local_slot(node)];
        let hash = |local| bind(self.locals[node].hash(local), slot);
        let sent = self.intern_sent(NodeId(node), cx);
        let rest = Rest {
            failure: cx.failure.take(),
            answers: std::mem::take(&mut cx.answers),
            observations: std::mem::take(&mut cx.observations),
            choices: cx.choices_taken().collect(),
        };
        let empty = rest.failure.is_none()
            && rest.answers.is_empty()
            && rest.observations.is_empty()
            && rest.choices.is_empty();
        Outcome {
            local,
            delta: hash(local).wrapping_sub(hash(before)),
            sent,
            rest: (!empty).then(|| Box::new(rest)),
        }
    }

    fn intern_sent(&self, from: NodeId, cx: &mut Context<N::Msg>) -> Box<[u32]> {
        std::mem::take(&mut cx.sent)
            .into_iter()
            .map(|(to, msg)| self.intern_input(Input::Deliver(Envelope { from, to, msg })))
            .collect()
    }

    /// Puts `id` into a place of the row, whose old and new hash are given.
    #[inline]
    fn replace(&self, row: &mut Row, slot: usize, id: u32, old: u64, new: u64) {
        let bound = self.slots[slot];
        row.sum = row
            .sum
            .wrapping_add(bind(new, bound))
            .wrapping_sub(bind(old, bound));
        row.ids[slot] = id;
    }

    #[inline]
    fn set_inbox(&self, row: &mut Row, node: usize, inbox: u32) {
        let slot = inbox_slot(node);
        let old = row.ids[slot];
        if old != inbox {
            self.replace(
                row,
                slot,
                inbox,
                self.inboxes.hash(old),
                self.inboxes.hash(inbox),
            );
        }
    }

    fn set_environment(&self, row: &mut Row, environment: Environment) {
        let old = row.ids[ENVIRONMENT];
        let new = self.intern_environment(environment);
        let hash = |id| self.environments.hash(id);
        self.replace(row, ENVIRONMENT, new, hash(old), hash(new));
    }

    fn environment(&self, row: &Row) -> &Environment {
        self.environments.get(row.ids[ENVIRONMENT])
    }

    /// Sends `envelopes` on their way, as far as the network lets them.
    #[inline]
    fn send(&self, row: &mut Row, envelopes: &[u32]) {
        if envelopes.is_empty() {
            return;
        }
        let environment = self.environment(row);
        for &envelope in envelopes {
            let Input::Deliver(sent) = self.input(envelope) else {
                unreachable!("only messages are sent");
            };
            let to = sent.to.0;
            if environment.cut.is_some() && environment.separates(sent.from.0, to) {
                continue;
            }
            let inbox = self.inboxes.with(row.ids[inbox_slot(to)], envelope, self);
            self.set_inbox(row, to, inbox);
        }
    }

    /// Lets the event's input have its effect on the node and the network.
    #[inline]
    fn act(&self, row: &mut Row, event: &NodeEvent) -> Result<(), Failure> {
        let outcome = self.outcome_of(event);
        if let Some(failure) = outcome.rest.as_ref().and_then(|rest| rest.failure.as_ref()) {
            return Err(failure.clone());
        }
        row.ids[local_slot(usize::from(event.node))] = outcome.local;
        row.sum = row.sum.wrapping_add(outcome.delta);
        self.send(row, &outcome.sent);
        Ok(())
    }

    fn outcome_of(&self, event: &NodeEvent) -> &Outcome<N::Msg> {
        &self.outcomes[event.outcomes as usize].outcomes[usize::from(event.choice)]
    }

    fn push_input(
        &self,
        kind: Kind,
        node: usize,
        head: usize,
        local: u32,
        input: u32,
        out: &mut Vec<NodeEvent>,
    ) {
        let outcomes = self.outcomes_of(local, input);
        for choice in 0..self.outcomes[outcomes as usize].outcomes.len() {
            out.push(NodeEvent {
                kind,
                node: node as u16,
                head: head as u16,
                choice: choice as u16,
                input,
                outcomes,
            });
        }
    }

    fn push_faults(&self, row: &Row, environment: &Environment, out: &mut Vec<NodeEvent>) {
        let plain = |kind, node: usize, head: usize, input| NodeEvent {
            kind,
            node: node as u16,
            head: head as u16,
            choice: 0,
            input,
            outcomes: 0,
        };
        for (fault, kind) in [
            (FaultKind::Drop, Kind::Drop),
            (FaultKind::Duplicate, Kind::Duplicate),
        ] {
            if environment.allows(fault) {
                for node in 0..self.nodes.len() {
                    for (head, input) in self.inboxes.heads(row.ids[inbox_slot(node)]).enumerate() {
                        out.push(plain(kind, node, head, input));
                    }
                }
            }
        }
        for node in 0..self.nodes.len() {
            let local = row.ids[local_slot(node)];
            if self.local(node, local).is_up() {
                if environment.allows(FaultKind::Crash) {
                    let crash = self.intern_input(Input::Crash(NodeId(node)));
                    self.push_input(Kind::Crash, node, 0, local, crash, out);
                }
            } else if environment.allows(FaultKind::Restart) {
                let restart = self.intern_input(Input::Restart(NodeId(node)));
                self.push_input(Kind::Restart, node, 0, local, restart, out);
            }
        }
        if environment.cut.is_some() {
            out.push(plain(Kind::Heal, 0, 0, 0));
        } else if environment.allows(FaultKind::Partition) && self.nodes.len() > 1 {
            // Node 0 stays on the near side, so that each way to fall in two comes up once.
            for far in (2..1_u32 << self.nodes.len()).step_by(2) {
                out.push(plain(Kind::Partition, 0, 0, far));
            }
        }
    }

    fn name(&self, node: NodeId) -> &str {
        &self.names[node.0]
    }

    fn start(&self, node: usize) -> Vec<(Local<N::State>, Box<[u32]>)> {
        let mut starts = Vec::new();
        let mut combination = Some(Context::new(NodeId(node), self.nodes.len()));
        while let Some(mut cx) = combination {
            let mut local = Local::up(self.nodes[node].on_start(&mut cx));
            for &(timer, change) in &cx.timers {
                match change {
                    TimerChange::Set => local.set_timer(timer),
                    TimerChange::Cancelled => local.cancel_timer(timer),
                }
            }
            starts.push((local, self.intern_sent(NodeId(node), &mut cx)));
            combination = cx.next_combination();
        }
        starts
    }

    /// The sum of a row from the contents of its parts alone, under any key.
    fn sum_from_contents(&self, row: &Row, key: Key) -> u64 {
        let slot = |slot: usize| scatter(key.0 ^ scatter(slot as u64 + 1));
        let mut sum = bind(
            Fingerprint::of(self.environment(row), key).0,
            slot(ENVIRONMENT),
        );
        for node in 0..self.nodes.len() {
            let local = self.local(node, row.ids[local_slot(node)]);
            let envelopes = self.in_flight_to(row.ids[inbox_slot(node)]);
            let hashes: Vec<u64> = envelopes
                .iter()
                .map(|&envelope| Fingerprint::of(self.input(envelope), key).0)
                .collect();
            for (hash, place) in [
                (Fingerprint::of(local, key).0, local_slot(node)),
                (Fingerprint::of(&hashes[..], key).0, inbox_slot(node)),
            ] {
                sum = sum.wrapping_add(bind(hash, slot(place)));
            }
        }
        sum
    }
}

impl<N: Node> Envelopes for Nodes<N> {
    fn place(&self, envelope: u32) -> (usize, u64) {
        let item = self.inputs.get(envelope);
        match &item.input {
            Input::Deliver(envelope) => (envelope.from.0, item.order),
            _ => unreachable!("only messages are in flight"),
        }
    }

    fn hash(&self, envelope: u32) -> u64 {
        self.inputs.hash(envelope)
    }

    fn fits(&self, envelope: u32, among: &[u32]) -> bool {
        if !self.network.is_limited() {
            return true;
        }
        let from = self.place(envelope).0;
        let on_link = || among.iter().filter(|&&other| self.place(other).0 == from);
        let room = self
            .network
            .capacity
            .is_none_or(|capacity| on_link().count() < capacity);
        let mine = self.inputs.get(envelope).classes;
        room && self.network.classes.iter().enumerate().all(|(bit, class)| {
            let belongs = |classes: u64| classes >> bit & 1 == 1;
            !belongs(mine)
                || on_link()
                    .filter(|&&other| belongs(self.inputs.get(other).classes))
                    .count()
                    < class.capacity
        })
    }
}

impl<N: Node> System for Nodes<N> {
    type State = Row;
    type Event = NodeEvent;

    fn initial(&self) -> Vec<Row> {
        let environment = self.intern_environment(Environment {
            left: FaultKind::ALL.map(|kind| self.faults.budget(kind)),
            cut: None,
        });
        let mut empty = Row {
            sum: 0,
            ids: std::iter::repeat_n(Inboxes::EMPTY, self.slots.len()).collect(),
        };
        empty.ids[ENVIRONMENT] = environment;
        empty.sum = bind(self.environments.hash(environment), self.slots[ENVIRONMENT]);
        for node in 0..self.nodes.len() {
            let nothing = bind(
                self.inboxes.hash(Inboxes::EMPTY),
                self.slots[inbox_slot(node)],
            );
            empty.sum = empty.sum.wrapping_add(nothing);
        }
        let mut rows = vec![empty];
        for node in 0..self.nodes.len() {
            let starts = self.start(node);
            rows = rows
                .iter()
                .flat_map(|row| starts.iter().map(move |start| (row, start)))
                .map(|(row, (local, sent))| {
                    let mut row = row.clone();
                    let slot = local_slot(node);
                    let id = self.intern_local(node, local.clone());
                    row.ids[slot] = id;
                    let hash = bind(self.locals[node].hash(id), self.slots[slot]);
                    row.sum = row.sum.wrapping_add(hash);
                    self.send(&mut row, sent);
                    row
                })
                .collect();
        }
        rows
    }

    #[inline]
    fn events(&self, row: &Row, out: &mut Vec<NodeEvent>) {
        for node in 0..self.nodes.len() {
            let local = row.ids[local_slot(node)];
            let item = self.locals[node].get(local);
            for &input in &item.own {
                self.push_input(Kind::Own, node, 0, local, input, out);
            }
            if !item.local.is_up() {
                continue;
            }
            for (head, input) in self.inboxes.heads(row.ids[inbox_slot(node)]).enumerate() {
                let outcomes = self.outcomes_of(local, input);
                let set = &self.outcomes[outcomes as usize];
                if set.idle && self.skips_idle {
                    continue;
                }
                for choice in 0..set.outcomes.len() {
                    out.push(NodeEvent {
                        kind: Kind::Deliver,
                        node: node as u16,
                        head: head as u16,
                        choice: choice as u16,
                        input,
                        outcomes,
                    });
                }
            }
        }
        if !self.faults.is_none() {
            self.push_faults(row, self.environment(row), out);
        }
    }

    #[inline]
    fn next(&self, row: &Row, event: &NodeEvent) -> Result<Row, Failure> {
        let mut next = row.clone();
        let node = usize::from(event.node);
        let head = usize::from(event.head);
        let inbox = row.ids[inbox_slot(node)];
        let spend = |kind| self.environment(row).spend(kind);
        match event.kind {
            Kind::Own => self.act(&mut next, event)?,
            Kind::Deliver => {
                self.set_inbox(&mut next, node, self.inboxes.without(inbox, head, self));
                self.act(&mut next, event)?;
            }
            Kind::Drop => {
                self.set_inbox(&mut next, node, self.inboxes.without(inbox, head, self));
                self.set_environment(&mut next, spend(FaultKind::Drop));
            }
            Kind::Duplicate => {
                self.set_inbox(&mut next, node, self.inboxes.with_copy(inbox, head, self));
                self.set_environment(&mut next, spend(FaultKind::Duplicate));
            }
            Kind::Crash => {
                self.act(&mut next, event)?;
                if self.network.order == Order::PerLink {
                    self.set_inbox(&mut next, node, Inboxes::EMPTY);
                }
                self.set_environment(&mut next, spend(FaultKind::Crash));
            }
            Kind::Restart => {
                self.act(&mut next, event)?;
                self.set_environment(&mut next, spend(FaultKind::Restart));
            }
            Kind::Partition => {
                let mut environment = spend(FaultKind::Partition);
                environment.cut = Some(u64::from(event.input));
                for to in 0..self.nodes.len() {
                    let reaches = |envelope| !environment.separates(self.place(envelope).0, to);
                    let inbox = self.inboxes.only(row.ids[inbox_slot(to)], self, reaches);
                    self.set_inbox(&mut next, to, inbox);
                }
                self.set_environment(&mut next, environment);
            }
            Kind::Heal => {
                let mut environment = self.environment(row).clone();
                environment.cut = None;
                self.set_environment(&mut next, environment);
            }
        }
        Ok(next)
    }

    #[inline]
    fn fingerprint(&self, row: &Row, key: Key) -> Fingerprint {
        let sum = if key == self.key {
            row.sum
        } else {
            self.sum_from_contents(row, key)
        };
        Fingerprint(finish(sum))
    }

    fn kind(&self, _row: &Row, event: &NodeEvent) -> EventKind {
        match event.kind {
            Kind::Deliver if self.outcomes[event.outcomes as usize].idle => EventKind::Idle,
            Kind::Own | Kind::Deliver | Kind::Heal => EventKind::Progress,
            _ => EventKind::Fault,
        }
    }

    fn waiting(&self, row: &Row) -> Vec<ComponentId> {
        (0..self.nodes.len())
            .filter(|&node| self.local(node, row.ids[local_slot(node)]).waits())
            .map(ComponentId)
            .collect()
    }

    fn component(&self, event: &NodeEvent) -> ComponentId {
        ComponentId(usize::from(event.node))
    }

    fn components(&self) -> Vec<String> {
        self.names.clone()
    }

    fn effect(&self, _row: &Row, event: &NodeEvent) -> Effect {
        let exchange = |input: u32| {
            let Input::Deliver(envelope) = self.input(input) else {
                unreachable!("only messages are exchanged");
            };
            Exchange {
                from: ComponentId(envelope.from.0),
                to: ComponentId(envelope.to.0),
                content: Fingerprint(self.inputs.get(input).order),
            }
        };
        let acts = matches!(
            event.kind,
            Kind::Own | Kind::Deliver | Kind::Crash | Kind::Restart
        );
        Effect {
            received: (event.kind == Kind::Deliver).then(|| exchange(event.input)),
            sent: if acts {
                self.outcome_of(event)
                    .sent
                    .iter()
                    .map(|&e| exchange(e))
                    .collect()
            } else {
                Vec::new()
            },
        }
    }

    fn explain(&self, before: &Row, event: &NodeEvent, after: Option<&Row>) -> Step {
        let node = NodeId(usize::from(event.node));
        let message = |input: u32| match self.input(input) {
            Input::Deliver(envelope) => (
                format!("{:?}", envelope.msg),
                self.name(envelope.from),
                self.name(envelope.to),
            ),
            _ => unreachable!("only messages are lost or duplicated"),
        };
        let network = |action: String| Step {
            component: "network".to_owned(),
            action,
            ..Step::default()
        };
        let action = match event.kind {
            Kind::Drop => {
                let (msg, from, to) = message(event.input);
                return network(format!("loses {msg} from {from} to {to}"));
            }
            Kind::Duplicate => {
                let (msg, from, to) = message(event.input);
                return network(format!("duplicates {msg} from {from} to {to}"));
            }
            Kind::Partition => {
                let far = (0..self.nodes.len()).filter(|node| event.input >> node & 1 == 1);
                let far: Vec<&str> = far.map(|node| self.name(NodeId(node))).collect();
                return network(format!(
                    "falls in two: {} cut off from the rest",
                    far.join(", ")
                ));
            }
            Kind::Heal => return network("heals".to_owned()),
            Kind::Crash => "crashes".to_owned(),
            Kind::Restart => "restarts".to_owned(),
            Kind::Deliver => {
                let (msg, from, _) = message(event.input);
                format!("receives {msg} from {from}")
            }
            Kind::Own => match self.input(event.input) {
                Input::RunOut(_, timer) => format!("timer {timer} runs out"),
                &Input::Call(NodeId(id), call) => {
                    format!("is called: {:?}", self.workloads[id].calls[call as usize])
                }
                _ => unreachable!("a node gives itself only calls and timers"),
            },
        };
        let mut step = Step {
            component: self.name(node).to_owned(),
            action,
            ..Step::default()
        };
        let outcome = self.outcome_of(event);
        for &envelope in &outcome.sent {
            let (msg, _, to) = message(envelope);
            step.sent.push(format!("to {to}: {msg}"));
        }
        if let Some(rest) = &outcome.rest {
            for choice in &rest.choices {
                step.notes.push(format!("chooses {choice}"));
            }
            for answer in &rest.answers {
                step.notes.push(format!("answers {answer:?}"));
            }
            for observation in &rest.observations {
                step.notes.push(format!("observes {observation}"));
            }
        }
        if let Some(after) = after {
            let slot = local_slot(node.0);
            let (before, after) = (
                self.local(node.0, before.ids[slot]),
                self.local(node.0, after.ids[slot]),
            );
            step.changed = match (before.state(), after.state()) {
                (Some(before), Some(after)) => Step::changes(before, after),
                (None, Some(after)) => vec![format!("comes back as {after:?}")],
                (Some(_), None) => match &after.life {
                    Life::Down(Some(durable)) => vec![format!("keeps {durable:?}")],
                    _ => vec!["keeps nothing".to_owned()],
                },
                (None, None) => Vec::new(),
            };
            let set = after.timers.iter().filter(|t| !before.timers.contains(t));
            step.notes
                .extend(set.map(|timer| format!("sets timer {timer}")));
            let ran_out = match self.input(event.input) {
                Input::RunOut(_, timer) => Some(*timer),
                _ => None,
            };
            let cancelled = before
                .timers
                .iter()
                .filter(|&timer| !after.timers.contains(timer) && Some(*timer) != ran_out);
            if after.is_up() {
                step.notes
                    .extend(cancelled.map(|timer| format!("cancels timer {timer}")));
            }
        }
        step
    }

    fn reenact(&self, row: &Row, event: &NodeEvent) {
        if matches!(
            event.kind,
            Kind::Own | Kind::Deliver | Kind::Crash | Kind::Restart
        ) {
            let node = usize::from(event.node);
            let rest = self.outcome_of(event).rest.as_ref();
            let choices = rest.map_or(&[][..], |rest| &rest.choices);
            let mut cx = Context::choosing(NodeId(node), self.nodes.len(), choices);
            let local = self.local(node, row.ids[local_slot(node)]);
            self.handle(local, self.input(event.input), &mut cx);
        }
    }

    fn introduce(&self, row: &Row) -> Vec<String> {
        let mut lines = Vec::new();
        for node in 0..self.nodes.len() {
            let local = self.local(node, row.ids[local_slot(node)]);
            if let Some(state) = local.state() {
                lines.push(format!("{}: {state:?}", self.names[node]));
            }
        }
        for (from, to, msg) in self.in_flight(row).iter() {
            lines.push(format!(
                "in flight from {} to {}: {msg:?}",
                self.name(from),
                self.name(to)
            ));
        }
        lines
    }
}

impl<M: Hash> Hash for InputItem<M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.input.hash(state);
    }
}
