//! Nodes whose states can be neither cloned nor compared: rebuilt from what happened to them.

use std::collections::{HashMap, VecDeque};
use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use super::context::Context;
use super::digested::note_digest;
use super::{Node, NodeId, Timer};
use crate::panics;
use crate::sterile;
use crate::trace::{Key, StableHasher, debug};

/// The code of a node whose state is a thing of its own: a published library, say, that nobody made to be checked.
///
/// The handlers are those of a [`Node`]. The state need not be `Clone`, `Eq` or `Hash`: Dragnet keeps what happened to
/// a node instead, and makes a state again from that when it needs one. What properties and counterexamples read is the
/// [`View`](Self::View), taken after every step. Put it into a cluster inside [`Opaque`].
///
/// ```
/// use dragnet::nodes::{Opaque, OpaqueNode};
/// use dragnet::{Check, Cluster, Context, Node, NodeId};
///
/// /// Somebody else's counter: the closure inside can be neither cloned nor compared.
/// struct Counter { count: u32, step: Box<dyn Fn(u32) -> u32 + Send> }
///
/// struct Counting;
///
/// impl OpaqueNode for Counting {
///     type State = Counter;
///     type Msg = ();
///     type View = u32;
///     type Disk = ();
///
///     fn on_start(&self, cx: &mut Context<()>) -> Counter {
///         cx.broadcast_to_others(());
///         Counter { count: 0, step: Box::new(|count| count + 1) }
///     }
///
///     fn on_message(&self, counter: &mut Counter, _from: NodeId, _: (), _cx: &mut Context<()>) {
///         counter.count = (counter.step)(counter.count);
///     }
///
///     fn view(&self, counter: &mut Counter) -> u32 {
///         counter.count
///     }
/// }
///
/// Check::new(Cluster::new(2, |_| Opaque::new(Counting)))
///     .reachable("both have counted", |s| s.nodes().all(|count| **count == 1))
///     .run()
///     .assert_holds();
/// ```
pub trait OpaqueNode: Send + Sync + 'static {
    /// What a node is while it runs.
    type State: Send + 'static;

    /// What nodes say to each other, and what the workload asks of them.
    type Msg: Clone + Eq + Hash + Debug + Send + Sync + 'static;

    /// What of a state can be seen: what properties read, and what counterexamples show.
    type View: Clone + Eq + Hash + Debug + Send + Sync + 'static;

    /// What survives a crash; `()` where nothing does.
    type Disk: Clone + Eq + Hash + Debug + Send + Sync + 'static;

    /// The state in which the node begins; it may send and set timers.
    fn on_start(&self, cx: &mut Context<Self::Msg>) -> Self::State;

    /// A message has arrived.
    fn on_message(
        &self,
        state: &mut Self::State,
        from: NodeId,
        msg: Self::Msg,
        cx: &mut Context<Self::Msg>,
    );

    /// A timer has run out. It is no longer set; a periodic one is set again here.
    fn on_timer(&self, _state: &mut Self::State, timer: Timer, _cx: &mut Context<Self::Msg>) {
        panic!("the timer {timer} ran out, and this node has no `on_timer`");
    }

    /// The application asks for something: the next call of the node's workload.
    fn on_call(&self, _state: &mut Self::State, call: Self::Msg, _cx: &mut Context<Self::Msg>) {
        let call = debug(&call);
        panic!("{call} was called, and this node has no `on_call`");
    }

    /// What of `state` can be seen. It may look, and must not change what the node does next.
    fn view(&self, state: &mut Self::State) -> Self::View;

    /// Feeds everything into `digest` that decides what the node does next, and says so by returning `true`.
    ///
    /// Two states with the same digest and the same view are then one state. What is left out must follow from what is
    /// not, or behaviour is missed. Without a digest, the default, two states are one when the same happened to them,
    /// which is always right and merges little.
    fn digest(&self, _state: &mut Self::State, _digest: &mut StableHasher) -> bool {
        false
    }

    /// Whether a node waits for something besides answers to its calls.
    fn waiting(&self, _view: &Self::View) -> bool {
        false
    }

    /// What of `state` is on disk; `None`, the default, when nothing survives a crash.
    fn disk(&self, _state: &mut Self::State) -> Option<Self::Disk> {
        None
    }

    /// The node restarts and finds on disk what [`disk`](Self::disk) kept.
    fn on_recover(&self, _disk: Self::Disk, cx: &mut Context<Self::Msg>) -> Self::State {
        self.on_start(cx)
    }
}

/// An [`OpaqueNode`] as a [`Node`] of a cluster.
pub struct Opaque<N: OpaqueNode> {
    node: N,
    warm: Mutex<Warm<N>>,
}

/// A state of an opaque node: what can be seen of it, and what happened to it. It reads as its
/// [`View`](OpaqueNode::View).
pub struct Past<N: OpaqueNode>(Shape<N>);

