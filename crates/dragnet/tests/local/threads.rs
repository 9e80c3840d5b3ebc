//! What is found does not depend on who looks for it.

use dragnet::engine::{Local, Pruning};
use dragnet::{Check, Cluster, Context, Node, NodeId};

use crate::verdicts::trace_of;

/// The last node sends notes to all others, which collect them: in so many ways that they are worth a second thread.
struct Collector;

const NOTES: u16 = 12;

impl Node for Collector {
    type State = u16;
    type Msg = u16;

    fn on_start(&self, cx: &mut Context<u16>) -> u16 {
        if cx.me() == NodeId(cx.nodes() - 1) {
            for note in 0..NOTES {
                cx.broadcast_to_others(note);
            }
        }
        0
    }

    fn on_message(&self, notes: &mut u16, _from: NodeId, note: u16, _cx: &mut Context<u16>) {
        *notes |= 1 << note;
    }
}

fn same_whatever_the_threads(check: impl Fn() -> Check<Cluster<Collector>>) {
    for level in Pruning::ALL {
        let found = |threads| {
            let check = check()
                .named("collectors")
                .engine(Local::new().pruning(level));
            check.threads(threads).run()
        };
        let alone = found(1);
        let trace = trace_of(&alone).expect("it is violated");
        assert!(check().named("collectors").replay(trace).is_ok(), "{level}");
        for threads in [2, 2, 3, 3] {
            let together = found(threads);
            assert_eq!(
                trace_of(&together),
                Some(trace),
                "{level}, {threads} threads"
            );
        }
    }
}

#[test]
fn of_very_many_ways_to_one_wrong_state_all_threads_find_the_same() {
    same_whatever_the_threads(|| {
        Check::new(Cluster::new(2, |_| Collector)).always_for_each("at most six notes", |node| {
            node.state().is_none_or(|notes| notes.count_ones() <= 6)
        })
    });
}

#[test]
fn of_very_many_wrong_pairs_all_threads_find_the_same() {
    same_whatever_the_threads(|| {
        Check::new(Cluster::new(3, |_| Collector)).always_compatible(
            "nobody has three notes and the other none of them",
            |node| {
                node.state()
                    .copied()
                    .filter(|notes| notes.count_ones() == 3)
            },
            |one, two| one & two != 0,
        )
    });
}
