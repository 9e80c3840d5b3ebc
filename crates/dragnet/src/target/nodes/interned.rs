//! The nodes of a cluster with what depends on their types: local states and inputs, interned, and what handlers did.
//!
//! A handler is a deterministic function of (local state, input, choices), so it runs once for each such triple. Local
//! states and inputs are interned to `u32`s beside their content hash; what a handler did is memoised under
//! (local state, input).

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::cluster::{Cluster, Workload};
use super::context::{Context, HARDLY_BEGUN};
use super::digested::noting_digests;
use super::faults::Faults;
use super::guard::{self, Run};
use super::handlers::Counts;
use super::local::{Envelope, Input, Life, Local};
use super::network::Network;
use super::outcome::{Drawn, Outcome, OutcomeSet, Rest};
use super::row::{local_slot, slot};
use super::saved::{Codec, Departure};
use super::{Node, NodeId, Timer};
use crate::coarse_hash::CoarseHash;
use crate::options::Determinism;
use crate::panics;
use crate::step_guard;
use crate::sterile;
use crate::system::{Failure, FailureKind};
use crate::tables::{Arena, Domain, FlatTable, Interner};
use crate::target::Setting;
use crate::target::parts::Sent;
use crate::trace::{Fingerprint, Key, bind, scatter};

/// The nodes of a cluster, behind [`Handlers`](super::handlers::Handlers).
pub(super) struct Interned<N: Node> {
    /// What the cluster consists of is shared with the tables of its [runs](super::run).
    pub(super) nodes: Arc<[N]>,
    pub(super) names: Arc<[String]>,
    pub(super) network: Arc<Network<N::Msg>>,
    pub(super) workloads: Arc<[Workload<N::Msg>]>,
    pub(super) timer_budgets: Arc<[(Timer, u32)]>,
    pub(super) codec: Option<Codec<N>>,
    departure: Option<Arc<Departure<N>>>,
    pub(super) faults: Faults,
    determinism: Determinism,
    pub(super) key: Key,
    pub(super) locals: Interner<LocalItem<N::State>>,
    pub(super) inputs: Interner<InputItem<N::Msg>>,
    pub(super) outcomes: Arena<OutcomeSet>,
    pub(super) memo: FlatTable,
    /// What most handlers send.
    nothing: Arc<[Sent]>,
    pub(super) counts: Counts,
    /// For each node, the inputs with which it crashes and restarts.
    pub(super) crash_inputs: Vec<(u32, u32)>,
}

/// A local state of a node, with what follows from it alone. Its hash is bound to the node.
pub(super) struct LocalItem<S> {
    pub(super) node: usize,
    pub(super) local: Local<S>,
    /// The inputs that the node gives itself: its next call, its timers.
    pub(super) own: Box<[u32]>,
}

impl<S: PartialEq> PartialEq for LocalItem<S> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node && self.local == other.local
    }
}

impl<S: Eq> Eq for LocalItem<S> {}

pub(super) struct InputItem<M> {
    pub(super) input: Input<M>,
    /// A hash of the content that does not depend on the key: what events are ordered by.
    pub(super) order: u64,
    /// Which capacity classes of the network a message belongs to, a bit each.
    pub(super) classes: u64,
    /// A handler has been run twice with it.
    guarded: AtomicBool,
}

impl<M: PartialEq> PartialEq for InputItem<M> {
    fn eq(&self, other: &Self) -> bool {
        self.input == other.input
    }
}

impl<M: Eq> Eq for InputItem<M> {}

/// One way in which a node can begin: its state, and what it sends.
pub(super) struct Start<S> {
    pub(super) local: Local<S>,
    pub(super) sent: Arc<[Sent]>,
}

