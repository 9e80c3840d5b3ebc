//! The contract between a target and an explorer.
//!
//! Everything that explores states speaks to the program under test through [`System`]. A cluster of
//! [nodes](crate::Node) is turned into one by [`Cluster`](crate::Cluster); a plain struct can implement it directly.

use std::fmt::{self, Debug, Display};
use std::hash::Hash;

use crate::coarse_hash::CoarseHash;
use crate::panics;
use crate::run::{Run, StateRun};
use crate::trace::{Fingerprint, Key, Step, debug};

/// A transition system that Dragnet can explore: states, and in each state a fixed list of enabled events.
///
/// It must be deterministic. All choice lies in which of the enabled events is taken; for the same state `events`
/// always lists the same events in the same order, and the same event always leads to the same successor.
///
/// ```
/// use dragnet::{Check, Failure, System};
///
/// /// A counter that two workers raise, each by reading it first and writing it back later.
/// struct LostUpdate;
///
/// #[derive(Clone, Debug, PartialEq, Eq, Hash)]
/// struct Counter { value: u8, seen: [Option<u8>; 2], done: [bool; 2] }
///
/// #[derive(Clone, Debug, PartialEq, Eq)]
/// enum Act { Read(usize), Write(usize) }
///
/// impl System for LostUpdate {
///     type State = Counter;
///     type Event = Act;
///
///     fn initial(&self) -> Vec<Counter> {
///         vec![Counter { value: 0, seen: [None; 2], done: [false; 2] }]
///     }
///
///     fn events(&self, state: &Counter, out: &mut Vec<Act>) {
///         for worker in 0..2 {
///             match (state.done[worker], state.seen[worker]) {
///                 (false, None) => out.push(Act::Read(worker)),
///                 (false, Some(_)) => out.push(Act::Write(worker)),
///                 (true, _) => {}
///             }
///         }
///     }
///
///     fn next(&self, state: &Counter, act: &Act) -> Result<Counter, Failure> {
///         let mut next = state.clone();
///         match *act {
///             Act::Read(worker) => next.seen[worker] = Some(state.value),
///             Act::Write(worker) => {
///                 next.value = state.seen[worker].expect("read before written") + 1;
///                 next.done[worker] = true;
///             }
///         }
///         Ok(next)
///     }
/// }
///
/// let verdict = Check::new(LostUpdate)
///     .always("no update is lost", |s| s.done != [true, true] || s.value == 2)
///     .run();
/// assert_eq!(verdict.counterexample().unwrap().len(), 4);
/// ```
pub trait System: Send + Sync {
    /// A state of the whole system.
    type State: Clone + Eq + Hash + Debug + Send + Sync;

    /// One step that a state allows. Two events are equal when they are the same action, whatever the state.
    type Event: Clone + Eq + Debug + Send + Sync;

    /// The states that an execution can start in.
    fn initial(&self) -> Vec<Self::State>;

    /// Appends the events that are enabled in `state`, in a fixed order.
    fn events(&self, state: &Self::State, out: &mut Vec<Self::Event>);

    /// The state that `event`, enabled in `state`, leads to, or how the program fails while taking it.
    ///
    /// A panic counts as a failure too.
    fn next(&self, state: &Self::State, event: &Self::Event) -> Result<Self::State, Failure>;

    /// Appends the outcome of every event that is enabled in `state`, in the order of [`events`](System::events), for
    /// which `scratch` can be used.
    ///
    /// This is `events` and `next` in one; a system that can do both together faster may do so.
    #[inline]
    fn successors(
        &self,
        state: &Self::State,
        scratch: &mut Vec<Self::Event>,
        out: &mut Vec<Successor<Self::State>>,
    ) {
        scratch.clear();
        self.events(state, scratch);
        let mut events = scratch.iter().enumerate();
        let mut taken = 0;
        // Entered once for all, and again after each event in which the program panics.
        while let Err(failure) = panics::catch(|| {
            for (position, event) in &mut events {
                taken = position;
                let next = self.next(state, event);
                out.push(Successor { position, next });
            }
        }) {
            out.push(Successor {
                position: taken,
                next: Err(failure),
            });
        }
    }

    /// A [run](Run) from a state: an execution that is extended step by step.
    ///
    /// A system whose states are expensive, because each is an execution of its own, has runs that resume one execution.
    fn run(&self, start: &Self::State) -> Result<Box<dyn Run<Self> + '_>, Failure>
    where
        Self: Sized,
    {
        Ok(Box::new(StateRun::new(self, start)?))
    }

