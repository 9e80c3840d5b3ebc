//! What of a model is carried over into a check, and what is refused.

use std::borrow::Cow;

use dragnet::catalog::{Entry, Selection};
use dragnet::engine::{Breadth, Depth, Engine, Random};
use dragnet::system::FailureKind;
use dragnet::verdict::ViolationKind;
use dragnet::{Check, Control, System};
use dragnet_stateright::{ModelSystem, Reflexive, Stateright, check, check_actors};
use stateright::actor::{Actor, ActorModel, Id, Network, Out};
use stateright::util::HashableHashSet;
use stateright::{Checker, Expectation, Model, Property};

use crate::models::rules::{Rules, bytes, clock};
use crate::models::scripted::{Scripted, countdown, diarist, die, model, sleeper};
use crate::models::{assert_states, ping_pong, space};

const REFUSAL: &str = "the model demands `reaches the limit`, `exceeds the limit` eventually, and Dragnet does not judge \
                       liveness yet; check the rest with `Stateright::without_eventually`";

#[test]
#[should_panic(expected = "the model demands `reaches the limit`, `exceeds the limit` eventually")]
fn a_model_that_demands_something_eventually_is_refused() {
    let _ = check_actors(ping_pong::model(2)).run();
}

#[test]
fn the_command_line_refuses_it_in_one_line() {
    let entry = Entry::new("ping-pong", "two actors that count", |_| {
        check_actors(ping_pong::model(2))
    });
    let refused = entry
        .check(&Selection::of(&entry))
        .err()
        .expect("it asks for liveness");
    let expected = format!("ping-pong cannot be checked like this: {REFUSAL}");
    assert_eq!(refused.to_string(), expected);
}

#[test]
fn what_is_left_out_is_named_in_the_verdict() {
    let target = Stateright::actors(ping_pong::model(2)).without_eventually();
    assert_eq!(
        target.eventually(),
        ["reaches the limit", "exceeds the limit"]
    );
    let verdict = target.check().run();
    assert!(verdict.holds());
    let left_out = "not judged: eventually `reaches the limit`, `exceeds the limit`";
    assert!(verdict.to_string().contains(left_out), "{verdict}");
}

#[test]
fn a_state_outside_the_boundary_is_neither_visited_nor_judged() {
    let even = |initial| Rules {
        initial,
        ..bytes()
            .within(|(x, y)| x % 2 == 0 && y < 5)
            .property(Property::always("inside", |_, &(x, y)| x == 0 && y < 5))
    };
    assert_states(|| check(even(vec![(0, 0)])), 5);
    assert_states(|| check(even(vec![(1, 0), (0, 0)])), 5);
    assert_states(|| check(even(vec![(1, 0)])), 0);
}

#[test]
fn always_and_sometimes_are_judged_as_stateright_judges_them() {
    let model = |bad| {
        let rules = bytes().within(|(x, y)| x < 10 && y < 10);
        if bad {
            rules
                .property(Property::always("below", |_, &(x, y)| x + y < 7))
                .property(Property::sometimes("there", |_, state| *state == (3, 4)))
        } else {
            rules
                .property(Property::always("below", |_, &(x, y)| x + y < 19))
                .property(Property::sometimes("beyond", |_, state| *state == (10, 4)))
        }
    };
    let violated = |verdict: &dragnet::Verdict| verdict.violation().map(|v| v.property.clone());

    let theirs = model(true).checker().spawn_bfs().join();
    let ours = check(model(true)).run();
    assert_eq!(violated(&ours).as_deref(), Some("below"));
    let path = theirs.discovery("below").expect("they find it too");
    let length = ours
        .counterexample()
        .map(dragnet::verdict::Counterexample::len);
    assert_eq!(length, Some(path.into_actions().len()));

    let theirs = model(false).checker().spawn_bfs().join();
    assert!(theirs.discovery("beyond").is_none());
    let ours = check(model(false)).run();
    assert_eq!(violated(&ours).as_deref(), Some("beyond"));
    assert_eq!(
        ours.violation().map(|v| &v.kind),
        Some(&ViolationKind::Unreached)
    );
}

#[test]
fn a_panic_in_the_model_is_a_violation_that_names_its_step() {
    let fragile = || {
        Rules::new([(0, 0)], 2, |(x, y), action| {
            assert!(x < 5 || action == 0, "five is too much");
            (x < 6).then_some((x + 1, y))
        })
    };
    let engines = [
        Engine::from(Breadth::new()),
        Depth::new().into(),
        Random::new().seed(1).into(),
    ];
    for engine in engines {
        let verdict = check(fragile()).engine(engine).run();
        let violation = verdict.violation().expect("it panics");
        let ViolationKind::Failure(failure) = &violation.kind else {
            panic!("{engine}: {:?}", violation.kind);
        };
        assert_eq!(failure.kind(), FailureKind::Panic);
        assert_eq!(failure.message(), "five is too much");
        let last = verdict
            .counterexample()
            .and_then(|it| it.steps().last().cloned());
        assert_eq!(last.expect("there is a way to it").action, "1", "{engine}");
    }
}

#[test]
fn a_counterexample_is_replayed() {
    let model = || bytes().property(Property::always("small", |_, &(x, y)| x + y < 4));
    let verdict = check(model()).named("bytes").run();
    let trace = &verdict.counterexample().expect("it grows").trace;
    let replayed = check(model())
        .named("bytes")
        .replay(trace)
        .expect("it is the same system");
    assert_eq!(replayed.property, "small");
}

