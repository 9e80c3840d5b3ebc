//! The front door: a target, what must be true of it, and how to look.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use crate::driver::{self, Checkable, Host, Prepared};
use crate::engine::{Depth, Engine};
use crate::explore::Control;
use crate::explore::custom::Explorer;
use crate::options::{Determinism, Options};
use crate::property::{Bound, Claim, Predicate, Property, Reached, Scope};
use crate::quantity::{Bytes, DepthBound};

use crate::target::nodes::{self, Cluster, Faults, InFlight, Node, NodeView, Snapshot};
#[cfg(feature = "threads")]
use crate::target::threads::Threads;
use crate::target::{Target, Watch};
use crate::trace::{SavedState, StateError, Trace};
use crate::verdict::{Replay, ReplayError, Verdict};

/// A check: a target, the properties that must hold of it, and how to search.
///
/// ```
/// use dragnet::{Check, Cluster, Context, Node, NodeId, drops, others};
///
/// /// Sends each peer a greeting and counts those that arrive.
/// struct Greeter;
///
/// impl Node for Greeter {
///     type State = usize;
///     type Msg = &'static str;
///
///     fn on_start(&self, cx: &mut Context<&'static str>) -> usize {
///         cx.broadcast_to_others("hello");
///         0
///     }
///
///     fn on_message(&self, heard: &mut usize, _from: NodeId, _msg: &'static str, _cx: &mut Context<&'static str>) {
///         *heard += 1;
///     }
/// }
///
/// Check::new(Cluster::new(3, |_| Greeter))
///     .always("nobody hears more than the others say", |s| s.nodes().all(|&heard| heard <= 2))
///     .reachable("everybody hears everybody", |s| s.nodes().all(|&heard| heard == 2))
///     .faults(drops(1))
///     .run()
///     .assert_holds();
/// ```
#[must_use = "a check does nothing until it is run: call `.run()`"]
pub struct Check<T: Target> {
    pub(crate) name: Option<String>,
    pub(crate) target: T,
    pub(crate) properties: Vec<Property<T::System>>,
    pub(crate) within: Vec<Bound<T::System>>,
    pub(crate) watch: Watch,
    /// Where it starts, if that is not the beginning.
    pub(crate) from: Option<SavedState>,
    pub(crate) options: Options,
    /// An engine of the user's, if it explores instead of that of the options.
    pub(crate) explorer: Option<Arc<dyn Explorer>>,
}

impl<T: Target> Check<T> {
    /// A check of `target` that demands nothing yet but that no handler panics and no assertion fails.
    pub fn new(target: T) -> Self {
        let options = Options {
            engine: target.preferred_engine(),
            ..Options::default()
        };
        let must_not_deadlock = target.must_not_deadlock();
        let check = Self {
            name: None,
            target,
            properties: Vec::new(),
            within: Vec::new(),
            watch: Watch::NodeStates,
            from: None,
            options,
            explorer: None,
        };
        match must_not_deadlock {
            true => check.deadlock_free(),
            false => check,
        }
    }

