//! The engines that explore, each a value with its own options.
//!
//! ```
//! use dragnet::engine::{Dpor, Local, Pruning, Random};
//! use dragnet::{Check, Cluster, Context, Node, NodeId};
//!
//! struct Counter;
//!
//! impl Node for Counter {
//!     type State = u8;
//!     type Msg = ();
//!
//!     fn on_start(&self, cx: &mut Context<()>) -> u8 {
//!         cx.broadcast_to_others(());
//!         0
//!     }
//!
//!     fn on_message(&self, heard: &mut u8, _from: NodeId, _msg: (), _cx: &mut Context<()>) {
//!         *heard += 1;
//!     }
//! }
//!
//! let check = || Check::new(Cluster::new(3, |_| Counter)).always("few", |s| s.nodes().all(|&heard| heard <= 2));
//! check().engine(Local::new().pruning(Pruning::Refined)).run().assert_holds();
//! assert!(check().engine(Random::new().seed(7).walks(100)).run().violation().is_none());
//! ```

use crate::named::named;

pub use crate::options::Options;
pub use crate::quantity::{Bytes, DepthBound, Seed};

/// An engine with its options, as [`Check::engine`](crate::Check::engine) takes it.
///
/// Each engine is a type of its own with its own options; [`EngineName`] names them all, and stands for the engine with its
/// default options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engine {
    /// See [`Breadth`].
    Breadth(Breadth),
    /// See [`Depth`].
    Depth(Depth),
    /// See [`Random`].
    Random(Random),
    /// See [`Pct`].
    Pct(Pct),
    /// See [`Local`].
    Local(Local),
    /// See [`Auto`].
    Auto(Auto),
    /// See [`Dpor`].
    Dpor(Dpor),
}

/// The name of an engine, on the command line and in verdicts.
///
/// ```
/// use dragnet::engine::{Engine, EngineName};
///
/// let engine: EngineName = "local".parse().unwrap();
/// assert_eq!(Engine::from(engine).name(), EngineName::Local);
/// assert!("locale".parse::<EngineName>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EngineName {
    /// See [`Breadth`].
    Breadth,
    /// See [`Depth`].
    Depth,
    /// See [`Random`].
    Random,
    /// See [`Pct`].
    Pct,
    /// See [`Local`].
    Local,
    /// See [`Auto`].
    Auto,
    /// See [`Dpor`].
    Dpor,
}

named!(
    EngineName, "there is no engine",
    Breadth: "breadth",
    Depth: "depth",
    Random: "random",
    Pct: "pct",
    Local: "local",
    Auto: "auto",
    // The alias is what it was called before.
    Dpor: "dpor" | "schedules",
);

impl EngineName {
    /// Whether it makes random walks, which prove nothing where they find nothing.
    pub fn is_random(self) -> bool {
        matches!(self, Self::Random | Self::Pct)
    }
}

impl Engine {
    /// Which engine it is.
    pub fn name(&self) -> EngineName {
        match self {
            Self::Breadth(_) => EngineName::Breadth,
            Self::Depth(_) => EngineName::Depth,
            Self::Random(_) => EngineName::Random,
            Self::Pct(_) => EngineName::Pct,
            Self::Local(_) => EngineName::Local,
            Self::Auto(_) => EngineName::Auto,
            Self::Dpor(_) => EngineName::Dpor,
        }
    }

    /// The random walks that it makes, if it makes any.
    pub(crate) fn walks(&self) -> Option<Walks> {
        match *self {
            Self::Random(Random { walks }) | Self::Pct(Pct { walks, .. }) => Some(walks),
            _ => None,
        }
    }

    /// The seed of its random walks, if it makes any.
    pub fn seed(&self) -> Option<Seed> {
        self.walks().map(|walks| walks.seed)
    }
}

impl std::fmt::Display for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.name().fmt(f)
    }
}

/// An option of an engine that is not known by type, as a command line sets it.
///
/// ```
/// use dragnet::engine::{Engine, EngineName, EngineOption};
///
/// let walks = EngineOption::Walks(1_000);
/// assert!(Engine::from(EngineName::Random).with(walks).is_ok());
/// let unread = Engine::from(EngineName::Breadth).with(walks).unwrap_err();
/// assert_eq!(unread.readers, [EngineName::Random, EngineName::Pct]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineOption {
    /// See [`Local::pruning`].
    Pruning(Pruning),
    /// See [`Dpor::reduction`].
    Reduction(Reduction),
    /// See [`Dpor::preemptions`].
    Preemptions(u32),
    /// See [`Random::seed`].
    Seed(Seed),
    /// See [`Random::walks`].
    Walks(u64),
    /// See [`Pct::priority_changes`].
    PriorityChanges(u32),
}

