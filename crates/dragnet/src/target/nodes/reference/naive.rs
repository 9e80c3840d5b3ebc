//! The naive explorer: it clones everything, interns nothing, hashes no fingerprints, and compares whole states.
//!
//! It follows scripts by itself and shares no code with the engine: neither `Context` with its choices and layers, nor
//! inboxes, timers or faults.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::json;

use super::demands::{Demand, Limit, Seen};
use super::script::{Disk, Do, Script, TIMERS, TOP, Trigger};
use super::systems::RandomSystem;
use crate::target::nodes::faults::FaultKind;
use crate::trace::{SavedMessage, SavedNode, SavedState, SavedTimer};

/// What a node remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Memory {
    level: u8,
    mark: u8,
    below: u8,
}

const BLANK: Memory = Memory {
    level: 0,
    mark: 0,
    below: 0,
};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NaiveNode {
    /// The state of a node that is up, or what a crashed one kept.
    memory: Result<Memory, Option<Memory>>,
    timers: BTreeSet<usize>,
    /// How often each timer with a budget has run out.
    ran_out: [u32; TIMERS.len()],
    called: usize,
    answered: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Envelope {
    to: usize,
    from: usize,
    kind: u8,
}

/// What is left of each fault budget.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Budgets {
    drops: u32,
    duplicates: u32,
    crashes: u32,
    restarts: u32,
    partitions: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NaiveState {
    nodes: Vec<NaiveNode>,
    /// In the order in which they were sent on each link; sorted where the network has no order.
    flight: Vec<Envelope>,
    left: Budgets,
    /// Which nodes are on the far side of a partition.
    cut: Option<Vec<bool>>,
}

/// One thing that can happen, by itself or with one combination of choices.
struct NaiveStep {
    progress: bool,
    next: Result<NaiveState, &'static str>,
}

#[derive(Debug, PartialEq)]
pub(super) struct NaiveVerdict {
    pub(super) states: u64,
    pub(super) transitions: u64,
    pub(super) depth: u64,
    /// How short an execution to something wrong can be, and what can be wrong at its end.
    pub(super) wrong: Option<(u64, BTreeSet<String>)>,
    /// The first property that must be reachable and is not.
    pub(super) unreached: Option<String>,
    /// Whether a node fails while it starts.
    pub(super) fails_at_the_start: bool,
    /// Whether there are no more states than were explored. Otherwise there may be infinitely many, all behind something
    /// wrong, and only a search level by level is sure to end.
    pub(super) is_complete: bool,
    /// The states, in the order in which they were met.
    pub(super) met: Vec<NaiveState>,
}

/// What following a script has come to.
#[derive(Clone)]
struct Course {
    memory: Memory,
    timers: BTreeSet<usize>,
    sent: Vec<(usize, u8)>,
    answers: usize,
    observed: bool,
    failed: Option<&'static str>,
    /// It panicked: nothing else is done.
    ended: bool,
}

/// Everything that following a script can come to, one for each combination of choices.
fn follow(body: &[Do], course: Course) -> Vec<Course> {
    let Some((first, rest)) = body.split_first() else {
        return vec![course];
    };
    let after = step(first, course).into_iter();
    after
        .flat_map(|course| match course.ended {
            true => vec![course],
            false => follow(rest, course),
        })
        .collect()
}

fn step(instruction: &Do, mut course: Course) -> Vec<Course> {
    match instruction {
        Do::Rise(by) => course.memory.level = TOP.min(course.memory.level + by),
        Do::GoTo(level) => course.memory.level = *level,
        Do::Mark(mark) => course.memory.mark = *mark,
        Do::Send(to, kind) => course.sent.push((*to, *kind)),
        Do::Set(timer) => {
            course.timers.insert(*timer);
        }
        Do::Cancel(timer) => {
            course.timers.remove(timer);
        }
        Do::Answer => course.answers += 1,
        Do::Observe => course.observed = true,
        Do::Choose(branches) => {
            let branches = branches.iter();
            return branches
                .flat_map(|branch| follow(branch, course.clone()))
                .collect();
        }
        Do::Below(body) => {
            let above = course.answers;
            course.answers = 0;
            let mut courses = follow(body, course);
            for course in &mut courses {
                let heard = usize::from(course.memory.below) + course.answers;
                course.memory.below = heard.min(2) as u8;
                course.answers = above;
            }
            return courses;
        }
        Do::Assert => course.failed = Some("assertion"),
        Do::Panic => {
            course.failed = Some("panic");
            course.ended = true;
        }
    }
    vec![course]
}

/// The node after a handler, or how it failed; what it sent; whether it observed something.
struct Handled {
    after: Result<NaiveNode, &'static str>,
    sent: Vec<(usize, u8)>,
    observed: bool,
}

/// Has a node follow a script from `memory`, with everything else as it is in `node`.
fn handle(node: &NaiveNode, memory: Memory, body: &[Do]) -> Vec<Handled> {
    let course = Course {
        memory,
        timers: node.timers.clone(),
        sent: Vec::new(),
        answers: 0,
        observed: false,
        failed: None,
        ended: false,
    };
    let courses = follow(body, course).into_iter();
    courses
        .map(|course| Handled {
            after: match course.failed {
                Some(how) => Err(how),
                None => Ok(NaiveNode {
                    memory: Ok(course.memory),
                    timers: course.timers,
                    ran_out: node.ran_out,
                    called: node.called,
                    answered: node.called.min(node.answered + course.answers),
                }),
            },
            sent: course.sent,
            observed: course.observed,
        })
        .collect()
}

pub(super) struct Naive<'a> {
    system: &'a RandomSystem,
}

