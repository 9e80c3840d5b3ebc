//! Handlers that read the clock, iterate hash maps and draw random numbers behave the same in every run and process.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant, SystemTime};
use std::{env, thread};

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use dragnet::nodes::{Opaque, OpaqueNode};
use dragnet::system::FailureKind;
use dragnet::verdict::ViolationKind;
use dragnet::{Check, Cluster, Context, Node, NodeId};

const HOUR: Duration = Duration::from_secs(3600);

/// Does one thing when it starts, and again when the message arrives that it sends to itself.
///
/// It is not generic in what comes of it, because the checker is compiled anew for every type of node.
#[derive(Clone)]
struct Probe {
    act: Arc<dyn Fn(Situation) + Send + Sync>,
}

/// Which node runs a handler, and whether it starts.
type Situation = (NodeId, bool);

impl Probe {
    fn new(act: impl Fn(Situation) + Send + Sync + 'static) -> Self {
        Self { act: Arc::new(act) }
    }

    fn check(&self, nodes: usize) -> Check<Cluster<Self>> {
        Check::new(Cluster::new(nodes, |_| self.clone()))
    }
}

impl Node for Probe {
    type State = bool;
    type Msg = ();

    fn on_start(&self, cx: &mut Context<()>) -> bool {
        cx.send(cx.me(), ());
        (self.act)((cx.me(), true));
        false
    }

    fn on_message(&self, told: &mut bool, _: NodeId, (): (), cx: &mut Context<()>) {
        *told = true;
        (self.act)((cx.me(), false));
    }
}

/// What `act` comes to in the handlers of two nodes that are explored twice.
fn explored<T: Send + 'static>(act: impl Fn() -> T + Send + Sync + 'static) -> Vec<(Situation, T)> {
    let (tell, told) = mpsc::channel();
    let probe = Probe::new(move |situation| tell.send((situation, act())).unwrap());
    for threads in [1, 2] {
        let verdict = probe.check(2).threads(threads).run();
        verdict.assert_holds();
        assert_eq!(verdict.statistics.states, 4);
    }
    drop(probe);
    told.into_iter().collect()
}

