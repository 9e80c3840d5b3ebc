//! The state counts that Stateright 0.31 publishes in its tests and examples, found through the adapter.

mod models;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use dragnet::{Check, ViolationKind};
use dragnet_stateright::{ModelSystem, Stateright, check, check_actors};
use models::small::{Clock, Countdown, Die, Equation, Idler, Processes, Rethinker, Sleeper};
use models::{abd, assert_states, counting::Increment, paxos, ping_pong, single_copy, two_phase};
use stateright::actor::{ActorModel, Envelope, Id, LossyNetwork, Network};

use two_phase::TwoPhase;

#[test]
fn two_phase_commit_has_288_states_with_three_managers() {
    assert_states(|| check(TwoPhase { managers: 3 }), 288);
}

#[test]
fn two_phase_commit_has_8_832_states_with_five_managers() {
    assert_states(|| check(TwoPhase { managers: 5 }), 8_832);
}

#[test]
fn the_linear_equation_without_a_solution_has_all_65_536_states() {
    let unsolvable = || Equation {
        factors: (2, 4),
        sum: 7,
    };
    assert_states(|| Check::new(ModelSystem::new(unsolvable())), 256 * 256);
    let verdict = check(unsolvable()).run();
    let violation = verdict.violation().expect("nothing solves it");
    assert_eq!(violation.property, "solvable");
    assert_eq!(violation.kind, ViolationKind::Unreached);
}

#[test]
fn the_linear_equation_with_a_solution_is_solvable() {
    let solvable = Equation {
        factors: (2, 10),
        sum: 14,
    };
    check(solvable).run().assert_holds();
}

#[test]
fn two_threads_without_a_lock_have_13_states_and_lose_an_update() {
    let model = || Increment {
        threads: 2,
        locked: false,
    };
    assert_states(|| Check::new(ModelSystem::new(model())), 13);
    let verdict = check(model()).run();
    assert_eq!(verdict.counterexample().expect("one is lost").len(), 4);
}

#[test]
fn the_clock_has_two_states_and_two_processes_nine() {
    assert_states(|| check(Clock), 2);
    assert_states(|| check(Processes), 9);
}

#[test]
fn a_single_copy_register_has_93_states_and_is_linearizable_on_one_server() {
    assert_states(|| check_actors(single_copy::model(1, 2)), 93);
    assert_states(|| check(single_copy::model(1, 2)), 93);
}

#[test]
fn a_single_copy_register_on_two_servers_is_found_not_linearizable_after_four_deliveries() {
    let verdict = check_actors(single_copy::model(2, 2)).run();
    let violation = verdict.violation().expect("a read misses a write");
    assert_eq!(violation.property, "linearizable");
    assert_eq!(verdict.counterexample().expect("it can be shown").len(), 4);
}

#[test]
fn the_abd_register_has_544_states() {
    assert_states(|| check_actors(abd::model(2, 2)), 544);
    assert_states(|| check(abd::model(2, 2)), 544);
}

#[test]
fn paxos_has_16_668_states() {
    assert_states(|| check_actors(paxos::model(3, 2)), 16_668);
}

#[test]
fn ping_pong_has_14_states_to_one_and_4_094_to_five_on_a_lossy_duplicating_network() {
    let lossy = |limit| ping_pong::safe_model(limit).lossy_network(LossyNetwork::Yes);
    assert_states(|| check_actors(lossy(1)), 14);
    assert_states(|| check_actors(lossy(5)), 4_094);
}

#[test]
fn ping_pong_has_11_states_on_a_network_that_loses_nothing() {
    assert_states(|| check_actors(ping_pong::safe_model(5)), 11);
    let nonduplicating = Network::new_unordered_nonduplicating([]);
    let model = || ping_pong::safe_model(5).init_network(nonduplicating.clone());
    assert_states(|| check_actors(model()), 11);
    let left_out = || Stateright::actors(ping_pong::model(5)).without_eventually();
    assert_states(|| left_out().check(), 11);
}

#[test]
fn a_message_to_nobody_is_never_delivered() {
    let to_nobody = Envelope {
        src: 0.into(),
        dst: 99.into(),
        msg: (),
    };
    let network = Network::new_unordered_duplicating([to_nobody]);
    let model = || {
        ActorModel::<_, (), ()>::new((), ())
            .actor(Idler)
            .init_network(network.clone())
    };
    assert_states(|| check_actors(model()), 1);
}

#[test]
fn what_an_actor_ignores_is_taken_on_an_ordered_network_only() {
    let states = |network: Network<u8>, expected| {
        let actors = [
            Countdown { ignored: Some(2) },
            Countdown { ignored: Some(2) },
        ];
        let model = || {
            ActorModel::<_, (), ()>::new((), ())
                .actors(actors.clone())
                .init_network(network.clone())
        };
        assert_states(|| check_actors(model()), expected);
    };
    states(Network::new_unordered_nonduplicating([]), 2);
    states(Network::new_ordered([]), 3);
}

#[test]
fn an_ordered_network_keeps_the_order() {
    let received = |network: Network<u8>| {
        let actors = [Countdown { ignored: None }, Countdown { ignored: None }];
        let model = ActorModel::<_, (), ()>::new((), ())
            .actors(actors)
            .init_network(network);
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let seeing = Arc::clone(&seen);
        let check = check_actors(model).always("seen", move |state| {
            seeing
                .lock()
                .unwrap()
                .insert(state.actor_states[1].to_vec())
                || true
        });
        check.run().assert_holds();
        let seen = seen.lock().unwrap();
        seen.clone()
    };
    let in_order: [&[u8]; 3] = [&[], &[2], &[2, 1]];
    let any: [&[u8]; 5] = [&[], &[1], &[1, 2], &[2], &[2, 1]];
    assert!(
        received(Network::new_ordered([]))
            .iter()
            .eq(in_order.iter())
    );
    assert!(
        received(Network::new_unordered_nonduplicating([]))
            .iter()
            .eq(any.iter())
    );
}

#[test]
fn a_timer_runs_out_once() {
    let model = || ActorModel::<_, (), ()>::new((), ()).actor(Sleeper);
    assert_states(|| check_actors(model()), 2);
}

#[test]
fn random_choices_are_all_taken_and_can_be_made_anew() {
    let die = || ActorModel::<_, (), ()>::new((), ()).actor(Die(3));
    assert_states(|| check_actors(die()), 4);
    let rethinker = || ActorModel::<_, (), ()>::new((), ()).actor(Rethinker);
    assert_states(|| check_actors(rethinker()), 9);
}

#[test]
fn one_of_three_actors_can_be_down() {
    let model = || {
        ActorModel::<_, (), ()>::new((), ())
            .actors(vec![Idler; 3])
            .max_crashes(1)
    };
    assert_states(|| check_actors(model()), 4);
}

#[test]
fn actors_that_are_lists_of_messages_have_seven_states() {
    let send = |to: usize, letters: &str| -> Vec<(Id, char)> {
        letters.chars().map(|letter| (to.into(), letter)).collect()
    };
    let model = || ActorModel::<_, (), ()>::new((), ()).actors([send(1, "AB"), send(0, "CD")]);
    assert_states(|| check_actors(model()), 7);
}
