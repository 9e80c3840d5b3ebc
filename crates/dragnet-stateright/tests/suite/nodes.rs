//! Actors as nodes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use dragnet::verdict::ViolationKind;
use dragnet::{Check, Cluster, Faults, Node, crashes, drops, duplicates};
use dragnet_stateright::{ActorNode, NoEquivalent, cluster, timer};
use stateright::actor::register::{RegisterActor, RegisterActorState};
use stateright::actor::{ActorModel, Envelope, Network, Out, model_timeout};

use crate::models::scripted::{
    Input, Scripted, State, countdown, diarist, die, idler, model, rethinker, row, sleeper,
    waiting_for_one,
};
use crate::models::single_copy::register_actors;
use crate::models::{assert_states, paxos, space};

/// What all nodes remember together, in every state that is reached.
pub fn rows(cluster: Cluster<ActorNode<Scripted>>) -> BTreeSet<Vec<State>> {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let seeing = Arc::clone(&seen);
    let check = Check::new(cluster).always("it is noted", move |s| {
        let row = s.nodes().map(|state| State::clone(state)).collect();
        seeing.lock().unwrap().insert(row);
        true
    });
    check.run().assert_holds();
    let seen = seen.lock().unwrap();
    seen.clone()
}

/// What all actors of a model remember together, in every state; `None` if there are too many.
pub fn rows_of_model(model: &ActorModel<Scripted>, limit: usize) -> Option<BTreeSet<Vec<State>>> {
    Some(space(model, limit)?.iter().map(row).collect())
}

#[track_caller]
fn assert_same_rows<const N: usize>(actors: fn() -> [Scripted; N], network: Network<u8>) {
    let nodes = rows(cluster(actors(), &network).expect("nodes have such a network"));
    let model = rows_of_model(&model(actors(), network), 1_000).expect("they are few");
    assert_eq!(nodes, model);
}

#[test]
fn small_actors_reach_as_nodes_what_they_reach_in_their_model() {
    let unordered = Network::new_unordered_nonduplicating([]);
    assert_same_rows(countdown, unordered.clone());
    assert_same_rows(waiting_for_one, unordered.clone());
    assert_same_rows(countdown, Network::new_ordered([]));
    assert_same_rows(waiting_for_one, Network::new_ordered([]));
    assert_same_rows(|| [sleeper(), sleeper()], unordered.clone());
    assert_same_rows(|| [die(3), die(2)], unordered.clone());
    assert_same_rows(|| [rethinker()], unordered.clone());
    assert_same_rows(|| [diarist(3), diarist(2)], unordered);
}

#[test]
fn paxos_has_as_nodes_the_16_668_states_that_it_has_as_a_model() {
    let actors = || register_actors(paxos::servers(3), 2);
    let network = Network::new_unordered_nonduplicating([]);
    assert_states(
        || {
            Check::new(cluster(actors(), &network).expect("nodes have such a network"))
                .always("agreement", |s| {
                    let mut decided = s.nodes().filter_map(|state| match &**state {
                        RegisterActorState::Server(server) => server.decision(),
                        RegisterActorState::Client { .. } => None,
                    });
                    let first = decided.next();
                    decided.all(|value| Some(value) == first)
                })
                .reachable("a client is done", |s| {
                    let done = |op_count: u64| op_count == 3;
                    s.nodes().any(|state| {
                        matches!(&**state, RegisterActorState::Client { op_count, .. } if done(*op_count))
                    })
                })
        },
        16_668,
    );
    assert!(matches!(actors()[0], RegisterActor::Server(_)));
}

#[test]
fn networks_without_an_equivalent_are_refused() {
    let refused = |network| cluster([idler()], &network).err();
    let duplicating = Network::new_unordered_duplicating([]);
    assert_eq!(refused(duplicating), Some(NoEquivalent::Duplicating));
    let message = Envelope {
        src: 0.into(),
        dst: 0.into(),
        msg: 1,
    };
    let loaded = refused(Network::new_ordered([message]));
    assert_eq!(loaded, Some(NoEquivalent::InFlight(1)));
    let line = loaded.expect("it is refused").to_string();
    assert!(
        line.starts_with("the initial network holds messages (1)"),
        "{line}"
    );
}

