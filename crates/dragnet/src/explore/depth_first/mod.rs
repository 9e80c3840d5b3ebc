//! The depth-first core: a stack, a visited set and a transition relation.
//!
//! A [`DepthFirst`] walks along the first successor of each state that has not been visited, then backtracks. What an
//! engine makes of that happens in three places of a [`Visitor`]:
//!
//! - `enter`: a state has been visited for the first time and lies on top of the stack from now on;
//! - `edge`: a transition leads from the state on top of the stack to one that is new, visited, or on the stack itself;
//! - `leave`: all successors of the state on top of the stack have been left, and the search backtracks from it. States
//!   are left in post-order.
//!
//! A search that looks for cycles starts its nested search in `leave`, and closes a cycle at an edge to the stack
//! (Courcoubetis, Vardi, Wolper and Yannakakis, *Memory-efficient algorithms for the verification of temporal
//! properties*, 1992). A search script records the edges, productive where they lead to a new state and unproductive
//! elsewhere, with a backtrack for each state that is left (*Search-carrying code*, section 3.1). State-space caching
//! evicts states that have been left, and never those on the stack (the same, section 4.2): the core says when a state
//! may be [released](Visited::release). A bounded search has `enter` [cut](Next::Cut) what lies behind a state.
//!
//! A state is visited when it is entered, so that the tree of productive transitions is a depth-first tree. All
//! successors of a state are generated together and their places in the visited set prefetched; where the set never
//! evicts, those that are visited by then are not looked up again when their turn comes.
//!
//! All this holds of one worker. Several can have a walk each over one visited set, and hand [branches](Branch) of their
//! stacks to each other: then every state is entered by one of them, but a state may be left before those behind it.

mod stack;
#[cfg(test)]
mod tests;

use std::mem;
use std::ops::ControlFlow;

pub(crate) use self::stack::{Branch, Stack};
use self::stack::{Child, Turn};
use super::path::{Path, Wrong};
use super::visited::{ANY_DEPTH, Visit, Visited};
use super::walk::{Next, Space};
use crate::system::{Successor, System};
use crate::tables::number_below;
use crate::trace::Fingerprint;

/// What an engine does on a depth-first walk. The state at hand is always the one on top of the stack.
pub(crate) trait Visitor<S: System> {
    /// Whether `edge` is called.
    const SEES_EDGES: bool = false;

    /// Whether states can be [looked up](Stack::place) on the stack, and edges that lead there are told apart from those to
    /// other visited states.
    const TRACKS_STACK: bool = false;

    /// The state has been visited. A bounded search enters it again when it meets it at a smaller depth.
    fn enter(&mut self, stack: &Stack<S::State>, visit: Visit) -> ControlFlow<Wrong, Decision>;

    /// A transition leads from the state to another, by the event at `position`.
    #[inline]
    fn edge(
        &mut self,
        _stack: &Stack<S::State>,
        _to: StateAt<'_, S::State>,
        _position: usize,
        _edge: Edge,
    ) -> ControlFlow<Wrong> {
        ControlFlow::Continue(())
    }

    /// A transition leads to a state that has not been visited so far, or fails, and is not taken because the state was
    /// [cut](Decision::Cut).
    #[inline]
    fn cut(&mut self, _to: Next<S::State>, _fingerprint: Fingerprint) {}

    /// The search backtracks from the state.
    #[inline]
    fn leave(&mut self, _stack: &Stack<S::State>, _end: End) -> ControlFlow<Wrong> {
        ControlFlow::Continue(())
    }
}

/// A state that was met on a walk.
pub(crate) struct StateAt<'a, T> {
    pub(crate) state: &'a T,
    pub(crate) fingerprint: Fingerprint,
    /// How many steps lead to it: on the stack if it is there, otherwise from the start along the stack.
    pub(crate) depth: u64,
}

/// Whether the search goes on behind a state that it enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Its successors are met.
    Expand,
    /// A bound of the search leaves them out.
    Cut,
}

/// Where a transition leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// To a state that is entered next.
    New,
    /// To a state that has been visited.
    Visited,
    /// To a state on the stack: it closes a cycle.
    OnStack,
}

