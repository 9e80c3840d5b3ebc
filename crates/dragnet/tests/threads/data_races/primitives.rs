//! What the primitives order, and what they do not.

use super::*;

/// One thread writes and `publish`es, the other reads if it `sees` that.
fn passes<S: Default + Send + Sync + 'static>(publish: fn(&S), sees: fn(&S) -> bool) -> bool {
    !races(move || {
        let shared = Arc::new((Data::default(), S::default()));
        let writer = Arc::clone(&shared);
        let writer = thread::spawn(move || {
            writer.0.write(1);
            publish(&writer.1);
        });
        if sees(&shared.1) {
            shared.0.read();
        }
        writer.join().unwrap();
    })
}

#[test]
fn locks_order_who_has_them_one_after_the_other() {
    assert!(passes::<Mutex<bool>>(
        |lock| *lock.lock().unwrap() = true,
        |lock| *lock.lock().unwrap(),
    ));
    assert!(passes::<Mutex<bool>>(
        |lock| *lock.lock().unwrap() = true,
        |lock| lock.try_lock().is_ok_and(|done| *done),
    ));
    assert!(passes::<RwLock<bool>>(
        |lock| *lock.write().unwrap() = true,
        |lock| *lock.read().unwrap(),
    ));
    assert!(passes::<(RwLock<()>, AtomicU32)>(
        |(lock, flag)| {
            let _held = lock.read().unwrap();
            flag.store(1, Relaxed);
        },
        |(lock, flag)| {
            let _held = lock.write().unwrap();
            flag.load(Relaxed) == 1
        },
    ));
}

#[test]
fn readers_of_a_lock_are_not_ordered_among_each_other() {
    assert!(!passes::<(RwLock<()>, AtomicU32)>(
        |(lock, flag)| {
            let _held = lock.read().unwrap();
            flag.store(1, Relaxed);
        },
        |(lock, flag)| {
            let _held = lock.read().unwrap();
            flag.load(Relaxed) == 1
        },
    ));
}

#[test]
fn a_lock_that_could_not_be_had_orders_nothing() {
    assert!(!passes::<Mutex<()>>(
        |lock| drop(lock.lock().unwrap()),
        |lock| lock.try_lock().is_err(),
    ));
}

#[test]
fn a_condition_variable_orders_by_its_mutex() {
    assert!(passes::<(Mutex<bool>, Condvar)>(
        |(lock, changed)| {
            *lock.lock().unwrap() = true;
            changed.notify_one();
        },
        |(lock, changed)| {
            let done = changed.wait_while(lock.lock().unwrap(), |done| !*done);
            *done.unwrap()
        },
    ));
}

#[test]
fn a_notification_orders_nothing() {
    fn waits_for_a_while() {
        let shared = Arc::new((Data::default(), Mutex::new(()), Condvar::new()));
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            let (data, lock, changed) = &*other;
            let second = std::time::Duration::from_secs(1);
            let waited = changed.wait_timeout(lock.lock().unwrap(), second);
            let (guard, late) = waited.unwrap();
            drop(guard);
            if !late.timed_out() {
                data.read();
            }
        });
        shared.0.write(7);
        shared.2.notify_one();
        other.join().unwrap();
    }
    /// The writer notifies only who waits, and who has not come to wait does not wait any more.
    fn waits_for_ever() {
        #[derive(Default, PartialEq)]
        enum Reader {
            #[default]
            Coming,
            Waiting,
            Excused,
        }
        let shared = Arc::new((Data::default(), Mutex::<Reader>::default(), Condvar::new()));
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            let (data, lock, changed) = &*other;
            let mut reader = lock.lock().unwrap();
            if *reader == Reader::Coming {
                *reader = Reader::Waiting;
                drop(changed.wait(reader).unwrap());
                data.read();
            }
        });
        let (data, lock, changed) = &*shared;
        let mut reader = lock.lock().unwrap();
        let waits = *reader == Reader::Waiting;
        if !waits {
            *reader = Reader::Excused;
        }
        drop(reader);
        if waits {
            data.write(7);
            changed.notify_all();
        }
        other.join().unwrap();
    }
    for program in [waits_for_a_while, waits_for_ever] {
        assert_race(program);
        assert_race_without_std_arcs(program);
    }
}

