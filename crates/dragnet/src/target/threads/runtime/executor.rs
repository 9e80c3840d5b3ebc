//! Runs a program again and again, each time as a director says.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use super::super::data_race::{DataRaces, Scrutiny, Suspicion};
use super::super::moments::lost;
use super::super::names::Names;
use super::super::operation::{Operation, ThreadId, Way};
use super::super::spin::termination::{Habit, Instance, Loops, Probed};
use super::super::state::{Newborn, State};
use super::stacks::{Room, Stacks};
use super::watchdog::{self, Trapped};
use super::world::{self, Entered, Setting, World};
use crate::panics;
use crate::system::{Failure, FailureKind};

/// A program with threads, and how it is run.
pub(crate) struct Program {
    pub(crate) main: Arc<dyn Fn() + Send + Sync>,
    pub(crate) setting: Setting,
    pub(crate) names: Arc<Names>,
    pub(crate) loops: Arc<Loops>,
    pub(crate) races: Arc<DataRaces>,
    /// Whether an execution has spoilt the thread of the operating system that it ran on.
    spoils: AtomicBool,
    /// Whether a thread has been seen to wait for something real.
    blocks: AtomicBool,
    /// Whether threads are left where they are when an execution is over, because to unwind them does harm.
    leaves: AtomicBool,
}

/// Something that has to be known before an execution can go on.
enum Open {
    /// Whether the loop of a thread terminates without the others: it is no spin loop.
    Loop(ThreadId),
    /// Whether two accesses are a data race.
    Race(Box<Suspicion>),
}

/// How many steps a thread that goes on alone takes between two looks at how many there may be.
const BETWEEN_LOOKS: usize = 100;

/// What is said of an [`Arc`](super::super::arc::Arc) that still has owners in the end.
fn leak(made: Option<&'static Location<'static>>, owners: u32) -> Failure {
    let made = made.map(|made| format!(" made at {made}"));
    let made = made.unwrap_or_default();
    let still = match owners {
        1 => "an owner",
        _ => "owners",
    };
    let message = format!("leak: the Arc{made} still has {still} when all threads have ended");
    Failure::new(FailureKind::Fault, message, None)
}

/// How long it takes to see that again.
const SHORT_PATIENCE: Duration = Duration::from_millis(500);

impl Program {
    pub(crate) fn new(main: Arc<dyn Fn() + Send + Sync>, setting: Setting) -> Self {
        Self {
            main,
            setting,
            names: Arc::default(),
            loops: Arc::default(),
            races: Arc::default(),
            spoils: AtomicBool::new(false),
            blocks: AtomicBool::new(false),
            leaves: AtomicBool::new(false),
        }
    }

    /// The same program, of whose loops nothing is known.
    pub(crate) fn with_nothing_learnt(&self) -> Self {
        let same = |flag: &AtomicBool| AtomicBool::new(flag.load(Relaxed));
        Self {
            main: Arc::clone(&self.main),
            setting: self.setting.clone(),
            names: Arc::clone(&self.names),
            loops: Arc::default(),
            races: Arc::default(),
            spoils: same(&self.spoils),
            blocks: same(&self.blocks),
            leaves: same(&self.leaves),
        }
    }

    /// Whether a thread has done nothing that is seen for too long.
    pub(crate) fn has_blocked(&self) -> bool {
        self.blocks.load(Relaxed)
    }

    /// Does work in which an execution is run, where it can do no harm.
    pub(crate) fn apart<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        if !self.spoils.load(Relaxed) && !world::is_spoiled() {
            return work();
        }
        let done = std::thread::scope(|scope| scope.spawn(work).join());
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// A thread goes on, in one of the ways that are open to it.
pub(crate) type Transition = (ThreadId, Way);

/// Who decides which thread goes on.
pub(crate) trait Director {
    /// One of the transitions in `enabled`, or `None` to leave the execution there.
    fn next(&mut self, state: &State, enabled: &[Transition]) -> Option<Transition>;

