//! One execution of a program, as its threads see it: what they come to, and when they go on.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::io;
use std::panic::{self, AssertUnwindSafe, Location};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use corosensei::Yielder;

use super::super::clocks::Row;
use super::super::data_race::{self, DataRaces, Scrutiny};
use super::super::handle::{Handle, Serial};
use super::super::happens_before::Atomic;
use super::super::host::Host;
use super::super::model::Model;
use super::super::names::Names;
use super::super::operation::{Action, ObjectId, Operation, ProcessId, ThreadId};
use super::super::state::State;
use super::super::thread_state::{Body, Newborn};
use super::executor::Program;
use super::stacks::Room;
use super::watchdog::{self, Pulse, Trapped};
use crate::panics;
use crate::quantity::Seed;
use crate::step_guard;
use crate::step_guard::controlled::ControlledThreads;
use crate::system::{Failure, FailureKind};
use crate::target::nodes::Faults;
use crate::trace::{GOLDEN, scatter};

thread_local! {
    static CURRENT: Cell<*const World> = const { Cell::new(ptr::null()) };
    /// Whether this thread of the operating system can run no further execution.
    static SPOILED: Cell<bool> = const { Cell::new(false) };
}

/// The execution that runs on this thread of the operating system, if one does.
#[inline]
pub(crate) fn current() -> Option<&'static World> {
    let world = CURRENT.get();
    // SAFETY: the pointer is set only while an executor, which owns the world, runs on this thread; the reference does
    // not leave the primitive that asks for it.
    unsafe { world.as_ref() }
}

/// Whether this thread of the operating system can run no further execution.
pub(crate) fn is_spoiled() -> bool {
    SPOILED.get()
}

/// This thread of the operating system can run no further execution.
pub(in super::super) fn spoil() {
    SPOILED.set(true);
}

/// Makes `world` the execution of this OS thread until it is dropped.
pub(in super::super) struct Entered {
    ends: bool,
}

impl Entered {
    /// The execution ends when this is dropped.
    pub(in super::super) fn new(world: &World) -> Self {
        Self::enter(world, true)
    }

    /// The execution is paused when this is dropped, unless it has [ended](World::end_serial) by then.
    pub(in super::super) fn for_a_step(world: &World) -> Self {
        Self::enter(world, false)
    }

    fn enter(world: &World, ends: bool) -> Self {
        assert!(
            CURRENT.replace(world).is_null(),
            "an execution runs inside another"
        );
        step_guard::controlled::register(ControlledThreads {
            is_running: || current().is_some(),
            on_panic: panic_that_ends_the_process,
            on_caught_panic: note_panic,
            on_exit: exit_that_ends_the_process,
            describe: describe_running,
        });
        Self { ends }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let world = CURRENT.replace(ptr::null());
        if self.ends {
            // SAFETY: the executor that has entered it owns it.
            unsafe { &*world }.end_serial();
        }
    }
}

/// The thread that runs on this OS thread, and where it was last, as far as that can be said.
fn describe_running() -> String {
    let Some(world) = current() else {
        return String::new();
    };
    let thread = world.running();
    let name = world.names.of(thread);
    let state = world.state.try_borrow();
    let last = state.ok().and_then(|state| state.last_place(thread));
    last.map_or_else(|| name.to_string(), |at| format!("{name}, after {at}"))
}

/// Whether the running thread unwinds because of a panic.
pub(crate) fn is_panicking() -> bool {
    std::thread::panicking() && current().is_none_or(World::is_running_panicking)
}

/// Takes note that the running thread begins to unwind.
fn note_panic() {
    if let Some(world) = current()
        && let Ok(mut state) = world.state.try_borrow_mut()
    {
        let running = state.threads.get_mut(world.running.get().0 as usize);
        if let Some(thread) = running.and_then(Option::as_mut) {
            thread.panicking = true;
        }
    }
}

/// What is thrown to take a thread out of an execution that is over.
struct Over;

/// Whether a panic is nothing but a thread on its way out of an execution that is over.
pub(crate) fn is_over(payload: &(dyn Any + Send)) -> bool {
    payload.is::<Over>()
}

