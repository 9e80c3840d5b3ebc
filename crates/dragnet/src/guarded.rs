//! Steps of direct systems and properties, as far as they may [not return](crate::step_guard).

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::panics;
use crate::step_guard;
use crate::system::{Failure, System};
use crate::trace::{Fingerprint, Key, debug};

/// The successor of `state`; a panic on the way is a failure.
#[inline]
pub(crate) fn next<S: System>(
    system: &S,
    state: &S::State,
    event: &S::Event,
) -> Result<S::State, Failure> {
    let part = Part::Next(event);
    panics::catch(|| guarded(system, state, part, || system.next(state, event)))
        .and_then(|next| next)
}

/// The initial states.
pub(crate) fn initial<S: System>(system: &S) -> Vec<S::State> {
    match system.guards_steps() {
        true => system.initial(),
        false => step_guard::run(&InitialStep, || system.initial()),
    }
}

/// A direct system makes its initial states.
struct InitialStep;

impl step_guard::Step for InitialStep {
    fn key(&self) -> u64 {
        Fingerprint::of("initial", Key::default()).0
    }

    fn describe(&self) -> String {
        "the initial states".to_owned()
    }

    fn owner(&self) -> &str {
        "the system"
    }
}

/// The events of `state`, added to `events`.
#[inline]
pub(crate) fn list_events<S: System>(system: &S, state: &S::State, events: &mut Vec<S::Event>) {
    guarded(system, state, Part::Events, || system.events(state, events));
}

/// Runs code of a direct system as a [step](step_guard) that may not return. Other targets look after their steps
/// themselves, at a finer grain.
#[inline]
pub(crate) fn guarded<S: System, R>(
    system: &S,
    state: &S::State,
    part: Part<'_, S::Event>,
    code: impl FnOnce() -> R,
) -> R {
    match system.guards_steps() {
        true => code(),
        false => step_guard::run(
            &GuardedStep {
                system,
                state,
                part,
            },
            code,
        ),
    }
}

/// Runs the `Hash`, `Eq` or `Clone` of a state of a direct system, as [`guarded`] does; a panic in it is a failure.
pub(crate) fn implementation<S: System, R>(
    system: &S,
    state: &S::State,
    name: &'static str,
    code: impl FnOnce() -> R,
) -> Result<R, Failure> {
    let part = Part::Implementation(name);
    panics::catch_in::<S::State, _>(name, || guarded(system, state, part, code))
}

/// Code of the program under test that runs on a state.
pub(crate) struct GuardedStep<'a, S: System> {
    pub(crate) system: &'a S,
    pub(crate) state: &'a S::State,
    pub(crate) part: Part<'a, S::Event>,
}

/// What runs on a state.
pub(crate) enum Part<'a, E> {
    Successors,
    Events,
    Next(&'a E),
    Properties,
    Property(&'a str),
    Bounds,
    Waiting,
    /// An implementation of a trait of `std`.
    Implementation(&'static str),
}

impl<E> Clone for Part<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Part<'_, E> {}

impl<'a, E> Part<'a, E> {
    /// Whose code it is.
    fn owner(&self) -> &'a str {
        match *self {
            Self::Successors
            | Self::Events
            | Self::Next(_)
            | Self::Waiting
            | Self::Implementation(_) => "the system",
            Self::Properties | Self::Bounds => "a property",
            Self::Property(name) => name,
        }
    }
}

impl<S: System> GuardedStep<'_, S> {
    /// The position of an event among those that are enabled. Unequal events may print alike, and need not hash.
    fn position(&self, event: &S::Event) -> Option<usize> {
        let mut events = Vec::new();
        panics::catch(|| self.system.events(self.state, &mut events)).ok()?;
        events.iter().position(|enabled| enabled == event)
    }
}

impl<S: System> step_guard::Step for GuardedStep<'_, S> {
    fn key(&self) -> u64 {
        // The `Hash` of the state may be what does not return.
        let state = match self.part {
            Part::Implementation(_) => Fingerprint::of(&debug(self.state), Key::default()),
            _ => self.system.fingerprint(self.state, Key::default()),
        };
        let part = match self.part {
            Part::Successors => "successors".to_owned(),
            Part::Events => "events".to_owned(),
            Part::Next(event) => match self.position(event) {
                Some(position) => format!("next {position}"),
                None => format!("next {event:?}"),
            },
            Part::Properties => "properties".to_owned(),
            Part::Property(name) => format!("property {name}"),
            Part::Bounds => "bounds".to_owned(),
            Part::Waiting => "waiting".to_owned(),
            Part::Implementation(name) => format!("implementation {name}"),
        };
        Fingerprint::of(&(state.0, part), Key::default()).0
    }

    fn describe(&self) -> String {
        let state = self.system.introduce(self.state).join(", ");
        let state = match state.char_indices().nth(LONGEST_DESCRIPTION) {
            Some((end, _)) => format!("{}…", &state[..end]),
            None => state,
        };
        match self.part {
            Part::Successors => format!("the successors of {state}"),
            Part::Events => format!("the events of {state}"),
            Part::Next(event) => format!("{event:?} in {state}"),
            Part::Properties => format!("the properties, judged in {state}"),
            Part::Property(name) => format!("`{name}`, judged in {state}"),
            Part::Bounds => format!("a bound, judged in {state}"),
            Part::Waiting => format!("what waits in {state}"),
            Part::Implementation(name) => format!("the `{name}` of {state}"),
        }
    }

    fn owner(&self) -> &str {
        self.part.owner()
    }
}

/// Code that runs on one state after the other.
pub(crate) struct Batch<'a, S: System> {
    system: &'a S,
    part: Part<'a, S::Event>,
    /// The state at hand, which is there for longer than this.
    state: AtomicPtr<S::State>,
    lifetime: PhantomData<&'a S::State>,
}

impl<'a, S: System> Batch<'a, S> {
    pub(crate) fn new(system: &'a S, part: Part<'a, S::Event>) -> Self {
        Self {
            system,
            part,
            state: AtomicPtr::new(ptr::null_mut()),
            lifetime: PhantomData,
        }
    }

    /// Goes on with another state.
    #[inline]
    pub(crate) fn go_on_with(&self, state: &'a S::State) {
        let state = ptr::from_ref(state).cast_mut();
        self.state.store(state, Ordering::Relaxed);
    }

    /// The state at hand.
    pub(crate) fn at_hand(&self) -> Option<&'a S::State> {
        // SAFETY: it is set from a reference that is good for the lifetime.
        unsafe { self.state.load(Ordering::Relaxed).as_ref() }
    }

    fn step(&self) -> Option<GuardedStep<'a, S>> {
        Some(GuardedStep {
            system: self.system,
            state: self.at_hand()?,
            part: self.part,
        })
    }
}

impl<S: System> step_guard::Step for Batch<'_, S> {
    fn key(&self) -> u64 {
        self.step().map_or(0, |step| step.key())
    }

    fn describe(&self) -> String {
        self.step().map_or_else(String::new, |step| step.describe())
    }

    fn owner(&self) -> &str {
        self.part.owner()
    }
}

/// How many characters of a state a description of a step has at most.
const LONGEST_DESCRIPTION: usize = 300;
