//! Reference counts that a check sees.

use dragnet::arc::{Arc, Weak, unsize};
use dragnet::cell::UnsafeCell;
use dragnet::engine::{Dpor, Reduction};
use dragnet::sync::atomic::AtomicU32;
use dragnet::sync::atomic::Ordering::{Relaxed, SeqCst};
use dragnet::sync::mpsc;
use dragnet::{Check, Threads, Verdict, thread};

use crate::described;

struct Data(UnsafeCell<u32>);

// SAFETY: this is what the checks are for.
unsafe impl Sync for Data {}

impl Data {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    #[track_caller]
    fn write(&self) {
        // SAFETY: the check says when somebody else may be here.
        self.0.with_mut(|data| unsafe { *data += 1 });
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        self.write();
    }
}

fn verdict(program: impl Fn() + Send + Sync + 'static) -> Verdict {
    Check::new(Threads::new(program)).run()
}

#[test]
fn drops_release_and_the_last_one_acquires() {
    let verdict = verdict(|| {
        let shared = Arc::new(Data::new());
        let others: Vec<_> = [0; 2].map(|_| Arc::clone(&shared)).into_iter().collect();
        let mut turn = Some(());
        let others: Vec<_> = others
            .into_iter()
            .map(|other| {
                let writes = turn.take().is_some();
                thread::spawn(move || {
                    if writes {
                        other.write();
                    }
                })
            })
            .collect();
        drop(shared);
        for other in others {
            other.join().unwrap();
        }
    });
    verdict.assert_holds();
    assert_eq!(verdict.warnings, [] as [&str; 0]);
}

#[test]
fn what_is_a_warning_with_the_arc_of_std_is_decided() {
    let check = |drops_first: bool| {
        verdict(move || {
            let shared = Arc::new(Data::new());
            let done = std::sync::Arc::new(AtomicU32::new(0));
            let (other, tell) = (Arc::clone(&shared), std::sync::Arc::clone(&done));
            let other = thread::spawn(move || {
                other.write();
                if drops_first {
                    drop(other);
                    tell.store(1, Relaxed);
                } else {
                    tell.store(1, Relaxed);
                    drop(other);
                }
            });
            if done.load(Relaxed) == 1 {
                match drops_first {
                    true => Arc::try_unwrap(shared).ok().unwrap().write(),
                    false => shared.write(),
                }
            }
            other.join().unwrap();
        })
    };
    let ordered = check(true);
    ordered.assert_holds();
    assert_eq!(ordered.warnings, [] as [&str; 0]);
    let described = check(false).violation().map(|found| found.describe());
    assert!(described.unwrap_or_default().contains("data race"));
}

/// Fails where a certain thread drops the last owner.
struct Ends(AtomicU32);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
        assert_ne!(thread::current().name(), Some("unlucky"));
    }
}

#[test]
fn each_owner_is_tried_as_the_last() {
    let check = |name: &'static str| {
        Check::new(Threads::new(move || {
            let shared = Arc::new(Ends(AtomicU32::new(0)));
            let other = Arc::clone(&shared);
            let named = thread::Builder::new().name(name.to_owned());
            let named = named.spawn(move || drop(other)).unwrap();
            let other = Arc::clone(&shared);
            let other = thread::spawn(move || drop(other));
            drop(shared);
            named.join().unwrap();
            other.join().unwrap();
        }))
    };
    check("lucky").run().assert_holds();
    for workers in [1, 2] {
        assert!(
            check("unlucky")
                .threads(workers)
                .run()
                .violation()
                .is_some()
        );
    }
}

#[test]
fn weak_references_are_upgraded_before_and_behind_the_last_drop() {
    let check = |must_find: bool| {
        verdict(move || {
            let shared = Arc::new(AtomicU32::new(0));
            let weak: Weak<AtomicU32> = Arc::downgrade(&shared);
            let other = thread::spawn(move || {
                let found = weak.upgrade().is_some();
                assert_eq!(found, must_find);
            });
            drop(shared);
            other.join().unwrap();
        })
    };
    assert!(check(true).violation().is_some());
    assert!(check(false).violation().is_some());
}

#[test]
fn who_waits_for_others_to_drop_theirs_goes_on() {
    verdict(|| {
        let mut shared = Arc::new(5);
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || drop(other));
        while Arc::strong_count(&shared) > 1 {
            thread::yield_now();
        }
        *Arc::get_mut(&mut shared).expect("nobody else has it") += 1;
        other.join().unwrap();
    })
    .assert_holds();
}