enum Shape<N: OpaqueNode> {
    Up {
        view: N::View,
        /// The digest of the state, or of what happened to it.
        identity: u128,
        history: Arc<History<N>>,
    },
    Crashed(N::Disk),
}

/// What happened to a node since it began, the last step first.
struct History<N: OpaqueNode> {
    before: Option<Arc<Self>>,
    step: Step<N>,
    choices: Vec<usize>,
    /// Of all of it.
    hash: u128,
    /// Where it happened, for a context like the one that there was.
    me: NodeId,
    nodes: usize,
}

enum Step<N: OpaqueNode> {
    Start,
    Recover(N::Disk),
    Message(NodeId, N::Msg),
    Timer(Timer),
    Call(N::Msg),
}

/// The states that were used last, ready to be used again, each under the address of its history.
struct Warm<N: OpaqueNode> {
    states: HashMap<usize, (Arc<History<N>>, N::State)>,
    /// Addresses in the order in which their states came; some may be gone.
    order: VecDeque<usize>,
}

/// How many states are kept ready. A search that goes on where it was finds them there.
const KEPT_WARM: usize = 256;

impl<N: OpaqueNode> Opaque<N> {
    /// Lets `node` be a node of a cluster.
    pub fn new(node: N) -> Self {
        Self {
            node,
            warm: Mutex::new(Warm {
                states: HashMap::new(),
                order: VecDeque::new(),
            }),
        }
    }

    /// The state that this history leads to: one that is ready, or one made by letting it all happen again.
    fn revive(&self, history: &Arc<History<N>>) -> N::State {
        let mut missing = Vec::new();
        let mut ready = None;
        let mut at = Some(history);
        {
            let mut warm = self.warm.lock().unwrap();
            while let Some(history) = at {
                if let Some(state) = warm.take(history) {
                    ready = Some((state, history.hash));
                    break;
                }
                missing.push(history);
                at = history.before.as_ref();
            }
        }
        for history in missing.into_iter().rev() {
            let mut cx = Context::choosing(history.me, history.nodes, &history.choices);
            ready = Some((self.run(ready, &history.step, &mut cx), history.hash));
        }
        ready.expect("a history begins with a start").0
    }

    /// Lets `step` happen to a state, or begin one. It is the same situation whenever it happens again.
    fn run(
        &self,
        before: Option<(N::State, u128)>,
        step: &Step<N>,
        cx: &mut Context<N::Msg>,
    ) -> N::State {
        let situation = (cx.me(), before.as_ref().map(|(_, hash)| *hash), step);
        let ran = sterile::run(&situation, || {
            let mut state = match step {
                Step::Start => return self.node.on_start(cx),
                Step::Recover(disk) => return self.node.on_recover(disk.clone(), cx),
                _ => before.expect("only a node that has begun does anything").0,
            };
            match step {
                Step::Start | Step::Recover(_) => unreachable!("they begin anew"),
                Step::Message(from, msg) => {
                    self.node.on_message(&mut state, *from, msg.clone(), cx);
                }
                Step::Timer(timer) => self.node.on_timer(&mut state, *timer, cx),
                Step::Call(call) => self.node.on_call(&mut state, call.clone(), cx),
            }
            state
        });
        ran.unwrap_or_else(|failure| panics::raise(failure))
    }

    /// Lets `step` happen for the first time.
    fn begin(&self, step: Step<N>, cx: &mut Context<N::Msg>) -> Past<N> {
        let state = self.run(None, &step, cx);
        self.past(state, None, step, cx)
    }

    fn go_on(&self, past: &mut Past<N>, step: Step<N>, cx: &mut Context<N::Msg>) {
        let before = Arc::clone(past.history());
        let state = self.run(Some((self.revive(&before), before.hash)), &step, cx);
        *past = self.past(state, Some(before), step, cx);
    }

    fn past(
        &self,
        mut state: N::State,
        before: Option<Arc<History<N>>>,
        step: Step<N>,
        cx: &Context<N::Msg>,
    ) -> Past<N> {
        let choices: Vec<usize> = cx.choices_taken().collect();
        let mut hasher = StableHasher::new(Key::default());
        before.as_ref().map(|before| before.hash).hash(&mut hasher);
        step.hash(&mut hasher);
        choices.hash(&mut hasher);
        let history = Arc::new(History {
            before,
            step,
            choices,
            hash: hasher.finish_128(),
            me: cx.me(),
            nodes: cx.nodes(),
        });
        let view = self.node.view(&mut state);
        let mut digest = StableHasher::new(Key::default());
        let identity = if self.node.digest(&mut state, &mut digest) {
            digest.finish_128()
        } else {
            history.hash
        };
        self.warm.lock().unwrap().put(&history, state);
        Past(Shape::Up {
            view,
            identity,
            history,
        })
    }
}

impl<N: OpaqueNode> Node for Opaque<N> {
    type State = Past<N>;
    type Msg = N::Msg;

    fn on_start(&self, cx: &mut Context<N::Msg>) -> Past<N> {
        self.begin(Step::Start, cx)
    }

