//! The stack of a depth-first walk: the states that have been entered and not left, and those that wait beside them.

use std::iter;

use super::{End, StateAt};
use crate::explore::path::Path;
use crate::explore::visited::Visit;
use crate::panics;
use crate::tables::FingerprintMap;
use crate::trace::Fingerprint;

/// A part of a space to walk: states with one parent, and the path to that.
pub(crate) struct Branch<T> {
    path: Path,
    /// Whether each of the states is a step behind the end of the path, which leads to the state itself otherwise.
    is_behind: bool,
    children: Vec<Child<T>>,
}

impl<T> Branch<T> {
    /// All that lies behind one state, to which `path` leads.
    pub(crate) fn rooted(path: Path, state: T, fingerprint: Fingerprint) -> Self {
        let root = Child {
            state,
            fingerprint,
            position: 0,
            visit: None,
        };
        Self {
            path,
            is_behind: false,
            children: vec![root],
        }
    }
}

/// A successor of a state on the stack.
pub(super) struct Child<T> {
    pub(super) state: T,
    pub(super) fingerprint: Fingerprint,
    /// The event that leads to it, as its position among those of its parent.
    pub(super) position: u32,
    /// What a visit finds, where that is known before its turn comes.
    pub(super) visit: Option<Visit>,
}

/// The successors of a state on the stack, or the roots of the walk.
struct Frame {
    /// Where they begin in the list of all.
    first: usize,
    end: End,
}

/// The states that a walk has entered and not left, from its root to the state that it is at.
///
/// One list holds the successors of all of them, those of each state in a row and the next one last. A successor that
/// has been entered stays there until it is left, with its own successors behind it.
pub(crate) struct Stack<T> {
    path: Path,
    is_behind: bool,
    frames: Vec<Frame>,
    children: Vec<Child<T>>,
    /// Filled only for a visitor that [asks for it](super::Visitor::TRACKS_STACK).
    index: Index,
    /// Whether states with one fingerprint can be different.
    compares: bool,
}

impl<T> Stack<T> {
    pub(super) fn new(compares: bool) -> Self {
        Self {
            compares,
            path: Path::starting(0),
            is_behind: false,
            frames: Vec::new(),
            children: Vec::new(),
            index: Index::default(),
        }
    }

    /// Begins with a branch, when the stack is empty.
    pub(super) fn begin(&mut self, branch: Branch<T>) {
        debug_assert!(self.frames.is_empty() && self.children.is_empty());
        self.path = branch.path;
        self.is_behind = branch.is_behind;
        self.children = branch.children;
        self.frames.push(Frame {
            first: 0,
            end: End::Expanded,
        });
    }