    /// A run along an execution that is known, by which it is printed, shortened and replayed: its states are those of this
    /// system, and not of a copy.
    ///
    /// Which events are enabled may depend on facts about the program that a search has found out: that a loop ends by
    /// itself, say. A run that is given `facts` knows these and no others, and finds out what else it needs; in the end
    /// [`Run::facts`] are all that its execution takes, in whichever process. Without, it knows all that is known here.
    fn replay(
        &self,
        start: &Self::State,
        _facts: Option<&[String]>,
    ) -> Result<Box<dyn Run<Self> + '_>, Failure>
    where
        Self: Sized,
    {
        Ok(Box::new(StateRun::new(self, start)?))
    }

    /// Whether states consist of parts that the system itself compares by equality, and are told apart by nothing else.
    /// Then unequal states with one fingerprint come of unequal parts with one hash, which
    /// [`coarse_hash`](System::coarse_hash) reports.
    #[doc(hidden)]
    const COMPARES_PARTS: bool = false;

    /// Two unequal parts of states with one hash, if there were any so far.
    #[doc(hidden)]
    fn coarse_hash(&self) -> Option<CoarseHash> {
        None
    }

    /// The same system without what a search has learnt of it, where it keeps anything of that kind.
    #[doc(hidden)]
    fn afresh(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// A hint that the successors of `state` will be asked for shortly: a system can have the memory that this takes on
    /// its way by then.
    #[inline]
    fn anticipate(&self, _state: &Self::State) {}

    /// A hash of `state` that, for the same key, is the same in every run, in every process and on every machine.
    fn fingerprint(&self, state: &Self::State, key: Key) -> Fingerprint {
        Fingerprint::of(state, key)
    }

    /// What kind of step `event` is in `state`. It decides what counts as a deadlock.
    fn kind(&self, _state: &Self::State, _event: &Self::Event) -> EventKind {
        EventKind::Progress
    }

    /// The actors that are alive in `state` and wait for something. A state in which nothing but faults and idle
    /// steps is left is a deadlock when this is not empty, and quiescent when it is.
    fn waiting(&self, _state: &Self::State) -> Vec<Actor> {
        Vec::new()
    }

    /// What an actor that waits in `state` waits for, as a person wants to read it behind "waits for".
    fn awaits(&self, _state: &Self::State, _actor: Actor) -> Option<String> {
        None
    }

    /// Who takes `event` in `state`.
    fn task(&self, _state: &Self::State, _event: &Self::Event) -> Task {
        Task::of(ComponentId(0))
    }

    /// What the task of `event` is about, as a hash that is the same in every run, in every process and on every machine: the
    /// message with its link, the timer, the call, the thread's next operation. Events that differ only in what is chosen
    /// inside them have one identity.
    fn identity(&self, _state: &Self::State, event: &Self::Event) -> Fingerprint {
        Fingerprint::of(&debug(event), Key::default())
    }

    /// The names of the components, by [`ComponentId`]. Empty when there is only one.
    fn components(&self) -> Vec<String> {
        Vec::new()
    }

    /// The name of an actor: that of its component, where a component has one thread.
    fn actor_name(&self, actor: Actor) -> String {
        match actor {
            Actor::Environment => "the environment".to_owned(),
            Actor::Component(component, _) => {
                let name = self.components().into_iter().nth(component.0);
                name.unwrap_or_else(|| component.to_string())
            }
        }
    }

    /// `event` as a person wants to read it in a counterexample. `after` is `None` when the step failed.
    fn explain(
        &self,
        before: &Self::State,
        event: &Self::Event,
        after: Option<&Self::State>,
    ) -> Step {
        Step::of_change(debug(event), before, after)
    }

    /// Executes the program's own code for `event`, also where its outcome is known already: breakpoints are hit, and what it
    /// prints is seen. A [run](Run::execute_steps) asks for it before each step that somebody watches.
    fn execute(&self, state: &Self::State, event: &Self::Event) {
        let _ = self.next(state, event);
    }

    /// Whether the target itself notices steps of its program that do not return.
    #[doc(hidden)]
    fn guards_steps(&self) -> bool {
        false
    }

    /// Whether an execution is shown with a lane for each component, because they take turns in one process.
    #[doc(hidden)]
    fn has_lanes(&self) -> bool {
        false
    }

    /// A start state as a person wants to read it in front of a counterexample: one line a component.
    fn introduce(&self, state: &Self::State) -> Vec<String> {
        vec![debug(state)]
    }
}

/// What one event leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Successor<T> {
    /// Which event it is, counted as [`System::events`] lists them.
    pub position: usize,
    /// The state after it, unless the program fails.
    pub next: Result<T, Failure>,
}

/// What kind of step an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// The program itself goes on.
    Progress,
    /// A message is delivered and changes nothing: same state, nothing sent, nothing observed.
    Idle,
    /// The environment does harm: a loss, a duplicate, a crash, a restart, a partition.
    Fault,
}

/// A component of a system: a node, a process. Its index in [`System::components`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComponentId(pub usize);

impl Display for ComponentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "component {}", self.0)
    }
}

