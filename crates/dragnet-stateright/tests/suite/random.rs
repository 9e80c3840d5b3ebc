//! Random models and actors, beside Stateright itself and beside the plainest search there is.

use std::borrow::Cow;

use dragnet::engine::EngineName;
use dragnet_stateright::{check, check_actors, cluster};
use proptest::prelude::*;
use stateright::actor::{ActorModel, Id, LossyNetwork, Network, Out, model_timeout};
use stateright::{Checker, Expectation, Model, Property};

use crate::models::rules::Rules;
use crate::models::scripted::{Input, Scripted, State, model};
use crate::models::space;
use crate::nodes::{rows, rows_of_model};

fn config() -> ProptestConfig {
    let given = std::env::var("DRAGNET_CASES").ok();
    ProptestConfig {
        cases: given.and_then(|cases| cases.parse().ok()).unwrap_or(256),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

const STATES: u8 = 12;
const ACTIONS: u8 = 3;

/// For each state and action where it leads, which states are inside the boundary, and where it begins.
#[derive(Clone, Debug)]
struct Table {
    next: Vec<Option<u8>>,
    inside: Vec<bool>,
    initial: Vec<u8>,
    avoided: u8,
}

fn table() -> impl Strategy<Value = Table> {
    let cells = usize::from(STATES) * usize::from(ACTIONS);
    let inside = prop::collection::vec(prop::bool::weighted(0.85), usize::from(STATES));
    (
        prop::collection::vec(prop::option::weighted(0.7, 0..STATES), cells),
        inside,
        prop::collection::vec(0..STATES, 1..4),
        0..STATES,
    )
        .prop_map(|(next, inside, initial, avoided)| Table {
            next,
            inside,
            initial,
            avoided,
        })
}

impl Table {
    /// The model of this table; it has the number to avoid beside its own.
    fn model(&self) -> Rules {
        let Self {
            next,
            inside,
            initial,
            avoided,
        } = self.clone();
        let initial: Vec<_> = initial.into_iter().map(|state| (state, avoided)).collect();
        Rules::new(initial, ACTIONS, move |(state, avoided), action| {
            let to = next[usize::from(state * ACTIONS + action)]?;
            Some((to, avoided))
        })
        .within(move |(state, _)| inside[usize::from(state)])
    }

    fn visited_everywhere(&self) -> Rules {
        self.model().property(Property::always("true", |_, _| true))
    }

    fn judged(&self) -> Rules {
        self.model()
            .property(Property::always("avoids it", |_, (state, avoided)| {
                state != avoided
            }))
    }

    fn hoped(&self) -> Rules {
        self.model()
            .property(Property::sometimes("meets it", |_, (state, avoided)| {
                state == avoided
            }))
            .property(Property::always("true", |_, _| true))
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_random_model_has_the_states_that_stateright_finds(table in table()) {
        let theirs = table.visited_everywhere().checker().spawn_bfs().join().unique_state_count() as u64;
        for engine in [EngineName::Breadth, EngineName::Depth] {
            for threads in [1, 2] {
                let verdict = check(table.visited_everywhere()).engine(engine).threads(threads).run();
                prop_assert_eq!(verdict.states(), theirs, "{} first, {} threads", engine, threads);
            }
            let verdict = check(table.visited_everywhere()).engine(engine).exact().run();
            prop_assert_eq!(verdict.states(), theirs, "{} first, whole states", engine);
        }
    }

    #[test]
    fn a_random_model_is_judged_as_stateright_judges_it(table in table()) {
        let theirs = table.judged().checker().spawn_bfs().join();
        let found = theirs.discovery("avoids it").map(|path| path.into_actions().len());
        let ours = check(table.judged()).run();
        // Stateright's first find is not always the nearest.
        prop_assert_eq!(ours.counterexample().is_some(), found.is_some());
        prop_assert!(ours.counterexample().map(|it| it.len()) <= found);

        let met = table.hoped().checker().spawn_bfs().join().discovery("meets it").is_some();
        prop_assert_eq!(check(table.hoped()).run().holds(), met);
    }
}

/// What one actor does at one input: where it goes, if it touches its state at all, and what it commands.
#[derive(Clone, Debug)]
struct Reaction {
    to: Option<u8>,
    commands: Vec<Act>,
}

#[derive(Clone, Debug)]
enum Act {
    Send(usize, u8),
    Set(u8),
    Cancel(u8),
    Choose(u8, Vec<u8>),
    Save(u8),
}

const PLACES: u8 = 3;
/// Two messages, two timers, two random values.
const INPUTS: u8 = 6;

/// An actor by its table: how it starts, how it reacts in each place to each input, and how often it can command.
#[derive(Clone, Debug)]
struct Script {
    start: Vec<Act>,
    reactions: Vec<Reaction>,
    fuel: u8,
}

fn act(with_memory: bool) -> impl Strategy<Value = Act> {
    // The third recipient is nobody.
    let send = (0..3_usize, 0..2_u8).prop_map(|(to, msg)| Act::Send(to, msg));
    let memory = prop_oneof![
        3 => (0..2_u8).prop_map(Act::Set),
        1 => (0..2_u8).prop_map(Act::Cancel),
        2 => (0..2_u8, prop::collection::vec(0..2_u8, 0..3)).prop_map(|(key, from)| Act::Choose(key, from)),
        1 => (0..3_u8).prop_map(Act::Save),
    ];
    let weight = if with_memory { 3 } else { 0 };
    prop_oneof![4 => send, weight => memory]
}

fn script(with_memory: bool) -> impl Strategy<Value = Script> {
    let reaction = (
        prop::option::of(0..PLACES),
        prop::collection::vec(act(with_memory), 0..3),
    )
        .prop_map(|(to, commands)| Reaction { to, commands });
    (
        prop::collection::vec(act(with_memory), 0..4),
        prop::collection::vec(reaction, usize::from(PLACES * INPUTS)),
        0..4_u8,
    )
        .prop_map(|(start, reactions, fuel)| Script {
            start,
            reactions,
            fuel,
        })
}

fn command(acts: &[Act], out: &mut Out<Scripted>) {
    for act in acts {
        match act.clone() {
            Act::Send(to, msg) => out.send(to.into(), msg),
            Act::Set(timer) => out.set_timer(timer, model_timeout()),
            Act::Cancel(timer) => out.cancel_timer(timer),
            Act::Choose(key, from) => out.choose_random(key.to_string(), from),
            Act::Save(number) => out.save(number),
        }
    }
}

impl Script {
    /// The actor. It remembers its place, its fuel and what it found saved.
    fn actor(&self) -> Scripted {
        let Self {
            start,
            reactions,
            fuel,
        } = self.clone();
        let begin = move |_: Id, saved: Option<u8>, out: &mut Out<Scripted>| {
            command(&start, out);
            vec![0, fuel, saved.unwrap_or(9)]
        };
        Scripted::new(begin, move |state: &mut Cow<'_, State>, input, out| {
            let input = match input {
                Input::Message(number) => number,
                Input::Timeout(number) => 2 + number,
                Input::Random(number) => 4 + number,
            };
            let reaction = &reactions[usize::from(state[0] * INPUTS + input)];
            if let Some(to) = reaction.to {
                state.to_mut()[0] = to;
            }
            if state[1] > 0 && !reaction.commands.is_empty() {
                state.to_mut()[1] -= 1;
                command(&reaction.commands, out);
            }
        })
    }
}

#[derive(Clone, Debug)]
struct Crew {
    scripts: [Script; 2],
    network: Network<u8>,
    lossy: bool,
    crashes: usize,
}

fn network(duplicating: bool) -> impl Strategy<Value = Network<u8>> {
    let weight = u32::from(duplicating);
    prop_oneof![
        1 => Just(Network::new_unordered_nonduplicating([])),
        1 => Just(Network::new_ordered([])),
        weight => Just(Network::new_unordered_duplicating([])),
    ]
}

fn crew(with_memory: bool) -> impl Strategy<Value = Crew> {
    let crashes = if with_memory { 0..2_usize } else { 0..1 };
    (
        script(with_memory),
        script(with_memory),
        network(true),
        any::<bool>(),
        crashes,
    )
        .prop_map(|(one, other, network, lossy, crashes)| Crew {
            scripts: [one, other],
            network,
            lossy,
            crashes,
        })
}

impl Crew {
    fn actors(&self) -> impl Iterator<Item = Scripted> {
        self.scripts.iter().map(Script::actor)
    }

    fn model(&self) -> ActorModel<Scripted> {
        model(self.actors(), self.network.clone())
            .lossy_network(if self.lossy {
                LossyNetwork::Yes
            } else {
                LossyNetwork::No
            })
            .max_crashes(self.crashes)
            .within_boundary(|_, state| state.network.len() <= 4)
            .property(Expectation::Always, "true", |_, _| true)
    }
}

const LIMIT: usize = 2_000;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_model_of_random_actors_keeps_every_state(crew in crew(true)) {
        let Some(space) = space(&crew.model(), LIMIT) else { return Ok(()) };
        let expected = space.len() as u64;
        for engine in [EngineName::Breadth, EngineName::Depth] {
            let read = check_actors(crew.model()).engine(engine).threads(2).run();
            prop_assert_eq!(read.states(), expected, "{} first, read as actors", engine);
            let whole = check(crew.model()).engine(engine).threads(1).run();
            prop_assert_eq!(whole.states(), expected, "{} first, whole states", engine);
        }
    }

    #[test]
    fn a_model_of_random_actors_without_timers_has_the_states_that_stateright_finds(crew in crew(false)) {
        let Some(space) = space(&crew.model(), LIMIT) else { return Ok(()) };
        let theirs = crew.model().checker().spawn_bfs().join().unique_state_count();
        prop_assert_eq!(space.len(), theirs);
        let ours = check_actors(crew.model()).threads(1).run();
        prop_assert_eq!(ours.states(), theirs as u64);
    }

    #[test]
    fn random_actors_reach_as_nodes_what_they_reach_in_their_model(
        scripts in [script(true), script(true)],
        network in network(false),
    ) {
        let crew = Crew { scripts, network, lossy: false, crashes: 0 };
        let unbounded = model(crew.actors(), crew.network.clone());
        let Some(expected) = rows_of_model(&unbounded, LIMIT) else { return Ok(()) };
        let nodes = cluster(crew.actors(), &crew.network).expect("nodes have such a network");
        prop_assert_eq!(rows(nodes), expected);
    }
}
