//! A node inside a node: a service that is built on another one, each with messages and a state of its own.

use super::Context;

impl<M> Context<M> {
    /// Runs a handler of a layer below: of a node whose state is part of this one's state, and whose messages travel
    /// inside this one's.
    ///
    /// What the layer sends is sent as `wrap` makes it. Its timers, choices, assertions and observations are those of
    /// this handler; a timer is known by its name alone, so that two layers with timers give them different ones. Its
    /// answers are meant for whoever is above it: they come back with what the handler returned.
    ///
    /// ```
    /// use dragnet::{Check, Cluster, Context, Node, NodeId};
    ///
    /// /// The layer below: answers a question when the other node has replied to it.
    /// struct Echo;
    ///
    /// #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    /// enum Call { Ask(u8), Reply(u8) }
    ///
    /// impl Node for Echo {
    ///     type State = ();
    ///     type Msg = Call;
    ///
    ///     fn on_start(&self, _: &mut Context<Call>) {}
    ///
    ///     fn on_call(&self, _: &mut (), question: Call, cx: &mut Context<Call>) {
    ///         cx.broadcast_to_others(question);
    ///     }
    ///
    ///     fn on_message(&self, _: &mut (), from: NodeId, msg: Call, cx: &mut Context<Call>) {
    ///         match msg {
    ///             Call::Ask(n) => cx.send(from, Call::Reply(n)),
    ///             reply => cx.answer(reply),
    ///         }
    ///     }
    /// }
    ///
    /// /// The layer above: asks 7, and remembers what the layer below answered.
    /// struct Curious { echo: Echo }
    ///
    /// #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    /// enum Msg { Echo(Call) }
    ///
    /// impl Node for Curious {
    ///     type State = Vec<Call>;
    ///     type Msg = Msg;
    ///
    ///     fn on_start(&self, cx: &mut Context<Msg>) -> Vec<Call> {
    ///         cx.layer(Msg::Echo, |cx| self.echo.on_call(&mut (), Call::Ask(7), cx));
    ///         Vec::new()
    ///     }
    ///
    ///     fn on_message(&self, heard: &mut Vec<Call>, from: NodeId, msg: Msg, cx: &mut Context<Msg>) {
    ///         let Msg::Echo(msg) = msg;
    ///         let ((), answers) = cx.layer(Msg::Echo, |cx| self.echo.on_message(&mut (), from, msg, cx));
    ///         heard.extend(answers);
    ///     }
    /// }
    ///
    /// Check::new(Cluster::new(2, |_| Curious { echo: Echo }))
    ///     .reachable("both were answered", |s| s.nodes().all(|heard| *heard == [Call::Reply(7)]))
    ///     .run()
    ///     .assert_holds();
    /// ```
    pub fn layer<L, R>(
        &mut self,
        mut wrap: impl FnMut(L) -> M,
        handler: impl FnOnce(&mut Context<L>) -> R,
    ) -> (R, Vec<L>) {
        let mut below = Below::new(self);
        let returned = handler(&mut below.cx);
        let sent = std::mem::take(&mut below.cx.sent);
        let answers = std::mem::take(&mut below.cx.answers);
        drop(below);
        self.sent
            .extend(sent.into_iter().map(|(to, msg)| (to, wrap(msg))));
        (returned, answers)
    }
}

/// A layer at work, with everything in its hands that has nothing to do with the type of its messages. It gives that back
/// when it ends, also when it ends in a panic: the choices that led there are part of the execution.
struct Below<'a, L, M> {
    cx: Context<L>,
    above: &'a mut Context<M>,
}

impl<'a, L, M> Below<'a, L, M> {
    fn new(above: &'a mut Context<M>) -> Self {
        let mut cx = Context::new(above.me(), above.nodes());
        above.swap_all_but_messages(&mut cx);
        Self { cx, above }
    }
}

impl<L, M> Drop for Below<'_, L, M> {
    fn drop(&mut self) {
        self.above.swap_all_but_messages(&mut self.cx);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::context::TimerChange;
    use super::super::{NodeId, Timer};
    use super::*;
    use crate::panics;

    const ABOVE: Timer = Timer::new("above");
    const BELOW: Timer = Timer::new("below");

    #[test]
    fn what_a_layer_does_is_done_in_order_and_its_answers_come_back() {
        let mut cx = Context::<String>::new(NodeId(1), 3);
        cx.send(0, "first".to_owned());
        cx.set_timer(ABOVE, Duration::ZERO);
        let (returned, answers) = cx.layer(
            |number: u8| format!("below {number}"),
            |cx| {
                assert_eq!((cx.me(), cx.nodes()), (NodeId(1), 3));
                cx.broadcast_to_others(7);
                cx.set_timer(BELOW, Duration::ZERO);
                cx.cancel_timer(ABOVE);
                cx.observe("seen");
                cx.assert(false, "said below");
                cx.answer(8);
                "done"
            },
        );
        cx.send(0, "last".to_owned());
        assert_eq!((returned, answers), ("done", vec![8]));
        let sent: Vec<(usize, &str)> = cx.sent.iter().map(|(to, msg)| (to.0, &msg[..])).collect();
        assert_eq!(
            sent,
            [(0, "first"), (0, "below 7"), (2, "below 7"), (0, "last")]
        );
        assert_eq!(
            cx.timers,
            [
                (ABOVE, TimerChange::Set),
                (BELOW, TimerChange::Set),
                (ABOVE, TimerChange::Cancelled)
            ]
        );
        assert_eq!(cx.observations, ["\"seen\""]);
        assert!(cx.answers.is_empty());
        let failure = cx.failure.expect("the assertion failed");
        assert_eq!(failure.message(), "said below");
    }

    #[test]
    fn choices_of_all_layers_count_together() {
        let mut seen = Vec::new();
        let mut next = Some(Context::<()>::new(NodeId(0), 1));
        while let Some(mut cx) = next {
            let first = cx.choose(2);
            let (second, _) = cx.layer(|()| (), |cx| cx.choose(2));
            seen.push((first, second, cx.choose(2)));
            next = cx.next_combination();
        }
        let all = (0..8).map(|n| (n >> 2, n >> 1 & 1, n & 1));
        assert_eq!(seen, all.collect::<Vec<_>>());
    }

    #[test]
    fn choices_before_a_panic_below_are_remembered() {
        let mut cx = Context::<()>::choosing(NodeId(0), 1, &[1]);
        let below = |cx: &mut Context<u8>| assert_eq!(cx.choose(2), 0, "a panic below");
        panics::catch(|| cx.layer(|_| (), below)).unwrap_err();
        assert_eq!(cx.choices_taken().collect::<Vec<_>>(), [1]);
    }
}