#[test]
fn leaks_are_told_where_that_is_asked_for() {
    struct Ring(std::sync::Mutex<Option<Arc<Self>>>);
    let check = |leaks: bool| {
        Threads::new(move || {
            let ring = Arc::new(Ring(std::sync::Mutex::default()));
            if leaks {
                *ring.0.lock().unwrap() = Some(Arc::clone(&ring));
            }
        })
    };
    Check::new(check(true)).run().assert_holds();
    Check::new(check(false).report_leaks()).run().assert_holds();
    let described = described(Check::new(check(true).report_leaks()));
    assert!(described.contains("leak: the Arc made at"), "{described}");
    assert!(described.contains("arcs.rs"), "{described}");
}

#[test]
fn a_value_that_nothing_was_done_with_leaks_as_well() {
    let check = |main: fn()| Check::new(Threads::new(main).report_leaks());
    let leaks: [fn(); 4] = [
        || std::mem::forget(Arc::new(1)),
        || {
            Arc::into_raw(Arc::new(2));
        },
        || {
            Box::leak(Box::new(Arc::<[u32]>::from_iter([3])));
        },
        || {
            std::mem::forget(Arc::new_cyclic(|_: &Weak<u32>| 4));
        },
    ];
    for main in leaks {
        let described = described(check(main));
        assert!(
            described.contains("leak: the Arc made at crates/dragnet/tests/threads/arcs.rs"),
            "{described}"
        );
    }
    check(|| {
        drop(Arc::new(1));
        // SAFETY: it is given out right here.
        drop(unsafe { Arc::from_raw(Arc::into_raw(Arc::new(2))) });
        assert_eq!(Arc::try_unwrap(Arc::new(3)), Ok(3));
        assert_eq!(Arc::into_inner(Arc::new(4)), Some(4));
        let mut shared = Arc::new(5);
        let other = Arc::clone(&shared);
        *Arc::make_mut(&mut shared) += 1;
        assert_eq!((*shared, *other), (6, 5));
        drop(unsize!(Arc::new(6) => dyn std::fmt::Debug));
        let shared = Arc::new(7);
        thread::spawn(move || assert_eq!(*shared, 7))
            .join()
            .unwrap();
    })
    .run()
    .assert_holds();
}

#[test]
fn what_is_dropped_at_the_end_of_its_thread_does_not_leak() {
    dragnet::thread_local! {
        static KEPT: std::cell::RefCell<Option<Arc<u32>>> = const { std::cell::RefCell::new(None) };
    }
    let program = || {
        let keep = || KEPT.with(|kept| *kept.borrow_mut() = Some(Arc::new(0)));
        keep();
        thread::spawn(keep).join().unwrap();
        drop(thread::spawn(|| Arc::new(1)));
        drop(thread::spawn(|| Arc::new(2)).join().unwrap());
        let (sender, receiver) = mpsc::channel();
        sender.send(Arc::new(3)).unwrap();
        drop((sender, receiver));
        thread::scope(|scope| {
            scope.spawn(|| Arc::new(4));
        });
    };
    Check::new(Threads::new(program).report_leaks())
        .run()
        .assert_holds();
}

/// Knows of itself, and writes when it is dropped.
struct Itself {
    _this: Weak<Self>,
    data: Data,
    _ends: Option<Ends>,
}

impl Itself {
    /// Nobody owns a value that is being made.
    fn new(ends: Option<Ends>) -> Arc<Self> {
        Arc::new_cyclic(|this: &Weak<Self>| {
            assert_eq!(this.strong_count(), 0);
            assert!(this.upgrade().is_none());
            Self {
                _this: this.clone(),
                data: Data::new(),
                _ends: ends,
            }
        })
    }
}

#[test]
fn nobody_owns_a_value_that_is_being_made() {
    let owners = || {
        let shared = Itself::new(None);
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || other.data.write());
        drop(shared);
        other.join().unwrap();
    };
    Check::new(Threads::new(owners).without_std_arcs().report_leaks())
        .run()
        .assert_holds();
    Check::new(Threads::new(owners))
        .engine(Dpor::new().reduction(Reduction::None))
        .run()
        .assert_holds();
    let alone = verdict(|| {
        let mut shared = Arc::new_cyclic(|this: &Weak<u32>| match this.upgrade() {
            Some(_) => 0,
            None => 5,
        });
        *Arc::get_mut(&mut shared).expect("nobody knows of it") += 1;
        *Arc::make_mut(&mut shared) += 1;
        assert_eq!(Arc::try_unwrap(shared), Ok(7));
    });
    alone.assert_holds();
}

