//! Races: two events of an execution that could come in the other order, and what an execution like that begins with.

use std::borrow::Cow;

use crate::target::threads::execution::ExecutionView;
use crate::target::threads::executor::Transition;
use crate::target::threads::model::{EventId, Model};
use crate::target::threads::operation::{Action, Operation, ThreadId, Way, Ways};

/// An execution, and what its threads did in it.
pub(super) struct Witness<'a> {
    execution: ExecutionView<'a>,
    /// The events of the first thread, of the second, and so on,
    by_thread: Vec<EventId>,
    /// and where those of each end.
    ends: Vec<u32>,
}

/// Something that goes before an event instead of after it.
pub(super) struct Reversal {
    /// The event that it comes before.
    pub(super) at: EventId,
    thread: ThreadId,
    way: Way,
    operation: Operation,
    /// What happens from there on: events, and the reversed one at last.
    pub(super) steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Event(EventId),
    Reversed,
}

/// What is found of the races of an execution.
#[derive(Default)]
struct Found {
    reversals: Vec<Reversal>,
    /// Room for what is put together for one of them.
    steps: Vec<EventId>,
    raced: Vec<EventId>,
}

/// What is left of a reversal behind something that is planned.
pub(super) struct Rest<'a> {
    pub(super) steps: Cow<'a, [Step]>,
    /// The threads of the steps that are gone, each as often as it had one.
    gone: Vec<ThreadId>,
    /// What else has been taken.
    besides: Vec<Transition>,
}

impl<'a> Rest<'a> {
    pub(super) fn of(reversal: &'a Reversal) -> Self {
        Self {
            steps: Cow::Borrowed(&reversal.steps),
            gone: Vec::new(),
            besides: Vec::new(),
        }
    }

    /// Goes on behind a transition that relates to it like this.
    pub(super) fn pass(&mut self, transition: Transition, relation: Relation) {
        match relation {
            Relation::First(at) => {
                self.steps.to_mut().remove(at);
                self.gone.push(transition.0);
            }
            _ => self.besides.push(transition),
        }
    }
}

/// How a transition relates to the steps of a reversal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// It is the one at this place, which none before it has to come before.
    First(usize),
    /// It is none of them, and depends on none of them.
    Independent,
    /// It cannot come first.
    Conflict,
    /// That takes a [`Question`].
    Unknown,
}

/// Whether something that is planned depends on what is left of a reversal, to be answered by an execution in which both
/// can be seen.
pub(super) struct Question {
    /// What the execution does: the reversal, and what is planned before what is asked about.
    pub(super) way: Vec<Transition>,
    asked: Transition,
    /// Which of its events are what is left.
    left: Vec<usize>,
}

impl Question {
    /// The answer, from the execution.
    pub(super) fn answer(&self, execution: ExecutionView<'_>) -> Option<Relation> {
        let (thread, way) = self.asked;
        let operation = execution.pending(thread)?;
        if execution.events().len() != self.way.len() {
            return None;
        }
        let ways = every_way(operation.action, &way);
        let depends = |&event: &usize| {
            let that = &execution.events()[event];
            let that = (that.thread, &that.operation, that.way);
            let mut ways = ways.iter();
            ways.any(|&way| execution.depends((thread, &operation, way), that))
        };
        Some(match self.left.iter().any(depends) {
            true => Relation::Conflict,
            false => Relation::Independent,
        })
    }
}

/// What is known of a step in other executions than the one in which it was seen.
#[derive(Clone, Copy)]
pub(super) struct Planned {
    pub(super) operation: Operation,
    /// How many objects there were where it was planned: these are the same in all executions that come there.
    pub(super) objects: u32,
}

impl<'a> Witness<'a> {
    pub(super) fn new(execution: ExecutionView<'a>) -> Self {
        let mut end = 0;
        let threads = (0..execution.thread_bound()).map(ThreadId);
        let ends: Vec<u32> = threads
            .map(|thread| {
                end += execution.steps(thread);
                end
            })
            .collect();
        let mut by_thread = vec![0; execution.events().len()];
        for (event, this) in execution.events().iter().enumerate() {
            let before = (this.thread.0 as usize).checked_sub(1);
            let start = before.map_or(0, |before| ends[before]);
            by_thread[(start + this.index) as usize] = event as EventId;
        }
        Self {
            execution,
            by_thread,
            ends,
        }
    }

