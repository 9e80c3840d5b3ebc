//! An execution that a person understands: nothing in it that need not be, and as few interruptions as can be found in a
//! short time.

use std::sync::Arc;

use super::{Director, Executor, Finish, Reduction, Schedules, ThreadId, Transition};
use crate::explore::limits::Gauge;
use crate::system::Actor;
use crate::target::threads::execution::ExecutionView;
use crate::target::threads::model::EventId;
use crate::target::threads::operation::Action;

/// An execution is looked for with so few interruptions,
const MOST_INTERRUPTIONS: u32 = 3;
/// among so many executions for each number of them.
const SHORT: u64 = 5_000;
/// What one of several workers has found is looked for by one alone among so many executions.
const LONG: u64 = 100_000;

/// An execution that was found, as it is seen where it is run again.
pub(crate) struct Found {
    pub(crate) finish: Finish,
    /// Its decisions as positions among what was enabled.
    pub(crate) positions: Vec<usize>,
    /// The threads that have not ended.
    pub(crate) waiting: Vec<Actor>,
    /// How often a thread is interrupted that could have gone on.
    interruptions: u32,
}

/// Takes decisions again, and counts how often that interrupts a thread that could have gone on.
struct Retrace<'a> {
    way: &'a [Transition],
    last: Option<ThreadId>,
    interruptions: u32,
    positions: Vec<usize>,
}

impl Director for Retrace<'_> {
    fn next(&mut self, execution: ExecutionView<'_>, enabled: &[Transition]) -> Option<Transition> {
        let (&next, further) = self.way.split_first()?;
        self.way = further;
        let last = execution.last_event();
        let steps_aside = last.map(|event| event.operation.action) == Some(Action::Yield);
        let could_go_on = |last| enabled.iter().any(|&(thread, _)| thread == last);
        let interrupts = self
            .last
            .is_some_and(|last| last != next.0 && could_go_on(last));
        self.interruptions += u32::from(interrupts && !steps_aside);
        self.last = Some(next.0);
        let position = enabled.iter().position(|&possible| possible == next);
        self.positions.push(position?);
        Some(next)
    }
}

impl Schedules<'_> {
    /// An execution in which something is wrong, like in the one that was found, and which is easier to understand.
    ///
    /// It is looked for by one worker that knows nothing of the program's loops, so that it is the same whichever of several has
    /// found the first, and whatever they had learnt by then; also where it takes more interruptions than are looked for,
    /// unless one worker is not likely to come there in a reasonable time. What that worker has learnt takes the place of what
    /// was known.
    pub(crate) fn simplest(&self, decisions: Vec<Transition>, finish: Finish) -> Found {
        if matches!(&finish, Finish::Failed(failure) if !failure.kind().is_violation()) {
            return self.retrace(&decisions, |_| ()).0.ending(finish);
        }
        let found = self.tidied(&decisions, finish);
        let interruptions = found.interruptions;
        let afresh = || Arc::new(self.program.with_nothing_learnt());
        let program = afresh();
        for few in 0..=interruptions.min(MOST_INTERRUPTIONS) {
            let simple = Schedules {
                reduction: Reduction::Sleep,
                preemptions: Some(few),
                program: &program,
                ..*self
            };
            if let Some(found) = simple.found_by_one(SHORT) {
                self.program.loops.replace_by(&program.loops);
                return found;
            }
        }
        if self.workers > 1 {
            let program = afresh();
            let same = Schedules {
                program: &program,
                ..*self
            };
            if let Some(found) = same.found_by_one(LONG) {
                self.program.loops.replace_by(&program.loops);
                return found;
            }
        }
        found
    }

    /// What one worker finds among so many executions.
    fn found_by_one(&self, executions: u64) -> Option<Found> {
        let alone = Schedules {
            gauge: &Gauge::inside(self.gauge, Some(executions)),
            workers: 1,
            ..*self
        };
        let (found, finish) = alone.explore().found?;
        Some(self.tidied(&found, finish))
    }

    /// The same without what does not lead to its end, each thread for as long as it can go on.
    fn tidied(&self, decisions: &[Transition], finish: Finish) -> Found {
        let (found, (needed, all)) = self.retrace(decisions, |execution| {
            let events = 0..execution.events().len() as EventId;
            let last = events.end.checked_sub(1);
            let is_needed =
                |event: &EventId| last.is_some_and(|last| execution.is_before(*event, last));
            let needed = events.clone().filter(is_needed).collect();
            (
                in_few_turns(execution, needed),
                in_few_turns(execution, events.collect()),
            )
        });
        // That a thread blocks on something real is seen again only by waiting for it again.
        if self.program.has_blocked() {
            return Found {
                interruptions: MOST_INTERRUPTIONS,
                ..found.ending(finish)
            };
        }
        // Where threads that wait are what is wrong, all is needed; and so is who comes to data without a lock.
        for shorter in [needed, all] {
            let (other, ()) = self.retrace(&shorter, |_| ());
            if other.finish == finish {
                return other;
            }
        }
        found.ending(finish)
    }

    /// Runs an execution along decisions.
    pub(super) fn retrace<R: Send>(
        &self,
        decisions: &[Transition],
        look: impl FnOnce(ExecutionView<'_>) -> R + Send,
    ) -> (Found, R) {
        let run = || {
            let mut executor = Executor::new(Arc::clone(self.program));
            let mut retrace = Retrace {
                way: decisions,
                last: None,
                interruptions: 0,
                positions: Vec::new(),
            };
            let finish = executor.run(&mut retrace);
            let Retrace {
                interruptions,
                positions,
                ..
            } = retrace;
            let last = executor.last_execution();
            let execution = last.view();
            let found = Found {
                finish,
                positions,
                waiting: execution.waiting(),
                interruptions,
            };
            (found, look(execution))
        };
        self.program.apart(run)
    }
}

impl Found {
    /// It is known to have ended like this.
    fn ending(self, finish: Finish) -> Self {
        Self { finish, ..self }
    }
}

/// Events of an execution in another order that comes to the same, with few changes from one thread to another.
fn in_few_turns(execution: ExecutionView<'_>, mut events: Vec<EventId>) -> Vec<Transition> {
    let mut ordered = Vec::with_capacity(events.len());
    let mut last = None;
    while !events.is_empty() {
        let is_first = |at: usize| {
            let mut before = events[..at].iter();
            before.all(|&other| !execution.is_before(other, events[at]))
        };
        let of_last = |&at: &usize| Some(execution.event(events[at]).thread) == last;
        let mut own = (0..events.len()).filter(of_last);
        // The first of all comes before no other.
        let next = own.next().filter(|&at| is_first(at)).unwrap_or(0);
        let event = execution.event(events.remove(next));
        last = Some(event.thread);
        ordered.push((event.thread, event.way));
    }
    ordered
}
