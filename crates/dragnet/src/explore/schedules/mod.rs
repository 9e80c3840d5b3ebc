//! Every schedule that matters: executions of a program with threads, explored by running it again and again.
//!
//! Two executions in which the same events depend on each other in the same order come to the same: one of them is
//! enough. After each execution its [races](races) are found, and for each race an execution is
//! [planned](tree) in which it goes the other way, unless it begins like one that is known. This is dynamic
//! partial-order reduction by source sets with sleep sets (Abdulla, Aronis, Jonsson and Sagonas, *Optimal dynamic partial
//! order reduction*, POPL 2014), under which no two executions that come to an end are alike. At its best all of what a
//! race needs to go the other way is prescribed and merged into what is planned, as in the wake-up trees there, and no
//! execution is given up halfway.
//!
//! Several workers take what is planned side by side. What sleeps for one of them may then be explored by another only
//! later, while wake-up trees rely on all that it leads to; so they plan only the first step of each reversal, as source
//! sets do.
//!
//! To merge one must know whether steps that were seen in different executions are
//! on the same object. Objects that are there where the plan begins are the same in all executions that come there; where
//! others matter, an execution is run in which both steps can be seen.
//!
//! So at its best each way to plan has its price: executions that are given up, or those that are run only to compare. Where
//! it turns out to be high, it is begun anew in the other way.

mod races;
mod simplest;
mod tree;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::limits::Gauge;
use super::walk::{LONGEST, Places};
use crate::engine::Reduction;
use crate::target::threads::describe::most_frequent_places;
use crate::target::threads::execution::ExecutionView;
use crate::target::threads::executor::{Director, Executor, Finish, Program, Taken, Transition};
use crate::target::threads::history::Event;
use crate::target::threads::lost;
use crate::target::threads::operation::{Action, ThreadId};
use crate::target::threads::spin::blocking::GaveUp;
use crate::target::threads::world;
use races::{Planned, Question, Relation, Witness};
use tree::{Claim, Leg, NodeId, ROOT, Tree};

/// How many steps an execution takes between two looks at the limits.
const BETWEEN_LOOKS: usize = 1_024;

/// What exploring schedules came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Explored {
    /// The decisions that lead to something wrong, and how that execution ended.
    pub(crate) found: Option<(Vec<Transition>, Finish)>,
    /// Executions that came to an end.
    pub(crate) executions: u64,
    /// Executions that were given up, because others are like them.
    pub(crate) blocked_executions: u64,
    /// Those of them that were run only to compare plans.
    pub(crate) questions: u64,
    /// Decisions in all executions.
    pub(crate) scheduling_points: u64,
    /// Whether executions longer than allowed were cut.
    pub(crate) cut_deeper: bool,
    /// Where one was in the end that was so long that it may have none.
    pub(crate) endless_at: Option<Places>,
    /// Whether too many executions came to nothing, or one could not be run as it was planned, and it was left at that.
    is_futile: bool,
    /// Whether a thread had to wait because it went round without seeing anything new.
    pub(crate) went_round: bool,
    /// Where a thread had to wait because of that, though it would have gone on by itself.
    pub(crate) gave_up: Option<GaveUp>,
    /// The most operations of one execution that asked for a weaker ordering than they got.
    pub(crate) weakly_ordered: u64,
    /// Whether a thread has drawn a random number.
    pub(crate) has_drawn: bool,
}

/// Explores the schedules of a program. `judge` says whether an execution is as it should be.
pub(crate) struct Schedules<'a> {
    pub(crate) program: &'a Arc<Program>,
    pub(crate) reduction: Reduction,
    pub(crate) longest: Option<u64>,
    /// How often a thread may be interrupted that could have gone on. What comes to the same may take more, so that races
    /// say nothing then; the reduction is to go on only once from where the same has happened.
    pub(crate) preemptions: Option<u32>,
    pub(crate) gauge: &'a Gauge,
    pub(crate) workers: usize,
    /// Called with each execution that came to an end; false ends the exploration.
    pub(crate) watch: &'a (dyn Fn(ExecutionView<'_>, &Finish) -> bool + Sync),
}