    /// The events of a thread.
    fn events_of(&self, thread: ThreadId) -> &[EventId] {
        let at = thread.0 as usize;
        let Some(&end) = self.ends.get(at) else {
            return &[];
        };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.by_thread[start as usize..end as usize]
    }

    /// Every race in which the later one is the event at `from` or behind it, or did not happen at all. A thread that has
    /// gone round may also go on because of what came later in this execution, so where it went on is looked at again.
    pub(super) fn reversals(&self, from: usize) -> Vec<Reversal> {
        let mut found = Found::default();
        for (event, this) in self.execution.events().iter().enumerate() {
            if event < from && !this.was_spinning() {
                continue;
            }
            for &way in every_way(this.operation.action, &this.way) {
                self.look(event, this.thread, this.operation, way, &mut found);
            }
            if let Some(by) = this.woken_by() {
                self.go_round_without(by, event, &mut found);
            }
            if self.execution.is_last_drop(event as EventId) {
                self.drop_earlier(event, &mut found);
            }
        }
        let end = self.execution.events().len();
        for &thread in self.execution.threads() {
            if let Some(pending) = self.execution.pending(thread) {
                for &way in every_way(pending.action, &Ways::COME) {
                    self.look(end, thread, pending, way, &mut found);
                }
            }
            if let Some((cut, crash)) = self.execution.cut_off(thread) {
                for &way in every_way(cut.action, &Ways::COME) {
                    self.reverse(crash, end, thread, cut, way, &mut found);
                }
            }
        }
        found.reversals
    }

    /// A thread that has gone round goes on at an event because of another: without that, it may go on because of others.
    fn go_round_without(&self, by: EventId, event: usize, found: &mut Found) {
        let this = &self.execution.events()[event];
        let that = self.execution.event(by);
        let one = (this.thread, &this.operation, this.way);
        let other = (that.thread, &that.operation, that.way);
        // What depends on each other anyway is a race of its own.
        if !self.execution.depends(one, other)
            && !self.is_past(by, this.index as usize, this.thread)
        {
            self.reverse(by, event, this.thread, this.operation, this.way, found);
        }
    }

    /// A thread dropped the last owner of a value, and something came of that: each of the other owners may be the last.
    fn drop_earlier(&self, last: usize, found: &mut Found) {
        let this = &self.execution.events()[last];
        let (thread, operation) = (this.thread, this.operation);
        for &other in self.execution.events_on(operation.object) {
            let that = self.execution.event(other);
            if (other as usize) < last
                && that.operation.action.drops_an_owner()
                && self.execution.is_before(other, last as EventId)
                && !self.is_past(other, this.index as usize, thread)
            {
                self.reverse(other, last, thread, operation, this.way, found);
            }
        }
    }

    /// The races of an operation that came up before the event at `end`.
    fn look(
        &self,
        end: usize,
        thread: ThreadId,
        operation: Operation,
        way: Way,
        found: &mut Found,
    ) {
        let execution = self.execution;
        let index = self.index_at(thread, end);
        let crashes = execution.crashed_by(&operation, way);
        // A crash matters to all that the threads of its process have done.
        let everything: Vec<EventId>;
        let events = match crashes {
            None => execution.events_on(operation.object),
            Some(process) => {
                let of_process = |&event: &EventId| {
                    let thread = execution.event(event).thread;
                    execution.process(thread) == process
                };
                everything = (0..end as EventId).filter(of_process).collect();
                &everything
            }
        };
        let before = events.partition_point(|&event| (event as usize) < end);
        let rivalry = operation.action.rivalry(way);
        found.raced.clear();
        for &other in events[..before].iter().rev() {
            let that = execution.event(other).rivalry;
            if crashes.is_none() && !that.depends(rivalry) {
                continue;
            }
            if self.is_past(other, index, thread) {
                if crashes.is_none() && that.includes(rivalry) {
                    // All that is left comes before it, so it is past as well.
                    break;
                }
                continue;
            }
            let mut raced = found.raced.iter();
            if raced.any(|&later| execution.is_before(other, later)) {
                continue;
            }
            if self.reverse(other, end, thread, operation, way, found) {
                found.raced.push(other);
            }
        }
    }

