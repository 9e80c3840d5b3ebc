//! A Stateright actor as a node.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug};
use std::hash::Hash;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dragnet::{Context, Node, NodeId, Timer};
use stateright::actor::{Actor, Command, Id, Out};

/// A Stateright [`Actor`] that Dragnet can check. Nothing implements this by hand: it is every actor whose parts can be
/// shared.
pub trait CheckableActor:
    Actor<
        Msg: Send + Sync + 'static,
        State: Send + Sync + 'static,
        Timer: Send + Sync + 'static,
        Random: Send + Sync + 'static,
        Storage: Send + Sync + 'static,
    > + Send
    + Sync
    + 'static
{
}

impl<A> CheckableActor for A
where
    A: Actor + Send + Sync + 'static,
    A::Msg: Send + Sync + 'static,
    A::State: Send + Sync + 'static,
    A::Timer: Send + Sync + 'static,
    A::Random: Send + Sync + 'static,
    A::Storage: Send + Sync + 'static,
{
}

/// A Stateright actor as a [`Node`]. [`cluster`](crate::cluster) makes a cluster of several at once.
///
/// - A message to an actor that is not there is lost; Stateright keeps it in flight for ever.
/// - What [`choose_random`](Out::choose_random) leaves open is decided later, in a step of its own, as in Stateright: it
///   shows as a timer, called `random`, that runs out.
/// - What was [saved](Out::save) survives a crash, and the actor starts again from it.
///
/// ```
/// use std::borrow::Cow;
/// use dragnet::{Check, Cluster, NodeId, crashes};
/// use dragnet_stateright::ActorNode;
/// use stateright::actor::{Actor, Id, Out};
///
/// /// Sends itself a message and saves that it came.
/// struct Diarist;
///
/// impl Actor for Diarist {
///     type Msg = ();
///     type State = bool;
///     type Timer = ();
///     type Random = ();
///     type Storage = bool;
///
///     fn on_start(&self, me: Id, saved: &Option<bool>, out: &mut Out<Self>) -> bool {
///         out.send(me, ());
///         saved.unwrap_or(false)
///     }
///
///     fn on_msg(&self, _: Id, came: &mut Cow<bool>, _: Id, _: (), out: &mut Out<Self>) {
///         *came.to_mut() = true;
///         out.save(true);
///     }
/// }
///
/// Check::new(Cluster::new(1, |id| ActorNode::new(id, Diarist)))
///     .always("what was saved is there", |s| s.nodes().all(|diarist| diarist.saved().is_none() || **diarist))
///     .reachable("it comes", |s| s.nodes().any(|diarist| **diarist))
///     .faults(crashes(1))
///     .run()
///     .assert_holds();
/// ```
pub struct ActorNode<A> {
    id: Id,
    actor: A,
}

/// What an actor remembers: its state, to which this dereferences, with what it has saved and left open.
///
/// Stateright asks for no more than `PartialEq` of a state. Here it is taken for an equivalence.
#[derive(Clone, PartialEq, Hash)]
pub struct ActorState<S, T, R, D> {
    state: S,
    saved: Option<D>,
    /// The timers that are set. Which one ran out is known to Dragnet by name alone.
    timers: Vec<(Timer, T)>,
    /// What is still to be chosen, and from what.
    open: BTreeMap<String, Vec<R>>,
}

type StateOf<A> = ActorState<
    <A as Actor>::State,
    <A as Actor>::Timer,
    <A as Actor>::Random,
    <A as Actor>::Storage,
>;

impl<S: PartialEq, T: PartialEq, R: PartialEq, D: PartialEq> Eq for ActorState<S, T, R, D> {}

impl<S, T, R, D> ActorState<S, T, R, D> {
    /// What the actor has saved, and finds when it starts again.
    pub fn saved(&self) -> Option<&D> {
        self.saved.as_ref()
    }
}

impl<S, T, R, D> Deref for ActorState<S, T, R, D> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.state
    }
}

impl<S: Debug, T, R: Debug, D: Debug> Debug for ActorState<S, T, R, D> {
    /// The actor's state alone, where there is nothing else. Timers are left out: Dragnet shows them itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.saved.is_none() && self.open.is_empty() {
            return self.state.fmt(f);
        }
        f.debug_struct("ActorState")
            .field("state", &self.state)
            .field("saved", &self.saved)
            .field("open", &self.open)
            .finish()
    }
}

/// The name under which Dragnet knows a timer of an actor: how it is shown. With it a cluster can be given a
/// [budget](dragnet::Cluster::timer_budget) for the timer.
///
/// ```
/// #[derive(Debug)]
/// enum Timeout { Election, Heartbeat }
///
/// assert_eq!(dragnet_stateright::timer(&Timeout::Election).to_string(), "Election");
/// ```
pub fn timer(timer: &impl Debug) -> Timer {
    Timer::new(lasting(format!("{timer:?}")))
}

fn random(key: &str) -> Timer {
    Timer::new(lasting(format!("random {key:?}")))
}

/// The same text for as long as the process lives, as names of timers must be. Each is kept once.
fn lasting(text: String) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    match kept.get(text.as_str()) {
        Some(known) => known,
        None => {
            let new = String::leak(text);
            kept.insert(new);
            new
        }
    }
}

impl<A: CheckableActor> ActorNode<A> {
    /// The actor as node `id` of a cluster.
    pub fn new(id: NodeId, actor: A) -> Self {
        Self {
            id: Id::from(id.0),
            actor,
        }
    }