    /// What this one begins with, put into `taken`. Nobody is asked before that is done.
    fn begun(&mut self, taken: &mut Vec<Taken>) {
        let _ = taken;
    }
}

/// A decision that was taken in an earlier execution.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) transition: Transition,
    /// What the thread did by that, if it is known. A program that does something else is not deterministic.
    pub(crate) operation: Option<Operation>,
}

impl Taken {
    /// Any operation will do.
    fn any(transition: Transition) -> Self {
        Self {
            transition,
            operation: None,
        }
    }
}

/// How an execution ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Finish {
    /// Every thread has ended.
    Complete,
    /// Some threads have not ended, and none can go on.
    Stuck,
    /// The director has left it.
    Left,
    Failed(Failure),
}

type Fiber = Coroutine<(), (), (), DefaultStack>;

/// Does work on another thread of the operating system, while this one waits.
fn elsewhere<R>(work: impl FnOnce() -> R) -> R {
    struct Carried<T>(T);
    // SAFETY: the one thread waits while the other uses it, and nothing in it belongs to a thread of the operating system.
    unsafe impl<T> Send for Carried<T> {}
    let work = Carried(work);
    let run = move || {
        let Carried(work) = { work };
        Carried(work())
    };
    let done = std::thread::scope(|scope| scope.spawn(run).join());
    match done {
        Ok(Carried(done)) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Runs executions of one program, one after the other, on one thread of the operating system.
pub(crate) struct Executor {
    program: Arc<Program>,
    world: Box<World>,
    fibers: Vec<Option<Fiber>>,
    /// The stack of each thread.
    rooms: Vec<Room>,
    stacks: Stacks,
    /// What executions begin with, the ways of one thread, and what is enabled: only their room is kept.
    begun: Vec<Taken>,
    ways: Vec<Way>,
    enabled: Vec<Transition>,
    /// Whether what is on the threads' stacks must not be touched any more.
    is_abandoned: bool,
}

impl Executor {
    pub(crate) fn new(program: Arc<Program>) -> Self {
        let world = World::new(&program);
        let stacks = Stacks::new(program.setting.stack_bytes);
        Self {
            program,
            world: Box::new(world),
            fibers: Vec::new(),
            rooms: Vec::new(),
            stacks,
            begun: Vec::new(),
            ways: Vec::new(),
            enabled: Vec::new(),
            is_abandoned: false,
        }
    }

    /// What the last execution consisted of.
    pub(crate) fn state(&self) -> std::cell::Ref<'_, State> {
        self.world.state().borrow()
    }

    /// How many operations of the last execution were judged as if they were sequentially consistent, and had not asked
    /// for it.
    pub(crate) fn weakly_ordered(&self) -> u64 {
        self.world.weakly_ordered()
    }

    /// Events need not keep what their objects were before: nobody looks for races.
    pub(crate) fn keep_no_models(&self) {
        self.world.state().borrow_mut().keeps_models = false;
    }

    /// Whether executions are told to a person.
    pub(crate) fn set_told(&self, told: bool) {
        self.world.set_told(told);
    }

    /// Runs the program once.
    pub(crate) fn run(&mut self, director: &mut dyn Director) -> Finish {
        let mut taken = std::mem::take(&mut self.begun);
        taken.clear();
        director.begun(&mut taken);
        self.run_from(taken, None, director)
    }

    pub(in super::super) fn world(&self) -> &World {
        &self.world
    }

    /// What is on the threads' stacks is not touched any more.
    pub(in super::super) fn abandon(&mut self) {
        self.is_abandoned = true;
    }

    /// Runs the program along decisions that have been taken, and on from there as a director says. Where a thread goes
    /// round a loop of which nobody knows whether it ends by itself, or two accesses may be a data race, that is found out
    /// first.
    fn run_from(
        &mut self,
        mut taken: Vec<Taken>,
        mut open: Option<Open>,
        director: &mut dyn Director,
    ) -> Finish {
        let finish = panics::quietly(|| {
            let world = &raw const *self.world;
            // SAFETY: the world is boxed and lives as long as this executor.
            let _entered = Entered::new(unsafe { &*world });
            let pulse = Arc::clone(self.world.pulse());
            let patience = self.program.setting.patience;
            let patience = match self.program.has_blocked() {
                true => patience.min(SHORT_PATIENCE),
                false => patience,
            };
            let _watched = watchdog::on_duty(&pulse, patience);
            let mut in_place = 0;
            let mut lessons = self.program.loops.changes();
            loop {
                match open.take() {
                    Some(Open::Loop(thread)) if !self.probe(&taken, thread) => {
                        return Some(Finish::Failed(lost()));
                    }
                    Some(Open::Race(suspicion)) => self.settle(&suspicion),
                    _ => {}
                }
                if world::is_spoiled() && !taken.is_empty() {
                    return None;
                }
                let finish = self.run_on(&taken, director);
                let must_follow = {
                    let mut state = self.world.state().borrow_mut();
                    let suspicion = state.suspicion.take().map(Open::Race);
                    open = suspicion.or(state.wonders.take().map(Open::Loop));
                    state.must_follow
                };
                if open.is_none() && !must_follow {
                    self.begun = std::mem::take(&mut taken);
                    return Some(finish);
                }
                if !matches!(open, Some(Open::Loop(_))) {
                    // It may have been left on a way that leads further.
                    let reached = self.taken();
                    if reached.len() > taken.len() {
                        taken = reached;
                    }
                    if world::is_spoiled() {
                        return None;
                    }
                    continue;
                }
                let before = std::mem::replace(&mut taken, self.taken());
                let known = std::mem::replace(&mut lessons, self.program.loops.changes());
                in_place = match before.len() == taken.len() && known == lessons {
                    true => in_place + 1,
                    false => 0,
                };
                if in_place > self.state().order.len() {
                    // It is somewhere else each time.
                    return Some(Finish::Failed(lost()));
                }
                if world::is_spoiled() {
                    return None;
                }
            }
        });
        finish.unwrap_or_else(|| elsewhere(|| self.run_from(taken, open, director)))
    }

    /// All of the last execution.
    fn taken(&self) -> Vec<Taken> {
        let state = self.state();
        let events = state.events.iter();
        let taken = events.map(|event| Taken {
            transition: (event.thread, event.way),
            operation: Some(event.operation),
        });
        taken.collect()
    }

    pub(in super::super) fn begin(&mut self) {
        let program = Arc::clone(&self.program);
        self.is_abandoned = self.program.leaves.load(Relaxed);
        self.world.begin(Box::new(move || (program.main)()));
        self.start_newborn();
    }

    /// Runs the program along decisions that have been taken, and on from there, up to where it must be known whether a
    /// loop ends by itself.
    fn run_on(&mut self, taken: &[Taken], director: &mut dyn Director) -> Finish {
        self.begin();
        let finish = match self.follow(taken) {
            Ok(()) => self.conduct(director),
            Err(finish) => finish,
        };
        self.take_apart();
        self.world.disturbance().map_or(finish, Finish::Failed)
    }

    /// Goes the way of an earlier execution.
    fn follow(&mut self, taken: &[Taken]) -> Result<(), Finish> {
        self.world.state().borrow_mut().ahead.prescribe(taken);
        loop {
            let mut state = self.world.state().borrow_mut();
            if let Some(failure) = &state.failure {
                return Err(Finish::Failed(failure.clone()));
            }
            if self.world.is_over() {
                return Err(Finish::Left);
            }
            let Some(thread) = state.ahead.next_thread() else {
                return Ok(());
            };
            if !state.goes_ahead(thread) {
                return Err(Finish::Failed(lost()));
            }
            drop(state);
            self.go_on(thread);
        }
    }

    /// Finds out whether a thread that goes round leaves its loop by itself, in an execution in which nothing happens but what
    /// led it there in an earlier one. False where it did not come there again.
    fn probe(&mut self, taken: &[Taken], thread: ThreadId) -> bool {
        let (this, way) = {
            let state = self.state();
            (state.loop_of(thread), state.way_to(thread))
        };
        let Some(this) = this else {
            return false;
        };
        // Where less happens than did, things have other numbers.
        let way: Vec<Taken> = way.into_iter().map(Taken::any).collect();
        self.world.set_scrutiny(Scrutiny::Ignore);
        // All that has happened is a way as well, if there should be none but that.
        let came_there = [&way[..], taken].into_iter().any(|way| {
            let lessons = self.program.loops.changes();
            self.begin();
            let came_there = self.follow(way).is_ok() && self.go_on_alone(thread, this, lessons);
            self.take_apart();
            came_there
        });
        self.world.set_scrutiny(Scrutiny::Judge);
        came_there
    }

    /// Has a thread go on alone in a loop, and learns of it what comes out if no more was known in the end than the `lessons`
    /// with which the execution began. False where the thread is not in that loop.
    fn go_on_alone(&mut self, thread: ThreadId, this: Instance, lessons: u64) -> bool {
        let (way, operations) = {
            let state = self.world.state().borrow();
            if state.loop_of(thread) != Some(this) {
                return false;
            }
            let operations = state.thread(thread).round.operations();
            (state.events.len(), operations)
        };
        let loops = Arc::clone(&self.program.loops);
        let mut probed = Probed::Left(0);
        let mut habit = Habit {
            acts: false,
            reads_clock: false,
        };
        for step in 0.. {
            let mut state = self.world.state().borrow_mut();
            let round = &state.thread(thread).round;
            if state.failure.is_some() || !round.is_made_of(&operations) {
                break;
            }
            probed = Probed::Left(round.turns);
            habit = Habit {
                acts: round.acts,
                reads_clock: round.reads_clock,
            };
            if step % BETWEEN_LOOKS == 0 && step >= loops.far(this, habit) {
                probed = Probed::Stayed;
                break;
            }
            let Some(way) = state.same_way(thread) else {
                break;
            };
            state.perform(thread, way);
            drop(state);
            self.go_on(thread);
        }
        // What another worker has learnt meanwhile changes what counts as new, so that the loop seems to be left.
        if loops.changes() == lessons {
            let places = self.state().last_places(thread, way);
            loops.learn(this, probed, habit, places.into_iter());
        }
        true
    }

    fn conduct(&mut self, director: &mut dyn Director) -> Finish {
        loop {
            let enabled = &mut self.enabled;
            let thread = {
                let mut state = self.world.state().borrow_mut();
                if let Some(failure) = &state.failure {
                    return Finish::Failed(failure.clone());
                }
                if self.world.is_over() {
                    return Finish::Left;
                }
                state.enabled(&mut self.ways, enabled);
                if state.wonders.is_some() {
                    return Finish::Left;
                }
                if enabled.is_empty() {
                    let mut threads = state.order.iter();
                    let leaked = self.program.setting.reports_leaks.then(|| state.leaked());
                    return match threads.all(|&thread| state.thread(thread).ended) {
                        true => match leaked.flatten() {
                            None => Finish::Complete,
                            Some((object, owners)) => Finish::Failed(leak(object.made, owners)),
                        },
                        false => match state.limit_of_hope() {
                            None => Finish::Stuck,
                            Some(limit) => Finish::Failed(limit),
                        },
                    };
                }
                let Some((thread, way)) = director.next(&state, enabled) else {
                    return Finish::Left;
                };
                debug_assert!(enabled.contains(&(thread, way)));
                state.perform(thread, way);
                thread
            };
            self.go_on(thread);
        }
    }

    /// Has a thread run to its next operation.
    pub(in super::super) fn go_on(&mut self, thread: ThreadId) {
        loop {
            self.world.set_running(thread);
            self.world.set_stack(self.rooms[thread.0 as usize]);
            let fiber = self.fibers[thread.0 as usize].as_mut();
            let fiber = fiber.expect("a thread that can go on has not ended");
            let (result, trapped) =
                watchdog::inside(self.world.pulse(), fiber.trap_handler(), || {
                    fiber.resume(())
                });
            if let CoroutineResult::Return(()) = result
                && let Some(fiber) = self.fibers[thread.0 as usize].take()
            {
                match trapped {
                    // Something real may still point into it.
                    Some(_) => std::mem::forget(fiber.into_stack()),
                    None => {
                        let size = self.rooms[thread.0 as usize].size;
                        self.stacks.give_back(size, fiber.into_stack());
                    }
                }
            }
            if let Some(trapped) = trapped {
                self.is_abandoned = true;
                if trapped == Trapped::Blocked {
                    self.program.blocks.store(true, Relaxed);
                }
                self.world.fail_trapped(thread, trapped);
                return;
            }
            if !self.start_newborn() {
                return;
            }
            if self.world.is_over() {
                return;
            }
        }
    }

    /// Has a thread that was just spawned run to its first operation; false when there is none.
    fn start_newborn(&mut self) -> bool {
        let newborn = self.world.state().borrow_mut().newborn.take();
        let Some(Newborn {
            thread,
            body,
            stack_size,
        }) = newborn
        else {
            return false;
        };
        let size = self.stacks.size(stack_size);
        let stack = match self.stacks.take(size) {
            Ok(stack) => stack,
            Err(error) => {
                // What it owns is never dropped, as nobody is there to do that.
                std::mem::forget(body);
                self.world.fail_for_want_of_a_stack(thread, size, &error);
                return false;
            }
        };
        let room = Room::new(&stack, size);
        let world = &raw const *self.world;
        let fiber = Fiber::with_stack(stack, move |yielder, ()| {
            // SAFETY: the world is boxed in the executor, which takes its fibers apart before it is dropped.
            unsafe { &*world }.live(thread, yielder, body);
        });
        let at = thread.0 as usize;
        if self.fibers.len() <= at {
            self.fibers.resize_with(at + 1, || None);
            self.rooms.resize(at + 1, Room::default());
        }
        self.fibers[at] = Some(fiber);
        self.rooms[at] = room;
        self.go_on(thread);
        true
    }

    /// Takes threads that have not ended out of the execution, children before their parents.
    pub(in super::super) fn take_apart(&mut self) {
        self.world.end();
        let count = self.world.state().borrow().order.len();
        for which in (0..count).rev() {
            let thread = self.world.state().borrow().order[which];
            let at = thread.0 as usize;
            let Some(mut fiber) = self.fibers.get_mut(at).and_then(Option::take) else {
                continue;
            };
            self.world.set_running(thread);
            let mut is_trapped = false;
            let unwound = !self.is_abandoned && {
                let handler = fiber.trap_handler();
                let pulse = self.world.pulse();
                let (result, trapped) = watchdog::inside(pulse, handler, || fiber.resume(()));
                is_trapped = trapped.is_some();
                if is_trapped {
                    // What panics while it unwinds is not unwound any more.
                    self.is_abandoned = true;
                    self.program.leaves.store(true, Relaxed);
                }
                matches!(result, CoroutineResult::Return(()))
            };
            if !unwound {
                // SAFETY: what is on its stack is never dropped, and nothing outside borrows from it: threads that do
                // are younger, and have been taken apart before, or are not touched any more either.
                unsafe { fiber.force_reset() };
            }
            if world::is_spoiled() {
                self.program.spoils.store(true, Relaxed);
            }
            let is_spoiled = world::is_spoiled() || std::thread::panicking();
            match is_trapped || !unwound && is_spoiled {
                // Something real may still point into it.
                true => std::mem::forget(fiber.into_stack()),
                false => self
                    .stacks
                    .give_back(self.rooms[at].size, fiber.into_stack()),
            }
        }
        if std::thread::panicking() {
            // Somebody was given up while it unwound: whatever runs here next would seem to unwind, too.
            world::spoil();
            self.program.spoils.store(true, Relaxed);
        }
        self.world.forget_sockets();
    }
}