    fn on_message(&self, past: &mut Past<N>, from: NodeId, msg: N::Msg, cx: &mut Context<N::Msg>) {
        self.go_on(past, Step::Message(from, msg), cx);
    }

    fn on_timer(&self, past: &mut Past<N>, timer: Timer, cx: &mut Context<N::Msg>) {
        self.go_on(past, Step::Timer(timer), cx);
    }

    fn on_call(&self, past: &mut Past<N>, call: N::Msg, cx: &mut Context<N::Msg>) {
        self.go_on(past, Step::Call(call), cx);
    }

    fn waiting(&self, past: &Past<N>) -> bool {
        self.node.waiting(past)
    }

    fn durable(&self, past: &Past<N>) -> Option<Past<N>> {
        let history = past.history();
        let mut state = self.revive(history);
        let disk = self.node.disk(&mut state);
        self.warm.lock().unwrap().put(history, state);
        disk.map(|disk| Past(Shape::Crashed(disk)))
    }

    fn on_recover(&self, past: &mut Past<N>, cx: &mut Context<N::Msg>) {
        let Shape::Crashed(disk) = &past.0 else {
            unreachable!("only a crashed node recovers");
        };
        *past = self.begin(Step::Recover(disk.clone()), cx);
    }
}

impl<N: OpaqueNode> Past<N> {
    /// What is on the disk of a crashed node; `None` for one that is up.
    pub fn disk(&self) -> Option<&N::Disk> {
        match &self.0 {
            Shape::Up { .. } => None,
            Shape::Crashed(disk) => Some(disk),
        }
    }

    fn history(&self) -> &Arc<History<N>> {
        match &self.0 {
            Shape::Up { history, .. } => history,
            Shape::Crashed(_) => unreachable!("nothing happens to a crashed node"),
        }
    }
}

/// What can be seen of the node.
///
/// # Panics
/// When the node has crashed: then there is only its [`disk`](Past::disk). Snapshots hand out such states as durable
/// ones alone.
impl<N: OpaqueNode> Deref for Past<N> {
    type Target = N::View;

    #[track_caller]
    fn deref(&self) -> &N::View {
        match &self.0 {
            Shape::Up { view, .. } => view,
            Shape::Crashed(_) => panic!("nothing can be seen of a crashed node but its `disk`"),
        }
    }
}

impl<N: OpaqueNode> Clone for Past<N> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Shape::Up {
                view,
                identity,
                history,
            } => Shape::Up {
                view: view.clone(),
                identity: *identity,
                history: Arc::clone(history),
            },
            Shape::Crashed(disk) => Shape::Crashed(disk.clone()),
        })
    }
}

impl<N: OpaqueNode> PartialEq for Past<N> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (
                Shape::Up { view, identity, .. },
                Shape::Up {
                    view: other_view,
                    identity: other_identity,
                    ..
                },
            ) => identity == other_identity && view == other_view,
            (Shape::Crashed(disk), Shape::Crashed(other)) => disk == other,
            _ => false,
        }
    }
}

impl<N: OpaqueNode> Eq for Past<N> {}

impl<N: OpaqueNode> Hash for Past<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Shape::Up {
                view,
                identity,
                history,
            } => {
                (0_u8, identity).hash(state);
                // The view follows from what happened; beside a digest it says something of its own.
                if *identity != history.hash {
                    note_digest();
                    view.hash(state);
                }
            }
            Shape::Crashed(disk) => (1_u8, disk).hash(state),
        }
    }
}

impl<N: OpaqueNode> Debug for Past<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Shape::Up { view, .. } => view.fmt(f),
            Shape::Crashed(disk) => disk.fmt(f),
        }
    }
}

impl<N: OpaqueNode> Hash for Step<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Start => 0_u8.hash(state),
            Self::Recover(disk) => (1_u8, disk).hash(state),
            Self::Message(from, msg) => (2_u8, from, msg).hash(state),
            Self::Timer(timer) => (3_u8, timer).hash(state),
            Self::Call(call) => (4_u8, call).hash(state),
        }
    }
}

impl<N: OpaqueNode> Drop for History<N> {
    /// One after the other: a long history would otherwise use up the stack.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut history) = before.and_then(Arc::into_inner) {
            before = history.before.take();
        }
    }
}

impl<N: OpaqueNode> Warm<N> {
    fn take(&mut self, history: &Arc<History<N>>) -> Option<N::State> {
        let address = Arc::as_ptr(history).addr();
        self.states.remove(&address).map(|(_, state)| state)
    }

    fn put(&mut self, history: &Arc<History<N>>, state: N::State) {
        let address = Arc::as_ptr(history).addr();
        self.states.insert(address, (Arc::clone(history), state));
        self.order.push_back(address);
        while self.order.len() > KEPT_WARM {
            let oldest = self.order.pop_front();
            oldest.and_then(|address| self.states.remove(&address));
        }
    }
}