impl<N: Node> Interned<N> {
    pub(super) fn new(cluster: Cluster<N>, setting: &Setting) -> Self {
        let domain = &setting.domain;
        let interned = Self {
            locals: Interner::new(domain),
            inputs: Interner::new(domain),
            outcomes: Arena::new(),
            memo: FlatTable::small(domain),
            nothing: Arc::default(),
            counts: Counts::default(),
            nodes: cluster.nodes.into(),
            names: cluster.names.into(),
            network: Arc::new(cluster.network),
            workloads: cluster.workloads.into(),
            timer_budgets: cluster.timer_budgets.into(),
            codec: cluster.codec,
            departure: cluster.departure.map(Arc::new),
            faults: cluster.faults,
            determinism: setting.determinism,
            key: setting.key,
            crash_inputs: Vec::new(),
        };
        interned.with_crash_inputs()
    }

    /// The same with empty tables.
    pub(super) fn afresh(&self, domain: &Arc<Domain>) -> Self {
        let interned = Self {
            locals: Interner::new(domain),
            inputs: Interner::new(domain),
            outcomes: Arena::new(),
            memo: FlatTable::small(domain),
            nothing: Arc::clone(&self.nothing),
            counts: Counts::default(),
            nodes: Arc::clone(&self.nodes),
            names: Arc::clone(&self.names),
            network: Arc::clone(&self.network),
            workloads: Arc::clone(&self.workloads),
            timer_budgets: Arc::clone(&self.timer_budgets),
            codec: None,
            departure: self.departure.clone(),
            faults: self.faults,
            determinism: self.determinism,
            key: self.key,
            crash_inputs: Vec::new(),
        };
        interned.with_crash_inputs()
    }

    fn with_crash_inputs(mut self) -> Self {
        self.crash_inputs = (0..self.nodes.len())
            .map(|node| {
                let crash = self.intern_input(Input::Crash(NodeId(node)));
                let restart = self.intern_input(Input::Restart(NodeId(node)));
                (crash, restart)
            })
            .collect();
        self
    }

    #[inline]
    pub(super) fn local(&self, id: u32) -> &Local<N::State> {
        &self.locals.get(id).local
    }

    pub(super) fn input(&self, id: u32) -> &Input<N::Msg> {
        &self.inputs.get(id).input
    }

    /// Two unequal local states or messages with one hash, if there are any.
    pub(super) fn unequal_parts(&self) -> Option<CoarseHash> {
        let locals = self.locals.collision().map(|(one, other)| {
            match (one.local.own_state(), other.local.own_state()) {
                (Some(one), Some(other)) if one != other => CoarseHash::of(one, other),
                _ => CoarseHash::of(&one.local, &other.local),
            }
        });
        locals.or_else(|| {
            let (one, other) = self.inputs.collision()?;
            Some(match (&one.input, &other.input) {
                (Input::Deliver(one), Input::Deliver(other)) if one.msg != other.msg => {
                    CoarseHash::of(&one.msg, &other.msg)
                }
                (one, other) => CoarseHash::of(one, other),
            })
        })
    }

    pub(super) fn intern_local(&self, node: usize, local: Local<N::State>) -> u32 {
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
        let hash = self.hash_of::<N::State>(&local, self.key);
        let hash = bind(hash, slot(self.key, local_slot(node)));
        let own = own.into();
        let item = LocalItem { node, local, own };
        let known = panics::catch_in::<N::State, _>("Eq", || {
            self.locals.find(hash, |known| *known == item)
        });
        if let Some(known) = or_raise(known) {
            or_raise(panics::catch_in::<N::State, _>("Drop", || drop(item)));
            return known;
        }
        or_raise(panics::catch_in::<N::State, _>("Eq", || {
            intern_compared(&self.locals, item, hash)
        }))
    }

    /// The hash of a state or an input, in which `T` is what the program itself hashes; takes note when a digest is part of
    /// it.
    fn hash_of<T>(&self, content: &impl Hash, key: Key) -> u64 {
        let (hash, digested) = or_raise(panics::catch_in::<T, _>("Hash", || {
            noting_digests(|| Fingerprint::of(content, key))
        }));
        if digested {
            self.counts.digested.store(true, Ordering::Relaxed);
        }
        hash.0
    }

    pub(super) fn intern_input(&self, input: Input<N::Msg>) -> u32 {
        let hash = self.hash_of::<N::Msg>(&input, self.key);
        let order = if self.key == Key::default() {
            hash
        } else {
            self.hash_of::<N::Msg>(&input, Key::default())
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
            guarded: AtomicBool::new(false),
        };
        or_raise(panics::catch_in::<N::Msg, _>("Eq", || {
            intern_compared(&self.inputs, item, hash)
        }))
    }

