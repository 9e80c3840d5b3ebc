//! Random nodes: their handlers are short scripts.

use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use crate::target::nodes::{Context, Node, NodeId, Timer};

/// The highest level of a node: no rule applies there.
pub(super) const TOP: u8 = 3;
pub(super) const MESSAGES: u8 = 3;
pub(super) const CALLS: u8 = 2;
pub(super) const MARKS: u8 = 3;
pub(super) const TIMERS: [Timer; 4] = [
    Timer::new("tick"),
    Timer::new("tock"),
    Timer::numbered("retry", 0),
    Timer::numbered("retry", 1),
];

/// One instruction of a handler.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Do {
    /// Raises the level by so much, at most to the highest.
    Rise(u8),
    GoTo(u8),
    /// Changes the part of the state that a coarse `Hash` leaves out.
    Mark(u8),
    /// Sends a message to a node, counted modulo the nodes that there are.
    Send(usize, u8),
    Set(usize),
    Cancel(usize),
    Answer,
    Observe,
    /// Chooses one of these, does it, and goes on behind them.
    Choose(Vec<Vec<Do>>),
    /// Does this as the layer below, and counts what that answers.
    Below(Vec<Do>),
    Assert,
    Panic,
}

impl Debug for Do {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rise(by) => write!(f, "rise {by}"),
            Self::GoTo(level) => write!(f, "go to level {level}"),
            Self::Mark(mark) => write!(f, "mark {mark}"),
            Self::Send(to, kind) => write!(f, "send {kind} to n{to}"),
            Self::Set(timer) => write!(f, "set {}", TIMERS[*timer]),
            Self::Cancel(timer) => write!(f, "cancel {}", TIMERS[*timer]),
            Self::Answer => f.write_str("answer"),
            Self::Observe => f.write_str("observe"),
            Self::Choose(branches) => write!(f, "choose {branches:?}"),
            Self::Below(body) => write!(f, "below {body:?}"),
            Self::Assert => f.write_str("assertion fails"),
            Self::Panic => f.write_str("panic"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trigger {
    /// A message of this kind, from this node if one is named.
    Message(u8, Option<usize>),
    Timer(usize),
    Call(u8),
}

impl Debug for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(kind, None) => write!(f, "message {kind}"),
            Self::Message(kind, Some(from)) => write!(f, "message {kind} from n{from}"),
            Self::Timer(timer) => write!(f, "timer {}", TIMERS[*timer]),
            Self::Call(call) => write!(f, "call {call}"),
        }
    }
}

/// What a node does on an input at a level, or at every level but the highest.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) level: Option<u8>,
    pub(super) on: Trigger,
    pub(super) body: Vec<Do>,
}

impl Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level {
            Some(level) => write!(f, "at level {level}, {:?}: {:?}", self.on, self.body),
            None => write!(f, "below level {TOP}, {:?}: {:?}", self.on, self.body),
        }
    }
}

/// What of its state a node has on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disk {
    Nothing,
    /// The level, if it is no higher than this, and otherwise this.
    Level(u8),
    Everything,
}

/// All that a node does. On what no rule is for, it does nothing.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) start: Vec<Do>,
    pub(super) rules: Vec<Rule>,
    pub(super) disk: Disk,
    pub(super) recover: Vec<Do>,
    /// At this level it waits, besides for answers to its calls.
    pub(super) waits_at: Option<u8>,
}

impl Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "starts {:?}", self.start)?;
        for rule in &self.rules {
            writeln!(f, "      {rule:?}")?;
        }
        if self.disk != Disk::Nothing {
            writeln!(f, "      disk {:?}, recovers {:?}", self.disk, self.recover)?;
        }
        match self.waits_at {
            Some(level) => writeln!(f, "      waits at level {level}"),
            None => Ok(()),
        }
    }
}

impl Script {
    /// Does nothing.
    pub(super) fn idle() -> Self {
        Self {
            start: Vec::new(),
            rules: Vec::new(),
            disk: Disk::Nothing,
            recover: Vec::new(),
            waits_at: None,
        }
    }

    /// The body of the first rule for an input.
    pub(super) fn body(&self, level: u8, on: Trigger) -> &[Do] {
        let matches = |rule: &&Rule| {
            rule.level.map_or(level < TOP, |of_rule| of_rule == level)
                && match (rule.on, on) {
                    (Trigger::Message(kind, None), Trigger::Message(arrived, _)) => kind == arrived,
                    (rule, on) => rule == on,
                }
        };
        self.rules
            .iter()
            .find(matches)
            .map_or(&[], |rule| &rule.body)
    }
}

