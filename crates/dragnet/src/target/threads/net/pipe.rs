//! What goes from one socket to another.

use std::collections::VecDeque;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::Label;
use crate::target::threads::handle::Handle;
use crate::target::threads::model::{GONE, Model, RESET};
use crate::target::threads::operation::Action;
use crate::target::threads::world;

/// A way from those who put something in to one who takes it out, in pieces.
pub(super) struct Pipe<T> {
    handle: Handle,
    label: OnceLock<Label>,
    pieces: Mutex<VecDeque<T>>,
}

/// Why nothing was put in or taken out.
pub(super) enum Failed {
    /// There is nothing, and nobody waits for it any longer.
    Empty,
    /// The other end is gone.
    Gone,
    /// The connection has broken.
    Reset,
    /// The execution is over.
    Over,
}

/// How long somebody waits for something.
#[derive(Clone, Copy)]
pub(super) enum Wait {
    No,
    For(Duration),
    Long,
}

impl<T> Pipe<T> {
    #[track_caller]
    pub(super) fn new() -> Self {
        Self {
            handle: Handle::new(),
            label: OnceLock::new(),
            pieces: Mutex::default(),
        }
    }

    /// Says what it is called.
    pub(super) fn label(&self, label: Label) {
        self.label.get_or_init(|| label);
    }

    fn pieces(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn operate(&self, action: Action, at: &'static Location<'static>) -> Option<u32> {
        let world = world::current().filter(|world| !world.is_over())?;
        let object = world.object(&self.handle, Model::pipe);
        if let Some(&label) = self.label.get() {
            world.label(object, label);
        }
        world.operate_on(object, action, at)
    }

    fn judge(answer: Option<u32>) -> Result<(), Failed> {
        match answer {
            None => Err(Failed::Over),
            Some(0) => Err(Failed::Empty),
            Some(GONE) => Err(Failed::Gone),
            Some(RESET) => Err(Failed::Reset),
            Some(_) => Ok(()),
        }
    }

    /// Puts in a piece of a certain size, which is made once it is known that somebody may take it.
    pub(super) fn put(
        &self,
        size: usize,
        at: &'static Location<'static>,
        piece: impl FnOnce() -> T,
    ) -> Result<(), Failed> {
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        Self::judge(self.operate(Action::Put(size), at))?;
        let piece = piece();
        self.pieces().push_back(piece);
        Ok(())
    }

    /// Waits for the first piece, and takes so much of it: `take` does so, and says whether nothing is left of it.
    pub(super) fn take<R>(
        &self,
        most: usize,
        wait: Wait,
        at: &'static Location<'static>,
        take: impl FnOnce(&mut T) -> (R, bool),
    ) -> Result<R, Failed> {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let action = match wait {
            Wait::No => Action::TryTake { most },
            Wait::For(_) => Action::Take { most, timed: true },
            Wait::Long => Action::Take { most, timed: false },
        };
        let judged = Self::judge(self.operate(action, at));
        if let (Err(Failed::Empty), Wait::For(time), Some(world)) =
            (&judged, wait, world::current())
        {
            world.pass(time);
        }
        judged?;
        let mut pieces = self.pieces();
        let (taken, is_used_up) = take(pieces.front_mut().ok_or(Failed::Over)?);
        let used_up = is_used_up.then(|| pieces.pop_front());
        // What is left of a piece may be a socket, which does something when it is dropped.
        drop(pieces);
        drop(used_up);
        Ok(taken)
    }

    /// Nothing more is put in.
    pub(super) fn shut(&self, at: &'static Location<'static>) {
        self.operate(Action::Shut, at);
    }

    /// Nothing more is taken out.
    pub(super) fn hang_up(&self, at: &'static Location<'static>) {
        self.operate(Action::HangUp, at);
        self.forget();
    }

    /// Nothing more is taken out, and each piece is lost as `losing` says. It stays until that is done: if who loses it
    /// crashes meanwhile, somebody else does so again.
    pub(super) fn hang_up_losing<L: FnOnce()>(
        &self,
        at: &'static Location<'static>,
        losing: impl Fn(&T) -> L,
    ) {
        self.operate(Action::HangUp, at);
        loop {
            let Some(lose) = self.pieces().front().map(&losing) else {
                return;
            };
            lose();
            let lost = self.pieces().pop_front();
            drop(lost);
        }
    }

    /// It breaks.
    pub(super) fn reset(&self, at: &'static Location<'static>) {
        self.operate(Action::Reset, at);
        self.forget();
    }

    fn forget(&self) {
        let pieces = std::mem::take(&mut *self.pieces());
        drop(pieces);
    }
}