impl<'a> Naive<'a> {
    pub(super) fn new(system: &'a RandomSystem) -> Self {
        Self { system }
    }

    /// Deliveries that change nothing are left out where only node states matter.
    fn skips_idle(&self) -> bool {
        let limited = self.system.capacity.is_some() || self.system.class.is_some();
        !self.system.looks_at_the_network() && !self.system.ordered && !limited
    }

    fn nodes(&self) -> usize {
        self.system.scripts.len()
    }

    fn budgets(&self) -> Budgets {
        let of = |kind| self.system.faults.budget(kind);
        Budgets {
            drops: of(FaultKind::Drop),
            duplicates: of(FaultKind::Duplicate),
            crashes: of(FaultKind::Crash),
            restarts: of(FaultKind::Restart),
            partitions: of(FaultKind::Partition),
        }
    }

    fn send(&self, state: &mut NaiveState, from: usize, sent: &[(usize, u8)]) {
        for &(to, kind) in sent {
            let to = to % self.nodes();
            let envelope = Envelope { to, from, kind };
            let cut = state.cut.as_ref();
            let reaches = cut.is_none_or(|far| far[from] == far[to]);
            if reaches && self.fits(state, &envelope) {
                state.flight.push(envelope);
            }
        }
        self.sort(state);
    }

    fn fits(&self, state: &NaiveState, envelope: &Envelope) -> bool {
        let on_link = |other: &&Envelope| (other.from, other.to) == (envelope.from, envelope.to);
        let link = state.flight.iter().filter(on_link);
        let zeros = link.clone().filter(|other| other.kind == 0).count();
        let (capacity, class) = (self.system.capacity, self.system.class);
        capacity.is_none_or(|capacity| link.count() < capacity)
            && (envelope.kind != 0 || class.is_none_or(|capacity| zeros < capacity))
    }

    fn sort(&self, state: &mut NaiveState) {
        if self.system.ordered {
            state
                .flight
                .sort_by_key(|envelope| (envelope.to, envelope.from));
        } else {
            state.flight.sort();
        }
    }

    /// The initial states, unless a node fails while it starts.
    fn initial(&self) -> Result<Vec<NaiveState>, BTreeSet<String>> {
        let mut states = vec![NaiveState {
            nodes: Vec::new(),
            flight: Vec::new(),
            left: self.budgets(),
            cut: None,
        }];
        let blank = NaiveNode {
            memory: Ok(BLANK),
            timers: BTreeSet::new(),
            ran_out: [0; TIMERS.len()],
            called: 0,
            answered: 0,
        };
        let mut failures = BTreeSet::new();
        for (id, script) in self.system.scripts.iter().enumerate() {
            let mut more = Vec::new();
            for handled in handle(&blank, BLANK, &script.start) {
                let local = match handled.after {
                    Ok(local) => local,
                    Err(failure) => {
                        failures.insert(failure.to_owned());
                        continue;
                    }
                };
                for state in &states {
                    let mut state = state.clone();
                    state.nodes.push(local.clone());
                    self.send(&mut state, id, &handled.sent);
                    more.push(state);
                }
            }
            states = more;
        }
        match failures.is_empty() {
            true => Ok(states),
            false => Err(failures),
        }
    }