    /// What the system is called in verdicts and traces. Inside a test its name is that of the test unless said
    /// otherwise; a second unnamed check of the test has `#2` behind it, and so on, each with a trace file of its own.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Demands that every reachable state satisfies `holds`.
    pub fn always<F>(self, name: impl Into<String>, holds: F) -> Self
    where
        F: for<'a> Fn(T::View<'a>) -> bool + Send + Sync + 'static,
    {
        self.property(name, Claim::Always(on_view::<T, F>(holds), Scope::Nodes))
    }

    /// Demands that some reachable state satisfies `reaches`: a guard against a model in which nothing happens.
    pub fn reachable<F>(self, name: impl Into<String>, reaches: F) -> Self
    where
        F: for<'a> Fn(T::View<'a>) -> bool + Send + Sync + 'static,
    {
        let claim = Claim::Reachable(on_view::<T, F>(reaches), Reached::default(), Scope::Nodes);
        self.property(name, claim)
    }

    /// Demands that nobody who is alive is left waiting when nothing but faults and deliveries that change nothing can
    /// still happen.
    ///
    /// On a cluster, a node waits while a call of its workload is unanswered. Deliveries that change nothing are then
    /// taken too, and use up their message: one that came too early and was ignored is exactly the lost wake-up that
    /// this finds.
    pub fn deadlock_free(mut self) -> Self {
        self.watch = Watch::Everything;
        self.property("deadlock", Claim::DeadlockFree)
    }

    /// Bounds the system: states that do not satisfy `inside` are not part of the space, and `holds` is said of the
    /// rest. `bound` is how verdicts name it.
    pub fn within<F>(mut self, bound: impl Into<String>, inside: F) -> Self
    where
        F: for<'a> Fn(T::View<'a>) -> bool + Send + Sync + 'static,
    {
        self.within.push(Bound {
            name: bound.into(),
            inside: on_view::<T, F>(inside),
            local: None,
        });
        self
    }

    fn property(mut self, name: impl Into<String>, claim: Claim<T::System>) -> Self {
        let name = name.into();
        self.properties.push(Property { name, claim });
        self
    }

    /// The engine that explores, with its own options: [`Breadth`](crate::engine::Breadth) unless said otherwise, and
    /// [`Dpor`](crate::engine::Dpor) for a multithreaded program. See [`engine`](crate::engine) for all of them.
    pub fn engine(mut self, engine: impl Into<Engine>) -> Self {
        self.options.engine = engine.into();
        self.explorer = None;
        self
    }

    /// Has an engine of one's own explore: see [`Explorer`](crate::extend::Explorer). It has one thread.
    pub fn explore_with(mut self, explorer: impl Explorer) -> Self {
        self.options.engine = Depth::new().into();
        self.explorer = Some(Arc::new(explorer));
        self
    }

    /// How many threads search; as many as the machine has cores unless said otherwise.
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = threads;
        self
    }

    /// How many steps an execution may have. A search that this cuts short is inconclusive.
    pub fn depth(mut self, steps: impl Into<DepthBound>) -> Self {
        self.options.depth = Some(steps.into());
        self
    }

    /// How many bytes the process may take. A search that this cuts short is inconclusive.
    pub fn memory(mut self, bytes: impl Into<Bytes>) -> Self {
        self.options.memory = Some(bytes.into());
        self
    }

    /// How long the search may take. A search that this cuts short is inconclusive.
    pub fn time(mut self, limit: Duration) -> Self {
        self.options.time = Some(limit);
        self
    }

    /// How long a step may take: a handler, a property, the successor of a state of a direct system. One that takes longer
    /// counts as a step that does not return, and is a violation.
    ///
    /// Without this a step that has not returned for half a minute makes the verdict inconclusive.
    ///
    /// ```
    /// use dragnet::{Check, Cluster, Context, Node, NodeId};
    /// use std::time::Duration;
    ///
    /// /// Waits for a number that never comes.
    /// struct Spinner;
    ///
    /// impl Node for Spinner {
    ///     type State = u64;
    ///     type Msg = ();
    ///
    ///     fn on_start(&self, cx: &mut Context<()>) -> u64 {
    ///         cx.broadcast_to_others(());
    ///         0
    ///     }
    ///
    ///     fn on_message(&self, number: &mut u64, _from: NodeId, _msg: (), _cx: &mut Context<()>) {
    ///         while *number != 1 {
    ///             *number = std::hint::black_box(*number + 2);
    ///         }
    ///     }
    /// }
    ///
    /// let verdict = Check::new(Cluster::new(2, |_| Spinner)).patience(Duration::from_millis(200)).run();
    /// assert!(verdict.violation().unwrap().describe().contains("has not returned for 200ms"));
    /// ```
    pub fn patience(mut self, patience: Duration) -> Self {
        self.options.patience = Some(patience);
        self
    }

    /// Keeps whole states instead of their fingerprints: slower and larger, with no chance of a collision.
    pub fn exact(mut self) -> Self {
        self.options.exact = true;
        self
    }

    /// How often handlers of nodes run twice, to see whether they do the same: now and then unless said otherwise.
    pub fn determinism(mut self, determinism: Determinism) -> Self {
        self.options.determinism = determinism;
        self
    }

    /// Starts in a saved state instead of at the beginning; for a cluster whose states can be read.
    ///
    /// See [`Cluster::serializable`](crate::Cluster::serializable) for an example.
    pub fn starting_from(mut self, state: &SavedState) -> Result<Self, StateError> {
        self.start_from(state)?;
        Ok(self)
    }

    fn start_from(&mut self, state: &SavedState) -> Result<(), StateError> {
        let system = || self.name.clone().unwrap_or_else(|| "the system".to_owned());
        if self.name.as_ref().is_some_and(|name| *name != state.system) {
            return Err(StateError::Unfit {
                system: system(),
                reason: format!("it is a state of `{}`", state.system),
            });
        }
        if let Err(reason) = self.target.depart_from(state) {
            return Err(StateError::Unfit {
                system: system(),
                reason,
            });
        }
        self.from = Some(state.clone());
        Ok(())
    }

    /// Why it cannot be explored as it is, if it cannot.
    pub(crate) fn objection(&self) -> Option<String> {
        if cfg!(panic = "abort") {
            return Some(
                "panics of the program and limits end a step by unwinding: build with panic = \"unwind\"".to_owned(),
            );
        }
        if self.options.keep_state && !self.target.can_be_saved() {
            return Some(
                "its states cannot be written; only those of a cluster that is `.serializable()` can"
                    .to_owned(),
            );
        }
        self.target
            .objection()
            .or_else(|| driver::unmet_requirement(self))
    }

    /// What bounds the system, a phrase each.
    pub(crate) fn bounds(&self) -> Vec<String> {
        let mut bounds = self.target.bounds();
        bounds.extend(self.within.iter().map(|bound| bound.name.clone()));
        bounds
    }
}

