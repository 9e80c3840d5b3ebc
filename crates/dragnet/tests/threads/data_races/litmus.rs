//! Litmus tests of memory orderings.

use super::*;

/// One thread writes and stores a flag, the other loads it and reads.
fn message_passing(store: Ordering, load: Ordering) -> bool {
    races(move || {
        let slot = Arc::new(Slot::default());
        let writer = Arc::clone(&slot);
        let writer = thread::spawn(move || {
            writer.data.write(1);
            writer.flag.store(1, store);
        });
        if slot.flag.load(load) == 1 {
            slot.data.read();
        }
        writer.join().unwrap();
    })
}

#[test]
fn a_message_is_passed_by_release_and_acquire() {
    for store in [Release, SeqCst] {
        for load in [Acquire, SeqCst] {
            assert!(!message_passing(store, load), "{store:?}, {load:?}");
        }
    }
}

#[test]
fn a_message_is_not_passed_by_a_relaxed_flag() {
    assert!(message_passing(Relaxed, Acquire));
    assert!(message_passing(Release, Relaxed));
    assert!(message_passing(Relaxed, Relaxed));
}

#[test]
fn every_engine_finds_that_a_flag_is_relaxed() {
    assert_race(|| {
        let slot = Arc::new(Slot::default());
        let writer = Arc::clone(&slot);
        let writer = thread::spawn(move || {
            writer.data.write(1);
            writer.flag.store(1, Relaxed);
        });
        if slot.flag.load(Relaxed) == 1 {
            slot.data.read();
        }
        writer.join().unwrap();
    });
}

/// With fences on either side.
fn fenced(release: Option<Ordering>, acquire: Option<Ordering>, writes_late: bool) -> bool {
    races(move || {
        let slot = Arc::new(Slot::default());
        let writer = Arc::clone(&slot);
        let writer = thread::spawn(move || {
            if !writes_late {
                writer.data.write(1);
            }
            if let Some(order) = release {
                fence(order);
            }
            if writes_late {
                writer.data.write(1);
            }
            writer.flag.store(1, Relaxed);
        });
        if slot.flag.load(Relaxed) == 1 {
            if let Some(order) = acquire {
                fence(order);
            }
            slot.data.read();
        }
        writer.join().unwrap();
    })
}

#[test]
fn fences_order_what_is_before_the_one_and_behind_the_other() {
    for release in [Release, AcqRel, SeqCst] {
        for acquire in [Acquire, AcqRel, SeqCst] {
            assert!(!fenced(Some(release), Some(acquire), false));
        }
    }
    assert!(fenced(None, Some(Acquire), false));
    assert!(fenced(Some(Release), None, false));
    assert!(fenced(Some(Acquire), Some(Acquire), false));
    assert!(fenced(Some(Release), Some(Release), false));
    assert!(fenced(Some(Release), Some(Acquire), true));
}

/// A third thread comes to the flag between the release and the acquire.
fn relayed(relay: fn(&AtomicU32)) -> bool {
    races(move || {
        let slot = Arc::new(Slot::default());
        let (writer, between) = (Arc::clone(&slot), Arc::clone(&slot));
        let writer = thread::spawn(move || {
            writer.data.write(1);
            writer.flag.store(1, Release);
        });
        let between = thread::spawn(move || relay(&between.flag));
        if slot.flag.load(Acquire) == 2 {
            slot.data.read();
        }
        writer.join().unwrap();
        between.join().unwrap();
    })
}

#[test]
fn a_release_sequence_goes_on_with_read_modify_writes_alone() {
    assert!(!relayed(|flag| {
        let _ = flag.compare_exchange(1, 2, Relaxed, Relaxed);
    }));
    assert!(relayed(|flag| {
        if flag.load(Relaxed) == 1 {
            flag.store(2, Relaxed);
        }
    }));
    assert!(relayed(|flag| {
        // Its own release says nothing of what it has not acquired.
        if flag.load(Relaxed) == 1 {
            flag.store(2, Release);
        }
    }));
    assert!(!relayed(|flag| {
        if flag.load(Acquire) == 1 {
            flag.store(2, Release);
        }
    }));
}

