//! The stacks of threads.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use corosensei::stack::{DefaultStack, Stack};

/// Stacks of one size, each used again and again.
pub(super) struct Stacks {
    bytes: usize,
    spare: Vec<DefaultStack>,
}

/// How many stacks are kept for later checks: to make one and to give it back takes longer than a small execution.
const MOST_KEPT: usize = 32;

/// What earlier checks have left, with the sizes that they had asked for.
fn kept() -> MutexGuard<'static, Vec<(usize, DefaultStack)>> {
    static KEPT: Mutex<Vec<(usize, DefaultStack)>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stacks {
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            bytes,
            spare: Vec::new(),
        }
    }

    /// A stack, if there is memory for it.
    pub(super) fn take(&mut self) -> io::Result<DefaultStack> {
        self.spare.pop().map_or_else(|| self.find(), Ok)
    }

    fn find(&self) -> io::Result<DefaultStack> {
        let mut kept = kept();
        let fit = kept.iter().rposition(|&(bytes, _)| bytes == self.bytes);
        match fit {
            Some(at) => Ok(kept.swap_remove(at).1),
            None => DefaultStack::new(self.bytes),
        }
    }

    pub(super) fn give_back(&mut self, stack: DefaultStack) {
        self.spare.push(stack);
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        let mut kept = kept();
        let room = MOST_KEPT.saturating_sub(kept.len());
        let stacks = self.spare.drain(..).take(room);
        kept.extend(stacks.map(|stack| (self.bytes, stack)));
    }
}

/// Where a stack ends.
pub(super) fn floor(stack: &DefaultStack) -> usize {
    stack.limit().get()
}