    /// What `input` can do to a node in `local`: looked up, or found out by running the handler.
    #[inline]
    pub(super) fn outcomes_of(&self, local: u32, input: u32) -> u32 {
        let key = memo_key(local, input);
        match self.memo.get(key) {
            Some(known) => (known - 1) as u32,
            None => self.run_handler(local, input, key),
        }
    }

    #[cold]
    fn run_handler(&self, local: u32, input: u32, key: u64) -> u32 {
        let before = self.local(local);
        let runs = self.run_for_each_choice(before, self.input(input));
        let ran = runs.len() as u64;
        self.counts.handler_runs.fetch_add(ran, Ordering::Relaxed);
        let again = self
            .must_guard(input, key)
            .then(|| self.run_for_each_choice(before, self.input(input)));
        let outcomes = self.outcomes_of_runs(local, input, runs, again);
        self.memoise(key, outcomes)
    }

    fn memoise(&self, key: u64, outcomes: OutcomeSet) -> u32 {
        let id = self.outcomes.push(outcomes);
        (self.memo.settle(key, u64::from(id) + 1) - 1) as u32
    }

    /// What `input` does to a node in `local`, where its handler chooses what follows from `draw`: looked up, or found out by
    /// running the handler once.
    pub(super) fn draw_outcome(&self, local: u32, input: u32, draw: u64) -> Drawn {
        let key = memo_key(local, input);
        // Where there are several outcomes, which one it is must not depend on whether they are known.
        if let Some(known) = self.memo.get(key) {
            let id = (known - 1) as u32;
            if self.outcomes.get(id).is_single() {
                return Drawn::Known(id);
            }
        }
        let before = self.local(local);
        let happened = self.input(input);
        let mut cx = Context::drawing(happened.node(), self.nodes.len(), draw);
        let after = self.handle_within_limits(before, happened, &mut cx);
        self.counts.handler_runs.fetch_add(1, Ordering::Relaxed);
        let again = self.must_guard_run().then(|| {
            let choices: Vec<usize> = cx.choices_taken().collect();
            let mut cx = Context::choosing(happened.node(), self.nodes.len(), &choices);
            let after = self.handle_within_limits(before, happened, &mut cx);
            vec![(after, cx)]
        });
        let outcomes = self.outcomes_of_runs(local, input, vec![(after, cx)], again);
        match outcomes.is_single() {
            true => Drawn::Known(self.memoise(key, outcomes)),
            false => Drawn::Once(outcomes),
        }
    }

    /// Whether a handler that a run has run is run a second time: often at first, then seldom. To run it again can take long,
    /// where its state has to be made anew for that.
    fn must_guard_run(&self) -> bool {
        match self.determinism {
            Determinism::Off => false,
            Determinism::Always => true,
            Determinism::Sample => {
                let ran = self.counts.handler_runs.load(Ordering::Relaxed);
                ran < 256 || ran.is_multiple_of(256)
            }
        }
    }

    /// The outcomes of the runs of a handler, which are part of the step as far as code of the program is concerned: `Hash`,
    /// `Eq` and `Drop` of states and messages, and the classes of the network.
    fn outcomes_of_runs(
        &self,
        local: u32,
        input: u32,
        runs: Vec<Run<N::State, N::Msg>>,
        again: Option<Vec<Run<N::State, N::Msg>>>,
    ) -> OutcomeSet {
        let node = self.input(input).node().0;
        let before = self.local(local);
        let step = HandlerStep {
            system: self,
            node: NodeId(node),
            run: Some((before, self.input(input))),
            choices: Vec::new(),
        };
        let interned = panics::catch(|| {
            step_guard::run(&step, || self.intern_outcomes(local, input, runs, again))
        });
        let (outcomes, idle) = interned.unwrap_or_else(|failure| {
            if failure.kind() == FailureKind::Limit {
                panics::raise(failure);
            }
            let mut cx = Context::new(NodeId(node), self.nodes.len());
            (
                Box::new([self.failed(local, failure, &mut cx)]) as Box<[_]>,
                false,
            )
        });
        OutcomeSet { outcomes, idle }
    }