#[test]
fn each_owner_of_a_value_that_knows_of_itself_is_tried_as_the_last() {
    for unlucky in [true, false] {
        let check = Check::new(Threads::new(move || {
            let shared = Itself::new(Some(Ends(AtomicU32::new(0))));
            let other = Arc::clone(&shared);
            let (first, second) = match unlucky {
                true => (shared, other),
                false => (other, shared),
            };
            let named = thread::Builder::new().name("unlucky".to_owned());
            let named = named.spawn(move || drop(first)).unwrap();
            let other = thread::spawn(move || drop(second));
            named.join().unwrap();
            other.join().unwrap();
        }));
        assert!(check.run().violation().is_some());
    }
}

#[test]
fn a_value_that_panics_while_it_is_made_has_never_had_an_owner() {
    let check = Threads::new(|| {
        let made = std::panic::catch_unwind(|| {
            Arc::new_cyclic(|this: &Weak<u32>| {
                let _kept = this.clone();
                panic!("on purpose")
            })
        });
        assert!(made.is_err());
    });
    Check::new(check.report_leaks()).run().assert_holds();
}

/// Counts how often it was cloned.
struct Cloned(u32);

impl Clone for Cloned {
    fn clone(&self) -> Self {
        Self(self.0 + 1)
    }
}

#[test]
fn make_mut_moves_a_value_that_nobody_else_owns() {
    verdict(|| {
        let mut shared = Arc::new(Cloned(0));
        let weak = Arc::downgrade(&shared);
        assert_eq!(Arc::make_mut(&mut shared).0, 0);
        assert!(weak.upgrade().is_none());
        assert_eq!(Arc::weak_count(&shared), 0);
        let other = Arc::clone(&shared);
        assert_eq!(Arc::make_mut(&mut shared).0, 1);
        assert_eq!(Arc::into_inner(other).map(|other| other.0), Some(0));
    })
    .assert_holds();
}

#[test]
fn a_weak_reference_is_upgraded_before_or_behind_make_mut() {
    let check = |must_find: bool| {
        verdict(move || {
            let mut shared = Arc::new(Cloned(0));
            let weak = Arc::downgrade(&shared);
            let other = thread::spawn(move || {
                assert_eq!(weak.upgrade().is_some(), must_find);
            });
            let clones = Arc::make_mut(&mut shared).0;
            assert!(clones <= 1);
            other.join().unwrap();
        })
    };
    assert!(check(true).violation().is_some());
    assert!(check(false).violation().is_some());
}

#[test]
fn a_weak_reference_to_a_trait_object_is_counted_once() {
    verdict(|| {
        let shared = Arc::new(5);
        let weak: Weak<dyn std::fmt::Debug + Send + Sync> =
            unsize!(Arc::downgrade(&shared) => dyn std::fmt::Debug + Send + Sync);
        assert_eq!(Arc::weak_count(&shared), 1);
        let other = thread::spawn(move || weak.upgrade().is_some());
        other.join().unwrap();
        assert_eq!(Arc::weak_count(&shared), 0);
        assert_eq!(Arc::try_unwrap(shared), Ok(5));
    })
    .assert_holds();
}

#[test]
fn trait_objects_are_counted_as_well() {
    verdict(|| {
        let add: Arc<dyn Fn(u32) -> u32 + Send + Sync> =
            unsize!(Arc::new(|number| number + 1) => dyn Fn(u32) -> u32 + Send + Sync);
        let other = Arc::clone(&add);
        let other = thread::spawn(move || other(1));
        assert_eq!(add(2) + other.join().unwrap(), 5);
        assert_eq!(Arc::strong_count(&add), 1);
    })
    .assert_holds();
}

#[test]
fn a_raw_pointer_keeps_its_count() {
    verdict(|| {
        let raw = Arc::into_raw(Arc::new(AtomicU32::new(0)));
        // SAFETY: it was just given out.
        let shared = unsafe { Arc::from_raw(raw) };
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || other.fetch_add(1, SeqCst));
        other.join().unwrap();
        assert_eq!(Arc::into_inner(shared).unwrap().into_inner(), 1);
    })
    .assert_holds();
}