    /// Positions in `flight` of what can be delivered, lost or duplicated next.
    fn heads(&self, state: &NaiveState) -> Vec<usize> {
        let is_head = |&at: &usize| {
            let envelope = &state.flight[at];
            let mut before = state.flight[..at].iter();
            match self.system.ordered {
                true => !before.any(|other| (other.from, other.to) == (envelope.from, envelope.to)),
                false => !before.any(|other| other == envelope),
            }
        };
        (0..state.flight.len()).filter(is_head).collect()
    }

    /// Steps from `base` in which a node does one of these.
    fn taken(
        &self,
        progress: bool,
        base: &NaiveState,
        node: usize,
        all: Vec<Handled>,
        steps: &mut Vec<NaiveStep>,
    ) {
        for handled in all {
            let next = handled.after.map(|local| {
                let mut next = base.clone();
                next.nodes[node] = local;
                self.send(&mut next, node, &handled.sent);
                next
            });
            steps.push(NaiveStep { progress, next });
        }
    }

    fn steps(&self, state: &NaiveState) -> Vec<NaiveStep> {
        let mut steps = Vec::new();
        for id in 0..self.nodes() {
            self.steps_of_node(state, id, &mut steps);
        }
        for at in self.heads(state) {
            self.steps_of_message(state, at, &mut steps);
        }
        self.steps_of_partitions(state, &mut steps);
        steps
    }

    /// Calls, timers, crashes and restarts.
    fn steps_of_node(&self, state: &NaiveState, id: usize, steps: &mut Vec<NaiveStep>) {
        let script: &Script = &self.system.scripts[id];
        let node = &state.nodes[id];
        let memory = match node.memory {
            Ok(memory) => memory,
            Err(kept) => {
                if state.left.restarts > 0 {
                    let mut base = state.clone();
                    base.left.restarts -= 1;
                    let handled = match kept {
                        Some(kept) => handle(node, kept, &script.recover),
                        None => handle(node, BLANK, &script.start),
                    };
                    self.taken(false, &base, id, handled, steps);
                }
                return;
            }
        };
        let (calls, in_turn) = &self.system.calls[id];
        if node.called < calls.len() && !(*in_turn && node.called > node.answered) {
            let mut called = node.clone();
            called.called += 1;
            let body = script.body(memory.level, Trigger::Call(calls[node.called]));
            self.taken(true, state, id, handle(&called, memory, body), steps);
        }
        for &timer in &node.timers {
            let budget = self.system.budgets[timer];
            if budget.is_some_and(|times| node.ran_out[timer] >= times) {
                continue;
            }
            let mut after = node.clone();
            after.timers.remove(&timer);
            if budget.is_some() {
                after.ran_out[timer] += 1;
            }
            let body = script.body(memory.level, Trigger::Timer(timer));
            self.taken(true, state, id, handle(&after, memory, body), steps);
        }
        if state.left.crashes > 0 {
            let mut next = state.clone();
            next.left.crashes -= 1;
            if self.system.ordered {
                next.flight.retain(|envelope| envelope.to != id);
            }
            let kept = match script.disk {
                Disk::Nothing => None,
                Disk::Level(most) => Some(Memory {
                    level: memory.level.min(most),
                    ..BLANK
                }),
                Disk::Everything => Some(memory),
            };
            let crashed = &mut next.nodes[id];
            crashed.memory = Err(kept);
            crashed.timers.clear();
            crashed.answered = crashed.called;
            let (progress, next) = (false, Ok(next));
            steps.push(NaiveStep { progress, next });
        }
    }

