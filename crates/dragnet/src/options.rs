//! How a check is done: in which order, with how much reduction, within which limits.

use std::time::Duration;

use crate::named::named;
use crate::trace::Key;

/// How to search. Nothing here changes the system that is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// In which order states are visited.
    pub engine: Engine,
    /// How much of what cannot happen the local engine leaves out.
    pub pruning: Pruning,
    /// Which schedules are left out because others come to the same.
    pub reduction: Reduction,
    /// How often threads are interrupted that could go on; `None` means any number of times.
    pub preemptions: Option<u32>,
    /// How many threads search; 0 means as many as the machine has cores.
    pub threads: usize,
    /// How many steps an execution may have; `None` means any number.
    pub depth: Option<u64>,
    /// How many bytes the process may take.
    pub memory: Option<u64>,
    /// How long the search may take.
    pub time: Option<Duration>,
    /// How long a step of the program may take before it counts as one that does not return, which is a violation then;
    /// `None` means half a minute, after which the verdict is inconclusive.
    pub patience: Option<Duration>,
    /// What random walks start from.
    pub seed: u64,
    /// How many random walks are made.
    pub walks: u64,
    /// How often priorities change on a random walk that goes by them.
    pub priority_changes: u32,
    /// Whether whole states are kept instead of their fingerprints.
    pub exact: bool,
    /// Whether the last state of a counterexample, or the first state where there is none, is kept with the verdict.
    pub keep_state: bool,
    /// How often handlers of nodes run twice, to see whether they do the same.
    pub determinism: Determinism,
    /// Which family of fingerprints is used.
    pub key: Key,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            engine: Engine::Breadth,
            pruning: Pruning::Adaptive,
            reduction: Reduction::Optimal,
            preemptions: None,
            threads: 0,
            depth: None,
            memory: None,
            time: None,
            patience: None,
            seed: 0,
            walks: 100_000,
            priority_changes: 2,
            exact: false,
            keep_state: false,
            determinism: Determinism::default(),
            key: Key::default(),
        }
    }
}

impl Options {
    /// How many threads search.
    pub(crate) fn workers(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            given => given,
        }
    }
}

/// In which order states are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Level by level: the counterexample is shortest.
    Breadth,
    /// Along one execution as far as it goes, then back.
    Depth,
    /// One random execution after the other.
    Random,
    /// One random execution after the other, in each of which components have priorities that seldom change: probabilistic
    /// concurrency testing. It comes more often than [`Random`](Engine::Random) to what takes long without interruptions.
    Pct,
    /// Node by node, without the network between them; what is found is verified. Only for clusters, and for properties
    /// of node states.
    Local,
    /// Local for a moment, then breadth first beside it: whichever has a verdict first. Where only breadth first can judge
    /// the properties, breadth first alone.
    Auto,
    /// Every schedule that matters, by running the program again and again. Only for programs with threads.
    Schedules,
}

named!(
    Engine, "there is no engine",
    Breadth: "breadth",
    Depth: "depth",
    Random: "random",
    Pct: "pct",
    Local: "local",
    Auto: "auto",
    Schedules: "schedules",
);

impl Engine {
    /// Whether it makes random walks, which prove nothing where they find nothing.
    pub fn is_random(self) -> bool {
        matches!(self, Self::Random | Self::Pct)
    }
}

/// How much of what cannot happen the local engine leaves out. Whatever it is, the verdict is the same, if there is one:
/// an engine that leaves out less may have too much to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pruning {
    /// Coarse at first; refined when that is not enough.
    Adaptive,
    /// Nothing: each message meets each local state of its receiver.
    Plain,
    /// A message meets no local state of a node to which something has not happened that the message depends on.
    Coarse,
    /// Histories of nodes that no execution has.
    Refined,
}

named!(
    Pruning, "there is no pruning",
    Adaptive: "adaptive",
    Plain: "plain",
    Coarse: "coarse",
    Refined: "refined",
);

/// Which schedules of a program with threads are left out because others come to the same. Whatever it is, the verdict is
/// the same, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// None: every interleaving is run.
    None,
    /// Those that begin with what has been looked at and commutes with all since: sleep sets.
    Sleep,
    /// Also those that no race leads to: source sets.
    Source,
    /// Also most of those that would come to where only such are left: wake-up sequences.
    Optimal,
}

named!(
    Reduction, "there is no reduction",
    None: "none",
    Sleep: "sleep",
    Source: "source",
    Optimal: "optimal",
);

/// How often a handler runs twice on the same state and input, to see whether it does the same.
///
/// Dragnet runs a handler once for each distinct state and input and remembers what it did. That is right only if it would
/// do the same again.
///
/// ```
/// use dragnet::{Check, Cluster, Context, Determinism, Node, NodeId, Outcome};
/// use std::time::Instant;
///
/// /// Remembers when it began, which is another state in every run.
/// struct Watch;
///
/// impl Node for Watch {
///     type State = Option<Instant>;
///     type Msg = ();
///
///     fn on_start(&self, cx: &mut Context<()>) -> Option<Instant> {
///         cx.broadcast_to_others(());
///         None
///     }
///
///     fn on_message(&self, heard: &mut Option<Instant>, _from: NodeId, _: (), _cx: &mut Context<()>) {
///         *heard = Some(Instant::now());
///     }
/// }
///
/// let verdict = Check::new(Cluster::new(2, |_| Watch)).determinism(Determinism::Always).run();
/// let Outcome::Inconclusive(why) = &verdict.outcome else { panic!() };
/// assert!(why.contains("is not deterministic") && why.contains("a clock"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Determinism {
    /// Never.
    Off,
    /// On the first execution of each input, and now and then after that.
    #[default]
    Sample,
    /// Every time.
    Always,
}

named!(
    Determinism, "determinism cannot be",
    Off: "off",
    Sample: "sample",
    Always: "always",
);
