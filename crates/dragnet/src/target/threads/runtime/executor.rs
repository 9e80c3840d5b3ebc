//! Runs a program again and again, each time as a director says.

use std::cell::Ref;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use super::super::data_race::{DataRaces, Scrutiny, Suspicion};
use super::super::execution::{ExecutionView, LastExecution};
use super::super::moments::lost;
use super::super::names::Names;
use super::super::operation::{Operation, ThreadId, Way};
use super::super::spin::termination::{Habit, Instance, Loops, Probed};
use super::super::state::State;
use super::super::thread_state::Newborn;
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

    /// Whether an execution has spoilt the OS thread that it ran on.
    pub(super) fn spoils(&self) -> bool {
        self.spoils.load(Relaxed)
    }

    /// Does work in which an execution is run, where it can do no harm.
    pub(crate) fn apart<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        if !self.spoils() && !world::is_spoiled() {
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
    fn next(&mut self, execution: ExecutionView<'_>, enabled: &[Transition]) -> Option<Transition>;

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
    pub(super) fn any(transition: Transition) -> Self {
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

/// What an execution is begun with, and what must be known before.
///
/// Where a thread goes round a loop of which nobody knows whether it ends by itself, or two accesses may be a data race, the
/// execution is left, other executions find that out, and it is begun anew along all that has been taken.
#[derive(Default)]
pub(in super::super) struct Course {
    pub(super) taken: Vec<Taken>,
    open: Option<Open>,
    /// How often it has been begun.
    pub(super) begun: u64,
    /// How often it has been begun anew without coming further or learning anything.
    in_place: usize,
    /// How much was known of the program's loops.
    revision: u64,
}

impl Course {
    pub(in super::super) fn along(taken: Vec<Taken>) -> Self {
        Self {
            taken,
            ..Self::default()
        }
    }
}

/// Why an execution does not go on.
pub(in super::super) enum Left {
    Ended(Finish),
    /// The OS thread can run no further execution, and this one has not ended: another one has to begin it anew.
    Spoiled,
}

/// Lists what is enabled, unless the execution is over, or must be left because something is not known that it takes to go
/// on.
#[inline]
fn stands(
    program: &Program,
    is_over: bool,
    state: &mut State,
    (ways, enabled): (&mut Vec<Way>, &mut Vec<Transition>),
) -> Option<Finish> {
    if let Some(failure) = &state.failure {
        return Some(Finish::Failed(failure.clone()));
    }
    if is_over {
        return Some(Finish::Left);
    }
    state.enabled(ways, enabled);
    if state.wonders.is_some() {
        return Some(Finish::Left);
    }
    match enabled.is_empty() {
        true => Some(ends(program, state)),
        false => None,
    }
}

/// How an execution ends in which nothing is enabled.
fn ends(program: &Program, state: &State) -> Finish {
    let mut threads = state.order.iter();
    let leaked = program.setting.reports_leaks.then(|| state.leaked());
    match threads.all(|&thread| state.thread(thread).ended) {
        true => match leaked.flatten() {
            None => Finish::Complete,
            Some((object, owners)) => Finish::Failed(leak(object.made, owners)),
        },
        false => match state.limit_of_hope() {
            None => Finish::Stuck,
            Some(limit) => Finish::Failed(limit),
        },
    }
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

    pub(super) fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Whether a thread of the execution unwinds.
    pub(super) fn is_unwinding(&self) -> bool {
        let state = self.state();
        let mut threads = state.order.iter();
        threads.any(|&thread| state.thread(thread).panicking)
    }

    /// The last execution.
    pub(crate) fn last_execution(&self) -> LastExecution<'_> {
        LastExecution::new(self.state())
    }

    /// The state of the last execution.
    pub(in super::super) fn state(&self) -> Ref<'_, State> {
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
        self.run_from(Course::along(taken), director)
    }

    pub(in super::super) fn world(&self) -> &World {
        &self.world
    }

    /// What is on the threads' stacks is not touched any more.
    pub(in super::super) fn abandon(&mut self) {
        self.is_abandoned = true;
    }

    /// How long a thread may run without coming to an operation.
    fn patience(&self) -> Duration {
        let patience = self.program.setting.patience;
        match self.program.has_blocked() {
            true => patience.min(SHORT_PATIENCE),
            false => patience,
        }
    }

    /// Runs the program along a course, and on from there as a director says.
    fn run_from(&mut self, mut course: Course, director: &mut dyn Director) -> Finish {
        let finish = panics::quietly(|| {
            let world = &raw const *self.world;
            // SAFETY: the world is boxed and lives as long as this executor.
            let _entered = Entered::new(unsafe { &*world });
            let pulse = Arc::clone(self.world.pulse());
            let _watched = watchdog::on_duty(&pulse, self.patience());
            course.revision = self.program.loops.revision();
            loop {
                let finish = match self.begin_along(&mut course) {
                    Ok(None) => self.conduct(director),
                    Ok(Some(finish)) => finish,
                    Err(Left::Ended(finish)) => return Some(finish),
                    Err(Left::Spoiled) => return None,
                };
                match self.end(&mut course, finish) {
                    Ok(()) => {}
                    Err(Left::Ended(finish)) => {
                        self.begun = std::mem::take(&mut course.taken);
                        return Some(finish);
                    }
                    Err(Left::Spoiled) => return None,
                }
            }
        });
        finish.unwrap_or_else(|| elsewhere(|| self.run_from(course, director)))
    }

    /// Begins an execution that is paused between its steps, along a course. It has to be [closed](Self::close), unless it
    /// could not be begun or is over at once.
    pub(super) fn open(&mut self, course: &mut Course) -> Result<(), Left> {
        watchdog::begin_duty(self.world.pulse(), self.patience());
        self.for_a_step(|executor| {
            course.revision = executor.program.loops.revision();
            executor.reach(course, false)
        })
    }

    /// Has a thread of a paused execution go on in a way that is enabled. Where the execution is over by that, it is closed.
    pub(super) fn step(
        &mut self,
        course: &mut Course,
        (thread, way): Transition,
    ) -> Result<(), Left> {
        self.for_a_step(|executor| {
            executor.world.state().borrow_mut().perform(thread, way);
            executor.go_on(thread);
            executor.reach(course, true)
        })
    }

    /// Takes a paused execution apart.
    pub(super) fn close(&mut self) {
        self.for_a_step(Self::take_apart);
        self.end_paused();
    }

    /// What is enabled in a paused execution.
    pub(super) fn enabled(&self) -> &[Transition] {
        &self.enabled
    }

    /// A course along all of the last execution.
    pub(super) fn course(&self) -> Course {
        Course::along(self.taken())
    }

    /// Brings a paused execution to where something is enabled. It is begun anew where something must be known before.
    fn reach(&mut self, course: &mut Course, mut is_begun: bool) -> Result<(), Left> {
        loop {
            let begun = match is_begun {
                true => Ok(None),
                false => self.begin_along(course),
            };
            let ended = begun.map(|finish| {
                let state = &mut *self.world.state().borrow_mut();
                let room = (&mut self.ways, &mut self.enabled);
                let is_over = self.world.is_over();
                finish.or_else(|| stands(&self.program, is_over, state, room))
            });
            let ended = match ended {
                Ok(None) => return Ok(()),
                Ok(Some(finish)) => self.end(course, finish),
                Err(left) => Err(left),
            };
            if ended.is_err() {
                self.end_paused();
                return ended;
            }
            is_begun = false;
        }
    }

    fn end_paused(&self) {
        self.world.end_serial();
        watchdog::end_duty(self.world.pulse());
    }

    /// Does work in an execution that is paused before and after it.
    fn for_a_step<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        panics::quietly(|| {
            let world = &raw const *self.world;
            // SAFETY: the world is boxed and lives as long as this executor.
            let _entered = Entered::for_a_step(unsafe { &*world });
            self.world.pulse().set_paused(false);
            let done = work(self);
            self.world.pulse().set_paused(true);
            done
        })
    }

    /// Finds out what is open, and begins an execution along a course. It may end on the way.
    fn begin_along(&mut self, course: &mut Course) -> Result<Option<Finish>, Left> {
        match course.open.take() {
            Some(Open::Loop(thread)) if !self.probe(&course.taken, thread) => {
                return Err(Left::Ended(Finish::Failed(lost())));
            }
            Some(Open::Race(suspicion)) => self.settle(&suspicion),
            _ => {}
        }
        if world::is_spoiled() && !course.taken.is_empty() {
            return Err(Left::Spoiled);
        }
        self.begin();
        course.begun += 1;
        Ok(self.replay_prefix(&course.taken).err())
    }

    /// Takes an execution apart that is over with `finish`, or left there because something must be known before it goes on:
    /// then it is to be begun anew along the course, which has all of it.
    fn end(&mut self, course: &mut Course, finish: Finish) -> Result<(), Left> {
        self.take_apart();
        let finish = self.world.disturbance().map_or(finish, Finish::Failed);
        let must_follow = {
            let mut state = self.world.state().borrow_mut();
            let suspicion = state.suspicion.take().map(Open::Race);
            course.open = suspicion.or(state.wonders.take().map(Open::Loop));
            state.must_follow
        };
        if course.open.is_none() && !must_follow {
            return Err(Left::Ended(finish));
        }
        if !matches!(course.open, Some(Open::Loop(_))) {
            // It may have been left on a way that leads further.
            let reached = self.taken();
            if reached.len() > course.taken.len() {
                course.taken = reached;
            }
        } else {
            let reached = self.taken();
            let before = std::mem::replace(&mut course.taken, reached);
            let revision = self.program.loops.revision();
            let known = std::mem::replace(&mut course.revision, revision);
            course.in_place = match before.len() == course.taken.len() && known == revision {
                true => course.in_place + 1,
                false => 0,
            };
            if course.in_place > self.state().order.len() {
                // It is somewhere else each time.
                return Err(Left::Ended(Finish::Failed(lost())));
            }
        }
        match world::is_spoiled() {
            true => Err(Left::Spoiled),
            false => Ok(()),
        }
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

    /// Goes the way of an earlier execution.
    fn replay_prefix(&mut self, taken: &[Taken]) -> Result<(), Finish> {
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
            let revision = self.program.loops.revision();
            self.begin();
            let came_there =
                self.replay_prefix(way).is_ok() && self.go_on_alone(thread, this, revision);
            self.take_apart();
            came_there
        });
        self.world.set_scrutiny(Scrutiny::Judge);
        came_there
    }

    /// Has a thread go on alone in a loop, and learns of it what comes out if no more facts were known in the end than
    /// at the `revision` with which the execution began. False where the thread is not in that loop.
    fn go_on_alone(&mut self, thread: ThreadId, this: Instance, revision: u64) -> bool {
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
        if loops.revision() == revision {
            let places = self.state().last_places(thread, way);
            loops.learn(this, probed, habit, places.into_iter());
        }
        true
    }

    fn conduct(&mut self, director: &mut dyn Director) -> Finish {
        loop {
            let thread = {
                let mut state = self.world.state().borrow_mut();
                let finish = stands(
                    &self.program,
                    self.world.is_over(),
                    &mut state,
                    (&mut self.ways, &mut self.enabled),
                );
                if let Some(finish) = finish {
                    return finish;
                }
                let Some((thread, way)) = director.next(ExecutionView::new(&state), &self.enabled)
                else {
                    return Finish::Left;
                };
                debug_assert!(self.enabled.contains(&(thread, way)));
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
