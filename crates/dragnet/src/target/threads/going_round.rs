//! Threads that go round: whether they wait for something new, and why they go on.

use std::panic::Location;
use std::rc::Rc;

use super::clocks::Row;
use super::loops::{Loop, Nature, Place};
use super::model::EventId;
use super::operation::{Action, Operation, ThreadId, Way};
use super::round::{Aspect, Effect, Sight};
use super::state::State;

/// How often a thread goes round a loop without an end of its own though nobody else can go on, before that is hopeless.
const HOPELESS: u32 = 100;

/// A thread that went round goes on.
#[derive(Clone)]
pub(crate) struct Stirred {
    /// What it had seen.
    pub(crate) seen: Rc<[Sight]>,
    /// The first event to change any of that, unless it goes on only because nobody else can.
    pub(crate) by: Option<EventId>,
}

/// Where a loop begins that has an end of its own, and the turns after which it comes to it.
pub(crate) type GaveUp = (&'static Location<'static>, u32);

impl State {
    /// Whether a thread goes round without seeing anything new, in a loop that has no end of its own. Where that is not
    /// known, it [wonders](Self::wonders).
    pub(super) fn waits_in_loop(&mut self, id: ThreadId) -> bool {
        let thread = self.thread(id);
        let Some(pending) = thread.pending else {
            return false;
        };
        if !thread.round.has_turned(self.fruitless_turns) || !self.goes_round(id, &pending) {
            return false;
        }
        let turns = thread.round.turns;
        let nature = self.nature_of_loop(id);
        if turns <= nature.ends_after || !self.can_go_on(id) {
            return false;
        }
        if !nature.spins {
            self.wonders = Some(id);
        }
        if let (Some(turns), Some(head)) = (nature.late_end, self.thread(id).round.head()) {
            self.note_gave_up(id, head, turns);
        }
        true
    }

    /// Whether a thread has gone round and would see nothing new if it did so again.
    pub(crate) fn goes_round(&self, thread: ThreadId, pending: &Operation) -> bool {
        let round = &self.thread(thread).round;
        let is_same = |seen: &Sight| {
            let object = self.object(seen.operation.object);
            object.versions.of(seen.aspect) == seen.version
        };
        round.is_closed_by(pending) && round.seen.iter().all(is_same)
    }

    /// Whether there is no hope that a thread that goes round leaves its loop.
    pub(super) fn is_hopeless(&self, id: ThreadId) -> bool {
        let round = &self.thread(id).round;
        let nature = round.nature.unwrap_or_default();
        let known = nature.late_end.map_or(nature.ends_after, |end| end + 1);
        let is_at_head = self
            .pending(id)
            .is_some_and(|pending| round.is_closed_by(&pending));
        is_at_head && round.has_turned(HOPELESS) && round.turns > known
    }

    /// The loop that a thread goes round.
    pub(super) fn loop_of(&self, id: ThreadId) -> Option<Loop> {
        let thread = self.thread(id);
        let at = thread.round.head()?;
        Some(Place::new(thread.hash, at).loop_at(thread.depth))
    }

    /// The places in it.
    pub(super) fn places_in_loop(&self, id: ThreadId) -> Vec<Place> {
        let thread = self.thread(id);
        let seen = thread.round.seen.iter();
        seen.map(|sight| Place::new(thread.hash, sight.operation.at))
            .collect()
    }

    /// What is known of the loop that a thread goes round, at whose beginning it is.
    fn nature_of_loop(&mut self, id: ThreadId) -> Nature {
        let round = &self.thread(id).round;
        let known = round
            .nature
            .filter(|nature| nature.spins || round.turns <= nature.ends_after);
        known.unwrap_or_else(|| {
            let this = self.loop_of(id);
            let nature = this.and_then(|this| self.loops.nature(&this));
            let nature = nature.unwrap_or_default();
            self.thread_mut(id).round.nature = Some(nature);
            nature
        })
    }