    /// The state in which the actor starts with what it finds, before it acts.
    fn start(&self, saved: Option<A::Storage>) -> (StateOf<A>, Out<A>) {
        let mut out = Out::new();
        let state = ActorState {
            state: self.actor.on_start(self.id, &saved, &mut out),
            saved,
            timers: Vec::new(),
            open: BTreeMap::new(),
        };
        (state, out)
    }

    /// Runs a handler that borrows the state and changes a copy, if anything.
    fn handle(
        &self,
        state: &mut StateOf<A>,
        cx: &mut Context<A::Msg>,
        handler: impl FnOnce(&mut Cow<'_, A::State>, &mut Out<A>),
    ) {
        let mut out = Out::new();
        let mut inner = Cow::Borrowed(&state.state);
        handler(&mut inner, &mut out);
        if let Cow::Owned(changed) = inner {
            state.state = changed;
        }
        Self::act(state, out, cx);
    }

    fn act(state: &mut StateOf<A>, out: Out<A>, cx: &mut Context<A::Msg>) {
        for command in out {
            match command {
                Command::Send(to, msg) => {
                    let to = NodeId(usize::from(to));
                    if to.0 < cx.nodes() {
                        cx.send(to, msg);
                    } else {
                        cx.observe(format_args!("{msg:?} is sent to {to}, which is not there"));
                    }
                }
                Command::SetTimer(typed, range) => {
                    cx.set_timer(Self::set(state, typed), range.start);
                }
                Command::CancelTimer(typed) => {
                    let set = state.timers.iter().position(|(_, known)| *known == typed);
                    if let Some(at) = set {
                        cx.cancel_timer(state.timers.remove(at).0);
                    }
                }
                Command::ChooseRandom(key, choices) if choices.is_empty() => {
                    cx.cancel_timer(random(&key));
                    state.open.remove(&key);
                }
                Command::ChooseRandom(key, choices) => {
                    let name = random(&key);
                    Self::refuse_unless(state.timers.iter().all(|(set, _)| *set != name), name);
                    cx.set_timer(name, Duration::ZERO);
                    state.open.insert(key, choices);
                }
                Command::Save(storage) => state.saved = Some(storage),
            }
        }
    }

    /// Notes that a timer is set, and says by which name.
    ///
    /// The typed value stays in the state, so that two timers which are shown alike are never taken for each other:
    /// either they are not set at the same time, or the second is refused.
    fn set(state: &mut StateOf<A>, typed: A::Timer) -> Timer {
        if let Some((name, _)) = state.timers.iter().find(|(_, known)| *known == typed) {
            return *name;
        }
        let name = timer(&typed);
        let place = state.timers.binary_search_by_key(&name, |(name, _)| *name);
        let taken = place.is_ok() || state.open.keys().any(|key| random(key) == name);
        Self::refuse_unless(!taken, name);
        let at = place.unwrap_or_else(|at| at);
        state.timers.insert(at, (name, typed));
        name
    }

    fn refuse_unless(free: bool, name: Timer) {
        assert!(
            free,
            "two timers that differ are both shown as `{name}`: let their `Debug` tell them apart"
        );
    }
}

impl<A: CheckableActor> Node for ActorNode<A> {
    type State = StateOf<A>;
    type Msg = A::Msg;

    fn on_start(&self, cx: &mut Context<A::Msg>) -> StateOf<A> {
        let (me, made_for) = (cx.me(), NodeId(usize::from(self.id)));
        assert!(
            me == made_for,
            "{me} is an actor that was made as {made_for}: give `ActorNode::new` the id of its node"
        );
        let (mut state, out) = self.start(None);
        Self::act(&mut state, out, cx);
        state
    }

    fn on_message(
        &self,
        state: &mut StateOf<A>,
        from: NodeId,
        msg: A::Msg,
        cx: &mut Context<A::Msg>,
    ) {
        self.handle(state, cx, |inner, out| {
            self.actor
                .on_msg(self.id, inner, Id::from(from.0), msg, out);
        });
    }

    fn on_timer(&self, state: &mut StateOf<A>, timer: Timer, cx: &mut Context<A::Msg>) {
        let set = state.timers.binary_search_by_key(&timer, |(name, _)| *name);
        if let Ok(at) = set {
            let (_, typed) = state.timers.remove(at);
            self.handle(state, cx, |inner, out| {
                self.actor.on_timeout(self.id, inner, &typed, out);
            });
            return;
        }
        let key = state.open.keys().find(|key| random(key) == timer).cloned();
        let key = key.expect("a timer that runs out was set");
        let choices = state.open.remove(&key).expect("it was found there");
        let chosen = &choices[cx.choose(choices.len())];
        cx.observe(chosen);
        self.handle(state, cx, |inner, out| {
            self.actor.on_random(self.id, inner, chosen, out);
        });
    }

    /// What the actor would make of what it has saved. It does nothing yet: that is for when it recovers.
    fn durable(&self, state: &StateOf<A>) -> Option<StateOf<A>> {
        let saved = state.saved.clone()?;
        Some(self.start(Some(saved)).0)
    }

    fn on_recover(&self, state: &mut StateOf<A>, cx: &mut Context<A::Msg>) {
        let (restarted, out) = self.start(state.saved.take());
        *state = restarted;
        Self::act(state, out, cx);
    }
}