/// The state of a node. Its `Hash` is legal, and coarse where it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Value {
    pub(super) level: u8,
    pub(super) mark: u8,
    /// How often the layer below has answered, up to two.
    pub(super) below: u8,
    pub(super) coarse: bool,
}

impl Hash for Value {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.level.hash(hasher);
        self.below.hash(hasher);
        if !self.coarse {
            self.mark.hash(hasher);
        }
    }
}

/// A message. Its `Hash` is legal, and says nothing where it is coarse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Word {
    pub(super) kind: u8,
    pub(super) coarse: bool,
}

impl Hash for Word {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        if !self.coarse {
            self.kind.hash(hasher);
        }
    }
}

/// Which values hash more coarsely than they compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Coarse {
    pub(super) states: bool,
    pub(super) messages: bool,
}

/// A node that follows a script.
pub(super) struct Plain {
    pub(super) script: Script,
    pub(super) coarse: Coarse,
}

/// Another kind of node that follows a script: it has another kind of state.
pub(super) struct Boxed(pub(super) Plain);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct BoxedState {
    pub(super) inner: (Value,),
}

impl Plain {
    fn word(&self, kind: u8) -> Word {
        Word {
            kind,
            coarse: self.coarse.messages,
        }
    }

    fn act(&self, body: &[Do], value: &mut Value, cx: &mut Context<Word>) {
        act(body, value, cx, &|kind| self.word(kind));
    }

    fn respond(&self, value: &mut Value, on: Trigger, cx: &mut Context<Word>) {
        self.act(self.script.body(value.level, on), value, cx);
    }
}

/// Follows instructions in a context of a layer with messages of type `M`.
fn act<M>(body: &[Do], value: &mut Value, cx: &mut Context<M>, word: &dyn Fn(u8) -> M) {
    for instruction in body {
        match instruction {
            Do::Rise(by) => value.level = (value.level + by).min(TOP),
            Do::GoTo(level) => value.level = *level,
            Do::Mark(mark) => value.mark = *mark,
            Do::Send(to, kind) => cx.send(to % cx.nodes(), word(*kind)),
            Do::Set(timer) => cx.set_timer(TIMERS[*timer], Duration::ZERO),
            Do::Cancel(timer) => cx.cancel_timer(TIMERS[*timer]),
            Do::Answer => cx.answer(word(0)),
            Do::Observe => cx.observe("something"),
            Do::Choose(branches) => {
                let taken = cx.choose(branches.len());
                act(&branches[taken], value, cx, word);
            }
            Do::Below(body) => {
                let ((), answers) = cx.layer(word, |cx| act(body, value, cx, &|kind: u8| kind));
                value.below = (value.below + answers.len() as u8).min(2);
            }
            Do::Assert => cx.assert(false, "the script says so"),
            Do::Panic => panic!("the script says so"),
        }
    }
}

impl Node for Plain {
    type State = Value;
    type Msg = Word;

    fn on_start(&self, cx: &mut Context<Word>) -> Value {
        let mut value = Value {
            level: 0,
            mark: 0,
            below: 0,
            coarse: self.coarse.states,
        };
        self.act(&self.script.start, &mut value, cx);
        value
    }

    fn on_message(&self, value: &mut Value, from: NodeId, msg: Word, cx: &mut Context<Word>) {
        self.respond(value, Trigger::Message(msg.kind, Some(from.0)), cx);
    }

    fn on_timer(&self, value: &mut Value, timer: Timer, cx: &mut Context<Word>) {
        let timer = TIMERS.iter().position(|known| *known == timer);
        let timer = timer.expect("scripts set no other timers");
        self.respond(value, Trigger::Timer(timer), cx);
    }

    fn on_call(&self, value: &mut Value, call: Word, cx: &mut Context<Word>) {
        self.respond(value, Trigger::Call(call.kind), cx);
    }

    fn waiting(&self, value: &Value) -> bool {
        self.script.waits_at == Some(value.level)
    }

    fn durable(&self, value: &Value) -> Option<Value> {
        match self.script.disk {
            Disk::Nothing => None,
            Disk::Level(most) => Some(Value {
                level: value.level.min(most),
                mark: 0,
                below: 0,
                ..*value
            }),
            Disk::Everything => Some(*value),
        }
    }

    fn on_recover(&self, value: &mut Value, cx: &mut Context<Word>) {
        self.act(&self.script.recover, value, cx);
    }
}

impl Node for Boxed {
    type State = BoxedState;
    type Msg = Word;

    fn on_start(&self, cx: &mut Context<Word>) -> BoxedState {
        BoxedState {
            inner: (self.0.on_start(cx),),
        }
    }

    fn on_message(&self, state: &mut BoxedState, from: NodeId, msg: Word, cx: &mut Context<Word>) {
        self.0.on_message(&mut state.inner.0, from, msg, cx);
    }