#[test]
fn a_store_of_the_same_thread_ends_its_release_sequence() {
    assert!(races(|| {
        let slot = Arc::new(Slot::default());
        let writer = Arc::clone(&slot);
        let writer = thread::spawn(move || {
            writer.data.write(1);
            writer.flag.store(1, Release);
            writer.flag.store(2, Relaxed);
        });
        if slot.flag.load(Acquire) == 2 {
            slot.data.read();
        }
        writer.join().unwrap();
    }));
}

#[test]
fn a_failed_exchange_is_a_load_with_its_own_ordering() {
    let program = |failure: Ordering| {
        races(move || {
            let slot = Arc::new(Slot::default());
            let writer = Arc::clone(&slot);
            let writer = thread::spawn(move || {
                writer.data.write(1);
                writer.flag.store(1, Release);
            });
            if slot.flag.compare_exchange(0, 0, AcqRel, failure) == Err(1) {
                slot.data.read();
            }
            writer.join().unwrap();
        })
    };
    assert!(!program(Acquire));
    assert!(program(Relaxed));
}

#[test]
fn two_flags_order_what_each_of_them_does() {
    let program = |second: Ordering| {
        races(move || {
            let slot = Arc::new(Slot::default());
            let (first, middle) = (Arc::clone(&slot), Arc::clone(&slot));
            let first = thread::spawn(move || {
                first.data.write(1);
                first.flag.store(1, Release);
            });
            let middle = thread::spawn(move || {
                if middle.flag.load(Acquire) == 1 {
                    middle.other_flag.store(1, second);
                }
            });
            if slot.other_flag.load(Acquire) == 1 {
                slot.data.read();
            }
            first.join().unwrap();
            middle.join().unwrap();
        })
    };
    assert!(!program(Release));
    assert!(program(Relaxed));
}

#[test]
fn addresses_that_have_nothing_to_do_with_a_race_do_not_hide_it() {
    assert!(races(|| {
        let slot = Arc::new((Slot::default(), AtomicPtr::<u32>::default()));
        slot.1.store(Box::into_raw(Box::new(1)), Release);
        let writer = Arc::clone(&slot);
        let writer = thread::spawn(move || {
            writer.0.data.write(1);
            writer.0.flag.store(1, Relaxed);
        });
        // SAFETY: it is of a box, and nobody else takes it.
        drop(unsafe { Box::from_raw(slot.1.swap(std::ptr::null_mut(), AcqRel)) });
        if slot.0.flag.load(Acquire) == 1 {
            slot.0.data.read();
        }
        writer.join().unwrap();
    }));
}

/// The address is another one in each execution, so that nobody can be led to it without who made it.
#[test]
fn a_relaxed_pointer_is_at_least_a_warning() {
    let threads = |order: Ordering| {
        Threads::new(move || {
            let head = Arc::new(AtomicPtr::<Data>::default());
            let writer = Arc::clone(&head);
            let writer = thread::spawn(move || {
                let node = Box::new(Data::default());
                node.write(1);
                writer.store(Box::into_raw(node), order);
            });
            let node = head.load(Acquire);
            if !node.is_null() {
                // SAFETY: nobody frees it before the end.
                unsafe { &*node }.read();
            }
            writer.join().unwrap();
            let node = head.load(SeqCst);
            // SAFETY: it is of a box, and nobody else is left.
            drop(unsafe { Box::from_raw(node) });
        })
    };
    let released = Check::new(threads(Release)).run();
    released.assert_holds();
    assert!(released.warnings.is_empty());
    let relaxed = Check::new(threads(Relaxed)).run();
    assert!(relaxed.violation().is_some() || relaxed.warnings.len() == 1);
    let promised = |order| Check::new(threads(order).without_std_arcs()).run();
    promised(Release).assert_holds();
    assert!(promised(Relaxed).violation().is_some());
}
