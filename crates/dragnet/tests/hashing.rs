//! Types whose `Hash` is legal but coarser than their `Eq`: what is recognised by its hash is then taken for another.

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;
use std::time::Duration;

use dragnet::engine::{Engine, EngineName, EngineOption, Local, Pruning};
use dragnet::system::{Actor, ComponentId};
use dragnet::{Check, Cluster, Context, Failure, Node, NodeId, Outcome, System, Timer, Verdict};

/// The engine with so many walks, if it makes random ones.
fn with_walks(engine: EngineName, walks: u64) -> Engine {
    let engine = Engine::from(engine);
    engine.with(EngineOption::Walks(walks)).unwrap_or(engine)
}

const TICK: Timer = Timer::new("tick");

/// A node whose state hashes its term alone.
struct Voter;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Ballot {
    term: u8,
    votes: u8,
}

impl Hash for Ballot {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.term.hash(state);
    }
}

impl Node for Voter {
    type State = Ballot;
    type Msg = bool;

    fn on_start(&self, cx: &mut Context<bool>) -> Ballot {
        cx.set_timer(TICK, Duration::ZERO);
        Ballot { term: 1, votes: 0 }
    }

    fn on_timer(&self, ballot: &mut Ballot, _: Timer, cx: &mut Context<bool>) {
        cx.broadcast_to_others(true);
        ballot.term = 2;
        ballot.votes = cx.choose(2) as u8;
    }

    fn on_message(&self, ballot: &mut Ballot, _: NodeId, _: bool, _: &mut Context<bool>) {
        if ballot.votes == 1 {
            ballot.votes = 2;
        }
    }
}

const STATE_ENGINES: [EngineName; 6] = [
    EngineName::Breadth,
    EngineName::Depth,
    EngineName::Random,
    EngineName::Pct,
    EngineName::Local,
    EngineName::Auto,
];

fn reason(verdict: &Verdict) -> &str {
    match &verdict.outcome {
        Outcome::Inconclusive(reason) => reason,
        _ => panic!("states were taken for others, and yet:\n{verdict}"),
    }
}

#[test]
fn a_node_state_that_hashes_only_a_part_of_itself_is_never_said_to_hold() {
    for engine in STATE_ENGINES {
        for threads in [1, 2] {
            let verdict = Check::new(Cluster::new(3, |_| Voter))
                .always("few votes", |s| s.nodes().all(|ballot| ballot.votes <= 2))
                .engine(with_walks(engine, 200))
                .threads(threads)
                .run();
            let reason = reason(&verdict);
            // Which two are met first on random walks depends on how they are drawn.
            let of_both: &[&str] = match engine.is_random() {
                true => &["one      Ballot { term: 2", "other    Ballot { term: 2"],
                false => &["votes: 0", "votes: 1"],
            };
            for part in [&["Ballot", "`Hash` leaves out"], of_both].concat() {
                assert!(reason.contains(part), "{engine:?}, {threads}: {reason}");
            }
        }
    }
}

#[test]
fn a_violation_behind_a_state_that_was_taken_for_another_is_found_or_the_verdict_is_open() {
    for engine in STATE_ENGINES {
        for threads in [1, 2] {
            let verdict = Check::new(Cluster::new(2, |_| Voter))
                .always("never two", |s| s.nodes().all(|ballot| ballot.votes < 2))
                .engine(with_walks(engine, 200))
                .threads(threads)
                .run();
            assert!(!verdict.holds(), "{engine:?}, {threads}: {verdict}");
            let whole = match engine {
                EngineName::Local => EngineName::Auto,
                engine => engine,
            };
            let verdict = Check::new(Wheels::small())
                .always("not so far", |state| state.second < 2)
                .engine(with_walks(whole, 200))
                .threads(threads)
                .run();
            assert!(!verdict.holds(), "{engine:?}, {threads}: {verdict}");
        }
    }
}

#[test]
fn no_pruning_of_the_local_engine_holds_with_a_coarse_hash() {
    for pruning in Pruning::ALL {
        let verdict = Check::new(Cluster::new(3, |_| Voter))
            .always_for_each("few votes", |node| {
                node.state().is_none_or(|ballot| ballot.votes <= 2)
            })
            .engine(Local::new().pruning(pruning))
            .run();
        assert!(reason(&verdict).contains("Ballot"), "{pruning:?}");
    }
}

