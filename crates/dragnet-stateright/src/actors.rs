//! What is known of a model of actors: who acts, what it sends, and how its states are told apart.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

use dragnet::system::{ComponentId, EventKind, Task};
use dragnet::trace::{Fingerprint, Key, StableHasher, Step};
use stateright::actor::{
    Actor, ActorModel, ActorModelAction, ActorModelState, Envelope, Id, Network,
};

use crate::model::Reading;
use crate::node::CheckableActor;

/// The reading of a model of actors.
pub(crate) fn reading<A, C, H>() -> Reading<ActorModel<A, C, H>>
where
    A: CheckableActor<Msg: Ord, Timer: Ord>,
    H: Clone + Debug + Hash,
{
    Reading {
        fingerprint: |state, key| fingerprint(state, key),
        kind: |action| kind(action),
        task: |action| task(action),
        components: |model| names(&model.actors),
        explain: |model, before, action, after| explain(&model.actors, before, action, after),
        introduce: |model, state| introduce(&model.actors, state),
    }
}

/// A fingerprint in which every set has an end, and elements are hashed as everything else is: unlike the state's own
/// `Hash`, it knows whose timers and random choices are whose, and is the same on every machine.
fn fingerprint<A, H>(state: &ActorModelState<A, H>, key: Key) -> Fingerprint
where
    A: Actor,
    H: Hash,
{
    let mut hasher = StableHasher::new(key);
    hash_list(state.actor_states.iter(), key, &mut hasher);
    hash_list([&state.history].into_iter(), key, &mut hasher);
    for timers in &state.timers_set {
        hash_set(timers.iter(), key, &mut hasher);
    }
    for choices in &state.random_choices {
        hash_set(choices.map.iter(), key, &mut hasher);
    }
    match &state.network {
        Network::UnorderedDuplicating(envelopes, last) => {
            hash_set(envelopes.iter(), key, &mut hasher);
            last.hash(&mut hasher);
        }
        Network::UnorderedNonDuplicating(counts) => hash_set(counts.iter(), key, &mut hasher),
        Network::Ordered(flows) => flows.hash(&mut hasher),
    }
    state.crashed.hash(&mut hasher);
    hash_list(state.actor_storages.iter(), key, &mut hasher);
    Fingerprint(hasher.finish())
}

/// Hashes elements that may not say themselves where they end.
fn hash_list(elements: impl Iterator<Item: Hash>, key: Key, hasher: &mut StableHasher) {
    let hashes: Vec<u64> = elements.map(|one| Fingerprint::of(&one, key).0).collect();
    hashes.hash(hasher);
}

/// Hashes distinct elements so that their order does not matter.
fn hash_set(elements: impl Iterator<Item: Hash>, key: Key, hasher: &mut StableHasher) {
    let mut hashes: Vec<u64> = elements.map(|one| Fingerprint::of(&one, key).0).collect();
    hashes.sort_unstable();
    hashes.hash(hasher);
}

fn kind<M, T, R>(action: &ActorModelAction<M, T, R>) -> EventKind {
    match action {
        ActorModelAction::Drop(_) | ActorModelAction::Crash(_) | ActorModelAction::Recover(_) => {
            EventKind::Fault
        }
        ActorModelAction::Deliver { .. }
        | ActorModelAction::Timeout(..)
        | ActorModelAction::SelectRandom { .. } => EventKind::Progress,
    }
}

fn task<M, T, R>(action: &ActorModelAction<M, T, R>) -> Task {
    let actor = ComponentId(acting(action));
    match action {
        ActorModelAction::Drop(_) | ActorModelAction::Crash(_) | ActorModelAction::Recover(_) => {
            Task::of_the_environment(Some(actor))
        }
        _ => Task::of(actor),
    }
}

