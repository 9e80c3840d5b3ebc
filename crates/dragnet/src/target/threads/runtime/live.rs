//! An execution that is paused between its steps.
//!
//! It belongs to the OS thread on which it was begun: coroutines do not move. Where that can run no further execution, it goes
//! on on an OS thread of its own, which does one step at a time for whoever has the execution.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use tracing::dispatcher::{self, Dispatch};

use super::super::describe;
use super::super::execution::ExecutionView;
use super::super::operation::{Action, ThreadId};
use super::executor::{Course, Executor, Finish, Left, Program, Taken, Transition};
use super::world;
use crate::system::{Actor, Failure, Task};
use crate::trace::Step;

/// What an execution has come to by a step.
#[derive(Clone, Default)]
pub(in super::super) struct Report {
    /// The last event in the hash of what has happened.
    pub(in super::super) hash: u64,
    pub(in super::super) enabled: Vec<Transition>,
    /// The task of each of them, and what it is about.
    pub(in super::super) tasks: Vec<(Task, u64)>,
    /// The threads that have not ended.
    pub(in super::super) waiting: Vec<Actor>,
    pub(in super::super) has_yielded: bool,
    /// The last event as a person reads it, if events are told.
    pub(in super::super) told: Option<Step>,
    /// How many steps had to be taken again to come there.
    pub(in super::super) repeated: u64,
}

/// An execution that is resumed for each step.
pub(in super::super) struct Live {
    program: Arc<Program>,
    place: Place,
    is_told: bool,
    report: Report,
}

enum Place {
    Nowhere,
    Here(Box<Resumed>),
    Apart(Servant),
}

impl Live {
    /// An execution that begins when its first step is taken. Where it is told to a person, values are known.
    pub(in super::super) fn new(program: Arc<Program>, is_told: bool) -> Self {
        Self {
            program,
            place: Place::Nowhere,
            is_told,
            report: Report::default(),
        }
    }

    /// Takes a step behind those of `before`, which are taken first where that has not been done. What it comes to is
    /// `reported`.
    pub(in super::super) fn take(
        &mut self,
        before: &[Transition],
        next: Transition,
        executor: impl FnOnce() -> Executor,
    ) -> Result<(), Failure> {
        if let Place::Nowhere = self.place {
            let executor = executor();
            executor.set_told(self.is_told);
            self.place = Place::Here(Box::new(Resumed::new(executor, self.is_told)));
        }
        self.report.repeated = 0;
        loop {
            let must_part = match &mut self.place {
                Place::Nowhere => unreachable!("there is an executor"),
                Place::Here(_) if self.program.spoils() || world::is_spoiled() => true,
                Place::Here(resumed) => match resumed.take(before, next, &mut self.report) {
                    Some(done) => {
                        // Another execution may run on this OS thread, where a thread of this one unwinds.
                        if std::thread::panicking() {
                            resumed.set_aside();
                        }
                        return done;
                    }
                    None => true,
                },
                Place::Apart(servant) => {
                    let before = before.to_vec();
                    let taken = servant.order(move |resumed| {
                        let mut report = Report::default();
                        let done = resumed.take(&before, next, &mut report);
                        (done, report)
                    });
                    let repeated = self.report.repeated;
                    self.report = taken.1;
                    self.report.repeated += repeated;
                    match taken.0 {
                        Some(done) => return done,
                        None => true,
                    }
                }
            };
            if must_part {
                self.place = match std::mem::replace(&mut self.place, Place::Nowhere) {
                    Place::Here(mut resumed) => {
                        resumed.set_aside();
                        Place::Apart(Servant::start(*resumed))
                    }
                    Place::Apart(servant) => Place::Apart(Servant::start(servant.end())),
                    Place::Nowhere => unreachable!("it has just been somewhere"),
                };
            }
        }
    }

    /// What the last step has come to.
    pub(in super::super) fn report(&self) -> &Report {
        &self.report
    }

    /// What a thread waits for behind the last step.
    pub(in super::super) fn awaited(&self, thread: ThreadId) -> Option<String> {
        let awaited = move |resumed: &mut Resumed| {
            let names = Arc::clone(&resumed.program().names);
            describe::awaited(&resumed.executor.state(), thread, &names)
        };
        match &self.place {
            Place::Nowhere => None,
            Place::Here(resumed) => {
                describe::awaited(&resumed.executor.state(), thread, &self.program.names)
            }
            Place::Apart(servant) => servant.order(awaited),
        }
    }