#[test]
fn what_is_done_once_comes_before_who_finds_it_done() {
    assert!(passes::<Done>(
        |once| once.0.call_once(|| ()),
        |once| once.0.is_completed(),
    ));
    struct Done(Once);
    impl Default for Done {
        fn default() -> Self {
            Self(Once::new())
        }
    }
}

#[test]
fn who_passes_a_barrier_comes_after_all_who_came_there() {
    struct Two(Barrier);
    impl Default for Two {
        fn default() -> Self {
            Self(Barrier::new(2))
        }
    }
    assert!(passes::<Two>(
        |barrier| {
            barrier.0.wait();
        },
        |barrier| {
            barrier.0.wait();
            true
        },
    ));
}

#[test]
fn channels_order_the_sender_before_the_receiver() {
    let program = |room: Option<usize>| {
        races(move || {
            let data = Arc::new(Data::default());
            let writer = Arc::clone(&data);
            let received = match room {
                None => {
                    let (sender, receiver) = mpsc::channel();
                    let writer = thread::spawn(move || {
                        writer.write(1);
                        sender.send(()).unwrap();
                    });
                    (receiver, writer)
                }
                Some(room) => {
                    let (sender, receiver) = mpsc::sync_channel(room);
                    let writer = thread::spawn(move || {
                        writer.write(1);
                        sender.send(()).unwrap();
                    });
                    (receiver, writer)
                }
            };
            let (receiver, writer) = received;
            receiver.recv().unwrap();
            data.read();
            writer.join().unwrap();
        })
    };
    for room in [None, Some(0), Some(1)] {
        assert!(!program(room), "{room:?}");
    }
}

#[test]
fn a_channel_that_is_closed_orders_who_closed_it() {
    assert!(!races(|| {
        let data = Arc::new(Data::default());
        let writer = Arc::clone(&data);
        let (sender, receiver) = mpsc::channel::<()>();
        let writer = thread::spawn(move || {
            writer.write(1);
            drop(sender);
        });
        assert!(receiver.recv().is_err());
        data.read();
        writer.join().unwrap();
    }));
}

#[test]
fn a_full_channel_orders_the_receiver_before_the_next_sender() {
    assert!(!races(|| {
        let data = Arc::new(Data::default());
        let reader = Arc::clone(&data);
        let (sender, receiver) = mpsc::sync_channel(1);
        let reader = thread::spawn(move || {
            reader.read();
            receiver.recv().unwrap();
            receiver.recv().unwrap();
        });
        sender.send(()).unwrap();
        sender.send(()).unwrap();
        data.write(1);
        reader.join().unwrap();
    }));
}

#[test]
fn threads_are_ordered_by_spawn_join_and_unpark() {
    assert!(!races(|| {
        let data = Arc::new(Data::default());
        data.write(1);
        let (parked, main) = (Arc::clone(&data), thread::current());
        let other = thread::spawn(move || {
            parked.write(2);
            main.unpark();
            thread::park();
            parked.write(3);
        });
        thread::park();
        data.write(4);
        other.thread().unpark();
        other.join().unwrap();
        data.write(5);
    }));
}

#[test]
fn that_a_thread_has_ended_says_nothing_before_it_is_joined() {
    let program = |joins: bool| {
        races(move || {
            let data = Arc::new(Data::default());
            let writer = Arc::clone(&data);
            let writer = thread::spawn(move || writer.write(1));
            let mut writer = Some(writer);
            if writer.as_ref().unwrap().is_finished() {
                if joins {
                    writer.take().unwrap().join().unwrap();
                }
                data.read();
            }
            if let Some(writer) = writer {
                writer.join().unwrap();
            }
        })
    };
    assert!(!program(true));
    assert!(program(false));
}

#[test]
fn threads_of_a_scope_come_before_its_end() {
    assert!(!races(|| {
        let data = Data::default();
        thread::scope(|scope| {
            scope.spawn(|| data.write(1));
        });
        data.read();
    }));
}
