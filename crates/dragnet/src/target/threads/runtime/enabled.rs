//! Which threads are enabled, and in which ways.

use super::super::operation::{Action, Operation, ThreadId, Way, Ways};
use super::super::state::State;
use super::executor::Taken;

/// Decisions that were taken in an earlier execution, to be taken again.
#[derive(Default)]
pub(in super::super) struct Ahead {
    prescribed: Vec<Taken>,
    taken: usize,
}

impl Ahead {
    pub(in super::super) fn prescribe(&mut self, taken: &[Taken]) {
        self.prescribed.clear();
        self.prescribed.extend_from_slice(taken);
        self.taken = 0;
    }

    fn next(&self) -> Option<&Taken> {
        self.prescribed.get(self.taken)
    }

    /// Who goes on next.
    pub(in super::super) fn next_thread(&self) -> Option<ThreadId> {
        self.next().map(|next| next.transition.0)
    }

    /// Whether the thread that was last to go on is this one, and goes on next.
    pub(in super::super) fn is_of_same(&self, thread: ThreadId) -> bool {
        let last = self.taken.checked_sub(1);
        self.next_thread() == Some(thread)
            && last.is_some_and(|last| self.prescribed[last].transition.0 == thread)
    }

    fn pass(&mut self) {
        self.taken += 1;
    }
}

impl State {
    /// The ways in which threads can go on. Those that go round without seeing anything new wait for the others.
    pub(in super::super) fn enabled(
        &mut self,
        ways: &mut Vec<Way>,
        enabled: &mut Vec<(ThreadId, Way)>,
    ) {
        enabled.clear();
        let mut in_vain = false;
        for at in 0..self.order.len() {
            let id = self.order[at];
            let thread = self.thread(id);
            if thread.pending.is_none() {
                continue;
            }
            if thread.round.has_turned(self.fruitless_turns) && self.waits_in_loop(id) {
                in_vain = true;
            } else {
                self.ways_of(id, ways, enabled);
            }
        }
        self.went_round |= in_vain;
        if !enabled.is_empty() || !in_vain {
            return;
        }
        let waits = |id: &ThreadId| self.can_go_on(*id);
        if self
            .order
            .iter()
            .copied()
            .filter(|id| waits(id))
            .all(|id| self.is_lost_in_loop(id))
        {
            return;
        }
        // One at a time, whoever has waited longest: what they see of each other while they go round is nothing new.
        let mut next = None;
        for &id in &self.order {
            let latest = self.thread(id).latest;
            let is_next = next.is_none_or(|other| latest < self.thread(other).latest);
            if is_next && self.can_go_on(id) && !self.is_hopeless(id) {
                next = Some(id);
            }
        }
        if let Some(next) = next {
            self.ways_of(next, ways, enabled);
        }
    }

    /// The ways in which a thread can go on, but for its patience.
    pub(in super::super) fn ways_of(
        &self,
        id: ThreadId,
        ways: &mut Vec<Way>,
        out: &mut Vec<(ThreadId, Way)>,
    ) {
        let Some(pending) = self.thread(id).pending else {
            return;
        };
        let model = &self.object(pending.object).model;
        if let Some(way) = pending.action.only_way() {
            if model.allows(id, pending.action, way) {
                out.push((id, way));
            }
            return;
        }
        ways.clear();
        model.ways(id, pending.action, ways);
        if pending.action == Action::NotifyOne {
            ways.sort_unstable_by_key(|&way| self.thread(ThreadId(way)).hash);
        }
        out.extend(ways.iter().map(|&way| (id, way)));
    }

    /// Whether nothing but its own patience keeps a thread from going on.
    pub(in super::super) fn can_go_on(&self, thread: ThreadId) -> bool {
        let Some(pending) = self.pending(thread) else {
            return false;
        };
        match pending.action.only_way() {
            Some(way) => self
                .object(pending.object)
                .model
                .allows(thread, pending.action, way),
            None => !self.open_ways(thread).is_empty(),
        }
    }

    /// The same in one way.
    fn allows(&self, thread: ThreadId, way: Way) -> bool {
        let Some(Operation { object, action, .. }) = self.pending(thread) else {
            return false;
        };
        let model = &self.object(object).model;
        match action.only_way() {
            Some(only) => way == only && model.allows(thread, action, way),
            None => model.has_way(thread, action, way),
        }
    }

    /// Whether a thread has come to what it did in an execution of which this one repeats some events, and can do it. A
    /// thread that was notified there wakes up here too: a notification that is left out has not ordered anything.
    pub(in super::super) fn repeats(
        &self,
        thread: ThreadId,
        operation: &Operation,
        way: Way,
    ) -> bool {
        // Where less happens than did, things have other numbers.
        let is_same = self.pending(thread).is_some_and(|pending| {
            (pending.action, pending.at) == (operation.action, operation.at)
        });
        let is_notified = matches!(operation.action, Action::Wake { .. }) && way == Ways::COME;
        is_same && (is_notified || self.allows(thread, way))
    }

    /// A thread takes the next of the decisions that are prescribed, which is its own. False if it cannot.
    pub(in super::super) fn goes_ahead(&mut self, thread: ThreadId) -> bool {
        let Some(&Taken {
            transition: (_, way),
            operation,
        }) = self.ahead.next()
        else {
            return false;
        };
        let is_other = operation.is_some() && self.pending(thread) != operation;
        if is_other || !self.allows(thread, way) {
            return false;
        }
        if self.thread(thread).round.has_turned(self.fruitless_turns) {
            // What is known of a loop belongs to its round from when it comes up. It was found out when this was decided.
            self.waits_in_loop(thread);
            self.wonders = None;
        }
        self.ahead.pass();
        self.perform(thread, way);
        true
    }

    fn open_ways(&self, thread: ThreadId) -> Vec<(ThreadId, Way)> {
        let mut open = Vec::new();
        if self.pending(thread).is_some() {
            self.ways_of(thread, &mut Vec::new(), &mut open);
        }
        open
    }

    /// The way in which a thread went on when it last did what it has come to, or else any, if it can go on at all.
    pub(in super::super) fn same_way(&self, thread: ThreadId) -> Option<Way> {
        let open = self.open_ways(thread);
        let pending = self.pending(thread)?;
        let events = self.object(pending.object).events.iter().rev();
        let mut events = events.map(|&event| &self.events[event as usize]);
        let last = events.find(|event| event.thread == thread && event.operation == pending);
        let mut ways = open.iter().map(|&(_, way)| way);
        ways.clone()
            .find(|&way| last.is_some_and(|last| last.way == way))
            .or_else(|| ways.next_back())
    }

    /// The decisions without which a thread would not be where it is.
    pub(in super::super) fn way_to(&self, thread: ThreadId) -> Vec<(ThreadId, Way)> {
        let row = self.thread(thread).row;
        let events = self.events.iter();
        let past = events.filter(|event| self.clocks.of(row, event.thread) > event.index);
        past.map(|event| (event.thread, event.way)).collect()
    }
}
