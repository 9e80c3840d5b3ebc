//! Threads in a spin loop: when they are blocked, and which change wakes them.

use std::collections::BTreeSet;
use std::panic::Location;
use std::rc::Rc;

use super::super::clocks::Row;
use super::super::model::{EventId, Model};
use super::super::operation::{Action, Operation, ThreadId, Way};
use super::super::state::State;
use super::super::thread_state::ThreadState;
use super::detection::{Aspect, Effect, LONGEST_LOOP, Sight};
use super::termination::{Instance, Nature, Place};
use crate::system::{Failure, FailureKind};

/// How often a thread goes round a loop without an end of its own though nobody else can go on, before that is hopeless.
const HOPELESS: u32 = 100;

/// How often in an execution the hope that threads leave their loops begins anew, because others that go round change what
/// they see.
const MOST_DISTURBANCES: u32 = 2_000;

/// A thread that went round goes on.
#[derive(Clone)]
pub(in super::super) struct Stirred {
    /// What it had seen.
    pub(in super::super) seen: Rc<[Sight]>,
    /// The first event to change any of that, unless it goes on only because nobody else can.
    pub(in super::super) by: Option<EventId>,
}

/// Where a loop begins that has an end of its own, and the turns after which it comes to it.
pub(crate) type GaveUp = (&'static Location<'static>, u32);

impl State {
    /// Whether a thread that has gone round sees nothing new, in a loop that has no end of its own. Where that is not known, it [wonders](Self::wonders).
    pub(in super::super) fn waits_in_loop(&mut self, id: ThreadId) -> bool {
        let thread = self.thread(id);
        let round = &thread.round;
        let Some(pending) = thread.pending.filter(|pending| round.is_closed_by(pending)) else {
            return false;
        };
        let turns = round.turns;
        if !self.can_go_on(id) {
            return false;
        }
        let Some(nature) = self.nature_of_loop(id) else {
            self.wonders = Some(id);
            return true;
        };
        if turns <= nature.ends_after || !self.goes_round(id, &pending) {
            return false;
        }
        let late_end = nature.late_end.filter(|&turns| turns < u32::MAX);
        if let (Some(turns), Some(head)) = (late_end, self.thread(id).round.head()) {
            self.note_gave_up(id, head, turns);
        }
        true
    }

    /// Whether a thread has gone round and would see nothing new if it did so again.
    pub(in super::super) fn goes_round(&self, thread: ThreadId, pending: &Operation) -> bool {
        let round = &self.thread(thread).round;
        let is_same = |seen: &Sight| {
            let object = self.object(seen.operation.object);
            object.versions.of(seen.aspect) == seen.version
        };
        round.is_closed_by(pending) && round.seen.iter().all(is_same)
    }

    /// Whether a thread that waits in a loop goes round for ever if nobody else does anything, and does nothing itself.
    pub(in super::super) fn is_lost_in_loop(&self, id: ThreadId) -> bool {
        let round = &self.thread(id).round;
        let nature = round.nature.unwrap_or_default();
        nature.spins && nature.late_end.is_none() && !nature.is_guessed && !round.acts
    }

    /// Whether there is no hope that a thread that goes round leaves its loop.
    pub(in super::super) fn is_hopeless(&self, id: ThreadId) -> bool {
        let round = &self.thread(id).round;
        let nature = round.nature.unwrap_or_default();
        let known = nature
            .late_end
            .map_or(nature.ends_after, |end| end.saturating_add(1));
        let is_at_head = self
            .pending(id)
            .is_some_and(|pending| round.is_closed_by(&pending));
        is_at_head && round.has_turned_undisturbed(HOPELESS) && round.turns > known
    }

    /// The loop that a thread goes round, and what the thread had seen when it first came round.
    pub(in super::super) fn loop_of(&self, id: ThreadId) -> Option<Instance> {
        let thread = self.thread(id);
        let at = thread.round.head()?;
        let this = Place::new(thread.hash, at).loop_at(thread.depth);
        Some(this.in_context(thread.round.context))
    }