#[test]
fn what_was_saved_survives_a_crash_and_the_rest_does_not() {
    let check = |faults: Faults| {
        let cluster = cluster([diarist(3)], &Network::new_ordered([])).expect("it has one");
        Check::new(cluster)
            .always("the disk is ahead of memory", |s| {
                s.nodes().all(|counts| counts[1] >= counts[0])
            })
            .reachable("it starts again from the disk", |s| {
                s.nodes().any(|counts| counts[1] > counts[0])
            })
            .faults(faults)
            .run()
    };
    check(crashes(1)).assert_holds();
    let unreached = check(Faults::none());
    assert_eq!(
        unreached.violation().map(|v| &v.kind),
        Some(&ViolationKind::Unreached)
    );
}

#[test]
fn a_crash_forgets_what_was_left_open() {
    let cluster = cluster([die(2), die(2)], &Network::new_ordered([])).expect("it has one");
    // Each is open, thrown with either outcome, or down; which one was down before changes nothing else.
    Check::new(cluster)
        .always("a die is thrown once", |s| {
            s.nodes().all(|thrown| thrown.len() < 2)
        })
        .faults(crashes(2))
        .run()
        .assert_holds();
}

#[test]
fn losses_and_duplicates_are_budgets() {
    let noted = |faults| {
        let cluster = cluster(countdown(), &Network::new_ordered([])).expect("it has one");
        let rows = rows(cluster.faults(faults));
        rows.into_iter()
            .map(|row| row[1].clone())
            .collect::<BTreeSet<State>>()
    };
    assert!(noted(drops(1)).contains(&vec![1]));
    assert!(noted(duplicates(1)).contains(&vec![2, 2, 1]));
    assert!(!noted(drops(1)).contains(&vec![2, 2, 1]));
}

#[test]
fn a_timer_can_be_given_a_budget() {
    let endless = || {
        let start = |_, _, out: &mut Out<Scripted>| {
            out.set_timer(7, model_timeout());
            vec![0]
        };
        Scripted::new(start, |state, input, out| {
            assert_eq!(input, Input::Timeout(7));
            state.to_mut()[0] += 1;
            out.set_timer(7, model_timeout());
        })
    };
    let cluster = cluster([endless()], &Network::new_ordered([])).expect("it has one");
    let cluster = cluster.timer_budget(timer(&7), 3);
    assert_eq!(rows(cluster).len(), 4);
}

#[test]
fn a_message_to_an_actor_that_is_not_there_is_lost() {
    let start = |_, _, out: &mut Out<Scripted>| {
        out.send(9.into(), 1);
        State::new()
    };
    let lonely = Scripted::new(start, |_, _, _| {});
    let cluster = cluster([lonely], &Network::new_ordered([])).expect("it has one");
    assert_eq!(rows(cluster).len(), 1);
}

mod timers_shown_alike {
    use std::borrow::Cow;
    use std::fmt;

    use stateright::actor::{Actor, Id};

    use super::*;

    /// Shown without its number.
    #[derive(Clone, PartialEq, Eq, Hash)]
    pub struct Alike(u8);

    impl fmt::Debug for Alike {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Alike")
        }
    }

    /// Sets timers that are shown alike: both at once, or one after the other.
    struct Forger {
        at_once: bool,
    }

    impl Actor for Forger {
        type Msg = ();
        type State = Vec<u8>;
        type Timer = Alike;
        type Random = ();
        type Storage = ();

        fn on_start(&self, _: Id, _: &Option<()>, out: &mut Out<Self>) -> Vec<u8> {
            out.set_timer(Alike(0), model_timeout());
            if self.at_once {
                out.set_timer(Alike(1), model_timeout());
            }
            Vec::new()
        }

        fn on_timeout(
            &self,
            _: Id,
            ran: &mut Cow<'_, Vec<u8>>,
            timer: &Alike,
            out: &mut Out<Self>,
        ) {
            ran.to_mut().push(timer.0);
            if timer.0 == 0 {
                out.set_timer(Alike(1), model_timeout());
            }
        }
    }

    fn check(at_once: bool) -> Check<Cluster<impl Node>> {
        let forgers = [Forger { at_once }];
        Check::new(cluster(forgers, &Network::new_ordered([])).expect("it has one"))
            .reachable("both run out in turn", |s| {
                s.nodes().any(|ran| **ran == [0, 1])
            })
    }

    #[test]
    fn they_are_told_apart_or_refused() {
        check(false).run().assert_holds();
        let verdict = check(true).run();
        let Some(ViolationKind::Failure(failure)) = verdict.violation().map(|v| &v.kind) else {
            panic!("{verdict}");
        };
        let expected =
            "two timers that differ are both shown as `Alike`: let their `Debug` tell them apart";
        assert_eq!(failure.message(), expected);
    }
}
