//! What is known of local states: which there are, and which steps lead from one to another.

use crate::tables::{DenseIds, IdMap, IdSet, next_number};
use crate::target::parts::{Beginning, Parts, Ran, Sent};

/// The local states of each node, and every step between them that some history takes. It only grows.
pub(super) struct Graph {
    /// The local states of each node, in the order in which they were found.
    locals: Vec<Vec<u32>>,
    known: IdSet,
    steps: Vec<Step>,
    /// The steps that lead to a local state.
    into: IdMap<Vec<u32>>,
    /// The steps that send an envelope.
    senders: IdMap<Vec<u32>>,
    /// The runs of handlers whose steps are known.
    runs: DenseIds,
    messages: IdSet,
    starts: Vec<u32>,
}

struct Step {
    /// `None` for a node that begins.
    from: Option<u32>,
    to: u32,
    /// The envelope that it receives.
    received: Option<u32>,
}

/// What a search must find a way to, and what it must go through on it: for each local state whether it is part of that.
pub(crate) struct Cone {
    /// `None` for all.
    locals: Option<IdSet>,
}

impl Cone {
    pub(super) const EVERYTHING: Self = Self { locals: None };

    pub(super) fn of(locals: impl IntoIterator<Item = u32>) -> Self {
        Self {
            locals: Some(locals.into_iter().collect()),
        }
    }

    pub(super) fn holds(&self, local: u32) -> bool {
        let locals = self.locals.as_ref();
        locals.is_none_or(|locals| locals.contains(&local))
    }
}

impl Graph {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            locals: vec![Vec::new(); nodes],
            known: IdSet::default(),
            steps: Vec::new(),
            into: IdMap::default(),
            senders: IdMap::default(),
            runs: DenseIds::default(),
            messages: IdSet::default(),
            starts: Vec::new(),
        }
    }

    /// A node can begin like this.
    pub(super) fn begin(&mut self, node: usize, beginning: &Beginning) {
        self.starts.push(beginning.local);
        self.add(node, None, beginning.local, None, &beginning.sent);
    }

    /// Whether the steps that a run has brought are known.
    pub(super) fn knows(&self, ran: Ran) -> bool {
        self.runs.contains(ran.number)
    }

    /// A node in `local` receives an envelope or gives itself an input, and this comes of it.
    pub(super) fn learn(
        &mut self,
        parts: &dyn Parts,
        node: usize,
        local: u32,
        received: Option<u32>,
        ran: Ran,
        keeps: impl Fn(u32) -> bool,
    ) {
        if !self.runs.insert(ran.number) {
            return;
        }
        for choice in 0..ran.choices {
            let outcome = parts.outcome(ran.number, choice);
            if !outcome.fails && keeps(outcome.local) {
                self.add(node, Some(local), outcome.local, received, outcome.sent);
            }
        }
    }

    fn add(
        &mut self,
        node: usize,
        from: Option<u32>,
        to: u32,
        received: Option<u32>,
        sent: &[Sent],
    ) {
        let step = next_number(self.steps.len(), "steps between local states");
        self.steps.push(Step { from, to, received });
        if self.known.insert(to) {
            self.locals[node].push(to);
        }
        if from != Some(to) || received.is_some() {
            self.into.entry(to).or_default().push(step);
        }
        for sent in sent {
            self.messages.insert(sent.envelope);
            let senders = self.senders.entry(sent.envelope).or_default();
            if senders.last() != Some(&step) {
                senders.push(step);
            }
        }
    }

    /// The local states of each node, in the order in which they were found.
    pub(super) fn locals(&self) -> &[Vec<u32>] {
        &self.locals
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// How many steps are known: as long as this stays, so does every cone.
    pub(super) fn steps(&self) -> usize {
        self.steps.len()
    }

    pub(super) fn messages(&self) -> usize {
        self.messages.len()
    }

    /// Every local state that an execution to `targets`, and to where these envelopes are in flight, goes through if it
    /// does nothing that it need not do: what leads to them on their own nodes, whoever sends what is received on the
    /// way, and so on backwards.
    pub(super) fn cone<'e>(
        &self,
        targets: impl IntoIterator<Item = u32>,
        envelopes: impl IntoIterator<Item = &'e u32>,
    ) -> Cone {
        let mut sought: IdSet = envelopes.into_iter().copied().collect();
        let sent = sought.iter().flat_map(|&envelope| self.sends(envelope));
        let targets = targets.into_iter().chain(sent.collect::<Vec<_>>());
        let mut locals: IdSet = self.starts.iter().copied().chain(targets).collect();
        let mut open: Vec<u32> = locals.iter().copied().collect();
        while let Some(local) = open.pop() {
            for &step in self.into.get(&local).into_iter().flatten() {
                let Step { from, received, .. } = self.steps[step as usize];
                if let Some(from) = from
                    && locals.insert(from)
                {
                    open.push(from);
                }
                if let Some(envelope) = received
                    && sought.insert(envelope)
                {
                    for sends in self.sends(envelope) {
                        if locals.insert(sends) {
                            open.push(sends);
                        }
                    }
                }
            }
        }
        Cone {
            locals: Some(locals),
        }
    }

    /// The local states after steps that send an envelope.
    fn sends(&self, envelope: u32) -> impl Iterator<Item = u32> + '_ {
        let senders = self.senders.get(&envelope).into_iter().flatten();
        senders.map(|&sender| self.steps[sender as usize].to)
    }

    /// Whether a cone holds everything that is known.
    pub(super) fn is_within(&self, cone: &Cone) -> bool {
        let locals = cone.locals.as_ref();
        locals.is_none_or(|locals| locals.len() >= self.known.len())
    }
}
