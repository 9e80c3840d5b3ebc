//! The executions that are still to be explored, as a tree.
//!
//! A node stands for the decisions that lead to it. What has been taken from a node and is done with is forgotten, but
//! for the transition itself: whoever comes to the same node later lets it sleep. What is open has been found to lead to
//! something that nothing else leads to.

use std::collections::HashSet;

use super::races::{Planned, Question, Relation, Rest, Reversal, Witness};
use crate::tables::next_number;
use crate::target::threads::executor::{Taken, Transition};
use crate::target::threads::operation::Operation;

pub(super) struct Tree {
    nodes: Vec<Node>,
    free: Vec<NodeId>,
    /// How many open nodes there are.
    open: usize,
    /// How many executions are under way.
    active: usize,
    /// Whether what was taken before is kept with each node, to let it sleep.
    lets_sleep: bool,
    /// Whether plans are merged into what is there.
    merges: bool,
}

pub(super) type NodeId = u32;

pub(super) const ROOT: NodeId = 0;

/// What is in a list of up to so many is looked for one by one.
const LONG_LIST: usize = 32;

struct Node {
    parent: NodeId,
    /// How often it was forgotten before: what stood for something else then was another node.
    lives: u32,
    /// What leads here from the parent.
    transition: Transition,
    /// What is known of it, if it was planned together with what comes before it.
    planned: Option<Planned>,
    /// What sleeps when this is taken: what was taken from the parent before, and once an execution has been here what
    /// slept already.
    asleep: Vec<Transition>,
    /// What it was, once an execution has been here.
    operation: Option<Operation>,
    /// A hash of what threads have come to behind it, once an execution has been there.
    behind: Option<u64>,
    /// In the order in which they are to be taken.
    children: Vec<NodeId>,
    /// What has been taken from here.
    taken: Vec<Transition>,
    /// Whether an execution has been here.
    visited: bool,
    /// How many of its children are open, and how many have open ones below.
    open_below: u32,
    /// How many executions are under way here, and how many of its children have some there.
    active_below: u32,
}

/// One step of the way that an execution takes.
#[derive(Clone, Copy)]
pub(super) struct Leg {
    pub(super) node: NodeId,
    lives: u32,
    /// What is taken there, and what that was if an execution has been here.
    pub(super) taken: Taken,
}

/// An execution that is to be run.
#[derive(Default)]
pub(super) struct Claim {
    /// Its way, as far as it is known.
    pub(super) legs: Vec<Leg>,
    /// The first of them that is new.
    pub(super) new: usize,
    /// What slept at the last one before that.
    pub(super) asleep: Vec<Transition>,
}

impl Node {
    /// Whether an execution has been here, and none will be again.
    fn is_done(&self) -> bool {
        self.visited && self.open_below == 0 && self.active_below == 0
    }
}

impl Tree {
    /// Only the root, which is open.
    pub(super) fn new(lets_sleep: bool, merges: bool) -> Self {
        let mut tree = Self {
            nodes: Vec::new(),
            free: Vec::new(),
            open: 0,
            active: 0,
            lets_sleep,
            merges,
        };
        tree.add(ROOT, (crate::target::threads::names::Names::MAIN, 0));
        tree.nodes[ROOT as usize].visited = true;
        tree
    }

    fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node as usize]
    }

    fn node_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    fn add(&mut self, parent: NodeId, transition: Transition) -> NodeId {
        if let Some(id) = self.free.pop() {
            // It was emptied when it was forgotten, and keeps its room.
            let node = self.node_mut(id);
            node.parent = parent;
            node.transition = transition;
            return id;
        }
        let id = next_number(self.nodes.len(), "transitions in its tree");
        self.nodes.push(Node {
            parent,
            lives: 0,
            transition,
            planned: None,
            asleep: Vec::new(),
            operation: None,
            behind: None,
            children: Vec::new(),
            taken: Vec::new(),
            visited: false,
            open_below: 0,
            active_below: 0,
        });
        id
    }

    /// Whether nothing is left to do, and nothing can come up any more.
    pub(super) fn is_done(&self) -> bool {
        self.open == 0 && self.active == 0
    }

    /// The first execution of all.
    pub(super) fn first(&mut self) -> Claim {
        self.active += 1;
        self.node_mut(ROOT).active_below += 1;
        Claim::default()
    }

    /// Takes an open node, deep ones first, and gives the way to it, and through what is known to lie behind it. It begins
    /// like the one before it, as far as it can.
    pub(super) fn claim(&mut self, claim: &mut Claim) -> bool {
        if self.open == 0 {
            return false;
        }
        let legs = &mut claim.legs;
        match self.merges {
            // What was found last may come before what has been taken.
            true => legs.clear(),
            false => self.go_back(legs),
        }
        let mut at = legs.last().map_or(ROOT, |leg| leg.node);
        while self.node(at).visited {
            let children = self.node(at).children.iter().copied();
            let with_open = children
                .clone()
                .find(|&child| self.node(child).visited && self.node(child).open_below > 0);
            let next =
                with_open.or_else(|| children.clone().find(|&child| !self.node(child).visited));
            at = next.expect("what is open below a node is behind one of its children");
            if self.node(at).visited {
                legs.push(self.leg(at));
            }
        }
        loop {
            self.visit(at);
            legs.push(self.leg(at));
            match self.node(at).children.first() {
                Some(&child) => at = child,
                None => break,
            }
        }
        self.active += 1;
        self.count(at, |node| &mut node.active_below, 1);
        // An execution that was given up has not been everywhere on its way.
        let has_been = |leg: &Leg| leg.taken.operation.is_some();
        claim.new = claim.legs.partition_point(has_been);
        claim.asleep.clear();
        if let Some(last) = claim.new.checked_sub(1) {
            let last = self.node(claim.legs[last].node);
            claim.asleep.extend_from_slice(&last.asleep);
        }
        true
    }

    /// Goes back on a way, to the last node that something is open below.
    fn go_back(&self, legs: &mut Vec<Leg>) {
        let leads_on = |leg: &Leg| {
            let node = self.node(leg.node);
            node.lives == leg.lives && node.open_below > 0
        };
        let last = legs.iter().rposition(leads_on);
        legs.truncate(last.map_or(0, |last| last + 1));
    }

    fn leg(&self, node: NodeId) -> Leg {
        let this = self.node(node);
        Leg {
            node,
            lives: this.lives,
            taken: Taken {
                transition: this.transition,
                operation: this.operation,
            },
        }
    }

    /// What was taken before instead of a node, where no execution has been yet.
    pub(super) fn earlier(&self, node: NodeId) -> &[Transition] {
        let this = self.node(node);
        match this.operation {
            Some(_) => &[],
            None => &this.asleep,
        }
    }

    /// Whether threads have come to what they came to behind a node before, if an execution has been there.
    pub(super) fn is_like_before(&mut self, node: NodeId, come_to: u64) -> bool {
        *self.node_mut(node).behind.get_or_insert(come_to) == come_to
    }

    /// Takes note of what a node is that is taken. What was taken before instead of it sleeps from here on, unless it is woken,
    /// besides what is `asleep` already.
    pub(super) fn note(
        &mut self,
        node: NodeId,
        is: Option<Operation>,
        asleep: &mut Vec<Transition>,
    ) {
        if self.lets_sleep {
            // Other ways of the same thread are past with this one.
            let thread = self.node(node).transition.0;
            for &earlier in self.earlier(node) {
                if earlier.0 != thread && !asleep.contains(&earlier) {
                    asleep.push(earlier);
                }
            }
            self.node_mut(node).asleep.clone_from(asleep);
        }
        self.node_mut(node).operation = is;
    }

    /// An open node is no longer open.
    fn visit(&mut self, node: NodeId) {
        let Node {
            parent, transition, ..
        } = *self.node(node);
        self.take(node, parent, transition);
        self.node_mut(node).visited = true;
        self.open -= 1;
        self.count(parent, |node| &mut node.open_below, -1);
    }

    /// Takes note at a node and its parent of what leads from the one to the other, and what had before.
    fn take(&mut self, node: NodeId, parent: NodeId, transition: Transition) {
        if self.lets_sleep {
            let mut asleep = std::mem::take(&mut self.node_mut(node).asleep);
            asleep.clone_from(&self.node(parent).taken);
            self.node_mut(node).asleep = asleep;
        }
        self.node_mut(parent).taken.push(transition);
    }

    /// Counts something at a node, and further up where it is the first there or was the last.
    fn count(&mut self, mut node: NodeId, what: fn(&mut Node) -> &mut u32, more: i32) {
        loop {
            let this = self.node_mut(node);
            let before = *what(this);
            let after = before.wrapping_add_signed(more);
            *what(this) = after;
            if node == ROOT || before > 0 && after > 0 {
                return;
            }
            node = this.parent;
        }
    }

    /// What was to be taken at a node turned out to be another way of the same thread.
    pub(super) fn correct(&mut self, node: NodeId, transition: Transition) {
        let Node {
            parent,
            transition: old,
            ..
        } = *self.node(node);
        self.node_mut(node).transition = transition;
        if let Some(taken) = self
            .node_mut(parent)
            .taken
            .iter_mut()
            .rev()
            .find(|taken| **taken == old)
        {
            *taken = transition;
        }
    }

    /// An execution that is under way at a node goes on like this.
    pub(super) fn advance(
        &mut self,
        parent: NodeId,
        transition: Transition,
        planned: Option<Planned>,
    ) -> Leg {
        let node = self.add(parent, transition);
        self.take(node, parent, transition);
        self.node_mut(parent).children.push(node);
        let this = self.node_mut(node);
        this.planned = planned;
        this.visited = true;
        this.active_below += 1;
        self.leg(node)
    }

    /// Others can be taken at a node as well, unless they have been or will be.
    pub(super) fn offer(&mut self, parent: NodeId, others: impl Iterator<Item = Transition>) {
        let this = self.node(parent);
        let is_long = this.taken.len() + this.children.len() > LONG_LIST;
        let known: Option<HashSet<Transition>> = is_long.then(|| self.known_at(parent).collect());
        for other in others {
            let is_known = match &known {
                Some(known) => known.contains(&other),
                None => self.known_at(parent).any(|known| known == other),
            };
            if !is_known {
                self.open_child(parent, other);
            }
        }
    }

    /// What has been taken at a node or will be.
    fn known_at(&self, node: NodeId) -> impl Iterator<Item = Transition> {
        let this = self.node(node);
        let children = this.children.iter();
        let children = children.map(|&child| self.node(child).transition);
        this.taken.iter().copied().chain(children)
    }

    fn open_child(&mut self, parent: NodeId, transition: Transition) -> NodeId {
        let child = self.add(parent, transition);
        self.node_mut(parent).children.push(child);
        self.open += 1;
        self.count(parent, |node| &mut node.open_below, 1);
        child
    }

    /// Has an execution explored in which a race goes the other way, from where it begins, unless that begins with something
    /// that is known: with what slept when the first event of the race was taken, or with what is there besides.
    pub(super) fn insert_first(
        &mut self,
        at: NodeId,
        reversed: NodeId,
        reversal: &Reversal,
        witness: &Witness<'_>,
    ) {
        let this = self.node(at);
        let children = this.children.iter();
        let planned = children.map(|&child| &self.node(child).transition);
        let asleep = self.node(reversed).asleep.iter();
        let mut known = asleep.chain(&this.taken).chain(planned);
        if !known.any(|&other| witness.can_be_first(reversal, other)) {
            let first = witness.transition(reversal, reversal.steps[0]);
            self.open_child(at, first);
        }
    }

    /// Has an execution explored in which a race goes the other way, unless what is known comes to it.
    ///
    /// All of its steps are prescribed, merged into those that are already: that keeps executions from coming to where
    /// all sleeps.
    pub(super) fn insert_whole(
        &mut self,
        at: NodeId,
        reversed: NodeId,
        reversal: &Reversal,
        witness: &Witness<'_>,
        ask: &mut dyn FnMut(&Question) -> Relation,
    ) {
        let mut rest = Rest::of(reversal);
        let covers = |&transition: &Transition| {
            let relation = witness.relation(reversal, &rest, transition, None);
            matches!(relation, Relation::First(_) | Relation::Independent)
        };
        if self.node(reversed).asleep.iter().any(covers) {
            return;
        }
        let mut behind = at;
        let mut later_than = Some(reversed);
        while let Some((child, relation)) = {
            let later = self.later(behind, later_than.take());
            self.leading(later, reversal, &rest, witness, ask)
        } {
            let this = self.node(child);
            rest.pass(this.transition, relation);
            if rest.steps.is_empty() || this.children.is_empty() {
                return;
            }
            behind = child;
        }
        for &step in rest.steps.iter() {
            behind = self.open_child(behind, witness.transition(reversal, step));
            self.node_mut(behind).planned = Some(witness.planned(reversal, step));
        }
    }

    /// What is planned or has been taken at a node, later than a certain one.
    fn later(&self, at: NodeId, than: Option<NodeId>) -> &[NodeId] {
        let children = &self.node(at).children;
        let than = than.and_then(|earlier| children.iter().position(|&child| child == earlier));
        &children[than.map_or(0, |earlier| earlier + 1)..]
    }

    /// The first of some nodes that what is left of a reversal can go on behind.
    fn leading(
        &self,
        nodes: &[NodeId],
        reversal: &Reversal,
        rest: &Rest<'_>,
        witness: &Witness<'_>,
        ask: &mut dyn FnMut(&Question) -> Relation,
    ) -> Option<(NodeId, Relation)> {
        nodes.iter().find_map(|&node| {
            let this = self.node(node);
            let relation = match witness.relation(reversal, rest, this.transition, this.planned) {
                Relation::Unknown => ask(&witness.question(reversal, rest, this.transition)),
                known => known,
            };
            (relation != Relation::Conflict).then_some((node, relation))
        })
    }

    /// An execution is over whose last node this is.
    pub(super) fn release(&mut self, node: NodeId) {
        self.active -= 1;
        self.count(node, |node| &mut node.active_below, -1);
        match self.merges {
            true => self.prune(),
            false => self.prune_up(node),
        }
    }

    /// Forgets what is done with, from a node up.
    fn prune_up(&mut self, mut node: NodeId) {
        while node != ROOT {
            let this = self.node(node);
            if !this.is_done() {
                return;
            }
            let parent = this.parent;
            self.node_mut(parent)
                .children
                .retain(|&child| child != node);
            self.forget(node);
            node = parent;
        }
    }

    /// The same where plans are merged. What was taken later than something that is not done with stays: what is found
    /// there can turn out to lead here.
    fn prune(&mut self) {
        let mut at = ROOT;
        while let Some(&child) = self.node(at).children.first() {
            let this = self.node(child);
            if !this.visited {
                return;
            }
            if !this.is_done() {
                at = child;
                continue;
            }
            self.node_mut(at).children.remove(0);
            self.forget(child);
        }
    }

    fn forget(&mut self, node: NodeId) {
        let (mut open, mut next) = (Vec::new(), Some(node));
        while let Some(node) = next {
            self.free.push(node);
            let this = self.node_mut(node);
            this.lives = this.lives.wrapping_add(1);
            open.append(&mut this.children);
            this.taken.clear();
            this.asleep.clear();
            this.operation = None;
            this.behind = None;
            this.planned = None;
            this.visited = false;
            this.open_below = 0;
            this.active_below = 0;
            next = open.pop();
        }
    }
}