#[test]
fn every_engine_and_whole_states_work_on_a_model() {
    assert_states(|| check(clock()).exact(), 2);
    let verdict = check(clock())
        .engine(Random::new().walks(10))
        .depth(5)
        .run();
    assert_eq!(verdict.states(), 2);
    verdict.or_inconclusive().assert_holds();
}

#[test]
fn a_model_goes_into_a_catalogue_of_ones_own() {
    let entry = Entry::new("bytes", "two bytes", |setup| {
        let limit = setup.number::<u8>("limit");
        check(bytes().within(move |(x, y)| x < limit && y < limit))
    })
    .parameter("limit", 3, 1..=9, "how far they are raised");
    let larger = Selection::of(&entry)
        .with("limit", "5")
        .expect("it can be set");
    let verdict = entry
        .check(&larger)
        .expect("it fits")
        .run_under(&Control::default());
    assert_eq!(verdict.states(), 25);
}

fn two(actor: fn() -> Scripted) -> ActorModel<Scripted> {
    model(
        [actor(), actor()],
        Network::new_unordered_nonduplicating([]),
    )
    .property(Expectation::Always, "everything is visited", |_, _| true)
}

/// Stateright hashes the timers of one actor as it does those of another. A space must not lose states to that.
#[test]
fn it_is_known_whose_timers_and_choices_are_whose() {
    let sleepers = || two(sleeper);
    assert_eq!(space(&sleepers(), 100).expect("they are few").len(), 4);
    assert_states(|| check_actors(sleepers()), 4);
    assert_states(|| check(sleepers()), 4);
    let theirs = sleepers().checker().spawn_bfs().join();
    assert_eq!(
        theirs.unique_state_count(),
        3,
        "Stateright tells them apart now"
    );

    let dice = || two(|| die(2));
    assert_eq!(space(&dice(), 100).expect("they are few").len(), 9);
    assert_states(|| check_actors(dice()), 9);
    assert_states(|| check(dice()), 9);
}

/// Hash sets are keyed at random in each process, and no fingerprint may depend on that.
#[test]
fn the_fingerprint_of_a_state_of_actors_is_pinned_for_ever() {
    let mut actors: Vec<Scripted> = countdown().into();
    actors.extend([sleeper(), die(3), diarist(2)]);
    let model = model(actors, Network::new_unordered_nonduplicating([]));
    let verdict = check_actors(model).always("never", |_| false).run();
    let first = verdict
        .counterexample()
        .expect("the first state violates it");
    assert_eq!(first.trace.fingerprint.to_string(), "2e8ddc5b5af39620");
}

#[test]
fn counterexamples_of_actor_models_say_who_does_what() {
    let model = ping_pong::safe_model(3);
    let verdict = check_actors(model)
        .always("nobody counts two", |state| {
            state.actor_states.iter().all(|count| **count < 2)
        })
        .run();
    let printed = verdict.to_string();
    for line in [
        "Actor 0: 0",
        "1. Actor 1 receives Ping(0) from Actor 0",
        "~ 0 → 1",
        "→ Pong(0) to Actor 0",
    ] {
        assert!(printed.contains(line), "`{line}` is not in\n{printed}");
    }
}

#[test]
fn a_system_lists_only_the_actions_that_lead_somewhere_inside() {
    let rules = Rules::new([(0, 0)], 4, |(x, y), action| {
        (action != 1).then_some((x + action, y))
    });
    let system = ModelSystem::new(rules.within(|(x, _)| x < 3));
    let mut events = Vec::new();
    system.events(&Reflexive((0, 0)), &mut events);
    assert_eq!(events, [Reflexive(0), Reflexive(2)]);
    let mut successors = Vec::new();
    system.successors(&Reflexive((0, 0)), &mut Vec::new(), &mut successors);
    let states: Vec<_> = successors
        .into_iter()
        .map(|s| (s.position, s.next))
        .collect();
    assert_eq!(
        states,
        [(0, Ok(Reflexive((0, 0)))), (1, Ok(Reflexive((2, 0))))]
    );
    Check::new(system).run().assert_holds();
}

/// One of two actors, drawn at random, is told something and puts it into a set.
struct Told;

impl Actor for Told {
    type Msg = ();
    type State = HashableHashSet<u8>;
    type Timer = ();
    type Random = usize;
    type Storage = ();

    fn on_start(&self, id: Id, _: &Option<()>, out: &mut Out<Self>) -> Self::State {
        if id == Id::from(2) {
            out.choose_random("to", vec![0, 1]);
        }
        HashableHashSet::new()
    }

    fn on_msg(&self, _: Id, set: &mut Cow<Self::State>, _: Id, _: (), _: &mut Out<Self>) {
        set.to_mut().insert(1);
    }

    fn on_random(&self, _: Id, _: &mut Cow<Self::State>, to: &usize, out: &mut Out<Self>) {
        out.send((*to).into(), ());
    }
}

#[test]
fn the_set_of_one_actor_is_not_taken_for_that_of_another() {
    for unlucky in [0, 1] {
        let model = ActorModel::new((), ())
            .actors([Told, Told, Told])
            .init_network(Network::new_unordered_nonduplicating([]))
            .property(
                Expectation::Always,
                "it is never told",
                if unlucky == 0 {
                    |_, state| state.actor_states[0].is_empty()
                } else {
                    |_, state| state.actor_states[1].is_empty()
                },
            );
        let verdict = check_actors(model).run();
        assert!(verdict.violation().is_some(), "actor {unlucky}: {verdict}");
    }
}