#[test]
fn whole_states_of_a_cluster_are_told_apart_whatever_they_hash() {
    for engine in [EngineName::Breadth, EngineName::Depth] {
        for threads in [1, 2] {
            let check = || {
                Check::new(Cluster::new(3, |_| Voter))
                    .engine(engine)
                    .threads(threads)
                    .exact()
            };
            check()
                .always("few votes", |s| s.nodes().all(|ballot| ballot.votes <= 2))
                .reachable("two votes", |s| s.nodes().any(|ballot| ballot.votes == 2))
                .run()
                .assert_holds();
            let verdict = check()
                .always("never two", |s| s.nodes().all(|ballot| ballot.votes < 2))
                .run();
            assert!(verdict.violation().is_some(), "{engine:?}: {verdict}");
        }
    }
}

#[test]
fn a_violation_counts_though_states_were_taken_for_others() {
    for engine in STATE_ENGINES {
        for threads in [1, 2] {
            let verdict = Check::new(Cluster::new(2, |_| Voter))
                .always("still the first term", |s| {
                    s.nodes().all(|ballot| ballot.term == 1)
                })
                .engine(with_walks(engine, 200))
                .threads(threads)
                .run();
            let counterexample = verdict.counterexample();
            let counterexample = counterexample.expect("the first timer that runs out");
            assert_eq!(counterexample.len(), 1, "{engine:?}: {verdict}");
            // Who knows what was missed.
            assert!(!counterexample.shortest, "{engine:?}: {verdict}");
        }
    }
}

#[test]
fn what_was_missed_behind_a_coarse_hash_is_not_said_to_be_unreachable() {
    for engine in [
        EngineName::Breadth,
        EngineName::Depth,
        EngineName::Local,
        EngineName::Auto,
    ] {
        let verdict = Check::new(Cluster::new(3, |_| Voter))
            .reachable("all votes", |s| s.nodes().all(|ballot| ballot.votes == 2))
            .engine(engine)
            .run();
        assert!(reason(&verdict).contains("Ballot"), "{engine:?}");
    }
}

/// Sends messages of which only the kind is hashed.
struct Sender;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Letter {
    kind: u8,
    page: u8,
}

impl Hash for Letter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl Node for Sender {
    type State = u8;
    type Msg = Letter;

    fn on_start(&self, cx: &mut Context<Letter>) -> u8 {
        cx.set_timer(TICK, Duration::ZERO);
        0
    }

    fn on_timer(&self, _: &mut u8, _: Timer, cx: &mut Context<Letter>) {
        let page = cx.choose(2) as u8;
        cx.broadcast_to_others(Letter { kind: 7, page });
    }

    fn on_message(&self, seen: &mut u8, _: NodeId, letter: Letter, _: &mut Context<Letter>) {
        *seen |= 1 << letter.page;
    }
}

#[test]
fn a_message_that_hashes_only_a_part_of_itself_is_never_said_to_hold() {
    for engine in STATE_ENGINES {
        for threads in [1, 2] {
            let verdict = Check::new(Cluster::new(2, |_| Sender))
                .always("two pages at most", |s| s.nodes().all(|seen| *seen < 4))
                .engine(with_walks(engine, 200))
                .threads(threads)
                .run();
            let reason = reason(&verdict);
            for part in ["Letter", "`Hash` leaves out", "page: 0", "page: 1"] {
                assert!(reason.contains(part), "{engine:?}, {threads}: {reason}");
            }
        }
    }
}

/// Counts to a number on two wheels, of which only the first reaches the fingerprint.
struct Wheels {
    first: u32,
    second: u32,
    /// Where the second wheel can be turned.
    from: u32,
}