    /// Plans an operation that came up before the event at `end` in place of another event, if that can be.
    fn reverse(
        &self,
        other: EventId,
        end: usize,
        thread: ThreadId,
        operation: Operation,
        way: Way,
        found: &mut Found,
    ) -> bool {
        let index = self.index_at(thread, end);
        let steps = &mut found.steps;
        if !self.find_steps_instead(other, index, thread, operation, way, steps) {
            return false;
        }
        let way = match operation.action {
            Action::NotifyOne => self.first_way(other, steps, thread, operation),
            _ => way,
        };
        let steps = steps.iter().copied().map(Step::Event);
        let steps = steps.chain([Step::Reversed]).collect();
        found.reversals.push(Reversal {
            at: other,
            thread,
            way,
            operation,
            steps,
        });
        true
    }

    /// How many events a thread had had before its own at `end`, or at the end of the execution.
    fn index_at(&self, thread: ThreadId, end: usize) -> usize {
        let own = self.execution.events().get(end);
        debug_assert!(own.is_none_or(|own| own.thread == thread));
        own.map_or_else(|| self.execution.steps(thread), |own| own.index) as usize
    }

    /// Whether an event comes before what a thread does after so many events.
    fn is_past(&self, event: EventId, index: usize, thread: ThreadId) -> bool {
        let execution = self.execution;
        let previous = index
            .checked_sub(1)
            .map(|last| self.events_of(thread)[last]);
        execution.event(event).thread == thread
            || previous.is_some_and(|previous| execution.is_before(event, previous))
            || execution.is_before_spawn(event, thread)
    }

    /// The thread of an event, and its index among the events of that thread.
    fn place_of(&self, event: EventId) -> (ThreadId, u32) {
        let event = self.execution.event(event);
        (event.thread, event.index)
    }

    /// What can happen in place of an event up to where an operation can happen, if it can: all that depends neither on
    /// that event nor on what the thread did instead of the operation, nor on what keeps the operation from happening.
    ///
    /// What comes later in the execution belongs to it too. An operation that comes out in another way than it did may
    /// depend on events that it did not depend on as it was, so that where it was says nothing.
    fn find_steps_instead(
        &self,
        instead: EventId,
        index: usize,
        thread: ThreadId,
        operation: Operation,
        way: Way,
        steps: &mut Vec<EventId>,
    ) -> bool {
        let execution = self.execution;
        let own = self.events_of(thread).get(index).copied();
        // A thread in a spin loop is enabled again only by a change of what it has seen.
        if own.is_some_and(|own| !execution.is_woken_without(instead, own)) {
            return false;
        }
        let before = execution.model_before(operation.object, instead);
        // Who holds what it waits for would have to go on.
        let keeper = execution.event(instead).thread;
        let is_kept = before.holders().any(|holder| holder == keeper);
        if is_kept && !before.allows(thread, operation.action, way) {
            return false;
        }
        let without = self.place_of(instead);
        let own = own.map_or(without, |own| self.place_of(own));
        steps.clear();
        for event in instead + 1..execution.events().len() as EventId {
            if !execution.is_place_before(without, event) && !execution.is_place_before(own, event)
            {
                steps.push(event);
            }
        }
        if matches!(before, Model::Memory) || operation.action == Action::NotifyOne {
            return true;
        }
        while let Err(obstacle) = self.obstacle(before.clone(), steps, thread, operation, way) {
            let Some(obstacle) = obstacle.filter(|&event| !self.is_past(event, index, thread))
            else {
                return false;
            };
            let without = self.place_of(obstacle);
            steps.retain(|&event| !execution.is_place_before(without, event));
        }
        true
    }

    /// The first way in which an operation can happen in place of an event, after `steps`. Whoever comes there finds the
    /// others.
    fn first_way(
        &self,
        instead: EventId,
        steps: &[EventId],
        thread: ThreadId,
        operation: Operation,
    ) -> Way {
        let execution = self.execution;
        let mut model = execution.model_before(operation.object, instead);
        for &event in steps {
            let that = execution.event(event);
            if that.operation.object == operation.object {
                model.perform(that.thread, that.operation.action, that.way, event);
            }
        }
        let mut ways = Vec::new();
        model.ways(thread, operation.action, &mut ways);
        ways.first().copied().unwrap_or(Ways::COME)
    }

