//! The state counts that Stateright 0.31 publishes in its tests and examples, found through the adapter.

use std::collections::BTreeSet;

use dragnet::Check;
use dragnet::verdict::ViolationKind;
use dragnet_stateright::{ModelSystem, Stateright, check, check_actors};
use stateright::actor::{ActorModel, Envelope, Id, LossyNetwork, Network};
use stateright::{Checker, Model, Property};

use crate::models::counting::Increment;
use crate::models::rules::{Rules, bytes, clock, processes};
use crate::models::scripted::{
    Scripted, countdown, die, idler, model, rethinker, sleeper, waiting_for_one,
};
use crate::models::two_phase::TwoPhase;
use crate::models::{abd, assert_states, paxos, ping_pong, single_copy, space};

#[test]
fn two_phase_commit_has_288_states_with_three_managers() {
    assert_states(|| check(TwoPhase { managers: 3 }), 288);
}

#[test]
fn two_phase_commit_has_8_832_states_with_five_managers() {
    assert_states(|| check(TwoPhase { managers: 5 }), 8_832);
}

/// Looks for two bytes with `2x + 4y = 7`, or, if it is to be solvable, `2x + 10y = 14`.
fn equation(solvable: bool) -> Rules {
    fn solved(&(x, y): &(u8, u8), by: u8, sum: u8) -> bool {
        2_u8.wrapping_mul(x).wrapping_add(by.wrapping_mul(y)) == sum
    }
    bytes().property(if solvable {
        Property::sometimes("solved", |_, state| solved(state, 10, 14))
    } else {
        Property::sometimes("solved", |_, state| solved(state, 4, 7))
    })
}

#[test]
fn the_linear_equation_without_a_solution_has_all_65_536_states() {
    assert_states(|| check(bytes()), 256 * 256);
    let verdict = check(equation(false)).run();
    let violation = verdict.violation().expect("nothing solves it");
    assert_eq!(violation.property, "solved");
    assert_eq!(violation.kind, ViolationKind::Unreached);
    assert_eq!(verdict.states(), 256 * 256);
}

#[test]
fn the_linear_equation_with_a_solution_is_solvable() {
    check(equation(true)).run().assert_holds();
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
fn with_a_lock_no_update_is_lost_and_stateright_finds_the_same_states() {
    for threads in [2, 3] {
        let model = || Increment {
            threads,
            locked: true,
        };
        let theirs = model().checker().spawn_bfs().join();
        theirs.assert_properties();
        assert_states(|| check(model()), theirs.unique_state_count() as u64);
    }
}

#[test]
fn the_clock_has_two_states_and_two_processes_nine() {
    assert_states(|| check(clock()), 2);
    assert_states(|| check(processes()), 9);
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
        msg: 0,
    };
    let network = Network::new_unordered_duplicating([to_nobody]);
    assert_states(|| check_actors(model([idler()], network.clone())), 1);
}

#[test]
fn what_an_actor_ignores_is_taken_on_an_ordered_network_only() {
    let states = |network: Network<u8>, expected| {
        let actors = || model(waiting_for_one(), network.clone());
        assert_states(|| check_actors(actors()), expected);
    };
    states(Network::new_unordered_duplicating([]), 2);
    states(Network::new_unordered_nonduplicating([]), 2);
    states(Network::new_ordered([]), 3);
}

#[test]
fn an_ordered_network_keeps_the_order() {
    let received = |network: Network<u8>| -> BTreeSet<Vec<u8>> {
        let model = || model(countdown(), network.clone());
        let states = space(&model(), 100).expect("they are few");
        assert_states(|| check_actors(model()), states.len() as u64);
        states
            .iter()
            .map(|state| state.actor_states[1].to_vec())
            .collect()
    };
    let in_order: [&[u8]; 3] = [&[], &[2], &[2, 1]];
    let any: [&[u8]; 5] = [&[], &[1], &[1, 2], &[2], &[2, 1]];
    assert!(received(Network::new_ordered([])).iter().eq(in_order));
    assert!(
        received(Network::new_unordered_nonduplicating([]))
            .iter()
            .eq(any)
    );
}

#[test]
fn a_timer_runs_out_once() {
    assert_states(|| check_actors(alone(sleeper())), 2);
}

#[test]
fn random_choices_are_all_taken_and_can_be_made_anew() {
    assert_states(|| check_actors(alone(die(3))), 4);
    assert_states(|| check_actors(alone(rethinker())), 9);
}

#[test]
fn one_of_three_actors_can_be_down() {
    let idlers = || [idler(), idler(), idler()];
    let model = || model(idlers(), Network::new_unordered_duplicating([])).max_crashes(1);
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

fn alone(actor: Scripted) -> ActorModel<Scripted> {
    model([actor], Network::new_unordered_duplicating([]))
}
