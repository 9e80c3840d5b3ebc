//! Systems written as tables.

use std::time::Duration;

use dragnet::{Cluster, Context, Node, NodeId, Timer};

/// A node that does what the rows of a table say. It begins `idle`.
pub struct Table(Rows);

pub type Rows = &'static [Row];
pub type Text = &'static str;

/// On which node, in which state, what happens, in which state it then is, and what it does.
///
/// What happens is `start`, `call go`, `timer tick`, `crash` (the state is then what is on disk), `recover`, or a message,
/// with or without its sender: `m`, `m from n0`. A node whose next state is `fails` fails an assertion.
pub struct Row(pub usize, pub Text, pub Text, pub Text, pub &'static [Act]);

macro_rules! rows {
    ($($node:literal: $state:literal, $event:literal => $next:literal $(, $act:expr)*;)*) => {
        &[$($crate::table::Row($node, $state, $event, $next, &[$($act),*])),*]
    };
}

#[derive(Clone, Copy)]
pub enum Act {
    Send(usize, Text),
    Set(Text),
    Cancel(Text),
}

pub use Act::{Cancel, Send, Set};
pub(crate) use rows;

impl Table {
    fn row(&self, me: NodeId, state: Text, event: &str) -> Option<&'static Row> {
        let mut rows = self.0.iter();
        rows.find(|row| (row.0, row.1, row.2) == (me.0, state, event))
    }

    /// False when no row speaks of it.
    fn happens(&self, state: &mut Text, event: &str, cx: &mut Context<Text>) -> bool {
        let Some(&Row(_, _, _, next, acts)) = self.row(cx.me(), state, event) else {
            return false;
        };
        cx.assert(next != "fails", format!("{event} in {state}"));
        *state = next;
        for &act in acts {
            match act {
                Send(to, msg) => cx.send(to, msg),
                Set(timer) => cx.set_timer(Timer::new(timer), Duration::ZERO),
                Cancel(timer) => cx.cancel_timer(Timer::new(timer)),
            }
        }
        true
    }
}

impl Node for Table {
    type State = Text;
    type Msg = Text;

    fn on_start(&self, cx: &mut Context<Text>) -> Text {
        let mut state = "idle";
        self.happens(&mut state, "start", cx);
        state
    }

    fn on_message(&self, state: &mut Text, from: NodeId, msg: Text, cx: &mut Context<Text>) {
        if !self.happens(state, msg, cx) {
            self.happens(state, &format!("{msg} from {from}"), cx);
        }
    }

    fn on_timer(&self, state: &mut Text, timer: Timer, cx: &mut Context<Text>) {
        self.happens(state, &format!("timer {timer}"), cx);
    }

    fn on_call(&self, state: &mut Text, call: Text, cx: &mut Context<Text>) {
        self.happens(state, &format!("call {call}"), cx);
    }

    fn durable(&self, state: &Text) -> Option<Text> {
        // Which node it is, a crash need not know: the states that survive have names of their own.
        let mut rows = self.0.iter();
        let row = rows.find(|row| row.1 == *state && row.2 == "crash")?;
        Some(row.3)
    }

    fn on_recover(&self, state: &mut Text, cx: &mut Context<Text>) {
        self.happens(state, "recover", cx);
    }
}

pub fn table(nodes: usize, rows: Rows) -> Cluster<Table> {
    Cluster::new(nodes, |_| Table(rows))
}
