//! Sockets with several handles, which close with the last of them.

use std::net::SocketAddr;
use std::ops::Deref;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::Label;
use crate::target::threads::handle::Handle;
use crate::target::threads::model::Model;
use crate::target::threads::operation::Action;
use crate::target::threads::world;

/// A handle of a socket.
pub(super) struct Held<S: Close>(Arc<Counted<S>>);

struct Counted<S> {
    socket: S,
    /// Which of the threads that have a handle comes last decides which of them closes the socket.
    handle: Handle,
    label: Label,
    handles: AtomicUsize,
    /// How many handles there have ever been.
    made: AtomicUsize,
}

/// What happens when the last handle is dropped.
pub(super) trait Close {
    fn close(&self);
}

impl<S: Close> Held<S> {
    #[track_caller]
    pub(super) fn new(socket: S, local: SocketAddr, peer: Option<SocketAddr>) -> Self {
        Self(Arc::new(Counted {
            socket,
            label: Label::Handles { local, peer },
            handle: Handle::new(),
            handles: AtomicUsize::new(1),
            made: AtomicUsize::new(1),
        }))
    }

    /// Drops this handle, and leaves the socket to whatever has become of it.
    pub(super) fn abandon(self) {
        self.0.handles.fetch_add(1, Relaxed);
    }
}

impl<S: Close> Clone for Held<S> {
    fn clone(&self) -> Self {
        self.0.handles.fetch_add(1, Relaxed);
        self.0.made.fetch_add(1, Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl<S: Close> Deref for Held<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0.socket
    }
}

impl<S: Close> Drop for Held<S> {
    fn drop(&mut self) {
        let Some(world) = world::current().filter(|world| !world.is_over()) else {
            return;
        };
        let counted = &*self.0;
        if counted.made.load(Relaxed) > 1 {
            let object = world.object(&counted.handle, || Model::Memory);
            world.label(object, counted.label);
            world.operate_on(object, Action::Modify, Location::caller());
        }
        if counted.handles.fetch_sub(1, Relaxed) == 1 {
            counted.socket.close();
        }
    }
}