    /// How many states are on the stack.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.frames.len().saturating_sub(1)
    }

    /// How many successors of its states wait for their turn.
    pub(crate) fn waiting(&self) -> usize {
        self.children.len() - self.len()
    }

    /// The depth of the state at this place of the stack.
    #[inline]
    pub(super) fn depth_at(&self, place: usize) -> u64 {
        (self.path.events.len() + usize::from(self.is_behind) + place) as u64
    }

    /// The state on top, where there is one.
    #[inline]
    pub(crate) fn top(&self) -> StateAt<'_, T> {
        self.at(self.len() - 1)
    }

    /// The state at this place, counted from the root.
    #[inline]
    pub(super) fn at(&self, place: usize) -> StateAt<'_, T> {
        let child = &self.children[self.frames[place + 1].first - 1];
        child.at(self.depth_at(place))
    }

    /// Whose turn it is.
    #[inline]
    pub(super) fn turn(&self) -> Turn {
        match self.frames.last() {
            None => Turn::Finished,
            Some(frame) if frame.first == self.children.len() => Turn::Leave,
            Some(_) => Turn::Child,
        }
    }

    /// The successor of the state on top whose turn it is.
    #[inline]
    pub(super) fn next(&self) -> &Child<T> {
        self.children.last().expect("it is the turn of a successor")
    }

    /// The path to the state on top.
    pub(crate) fn path(&self) -> Path {
        self.path_to(self.len())
    }

    /// The path to the successor whose turn it is.
    pub(super) fn path_to_next(&self) -> Path {
        let mut path = self.path();
        if self.len() > 0 || self.is_behind {
            path.events.push(self.next().position as usize);
        }
        path
    }

    /// The path to the last of so many states from the root on.
    fn path_to(&self, len: usize) -> Path {
        let mut path = self.path.clone();
        let first = usize::from(!self.is_behind);
        let steps = self.frames.iter().skip(1).take(len).skip(first);
        let step = |frame: &Frame| self.children[frame.first - 1].position as usize;
        path.events.extend(steps.map(step));
        path
    }

    /// Enters the successor whose turn it is.
    #[inline]
    pub(super) fn push(&mut self, tracks: bool) {
        if tracks {
            self.index.push(self.next().fingerprint);
        }
        self.frames.push(Frame {
            first: self.children.len(),
            end: End::NothingEnabled,
        });
    }

    /// Adds a successor of the state on top; the one that is added first comes last.
    #[inline]
    pub(super) fn add(&mut self, child: Child<T>) {
        self.children.push(child);
    }

    /// Says that all successors of the state on top have been added, in order, and how it will end.
    #[inline]
    pub(super) fn complete(&mut self, end: End) {
        if let Some(frame) = self.frames.last_mut() {
            frame.end = end;
            self.children[frame.first..].reverse();
        }
    }

    /// How the state on top ends.
    pub(super) fn end(&self) -> End {
        self.frames.last().map_or(End::Expanded, |frame| frame.end)
    }

    /// Passes over the successor whose turn it is.
    #[inline]
    pub(super) fn skip(&mut self) {
        self.children.pop();
    }

    /// Leaves the state on top, or the roots.
    #[inline]
    pub(super) fn pop(&mut self, tracks: bool) {
        self.frames.pop();
        let left = self.children.pop();
        if tracks && let Some(child) = left {
            self.index.pop(child.fingerprint);
        }
    }

    /// Where a state is on the stack, counted from the root. Where states are told apart by more than their fingerprints,
    /// they are compared.
    pub(crate) fn place(&self, state: &T, fingerprint: Fingerprint) -> Option<usize>
    where
        T: Eq,
    {
        let same = |place: &usize| {
            !self.compares || panics::catch(|| self.at(*place).state == state) == Ok(true)
        };
        self.index.places(fingerprint).find(same)
    }

    /// Takes away the successors that wait on the lowest place where any do, for another walk.
    pub(crate) fn split(&mut self) -> Option<Branch<T>> {
        let ends = self.frames.iter().skip(1).map(|frame| frame.first - 1);
        let ends = ends.chain([self.children.len()]);
        let firsts = self.frames.iter().map(|frame| frame.first);
        let mut lists = firsts.zip(ends).enumerate();
        let (place, (first, end)) = lists.find(|(_, (first, end))| first < end)?;
        let branch = Branch {
            path: self.path_to(place),
            is_behind: place > 0 || self.is_behind,
            children: self.children.drain(first..end).collect(),
        };
        for frame in &mut self.frames[place + 1..] {
            frame.first -= end - first;
        }
        Some(branch)
    }
}

/// What a walk does next.
pub(super) enum Turn {
    /// It meets a successor of the state on top.
    Child,
    /// It leaves the state on top, which has none left, or the roots.
    Leave,
    /// The stack is empty.
    Finished,
}

impl<T> Child<T> {
    #[inline]
    pub(super) fn at(&self, depth: u64) -> StateAt<'_, T> {
        StateAt {
            state: &self.state,
            fingerprint: self.fingerprint,
            depth,
        }
    }
}

/// Finds states on a stack by their fingerprints.
#[derive(Default)]
struct Index {
    /// The highest place of each fingerprint.
    places: FingerprintMap<usize>,
    /// For each place, the next one below with the same fingerprint.
    below: Vec<Option<usize>>,
}

impl Index {
    fn push(&mut self, fingerprint: Fingerprint) {
        let place = self.below.len();
        self.below.push(self.places.insert(fingerprint, place));
    }

    fn pop(&mut self, fingerprint: Fingerprint) {
        match self.below.pop().flatten() {
            Some(below) => self.places.insert(fingerprint, below),
            None => self.places.remove(&fingerprint),
        };
    }

    fn places(&self, fingerprint: Fingerprint) -> impl Iterator<Item = usize> {
        let highest = self.places.get(&fingerprint).copied();
        iter::successors(highest, |&place| self.below[place])
    }
}