    /// The event after which an operation cannot happen any more, if it could before.
    fn obstacle(
        &self,
        mut model: Model,
        steps: &[EventId],
        thread: ThreadId,
        operation: Operation,
        way: Way,
    ) -> Result<(), Option<EventId>> {
        let mut was_possible = model.allows(thread, operation.action, way);
        let mut obstacle = None;
        let on_object =
            |event: &&EventId| self.execution.event(**event).operation.object == operation.object;
        for &event in steps.iter().filter(on_object) {
            let that = self.execution.event(event);
            model.perform(that.thread, that.operation.action, that.way, event);
            let is_possible = model.allows(thread, operation.action, way);
            if was_possible && !is_possible {
                obstacle = Some(event);
            }
            was_possible = is_possible;
        }
        if was_possible {
            return Ok(());
        }
        // Of several who hold it together, the first to come need not be among those who still do.
        let by_holder = |event: &&EventId| {
            let thread = self.execution.event(**event).thread;
            model.holders().any(|holder| holder == thread)
        };
        let held = steps.iter().filter(on_object).rfind(by_holder).copied();
        Err(held.or(obstacle))
    }

    /// What a step is.
    pub(super) fn transition(&self, reversal: &Reversal, step: Step) -> Transition {
        match step {
            Step::Reversed => (reversal.thread, reversal.way),
            Step::Event(event) => {
                let event = self.execution.event(event);
                (event.thread, event.way)
            }
        }
    }

    /// Whether a transition that is possible where a reversal begins is one of its steps and could be the first.
    pub(super) fn can_be_first(&self, reversal: &Reversal, transition: Transition) -> bool {
        let all = &reversal.steps;
        self.position(reversal, all, transition)
            .is_some_and(|at| self.comes_first(reversal, all, at, transition.1))
    }

    /// The first of some steps that is of the thread of a transition.
    fn position(
        &self,
        reversal: &Reversal,
        steps: &[Step],
        transition: Transition,
    ) -> Option<usize> {
        let mine = |step: &Step| self.transition(reversal, *step).0 == transition.0;
        steps.iter().position(mine)
    }

    fn comes_first(&self, reversal: &Reversal, steps: &[Step], at: usize, way: Way) -> bool {
        let step = steps[at];
        let mut before = steps[..at].iter();
        self.transition(reversal, step).1 == way
            && before.all(|&earlier| !self.is_step_before(reversal, earlier, step))
    }

    /// How what is planned somewhere relates to what is left of a reversal there.
    ///
    /// `planned` is what is known of it from the execution that it was planned after. It is needed where its thread has
    /// taken a step that is not one of the reversal's: what it came to then may be something else than here.
    pub(super) fn relation(
        &self,
        reversal: &Reversal,
        rest: &Rest<'_>,
        transition: Transition,
        planned: Option<Planned>,
    ) -> Relation {
        let (thread, way) = transition;
        if let Some(at) = self.position(reversal, &rest.steps, transition) {
            return match self.comes_first(reversal, &rest.steps, at, way) {
                true => Relation::First(at),
                false => Relation::Conflict,
            };
        }
        let here = self.comes_to(reversal, rest, thread);
        let in_common = self.execution.event(reversal.at).objects;
        let (operation, objects) = match (here, planned) {
            (Some(operation), _) => (operation, u32::MAX),
            (None, Some(planned)) => (planned.operation, planned.objects.min(in_common)),
            (None, None) => return Relation::Unknown,
        };
        // What comes out in one way here might come out in another later: all of them have to be the same there.
        let known = here.is_some() || operation.object.0 < objects;
        let ways = match known {
            true => self.possible_ways(reversal, rest, thread, operation, way),
            false => every_way(operation.action, &way).to_vec(),
        };
        let mut relation = Relation::Independent;
        for &step in rest.steps.iter() {
            let that = self.operation(reversal, step);
            let (its_thread, its_way) = self.transition(reversal, step);
            if self.execution.stops(&that, its_way, thread)
                || here.is_some_and(|here| self.execution.stops(&here, way, its_thread))
            {
                return Relation::Conflict;
            }
            let depends = |&way: &Way| operation.action.depends(way, that.action, its_way);
            if !ways.iter().any(depends) {
                continue;
            }
            let same_names = operation.object.0 < objects;
            if same_names && operation.object == that.object {
                return Relation::Conflict;
            }
            if !same_names && that.object.0 >= objects {
                relation = Relation::Unknown;
            }
        }
        relation
    }