    /// The outcomes of the runs of a handler, and whether all of them change nothing. Where the handler was run `again`, it
    /// must have done the same.
    fn intern_outcomes(
        &self,
        local: u32,
        input: u32,
        mut runs: Vec<Run<N::State, N::Msg>>,
        again: Option<Vec<Run<N::State, N::Msg>>>,
    ) -> (Box<[Outcome]>, bool) {
        let node = self.input(input).node().0;
        let before = self.local(local);
        if let Some(again) = again {
            let failure = match panics::catch(|| guard::difference(&runs, &again)) {
                Ok(difference) => difference.map(|difference| {
                    let input = self.happening(self.input(input));
                    difference.failure(self.name(NodeId(node)), &input)
                }),
                Err(failure) => Some(failure),
            };
            let dropped = again.into_iter().map(Self::drop_run);
            let failure = dropped.fold(failure, |failure, dropped| failure.or(dropped.err()));
            if failure.is_some() {
                let mut cx = Context::new(NodeId(node), self.nodes.len());
                cx.failure = failure;
                for run in runs.drain(..) {
                    let _ = Self::drop_run(run);
                }
                runs.push((None, cx));
            }
        }
        let idle = runs.iter_mut().all(|(after, cx)| {
            cx.sent.is_empty()
                && cx.observations.is_empty()
                && cx.failure.is_none()
                && panics::catch_in::<N::State, _>("Eq", || after.as_ref() == Some(before))
                    .unwrap_or_else(|failure| {
                        cx.failure = Some(failure);
                        false
                    })
        });
        let outcomes = runs
            .into_iter()
            .map(|(after, mut cx)| {
                let interned = panics::catch(|| {
                    let after = after.map_or(local, |after| self.intern_local(node, after));
                    self.intern_outcome(node, after, &mut cx)
                });
                // The state before is known already, and can be hashed and compared.
                interned.unwrap_or_else(|failure| self.failed(local, failure, &mut cx))
            })
            .collect();
        (outcomes, idle)
    }

    /// Runs the handler of an input once for each combination of choices.
    fn run_for_each_choice(
        &self,
        before: &Local<N::State>,
        input: &Input<N::Msg>,
    ) -> Vec<Run<N::State, N::Msg>> {
        let mut runs = Vec::new();
        let mut next = Some(Context::new(input.node(), self.nodes.len()));
        while let Some(mut cx) = next {
            if runs.len() >= HARDLY_BEGUN {
                step_guard::give_up_if_interrupted(|| {
                    let (node, ran) = (self.name(input.node()), runs.len());
                    format!(
                        "{node} {}: {ran} combinations of its choices were run",
                        self.happening(input)
                    )
                });
            }
            let after = self.handle_within_limits(before, input, &mut cx);
            next = cx.next_combination();
            runs.push((after, cx));
        }
        runs
    }

    /// Runs a handler; a limit of the checker that it meets is raised, with the step named.
    fn handle_within_limits(
        &self,
        before: &Local<N::State>,
        input: &Input<N::Msg>,
        cx: &mut Context<N::Msg>,
    ) -> Option<Local<N::State>> {
        let after = self.handle(before, input, cx);
        if let Some(failure) = cx
            .failure
            .take_if(|failure| failure.kind() == FailureKind::Limit)
        {
            let (node, happening) = (self.name(input.node()), self.happening(input));
            panics::limit(format!("{node} {happening}: {}", failure.message()));
        }
        after
    }

    /// Whether the handler is run a second time: for each input at first, then for one state in sixteen.
    fn must_guard(&self, input: u32, key: u64) -> bool {
        match self.determinism {
            Determinism::Off => false,
            Determinism::Always => true,
            Determinism::Sample => {
                let known = self.inputs.get(input).guarded.swap(true, Ordering::Relaxed);
                !known || key.is_multiple_of(16)
            }
        }
    }

