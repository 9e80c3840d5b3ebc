//! Where a number of the local engine no longer fits: it is counted in more bits, or the check is inconclusive or refused,
//! and never wrong.

use std::time::Duration;

use dragnet::engine::{EngineName, Local, Pruning};
use dragnet::nodes::Network;
use dragnet::{Check, Cluster, Context, Node, NodeId, Outcome, Timer, partitions};

use crate::limits::refusal;
use crate::table::{Rows, Send, rows, table};
use crate::verdicts::{at_every_level, never_bad, violated};

/// Begins in many ways, and fails after the last of them.
struct Undecided {
    ways: usize,
}

impl Node for Undecided {
    type State = usize;
    type Msg = ();

    fn on_start(&self, cx: &mut Context<()>) -> usize {
        let way = cx.choose(self.ways);
        if way + 1 == self.ways {
            cx.set_timer(Timer::new("soon"), Duration::ZERO);
        }
        way
    }

    fn on_message(&self, _: &mut usize, _: NodeId, (): (), _: &mut Context<()>) {}

    fn on_timer(&self, _: &mut usize, _: Timer, _: &mut Context<()>) {
        panic!("the last way to begin");
    }
}

#[test]
fn a_node_may_begin_in_more_ways_than_16_bits_count() {
    let ways = 65_537;
    violated(|| Check::new(Cluster::new(1, move |_| Undecided { ways })));
}

/// Node 0 sends node 1 many messages at once, which it ignores.
struct Flood {
    messages: usize,
}

impl Node for Flood {
    type State = ();
    type Msg = ();

    fn on_start(&self, cx: &mut Context<()>) {
        if cx.me() == NodeId(0) {
            cx.set_timer(Timer::new("soon"), Duration::ZERO);
        }
    }

    fn on_message(&self, (): &mut (), _: NodeId, (): (), _: &mut Context<()>) {}

    fn on_timer(&self, (): &mut (), _: Timer, cx: &mut Context<()>) {
        for _ in 0..self.messages {
            cx.send(1, ());
        }
    }
}

#[test]
fn a_step_of_a_history_sends_as_many_messages_as_are_counted_or_none_is_judged() {
    let outcome = |messages| {
        let check = Check::new(Cluster::new(2, move |_| Flood { messages }));
        let check = check.always_for_each("all is well", |_| true);
        let check = check.engine(Local::new().pruning(Pruning::Refined));
        check.run().outcome
    };
    assert_eq!(outcome(65_535), Outcome::Holds);
    let why = "more than 65535 messages are sent in one step in one history";
    assert_eq!(outcome(65_536), Outcome::Inconclusive(why.to_owned()));
}

/// Node 1 is bad once it has received a message.
const MESSAGE: Rows = rows! {
    0: "idle", "call go" => "gone", Send(1, "hello");
    1: "idle", "hello" => "bad";
};

#[test]
fn a_link_has_the_capacity_that_it_is_given_however_large() {
    for capacity in [u32::MAX as usize, 1 << 32, (1 << 32) + 1, usize::MAX] {
        let of_link = || Network::ordered().capacity(capacity);
        let of_class = || Network::unordered().capacity_of("greetings", capacity, |_| true);
        for network in [of_link(), of_class()] {
            let cluster = || table(2, MESSAGE).network(network.clone()).calls(0, ["go"]);
            violated(|| never_bad(cluster()));
        }
    }
}

/// A network on which only the last class has no room.
fn classes(count: usize) -> Network<&'static str> {
    let with_room = (1..count).fold(Network::unordered(), |network, class| {
        network.capacity_of(format!("class {class}"), 1, |_| true)
    });
    with_room.capacity_of("the last", 0, |_| true)
}

#[test]
fn sixty_four_capacities_are_kept_apart_and_more_are_refused() {
    let cluster = |network| table(2, MESSAGE).network(network).calls(0, ["go"]);
    at_every_level(&Pruning::ALL, || never_bad(cluster(classes(64)))).assert_holds();
    for (network, count) in [
        (classes(65), 65),
        (classes(64).capacity(1), 65),
        (classes(129), 129),
    ] {
        assert_eq!(
            refusal(never_bad(cluster(network))),
            format!("a network has at most 64 capacities, and this one has {count}")
        );
    }
}

#[test]
fn sixty_four_nodes_and_sixteen_with_partitions_are_the_most() {
    let check = |nodes, faults| {
        let check = Check::new(table(nodes, MESSAGE).faults(faults)).depth(0);
        check.always_for_each("all is well", |_| true)
    };
    for (nodes, faults) in [(64, partitions(0)), (16, partitions(1))] {
        for engine in [EngineName::Breadth, EngineName::Local] {
            let verdict = check(nodes, faults).engine(engine).run();
            assert!(verdict.violation().is_none(), "{verdict}");
        }
        assert!(refusal(check(nodes + 1, faults)).contains("at most"));
    }
}
