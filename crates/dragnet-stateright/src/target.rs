//! A model with what it demands and what bounds it: from a Stateright model to a Dragnet check.

use std::any::type_name;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use dragnet::Check;
use dragnet::extend::{Checkable, Direct, Setting, Target, TargetKind};
use stateright::actor::ActorModel;
use stateright::{Expectation, Property};

use crate::actors;
use crate::model::{CheckableModel, ModelSystem, Reflexive};
use crate::node::CheckableActor;

/// A check of `model` with the properties that it brings: `always` stays always, `sometimes` becomes reachable, the
/// boundary bounds the space. It can be given further properties, an engine, limits, as any other check.
///
/// An [`ActorModel`] is better off with [`check_actors`].
///
/// A model that demands something `eventually` is refused when the check is run, with a line that says so: see
/// [`Stateright::without_eventually`].
///
/// ```
/// # use stateright::{Model, Property};
/// # struct Clock;
/// # impl Model for Clock {
/// #     type State = u8;
/// #     type Action = ();
/// #     fn init_states(&self) -> Vec<u8> { vec![0] }
/// #     fn actions(&self, _: &u8, actions: &mut Vec<()>) { actions.push(()) }
/// #     fn next_state(&self, hour: &u8, _: ()) -> Option<u8> { Some((hour + 1) % 12) }
/// #     fn properties(&self) -> Vec<Property<Self>> { vec![Property::always("in range", |_, hour| *hour < 12)] }
/// # }
/// dragnet_stateright::check(Clock).run().assert_holds();
/// ```
pub fn check<M: CheckableModel>(model: M) -> Check<Stateright<M>> {
    Stateright::new(model).check()
}

/// A check of an actor model with the properties that it brings, as [`check`] makes it of any model, and with what is
/// known of actors: counterexamples say who does what and what it sends, and fingerprints tell the timers and random
/// choices of one actor from those of another.
///
/// ```
/// use std::borrow::Cow;
/// use stateright::Expectation;
/// use stateright::actor::{Actor, ActorModel, Id, Network, Out};
///
/// /// Greets the next actor and counts what it hears.
/// struct Greeter { next: Id }
///
/// impl Actor for Greeter {
///     type Msg = &'static str;
///     type State = u8;
///     type Timer = ();
///     type Random = ();
///     type Storage = ();
///
///     fn on_start(&self, _: Id, _: &Option<()>, out: &mut Out<Self>) -> u8 {
///         out.send(self.next, "hello");
///         0
///     }
///
///     fn on_msg(&self, _: Id, heard: &mut Cow<u8>, _: Id, _: &'static str, _: &mut Out<Self>) {
///         *heard.to_mut() += 1;
///     }
/// }
///
/// let model = ActorModel::new((), ())
///     .actors([Greeter { next: 1.into() }, Greeter { next: 0.into() }])
///     .init_network(Network::new_unordered_nonduplicating([]))
///     .property(Expectation::Always, "nobody hears it twice", |_, s| s.actor_states.iter().all(|heard| **heard < 2));
///
/// let verdict = dragnet_stateright::check_actors(model).run();
/// verdict.assert_holds();
/// assert_eq!(verdict.states(), 4);
/// ```
pub fn check_actors<A, C, H>(model: ActorModel<A, C, H>) -> Check<Stateright<ActorModel<A, C, H>>>
where
    A: CheckableActor<Msg: Ord, Timer: Ord>,
    C: Send + Sync + 'static,
    H: Clone + PartialEq + Debug + Hash + Send + Sync + 'static,
{
    Stateright::actors(model).check()
}

/// A Stateright model on its way into a check, for when [`check`] and [`check_actors`] are too short.
///
/// ```
/// # use stateright::{Model, Property};
/// # struct Clock;
/// # impl Model for Clock {
/// #     type State = u8;
/// #     type Action = ();
/// #     fn init_states(&self) -> Vec<u8> { vec![0] }
/// #     fn actions(&self, _: &u8, actions: &mut Vec<()>) { actions.push(()) }
/// #     fn next_state(&self, hour: &u8, _: ()) -> Option<u8> { Some((hour + 1) % 12) }
/// #     fn properties(&self) -> Vec<Property<Self>> {
/// #         vec![
/// #             Property::always("in range", |_, hour| *hour < 12),
/// #             Property::eventually("it strikes eleven", |_, hour| *hour == 11),
/// #         ]
/// #     }
/// # }
/// use dragnet_stateright::Stateright;
///
/// let verdict = Stateright::new(Clock).without_eventually().check().run();
/// assert!(verdict.holds());
/// assert_eq!(verdict.within, ["the model's own boundary", "not judged: eventually `it strikes eleven`"]);
/// ```
#[must_use = "a model does nothing until it is checked: call `.check()`"]
pub struct Stateright<M: CheckableModel> {
    system: ModelSystem<M>,
    /// What the model demands and Dragnet does not judge.
    eventually: Vec<&'static str>,
    eventually_is_left_out: bool,
    /// Whether fingerprints would confuse states.
    exact: bool,
}