/// Who takes an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Actor {
    /// A component of the system, and the thread inside it: 0 where it has only one. Otherwise that is a hash of where the
    /// thread stands in the tree of those that spawn each other, the same in every execution and every process.
    Component(ComponentId, u64),
    /// What surrounds the system: it loses and duplicates messages, cuts links, crashes and restarts components.
    Environment,
}

impl From<ComponentId> for Actor {
    /// A component that has one thread.
    fn from(component: ComponentId) -> Self {
        Self::Component(component, 0)
    }
}

/// Who takes an event, and whom it befalls.
///
/// ```
/// use dragnet::system::{Actor, ComponentId, Task};
///
/// let crash = Task::of_the_environment(Some(ComponentId(2)));
/// assert_eq!((crash.actor, crash.component()), (Actor::Environment, Some(ComponentId(2))));
/// let delivery = Task::of(ComponentId(1));
/// assert_eq!(delivery.actor, Actor::Component(ComponentId(1), 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// Who takes it.
    pub actor: Actor,
    /// The component that the environment hits, where it takes the event and hits one.
    pub hits: Option<ComponentId>,
}

impl Task {
    /// A task of a component that has one thread.
    pub fn of(component: ComponentId) -> Self {
        Self::of_thread(component, 0)
    }

    /// A task of a thread of a component.
    pub fn of_thread(component: ComponentId, thread: u64) -> Self {
        Self {
            actor: Actor::Component(component, thread),
            hits: None,
        }
    }

    /// A task that hits nobody but who takes it.
    pub(crate) fn by(actor: Actor) -> Self {
        Self { actor, hits: None }
    }

    /// A task of the environment, and the component that it hits, if it hits one.
    pub fn of_the_environment(hits: Option<ComponentId>) -> Self {
        Self {
            actor: Actor::Environment,
            hits,
        }
    }

    /// The component that takes the event, or that the environment hits.
    pub fn component(&self) -> Option<ComponentId> {
        match self.actor {
            Actor::Component(component, _) => Some(component),
            Actor::Environment => self.hits,
        }
    }
}

/// How a program failed while it took a step.
///
/// ```
/// use dragnet::system::FailureKind;
/// use dragnet::Failure;
///
/// let failure = Failure::assertion("the log has a gap");
/// assert_eq!(failure.kind(), FailureKind::Assertion);
/// assert_eq!(failure.to_string(), "assertion failed: the log has a gap");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Failure(Box<FailureParts>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FailureParts {
    kind: FailureKind,
    message: String,
    location: Option<String>,
}

/// Why a step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// A handler's own assertion did not hold.
    Assertion,
    /// The code panicked.
    Panic,
    /// The code did not do the same when it was run again on the same state and input.
    Nondeterminism,
    /// What the code did is wrong in itself: a data race, a stack that overflows, a wait for something real.
    Fault,
    /// A limit of the checker itself, not of the program: the verdict is inconclusive.
    Limit,
}

impl FailureKind {
    /// Whether the program under test is to blame. A check is never violated by any other failure.
    pub(crate) fn is_violation(self) -> bool {
        !matches!(self, Self::Nondeterminism | Self::Limit)
    }
}

impl Failure {
    /// A condition that the code itself states does not hold.
    pub fn assertion(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Assertion, message.into(), None)
    }

    /// Runs code of the program under test; a panic in it comes back as a failure, and is not printed.
    ///
    /// This is for a system with [`successors`](System::successors) of its own. Around [`next`](System::next) it is not
    /// needed: panics are caught there.
    ///
    /// ```
    /// use dragnet::system::FailureKind;
    /// use dragnet::Failure;
    ///
    /// let failure = Failure::catch(|| -> u8 { panic!("the log has a gap") }).unwrap_err();
    /// assert_eq!((failure.kind(), failure.message()), (FailureKind::Panic, "the log has a gap"));
    /// ```
    pub fn catch<T>(code: impl FnOnce() -> T) -> Result<T, Self> {
        panics::catch(code)
    }

    pub(crate) fn new(kind: FailureKind, message: String, location: Option<String>) -> Self {
        Self(Box::new(FailureParts {
            kind,
            message,
            location,
        }))
    }

    /// Whether it was an assertion or a panic.
    pub fn kind(&self) -> FailureKind {
        self.0.kind
    }

    /// What the code said.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where in the source it happened, as `file:line:column`, if known.
    pub fn location(&self) -> Option<&str> {
        self.0.location.as_deref()
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind() {
            FailureKind::Assertion => "assertion failed: ",
            FailureKind::Panic => "panicked: ",
            FailureKind::Nondeterminism => "not deterministic: ",
            FailureKind::Fault | FailureKind::Limit => "",
        };
        write!(f, "{what}{}", self.message())?;
        match self.location() {
            Some(location) => write!(f, " ({location})"),
            None => Ok(()),
        }
    }
}