    /// Takes the execution apart, and gives the executor back if it can run others on this OS thread. `note` is shown the
    /// execution, and how many of its operations were judged as if they were sequentially consistent.
    pub(in super::super) fn end(
        &mut self,
        note: impl FnOnce(ExecutionView<'_>, u64),
    ) -> Option<Executor> {
        let (mut resumed, is_here) = match std::mem::replace(&mut self.place, Place::Nowhere) {
            Place::Nowhere => return None,
            Place::Here(resumed) => (*resumed, true),
            Place::Apart(servant) => (servant.end(), false),
        };
        resumed.set_aside();
        let Resumed { executor, .. } = resumed;
        note(executor.last_execution().view(), executor.weakly_ordered());
        (is_here && !world::is_spoiled()).then_some(executor)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end(|_, _| {});
    }
}

/// An executor with an execution that is paused, or that is begun when it is to go on.
struct Resumed {
    executor: Executor,
    course: Option<Course>,
    is_open: bool,
    is_told: bool,
}

impl Resumed {
    fn new(executor: Executor, is_told: bool) -> Self {
        Self {
            executor,
            course: None,
            is_open: false,
            is_told,
        }
    }

    fn program(&self) -> &Arc<Program> {
        self.executor.program()
    }

    /// Takes a step, and says how it failed if it did. `None` where this OS thread cannot run the execution any more.
    fn take(
        &mut self,
        before: &[Transition],
        next: Transition,
        report: &mut Report,
    ) -> Option<Result<(), Failure>> {
        let left = self.advance(before, next, report).err();
        let is_open = left.is_none();
        let done = match left {
            None | Some(Left::Ended(Finish::Complete | Finish::Stuck)) => Ok(()),
            Some(Left::Ended(Finish::Failed(failure))) => Err(failure),
            Some(Left::Ended(Finish::Left)) => Err(super::super::lost()),
            Some(Left::Spoiled) => return None,
        };
        let state = self.executor.state();
        report.enabled.clear();
        report.tasks.clear();
        if is_open {
            let enabled = self.executor.enabled();
            report.enabled.extend_from_slice(enabled);
            let tasks = enabled.iter().map(|&transition| state.task_of(transition));
            report.tasks.extend(tasks);
        }
        report.waiting.clear();
        report.waiting.extend(state.waiting());
        let last = state.events.last();
        report.hash = last.map_or(0, |last| state.hash_of(last));
        report.has_yielded = last.is_some_and(|last| last.operation.action == Action::Yield);
        report.told = self
            .is_told
            .then(|| describe::last_step(&state, &self.program().names));
        Some(done)
    }

    fn advance(
        &mut self,
        before: &[Transition],
        next: Transition,
        report: &mut Report,
    ) -> Result<(), Left> {
        let along = || Course::along(before.iter().copied().map(Taken::any).collect());
        let course = self.course.get_or_insert_with(along);
        if !self.is_open {
            self.executor.open(course)?;
            self.is_open = true;
            report.repeated += before.len() as u64 + (course.begun - 1) * course.taken.len() as u64;
        }
        let reached = self.executor.state().events.len();
        if reached > before.len() {
            // It had been taken on another OS thread.
            return Ok(());
        }
        if reached < before.len() || !self.executor.enabled().contains(&next) {
            self.executor.close();
            self.is_open = false;
            return Err(Left::Ended(Finish::Failed(super::super::lost())));
        }
        let begun = course.begun;
        let stepped = self.executor.step(course, next);
        report.repeated += (course.begun - begun) * (before.len() as u64 + 1);
        self.is_open = stepped.is_ok();
        stepped
    }

    /// Takes the execution apart; it is begun anew when it is to go on.
    fn set_aside(&mut self) {
        if self.is_open {
            self.is_open = false;
            self.course = Some(self.executor.course());
            if std::thread::panicking() && !self.executor.is_unwinding() {
                // Whoever has the execution unwinds: no thread of it can be told to.
                self.executor.abandon();
            }
            self.executor.close();
        }
    }
}

/// What is handed to another OS thread, and used there alone from then on.
struct Handed<T>(T);

// SAFETY: an execution that was set aside has no coroutines, and nothing in its executor belongs to an OS thread.
unsafe impl Send for Handed<Resumed> {}

type Order = Box<dyn FnOnce(&mut Resumed) + Send>;

/// An OS thread that runs one execution.
struct Servant {
    orders: Sender<Order>,
    thread: JoinHandle<Handed<Resumed>>,
}

impl Servant {
    fn start(resumed: Resumed) -> Self {
        let (orders, received): (Sender<Order>, Receiver<Order>) = channel();
        let resumed = Handed(resumed);
        let serve = move || {
            let mut resumed = { resumed };
            dispatcher::with_default(&Dispatch::none(), || {
                while let Ok(order) = received.recv() {
                    order(&mut resumed.0);
                }
                resumed.0.set_aside();
            });
            resumed
        };
        Self {
            orders,
            thread: std::thread::spawn(serve),
        }
    }

    /// Has something done there, and waits for what comes of it.
    fn order<R: Send + 'static>(&self, work: impl FnOnce(&mut Resumed) -> R + Send + 'static) -> R {
        let (answers, answered) = channel();
        let order: Order = Box::new(move |resumed| {
            let _ = answers.send(work(resumed));
        });
        self.orders
            .send(order)
            .expect("it is there until it is ended");
        answered.recv().expect("it does what it is told")
    }

    /// Ends it, with its execution set aside.
    fn end(self) -> Resumed {
        drop(self.orders);
        match self.thread.join() {
            Ok(Handed(resumed)) => resumed,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}