/// What `act` comes to in every handler.
fn in_every_handler<T>(act: impl Fn() -> T + Send + Sync + 'static) -> T
where
    T: Send + PartialEq + Debug + 'static,
{
    let mut seen = explored(act).into_iter();
    let (_, first) = seen.next().expect("a handler has run");
    for (situation, other) in seen {
        assert_eq!(
            other, first,
            "{situation:?} saw something else than the first"
        );
    }
    first
}

/// What `act` comes to in each situation, where it always comes to the same.
fn in_each_situation<T>(act: impl Fn() -> T + Send + Sync + 'static) -> HashMap<Situation, T>
where
    T: Send + PartialEq + Debug + 'static,
{
    let mut distinct = HashMap::new();
    for (situation, seen) in explored(act) {
        match distinct.entry(situation) {
            Entry::Occupied(known) => assert_eq!(*known.get(), seen, "in {situation:?}"),
            Entry::Vacant(place) => _ = place.insert(seen),
        }
    }
    assert_eq!(distinct.len(), 4, "two nodes, two handlers");
    distinct
}

fn order_of_a_map() -> Vec<u32> {
    (0..20)
        .map(|n| (n, ()))
        .collect::<HashMap<_, _>>()
        .into_keys()
        .collect()
}

/// Four words, drawn by each of the `getrandom` crates.
fn draw() -> Vec<[u8; 32]> {
    let mut drawn = vec![[0; 32]; 3];
    getrandom02::getrandom(&mut drawn[0]).unwrap();
    getrandom03::fill(&mut drawn[1]).unwrap();
    getrandom04::fill(&mut drawn[2]).unwrap();
    drawn
}

#[test]
fn time_begins_at_the_same_moment_and_moves_when_somebody_looks() {
    let (first, gap, wall) = in_every_handler(|| {
        let (first, second) = (Instant::now(), Instant::now());
        (first, second - first, SystemTime::now())
    });
    assert_eq!(gap, Duration::from_micros(1));
    let new_year = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
    assert_eq!(wall, new_year + Duration::from_micros(3));
    assert!(first < Instant::now(), "it begins in the past");
}

#[test]
fn a_loop_that_waits_for_time_to_pass_ends() {
    in_every_handler(|| {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(10) {}
    });
}

#[test]
fn sleeping_moves_the_clock_and_takes_no_time() {
    let began = Instant::now();
    let slept = in_every_handler(|| {
        let began = Instant::now();
        thread::sleep(HOUR);
        began.elapsed()
    });
    assert_eq!(slept, HOUR + Duration::from_micros(1));
    assert!(began.elapsed() < HOUR);
}

#[test]
fn a_wait_with_a_time_out_moves_the_clock_and_takes_no_time() {
    let began = Instant::now();
    let waited = in_every_handler(|| {
        let began = Instant::now();
        let (mutex, condition) = (Mutex::new(()), Condvar::new());
        let waited = condition.wait_timeout(mutex.lock().unwrap(), HOUR);
        assert!(waited.unwrap().1.timed_out());
        let (_sender, receiver) = mpsc::channel::<()>();
        assert_eq!(
            receiver.recv_timeout(HOUR),
            Err(mpsc::RecvTimeoutError::Timeout)
        );
        thread::park_timeout(HOUR);
        began.elapsed()
    });
    assert!(waited >= 3 * HOUR && waited < 4 * HOUR, "{waited:?}");
    assert!(began.elapsed() < HOUR);
}

#[test]
fn hash_maps_are_iterated_alike() {
    let orders = in_every_handler(|| (order_of_a_map(), order_of_a_map()));
    assert_ne!(
        orders.0, orders.1,
        "two maps of one run have different keys"
    );
}

#[test]
fn keys_that_a_thread_drew_before_do_not_reach_a_handler() {
    let here = order_of_a_map();
    assert_ne!(in_every_handler(order_of_a_map), here);
}

#[test]
fn random_numbers_follow_from_node_state_and_input() {
    let drawn = in_each_situation(draw);
    let words: HashSet<&[u8]> = drawn
        .values()
        .flat_map(|drawn| drawn.iter().flat_map(|bytes| bytes.chunks(8)))
        .collect();
    assert_eq!(words.len(), 4 * 3 * 4, "no word is drawn twice");
}

#[test]
fn opaque_nodes_draw_different_identifiers_too() {
    struct Named;

    impl OpaqueNode for Named {
        type State = Vec<[u8; 32]>;
        type Msg = ();
        type View = Vec<[u8; 32]>;
        type Disk = ();

        fn on_start(&self, _: &mut Context<()>) -> Self::State {
            draw()
        }

        fn on_message(&self, _: &mut Self::State, _: NodeId, _: (), _: &mut Context<()>) {}

        fn view(&self, name: &mut Self::State) -> Self::View {
            name.clone()
        }
    }

    Check::new(Cluster::new(3, |_| Opaque::new(Named)))
        .always("names differ", |s| {
            s.pairs().all(|(one, two)| **one != **two)
        })
        .run()
        .assert_holds();
}

#[test]
fn functions_of_c_see_the_same() {
    let seen = in_each_situation(|| {
        let mut of_day = libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        };
        let mut raw = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut entropy = [0_u8; 8];
        // SAFETY: every call gets room for what it writes.
        unsafe {
            assert_eq!(libc::gettimeofday(&mut of_day, std::ptr::null_mut()), 0);
            assert_eq!(
                libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_BOOTTIME, &mut raw),
                0
            );
            assert_eq!(
                libc::getentropy(entropy.as_mut_ptr().cast(), entropy.len()),
                0
            );
            let time = libc::time(std::ptr::null_mut());
            (time, of_day.tv_usec, raw.tv_nsec, entropy)
        }
    });
    let (time, of_day, raw, entropy) = seen[&(NodeId(0), true)];
    assert_eq!((time, of_day, raw), (1_767_225_600, 1, 2_000));
    assert_ne!(entropy, [0; 8]);
}

#[test]
fn a_failed_system_call_still_says_why() {
    // SAFETY: a descriptor that does not exist is refused.
    let closed = || unsafe { libc::syscall(libc::SYS_close, -1) };
    let error = move || (closed(), std::io::Error::last_os_error().raw_os_error());
    assert_eq!(error(), (-1, Some(libc::EBADF)));
    assert_eq!(in_every_handler(error), (-1, Some(libc::EBADF)));
}

#[test]
fn threads_outside_handlers_keep_the_real_world() {
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    let (hold, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    thread::scope(|scope| {
        let outside = scope.spawn(move || {
            while INSIDE.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            let began = (Instant::now(), SystemTime::now());
            thread::sleep(Duration::from_millis(20));
            assert!(began.0.elapsed() >= Duration::from_millis(20));
            assert!(began.0.elapsed() < HOUR && began.1.elapsed().unwrap() < HOUR);
            let (first, second) = (draw(), draw());
            assert!(first.iter().zip(&second).all(|(a, b)| a != b));
            let elsewhere = thread::spawn(order_of_a_map).join().unwrap();
            assert_ne!(order_of_a_map(), elsewhere);
            drop(hold);
        });
        in_every_handler(move || {
            let before = Instant::now();
            INSIDE.fetch_add(1, Ordering::SeqCst);
            // Returns when the other thread has seen what it wants to see.
            assert!(held.lock().unwrap().recv().is_err());
            Instant::now() - before
        });
        outside.join().unwrap();
    });
}

#[test]
fn a_thread_local_begins_anew_in_every_run() {
    thread_local!(static RUNS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) });
    let runs = in_every_handler(|| {
        RUNS.set(RUNS.get() + 1);
        RUNS.get()
    });
    assert_eq!(runs, 1);
}

/// Counts the events that handlers of one test trace.
struct Listener;