/// Where something panics: a thread that is on its way out of an execution that is over would end the process, as whatever
/// panics while it unwinds does, and what is `fatal` anyway. It is taken out of the coroutine where it does.
///
/// The thread of the operating system is not as it was after this, and runs no execution any more.
fn panic_that_ends_the_process(fatal: bool) {
    if let Some(world) = current()
        && let Ok(state) = world.state.try_borrow()
        && (fatal || world.is_over() && state.thread(world.running()).told > 0)
    {
        spoil();
        watchdog::expect_abort();
    }
}

/// Takes the running thread, which ends the process, out of its execution.
fn exit_that_ends_the_process(status: i32) {
    if current().is_some() {
        spoil();
        watchdog::exit(status);
    }
}

/// How much room on its stack a thread needs for an operation, and to unwind.
pub(in super::super) const HEADROOM: usize = 24 << 10;

/// How often a thread may catch that, or go on with something else on its way out.
const PATIENCE: u32 = 1_000;

/// How a program is run.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) stack_bytes: usize,
    /// How often threads may wake up for no reason at one condition variable.
    pub(crate) spurious_wakeups: u32,
    /// Whether a panic of a thread is only told to who joins it.
    pub(crate) panics_are_fine: bool,
    /// How often a thread may go round without seeing anything new while others can go on.
    pub(crate) fruitless_turns: u32,
    /// How long a thread may run without coming to an operation.
    pub(crate) patience: Duration,
    /// What may go wrong.
    pub(crate) faults: Faults,
    /// What random numbers follow from.
    pub(crate) seed: Seed,
    /// Whether no `Arc` of `std` orders accesses to checked cells.
    pub(crate) without_std_arcs: bool,
    /// Whether it is a failure that values still have owners at the end.
    pub(crate) reports_leaks: bool,
}

/// A destructor of a last owner is under way.
pub(in super::super) struct InDestructor<'a>(&'a World);

impl Drop for InDestructor<'_> {
    fn drop(&mut self) {
        let Self(world) = self;
        world
            .destructors
            .set(world.destructors.get().saturating_sub(1));
        if let Ok(mut state) = world.state.try_borrow_mut() {
            state.thread_mut(world.running.get()).destroying.pop();
        }
    }
}

pub(crate) struct World {
    serial: Serial,
    pub(in super::super) setting: Setting,
    names: Arc<Names>,
    pulse: Arc<Pulse>,
    over: Cell<bool>,
    running: Cell<ThreadId>,
    /// Where the stack of the running thread ends.
    floor: Cell<usize>,
    /// The size of that stack, as the program or the check asked for it.
    stack_size: Cell<usize>,
    weakly_ordered: Cell<u64>,
    races: Arc<DataRaces>,
    scrutiny: Cell<Scrutiny>,
    /// Whether atomic operations are followed by happens-before clocks.
    follows_races: Cell<bool>,
    /// How many destructors of last owners are under way.
    destructors: Cell<u32>,
    /// The value that the next atomic operation is to find.
    forced: Cell<Option<u64>>,
    /// Whether the execution is told to a person.
    told: Cell<bool>,
    state: RefCell<State>,
}

impl World {
    pub(in super::super) fn new(program: &Program) -> Self {
        let setting = program.setting.clone();
        let loops = Arc::clone(&program.loops);
        Self {
            serial: Serial::register(),
            names: Arc::clone(&program.names),
            pulse: Pulse::new(),
            over: Cell::new(true),
            running: Cell::new(Names::MAIN),
            floor: Cell::new(0),
            stack_size: Cell::new(0),
            weakly_ordered: Cell::new(0),
            races: Arc::clone(&program.races),
            scrutiny: Cell::default(),
            follows_races: Cell::new(false),
            destructors: Cell::new(0),
            forced: Cell::new(None),
            told: Cell::new(false),
            state: RefCell::new(State::new(setting.fruitless_turns, loops)),
            setting,
        }
    }