    /// Deliveries, drops and duplicates.
    fn steps_of_message(&self, state: &NaiveState, at: usize, steps: &mut Vec<NaiveStep>) {
        let Envelope { to, from, kind } = state.flight[at];
        let mut without = state.clone();
        without.flight.remove(at);
        if let Ok(memory) = state.nodes[to].memory {
            let script = &self.system.scripts[to];
            let body = script.body(memory.level, Trigger::Message(kind, Some(from)));
            let handled = handle(&state.nodes[to], memory, body);
            let idle = handled.iter().all(|handled| {
                handled.after.as_ref() == Ok(&state.nodes[to])
                    && handled.sent.is_empty()
                    && !handled.observed
            });
            if !(idle && self.skips_idle()) {
                self.taken(!idle, &without, to, handled, steps);
            }
        }
        if state.left.drops > 0 {
            let mut next = without.clone();
            next.left.drops -= 1;
            let (progress, next) = (false, Ok(next));
            steps.push(NaiveStep { progress, next });
        }
        if state.left.duplicates > 0 {
            let mut next = state.clone();
            next.left.duplicates -= 1;
            if self.fits(state, &state.flight[at]) {
                next.flight.insert(at, state.flight[at].clone());
            }
            let (progress, next) = (false, Ok(next));
            steps.push(NaiveStep { progress, next });
        }
    }

    fn steps_of_partitions(&self, state: &NaiveState, steps: &mut Vec<NaiveStep>) {
        let nodes = self.nodes();
        if let Some(far) = &state.cut {
            let mut next = state.clone();
            next.cut = None;
            for from in 0..nodes {
                for to in (0..nodes).filter(|&to| far[from] != far[to]) {
                    let notice = self.system.notice.map(|kind| (to, kind));
                    self.send(&mut next, from, notice.as_slice());
                }
            }
            let (progress, next) = (true, Ok(next));
            steps.push(NaiveStep { progress, next });
        } else if state.left.partitions > 0 {
            // Each way to put some nodes, but not the first, on the far side.
            for sides in 1..1_u32 << (nodes - 1) {
                let far: Vec<bool> = (0..nodes).map(|id| sides << 1 >> id & 1 == 1).collect();
                let mut next = state.clone();
                next.left.partitions -= 1;
                next.flight.retain(|e| far[e.from] == far[e.to]);
                next.cut = Some(far);
                let (progress, next) = (false, Ok(next));
                steps.push(NaiveStep { progress, next });
            }
        }
    }

    fn seen(&self, state: &NaiveState) -> Vec<Seen> {
        let nodes = state.nodes.iter().enumerate();
        let seen = nodes.map(|(id, node)| Seen {
            is_boxed: self.system.is_boxed(id),
            up: node
                .memory
                .ok()
                .map(|memory| (memory.level, memory.mark, memory.below)),
            disk: node.memory.err().flatten().map(|memory| memory.level),
        });
        seen.collect()
    }

    /// Whether a state satisfies every one of these limits.
    pub(super) fn is_inside(&self, state: &NaiveState, limits: &[Limit]) -> bool {
        let seen = self.seen(state);
        limits.iter().all(|limit| limit.is_satisfied(&seen))
    }

    fn satisfies(&self, state: &NaiveState, demand: Demand) -> bool {
        let flight = state.flight.iter();
        let flight: Vec<(u8, usize)> = flight.map(|sent| (sent.kind, sent.to)).collect();
        demand.is_satisfied(&self.seen(state), &flight)
    }

    /// The first invariant that a state violates.
    fn violated(&self, state: &NaiveState) -> Option<String> {
        let mut invariants = self.system.demands.iter().filter(|d| !d.is_reachability());
        let violated = invariants.find(|demand| !self.satisfies(state, **demand));
        violated.map(|demand| demand.name())
    }

    fn is_deadlock(&self, state: &NaiveState, steps: &[NaiveStep]) -> bool {
        let mut nodes = state.nodes.iter().zip(&self.system.scripts);
        self.system.demands.contains(&Demand::NoDeadlock)
            && steps.iter().all(|step| !step.progress)
            && nodes.any(|(node, script)| match node.memory {
                Ok(memory) => node.called > node.answered || script.waits_at == Some(memory.level),
                Err(_) => false,
            })
    }

    /// Breadth first from the beginning; `None` when there are more than `most` states.
    pub(super) fn explore(&self, most: usize) -> Option<NaiveVerdict> {
        match self.initial() {
            Ok(initial) => self.explore_from(initial, most),
            Err(failures) => Some(NaiveVerdict {
                states: 0,
                transitions: 0,
                depth: 0,
                wrong: Some((0, failures)),
                unreached: None,
                fails_at_the_start: true,
                is_complete: true,
                met: Vec::new(),
            }),
        }
    }

