//! What an `Arc` of `std` orders.

use super::*;

/// Whose last owner reads what others have written.
#[derive(Default)]
struct Read(Slot);

impl Drop for Read {
    fn drop(&mut self) {
        self.0.data.read();
    }
}

#[test]
fn the_last_owner_reads_what_another_wrote_before_it_dropped_its_own() {
    assert_no_race(|| {
        let shared = Arc::new(Read::default());
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            other.0.data.write(1);
            drop(other);
            thread::yield_now();
        });
        thread::yield_now();
        drop(shared);
        thread::yield_now();
        other.join().unwrap();
    });
}

#[test]
fn one_of_three_owners_reads_what_the_others_wrote() {
    #[derive(Default)]
    struct Three([Data; 3]);
    impl Drop for Three {
        fn drop(&mut self) {
            for data in &self.0 {
                data.read();
            }
        }
    }
    assert_no_race(|| {
        let shared = Arc::new(Three::default());
        let threads: Vec<_> = (0..2)
            .map(|id| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.0[id].write(1);
                    drop(shared);
                    thread::yield_now();
                })
            })
            .collect();
        shared.0[2].write(1);
        drop(shared);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn who_gets_data_back_for_itself_comes_after_all_who_had_it() {
    assert_no_race(|| {
        let mut shared = Arc::new(Slot::default());
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || other.data.write(1));
        if let Some(slot) = Arc::get_mut(&mut shared) {
            slot.data.read();
        }
        thread::yield_now();
        if let Ok(slot) = Arc::try_unwrap(shared) {
            slot.data.write(2);
        }
        other.join().unwrap();
    });
}

/// The drop of the third owner is not ordered before that of the last by anything that is seen.
#[test]
fn an_arc_hides_no_race_with_who_has_none() {
    #[derive(Default)]
    struct Writes(Option<Arc<Slot>>);
    impl Drop for Writes {
        fn drop(&mut self) {
            self.0.as_ref().unwrap().data.write(3);
        }
    }
    assert_race(|| {
        let slot = Arc::new(Slot::default());
        let shared = Arc::new(Writes(Some(Arc::clone(&slot))));
        let others = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                thread::yield_now();
                drop(shared);
                thread::yield_now();
            })
        });
        let racing = thread::spawn(move || slot.data.read());
        drop(shared);
        thread::yield_now();
        for other in others {
            other.join().unwrap();
        }
        racing.join().unwrap();
    });
}

#[test]
fn who_writes_behind_its_drop_races_with_the_destructor() {
    assert_race(|| {
        let data = Arc::new(Slot::default());
        struct Reads(Arc<Slot>);
        impl Drop for Reads {
            fn drop(&mut self) {
                self.0.data.read();
            }
        }
        let shared = Arc::new(Reads(Arc::clone(&data)));
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            drop(other);
            data.data.write(1);
        });
        thread::yield_now();
        drop(shared);
        other.join().unwrap();
    });
}

#[test]
fn a_race_right_behind_what_leads_to_it_is_found() {
    assert_race(|| {
        let slot = Arc::new(Slot::default());
        let other = Arc::clone(&slot);
        let other = thread::spawn(move || {
            other.flag.store(1, SeqCst);
            other.data.write(1);
            other.flag.store(2, SeqCst);
        });
        if slot.flag.load(SeqCst) == 1 {
            slot.data.read();
        }
        other.join().unwrap();
    });
}

/// A correct program: dropping the `Arc` releases, `try_unwrap` acquires, and the counter only says when to try.
#[test]
fn a_relaxed_counter_beside_an_arc_is_a_warning() {
    let program = || {
        let shared = Arc::new(Slot::default());
        let done = Arc::new(AtomicU32::new(0));
        let threads = [(); 2].map(|()| {
            let (shared, done) = (Arc::clone(&shared), Arc::clone(&done));
            thread::spawn(move || {
                shared.data.read();
                drop(shared);
                done.fetch_add(1, Relaxed);
            })
        });
        if done.load(Relaxed) == 2 {
            let slot = Arc::try_unwrap(shared).ok().unwrap();
            slot.data.write(1);
        }
        for thread in threads {
            thread.join().unwrap();
        }
    };
    for (engine, check) in checks(|| Threads::new(program)) {
        let verdict = check.run();
        assert!(verdict.violation().is_none(), "{engine}");
    }
    let verdict = verdict(program);
    verdict.assert_holds();
    let warnings = &verdict.warnings;
    assert!(!warnings.is_empty());
    let all = warnings.iter().all(|text| text.contains("unless an `Arc`"));
    assert!(all, "{warnings:?}");
}

#[test]
fn a_relaxed_flag_that_leads_to_the_last_drop_is_a_warning() {
    let program = || {
        let shared = Arc::new(Read::default());
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            other.0.data.write(1);
            other.0.flag.store(1, Relaxed);
        });
        if shared.0.flag.load(Relaxed) == 1 {
            drop(shared);
        }
        other.join().unwrap();
    };
    let verdict = verdict(program);
    verdict.assert_holds();
    assert_eq!(verdict.warnings.len(), 1, "{:?}", verdict.warnings);
}

#[test]
fn a_thread_that_comes_to_other_data_where_it_is_not_the_last_owner_does_not_race() {
    assert_no_race(|| {
        let shared = Arc::new(Read::default());
        let own = Data::default();
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || other.0.data.write(1));
        drop(shared);
        own.write(1);
        other.join().unwrap();
    });
    assert_no_race(|| {
        let mut shared = Arc::new(Data::default());
        let own = Data::default();
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || other.write(1));
        match Arc::get_mut(&mut shared) {
            Some(data) => data.write(2),
            None => own.write(1),
        }
        other.join().unwrap();
    });
    assert_no_race(|| {
        let shared = Arc::new(Data::default());
        let own = Data::default();
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || other.write(1));
        match Arc::try_unwrap(shared) {
            Ok(data) => data.write(2),
            Err(_) => own.write(1),
        }
        other.join().unwrap();
    });
}

#[test]
fn a_race_is_found_whatever_else_depends_on_who_is_the_last_owner() {
    assert_race(|| {
        let shared = Arc::new(Data::default());
        let own = Data::default();
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || other.write(1));
        if Arc::strong_count(&shared) == 1 {
            own.write(1);
        }
        shared.write(2);
        other.join().unwrap();
    });
    assert_race(|| {
        let shared = Arc::new(Data::default());
        let read = Arc::new(Read::default());
        let others = (Arc::clone(&shared), Arc::clone(&read));
        let other = thread::spawn(move || {
            others.0.write(1);
            drop(others.1);
        });
        drop(read);
        shared.write(2);
        other.join().unwrap();
    });
}

#[test]
fn a_writer_whose_destructor_would_not_run_without_the_reader_races_with_it() {
    /// Does an operation where its last owner drops it.
    struct Counted(Arc<AtomicU32>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    assert_race(|| {
        let slot = Arc::new(Slot::default());
        let counted = Arc::new(Counted(Arc::default()));
        let (others_slot, others) = (Arc::clone(&slot), Arc::clone(&counted));
        let other = thread::spawn(move || {
            others_slot.data.read();
            drop(others);
        });
        // The last owner where the other thread is done; otherwise nothing happens here.
        drop(counted);
        thread::yield_now();
        slot.data.write(1);
        other.join().unwrap();
    });
}
