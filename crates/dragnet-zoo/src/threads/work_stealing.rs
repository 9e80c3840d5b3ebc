//! Workers that run the tasks of one deque: its owner takes them from one end, thieves from the other.
//!
//! The deque is that of Chase and Lev (*Dynamic circular work-stealing deque*, SPAA 2005) with room for all tasks from the
//! beginning, so that it need not grow, and with nothing weaker than sequential consistency. The owner alone writes
//! `bottom`, and gives up a place by counting it down before it looks at `top`; `top` only goes up, and who counts it up
//! by compare-and-exchange has the task that was there. Owner and thieves meet at the last task alone.
//!
//! With the bug `lost-task` the owner takes the last task without that compare-and-exchange: a thief that has read it
//! already runs it too.

use dragnet::catalog::Entry;
use dragnet::sync::Arc;
use dragnet::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::SeqCst};
use dragnet::{Check, Threads};

use super::{join_all, spawn};

/// The program under the name `work-stealing`.
pub fn entry() -> Entry {
    Entry::new(
        "work-stealing",
        "workers that steal tasks from a Chase-Lev deque",
        |setup| {
            let workers = setup.number("workers");
            let tasks = setup.number("tasks");
            let last = match setup.has_bug("lost-task") {
                true => LastTask::Taken,
                false => LastTask::Contended,
            };
            Check::new(Threads::new(move || run_tasks(workers, tasks, last)))
        },
    )
    .parameter(
        "workers",
        2,
        1..=4,
        "how many workers there are, the owner of the tasks among them",
    )
    .parameter("tasks", 2, 1..=8, "how many tasks there are")
    .bug(
        "lost-task",
        "the owner takes the last task without asking whether a thief has it",
        |bug| bug.set("tasks", 1),
    )
}

/// How the owner of a deque takes the last task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastTask {
    /// As a thief does: whoever counts `top` up has it.
    Contended,
    /// As any other.
    Taken,
}

/// Tasks, by their numbers.
#[derive(Debug)]
pub struct Deque {
    top: AtomicIsize,
    bottom: AtomicIsize,
    tasks: Box<[AtomicUsize]>,
    last: LastTask,
}

/// What came of an attempt to steal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steal {
    /// A task.
    Task(usize),
    /// Somebody else was faster.
    Retry,
    /// There is none.
    Empty,
}

impl Deque {
    /// An empty deque with room for so many tasks.
    pub fn new(room: usize, last: LastTask) -> Self {
        Self {
            top: AtomicIsize::new(0),
            bottom: AtomicIsize::new(0),
            tasks: (0..room).map(|_| AtomicUsize::new(0)).collect(),
            last,
        }
    }

    fn place(&self, at: isize) -> &AtomicUsize {
        &self.tasks[at as usize % self.tasks.len()]
    }

    /// Adds a task. Only for the owner.
    pub fn push(&self, task: usize) {
        let bottom = self.bottom.load(SeqCst);
        self.place(bottom).store(task, SeqCst);
        self.bottom.store(bottom + 1, SeqCst);
    }

    /// Takes the task that was added last. Only for the owner.
    pub fn pop(&self) -> Option<usize> {
        let bottom = self.bottom.load(SeqCst) - 1;
        self.bottom.store(bottom, SeqCst);
        let top = self.top.load(SeqCst);
        if top > bottom {
            self.bottom.store(top, SeqCst);
            return None;
        }
        let task = self.place(bottom).load(SeqCst);
        if top < bottom {
            return Some(task);
        }
        let won = match self.last {
            LastTask::Contended => self
                .top
                .compare_exchange(top, top + 1, SeqCst, SeqCst)
                .is_ok(),
            LastTask::Taken => {
                self.top.store(top + 1, SeqCst);
                true
            }
        };
        self.bottom.store(top + 1, SeqCst);
        won.then_some(task)
    }

    /// Takes the task that was added first.
    pub fn steal(&self) -> Steal {
        let top = self.top.load(SeqCst);
        let bottom = self.bottom.load(SeqCst);
        if top >= bottom {
            return Steal::Empty;
        }
        let task = self.place(top).load(SeqCst);
        match self.top.compare_exchange(top, top + 1, SeqCst, SeqCst) {
            Ok(_) => Steal::Task(task),
            Err(_) => Steal::Retry,
        }
    }
}

/// An owner with tasks, and thieves who steal until they find none: every task is run once.
pub fn run_tasks(workers: usize, tasks: usize, last: LastTask) {
    let deque = Arc::new(Deque::new(tasks, last));
    let thieves: Vec<_> = (1..workers)
        .map(|id| {
            let deque = Arc::clone(&deque);
            spawn(format!("thief {id}"), move || {
                let mut run = Vec::new();
                loop {
                    match deque.steal() {
                        Steal::Task(task) => run.push(task),
                        Steal::Retry => {}
                        Steal::Empty => return run,
                    }
                }
            })
        })
        .collect();
    let owner = spawn("owner", move || {
        (0..tasks).for_each(|task| deque.push(task));
        std::iter::from_fn(|| deque.pop()).collect::<Vec<_>>()
    });
    let mut run = owner.join().expect("the owner does not panic");
    run.extend(join_all(thieves).concat());
    run.sort_unstable();
    assert!(
        run.iter().copied().eq(0..tasks),
        "not every task was run once: {run:?}"
    );
}