/// An option that an engine does not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the engine {engine} does not read this option, which is for {}", alternatives(.readers))]
#[non_exhaustive]
pub struct UnreadOption {
    /// The engine.
    pub engine: EngineName,
    /// The engines that read it.
    pub readers: Vec<EngineName>,
}

/// The names of some engines, as a sentence has them.
fn alternatives(names: &[EngineName]) -> String {
    let names: Vec<&str> = names.iter().copied().map(EngineName::name).collect();
    match &names[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}

impl Engine {
    /// The same engine with an option set, if it reads that.
    pub fn with(self, option: EngineOption) -> Result<Self, UnreadOption> {
        self.set(option).ok_or_else(|| UnreadOption {
            engine: self.name(),
            readers: EngineName::ALL
                .into_iter()
                .filter(|&engine| Self::from(engine).set(option).is_some())
                .collect(),
        })
    }

    fn set(self, option: EngineOption) -> Option<Self> {
        use EngineOption::{Preemptions, PriorityChanges, Pruning, Reduction, Walks};
        Some(match (self, option) {
            (Self::Random(random), EngineOption::Seed(seed)) => random.seed(seed).into(),
            (Self::Random(random), Walks(walks)) => random.walks(walks).into(),
            (Self::Pct(pct), EngineOption::Seed(seed)) => pct.seed(seed).into(),
            (Self::Pct(pct), Walks(walks)) => pct.walks(walks).into(),
            (Self::Pct(pct), PriorityChanges(times)) => pct.priority_changes(times).into(),
            (Self::Local(local), Pruning(pruning)) => local.pruning(pruning).into(),
            (Self::Dpor(dpor), Reduction(reduction)) => dpor.reduction(reduction).into(),
            (Self::Dpor(dpor), Preemptions(times)) => dpor.preemptions(times).into(),
            (Self::Auto(auto), Pruning(pruning)) => auto.local(auto.local.pruning(pruning)).into(),
            (Self::Auto(auto), Reduction(reduction)) => {
                auto.dpor(auto.dpor.reduction(reduction)).into()
            }
            (Self::Auto(auto), Preemptions(times)) => {
                auto.dpor(auto.dpor.preemptions(times)).into()
            }
            _ => return None,
        })
    }
}

/// The engine with its default options.
impl From<EngineName> for Engine {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::Breadth => Breadth::new().into(),
            EngineName::Depth => Depth::new().into(),
            EngineName::Random => Random::new().into(),
            EngineName::Pct => Pct::new().into(),
            EngineName::Local => Local::new().into(),
            EngineName::Auto => Auto::new().into(),
            EngineName::Dpor => Dpor::new().into(),
        }
    }
}

/// Has each engine be made with its default options, and be an [`Engine`].
macro_rules! engines {
    ($($engine:ident),+) => {$(
        impl $engine {
            /// The engine with its default options.
            pub fn new() -> Self {
                Self::default()
            }
        }

        impl From<$engine> for Engine {
            fn from(engine: $engine) -> Self {
                Self::$engine(engine)
            }
        }
    )+};
}

engines!(Breadth, Depth, Random, Pct, Local, Auto, Dpor);

/// Level by level: the counterexample is shortest, and the same with any number of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Breadth {}

/// Along one execution as far as it goes, then back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Depth {}

/// Which random walks are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Walks {
    pub(crate) seed: Seed,
    pub(crate) count: u64,
}

impl Default for Walks {
    fn default() -> Self {
        Self {
            seed: Seed(0),
            count: 100_000,
        }
    }
}

/// One random execution after the other.
///
/// ```
/// use dragnet::engine::{Engine, Random, Seed};
///
/// let engine = Engine::from(Random::new().seed(7).walks(1_000));
/// assert_eq!(engine.seed(), Some(Seed(7)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Random {
    pub(crate) walks: Walks,
}