impl Wheels {
    fn small() -> Self {
        Self {
            first: 3,
            second: 2,
            from: 0,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Position {
    first: u32,
    second: u32,
}

impl Hash for Position {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.first.hash(state);
    }
}

impl System for Wheels {
    type State = Position;
    type Event = bool;

    fn initial(&self) -> Vec<Position> {
        vec![Position {
            first: 0,
            second: 0,
        }]
    }

    fn events(&self, state: &Position, out: &mut Vec<bool>) {
        if state.first < self.first {
            out.push(true);
        }
        if state.second < self.second && state.first >= self.from {
            out.push(false);
        }
    }

    fn next(&self, state: &Position, first: &bool) -> Result<Position, Failure> {
        let mut next = state.clone();
        match first {
            true => next.first += 1,
            false => next.second += 1,
        }
        Ok(next)
    }
}

const DIRECT_ENGINES: [EngineName; 5] = [
    EngineName::Breadth,
    EngineName::Depth,
    EngineName::Random,
    EngineName::Pct,
    EngineName::Auto,
];

#[test]
fn a_direct_system_whose_states_hash_only_a_part_of_themselves_is_never_said_to_hold() {
    for engine in DIRECT_ENGINES {
        for threads in [1, 2] {
            let check = || {
                Check::new(Wheels::small())
                    .always("not so far", |state| state.second < 3)
                    .engine(with_walks(engine, 200))
                    .threads(threads)
            };
            let verdict = check().run();
            for part in ["Position", "`Hash` leaves out", "second: 0", "second: 1"] {
                let reason = reason(&verdict);
                assert!(reason.contains(part), "{engine:?}, {threads}: {reason}");
            }
            if !engine.is_random() {
                let exact = check().exact().run();
                exact.assert_holds();
                assert_eq!(exact.states(), 12);
            }
        }
    }
}

#[test]
fn a_state_behind_the_depth_bound_is_not_taken_for_one_within_it() {
    // The only other state has the fingerprint of the first, and is one step behind the bound.
    let wheels = || Wheels {
        first: 0,
        second: 1,
        from: 0,
    };
    for engine in [EngineName::Breadth, EngineName::Depth] {
        let verdict = Check::new(wheels()).engine(engine).depth(0).run();
        assert!(reason(&verdict).contains("Position"), "{engine:?}");
    }
    let further = Wheels {
        first: 2,
        second: 1,
        from: 2,
    };
    let verdict = Check::new(further).engine(EngineName::Depth).depth(2).run();
    assert!(reason(&verdict).contains("Position"));
}

#[test]
fn unequal_states_are_noticed_in_a_space_of_which_only_a_sample_is_compared() {
    // Beyond a hundred thousand states one in a thousand is compared, and many collide.
    for engine in [EngineName::Breadth, EngineName::Depth] {
        for threads in [1, 2] {
            let wheels = Wheels {
                first: 130_000,
                second: 1,
                from: 110_000,
            };
            let verdict = Check::new(wheels).engine(engine).threads(threads).run();
            assert!(reason(&verdict).contains("Position"), "{engine:?}");
        }
    }
}

/// Writes a word of two letters with an ornament on each; only its length and its last letter reach the fingerprint.
struct Words;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Word(Vec<(bool, bool)>);

impl Hash for Word {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0.len(), self.0.last().map(|(letter, _)| letter)).hash(state);
    }
}

impl System for Words {
    type State = Word;
    type Event = (bool, bool);

    fn initial(&self) -> Vec<Word> {
        vec![Word(Vec::new())]
    }

    fn events(&self, word: &Word, out: &mut Vec<(bool, bool)>) {
        if word.0.len() < 40 {
            out.extend([(false, false), (false, true), (true, false), (true, true)]);
        }
    }

    fn next(&self, word: &Word, letter: &(bool, bool)) -> Result<Word, Failure> {
        let mut next = word.clone();
        next.0.push(*letter);
        Ok(next)
    }
}

#[test]
fn a_search_among_executions_with_the_same_fingerprints_comes_to_an_end() {
    // Of each level two words are kept, each beside a parent that need not be its own: nearly all of the executions along
    // these parents lead elsewhere.
    let unwanted: OnceLock<Word> = OnceLock::new();
    let verdict = Check::new(Words)
        .always("not this one", move |word| {
            word.0.len() < 40 || unwanted.get_or_init(|| word.clone()) != word
        })
        .threads(1)
        .run();
    assert!(!verdict.holds(), "{verdict}");
}

/// Two initial states with one hash: a property panics in the second, which waits for ever.
struct TwoStarts;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Place(u8);

impl Hash for Place {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

impl System for TwoStarts {
    type State = Place;
    type Event = u8;

    fn initial(&self) -> Vec<Place> {
        vec![Place(0), Place(1)]
    }

    fn events(&self, place: &Place, out: &mut Vec<u8>) {
        out.extend((place.0 == 0).then_some(2));
    }

    fn next(&self, _: &Place, &to: &u8) -> Result<Place, Failure> {
        Ok(Place(to))
    }

    fn waiting(&self, place: &Place) -> Vec<Actor> {
        (place.0 == 1)
            .then(|| ComponentId(0).into())
            .into_iter()
            .collect()
    }
}

#[test]
fn the_trace_of_a_violation_in_a_state_that_was_taken_for_another_replays() {
    let check = || {
        let check = Check::new(TwoStarts).named("two starts").deadlock_free();
        check.always("no panic", |place| match place.0 {
            1 => panic!("at the second"),
            _ => true,
        })
    };
    for run in 0..500 {
        let check = || check().engine(EngineName::Depth).threads(4).depth(1);
        let verdict = check().run();
        if let Some(counterexample) = verdict.counterexample() {
            let replay = check().replay(&counterexample.trace);
            assert!(replay.is_ok(), "run {run}: {:?}", replay.err());
        }
    }
}
