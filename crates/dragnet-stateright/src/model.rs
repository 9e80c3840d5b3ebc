//! Any Stateright model as a system.

use std::fmt::{self, Debug};
use std::hash::Hash;
use std::sync::Arc;

use dragnet::{ComponentId, EventKind, Failure, Fingerprint, Key, Step, Successor, System};
use stateright::Model;

/// A Stateright [`Model`] that Dragnet can check. Nothing implements this by hand: it is every model whose states and
/// actions can be shared, compared and shown. A state must be `Eq`, which Stateright itself does not ask for.
pub trait CheckableModel:
    Model<
        State: Clone + Eq + Hash + Debug + Send + Sync,
        Action: Clone + PartialEq + Debug + Send + Sync,
    > + Send
    + Sync
    + 'static
{
}

impl<M> CheckableModel for M
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Eq + Hash + Debug + Send + Sync,
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
/// use dragnet_stateright::ModelSystem;
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
/// ModelSystem::new(Even).events(&4, &mut events);
/// assert_eq!(events.len(), 1);
/// Check::new(ModelSystem::new(Even)).always("even", |n| n % 2 == 0).reachable("6", |n| *n == 6).run().assert_holds();
/// ```
pub struct ModelSystem<M: CheckableModel> {
    model: Arc<M>,
    pub(crate) reading: Reading<M>,
}

/// How the states and actions of a model are read: as opaque values, unless more is known of them.
pub(crate) struct Reading<M: Model> {
    pub(crate) fingerprint: fn(&M::State, Key) -> Fingerprint,
    pub(crate) kind: fn(&M::Action) -> EventKind,
    pub(crate) component: fn(&M::Action) -> ComponentId,
    pub(crate) components: fn(&M) -> Vec<String>,
    pub(crate) explain: fn(&M, &M::State, &M::Action, Option<&M::State>) -> Step,
    pub(crate) introduce: fn(&M, &M::State) -> Vec<String>,
}

impl<M: CheckableModel> Reading<M> {
    fn opaque() -> Self {
        Self {
            fingerprint: Fingerprint::of,
            kind: |_| EventKind::Progress,
            component: |_| ComponentId(0),
            components: |_| Vec::new(),
            explain: |model, before, action, after| {
                Step::of_change(model.format_action(action), before, after)
            },
            introduce: |_, state| vec![format!("{state:?}")],
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

/// An action of a model that is taken.
///
/// Stateright asks for no more than `PartialEq` of an action. An action that does not equal itself, for one with a NaN
/// in it, would not be recognised again; nothing else depends on it.
#[derive(Clone, PartialEq)]
pub struct Taken<A>(pub A);

impl<A: PartialEq> Eq for Taken<A> {}

impl<A: Debug> Debug for Taken<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<M: CheckableModel> System for ModelSystem<M> {
    type State = M::State;
    type Event = Taken<M::Action>;

    fn initial(&self) -> Vec<M::State> {
        let mut states = self.model.init_states();
        states.retain(|state| self.model.within_boundary(state));
        states
    }

    fn events(&self, state: &M::State, out: &mut Vec<Taken<M::Action>>) {
        let mut actions = Vec::new();
        self.model.actions(state, &mut actions);
        // One that panics is an event: taking it fails.
        actions.retain(|action| {
            let followed = Failure::catch(|| self.follow(state, action.clone()));
            !matches!(followed, Ok(None))
        });
        out.extend(actions.into_iter().map(Taken));
    }

    fn next(&self, state: &M::State, event: &Taken<M::Action>) -> Result<M::State, Failure> {
        let next = self.follow(state, event.0.clone());
        Ok(next
            .expect("the model ignores an action that it followed before: it is not deterministic"))
    }

    /// Each action is tried once, where `events` and then `next` would try it twice.
    fn successors(
        &self,
        state: &M::State,
        _scratch: &mut Vec<Taken<M::Action>>,
        out: &mut Vec<Successor<M::State>>,
    ) {
        let mut actions = Vec::new();
        self.model.actions(state, &mut actions);
        let followed = actions
            .into_iter()
            .filter_map(|action| Failure::catch(|| self.follow(state, action)).transpose());
        let numbered = followed.enumerate();
        out.extend(numbered.map(|(position, next)| Successor { position, next }));
    }

    fn fingerprint(&self, state: &M::State, key: Key) -> Fingerprint {
        (self.reading.fingerprint)(state, key)
    }

    fn kind(&self, _state: &M::State, event: &Taken<M::Action>) -> EventKind {
        (self.reading.kind)(&event.0)
    }

    fn component(&self, event: &Taken<M::Action>) -> ComponentId {
        (self.reading.component)(&event.0)
    }

    fn components(&self) -> Vec<String> {
        (self.reading.components)(&self.model)
    }

    fn explain(
        &self,
        before: &M::State,
        event: &Taken<M::Action>,
        after: Option<&M::State>,
    ) -> Step {
        (self.reading.explain)(&self.model, before, &event.0, after)
    }

    fn introduce(&self, state: &M::State) -> Vec<String> {
        (self.reading.introduce)(&self.model, state)
    }
}