/// How a state ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// No event is enabled in it.
    NothingEnabled,
    /// Bounds, of the search or of the system, left out all of its successors.
    Cut,
    /// Successors were met.
    Expanded,
}

/// How far a walk has come.
pub(crate) enum Advance {
    /// As many states as it should have been entered.
    Paused,
    /// Its branch has been walked to the end.
    Finished,
    /// Something is wrong at the end of this path. The walk does not go on.
    Found(Path, Wrong),
}

/// A depth-first walk over a space. Several can share the visited states.
pub(crate) struct DepthFirst<'a, S: System, V> {
    space: &'a Space<'a, S>,
    visited: &'a V,
    /// A state that is met again at a smaller depth is entered again.
    is_bounded: bool,
    stack: Stack<S::State>,
    /// How many transitions were taken since this was last asked.
    transitions: u64,
    events: Vec<S::Event>,
    /// The successors of the state that is being expanded, and their fingerprints.
    generated: Vec<Successor<S::State>>,
    fingerprints: Vec<Fingerprint>,
}

impl<'a, S: System, V: Visited<S>> DepthFirst<'a, S, V> {
    /// A walk that has nothing to do. In a bounded search, a state that is met again at a smaller depth is entered again.
    pub(crate) fn new(space: &'a Space<'a, S>, visited: &'a V, is_bounded: bool) -> Self {
        Self {
            space,
            visited,
            is_bounded,
            stack: Stack::new(V::IS_EXACT),
            transitions: 0,
            events: Vec::new(),
            generated: Vec::new(),
            fingerprints: Vec::new(),
        }
    }

    /// Begins with a branch, when the last one has been walked to the end.
    pub(crate) fn begin(&mut self, branch: Branch<S::State>) {
        self.stack.begin(branch);
    }

    pub(crate) fn stack(&self) -> &Stack<S::State> {
        &self.stack
    }

    /// Takes away a branch for another walk, if this one has any to spare.
    pub(crate) fn split(&mut self) -> Option<Branch<S::State>> {
        self.stack.split()
    }

    /// How many transitions were taken since this was last asked.
    pub(crate) fn take_transitions(&mut self) -> u64 {
        mem::take(&mut self.transitions)
    }

    /// Goes on until so many more states have been entered. Out of line it costs a tenth of a search of small states.
    #[inline(always)]
    pub(crate) fn advance<W: Visitor<S>>(&mut self, visitor: &mut W, states: u32) -> Advance {
        let mut entered = 0;
        while entered < states {
            let walked = match self.stack.turn() {
                Turn::Finished => return Advance::Finished,
                Turn::Leave => self.leave(visitor),
                Turn::Child => self.meet(visitor, &mut entered),
            };
            if let ControlFlow::Break(found) = walked {
                let (path, wrong) = *found;
                return Advance::Found(path, wrong);
            }
        }
        Advance::Paused
    }

    /// Meets the successor whose turn it is, and enters it where it has not been visited.
    #[inline]
    fn meet<W: Visitor<S>>(&mut self, visitor: &mut W, entered: &mut u32) -> Walked {
        let child = self.stack.next();
        let depth = self.depth_of_visits();
        let visit = match child.visit {
            Some(visit) => visit,
            None => match self.visited.visit(&child.state, child.fingerprint, depth) {
                Ok(visit) => visit,
                Err(failure) => return found(self.stack.path_to_next(), Wrong::Failed(failure)),
            },
        };
        if W::SEES_EDGES
            && self.stack.len() > 0
            && let ControlFlow::Break(wrong) = self.edge(visitor, visit)
        {
            return found(self.stack.path_to_next(), wrong);
        }
        if visit == Visit::Known {
            self.stack.skip();
            return ControlFlow::Continue(());
        }
        *entered += 1;
        self.stack.push(W::TRACKS_STACK);
        match visitor.enter(&self.stack, visit) {
            ControlFlow::Break(wrong) => found(self.stack.path(), wrong),
            ControlFlow::Continue(Decision::Expand) => self.expand::<W>(),
            ControlFlow::Continue(Decision::Cut) => self.cut(visitor),
        }
    }