/// What is planned of an execution in which a race goes the other way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Planning {
    /// Its first step, as source sets do. Any number of workers can.
    First,
    /// All of its steps, merged with what is planned already, as wake-up trees are. Takes one worker.
    Whole,
}

/// Executions that came to nothing are too many when there are so many times as many of them as of others,
const WASTE: u64 = 2;
/// and so many more.
const SMALL_WASTE: u64 = 1_000;

/// One exploration of all schedules, perhaps to be begun anew with another way of planning.
#[derive(Clone, Copy)]
struct Attempt {
    planning: Planning,
    /// Whether to plan in the other way where too many executions come to nothing,
    minds_waste: bool,
    /// or where one cannot be run as it was planned.
    minds_surprise: bool,
}

impl Attempt {
    const LAST: Self = Self {
        planning: Planning::First,
        minds_waste: false,
        minds_surprise: false,
    };

    /// The attempts to be made one after the other, until one comes to something.
    fn all(can_plan_ahead: bool, workers: usize) -> Vec<Self> {
        let sparing = Self {
            minds_waste: true,
            ..Self::LAST
        };
        let whole = Self {
            planning: Planning::Whole,
            minds_waste: workers == 1,
            minds_surprise: true,
        };
        match (can_plan_ahead, workers) {
            (false, _) => vec![Self::LAST],
            (true, 1) => vec![whole, Self::LAST],
            (true, _) => vec![sparing, whole, Self::LAST],
        }
    }
}

struct Shared {
    attempt: Attempt,
    /// How much was known of the program's loops.
    revision: u64,
    tree: Mutex<Tree>,
    /// Something is open, or all is done.
    news: Condvar,
    /// Whether a worker has panicked.
    is_broken: AtomicBool,
    explored: Mutex<Explored>,
    /// What has happened, who went on last, and how few interruptions that took: under a bound on them.
    seen: Mutex<HashMap<(u64, Option<ThreadId>), u32>>,
}

/// Has nobody wait for a worker that panics.
struct Alarm<'a>(&'a Shared);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(shared) = self;
            // Whoever is about to wait has seen it or not come to that.
            let _tree = lock(&shared.tree);
            shared.is_broken.store(true, Relaxed);
            shared.news.notify_all();
        }
    }
}

impl Explored {
    /// Whether nothing more has to be known.
    fn is_over(&self) -> bool {
        self.found.is_some() || self.endless_at.is_some() || self.is_futile
    }

    /// What it comes to when it is begun anew, because it came to nothing.
    fn before(self, gauge: &Gauge, again: impl FnOnce() -> Self) -> Self {
        gauge.restart();
        let mut again = again();
        again.blocked_executions += self.executions + self.blocked_executions;
        again.scheduling_points += self.scheduling_points;
        again
    }
}