impl<T: Checkable> Check<T> {
    /// Searches, and says what was found. When the environment variable `DRAGNET_REPLAY` names a trace of this check,
    /// that is run again instead, step by step, with the program's own output.
    ///
    /// # Panics
    /// When that trace cannot be read, or the system has changed since it was recorded.
    #[track_caller]
    pub fn run(self) -> Verdict {
        driver::check_or_replay(self)
    }

    /// Searches under `control`, which can watch the search and stop it.
    pub fn run_under(self, control: &Control) -> Verdict {
        T::Host::check(Prepared::new(self), control)
    }

    /// Runs a recorded counterexample again, step by step.
    pub fn replay(self, trace: &Trace) -> Result<Replay, ReplayError> {
        driver::replay_of(self, trace)
    }
}

#[cfg(feature = "threads")]
impl Check<Threads> {
    /// What may go wrong between processes: see [`Threads::faults`].
    pub fn faults(mut self, faults: Faults) -> Self {
        self.target = self.target.faults(faults);
        self
    }
}

impl<N: Node> Check<Cluster<N>> {
    /// What may go wrong. A second call adds to the first, and counts where both name the same kind.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.target = self.target.faults(faults);
        self
    }

    /// Demands that in every reachable state each node by itself satisfies `holds`.
    ///
    /// The same can be said with [`always`](Check::always); said like this, the local engine judges each local state
    /// once, and never puts a state of the whole system together for it.
    ///
    /// ```
    /// # use dragnet::{Check, Cluster, Context, Node, NodeId};
    /// # struct Counter;
    /// # impl Node for Counter {
    /// #     type State = u8;
    /// #     type Msg = ();
    /// #     fn on_start(&self, cx: &mut Context<()>) -> u8 { cx.broadcast_to_others(()); 0 }
    /// #     fn on_message(&self, heard: &mut u8, _: NodeId, _: (), _: &mut Context<()>) { *heard += 1 }
    /// # }
    /// Check::new(Cluster::new(3, |_| Counter))
    ///     .always_for_each("nobody hears more than the others say", |node| node.state().is_none_or(|&heard| heard <= 2))
    ///     .run()
    ///     .assert_holds();
    /// ```
    pub fn always_for_each<F>(self, name: impl Into<String>, holds: F) -> Self
    where
        F: for<'a> Fn(NodeView<'a, N>) -> bool + Send + Sync + 'static,
    {
        let holds = Arc::new(holds);
        let scope = Scope::Each(nodes::on_local(Arc::clone(&holds)));
        self.property(name, Claim::Always(nodes::for_each(holds), scope))
    }

    /// Demands that in every reachable state all nodes for which `project` has something have the same.
    ///
    /// The same can be said with [`always`](Check::always); said like this, the local engine looks only at states of
    /// nodes that have something, and only at two of them that differ.
    ///
    /// ```
    /// # use dragnet::{Check, Cluster, Context, Node, NodeId};
    /// # struct Follower;
    /// # impl Node for Follower {
    /// #     type State = Option<u8>;
    /// #     type Msg = u8;
    /// #     fn on_start(&self, cx: &mut Context<u8>) -> Option<u8> {
    /// #         if cx.me() == NodeId(0) { cx.broadcast(7) }
    /// #         None
    /// #     }
    /// #     fn on_message(&self, decided: &mut Option<u8>, _: NodeId, msg: u8, _: &mut Context<u8>) { *decided = Some(msg) }
    /// # }
    /// Check::new(Cluster::new(3, |_| Follower))
    ///     .always_agree("agreement", |node| *node.state()?)
    ///     .run()
    ///     .assert_holds();
    /// ```
    pub fn always_agree<P, F>(self, name: impl Into<String>, project: F) -> Self
    where
        P: Clone + Eq + Hash + Send + Sync + 'static,
        F: for<'a> Fn(NodeView<'a, N>) -> Option<P> + Send + Sync + 'static,
    {
        self.always_compatible(name, project, |one: &P, two: &P| one == two)
    }

    /// Demands that in every reachable state every two different nodes for which `project` has something are
    /// `compatible`, the one with the smaller id first.
    ///
    /// The local engine looks only at states of nodes that have something, and only at two of them that are not.
    ///
    /// ```
    /// # use dragnet::{Check, Cluster, Context, Node, NodeId};
    /// # struct Server;
    /// # impl Node for Server {
    /// #     type State = (u8, bool);
    /// #     type Msg = ();
    /// #     fn on_start(&self, cx: &mut Context<()>) -> (u8, bool) { (1, cx.me() == NodeId(0)) }
    /// #     fn on_message(&self, _: &mut (u8, bool), _: NodeId, _: (), _: &mut Context<()>) {}
    /// # }
    /// Check::new(Cluster::new(3, |_| Server))
    ///     .always_compatible(
    ///         "one leader a term",
    ///         |node| node.state().filter(|(_, leads)| *leads).map(|(term, _)| *term),
    ///         |one, two| one != two,
    ///     )
    ///     .run()
    ///     .assert_holds();
    /// ```
    pub fn always_compatible<P, F, G>(
        self,
        name: impl Into<String>,
        project: F,
        compatible: G,
    ) -> Self
    where
        P: Clone + Eq + Hash + Send + Sync + 'static,
        F: for<'a> Fn(NodeView<'a, N>) -> Option<P> + Send + Sync + 'static,
        G: Fn(&P, &P) -> bool + Send + Sync + 'static,
    {
        let classes = Arc::new(nodes::Classes::new(project, compatible));
        let predicate = nodes::for_pairs(Arc::clone(&classes));
        self.property(name, Claim::Always(predicate, Scope::Pairs(classes)))
    }

    /// Demands that some reachable state has a node that satisfies `reaches` by itself.
    pub fn reachable_for_some<F>(self, name: impl Into<String>, reaches: F) -> Self
    where
        F: for<'a> Fn(NodeView<'a, N>) -> bool + Send + Sync + 'static,
    {
        let reaches = Arc::new(reaches);
        let scope = Scope::Each(nodes::on_local(Arc::clone(&reaches)));
        let predicate = nodes::for_some(reaches);
        self.property(name, Claim::Reachable(predicate, Reached::default(), scope))
    }

    /// Bounds the system as [`within`](Check::within) does, by a condition on each node by itself: the local engine cuts
    /// what is outside at once, where it can use any other bound only to reject what it has found.
    pub fn within_for_each<F>(mut self, bound: impl Into<String>, inside: F) -> Self
    where
        F: for<'a> Fn(NodeView<'a, N>) -> bool + Send + Sync + 'static,
    {
        let inside = Arc::new(inside);
        self.within.push(Bound {
            name: bound.into(),
            local: Some(nodes::on_local(Arc::clone(&inside))),
            inside: nodes::for_each(inside),
        });
        self
    }

    /// As [`always`](Check::always), for a condition that also reads the messages in flight.
    ///
    /// Deliveries that change nothing are then taken too.
    pub fn always_with_messages<F>(mut self, name: impl Into<String>, holds: F) -> Self
    where
        F: for<'a> Fn(Snapshot<'a, N>, InFlight<'a, N>) -> bool + Send + Sync + 'static,
    {
        self.watch = Watch::Everything;
        self.property(name, Claim::Always(on_messages(holds), Scope::Network))
    }

    /// As [`reachable`](Check::reachable), for a condition that also reads the messages in flight.
    ///
    /// Deliveries that change nothing are then taken too.
    pub fn reachable_with_messages<F>(mut self, name: impl Into<String>, reaches: F) -> Self
    where
        F: for<'a> Fn(Snapshot<'a, N>, InFlight<'a, N>) -> bool + Send + Sync + 'static,
    {
        self.watch = Watch::Everything;
        let claim = Claim::Reachable(on_messages(reaches), Reached::default(), Scope::Network);
        self.property(name, claim)
    }
}