    /// Where a thread has been lately that goes round, since an event.
    pub(in super::super) fn last_places(&self, id: ThreadId, since: usize) -> Vec<Place> {
        let hash = self.thread(id).hash;
        let events = self.events[since..].iter().rev().take(LONGEST_LOOP * 2);
        let places = events.map(|event| Place::new(hash, event.operation.at));
        let places: BTreeSet<Place> = places.collect();
        places.into_iter().collect()
    }

    /// What is known of the loop that a thread goes round, at whose beginning it is.
    fn nature_of_loop(&mut self, id: ThreadId) -> Option<Nature> {
        let turns = self.thread(id).round.turns;
        let is_known = |nature: &Nature| nature.spins || turns <= nature.ends_after;
        if let Some(nature) = self.thread(id).round.nature.filter(is_known) {
            return Some(nature);
        }
        let nature = self.loops.nature(self.loop_of(id)?, self.events.len());
        let nature = nature.filter(is_known);
        self.thread_mut(id).round.nature = nature;
        nature
    }

    /// Whether a thread that has gone round goes on only because of something new, or after all others.
    fn has_gone_round(&mut self, id: ThreadId, operation: &Operation) -> bool {
        let round = &self.thread(id).round;
        let turns = round.turns;
        round.is_closed_by(operation)
            && self
                .nature_of_loop(id)
                .is_some_and(|nature| turns > nature.ends_after)
    }

    /// A thread that has gone round, and does not leave its loop, goes on because something has changed, and comes after that;
    /// or because nobody else can go on, and comes after all.
    pub(in super::super) fn stir(
        &mut self,
        thread: ThreadId,
        operation: &Operation,
        row: Row,
    ) -> Option<Stirred> {
        if !self.has_gone_round(thread, operation) {
            return None;
        }
        let round = &self.thread(thread).round;
        let seen: Rc<[Sight]> = round.seen.iter().copied().collect();
        let by = seen
            .iter()
            .filter_map(|sight| self.first_change(sight))
            .min();
        match by {
            Some(by) => self.clocks.join(row, self.events[by as usize].row),
            None => {
                let known = self.clocks.row(row).to_vec();
                for other in self.threads.iter().flatten() {
                    self.clocks.join(row, other.row);
                }
                // Once it goes on where it did not know of all others, what it does next comes in no other order.
                let alone = known != self.clocks.row(row);
                self.thread_mut(thread).round.alone |= alone;
            }
        }
        Some(Stirred { seen, by })
    }

    /// The first event to change what somebody has seen.
    fn first_change(&self, sight: &Sight) -> Option<EventId> {
        let object = self.object(sight.operation.object);
        let since = object
            .versions
            .of(sight.aspect)
            .checked_sub(sight.version + 1)?;
        let alters = |event: &EventId| self.events[*event as usize].effect.alters(sight.aspect);
        let mut changes = object.events.iter().copied().rev().filter(alters);
        changes.nth(since as usize)
    }

    /// Takes note of what an operation is to the round of its thread.
    pub(in super::super) fn go_on_with_round(
        &mut self,
        thread: ThreadId,
        operation: &Operation,
        (way, effect): (Way, Effect),
        acts: bool,
    ) {
        let versions = &mut self.objects[operation.object.0 as usize].versions;
        versions.count(effect);
        let versions = *versions;
        let aspect = effect.sees.or(acts.then_some(Aspect::Content));
        let sight = aspect.map(|aspect| {
            let aspect = match aspect {
                Aspect::Content if self.is_busy(thread, operation) => Aspect::Calm,
                aspect => aspect,
            };
            Sight {
                operation: *operation,
                aspect,
                version: versions.of(aspect),
            }
        });
        if sight.is_some() && self.thread(thread).round.alone {
            self.note_leaving(thread, operation);
        }
        let this = self.thread_mut(thread);
        let (round, view) = (&mut this.round, this.view);
        if effect.changes.is_some() {
            round.change(operation.object, effect);
        }
        round.steps_aside |= operation.action.steps_aside(way);
        match sight {
            // One way comes after the other here, and none of them is like another.
            Some(_) if matches!(operation.action, Action::Choose(_)) => round.forget(),
            Some(sight) => round.see(sight, acts, view),
            None => {}
        }
    }