impl Schedules<'_> {
    pub(crate) fn explore(&self) -> Explored {
        // Where something may go wrong, what was planned can come out in ways that others have used up.
        let can_plan_ahead = self.reduction == Reduction::Optimal
            && self.preemptions.is_none()
            && self.program.setting.faults.is_none();
        let mut explored = Explored::default();
        for attempt in Attempt::all(can_plan_ahead, self.workers) {
            explored = explored.before(self.gauge, || self.attempt(attempt));
            if !explored.is_futile || explored.found.is_some() {
                break;
            }
        }
        // Where an execution is cut, nothing is known of races with what would have come.
        let is_blind = explored.cut_deeper && self.longest.is_some() && self.follows_races();
        if is_blind && explored.found.is_none() && !self.gauge.must_end() {
            let thorough = Schedules {
                reduction: Reduction::Sleep,
                ..*self
            };
            explored = explored.before(self.gauge, || thorough.attempt(Attempt::LAST));
        }
        explored
    }

    /// Explores all schedules, and begins anew whenever something was learnt of the program's loops by which earlier
    /// executions would have gone otherwise.
    fn attempt(&self, attempt: Attempt) -> Explored {
        let revision = self.program.loops.revision();
        let explored = self.explore_at(revision, attempt);
        if !self.has_new_facts(revision) || self.gauge.must_end() || self.still_finds(&explored) {
            return explored;
        }
        explored.before(self.gauge, || self.attempt(attempt))
    }

    /// Whether something wrong was found that is also found by what is known now.
    fn still_finds(&self, explored: &Explored) -> bool {
        let found = explored.found.as_ref();
        found.is_some_and(|(decisions, finish)| self.retrace(decisions, |_| ()).0.finish == *finish)
    }

    /// Whether something was learnt of the program's loops since.
    fn has_new_facts(&self, revision: u64) -> bool {
        self.program.loops.revision() != revision
    }

    fn explore_at(&self, revision: u64, attempt: Attempt) -> Explored {
        let merges = attempt.planning == Planning::Whole;
        let shared = Shared {
            attempt,
            revision,
            tree: Mutex::new(Tree::new(self.lets_sleep(), merges)),
            news: Condvar::new(),
            is_broken: AtomicBool::new(false),
            explored: Mutex::default(),
            seen: Mutex::default(),
        };
        let workers = if merges { 1 } else { self.workers };
        let first = lock(&shared.tree).first();
        std::thread::scope(|scope| {
            for _ in 1..workers {
                scope.spawn(|| self.work(&shared, None));
            }
            self.work(&shared, Some(first));
        });
        shared
            .explored
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what has been taken elsewhere sleeps.
    fn lets_sleep(&self) -> bool {
        self.reduction != Reduction::None && self.preemptions.is_none()
    }

    /// Whether races say which executions follow from one.
    fn follows_races(&self) -> bool {
        let by_races = matches!(self.reduction, Reduction::Source | Reduction::Optimal);
        by_races && self.preemptions.is_none()
    }

    /// Runs executions until there are no more, each on a thread of the operating system that is fit for it.
    fn work(&self, shared: &Shared, first: Option<Claim>) {
        let _alarm = Alarm(shared);
        let mut next = first.or_else(|| self.claim(shared, Claim::default()));
        while let Some(claim) = next {
            let work = || super::quiet::silence_tracing(|| self.work_here(shared, claim));
            next = self.program.apart(work);
        }
    }

    /// Runs executions until there are no more, or one is open for which this thread of the operating system is not fit.
    fn work_here(&self, shared: &Shared, first: Claim) -> Option<Claim> {
        let mut executor = Executor::new(Arc::clone(self.program));
        if !self.follows_races() {
            executor.keep_no_models();
        }
        let mut asker = None;
        let mut next = Some(first);
        while let Some(claim) = next.take_if(|_| !world::is_spoiled()) {
            let claim = self.run(shared, &mut executor, &mut asker, claim);
            next = self.claim(shared, claim);
        }
        next
    }

    /// An execution that is to be run, after `last`.
    fn claim(&self, shared: &Shared, mut last: Claim) -> Option<Claim> {
        let mut tree = lock(&shared.tree);
        loop {
            let over = self.gauge.must_end()
                || shared.is_broken.load(Relaxed)
                || lock(&shared.explored).is_over();
            if over || tree.is_done() || self.has_new_facts(shared.revision) {
                shared.news.notify_all();
                return None;
            }
            if tree.claim(&mut last) {
                return Some(last);
            }
            tree = shared
                .news
                .wait(tree)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Runs an execution to answer a question, with an executor that is kept for that.
    fn ask(&self, asker: &mut Option<Executor>, question: &Question) -> Option<Relation> {
        let ask = |executor: &mut Executor| {
            executor.run(&mut Follow(&question.way));
            question.answer(executor.last_execution().view())
        };
        let new = || Executor::new(Arc::clone(self.program));
        match world::is_spoiled() {
            true => self.program.apart(|| ask(&mut new())),
            false => ask(asker.get_or_insert_with(new)),
        }
    }

    /// Runs one execution, and plans those that follow from it.
    fn run(
        &self,
        shared: &Shared,
        executor: &mut Executor,
        asker: &mut Option<Executor>,
        claim: Claim,
    ) -> Claim {
        let mut guide = Guide {
            reduction: self.reduction,
            longest: self.longest.unwrap_or(LONGEST),
            gauge: self.gauge,
            preemptions: self.preemptions,
            preempted: 0,
            history: 0,
            shared,
            at: 0,
            claim,
            blocked: false,
            too_long: false,
            astray: false,
            differs: false,
        };
        let finish = executor.run(&mut guide);
        let last = executor.last_execution();
        let execution = last.view();
        if matches!(finish, Finish::Complete | Finish::Stuck) {
            guide.blocked = guide.has_ended_like_this(execution);
        }
        let Guide {
            at,
            claim,
            blocked,
            too_long,
            astray,
            differs,
            ..
        } = guide;
        let legs = &claim.legs;
        // It may have ended earlier than the one that it begins like.
        let taken = legs.iter().take(at.min(execution.events().len()));
        let taken = || taken.map(|leg| leg.taken.transition).collect();
        // Before anything else is run on this thread.
        let is_wrong = !blocked && !too_long && !(self.watch)(execution, &finish);
        let merges = shared.attempt.planning == Planning::Whole;
        let is_endless = too_long && self.longest.is_none();
        let races = (self.follows_races() && !is_endless).then(|| {
            let witness = Witness::new(execution);
            // All that an execution does belongs to what is planned as a whole, also where its race has been seen before.
            let from = if merges { 0 } else { claim.new };
            (witness.reversals(from), witness)
        });
        let (mut asked, mut lost_track) = (0, false);
        let mut ask = |question: &Question| {
            asked += 1;
            let answer = self.ask(asker, question);
            lost_track |= answer.is_none();
            answer.unwrap_or(Relation::Conflict)
        };
        {
            let tree = &mut *lock(&shared.tree);
            if let Some((reversals, witness)) = &races {
                for reversal in reversals {
                    let at = reversal.at as usize;
                    let (node, reversed) = (node_before(legs, at), legs[at].node);
                    if merges {
                        tree.insert_whole(node, reversed, reversal, witness, &mut ask);
                    } else {
                        tree.insert_first(node, reversed, reversal, witness);
                    }
                }
            }
            tree.release(node_before(legs, legs.len()));
            if self.workers > 1 {
                shared.news.notify_all();
            }
        }
        let mut explored = lock(&shared.explored);
        explored.went_round |= execution.went_round();
        explored.gave_up = explored.gave_up.max(execution.gave_up());
        explored.has_drawn |= execution.has_drawn();
        explored.weakly_ordered = explored.weakly_ordered.max(executor.weakly_ordered());
        explored.blocked_executions += asked;
        explored.questions += asked;
        let is_astray = (astray || lost_track) && !self.has_new_facts(shared.revision);
        // What is planned as a whole relies on what threads do next being the same in another order. Where it depends on
        // who drops an `Arc` last, it is not, whether an operation tells that or not.
        let is_surprising = is_astray && !differs || execution.last_drop_matters();
        let is_futile = is_surprising && shared.attempt.minds_surprise;
        explored.is_futile |= is_futile;
        if (differs || is_astray && !is_futile) && explored.found.is_none() {
            explored.found = Some((taken(), Finish::Failed(lost())));
        } else if is_wrong && explored.found.is_none() {
            explored.found = Some((taken(), finish));
        }
        explored.scheduling_points += execution.events().len() as u64;
        explored.cut_deeper |= too_long;
        if is_endless {
            explored.endless_at = Some(most_frequent_places(execution));
        }
        if blocked {
            explored.blocked_executions += 1;
        } else if !too_long {
            explored.executions += 1;
            self.gauge.add(1, 0);
        }
        let most = explored.executions * WASTE + SMALL_WASTE;
        explored.is_futile |= shared.attempt.minds_waste && explored.blocked_executions > most;
        self.gauge.add(0, execution.events().len() as u64);
        self.gauge.reach(execution.events().len() as u64);
        claim
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The node at which an execution is before a step.
fn node_before(legs: &[Leg], step: usize) -> NodeId {
    step.checked_sub(1).map_or(ROOT, |before| legs[before].node)
}

/// Takes an execution along its way, and on from there.
struct Guide<'a> {
    reduction: Reduction,
    longest: u64,
    gauge: &'a Gauge,
    preemptions: Option<u32>,
    preempted: u32,
    /// A hash of what has happened.
    history: u64,
    shared: &'a Shared,
    /// How many decisions have been taken.
    at: usize,
    /// The way, which grows with the execution, and what need not be taken: others have, and what has happened since does not
    /// matter to it.
    claim: Claim,
    blocked: bool,
    too_long: bool,
    /// Whether what was planned turned out to be impossible.
    astray: bool,
    /// Whether the program did something else than before.
    differs: bool,
}

impl Guide<'_> {
    /// Who went on last.
    fn last(&self) -> Option<ThreadId> {
        let last = self.at.checked_sub(1)?;
        Some(self.claim.legs[last].taken.transition.0)
    }

    /// Who went on last and can go on, if interruptions are counted.
    fn could_go_on(
        &self,
        execution: ExecutionView<'_>,
        enabled: &[Transition],
    ) -> Option<ThreadId> {
        self.preemptions?;
        let steps_aside = |event: &Event| event.operation.action == Action::Yield;
        let last = self.last();
        let stays = last.filter(|_| !execution.last_event().is_some_and(steps_aside));
        stays.filter(|&last| enabled.iter().any(|&(thread, _)| thread == last))
    }

    /// Whether what has happened is kept, so as to go on from there only once.
    fn remembers(&self) -> bool {
        self.preemptions.is_some() && self.reduction != Reduction::None
    }

    /// Takes note of the last event.
    fn follow(&mut self, execution: ExecutionView<'_>) {
        if self.remembers()
            && let Some(last) = execution.last_event()
        {
            self.history = self.history.wrapping_add(execution.hash_of(last));
        }
    }

    /// Whether the same has happened elsewhere with no more interruptions, and the same thread went on last.
    fn has_been_here(&self) -> bool {
        if !self.remembers() {
            return false;
        }
        let last = self.last();
        let mut seen = lock(&self.shared.seen);
        let known = seen.entry((self.history, last)).or_insert(u32::MAX);
        let again = *known <= self.preempted;
        *known = self.preempted.min(*known);
        again
    }

    /// Whether an execution has ended like this one, which has ended.
    fn has_ended_like_this(&mut self, execution: ExecutionView<'_>) -> bool {
        self.follow(execution);
        self.remembers() && {
            let mut seen = lock(&self.shared.seen);
            seen.insert((self.history, None), 0).is_some()
        }
    }

    /// Wakes what the last event matters to.
    fn wake(&mut self, execution: ExecutionView<'_>) {
        let Some(event) = execution.last_event() else {
            return;
        };
        let last = (event.thread, &event.operation, event.way);
        self.claim.asleep.retain(|&(thread, way)| {
            let Some(pending) = execution.pending(thread) else {
                return false;
            };
            thread != last.0
                && !execution.depends(last, (thread, &pending, way))
                && !execution.has_become_last(event, &pending)
        });
    }

    /// What comes next, among what is awake. A way that leads on is `planned`, or there is none. What has been taken instead
    /// of it is `earlier`.
    fn choose(
        &self,
        planned: Option<Transition>,
        earlier: &[Transition],
        enabled: &[Transition],
    ) -> Option<Transition> {
        let awake = |transition: &&Transition| !self.claim.asleep.contains(transition);
        let Some(planned) = planned else {
            // Rather the thread that has just gone on: that makes few changes from one to another.
            let last = self.last();
            let mut own = enabled.iter().filter(|next| Some(next.0) == last);
            return own
                .find(awake)
                .or_else(|| enabled.iter().find(awake))
                .copied();
        };
        if enabled.contains(&planned) {
            return Some(planned).filter(|next| awake(&next));
        }
        // Where it comes earlier than it was seen, it may come out in other ways; some of them may have been taken.
        let mut own = enabled.iter().filter(|other| other.0 == planned.0);
        own.find(|next| awake(next) && !earlier.contains(next))
            .copied()
    }
}

impl Director for Guide<'_> {
    fn begun(&mut self, taken: &mut Vec<Taken>) {
        // Interruptions are counted one by one.
        if self.preemptions.is_none() {
            self.at = self.claim.new;
            taken.extend(self.claim.legs[..self.at].iter().map(|leg| leg.taken));
        }
    }

    fn next(&mut self, execution: ExecutionView<'_>, enabled: &[Transition]) -> Option<Transition> {
        self.wake(execution);
        self.follow(execution);
        let at = self.at;
        let is_cut = at % BETWEEN_LOOKS == BETWEEN_LOOKS - 1 && self.gauge.must_end();
        if at as u64 >= self.longest || is_cut {
            self.too_long = true;
            return None;
        }
        let leg = self.claim.legs.get(at).copied();
        let planned = leg.map(|leg| leg.taken.transition);
        if at > self.claim.new && self.has_been_here() {
            self.blocked = true;
            return None;
        }
        let mut tree = (at >= self.claim.new).then(|| lock(&self.shared.tree));
        let here = node_before(&self.claim.legs, at);
        if let Some(tree) = &mut tree
            && !tree.is_like_before(here, execution.pending_hash())
        {
            (self.blocked, self.differs) = (true, true);
            return None;
        }
        let earlier = match (&tree, leg) {
            (Some(tree), Some(leg)) => tree.earlier(leg.node),
            _ => &[],
        };
        let Some(next) = self.choose(planned, earlier, enabled) else {
            self.blocked = true;
            // Where its thread is blocked in a spin loop, it is as if it had not been planned.
            self.astray = planned.is_some_and(|(thread, _)| {
                let mut enabled = enabled.iter();
                !enabled.any(|possible| possible.0 == thread) && !execution.is_spinning(thread)
            });
            return None;
        };
        let is = execution.pending(next.0);
        if tree.is_none() && leg.is_some_and(|leg| leg.taken.operation != is) {
            (self.blocked, self.differs) = (true, true);
            return None;
        }
        let could_go_on = self.could_go_on(execution, enabled);
        let interrupts = |thread| could_go_on.is_some_and(|last| last != thread);
        if let Some(mut tree) = tree {
            let legs = &mut self.claim.legs;
            match leg {
                Some(leg) if planned != Some(next) => tree.correct(leg.node, next),
                Some(_) => {}
                None => {
                    let planned = is.map(|operation| Planned {
                        operation,
                        objects: execution.object_count() as u32,
                    });
                    legs.push(tree.advance(here, next, planned));
                }
            }
            legs[at].taken = Taken {
                transition: next,
                operation: is,
            };
            let is_last = self.preemptions.is_some_and(|most| self.preempted >= most);
            let others = enabled.iter().copied().filter(|&other| {
                let must = match self.reduction {
                    _ if self.preemptions.is_some() => true,
                    Reduction::None | Reduction::Sleep => true,
                    Reduction::Source | Reduction::Optimal => other.0 == next.0,
                };
                let too_many = is_last && interrupts(other.0);
                must && other != next && !too_many && !self.claim.asleep.contains(&other)
            });
            tree.offer(here, others);
            tree.note(legs[at].node, is, &mut self.claim.asleep);
        }
        self.preempted += u32::from(interrupts(next.0));
        self.at += 1;
        Some(next)
    }
}

/// Takes an execution along a way, and no further.
struct Follow<'a>(&'a [Transition]);

impl Director for Follow<'_> {
    fn next(&mut self, _: ExecutionView<'_>, enabled: &[Transition]) -> Option<Transition> {
        let (&next, further) = self.0.split_first()?;
        self.0 = further;
        enabled.contains(&next).then_some(next)
    }
}

#[cfg(test)]
mod tests;
