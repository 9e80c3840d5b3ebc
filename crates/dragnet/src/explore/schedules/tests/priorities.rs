//! Probabilistic concurrency testing finds a bug of depth d at least as often as its paper proves: on programs with sleeps,
//! yields and stores, by a one-sided binomial test against 1 / (n k^(d-1)).

use super::*;
use crate::explore::draw::Walks;
use crate::explore::random;
use crate::explore::walk::Space;
use crate::property::{Claim, Properties, Property};
use crate::tables::Domain;
use crate::target::threads::Moments;
use crate::trace::{GOLDEN, Key};

#[derive(Clone, Copy, Debug)]
enum Act {
    Yield,
    Sleep,
    /// A loop of so many sleeps.
    Pause(usize),
    Store(usize),
    Load(usize),
    /// Brings the program one stage further, if it is in this one. The last stage is the bug.
    Advance(usize),
}

/// The first two threads advance in turn; a bug of depth d takes d + 1 of these.
#[derive(Clone, Debug)]
struct Plan {
    threads: Vec<Vec<Act>>,
    depth: u32,
}

impl Plan {
    fn random(number: u64) -> Self {
        let mut drawn = scatter(number);
        let mut below = |end: u64| {
            drawn = drawn.wrapping_add(GOLDEN);
            (scatter(drawn) % end) as usize
        };
        let depth = 1 + (number % 3) as usize;
        let mut threads = vec![Vec::new(); 2 + below(2)];
        for (which, thread) in threads.iter_mut().enumerate() {
            let advances = (which..=depth).step_by(2).filter(|_| which < 2);
            let mut advances = advances.map(Act::Advance);
            loop {
                for _ in 0..below(4) {
                    thread.push(match below(6) {
                        0 => Act::Yield,
                        1 | 2 => Act::Sleep,
                        3 => Act::Pause(1 + below(4)),
                        4 => Act::Store(below(2)),
                        _ => Act::Load(below(2)),
                    });
                }
                let Some(advance) = advances.next() else {
                    break;
                };
                thread.push(advance);
            }
        }
        Self {
            threads,
            depth: depth as u32,
        }
    }

    fn run(&self) {
        let stage = Arc::new(AtomicUsize::new(0));
        let cells = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let threads = self.threads.iter().cloned().map(|acts| {
            let (stage, cells) = (Arc::clone(&stage), Arc::clone(&cells));
            thread::spawn(move || {
                for act in acts {
                    perform(act, &stage, &*cells);
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(stage.load(SeqCst) <= self.depth as usize);
    }
}

fn perform(act: Act, stage: &AtomicUsize, cells: &[AtomicUsize]) {
    let moment = std::time::Duration::from_millis(1);
    match act {
        Act::Yield => thread::yield_now(),
        Act::Sleep => thread::sleep(moment),
        Act::Pause(times) => (0..times).for_each(|_| thread::sleep(moment)),
        Act::Store(cell) => cells[cell].store(1, SeqCst),
        Act::Load(cell) => drop(cells[cell].load(SeqCst)),
        Act::Advance(from) => drop(stage.compare_exchange(from, from + 1, SeqCst, SeqCst)),
    }
}

/// How many of so many walks with d - 1 changes of priority go wrong, and the most steps of one.
fn rate(program: &Arc<Program>, depth: u32, walks: u64) -> (u64, u64) {
    let gauge = Gauge::new();
    let moments = Moments::new(Arc::clone(program));
    let deadlock_free = Property {
        name: "deadlock".to_owned(),
        claim: Claim::DeadlockFree,
    };
    let space = Space {
        system: &moments,
        properties: &Properties::new(vec![deadlock_free]),
        within: &[],
        restriction: None,
        key: Key::default(),
        domain: &Domain::new(1),
        first_worker: 0,
        ends_at_first: false,
    };
    let walks = Walks {
        seed: Seed(0),
        count: walks,
        longest: None,
        priority_changes: Some(depth - 1),
    };
    let wrong = random::wrong_walks(&space, &gauge, &walks);
    (wrong, gauge.depth.load(Relaxed))
}

/// The probability of no more than `most` among `count`, of which each comes up with probability `p`.
fn at_most(most: u64, count: u64, p: f64) -> f64 {
    let mut term = count as f64 * (-p).ln_1p();
    let mut sum = term.exp();
    for number in 0..most {
        term += ((count - number) as f64 / (number + 1) as f64 * p / (1.0 - p)).ln();
        sum += term.exp();
    }
    sum.min(1.0)
}

/// A program on which the bound were met exactly would fail the test with this probability.
const SIGNIFICANCE: f64 = 1e-4;

fn assert_as_often_as_proven(plan: &Plan) {
    let walks = [2_000, 6_000, 40_000][plan.depth as usize - 1];
    let runs = plan.clone();
    let program = program_set(|setting| setting.fruitless_turns = 2, move || runs.run());
    let (wrong, steps) = rate(&program, plan.depth, walks);
    let threads = plan.threads.len() as f64 + 1.0;
    let bound = 1.0 / (threads * (steps as f64).powi(plan.depth as i32 - 1));
    let chance = at_most(wrong, walks, bound);
    assert!(
        chance > SIGNIFICANCE,
        "{wrong} of {walks} walks of up to {steps} steps find it, {:.1} are proven: {plan:?}",
        bound * walks as f64,
    );
}

#[test]
fn bugs_are_found_as_often_as_the_bound_says_where_threads_sleep_yield_and_store() {
    for number in 0..36 {
        assert_as_often_as_proven(&Plan::random(number));
    }
}

#[test]
fn a_bug_between_two_looks_is_found_where_threads_sleep_in_step() {
    use self::Act::{Advance, Pause};
    // Figure 1(b) of the paper, with the pauses of threads that have more to do.
    let looks = vec![Pause(4), Advance(0), Advance(2), Pause(4)];
    let stores = vec![Pause(5), Advance(1), Pause(4)];
    for threads in [
        vec![looks.clone(), stores.clone()],
        vec![looks, stores, vec![Pause(5)]],
    ] {
        assert_as_often_as_proven(&Plan { threads, depth: 2 });
    }
}

#[test]
fn the_tail_of_a_binomial_distribution_is_what_it_should_be() {
    assert!((at_most(0, 3, 0.5) - 0.125).abs() < 1e-12);
    assert!((at_most(1, 3, 0.5) - 0.5).abs() < 1e-12);
    assert!((at_most(3, 3, 0.5) - 1.0).abs() < 1e-12);
    assert!((at_most(5, 1_000, 0.01) - 0.066_139).abs() < 1e-5);
}
