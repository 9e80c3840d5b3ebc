//! Any Stateright model as a system.

use std::fmt::{self, Debug};
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;

use dragnet::system::{ComponentId, EventKind, Successor, Task};
use dragnet::trace::{Fingerprint, Key, Step};
use dragnet::{Failure, System};
use stateright::Model;

/// A Stateright [`Model`] that Dragnet can check. Nothing implements this by hand: it is every model whose states and
/// actions can be shared, compared and shown.
pub trait CheckableModel:
    Model<
        State: Clone + PartialEq + Hash + Debug + Send + Sync,
        Action: Clone + PartialEq + Debug + Send + Sync,
    > + Send
    + Sync
    + 'static
{
}

impl<M> CheckableModel for M
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + PartialEq + Hash + Debug + Send + Sync,
    M::Action: Clone + PartialEq + Debug + Send + Sync,
{
}

/// A Stateright model as a [`System`], so that every explorer works on it.
///
/// Its events are the actions that Stateright would follow: those for which
/// [`next_state`](Model::next_state) gives a state, and one inside the
/// [boundary](Model::within_boundary).
///
/// ```
/// use dragnet::{Check, System};
/// use dragnet_stateright::{ModelSystem, Reflexive};
/// use stateright::Model;
///
/// /// Counts up, and never to an odd number.
/// struct Even;
///
/// impl Model for Even {
///     type State = u8;
///     type Action = u8;
///     fn init_states(&self) -> Vec<u8> { vec![0] }
///     fn actions(&self, _: &u8, actions: &mut Vec<u8>) { actions.extend([1, 2]) }
///     fn next_state(&self, n: &u8, by: u8) -> Option<u8> { Some(n + by).filter(|n| n % 2 == 0) }
///     fn within_boundary(&self, n: &u8) -> bool { *n <= 6 }
/// }
///
/// let mut events = Vec::new();
/// ModelSystem::new(Even).events(&Reflexive(4), &mut events);
/// assert_eq!(events.len(), 1);
/// Check::new(ModelSystem::new(Even)).always("even", |n| **n % 2 == 0).reachable("6", |n| **n == 6).run().assert_holds();
/// ```
pub struct ModelSystem<M: CheckableModel> {
    model: Arc<M>,
    reading: Reading<M>,
}

/// How the states and actions of a model are read: as opaque values, unless more is known of them.
pub(crate) struct Reading<M: Model> {
    pub(crate) fingerprint: fn(&M::State, Key) -> Fingerprint,
    pub(crate) kind: fn(&M::Action) -> EventKind,
    pub(crate) task: fn(&M::Action) -> Task,
    pub(crate) components: fn(&M) -> Vec<String>,
    pub(crate) explain: Explain<M>,
    pub(crate) introduce: fn(&M, &M::State) -> Vec<String>,
}

/// Tells the step from one state to another, or to a failure.
type Explain<M> = fn(&M, &StateOf<M>, &ActionOf<M>, Option<&StateOf<M>>) -> Step;
type StateOf<M> = <M as Model>::State;
type ActionOf<M> = <M as Model>::Action;

impl<M: CheckableModel> Reading<M> {
    fn opaque() -> Self {
        Self {
            fingerprint: Fingerprint::of,
            kind: |_| EventKind::Progress,
            task: |_| Task::of(ComponentId(0)),
            components: |_| Vec::new(),
            explain: |model, before, action, after| {
                let text = Failure::catch(|| model.format_action(action));
                // By default that is its `Debug`, which says itself what it fails with.
                let text = text.unwrap_or_else(|_| Step::text(action));
                Step::of_change(text, before, after)
            },
            introduce: |_, state| vec![Step::text(state)],
        }
    }
}

impl<M: CheckableModel> ModelSystem<M> {
    /// The system that `model` describes. Its properties are not part of it: [`check`](crate::check) carries them over.
    pub fn new(model: M) -> Self {
        Self::reading(Arc::new(model), Reading::opaque())
    }

    pub(crate) fn reading(model: Arc<M>, reading: Reading<M>) -> Self {
        Self { model, reading }
    }

    pub(crate) fn model(&self) -> &Arc<M> {
        &self.model
    }

    /// Where an action leads, unless Stateright would ignore it.
    fn follow(&self, state: &M::State, action: M::Action) -> Option<M::State> {
        self.model
            .next_state(state, action)
            .filter(|next| self.model.within_boundary(next))
    }
}

/// A state or an action of a model, which this dereferences to.
///
/// Stateright asks for no more than `PartialEq` of them, and its own histories have no more. Here it is taken for an
/// equivalence: whatever holds a NaN is never found again, and its space has no end.
#[derive(Clone, PartialEq, Hash)]
pub struct Reflexive<T>(pub T);

impl<T: PartialEq> Eq for Reflexive<T> {}

impl<T: Debug> Debug for Reflexive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Deref for Reflexive<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<M: CheckableModel> System for ModelSystem<M> {
    type State = Reflexive<M::State>;
    type Event = Reflexive<M::Action>;

    fn initial(&self) -> Vec<Self::State> {
        let mut states = self.model.init_states();
        states.retain(|state| self.model.within_boundary(state));
        states.into_iter().map(Reflexive).collect()
    }

    fn events(&self, state: &Self::State, out: &mut Vec<Reflexive<M::Action>>) {
        let mut actions = Vec::new();
        self.model.actions(state, &mut actions);
        // One that panics is an event: taking it fails.
        actions.retain(|action| {
            let followed = Failure::catch(|| self.follow(state, action.clone()));
            !matches!(followed, Ok(None))
        });
        out.extend(actions.into_iter().map(Reflexive));
    }

    fn next(
        &self,
        state: &Self::State,
        event: &Reflexive<M::Action>,
    ) -> Result<Self::State, Failure> {
        let next = self.follow(state, event.0.clone());
        let next = next.expect("an action that the model followed once, it always follows");
        Ok(Reflexive(next))
    }

    /// Each action is tried once, where `events` and then `next` would try it twice.
    fn successors(
        &self,
        state: &Self::State,
        _scratch: &mut Vec<Reflexive<M::Action>>,
        out: &mut Vec<Successor<Self::State>>,
    ) {
        let mut actions = Vec::new();
        self.model.actions(state, &mut actions);
        let followed = actions
            .into_iter()
            .filter_map(|action| Failure::catch(|| self.follow(state, action)).transpose());
        out.extend(followed.enumerate().map(|(position, next)| Successor {
            position,
            next: next.map(Reflexive),
        }));
    }

    fn fingerprint(&self, state: &Self::State, key: Key) -> Fingerprint {
        (self.reading.fingerprint)(state, key)
    }

    fn kind(&self, _state: &Self::State, event: &Reflexive<M::Action>) -> EventKind {
        (self.reading.kind)(&event.0)
    }

    fn task(&self, _state: &Self::State, event: &Reflexive<M::Action>) -> Task {
        (self.reading.task)(&event.0)
    }

    fn components(&self) -> Vec<String> {
        (self.reading.components)(&self.model)
    }

    fn explain(
        &self,
        before: &Self::State,
        event: &Reflexive<M::Action>,
        after: Option<&Self::State>,
    ) -> Step {
        (self.reading.explain)(&self.model, before, &event.0, after.map(|after| &after.0))
    }

    fn introduce(&self, state: &Self::State) -> Vec<String> {
        (self.reading.introduce)(&self.model, state)
    }
}