/// The actor to which an action happens.
fn acting<M, T, R>(action: &ActorModelAction<M, T, R>) -> usize {
    usize::from(match action {
        ActorModelAction::Deliver { dst, .. } => *dst,
        ActorModelAction::Drop(envelope) => envelope.dst,
        ActorModelAction::Timeout(actor, _)
        | ActorModelAction::Crash(actor)
        | ActorModelAction::Recover(actor)
        | ActorModelAction::SelectRandom { actor, .. } => *actor,
    })
}

fn names<A: Actor>(actors: &[A]) -> Vec<String> {
    let named = actors.iter().enumerate();
    named.map(|(id, actor)| name(id, Some(actor))).collect()
}

fn name<A: Actor>(id: usize, actor: Option<&A>) -> String {
    let name = actor.map(Actor::name).filter(|name| !name.is_empty());
    format!("{} {id}", name.as_deref().unwrap_or("Actor"))
}

fn introduce<A: Actor, H: Debug>(actors: &[A], state: &ActorModelState<A, H>) -> Vec<String> {
    let states = names(actors).into_iter().zip(&state.actor_states);
    states
        .map(|(name, state)| format!("{name}: {}", Step::text(state)))
        .collect()
}

fn explain<A, H>(
    actors: &[A],
    before: &ActorModelState<A, H>,
    action: &ActorModelAction<A::Msg, A::Timer, A::Random>,
    after: Option<&ActorModelState<A, H>>,
) -> Step
where
    A: Actor<Msg: Ord>,
    H: Debug,
{
    let who = |id: Id| name(usize::from(id), actors.get(usize::from(id)));
    let acting = acting(action);
    let mut step = Step {
        component: name(acting, actors.get(acting)),
        action: match action {
            ActorModelAction::Deliver { src, msg, .. } => {
                format!("receives {} from {}", Step::text(msg), who(*src))
            }
            ActorModelAction::Drop(Envelope { src, msg, .. }) => {
                let (msg, from) = (Step::text(msg), who(*src));
                format!("does not get {msg} from {from}: it is lost")
            }
            ActorModelAction::Timeout(_, timer) => {
                format!("has its timer {} run out", Step::text(timer))
            }
            ActorModelAction::Crash(_) => "crashes".to_owned(),
            ActorModelAction::Recover(_) => "recovers".to_owned(),
            ActorModelAction::SelectRandom { key, random, .. } => {
                format!("chooses {} for {key}", Step::text(random))
            }
        },
        ..Step::default()
    };
    let Some(after) = after else {
        return step;
    };
    if let (Some(before), Some(after)) = (
        before.actor_states.get(acting),
        after.actor_states.get(acting),
    ) {
        step.changed = Step::changes(before, after);
    }
    let mut sent = envelopes(&after.network);
    for (envelope, count) in envelopes(&before.network) {
        if let Some(left) = sent.get_mut(&envelope) {
            *left = left.saturating_sub(count);
        }
    }
    step.sent = sent
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|((_, dst, msg), _)| format!("{} to {}", Step::text(*msg), who(*dst)))
        .collect();
    let history = Step::changes(&before.history, &after.history);
    step.notes = history
        .iter()
        .map(|line| format!("history {line}"))
        .collect();
    step
}

/// What is in flight, and how often.
fn envelopes<M: Ord + std::hash::Hash>(network: &Network<M>) -> BTreeMap<(Id, Id, &M), usize> {
    match network {
        Network::UnorderedDuplicating(envelopes, _) => {
            let once = envelopes.iter().map(|e| ((e.src, e.dst, &e.msg), 1));
            once.collect()
        }
        Network::UnorderedNonDuplicating(counts) => {
            let counted = counts.iter();
            counted
                .map(|(e, count)| ((e.src, e.dst, &e.msg), *count))
                .collect()
        }
        Network::Ordered(flows) => {
            let mut counts = BTreeMap::new();
            for (&(src, dst), messages) in flows {
                for msg in messages {
                    *counts.entry((src, dst, msg)).or_insert(0) += 1;
                }
            }
            counts
        }
    }
}