/// One random execution after the other, in each of which actors have priorities that seldom change: probabilistic
/// concurrency testing. It comes more often than [`Random`] to what takes long without preemptions.
///
/// ```
/// use dragnet::engine::Pct;
/// # use dragnet::{Check, Cluster, Context, Node, NodeId};
/// # struct Idle;
/// # impl Node for Idle {
/// #     type State = ();
/// #     type Msg = ();
/// #     fn on_start(&self, _: &mut Context<()>) {}
/// #     fn on_message(&self, _: &mut (), _: NodeId, _: (), _: &mut Context<()>) {}
/// # }
/// # let cluster = Cluster::new(2, |_| Idle);
/// let check = Check::new(cluster).engine(Pct::new().priority_changes(3).walks(1_000));
/// # assert!(check.run().violation().is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pct {
    pub(crate) walks: Walks,
    pub(crate) priority_changes: u32,
}

impl Default for Pct {
    fn default() -> Self {
        Self {
            walks: Walks::default(),
            priority_changes: 2,
        }
    }
}

/// The options that engines with random walks share.
macro_rules! walks {
    ($($engine:ident),+) => {$(
        impl $engine {
            /// The seed of the walks; the same seed gives the same walks. 0 unless said otherwise.
            pub fn seed(mut self, seed: impl Into<Seed>) -> Self {
                self.walks.seed = seed.into();
                self
            }

            /// How many random walks are made: 100,000 unless said otherwise.
            pub fn walks(mut self, walks: u64) -> Self {
                self.walks.count = walks;
                self
            }
        }
    )+};
}

walks!(Random, Pct);

impl Pct {
    /// How often priorities change on a walk: twice unless said otherwise. A bug that takes a certain order of n operations of
    /// different threads, or of n events of different nodes, needs n - 1 changes at most.
    pub fn priority_changes(mut self, times: u32) -> Self {
        self.priority_changes = times;
        self
    }
}

/// Node by node, without the network between them; what is found is verified. Only for clusters, and for properties of node
/// states.
///
/// ```
/// use dragnet::engine::{Engine, EngineName, Local, Pruning};
///
/// let engine = Engine::from(Local::new().pruning(Pruning::Refined));
/// assert_eq!(engine.name(), EngineName::Local);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Local {
    pub(crate) pruning: Pruning,
}

impl Local {
    /// How much of what cannot happen is left out: what turns out to be needed unless said otherwise.
    pub fn pruning(mut self, pruning: Pruning) -> Self {
        self.pruning = pruning;
        self
    }
}

/// [`Local`] for a moment, then [`Breadth`] beside it: whichever has a verdict first. Where only breadth first can judge the
/// properties, breadth first alone; for multithreaded programs, [`Dpor`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Auto {
    pub(crate) local: Local,
    pub(crate) dpor: Dpor,
}

impl Auto {
    /// The options of the local engine.
    pub fn local(mut self, local: Local) -> Self {
        self.local = local;
        self
    }

    /// The options of the engine for multithreaded programs.
    pub fn dpor(mut self, dpor: Dpor) -> Self {
        self.dpor = dpor;
        self
    }
}

/// Dynamic partial-order reduction: every schedule that matters, by running the program again and again. Only for multithreaded
/// programs.
///
/// ```
/// use dragnet::engine::{Dpor, Engine, EngineName, Reduction};
///
/// let engine = Engine::from(Dpor::new().reduction(Reduction::Source).preemptions(2));
/// assert_eq!(engine.name(), EngineName::Dpor);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dpor {
    pub(crate) reduction: Reduction,
    pub(crate) preemptions: Option<u32>,
}

impl Dpor {
    /// Which schedules are left out because others come to the same: all that can be unless said otherwise.
    pub fn reduction(mut self, reduction: Reduction) -> Self {
        self.reduction = reduction;
        self
    }

    /// How often enabled threads are preempted in an execution: any number of times unless said otherwise. Most bugs need few
    /// preemptions; the verdict says that no more were tried.
    pub fn preemptions(mut self, times: u32) -> Self {
        self.preemptions = Some(times);
        self
    }
}

/// How much of what cannot happen the local engine leaves out. Whatever it is, the verdict is the same, if there is one:
/// an engine that leaves out less may have too much to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pruning {
    /// Coarse at first; refined when that is not enough.
    #[default]
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

/// Which schedules of a multithreaded program are left out because others come to the same. Whatever it is, the verdict is the
/// same, if there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reduction {
    /// None: every interleaving is run.
    None,
    /// Those that begin with what has been looked at and commutes with all since: sleep sets.
    Sleep,
    /// Also those that no race leads to: source sets.
    Source,
    /// Also most of those that would come to where only such are left: wake-up sequences.
    #[default]
    Optimal,
}

named!(
    Reduction, "there is no reduction",
    None: "none",
    Sleep: "sleep",
    Source: "source",
    Optimal: "optimal",
);