    /// Drops a run that nobody needs. There is one state in it, so it panics once at most.
    fn drop_run(run: Run<N::State, N::Msg>) -> Result<(), Failure> {
        panics::catch_in::<N::State, _>("Drop", || drop(run))
    }

    /// The local state after one run of a handler, unless it panics. What else it did is in `cx`, a panic as its failure.
    pub(super) fn handle(
        &self,
        before: &Local<N::State>,
        input: &Input<N::Msg>,
        cx: &mut Context<N::Msg>,
    ) -> Option<Local<N::State>> {
        let step = HandlerStep {
            system: self,
            node: input.node(),
            run: Some((before, input)),
            choices: cx.given_choices(),
        };
        let ran = sterile::run(&(before, input), || {
            step_guard::run(&step, || {
                let cloned = panics::catch_in::<N::State, _>("Clone", || before.clone());
                let mut after = or_raise(cloned);
                self.run_once(&mut after, input, cx);
                after
            })
        });
        let mut after = match ran {
            Ok(after) => after,
            Err(failure) => {
                cx.failure = Some(failure);
                return None;
            }
        };
        after.change_timers(&cx.timers);
        after.count_answers(cx.answers.len());
        Some(after)
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

    fn intern_outcome(&self, node: usize, local: u32, cx: &mut Context<N::Msg>) -> Outcome {
        let sent = self.intern_sent(NodeId(node), cx);
        let answers = std::mem::take(&mut cx.answers);
        let has_answers = !answers.is_empty();
        let rest = Rest {
            failure: cx.failure.take(),
            answers: Box::new(answers),
            observations: std::mem::take(&mut cx.observations),
            choices: cx.choices_taken().collect(),
        };
        let empty = rest.failure.is_none()
            && !has_answers
            && rest.observations.is_empty()
            && rest.choices.is_empty();
        Outcome {
            local,
            sent,
            rest: (!empty).then(|| Box::new(rest)),
        }
    }

    /// The outcome of a run whose state or messages cannot be interned, because their `Hash` or `Eq` panics.
    #[cold]
    fn failed(&self, before: u32, failure: Failure, cx: &mut Context<N::Msg>) -> Outcome {
        Outcome {
            local: before,
            sent: Arc::clone(&self.nothing),
            rest: Some(Box::new(Rest {
                failure: Some(cx.failure.take().unwrap_or(failure)),
                answers: Box::new(Vec::<N::Msg>::new()),
                observations: Vec::new(),
                choices: cx.choices_taken().collect(),
            })),
        }
    }

    fn intern_sent(&self, from: NodeId, cx: &mut Context<N::Msg>) -> Arc<[Sent]> {
        if cx.sent.is_empty() {
            return Arc::clone(&self.nothing);
        }
        std::mem::take(&mut cx.sent)
            .into_iter()
            .enumerate()
            .map(|(number, (to, msg))| {
                if number >= HARDLY_BEGUN {
                    step_guard::give_up_if_interrupted(|| {
                        format!("the messages of {} were being sent", self.name(from))
                    });
                }
                Sent {
                    to: to.0 as u32,
                    envelope: self.intern_input(Input::Deliver(Envelope { from, to, msg })),
                }
            })
            .collect()
    }

    pub(super) fn name(&self, node: NodeId) -> &str {
        &self.names[node.0]
    }

    pub(super) fn start(&self, node: usize) -> Vec<Start<N::State>> {
        if let Some(departure) = &self.departure {
            let sent = departure.in_flight.iter();
            let sent = sent.filter(|envelope| envelope.from.0 == node);
            return vec![Start {
                local: departure.locals[node].clone(),
                sent: sent
                    .map(|envelope| Sent {
                        to: envelope.to.0 as u32,
                        envelope: self.intern_input(Input::Deliver(envelope.clone())),
                    })
                    .collect(),
            }];
        }
        let runs = self.start_for_each_choice(node);
        let again = match self.determinism {
            Determinism::Off => None,
            _ => Some(self.start_for_each_choice(node)),
        };
        self.while_starting(node, || {
            let difference = again.and_then(|again| guard::difference(&runs, &again));
            if let Some(difference) = difference {
                panics::raise(difference.failure(self.name(NodeId(node)), "starts"));
            }
            let started = runs.into_iter().filter_map(|(local, mut cx)| {
                Some(Start {
                    local: local?,
                    sent: self.intern_sent(NodeId(node), &mut cx),
                })
            });
            started.collect()
        })
    }

    /// The number of a local state in which a node begins.
    pub(super) fn intern_start(&self, node: usize, local: Local<N::State>) -> u32 {
        self.while_starting(node, || self.intern_local(node, local))
    }

    /// Runs code of the program that interning a beginning of a node calls, as part of the step in which it starts.
    fn while_starting<R>(&self, node: usize, code: impl FnOnce() -> R) -> R {
        let step = HandlerStep {
            system: self,
            node: NodeId(node),
            run: None,
            choices: Vec::new(),
        };
        step_guard::run(&step, code)
    }

    fn start_for_each_choice(&self, node: usize) -> Vec<Run<N::State, N::Msg>> {
        let mut runs = Vec::new();
        let mut next = Some(Context::new(NodeId(node), self.nodes.len()));
        while let Some(mut cx) = next {
            if runs.len() >= HARDLY_BEGUN {
                step_guard::give_up_if_interrupted(|| {
                    let (node, ran) = (self.name(NodeId(node)), runs.len());
                    format!("{node} starts: {ran} combinations of its choices were run")
                });
            }
            let step = HandlerStep {
                system: self,
                node: NodeId(node),
                run: None,
                choices: cx.given_choices(),
            };
            let started = sterile::run(&NodeId(node), || {
                step_guard::run(&step, || self.nodes[node].on_start(&mut cx))
            });
            let failure = cx.failure.take();
            let mut local = match (started, failure) {
                (Ok(state), None) => Local::up(state),
                (Err(failure), _) | (_, Some(failure)) => panics::raise(failure),
            };
            local.change_timers(&cx.timers);
            next = cx.next_combination();
            runs.push((Some(local), cx));
        }
        runs
    }
}

/// What a handler is run on.
type Situation<'a, N> = (&'a Local<<N as Node>::State>, &'a Input<<N as Node>::Msg>);

/// A run of a handler, or of `on_start` where there is no state and input yet.
struct HandlerStep<'a, N: Node> {
    system: &'a Interned<N>,
    node: NodeId,
    run: Option<Situation<'a, N>>,
    choices: Vec<usize>,
}