    /// The ways in which an operation could come out somewhere in what is left of a reversal.
    fn possible_ways(
        &self,
        reversal: &Reversal,
        rest: &Rest<'_>,
        thread: ThreadId,
        operation: Operation,
        way: Way,
    ) -> Vec<Way> {
        let mut ways = every_way(operation.action, &way).to_vec();
        if ways.len() == 1 {
            return ways;
        }
        let mut model = self.execution.model_before(operation.object, reversal.at);
        let mut seen = vec![way];
        let mut see = |model: &Model| {
            ways.retain(|&way| {
                let allowed = model.allows(thread, operation.action, way);
                if allowed && !seen.contains(&way) {
                    seen.push(way);
                }
                !allowed
            });
        };
        let on_object = |step: &&Step| self.operation(reversal, **step).object == operation.object;
        let pass = |model: &mut Model, step: Step| {
            let action = self.operation(reversal, step).action;
            let (other, its_way) = self.transition(reversal, step);
            let event = self.execution.events().len() as EventId;
            model.perform(other, action, its_way, event);
        };
        let gone = |step: &&Step| !rest.steps.contains(step);
        for &step in reversal.steps.iter().filter(on_object).filter(gone) {
            pass(&mut model, step);
        }
        see(&model);
        for &step in rest.steps.iter().filter(on_object) {
            pass(&mut model, step);
            see(&model);
        }
        seen
    }

    /// The operation that a thread comes to after its steps that are gone, if this execution knows.
    fn comes_to(
        &self,
        reversal: &Reversal,
        rest: &Rest<'_>,
        thread: ThreadId,
    ) -> Option<Operation> {
        let reversed = thread == reversal.thread && !rest.steps.contains(&Step::Reversed);
        let mut besides = rest.besides.iter();
        if reversed || besides.any(|other| other.0 == thread) {
            return None;
        }
        let own = self.events_of(thread);
        let before = own.partition_point(|&event| event < reversal.at);
        let gone = rest.gone.iter().filter(|&&other| other == thread).count();
        match own.get(before + gone) {
            Some(&event) => Some(self.execution.event(event).operation),
            None => self.execution.pending(thread),
        }
    }

    fn operation(&self, reversal: &Reversal, step: Step) -> Operation {
        match step {
            Step::Reversed => reversal.operation,
            Step::Event(event) => self.execution.event(event).operation,
        }
    }

    /// What has to be asked to know how what is planned relates to what is left of a reversal.
    pub(super) fn question(
        &self,
        reversal: &Reversal,
        rest: &Rest<'_>,
        asked: Transition,
    ) -> Question {
        let before = &self.execution.events()[..reversal.at as usize];
        let before = before.iter().map(|event| (event.thread, event.way));
        let steps = reversal.steps.iter();
        let steps = steps.map(|&step| self.transition(reversal, step));
        let besides = rest.besides.iter().copied();
        let events = reversal.at as usize..;
        let left = events
            .zip(&reversal.steps)
            .filter(|(_, step)| rest.steps.contains(step));
        Question {
            way: before.chain(steps).chain(besides).collect(),
            asked,
            left: left.map(|(event, _)| event).collect(),
        }
    }

    /// What other executions can know of a step.
    pub(super) fn planned(&self, reversal: &Reversal, step: Step) -> Planned {
        Planned {
            operation: self.operation(reversal, step),
            objects: self.execution.event(reversal.at).objects,
        }
    }

    /// Whether a step must come before another, later one that is possible where the reversal begins.
    fn is_step_before(&self, reversal: &Reversal, one: Step, other: Step) -> bool {
        match (one, other) {
            (Step::Event(one), Step::Event(other)) => self.execution.is_before(one, other),
            (Step::Event(one), Step::Reversed) => {
                let that = self.execution.event(one);
                let that = (that.thread, &that.operation, that.way);
                let reversed = (reversal.thread, &reversal.operation, reversal.way);
                self.execution.depends(that, reversed)
            }
            (Step::Reversed, _) => false,
        }
    }
}

/// The ways in which an operation could come out that came out in one: others only where it has several by itself.
fn every_way(action: Action, way: &Way) -> &[Way] {
    match action.possible_ways() {
        [_] => std::slice::from_ref(way),
        several => several,
    }
}
