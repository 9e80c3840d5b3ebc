//! Threads that raise a shared number by reading it and writing it back, with and without a lock.

use stateright::{Model, Property};

pub struct Increment {
    pub threads: usize,
    pub locked: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    shared: u8,
    lock: bool,
    threads: Vec<(Place, u8)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    Outside,
    Reading,
    Writing,
    Leaving,
    Done,
}

/// The thread that goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs(usize);

impl Model for Increment {
    type State = State;
    type Action = Runs;

    fn init_states(&self) -> Vec<State> {
        let first = if self.locked {
            Place::Outside
        } else {
            Place::Reading
        };
        vec![State {
            shared: 0,
            lock: false,
            threads: vec![(first, 0); self.threads],
        }]
    }

    fn actions(&self, _: &State, actions: &mut Vec<Runs>) {
        actions.extend((0..self.threads).map(Runs));
    }

    fn next_state(&self, state: &State, Runs(thread): Runs) -> Option<State> {
        let mut next = state.clone();
        let (place, read) = &mut next.threads[thread];
        *place = match *place {
            Place::Outside if state.lock => return None,
            Place::Outside => {
                next.lock = true;
                Place::Reading
            }
            Place::Reading => {
                *read = state.shared;
                Place::Writing
            }
            Place::Writing => {
                next.shared = *read + 1;
                if self.locked {
                    Place::Leaving
                } else {
                    Place::Done
                }
            }
            Place::Leaving => {
                next.lock = false;
                Place::Done
            }
            Place::Done => return None,
        };
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always(
            "every write counts",
            |_, state: &State| {
                let written = |place: &Place| matches!(place, Place::Leaving | Place::Done);
                let writes = state.threads.iter().filter(|(place, _)| written(place));
                writes.count() == usize::from(state.shared)
            },
        )]
    }
}