    /// Breadth first from these states.
    pub(super) fn explore_from(
        &self,
        initial: Vec<NaiveState>,
        most: usize,
    ) -> Option<NaiveVerdict> {
        let mut level: BTreeMap<NaiveState, u64> = BTreeMap::new();
        let mut queue = VecDeque::new();
        let mut met = Vec::new();
        let mut unreached: Vec<Demand> = self.system.demands.clone();
        unreached.retain(|demand| demand.is_reachability());
        let (mut transitions, mut deepest) = (0, 0);
        let mut wrong: Option<(u64, BTreeSet<String>)> = None;
        let mut note = |length: u64, what: &str| {
            if wrong
                .as_ref()
                .is_none_or(|(shortest, _)| length < *shortest)
            {
                wrong = Some((length, BTreeSet::new()));
            }
            let (shortest, all) = wrong.as_mut().expect("it has just been set");
            if length == *shortest {
                all.insert(what.to_owned());
            }
            *shortest
        };
        // The shortest violation so far.
        let mut enough = u64::MAX;
        let mut arrivals: Vec<(NaiveState, u64)> = Vec::new();
        arrivals.extend(initial.into_iter().map(|state| (state, 0)));
        let is_complete = loop {
            for (state, depth) in arrivals.drain(..) {
                if !self.is_inside(&state, &self.system.limits) || level.contains_key(&state) {
                    continue;
                }
                if let Some(property) = self.violated(&state) {
                    enough = note(depth, &property);
                }
                unreached.retain(|demand| !self.satisfies(&state, *demand));
                level.insert(state.clone(), depth);
                met.push(state.clone());
                queue.push_back(state);
            }
            let Some(state) = queue.pop_front() else {
                break true;
            };
            let depth = level[&state];
            if level.len() > most {
                if depth <= enough {
                    return None;
                }
                break false;
            }
            deepest = depth;
            let steps = self.steps(&state);
            if self.is_deadlock(&state, &steps) {
                enough = note(depth, "deadlock");
            }
            for step in steps {
                match step.next {
                    Err(failure) => {
                        transitions += 1;
                        enough = note(depth + 1, failure);
                    }
                    Ok(next) => {
                        if self.is_inside(&next, &self.system.limits) {
                            transitions += 1;
                            arrivals.push((next, depth + 1));
                        }
                    }
                }
            }
        };
        Some(NaiveVerdict {
            states: level.len() as u64,
            transitions,
            depth: deepest,
            wrong,
            unreached: unreached.first().map(|demand| demand.name()),
            fails_at_the_start: false,
            is_complete,
            met,
        })
    }

    /// A state with everything that a saved state does not have as at the beginning.
    pub(super) fn afresh(&self, state: &NaiveState) -> NaiveState {
        NaiveState {
            left: self.budgets(),
            cut: None,
            ..state.clone()
        }
    }

    /// A state as a file has it.
    pub(super) fn save(&self, state: &NaiveState) -> SavedState {
        let value = |id: usize, memory: Memory| {
            let Memory { level, mark, below } = memory;
            let coarse = self.system.coarse.states;
            let value = json!({ "level": level, "mark": mark, "below": below, "coarse": coarse });
            match self.system.is_boxed(id) {
                true => json!({ "Right": { "inner": [value] } }),
                false => json!({ "Left": value }),
            }
        };
        let timer = |timer: usize| match (TIMERS[timer].name().to_owned(), TIMERS[timer].number()) {
            (name, None) => SavedTimer::Named(name),
            (name, Some(number)) => SavedTimer::Numbered(name, number),
        };
        let nodes = state.nodes.iter().enumerate().map(|(id, node)| {
            let ran_out = node.ran_out.iter().enumerate();
            let ran_out = ran_out.filter(|(_, times)| **times > 0);
            SavedNode {
                state: node.memory.ok().map(|memory| value(id, memory)),
                durable: node.memory.err().flatten().map(|memory| value(id, memory)),
                timers: node.timers.iter().map(|&at| timer(at)).collect(),
                ran_out: ran_out.map(|(at, times)| (timer(at), *times)).collect(),
                called: node.called as u32,
                answered: node.answered as u32,
                ..SavedNode::default()
            }
        });
        let in_flight = state.flight.iter().map(|envelope| SavedMessage {
            from: envelope.from,
            to: envelope.to,
            msg: json!({ "kind": envelope.kind, "coarse": self.system.coarse.messages }),
        });
        SavedState::new("random".to_owned(), nodes.collect(), in_flight.collect())
    }
}
