//! The plain and the coarse level: local states, and messages that never go away.
//!
//! This is the algorithm of Guerraoui and Yabandeh: one set of local states for each node, one set of messages, and each
//! message meets each local state of its receiver once. Plain, it lets messages meet states that they can never meet. At
//! the coarse level each local state and each message has a [label](super::labels) of what has happened in its past, and
//! a message meets only local states to whose node everything has happened that the message's label says of it.
//!
//! A label belongs to a history and not to a content. So a local state stands here once for each label that it was reached
//! with, and a message once for each that it was sent with; only what another covers is left out.

use super::graph::Graph;
use super::labels::{Event, Labels, NOTHING};
use super::spread::Workers;
use crate::tables::{IdMap, next_number};
use crate::target::nodes::FaultKind;
use crate::target::parts::{Beginning, Nature, Parts, Ran, Sent};

pub(super) struct Closure<'a> {
    parts: &'a dyn Parts,
    workers: Workers<'a>,
    inside: &'a (dyn Fn(u32) -> bool + Sync),
    /// Whether labels are kept.
    labelled: bool,
    /// Crashes and restarts.
    budgets: [u32; 2],
    labels: Labels,
    points: Vec<Point>,
    /// The points with a local state.
    at_local: IdMap<Vec<u32>>,
    /// The messages to each node.
    items: Vec<Vec<Item>>,
    /// The labels that an envelope was sent with.
    sent_with: IdMap<Vec<u32>>,
    /// How many injected events a history may have for now.
    bound: u32,
    longest: u64,
    pub(super) steps: u64,
    pub(super) depth: u64,
}

/// A local state with the label of some history that leads to it.
struct Point {
    node: usize,
    local: u32,
    label: u32,
    /// How many of the messages to its node it has met.
    met: usize,
    /// The least number of injected events with which it was reached, and of steps.
    injected: u32,
    depth: u32,
    /// Whether what its node does by itself has been looked at.
    acted: bool,
}

#[derive(Clone, Copy)]
struct Item {
    envelope: u32,
    label: u32,
}

/// Something that happens to a point.
struct Happening {
    point: u32,
    input: u32,
    /// The label of the message, if it is one.
    label: Option<u32>,
    ran: Ran,
}

/// What a round brought up.
#[derive(Default)]
pub(super) struct Round {
    /// Local states in which a handler fails, with the message that it fails on.
    pub(super) failing: Vec<(u32, Option<u32>)>,
}

