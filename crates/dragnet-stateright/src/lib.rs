//! Stateright models as Dragnet targets: what was written for [Stateright](stateright) is checked by Dragnet as it is.
//!
//! [`check`] takes any [`Model`](stateright::Model) with its properties and its boundary, [`check_actors`] an
//! [`ActorModel`](stateright::actor::ActorModel), which it understands better:
//!
//! ```
//! use stateright::{Model, Property};
//!
//! /// Two workers raise a counter, each by reading it first and writing it back later.
//! struct LostUpdate;
//!
//! #[derive(Clone, Debug, PartialEq, Eq, Hash)]
//! struct Counter { value: u8, seen: [Option<u8>; 2], done: [bool; 2] }
//!
//! #[derive(Clone, Debug, PartialEq)]
//! enum Act { Read(usize), Write(usize) }
//!
//! impl Model for LostUpdate {
//!     type State = Counter;
//!     type Action = Act;
//!
//!     fn init_states(&self) -> Vec<Counter> {
//!         vec![Counter { value: 0, seen: [None; 2], done: [false; 2] }]
//!     }
//!
//!     fn actions(&self, counter: &Counter, acts: &mut Vec<Act>) {
//!         for worker in (0..2).filter(|&worker| !counter.done[worker]) {
//!             acts.push(if counter.seen[worker].is_none() { Act::Read(worker) } else { Act::Write(worker) });
//!         }
//!     }
//!
//!     fn next_state(&self, counter: &Counter, act: Act) -> Option<Counter> {
//!         let mut next = counter.clone();
//!         match act {
//!             Act::Read(worker) => next.seen[worker] = Some(counter.value),
//!             Act::Write(worker) => {
//!                 next.value = counter.seen[worker]? + 1;
//!                 next.done[worker] = true;
//!             }
//!         }
//!         Some(next)
//!     }
//!
//!     fn properties(&self) -> Vec<Property<Self>> {
//!         vec![
//!             Property::always("no update is lost", |_, s: &Counter| s.done != [true; 2] || s.value == 2),
//!             Property::sometimes("both finish", |_, s: &Counter| s.done == [true; 2]),
//!         ]
//!     }
//! }
//!
//! let verdict = dragnet_stateright::check(LostUpdate).run();
//! assert_eq!(verdict.violation().unwrap().property, "no update is lost");
//! assert_eq!(verdict.counterexample().unwrap().len(), 4);
//! ```
//!
//! The check is an ordinary one, so it also goes into a catalogue of one's own, behind Dragnet's command line:
//!
//! ```
//! # use stateright::{Model, Property};
//! # struct Clock { hours: u64 }
//! # impl Model for Clock {
//! #     type State = u64;
//! #     type Action = ();
//! #     fn init_states(&self) -> Vec<u64> { vec![0] }
//! #     fn actions(&self, _: &u64, actions: &mut Vec<()>) { actions.push(()) }
//! #     fn next_state(&self, hour: &u64, _: ()) -> Option<u64> { Some((hour + 1) % self.hours) }
//! # }
//! use dragnet::catalog::{Entry, Selection};
//!
//! let entry = Entry::new("clock", "a clock that goes round", |setup| {
//!     dragnet_stateright::check(Clock { hours: setup.number("hours") })
//! })
//! .parameter("hours", 12, 1..=24, "how many hours a day has");
//!
//! let check = entry.check(&Selection::of(&entry)).unwrap();
//! assert_eq!(check.run_under(&Default::default()).states(), 12);
//! ```
//!
//! `eventually` asks for liveness, which Dragnet does not judge yet. A model with such a property is refused with a line
//! that names it, until [`Stateright::without_eventually`] says that the rest is to be checked; the verdict then names
//! what it does not judge.
//!
//! Actors can also leave their model behind: [`cluster`] makes [nodes](dragnet::Node) of them, which brings the interned
//! engine and Dragnet's own network and faults.

mod actors;
mod cluster;
mod model;
mod node;
mod target;

pub use cluster::{NoEquivalent, cluster};
pub use model::{CheckableModel, ModelSystem, Reflexive};
pub use node::{ActorNode, ActorState, CheckableActor, timer};
pub use target::{Stateright, check, check_actors};