    /// Begins a new execution, with `main` as its first thread.
    pub(in super::super) fn begin(&self, main: Body) {
        self.serial.begin();
        self.over.set(false);
        self.weakly_ordered.set(0);
        self.destructors.set(0);
        let mut state = self.state.borrow_mut();
        state.clear();
        state.follows_races = self.races.follows();
        self.follows_races.set(state.follows_races);
        let name = Some("main".to_owned());
        let hash = self.names.hash(Names::MAIN);
        state.hosts.push(Host::first());
        let first = ProcessId::FIRST;
        state.add_thread(Names::MAIN, hash, name, first, Row::NOTHING, Duration::ZERO);
        state.newborn = Some(Newborn {
            thread: Names::MAIN,
            body: main,
            stack_size: None,
        });
    }

    /// From here on nothing belongs to the execution any more, whoever comes to it.
    pub(in super::super) fn end_serial(&self) {
        self.serial.end();
    }

    /// The number of the execution, which no other has.
    pub(crate) fn serial(&self) -> u64 {
        self.serial.get()
    }

    /// Tells that an execution goes on.
    pub(super) fn pulse(&self) -> &Arc<Pulse> {
        &self.pulse
    }

    pub(in super::super) fn state(&self) -> &RefCell<State> {
        &self.state
    }

    pub(in super::super) fn set_running(&self, thread: ThreadId) {
        self.running.set(thread);
    }

    /// The thread that runs.
    pub(crate) fn running(&self) -> ThreadId {
        self.running.get()
    }

    /// From here on primitives do nothing, and threads are taken apart.
    pub(in super::super) fn end(&self) {
        self.over.set(true);
    }

    /// How the execution fails if a thread that the check does not know has come to something in it.
    pub(in super::super) fn disturbance(&self) -> Option<Failure> {
        let why = self.serial.take_disturbance()?;
        Some(Failure::new(FailureKind::Nondeterminism, why, None))
    }

    /// Whether the execution is over, and primitives do nothing.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// The running thread does something to an object that others can notice, and goes on when it is its turn. `None`
    /// when the execution is over.
    #[inline]
    pub(crate) fn operate(
        &self,
        handle: &Handle,
        model: impl FnOnce() -> Model,
        action: Action,
        at: &'static Location<'static>,
    ) -> Option<u32> {
        if self.over.get() {
            self.leave_if_over();
            return None;
        }
        let object = self.object(handle, model);
        self.share(object, handle);
        self.operate_on(object, action, at)
    }

    /// Ends the execution if the running thread comes to something that another process has.
    #[inline]
    pub(in super::super) fn share(&self, object: ObjectId, handle: &Handle) {
        if self.state.borrow().hosts.len() > 1 {
            self.share_among_processes(object, handle);
        }
    }

    fn share_among_processes(&self, object: ObjectId, handle: &Handle) {
        let mut state = self.state.borrow_mut();
        let mine = state.thread(self.running.get()).process;
        if mine == ProcessId::FIRST || mine == ProcessId::OUTSIDE {
            return;
        }
        let known = &mut state.objects[object.0 as usize].process;
        let owner = *known.get_or_insert(mine);
        if owner != mine {
            let name = |id: ProcessId| state.hosts[id.0 as usize].name.clone();
            let (one, other) = (name(owner), name(mine));
            drop(state);
            let made = handle.made();
            self.refuse(format!(
                "{one} and {other} share what was made at {made}, and processes share nothing but the network"
            ));
        }
    }

    /// The same for the running thread itself.
    pub(crate) fn operate_on_self(
        &self,
        action: Action,
        at: &'static Location<'static>,
    ) -> Option<u32> {
        self.operate_on(self.object_of(self.running()), action, at)
    }