impl<'a> Closure<'a> {
    pub(super) fn new(
        parts: &'a dyn Parts,
        workers: Workers<'a>,
        inside: &'a (dyn Fn(u32) -> bool + Sync),
        labelled: bool,
        longest: Option<u64>,
    ) -> Self {
        let nodes = parts.nodes();
        Self {
            parts,
            workers,
            inside,
            labelled,
            budgets: [FaultKind::Crash, FaultKind::Restart].map(|kind| parts.budget(kind)),
            labels: Labels::new(nodes),
            points: Vec::new(),
            at_local: IdMap::default(),
            items: vec![Vec::new(); nodes],
            sent_with: IdMap::default(),
            bound: 0,
            longest: longest.unwrap_or(u64::MAX),
            steps: 0,
            depth: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    pub(super) fn begin(&mut self, beginnings: &[Vec<Beginning>], graph: &mut Graph) {
        for (node, beginnings) in beginnings.iter().enumerate() {
            for beginning in beginnings {
                graph.begin(node, beginning);
                self.reach(node, beginning.local, NOTHING, 0, 0);
                self.send(&beginning.sent, NOTHING);
            }
        }
        if self.parts.budget(FaultKind::Partition) > 0 {
            let nodes = self.parts.nodes();
            for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))) {
                if from != to
                    && let Some(notice) = self.parts.notice(from, to)
                {
                    self.send(&[notice], NOTHING);
                }
            }
        }
    }

    /// Has each message meet each local state that it has not met. `None` when nothing is left to do. When the search must
    /// end, some are left out.
    pub(super) fn round(&mut self, graph: &mut Graph) -> Option<Round> {
        let open = self.open()?;
        let this = &*self;
        let happenings =
            this.workers
                .spread_each(open.len(), |at, happenings: &mut Vec<Happening>| {
                    this.happen(open[at], happenings);
                });
        for &point in &open {
            let injects = self.may_act(point);
            let this = &mut self.points[point as usize];
            this.met = self.items[this.node].len();
            this.acted |= injects;
        }
        let mut round = Round::default();
        // Where labels breed, one round can take longer than anybody has.
        for (count, happening) in happenings.into_iter().flatten().enumerate() {
            if count.is_multiple_of(256) && self.workers.gauge.must_end() {
                break;
            }
            self.take(&happening, graph, &mut round);
        }
        Some(round)
    }

    /// The points at which something can still happen.
    fn open(&mut self) -> Option<Vec<u32>> {
        loop {
            let points = 0..self.points.len() as u32;
            let open: Vec<u32> = points
                .filter(|&point| {
                    let this = &self.points[point as usize];
                    this.met < self.items[this.node].len() || self.may_act(point)
                })
                .collect();
            if !open.is_empty() {
                return Some(open);
            }
            // What comes from outside waits until all that follows from less of it has been seen.
            let next = self.points.iter().filter(|point| !point.acted);
            self.bound = next.map(|point| point.injected + 1).min()?;
        }
    }

    fn may_act(&self, point: u32) -> bool {
        let point = &self.points[point as usize];
        !point.acted && point.injected < self.bound
    }

    fn happen(&self, at: u32, happenings: &mut Vec<Happening>) {
        let point = &self.points[at as usize];
        if u64::from(point.depth) >= self.longest {
            return;
        }
        let up = self.parts.is_up(point.local);
        let mut push = |input: u32, label: Option<u32>| {
            let ran = self.parts.run(point.local, input);
            if label.is_none() || !ran.idle {
                happenings.push(Happening {
                    point: at,
                    input,
                    label,
                    ran,
                });
            }
        };
        if self.may_act(at) {
            let (crash, restart) = self.parts.crash_and_restart(point.node);
            let [crashes, restarts] = self.labels.spent(point.label);
            if up {
                for &input in self.parts.own_inputs(point.local) {
                    push(input, None);
                }
                if self.budgets[0] > 0 && (!self.labelled || crashes < self.budgets[0]) {
                    push(crash, None);
                }
            } else if self.budgets[1] > 0 && (!self.labelled || restarts < self.budgets[1]) {
                push(restart, None);
            }
        }
        if up {
            for item in &self.items[point.node][point.met..] {
                if self.labels.agrees(item.label, point.node, point.label) {
                    push(item.envelope, Some(item.label));
                }
            }
        }
    }

    fn take(&mut self, happening: &Happening, graph: &mut Graph, round: &mut Round) {
        let &Happening {
            point,
            input,
            label,
            ran,
        } = happening;
        let &Point {
            node,
            local,
            label: before,
            injected,
            depth,
            ..
        } = &self.points[point as usize];
        let mut after = before;
        if self.labelled {
            after = match label {
                Some(label) => self.labels.join(before, label),
                None => {
                    let event = self.event(node, input, before);
                    self.labels.with(before, event)
                }
            };
            let spent = self.labels.spent(after);
            if spent
                .iter()
                .zip(self.budgets)
                .any(|(&spent, most)| spent > most)
            {
                return;
            }
        }
        self.steps += 1;
        let received = label.map(|_| input);
        graph.learn(self.parts, node, local, received, ran, self.inside);
        let injected = injected + u32::from(label.is_none());
        let parts = self.parts;
        for choice in 0..ran.choices {
            let outcome = parts.outcome(ran.number, choice);
            if outcome.fails {
                round.failing.push((local, received));
            } else if (self.inside)(outcome.local) {
                self.reach(node, outcome.local, after, injected, depth + 1);
                self.send(outcome.sent, after);
            }
        }
    }

    /// The injected event that an input is to a node with this label.
    fn event(&self, node: usize, input: u32, label: u32) -> Event {
        let nature = self.parts.nature(input);
        let [crashes, restarts] = self.labels.spent_at(label, node);
        let number = match nature {
            Nature::Crash => crashes,
            Nature::Restart => restarts,
            // That a timer has run out at all is what can be known of it without counting for ever.
            Nature::RunOut => input,
            Nature::Call(_) | Nature::Delivery { .. } => 0,
        };
        Event {
            node,
            nature,
            number,
        }
    }

    fn reach(&mut self, node: usize, local: u32, label: u32, injected: u32, depth: u32) {
        let at_local = self.at_local.entry(local).or_default();
        for &known in &*at_local {
            let point = &mut self.points[known as usize];
            if self.labels.covers(node, point.label, label) {
                point.injected = point.injected.min(injected);
                if self.longest != u64::MAX && depth < point.depth {
                    // A successor that the depth bound cut may be within it from here: expand it again.
                    point.depth = depth;
                    point.met = 0;
                    point.acted = false;
                }
                return;
            }
        }
        at_local.push(next_number(self.points.len(), "labelled local states"));
        self.depth = self.depth.max(u64::from(depth));
        self.points.push(Point {
            node,
            local,
            label,
            met: 0,
            injected,
            depth,
            acted: false,
        });
    }

    fn send(&mut self, sent: &[Sent], label: u32) {
        for &Sent { to, envelope } in sent {
            let known = self.sent_with.entry(envelope).or_default();
            if known
                .iter()
                .any(|&known| self.labels.is_within(known, label))
            {
                continue;
            }
            known.push(label);
            self.items[to as usize].push(Item { envelope, label });
        }
    }

    /// Whether the depth bound has cut a history that could be continued, as far as labels say. Asked at the end.
    pub(super) fn cut_deeper(&self) -> bool {
        let mut points = self.points.iter();
        points.any(|point| u64::from(point.depth) >= self.longest && self.can_continue(point))
    }

    fn can_continue(&self, point: &Point) -> bool {
        let [crashes, restarts] = self.budgets;
        if !self.parts.is_up(point.local) {
            return restarts > 0;
        }
        let mut items = self.items[point.node].iter();
        crashes > 0
            || !self.parts.own_inputs(point.local).is_empty()
            || items.any(|item| self.labels.agrees(item.label, point.node, point.label))
    }

    /// Whether histories of two different nodes that lead to these local states can belong to one execution, as far as
    /// labels say.
    pub(super) fn meet(&self, one: u32, two: u32) -> bool {
        let points = |local: u32| {
            let points = self.at_local.get(&local).into_iter().flatten();
            points.map(|&point| &self.points[point as usize])
        };
        points(one).any(|one| {
            points(two).any(|two| {
                self.labels.agrees(one.label, two.node, two.label)
                    && self.labels.agrees(two.label, one.node, one.label)
            })
        })
    }
}