    /// The last operation of the running thread turned out to have changed nothing.
    pub(in super::super) fn take_back_change(&mut self, thread: ThreadId) {
        let mut events = self.events.iter_mut().rev();
        let Some(last) = events.find(|event| event.thread == thread) else {
            return;
        };
        let effect = std::mem::replace(&mut last.effect, Effect::look(Aspect::Content));
        let operation = last.operation;
        let known = &mut self.objects[operation.object.0 as usize];
        known.versions.discount(effect);
        let round = &mut self.thread_mut(thread).round;
        round.take_back_change(operation.object, effect);
    }

    /// Takes note if a thread that went on after all others leaves its round by itself.
    fn note_leaving(&mut self, thread: ThreadId, operation: &Operation) {
        let round = &self.thread(thread).round;
        if let Some(head) = round.head()
            && !round.has(operation)
        {
            self.note_gave_up(thread, head, round.turns);
        }
    }

    fn note_gave_up(&mut self, thread: ThreadId, head: &'static Location<'static>, turns: u32) {
        let turns = turns / self.thread(thread).round.patience() + 1;
        self.gave_up = self.gave_up.max(Some((head, turns)));
    }

    /// Whether an operation is one of those that a thread does again and again which goes round without end and changes
    /// something in each turn.
    #[inline]
    fn is_busy(&self, thread: ThreadId, operation: &Operation) -> bool {
        let loops = &self.loops;
        loops.has_busy() && loops.is_busy(self.thread(thread).hash, operation.at)
    }

    /// What a change was. What a thread changes that goes round without end is new to others only in its first turns, and to
    /// others like it never.
    #[inline]
    pub(in super::super) fn unless_stale(
        &mut self,
        thread: ThreadId,
        operation: &Operation,
    ) -> Effect {
        match self.is_busy(thread, operation) {
            true => self.busy_change(thread, operation),
            false => Effect::CHANGE,
        }
    }

    fn busy_change(&mut self, thread: ThreadId, operation: &Operation) -> Effect {
        if !self.has_turned_in_vain(thread) {
            return Effect::BUSY_CHANGE;
        }
        let sees_it = |other: &ThreadState| other.round.sees(operation.object);
        let me = self.thread(thread).hash;
        let mut others = self
            .threads
            .iter()
            .flatten()
            .filter(|other| other.hash != me);
        if self.disturbances < MOST_DISTURBANCES && others.any(sees_it) {
            self.disturbances += 1;
            let object = &self.objects[operation.object.0 as usize];
            self.numbers_change |= matches!(object.model, Model::Memory);
            // Those who see it may leave their loops because of that, and so it is worth while to go on.
            for thread in self.threads.iter_mut().flatten() {
                if sees_it(thread) {
                    thread.round.disturbed_at = thread.round.turns;
                }
            }
        }
        Effect::look(Aspect::Content)
    }

    /// Why it is not known whether threads that spin would leave their loops in the end, if it is not: others that spin
    /// changed an atomic value that they look at, which may be a number that grows. What a lock protects is taken to be the
    /// same again after so many turns.
    pub(in super::super) fn limit_of_hope(&self) -> Option<Failure> {
        let is_limited = self.numbers_change && self.disturbances >= MOST_DISTURBANCES;
        is_limited.then(|| {
            let heads = self.threads.iter().flatten();
            let heads = heads.filter_map(|thread| thread.round.head().map(ToString::to_string));
            let heads: Vec<String> = heads.collect::<BTreeSet<_>>().into_iter().collect();
            let message = format!(
                "threads that spin (at {}) changed what others of them look at more than 2,000 times in one execution: \
                 whether they leave their loops after more of that is not known",
                heads.join(", ")
            );
            Failure::new(FailureKind::Limit, message, None)
        })
    }

    /// Whether a thread has gone round so often that nothing which it does there is new.
    fn has_turned_in_vain(&self, thread: ThreadId) -> bool {
        let round = &self.thread(thread).round;
        let nature = round.nature.unwrap_or_default();
        round.has_turned(self.fruitless_turns) && nature.spins && round.turns > nature.ends_after
    }
}