const TRACED: &str = "sterile::traced";
static HEARD: AtomicUsize = AtomicUsize::new(0);

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TRACED
    }

    fn event(&self, _: &Event<'_>) {
        HEARD.fetch_add(1, Ordering::SeqCst);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn what_a_handler_traces_goes_where_its_search_traces() {
    tracing::subscriber::set_global_default(Listener).unwrap();
    tracing::info!(target: TRACED, "before the search");
    let traces = Probe::new(|_| tracing::info!(target: TRACED, "in a handler"));
    let silent = traces.check(1).threads(1).run();
    silent.assert_holds();
    assert_eq!(HEARD.load(Ordering::SeqCst), 1, "a search is silent");
}

#[test]
fn a_panic_in_a_handler_keeps_its_message_and_place() {
    for on_start in [true, false] {
        let fails = Probe::new(move |(node, starts)| {
            assert_ne!(starts, on_start, "nothing works on {node}");
        });
        let verdict = fails.check(1).run();
        match &verdict.violation().unwrap().kind {
            ViolationKind::Failure(failure) => {
                assert_eq!(failure.kind(), FailureKind::Panic);
                assert!(failure.message().contains("nothing works on n0"));
                assert!(failure.location().unwrap().contains("sterile.rs"));
            }
            other => panic!("expected a panic, not {other:?}"),
        }
    }
}

/// A node of a gossip that goes by the order of a map, by the clock or by chance.
#[derive(Clone, Copy)]
enum Gossip {
    Map,
    Clock,
    Chance,
}

impl Gossip {
    /// Three nodes, in an order that nobody has declared.
    fn audience(self) -> Vec<usize> {
        let by_chance = |seed: u64| (0..3).map(|n| (seed as usize + n) % 3).collect();
        match self {
            Gossip::Map => HashMap::from([(0, ()), (1, ()), (2, ())])
                .into_keys()
                .collect(),
            Gossip::Clock => {
                let now = SystemTime::now()
                    .duration_since(SystemTime::UNIX_EPOCH)
                    .unwrap();
                by_chance(u64::from(now.subsec_nanos()) / 1000 + now.as_secs())
            }
            Gossip::Chance => by_chance(u64::from(getrandom04::u32().unwrap())),
        }
    }
}

impl Node for Gossip {
    type State = Vec<usize>;
    type Msg = usize;

    fn on_start(&self, cx: &mut Context<usize>) -> Vec<usize> {
        let first = self.audience()[0];
        cx.send(first, cx.me().0);
        vec![first]
    }

    fn on_message(
        &self,
        heard: &mut Vec<usize>,
        _: NodeId,
        rumour: usize,
        cx: &mut Context<usize>,
    ) {
        println!("a rumour on standard output");
        eprintln!("a rumour on standard error");
        heard.push(rumour);
        if heard.len() < 3 {
            for (place, to) in self.audience().into_iter().take(2).enumerate() {
                cx.send(to, rumour + place);
            }
        }
    }
}

fn gossip(kind: Gossip) -> Check<Cluster<Gossip>> {
    Check::new(Cluster::new(3, move |_| kind)).depth(7)
}

/// How a search goes, and a way to a state that is reached late.
fn report(kind: Gossip, threads: usize) -> String {
    let all = gossip(kind).threads(threads).run().statistics;
    let violated = gossip(kind)
        .threads(threads)
        .always("nobody hears everything", |s| {
            s.nodes().all(|heard| heard.len() < 4)
        })
        .run();
    let found = violated
        .counterexample()
        .expect("somebody hears everything");
    format!(
        "report {} states, {} transitions, {:?}",
        all.states, all.transitions, found.trace
    )
}

fn is_child() -> bool {
    env::var_os("DRAGNET_CHILD").is_some()
}

/// What one of these tests prints in a process of its own.
fn child(test: &str) -> String {
    let output = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env("DRAGNET_CHILD", "1")
        .output()
        .unwrap();
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.success(), "{printed:?}");
    printed.concat()
}

fn two_processes_agree(test: &str, kind: Gossip) {
    if is_child() {
        println!("{}", report(kind, 2));
        return;
    }
    let here = report(kind, 1);
    for _ in 0..2 {
        let there = child(test);
        assert!(there.contains(&here), "here\n{here}\nthere\n{there}");
        assert!(
            !there.contains("a rumour on"),
            "a search is silent:\n{there}"
        );
    }
}

#[test]
fn two_processes_agree_on_nodes_that_go_by_the_order_of_a_map() {
    two_processes_agree(
        "two_processes_agree_on_nodes_that_go_by_the_order_of_a_map",
        Gossip::Map,
    );
}

#[test]
fn two_processes_agree_on_nodes_that_go_by_the_clock() {
    two_processes_agree(
        "two_processes_agree_on_nodes_that_go_by_the_clock",
        Gossip::Clock,
    );
}

#[test]
fn two_processes_agree_on_nodes_that_go_by_chance() {
    two_processes_agree(
        "two_processes_agree_on_nodes_that_go_by_chance",
        Gossip::Chance,
    );
}