    fn on_timer(&self, state: &mut BoxedState, timer: Timer, cx: &mut Context<Word>) {
        self.0.on_timer(&mut state.inner.0, timer, cx);
    }

    fn on_call(&self, state: &mut BoxedState, call: Word, cx: &mut Context<Word>) {
        self.0.on_call(&mut state.inner.0, call, cx);
    }

    fn waiting(&self, state: &BoxedState) -> bool {
        self.0.waiting(&state.inner.0)
    }

    fn durable(&self, state: &BoxedState) -> Option<BoxedState> {
        let kept = self.0.durable(&state.inner.0)?;
        Some(BoxedState { inner: (kept,) })
    }

    fn on_recover(&self, state: &mut BoxedState, cx: &mut Context<Word>) {
        self.0.on_recover(&mut state.inner.0, cx);
    }
}

fn simple() -> impl Strategy<Value = Do> {
    prop_oneof![
        5 => prop_oneof![4 => Just(1_u8), 1 => Just(2)].prop_map(Do::Rise),
        1 => (0..TOP).prop_map(Do::GoTo),
        3 => (0..MARKS).prop_map(Do::Mark),
        6 => (0..5_usize, 0..MESSAGES).prop_map(|(to, kind)| Do::Send(to, kind)),
        3 => (0..TIMERS.len()).prop_map(Do::Set),
        1 => (0..TIMERS.len()).prop_map(Do::Cancel),
        3 => Just(Do::Answer),
        1 => Just(Do::Observe),
        2 => prop_oneof![Just(Do::Assert), Just(Do::Panic)],
    ]
}

/// An instruction with those that it holds, of which there are few.
fn instruction() -> impl Strategy<Value = Do> {
    simple().prop_recursive(2, 6, 3, |inner| {
        let short = || vec(inner.clone(), 0..3);
        prop_oneof![
            2 => vec(short(), 1..4).prop_map(Do::Choose),
            2 => short().prop_map(Do::Below),
        ]
    })
}

fn body() -> impl Strategy<Value = Vec<Do>> {
    vec(instruction(), 0..4).prop_map(|mut body| {
        // A cycle of messages that sends more than it receives never terminates.
        if !body.iter().any(|first| matches!(first, Do::Rise(_))) {
            keep_sends(&mut body, &mut 1);
        }
        body
    })
}

/// Keeps only the first so many instructions that send.
fn keep_sends(body: &mut Vec<Do>, most: &mut usize) {
    body.retain_mut(|instruction| match instruction {
        Do::Send(..) => {
            let keeps = *most > 0;
            *most = most.saturating_sub(1);
            keeps
        }
        Do::Choose(branches) => {
            for branch in branches {
                keep_sends(branch, most);
            }
            true
        }
        Do::Below(body) => {
            keep_sends(body, most);
            true
        }
        _ => true,
    });
}

fn rule() -> impl Strategy<Value = Rule> {
    let from = proptest::option::weighted(0.2, 0..5_usize);
    let on = prop_oneof![
        6 => (0..MESSAGES, from).prop_map(|(kind, from)| Trigger::Message(kind, from)),
        2 => (0..TIMERS.len()).prop_map(Trigger::Timer),
        1 => (0..CALLS).prop_map(Trigger::Call),
    ];
    let level = proptest::option::weighted(0.6, 0..TOP);
    (level, on, body()).prop_map(|(level, on, body)| Rule { level, on, body })
}

pub(super) fn script() -> impl Strategy<Value = Script> {
    let disk = prop_oneof![
        2 => Just(Disk::Nothing),
        1 => (0..TOP).prop_map(Disk::Level),
        1 => Just(Disk::Everything),
    ];
    (
        vec(instruction(), 0..4),
        vec(rule(), 0..11),
        disk,
        body(),
        proptest::option::weighted(0.2, 0..=TOP),
    )
        .prop_map(|(start, rules, disk, recover, waits_at)| Script {
            start,
            rules,
            disk,
            recover,
            waits_at,
        })
}

impl Script {
    /// Takes out all that fails; what remains still does the same otherwise.
    pub(super) fn never_fails(&mut self) {
        forget_failures(&mut self.start);
        forget_failures(&mut self.recover);
        for rule in &mut self.rules {
            forget_failures(&mut rule.body);
        }
    }
}

pub(super) fn forget_failures(body: &mut Vec<Do>) {
    body.retain_mut(|instruction| match instruction {
        Do::Assert | Do::Panic => false,
        Do::Choose(branches) => {
            branches.iter_mut().for_each(forget_failures);
            true
        }
        Do::Below(body) => {
            forget_failures(body);
            true
        }
        _ => true,
    });
}
