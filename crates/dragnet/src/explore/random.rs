//! Random walks: one execution after the other, each event [drawn](super::draw) from those enabled.
//!
//! Walk number n depends on the seed and n alone, and among several violations the one of the first walk is reported, so
//! the outcome is the same with any number of workers.
//!
//! A walk is a [run](Run), so a step costs one step of the system, whatever that is. It keeps no visited states: how many
//! different ones there are is estimated by a [sketch](Sketch).

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::crew::with_crew;
use super::draw::{Lot, Walks};
use super::limits::Gauge;
use super::path::{Path, Wrong};
use super::sample::Sample;
use super::walk::{Explored, LeftOut, Space};
use crate::guarded::implementation;
use crate::run::{Run, StateRun};
use crate::system::{Actor, Failure, System};
use crate::tables::Sketch;

/// How long a walk can get when nothing else bounds it.
const LONGEST: u64 = 10_000;

/// What walks came to.
pub(crate) struct Walked {
    pub(crate) explored: Explored,
    /// How many of them came to an end by themselves.
    #[cfg_attr(
        not(feature = "threads"),
        expect(dead_code, reason = "only executions are counted")
    )]
    pub(crate) ended: u64,
}

/// Makes random walks. States of a direct system are examined by a `sample`, where there is one.
pub(crate) fn explore<S: System>(
    space: &Space<'_, S>,
    sample: Option<&Sample<S::State>>,
    gauge: &Gauge,
    workers: usize,
    walks: &Walks,
) -> Walked {
    match Random::new(space, sample, gauge, walks) {
        Ok(search) => search.run(workers),
        Err(explored) => Walked { explored, ended: 0 },
    }
}

struct Random<'a, S: System> {
    space: &'a Space<'a, S>,
    sample: Option<&'a Sample<S::State>>,
    gauge: &'a Gauge,
    initial: Vec<(usize, S::State)>,
    longest: u64,
    walks: &'a Walks,
    /// The states that walks have come to.
    states: Sketch,
    /// How many walks came to an end by themselves.
    ended: AtomicU64,
    /// Whether a property looks at states.
    judges_states: bool,
}

/// The first walk that went wrong, and how.
type First = Mutex<Option<(u64, Path, Wrong)>>;

/// What a worker needs for each step: only its room is kept.
#[derive(Default)]
struct Room {
    actors: Vec<Actor>,
    /// The tasks that have not been drawn.
    open: Vec<usize>,
}

impl<'a, S: System> Random<'a, S> {
    fn new(
        space: &'a Space<'a, S>,
        sample: Option<&'a Sample<S::State>>,
        gauge: &'a Gauge,
        walks: &'a Walks,
    ) -> Result<Self, Explored> {
        Ok(Self {
            space,
            sample,
            gauge,
            initial: space.initial()?,
            longest: walks.longest.unwrap_or(LONGEST),
            walks,
            states: Sketch::new(),
            ended: AtomicU64::new(0),
            judges_states: !space.properties.are_about_the_end(),
        })
    }

    fn run(&self, workers: usize) -> Walked {
        let next = AtomicU64::new(0);
        // No walk from this one on needs to be made, in this round or at all.
        let end = AtomicU64::new(0);
        // How long walks of earlier rounds were.
        let steps = AtomicU64::new(0);
        let first: First = Mutex::new(None);
        let work = |worker: usize| {
            let mut room = Room::default();
            let steps = steps.load(Ordering::Relaxed);
            loop {
                self.space.quiesce(worker);
                let walk = next.fetch_add(1, Ordering::Relaxed);
                if walk >= end.load(Ordering::Relaxed) || self.gauge.must_end() {
                    break;
                }
                if let Some((path, wrong)) = self.walk(walk, steps, &mut room) {
                    end.fetch_min(walk, Ordering::Relaxed);
                    let mut first = first.lock().unwrap();
                    if first.as_ref().is_none_or(|(known, ..)| walk < *known) {
                        *first = Some((walk, path, wrong));
                    }
                }
            }
            self.space.leave(worker);
        };
        with_crew(workers, work, |crew| {
            for round in self.walks.rounds() {
                if self.initial.is_empty() || first.lock().unwrap().is_some() {
                    break;
                }
                next.store(round.start, Ordering::Relaxed);
                end.store(round.end, Ordering::Relaxed);
                steps.store(self.gauge.depth.load(Ordering::Relaxed), Ordering::Relaxed);
                crew.round((round.end - round.start).try_into().unwrap_or(workers));
            }
        });
        self.estimate();
        let explored = match first.into_inner().unwrap() {
            Some((_, path, wrong)) => Explored::found(path, wrong),
            None => Explored {
                found: None,
                left_out: Some(self.gauge.cut().map_or(LeftOut::NotDrawn, LeftOut::Cut)),
            },
        };
        Walked {
            explored,
            ended: self.ended.load(Ordering::Relaxed),
        }
    }