fn on_view<T, F>(condition: F) -> Predicate<T::System>
where
    T: Target,
    F: for<'a> Fn(T::View<'a>) -> bool + Send + Sync + 'static,
{
    Box::new(move |system, state| condition(T::view(system, state)))
}

fn on_messages<N, F>(condition: F) -> Predicate<<Cluster<N> as Target>::System>
where
    N: Node,
    F: for<'a> Fn(Snapshot<'a, N>, InFlight<'a, N>) -> bool + Send + Sync + 'static,
{
    Box::new(move |system, state| {
        condition(Snapshot::new(system, state), InFlight::new(system, state))
    })
}

impl<T: Checkable> From<Check<T>> for Box<dyn AnyCheck> {
    fn from(check: Check<T>) -> Self {
        Box::new(check)
    }
}

/// A check whose target is not known by type: what a command line or a catalogue handles.
pub trait AnyCheck {
    /// How to search.
    fn options_mut(&mut self) -> &mut Options;

    /// Has an engine of one's own explore.
    fn set_explorer(&mut self, explorer: Arc<dyn Explorer>);

    /// Sets the system's name.
    fn set_name(&mut self, name: String);

    /// The name of the target's kind.
    fn target_kind(&self) -> &'static str;

    /// The names of what must be true.
    fn properties(&self) -> Vec<String>;