    fn edge<W: Visitor<S>>(&self, visitor: &mut W, visit: Visit) -> ControlFlow<Wrong> {
        let child = self.stack.next();
        let mut to = child.at(self.stack.depth_at(self.stack.len()));
        let mut edge = match visit {
            Visit::Known => Edge::Visited,
            Visit::New | Visit::Nearer => Edge::New,
        };
        if W::TRACKS_STACK
            && edge == Edge::Visited
            && let Some(place) = self.stack.place(to.state, to.fingerprint)
        {
            to.depth = self.stack.depth_at(place);
            edge = Edge::OnStack;
        }
        visitor.edge(&self.stack, to, child.position as usize, edge)
    }

    /// The depth at which the visited set knows the successors of the state on top of the stack.
    #[inline]
    fn depth_of_visits(&self) -> u64 {
        match self.is_bounded {
            true => self.stack.depth_at(self.stack.len()),
            false => 0,
        }
    }

    /// Generates the successors of the state on top of the stack.
    #[inline]
    fn generate(&mut self) -> Option<Wrong> {
        let state = self.stack.top().state;
        let (events, generated) = (&mut self.events, &mut self.generated);
        let wrong = self.space.expand(state, events, generated);
        if wrong.is_some() {
            self.generated.clear();
            return wrong;
        }
        let (generated, fingerprints) = (&mut self.generated, &mut self.fingerprints);
        self.space
            .identify_each(self.visited, generated, fingerprints);
        None
    }

    #[inline]
    fn expand<W: Visitor<S>>(&mut self) -> Walked {
        if let Some(wrong) = self.generate() {
            return found(self.stack.path(), wrong);
        }
        let depth = self.depth_of_visits();
        let mut end = match self.generated.is_empty() {
            true => End::NothingEnabled,
            false => End::Cut,
        };
        for (generated, &fingerprint) in self.generated.drain(..).zip(&self.fingerprints) {
            let Successor { position, mut next } = generated;
            if !self.space.admits(&mut next) {
                continue;
            }
            self.transitions += 1;
            let state = match next {
                Ok(state) => state,
                Err(failure) => {
                    let mut path = self.stack.path();
                    path.events.push(position);
                    return found(path, Wrong::Failed(failure));
                }
            };
            end = End::Expanded;
            // What never evicts knows it when its turn comes, too.
            let is_known = !V::EVICTS && self.visited.contains(&state, fingerprint, depth);
            if is_known && !W::SEES_EDGES {
                continue;
            }
            self.stack.add(Child {
                state,
                fingerprint,
                position: number_below(position, u32::MAX, "events in one state"),
                visit: is_known.then_some(Visit::Known),
            });
        }
        self.stack.complete(end);
        ControlFlow::Continue(())
    }

    /// Leaves out the successors of the state on top of the stack.
    fn cut<W: Visitor<S>>(&mut self, visitor: &mut W) -> Walked {
        if let Some(wrong) = self.generate() {
            return found(self.stack.path(), wrong);
        }
        let end = match self.generated.is_empty() {
            true => End::NothingEnabled,
            false => End::Cut,
        };
        for (generated, &fingerprint) in self.generated.drain(..).zip(&self.fingerprints) {
            let mut next = generated.next;
            let is_visited = |state| self.visited.contains(state, fingerprint, ANY_DEPTH);
            if self.space.admits(&mut next) && !next.as_ref().is_ok_and(is_visited) {
                visitor.cut(next, fingerprint);
            }
        }
        self.stack.complete(end);
        ControlFlow::Continue(())
    }

    /// Backtracks from the state on top of the stack.
    #[inline]
    fn leave<W: Visitor<S>>(&mut self, visitor: &mut W) -> Walked {
        if self.stack.len() > 0 {
            if let ControlFlow::Break(wrong) = visitor.leave(&self.stack, self.stack.end()) {
                return found(self.stack.path(), wrong);
            }
            if V::EVICTS {
                let left = self.stack.top();
                self.visited.release(left.state, left.fingerprint);
            }
        }
        self.stack.pop(W::TRACKS_STACK);
        ControlFlow::Continue(())
    }
}

/// Whether a walk goes on, or what it has found.
type Walked = ControlFlow<Box<(Path, Wrong)>>;

#[cold]
fn found(path: Path, wrong: Wrong) -> Walked {
    ControlFlow::Break(Box::new((path, wrong)))
}