    fn estimate(&self) {
        let states = self.states.estimate();
        self.gauge.states.store(states, Ordering::Relaxed);
    }

    /// One walk, where earlier ones had up to `steps` steps.
    fn walk(&self, walk: u64, steps: u64, room: &mut Room) -> Option<(Path, Wrong)> {
        let mut lot = self.walks.lot(walk, steps);
        let (start, state) = &self.initial[lot.below(self.initial.len())];
        let mut path = Path::starting(*start);
        let mut run = match self.begin(state) {
            Ok(run) => run,
            Err(failure) => return Some((path, Wrong::Failed(failure))),
        };
        let found = self.extend(&mut *run, &mut lot, room);
        let taken = run.steps() as u64;
        self.gauge.add(0, taken);
        self.gauge.reach(taken);
        self.estimate();
        let wrong = found?;
        path.events = run.positions();
        Some((path, wrong))
    }

    fn begin<'s>(&'s self, state: &S::State) -> Result<Box<dyn Run<S> + 's>, Failure> {
        let system = self.space.system;
        match self.space.restriction {
            None => system.run(state),
            // It knows the states of the system itself, and none of a copy.
            Some(_) => Ok(Box::new(StateRun::new(system, state)?)),
        }
    }

    /// Extends a run until it ends, something is wrong with it, or it is long enough.
    fn extend(&self, run: &mut dyn Run<S>, lot: &mut Lot, room: &mut Room) -> Option<Wrong> {
        let mut found = self.arrive(run);
        while found.is_none() {
            if run.steps() as u64 >= self.longest || self.gauge.must_end() {
                return None;
            }
            match self.step(run, lot, room) {
                Ok(true) => found = self.arrive(run),
                Ok(false) => break,
                Err(wrong) => found = Some(wrong),
            }
        }
        self.ended.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Takes a task that is drawn. False where there is none.
    fn step(&self, run: &mut dyn Run<S>, lot: &mut Lot, room: &mut Room) -> Result<bool, Wrong> {
        let Room { actors, open } = room;
        if let Some(wrong) = self.space.is_stuck(run) {
            return Err(wrong);
        }
        run.tasks(actors).map_err(Wrong::Failed)?;
        // A task that leads out of the space, or turns out to do nothing, is drawn again, without being put back.
        open.clear();
        open.extend(0..actors.len());
        let actor = |position: &usize| actors[*position];
        while !open.is_empty() {
            let task = open.swap_remove(lot.next(open.iter().map(actor)));
            let taken = run.take_task(task, &mut |count| lot.below(count));
            if !taken.map_err(Wrong::Failed)? {
                continue;
            }
            match self.space.holds(run) {
                Err(failure) => return Err(Wrong::Failed(failure)),
                Ok(false) => run.back_to(run.steps() - 1).map_err(Wrong::Failed)?,
                Ok(true) => {
                    lot.went_on(actor(&task), run.has_yielded());
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Counts a state, and judges it. It is judged on every walk that comes to it, so that a walk's outcome is its own.
    fn arrive(&self, run: &dyn Run<S>) -> Option<Wrong> {
        if let Err(failure) = self.count(run) {
            return Some(Wrong::Failed(failure));
        }
        match self.judges_states {
            true => self.space.in_run(run).judge(run.state()),
            false => None,
        }
    }

    fn count(&self, run: &dyn Run<S>) -> Result<(), Failure> {
        let fingerprint = || run.fingerprint(self.space.key);
        if S::COMPARES_PARTS {
            self.states.add(fingerprint());
            return Ok(());
        }
        let (system, state) = (run.system(), run.state());
        let fingerprint = implementation(system, state, "Hash", fingerprint)?;
        if let Some(sample) = self.sample {
            let examine = || sample.examine(state, fingerprint);
            implementation(system, state, "Eq", examine)?;
        }
        let compare = || self.space.compare_to_itself(state);
        implementation(system, state, "Eq", compare)??;
        self.states.add(fingerprint);
        Ok(())
    }
}

/// Makes all walks with one worker, and says how many of them go wrong.
#[cfg(all(test, feature = "threads"))]
pub(crate) fn wrong_walks<S: System>(space: &Space<'_, S>, gauge: &Gauge, walks: &Walks) -> u64 {
    let search = Random::new(space, None, gauge, walks);
    let search = search.unwrap_or_else(|_| panic!("it begins"));
    let mut wrong = 0;
    for round in walks.rounds() {
        let steps = gauge.depth.load(Ordering::Relaxed);
        for walk in round {
            let found = search.walk(walk, steps, &mut Room::default());
            wrong += u64::from(found.is_some());
        }
    }
    wrong
}