    /// Adds to the fault budgets; false when this target knows no faults.
    fn add_faults(&mut self, faults: Faults) -> bool;

    /// Why it cannot be explored as it is, if it cannot.
    fn objection(&self) -> Option<String>;

    /// Starts in a saved state instead of at the beginning.
    fn start_from(&mut self, state: &SavedState) -> Result<(), StateError>;

    /// Searches under `control`.
    fn run_under(self: Box<Self>, control: &Control) -> Verdict;

    /// Runs a recorded counterexample again.
    fn replay(self: Box<Self>, trace: &Trace) -> Result<Replay, ReplayError>;
}

impl<T: Checkable> AnyCheck for Check<T> {
    fn options_mut(&mut self) -> &mut Options {
        &mut self.options
    }

    fn set_explorer(&mut self, explorer: Arc<dyn Explorer>) {
        self.options.engine = Depth::new().into();
        self.explorer = Some(explorer);
    }

    fn set_name(&mut self, name: String) {
        self.name = Some(name);
    }

    fn target_kind(&self) -> &'static str {
        self.target.kind_name()
    }

    fn properties(&self) -> Vec<String> {
        self.properties.iter().map(|p| p.name.clone()).collect()
    }

    fn add_faults(&mut self, faults: Faults) -> bool {
        match self.target.faults_mut() {
            Some(known) => {
                *known = known.and(faults);
                true
            }
            None => false,
        }
    }

    fn objection(&self) -> Option<String> {
        Check::objection(self)
    }

    fn start_from(&mut self, state: &SavedState) -> Result<(), StateError> {
        Check::start_from(self, state)
    }

    fn run_under(self: Box<Self>, control: &Control) -> Verdict {
        Check::run_under(*self, control)
    }

    fn replay(self: Box<Self>, trace: &Trace) -> Result<Replay, ReplayError> {
        Check::replay(*self, trace)
    }
}
