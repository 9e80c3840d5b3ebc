//! How a check is done: by which engine, and within which limits.

use std::time::Duration;

use crate::engine::{Breadth, Engine};
use crate::named::named;
use crate::quantity::{Bytes, DepthBound};
use crate::trace::Key;

/// How to search. Nothing here changes the system that is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Which engine explores, with its own options.
    pub engine: Engine,
    /// How many threads search; 0 means as many as the machine has cores.
    pub threads: usize,
    /// How many steps an execution may have; `None` means any number.
    pub depth: Option<DepthBound>,
    /// How much memory the process may take.
    pub memory: Option<Bytes>,
    /// How long the search may take.
    pub time: Option<Duration>,
    /// How long a step of the program may take before it counts as one that does not return, which is a violation then;
    /// `None` means half a minute, after which the verdict is inconclusive.
    pub patience: Option<Duration>,
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
            engine: Breadth::new().into(),
            threads: 0,
            depth: None,
            memory: None,
            time: None,
            patience: None,
            exact: false,
            keep_state: false,
            determinism: Determinism::default(),
            key: Key::default(),
        }
    }
}

impl Options {
    /// How many steps an execution may have.
    pub(crate) fn longest(&self) -> Option<u64> {
        self.depth.map(|DepthBound(steps)| steps)
    }

    /// How many threads search.
    pub(crate) fn workers(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            given => given,
        }
    }
}

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
#[non_exhaustive]
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