impl<N: Node> step_guard::Step for HandlerStep<'_, N> {
    fn key(&self) -> u64 {
        Fingerprint::of(&(self.node, self.run, &self.choices), Key::default()).0
    }

    fn describe(&self) -> String {
        let happening = match self.run {
            Some((_, input)) => self.system.happening(input),
            None => "starts".to_owned(),
        };
        let choices = match self.choices.is_empty() {
            true => String::new(),
            false => format!(", choosing {:?}", self.choices),
        };
        let state = self.run.and_then(|(before, _)| before.state());
        let state = state.map(|state| format!(", in the state {state:?}"));
        let state = state.unwrap_or_default();
        format!(
            "{} {happening}{choices}{state}",
            self.system.name(self.node)
        )
    }

    fn owner(&self) -> &str {
        self.system.name(self.node)
    }
}

/// The number of an item, which is compared to itself where it is new: so an `Eq` that panics does so in whichever tables a
/// state or message is interned first.
fn intern_compared<T: Eq>(items: &Interner<T>, item: T, hash: u64) -> u32 {
    let (id, is_new) = items.intern(item, hash);
    if is_new {
        let (item, same) = (items.get(id), items.get(id));
        // Only that it returns matters.
        let _ = std::hint::black_box(item == same);
    }
    id
}

/// The key of what an input can do to a local state.
fn memo_key(local: u32, input: u32) -> u64 {
    scatter((u64::from(local) << 32 | u64::from(input)).wrapping_add(1))
}

/// What came of it, or the failure raised to whoever runs the step.
fn or_raise<T>(result: Result<T, Failure>) -> T {
    result.unwrap_or_else(|failure| panics::raise(failure))
}