    /// The same for a known object.
    pub(crate) fn operate_on(
        &self,
        object: ObjectId,
        action: Action,
        at: &'static Location<'static>,
    ) -> Option<u32> {
        if self.over.get() {
            self.leave_if_over();
            return None;
        }
        let me = self.running.get();
        let here = 0_u8;
        if (&raw const here as usize) < self.floor.get() + HEADROOM {
            // To overflow it in here would leave what is shared in the middle of a change.
            self.fail_trapped(me, Trapped::Overflow);
            self.leave_if_over();
            return None;
        }
        self.note_in_destructor();
        {
            let mut state = self.state.borrow_mut();
            let this = state.thread_mut(me);
            this.pending = Some(Operation { object, action, at });
            this.depth = &raw const here as usize - self.floor.get();
            if state.ahead.is_of_same(me) && state.goes_ahead(me) {
                // Nobody has to be asked who goes on.
                self.pulse.beat();
                return Some(state.thread(me).answer);
            }
        }
        self.suspend(me);
        if self.over.get() {
            self.leave_if_over();
            return None;
        }
        Some(self.state.borrow().thread(me).answer)
    }

    /// The running thread has dropped the last owner of a value, and drops the value.
    pub(in super::super) fn enter_destructor(&self) -> InDestructor<'_> {
        let mut state = self.state.borrow_mut();
        let this = state.thread_mut(self.running.get());
        this.destroying.push(this.latest);
        self.destructors.set(self.destructors.get() + 1);
        InDestructor(self)
    }

    /// The running thread comes to an operation or a checked cell. If it does so in a destructor, it matters who has run that.
    #[inline]
    pub(in super::super) fn note_in_destructor(&self) {
        if self.destructors.get() > 0 {
            self.state
                .borrow_mut()
                .note_in_destructor(self.running.get());
        }
    }

    /// Whether the running thread unwinds, when somebody does. That is all that is known outside: a thread that stands
    /// still in the middle of a panic counts as if it were the one that runs.
    fn is_running_panicking(&self) -> bool {
        let me = self.running.get();
        let state = self.state.borrow();
        let mut others = state.order.iter().filter(|&&other| other != me);
        match others.any(|&other| state.thread(other).panicking) {
            true => state.thread(me).panicking,
            false => true,
        }
    }

    /// Lets the executor go on, until it is the thread's turn again.
    pub(in super::super) fn suspend(&self, me: ThreadId) {
        let panicking = is_panicking();
        let yielder = {
            let mut state = self.state.borrow_mut();
            let this = state.thread_mut(me);
            this.panicking = panicking;
            this.yielder
        };
        // SAFETY: the thread runs, so the coroutine whose yielder this is runs on the present stack.
        unsafe { (*yielder).suspend(()) };
        self.running.set(me);
    }

    /// In an execution that is over, takes the running thread out of it, unless it is on its way.
    pub(in super::super) fn leave_if_over(&self) {
        let me = self.running.get();
        let told = {
            let mut state = self.state.borrow_mut();
            let this = state.thread_mut(me);
            this.told += 1;
            this.told
        };
        if told > PATIENCE {
            // It catches whatever it is told, or never comes to an end: it is left where it is.
            SPOILED.set(SPOILED.get() || std::thread::panicking());
            self.suspend(me);
        }
        if !is_panicking() {
            note_panic();
            panic::resume_unwind(Box::new(Over));
        }
    }

    /// In an execution that is over, leaves the running thread where it is, for want of anything that it could be told.
    pub(crate) fn stay(&self) -> ! {
        loop {
            self.suspend(self.running.get());
        }
    }

    /// Ends the execution because it uses something that was made before it.
    pub(crate) fn refuse_older(&self, made: &'static Location<'static>) -> ! {
        self.refuse(format!(
            "what was made at {made} is older than the execution; make it inside, with dragnet::thread_local! where each thread has its own"
        ))
    }

    /// Ends the execution because it cannot be judged.
    pub(crate) fn refuse(&self, why: String) -> ! {
        self.fail(Failure::new(FailureKind::Nondeterminism, why, None));
        note_panic();
        panic::resume_unwind(Box::new(Over));
    }

    /// Ends the execution because of a limit of the checker, which says nothing of the program.
    pub(crate) fn exceed(&self, limit: String) -> ! {
        self.fail(Failure::new(FailureKind::Limit, limit, None));
        note_panic();
        panic::resume_unwind(Box::new(Over));
    }

    /// Ends the execution with a failure, unless it has failed already.
    pub(crate) fn fail(&self, failure: Failure) {
        let mut state = self.state.borrow_mut();
        state.failure.get_or_insert(failure);
        self.over.set(true);
    }

    /// There is no memory for a thread's stack: that says nothing of the program.
    pub(in super::super) fn fail_for_want_of_a_stack(
        &self,
        thread: ThreadId,
        size: usize,
        error: &io::Error,
    ) {
        let who = self.names.of(thread);
        let size = size >> 10;
        let message = format!(
            "there is no memory for the stack of {who}, of {size} KiB ({error}): start fewer threads, or make their stacks \
             smaller (`Threads::stack_size`, `thread::Builder::stack_size`)"
        );
        self.fail(Failure::new(FailureKind::Nondeterminism, message, None));
    }

    /// A thread was taken out of the execution because it could not go on.
    pub(super) fn fail_trapped(&self, thread: ThreadId, trapped: Trapped) {
        let who = self.names.of(thread);
        let last = self.state.borrow().last_place(thread);
        let message = match trapped {
            Trapped::Aborted => format!("{who} panicked while it unwound"),
            Trapped::Exited(status) => {
                spoil();
                step_guard::note_exit(status);
                format!("{who} ended the process with status {status}")
            }
            Trapped::Overflow => {
                let size = self.stack_size.get() >> 10;
                format!(
                    "{who} overflowed its stack of {size} KiB; `Threads::stack_size` gives it more"
                )
            }
            Trapped::Blocked => {
                // Whatever it blocked on may still have this thread of the operating system among those who wait.
                spoil();
                let patience = self.setting.patience;
                format!(
                    "{who} has done nothing for {patience:?} that Dragnet sees: does it wait for something real, such as a \
                     lock or a socket of `std`, or compute for long? `Threads::patience` gives it more time"
                )
            }
        };
        let last = last.map(|at| format!("after {at}"));
        self.fail(Failure::new(FailureKind::Fault, message, last));
    }

    /// A new thread, a child of the running one. It runs up to its first operation at once: nobody can notice that.
    pub(crate) fn spawn(
        &self,
        name: Option<String>,
        stack_size: Option<usize>,
        body: Body,
    ) -> ThreadId {
        self.spawn_as(self.process(), name, stack_size, body)
    }

    /// The same for a thread of a process.
    pub(in super::super) fn spawn_as(
        &self,
        process: ProcessId,
        name: Option<String>,
        stack_size: Option<usize>,
        body: Body,
    ) -> ThreadId {
        let me = self.running.get();
        if self.over.get() {
            self.leave_if_over();
            // On its way out it starts nobody: who would be that is the thread itself, with which nothing is done any more.
            return me;
        }
        self.note_in_destructor();
        let child = {
            let mut state = self.state.borrow_mut();
            let parent = state.thread(me);
            let which = parent.children;
            // The threads of a process but the first are called by its name as well.
            let host = state.hosts.get(process.0 as usize);
            let inside = parent.process == process && process != ProcessId::FIRST;
            let known = match (host.filter(|_| inside), &name) {
                (Some(host), Some(name)) => Some(format!("{}/{name}", host.name)),
                (Some(host), None) => Some(format!("{}/thread {}", host.name, which + 1)),
                (None, name) => name.clone(),
            };
            let (child, hash) = self.names.child(me, which, known.as_deref());
            let this = state.thread_mut(me);
            this.children += 1;
            this.round.forget();
            let (row, time) = (this.row, this.time);
            state.add_thread(child, hash, name, process, row, time);
            if state.follows_races {
                state.happens_before.spawn(me, child);
            }
            state.thread_mut(child).parent = Some((me, which));
            state.newborn = Some(Newborn {
                thread: child,
                body,
                stack_size,
            });
            child
        };
        self.suspend(me);
        child
    }

    /// What a thread does, from its first to its last step.
    pub(in super::super) fn live(&self, me: ThreadId, yielder: &Yielder<(), ()>, body: Body) {
        self.state.borrow_mut().thread_mut(me).yielder = yielder;
        self.running.set(me);
        let lived = panic::catch_unwind(AssertUnwindSafe(body));
        if let Err(payload) = lived
            && !payload.is::<Over>()
            && (me == Names::MAIN || !self.setting.panics_are_fine)
        {
            self.fail(panics::failure(payload));
        }
        self.state.borrow_mut().thread_mut(me).panicking = false;
        self.forget_locals(me);
        if self.process() == ProcessId::OUTSIDE {
            // Nobody knows of it.
            self.state.borrow_mut().thread_mut(me).ended = true;
        } else if !self.over.get() {
            let object = self.state.borrow().thread(me).object;
            // The end of a thread is told to who joins it, and nobody unwinds out of it.
            let told = panic::catch_unwind(AssertUnwindSafe(|| {
                self.operate_on(object, Action::End, Location::caller());
            }));
            drop(told);
        }
    }

    /// Drops the running thread's own copies of thread-local values, the last first, as `std` does.
    fn forget_locals(&self, me: ThreadId) {
        loop {
            let value = {
                let mut state = self.state.borrow_mut();
                let this = state.thread_mut(me);
                let Some((key, value)) = this.locals.pop() else {
                    return;
                };
                this.forgotten.push(key);
                value
            };
            let dropped = panic::catch_unwind(AssertUnwindSafe(|| drop(value)));
            if let Err(payload) = dropped
                && !payload.is::<Over>()
            {
                self.fail(panics::failure(payload));
            }
        }
    }

    /// What the running thread is called.
    pub(in super::super) fn name_of_running(&self) -> String {
        self.names.of(self.running.get())
    }

    /// The object that is a thread.
    pub(crate) fn object_of(&self, thread: ThreadId) -> ObjectId {
        self.state.borrow().thread(thread).object
    }

    /// How often threads may wake up for no reason at one condition variable.
    pub(crate) fn spurious_wakeups(&self) -> u32 {
        self.setting.spurious_wakeups
    }

    /// What a thread calls itself.
    pub(crate) fn name_of(&self, thread: ThreadId) -> Option<String> {
        self.state.borrow().thread(thread).name.clone()
    }

    /// A channel has a sender more, which nobody can notice.
    pub(crate) fn add_sender(&self, handle: &Handle, model: impl FnOnce() -> Model) {
        if !self.over.get() {
            let object = self.object(handle, model);
            let mut state = self.state.borrow_mut();
            state.objects[object.0 as usize].model.add_sender();
        }
    }

    /// The last operation of the running thread, which could have changed something, did not.
    pub(crate) fn changed_nothing(&self) {
        if !self.over.get() {
            let thread = self.running.get();
            self.state.borrow_mut().take_back_change(thread);
        }
    }

    /// Whether executions are told to a person, who wants to know values.
    #[inline]
    pub(crate) fn is_told(&self) -> bool {
        self.told.get()
    }

    /// The stack of the thread that runs next.
    pub(in super::super) fn set_stack(&self, Room { floor, size }: Room) {
        self.floor.set(floor);
        self.stack_size.set(size);
    }

    pub(in super::super) fn set_told(&self, told: bool) {
        self.told.set(told);
    }

    /// Takes note of what a value was before the last operation of the running thread, and after it.
    pub(crate) fn tell(&self, before: String, after: String) {
        // What a thread does on its way out is not that operation.
        if self.over.get() {
            return;
        }
        let mut state = self.state.borrow_mut();
        state.thread_mut(self.running.get()).values = Some((before, after));
    }

    /// Takes note of an operation on an atomic value that asked for a weaker ordering than it gets.
    pub(crate) fn add_weakly_ordered(&self) {
        if !self.over.get() {
            self.weakly_ordered.set(self.weakly_ordered.get() + 1);
        }
    }

    pub(in super::super) fn data_races(&self) -> &DataRaces {
        &self.races
    }

    pub(in super::super) fn names(&self) -> &Names {
        &self.names
    }

    /// What is made of accesses to checked cells.
    pub(in super::super) fn scrutiny(&self) -> Scrutiny {
        self.scrutiny.get()
    }

    pub(in super::super) fn set_scrutiny(&self, scrutiny: Scrutiny) {
        self.scrutiny.set(scrutiny);
    }

    /// The next atomic operation finds this value.
    pub(in super::super) fn force(&self, value: Option<u64>) {
        self.forced.set(value);
    }

    /// Whether the next atomic operation [has to find](Self::forced) a certain value.
    #[inline]
    pub(crate) fn is_forced(&self) -> bool {
        self.forced.get().is_some()
    }

    /// What an atomic operation of the running thread has to find instead of `is`, if anything. Where that may be an
    /// address, the execution ends instead.
    #[cold]
    pub(crate) fn forced(&self, is: u64) -> Option<u64> {
        let forced = self.forced.take().filter(|&forced| forced != is)?;
        if self.over.get() {
            return None;
        }
        if data_race::may_be_address(forced) {
            let why = "a value of another execution may be an address".to_owned();
            self.fail(Failure::new(FailureKind::Nondeterminism, why, None));
            // It does not unwind either: what it would drop may rely on the value.
            self.stay();
        }
        Some(forced)
    }

    /// Whether atomic operations tell [how they came out](Self::order).
    #[inline]
    pub(crate) fn follows_races(&self) -> bool {
        self.follows_races.get() && !self.over.get()
    }

    /// The last operation of the running thread was this one on an atomic value, which found `value`.
    pub(crate) fn order(&self, handle: &Handle, atomic: Atomic, value: u64) {
        let object = self.object(handle, || Model::Memory);
        let thread = self.running.get();
        let state = &mut *self.state.borrow_mut();
        state.happens_before.order(thread, object, atomic, value);
    }

    /// A fence of the running thread.
    pub(crate) fn fence(&self, order: std::sync::atomic::Ordering) {
        if self.follows_races() {
            self.note_in_destructor();
            let thread = self.running.get();
            self.state.borrow_mut().happens_before.fence(thread, order);
        }
    }

    /// How many operations were judged as if they were sequentially consistent, and had not asked for it.
    pub(crate) fn weakly_ordered(&self) -> u64 {
        self.weakly_ordered.get()
    }

    /// The running thread's own value under a key, if it has one.
    pub(crate) fn local(&self, key: usize) -> Option<*const dyn Any> {
        let state = self.state.borrow();
        let mut locals = state.thread(self.running.get()).locals.iter();
        let (_, value) = locals.find(|(other, _)| *other == key)?;
        Some(&raw const **value)
    }

    /// Whether the running thread's own value under a key is gone, because the thread ends.
    pub(crate) fn has_forgotten(&self, key: usize) -> bool {
        let state = self.state.borrow();
        state.thread(self.running.get()).forgotten.contains(&key)
    }

    /// Gives the running thread a value of its own.
    pub(crate) fn set_local(&self, key: usize, value: Box<dyn Any>) {
        let mut state = self.state.borrow_mut();
        state
            .thread_mut(self.running.get())
            .locals
            .push((key, value));
    }

    /// The next random number of the running thread, from the seed, the thread, and how many it has drawn.
    pub(crate) fn draw(&self) -> u64 {
        let mut state = self.state.borrow_mut();
        let this = state.thread_mut(self.running.get());
        this.drawn += 1;
        let begin = scatter(scatter(self.setting.seed.0) ^ this.hash);
        scatter(begin.wrapping_add(this.drawn.wrapping_mul(GOLDEN)))
    }

    /// The time as the running thread knows it.
    pub(crate) fn time(&self) -> Duration {
        let mut state = self.state.borrow_mut();
        let this = state.thread_mut(self.running.get());
        this.round.reads_clock = true;
        this.time
    }

    /// Time passes for the running thread.
    pub(crate) fn pass(&self, time: Duration) {
        let mut state = self.state.borrow_mut();
        state.time_passes = true;
        let this = state.thread_mut(self.running.get());
        this.time = this.time.saturating_add(time);
    }
}