    /// Whether a thread has gone round so often that it goes on only because of something new, or after all others.
    fn has_gone_round(&mut self, id: ThreadId, operation: &Operation) -> bool {
        let round = &self.thread(id).round;
        let (is_closed, turns) = (round.is_closed_by(operation), round.turns);
        is_closed
            && round.has_turned(self.fruitless_turns)
            && turns > self.nature_of_loop(id).ends_after
    }

    /// A thread that went round goes on because something has changed, and comes after that; or because nobody else can go
    /// on, and comes after all.
    pub(super) fn stir(
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

    /// All events that have changed what somebody has seen, also before that.
    pub(crate) fn changes(&self, sight: &Sight) -> impl Iterator<Item = EventId> {
        let aspect = sight.aspect;
        let events = self.object(sight.operation.object).events.iter().copied();
        events.filter(move |&event| self.events[event as usize].effect.alters(aspect))
    }

    /// Takes note of what an operation is to the round of its thread.
    pub(super) fn go_on_with_round(
        &mut self,
        thread: ThreadId,
        operation: &Operation,
        (way, effect): (Way, Effect),
        acts: bool,
    ) {
        let versions = &mut self.objects[operation.object.0 as usize].versions;
        versions.count(effect);
        let aspect = effect.sees.or(acts.then_some(Aspect::Content));
        let sight = aspect.map(|aspect| Sight {
            operation: *operation,
            aspect,
            version: versions.of(aspect),
        });
        if sight.is_some() {
            self.note_leaving(thread, operation);
        }
        let round = &mut self.thread_mut(thread).round;
        if effect.changes.is_some() {
            round.change(operation.object, effect);
        }
        round.steps_aside |= operation.action.steps_aside(way);
        match sight {
            // One way comes after the other here, and none of them is like another.
            Some(_) if matches!(operation.action, Action::Choose(_)) => round.forget(),
            Some(sight) => round.see(sight, acts),
            None => {}
        }
    }

    /// The last operation of the running thread turned out to have changed nothing.
    pub(super) fn take_back_change(&mut self, thread: ThreadId) {
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
            && round.alone
            && !round.has(operation)
        {
            self.note_gave_up(thread, head, round.turns);
        }
    }

    fn note_gave_up(&mut self, thread: ThreadId, head: &'static Location<'static>, turns: u32) {
        let turns = turns / self.thread(thread).round.patience() + 1;
        self.gave_up = self.gave_up.max(Some((head, turns)));
    }

    /// What an operation was, or only a look where the change is nothing new to anybody: where a thread goes round without
    /// end and makes the same change in each turn, or does so only because of others like it.
    pub(super) fn unless_stale(
        &mut self,
        thread: ThreadId,
        operation: &Operation,
        effect: Effect,
    ) -> Effect {
        if !self.loops.is_busy(self.thread(thread).hash, operation.at) {
            self.thread_mut(thread).generation = 0;
            return effect;
        }
        let this = self.thread(thread);
        let sight = this.round.sight(operation);
        let noticed = sight.and_then(|sight| self.first_change(&sight));
        let generation = match noticed {
            Some(event) => self.events[event as usize].generation + 1,
            None => this.generation.max(1),
        };
        self.thread_mut(thread).generation = generation;
        let has_echoed = generation >= self.fruitless_turns.max(2);
        match effect == Effect::CHANGE && (has_echoed || self.has_turned_in_vain(thread)) {
            true => Effect::look(Aspect::Content),
            false => effect,
        }
    }

    /// Whether a thread has gone round so often that nothing which it does there is new.
    fn has_turned_in_vain(&self, thread: ThreadId) -> bool {
        let round = &self.thread(thread).round;
        let nature = round.nature.unwrap_or_default();
        round.has_turned(self.fruitless_turns) && nature.spins && round.turns > nature.ends_after
    }
}