impl<M: CheckableModel> Stateright<M> {
    /// Any model. The whole states of an [`ActorModel`] are compared, since its hash confuses some: see
    /// [`actors`](Stateright::actors) for a way with fingerprints.
    pub fn new(model: M) -> Self {
        Self {
            exact: hash_runs_together::<M::State>(),
            ..Self::of(ModelSystem::new(model))
        }
    }

    fn of(system: ModelSystem<M>) -> Self {
        let properties = system.model().properties();
        let eventually = properties
            .iter()
            .filter(|property| property.expectation == Expectation::Eventually);
        Self {
            eventually: eventually.map(|property| property.name).collect(),
            eventually_is_left_out: false,
            exact: false,
            system,
        }
    }

    /// Leaves `eventually` properties out, which ask for liveness. The verdict names them as not judged.
    pub fn without_eventually(mut self) -> Self {
        self.eventually_is_left_out = true;
        self
    }

    /// The `eventually` properties of the model: what Dragnet does not judge.
    pub fn eventually(&self) -> &[&'static str] {
        &self.eventually
    }

    /// The check of the model with the properties that it brings.
    pub fn check(self) -> Check<Self> {
        let model = Arc::clone(self.system.model());
        let exact = self.exact;
        let mut check = Check::new(self);
        if exact {
            check = check.exact();
        }
        for property in model.properties() {
            let Property {
                expectation,
                name,
                condition,
            } = property;
            let model = Arc::clone(&model);
            let on_state = move |state: &M::State| condition(&model, state);
            check = match expectation {
                Expectation::Always => check.always(name, on_state),
                Expectation::Sometimes => check.reachable(name, on_state),
                // The target objects to these, or names them as left out.
                Expectation::Eventually => check,
            };
        }
        check
    }
}

impl<A, C, H> Stateright<ActorModel<A, C, H>>
where
    A: CheckableActor<Msg: Ord, Timer: Ord>,
    C: Send + Sync + 'static,
    H: Clone + PartialEq + Debug + Hash + Send + Sync + 'static,
{
    /// A model of actors, read as such: see [`check_actors`].
    pub fn actors(model: ActorModel<A, C, H>) -> Self {
        Self {
            exact: hash_runs_together::<(A::State, A::Msg, A::Storage, H)>(),
            ..Self::of(ModelSystem::reading(Arc::new(model), actors::reading()))
        }
    }
}

/// Whether the hash of such a state is known not to tell all states apart.
///
/// Stateright's hash sets feed a hasher their elements and nothing else, so that of two sets side by side it cannot be
/// said where one ends: an actor model in which actor 0 has set a timer hashes as one in which actor 1 has. Whole states
/// must then be compared. `type_name` is the one thing that knows a type behind any `M`; a state that hides such sets in
/// a type of its own is not recognised.
fn hash_runs_together<S>() -> bool {
    let name = type_name::<S>();
    [
        "::ActorModelState<",
        "::HashableHashSet<",
        "::HashableHashMap<",
    ]
    .iter()
    .any(|culprit| name.contains(culprit))
}

impl<M: CheckableModel> Checkable for Stateright<M> {
    type Host = Direct<ModelSystem<M>>;
}

impl<M: CheckableModel> Target for Stateright<M> {
    type System = ModelSystem<M>;
    type View<'a> = &'a M::State;

    fn prepare(self, _setting: &Setting) -> ModelSystem<M> {
        if let Some(objection) = self.objection() {
            panic!("{objection}");
        }
        self.system
    }

    fn view<'a>(_system: &'a ModelSystem<M>, state: &'a Reflexive<M::State>) -> &'a M::State {
        state
    }

    fn kind(&self) -> TargetKind {
        TargetKind::Direct
    }

    fn kind_name(&self) -> &'static str {
        "stateright"
    }

    fn bounds(&self) -> Vec<String> {
        let mut bounds = vec!["the model's own boundary".to_owned()];
        if !self.eventually.is_empty() {
            bounds.push(format!(
                "not judged: eventually {}",
                quoted(&self.eventually)
            ));
        }
        bounds
    }

    fn objection(&self) -> Option<String> {
        (!self.eventually.is_empty() && !self.eventually_is_left_out).then(|| {
            format!(
                "the model demands {} eventually, and Dragnet does not judge liveness yet; check the rest with \
                 `Stateright::without_eventually`",
                quoted(&self.eventually)
            )
        })
    }
}

fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
