//! The stacks of threads.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use corosensei::stack::{DefaultStack, Stack};

use super::world::HEADROOM;

/// Stacks, each used again and again.
pub(in super::super) struct Stacks {
    /// The size of most.
    usual: usize,
    spare: Vec<DefaultStack>,
    /// Those of threads that asked for more, with their sizes.
    larger: Vec<(usize, DefaultStack)>,
}

/// The part of a stack that a thread may use.
#[derive(Clone, Copy, Default)]
pub(in super::super) struct Room {
    /// The lowest address.
    pub(in super::super) floor: usize,
    /// The size that was asked for.
    pub(in super::super) size: usize,
}

impl Room {
    pub(in super::super) fn new(stack: &DefaultStack, size: usize) -> Self {
        Self {
            floor: stack.limit().get(),
            size,
        }
    }
}

/// How many stacks are kept for later checks: to make one and to give it back takes longer than a small execution.
const MOST_KEPT: usize = 32;

/// What earlier checks have left, with the sizes that they had asked for.
fn kept() -> MutexGuard<'static, Vec<(usize, DefaultStack)>> {
    static KEPT: Mutex<Vec<(usize, DefaultStack)>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stack of so many bytes. More than any address space has would overflow where they are rounded up.
fn new_stack(bytes: usize) -> io::Result<DefaultStack> {
    match isize::try_from(bytes) {
        Ok(_) => DefaultStack::new(bytes),
        Err(_) => Err(io::ErrorKind::OutOfMemory.into()),
    }
}

impl Stacks {
    pub(in super::super) fn new(usual: usize) -> Self {
        Self {
            usual,
            spare: Vec::new(),
            larger: Vec::new(),
        }
    }

    /// The size of the stack of a thread that asks for so much, or for nothing.
    pub(in super::super) fn size(&self, asked: Option<usize>) -> usize {
        asked.map_or(self.usual, |asked| asked.max(self.usual))
    }

    /// A stack of one of these sizes, if there is memory for it.
    pub(in super::super) fn take(&mut self, size: usize) -> io::Result<DefaultStack> {
        if size == self.usual {
            return self.spare.pop().map_or_else(|| self.find(), Ok);
        }
        match self.larger.iter().rposition(|&(other, _)| other == size) {
            Some(at) => Ok(self.larger.swap_remove(at).1),
            // All of what a thread asks for is its own.
            None => new_stack(size.saturating_add(HEADROOM)),
        }
    }

    fn find(&self) -> io::Result<DefaultStack> {
        let mut kept = kept();
        let fit = kept.iter().rposition(|&(bytes, _)| bytes == self.usual);
        match fit {
            Some(at) => Ok(kept.swap_remove(at).1),
            None => new_stack(self.usual),
        }
    }

    pub(in super::super) fn give_back(&mut self, size: usize, stack: DefaultStack) {
        match size == self.usual {
            true => self.spare.push(stack),
            false => self.larger.push((size, stack)),
        }
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        let mut kept = kept();
        let room = MOST_KEPT.saturating_sub(kept.len());
        let stacks = self.spare.drain(..).take(room);
        kept.extend(stacks.map(|stack| (self.usual, stack)));
    }
}
