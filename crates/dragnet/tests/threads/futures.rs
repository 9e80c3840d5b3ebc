//! Programs with asynchronous tasks, and what a check says of them.

use std::collections::BTreeSet;
use std::future::{pending, poll_fn};
use std::sync::Mutex as RealMutex;
use std::task::{Poll, Waker};

use dragnet::engine::{Dpor, EngineName, Reduction};
use dragnet::future::{
    Either, Elapsed, TrySendError, block_on, bounded, channel, join, join_all, oneshot, select,
    select_all, sleep, spawn, timeout, yield_now,
};
use dragnet::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use dragnet::sync::{Arc, Mutex};
use dragnet::time::{Duration, Instant};
use dragnet::verdict::ViolationKind;
use dragnet::{Check, Outcome, Threads, Verdict, thread};

const SECOND: Duration = Duration::from_secs(1);

/// What a check says of a program that is one task at first.
fn checked<F: Future<Output = ()>>(program: impl Fn() -> F + Send + Sync + 'static) -> Verdict {
    Check::new(Threads::new(move || block_on(program()))).run()
}

/// How many executions a program has that is right.
fn executions(verdict: &Verdict) -> u64 {
    verdict.assert_holds();
    let work = verdict.statistics.schedules.as_ref();
    work.expect("schedules were explored").executions
}

/// Everything that a program comes to in some execution.
fn outcomes<T, F>(program: impl Fn() -> F + Send + Sync + 'static) -> BTreeSet<T>
where
    T: Ord + Send + 'static,
    F: Future<Output = T>,
{
    let seen = std::sync::Arc::new(RealMutex::new(BTreeSet::new()));
    let all = std::sync::Arc::clone(&seen);
    let verdict = checked(move || {
        let (outcome, all) = (program(), std::sync::Arc::clone(&all));
        async move {
            let outcome = outcome.await;
            all.lock().unwrap().insert(outcome);
        }
    });
    verdict.assert_holds();
    std::mem::take(&mut *seen.lock().unwrap())
}

fn deadlock(verdict: &Verdict) -> String {
    let violation = verdict.violation().expect("somebody waits for ever");
    assert!(
        matches!(violation.kind, ViolationKind::Deadlock(_)),
        "{violation:?}"
    );
    violation.describe()
}

#[test]
fn messages_of_several_tasks_all_come_and_in_every_order() {
    let orders = outcomes(|| async {
        let (sender, mut receiver) = channel();
        for number in [1, 2] {
            let sender = sender.clone();
            spawn(async move { sender.send(number).await.unwrap() });
        }
        drop(sender);
        let mut received = Vec::new();
        while let Ok(number) = receiver.recv().await {
            received.push(number);
        }
        received
    });
    assert_eq!(orders, BTreeSet::from([vec![1, 2], vec![2, 1]]));
}

#[test]
fn an_update_that_is_lost_between_two_awaits_is_found_by_every_reduction_and_engine() {
    async fn add_one(count: Arc<AtomicU32>) {
        let seen = count.load(SeqCst);
        yield_now().await;
        count.store(seen + 1, SeqCst);
    }
    let check = || {
        Check::new(Threads::new(|| {
            block_on(async {
                let count = Arc::new(AtomicU32::new(0));
                let other = spawn(add_one(Arc::clone(&count)));
                add_one(Arc::clone(&count)).await;
                other.await.unwrap();
                assert_eq!(count.load(SeqCst), 2, "an update is lost");
            });
        }))
    };
    for reduction in Reduction::ALL {
        let verdict = check().engine(Dpor::new().reduction(reduction)).run();
        let described = verdict.violation().expect("it can be lost").describe();
        assert!(described.contains("an update is lost"), "{described}");
    }
    for engine in [EngineName::Breadth, EngineName::Random] {
        let verdict = check().engine(engine).run();
        assert!(verdict.violation().is_some(), "{engine}: {verdict}");
    }
}

#[test]
fn whoever_awaits_a_task_looks_before_or_after_its_end() {
    // The handle's lock is taken by who awaits and by who ends: either may come first.
    let check = || {
        Check::new(Threads::new(|| {
            let one = block_on(spawn(async { 1 }));
            assert_eq!(one.unwrap(), 1);
        }))
    };
    for reduction in [Reduction::Sleep, Reduction::Source, Reduction::Optimal] {
        let verdict = check().engine(Dpor::new().reduction(reduction)).run();
        assert_eq!(executions(&verdict), 2, "{reduction}");
    }
    assert!(executions(&check().engine(Dpor::new().reduction(Reduction::None)).run()) > 2);
}

#[test]
fn tasks_that_share_nothing_have_the_executions_of_their_ends_only() {
    // Each of two handles is looked at before or after the end of its task.
    let verdict = checked(|| async {
        let tasks = [spawn(async { 1 }), spawn(async { 2 })];
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(executions(&verdict), 4);
}

#[test]
fn a_message_in_a_while_comes_in_time_or_does_not_in_five_ways() {
    // The message is there at the first look. Or it comes while the receiver waits, who is woken by it. Or the time is over
    // first, and the message is there all the same at the second look; or has been put there, and the receiver has just
    // not heard of it; or comes when the receiver is gone.
    let program = || {
        block_on(async {
            let (sender, receiver) = oneshot::channel();
            spawn(async move { sender.send(1) });
            let received = timeout(SECOND, receiver).await;
            assert!(received == Ok(Ok(1)) || received == Err(Elapsed));
        });
    };
    for reduction in [Reduction::Sleep, Reduction::Source, Reduction::Optimal] {
        let verdict = Check::new(Threads::new(program))
            .engine(Dpor::new().reduction(reduction))
            .run();
        assert_eq!(executions(&verdict), 5, "{reduction}");
    }
}

#[test]
fn a_task_is_aborted_before_it_begins_where_it_waits_or_not_at_all() {
    // It looks whether it is to stop before each of its two polls: three places for the order to come. In each, its end is
    // awaited before or after it has come.
    let verdict = checked(|| async {
        let task = spawn(yield_now());
        task.abort();
        let _either = task.await;
    });
    assert_eq!(executions(&verdict), 6);
    let ends = outcomes(|| async {
        let polled = Arc::new(AtomicU32::new(0));
        let counts = Arc::clone(&polled);
        let task = spawn(async move {
            counts.fetch_add(1, SeqCst);
            yield_now().await;
            counts.fetch_add(1, SeqCst);
        });
        task.abort();
        let is_aborted = task.await.is_err_and(|error| error.is_aborted());
        (is_aborted, polled.load(SeqCst))
    });
    assert_eq!(ends, BTreeSet::from([(true, 0), (true, 1), (false, 2)]));
}

#[test]
fn what_an_aborted_task_owns_is_dropped_before_anybody_hears_of_its_end() {
    let verdict = checked(|| async {
        let (sender, mut receiver) = channel::<u32>();
        let task = spawn(async move {
            let _sender = sender;
            pending::<()>().await;
        });
        task.abort();
        assert!(task.await.unwrap_err().is_aborted());
        assert!(receiver.try_recv().is_err());
        assert!(receiver.recv().await.is_err());
    });
    verdict.assert_holds();
}

/// Says when it is done, to whoever has asked by then.
struct Flag {
    done: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Flag {
    fn raise(&self) {
        self.done.store(true, SeqCst);
        if let Some(waker) = self.waker.lock().unwrap().take() {
            waker.wake();
        }
    }

    /// Waits for it. Who does not look again after it has left its waker misses what comes in between.
    async fn wait(&self, looks_again: bool) {
        poll_fn(|context| {
            if self.done.load(SeqCst) {
                return Poll::Ready(());
            }
            *self.waker.lock().unwrap() = Some(context.waker().clone());
            match looks_again && self.done.load(SeqCst) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}

#[test]
fn a_wake_up_that_a_future_by_hand_loses_is_a_deadlock() {
    let waits = |looks_again: bool| {
        Check::new(Threads::new(move || {
            let flag = Arc::new(Flag {
                done: AtomicBool::new(false),
                waker: Mutex::new(None),
            });
            let other = Arc::clone(&flag);
            spawn(async move { other.raise() });
            block_on(flag.wait(looks_again));
        }))
    };
    for reduction in Reduction::ALL {
        waits(true)
            .engine(Dpor::new().reduction(reduction))
            .run()
            .assert_holds();
        let described = deadlock(&waits(false).engine(Dpor::new().reduction(reduction)).run());
        assert!(described.contains("somebody to unpark it"), "{described}");
    }
}

#[test]
fn a_deadlock_of_tasks_says_where_they_await() {
    let line = line!() + 5;
    let verdict = checked(|| async {
        let (mine, theirs) = (channel::<u32>(), oneshot::channel::<u32>());
        let (sender, mut receiver) = mine;
        let task = spawn(async move {
            let _never = theirs.1.await;
            sender.send(1).await.unwrap();
        });
        let _never = select(receiver.recv(), pending::<()>()).await;
        theirs.0.send(1).unwrap();
        task.await.unwrap();
    });
    let described = deadlock(&verdict);
    for line in [line, line + 3] {
        let place = format!("futures.rs:{line}:");
        assert!(described.contains(&place), "{place}: {described}");
    }
}

#[test]
fn a_task_that_nobody_awaits_and_that_waits_for_ever_is_left_behind() {
    let verdict = checked(|| async {
        spawn(pending::<()>());
    });
    let described = deadlock(&verdict);
    assert!(described.contains("left behind by main"), "{described}");
}

#[test]
fn either_of_two_may_be_first() {
    let first = || async {
        let (left, right) = (oneshot::channel(), oneshot::channel());
        spawn(async move { left.0.send(()) });
        spawn(async move { right.0.send(()) });
        match select(left.1, right.1).await {
            Either::Left(came) => came.map(|()| "left"),
            Either::Right(came) => came.map(|()| "right"),
        }
        .unwrap()
    };
    assert_eq!(outcomes(first), BTreeSet::from(["left", "right"]));
}

#[test]
fn any_of_several_may_be_first() {
    let first = || async {
        let tasks = [1, 2, 3].map(|number| spawn(async move { number }));
        let (first, which) = select_all(tasks).await;
        assert_eq!(first.unwrap(), which + 1);
        which
    };
    assert_eq!(outcomes(first), BTreeSet::from([0, 1, 2]));
}

#[test]
fn whoever_loses_a_selection_can_be_awaited_later() {
    let verdict = checked(|| async {
        let mut task = spawn(async { 7 });
        match select(yield_now(), &mut task).await {
            Either::Left(()) => assert_eq!(task.await.unwrap(), 7),
            Either::Right(seven) => assert_eq!(seven.unwrap(), 7),
        }
    });
    verdict.assert_holds();
}

#[test]
fn a_timeout_ends_either_way_and_time_passes_only_when_it_is_over() {
    let ends = outcomes(|| async {
        let began = Instant::now();
        let (sender, mut receiver) = channel();
        let task = spawn(async move { sender.send(1).await });
        let received = timeout(SECOND, receiver.recv()).await;
        let passed = began.elapsed();
        // A message that comes too late is not lost.
        let late = match received {
            Ok(_) => None,
            Err(Elapsed) => Some(receiver.recv().await.unwrap()),
        };
        task.await.unwrap().unwrap();
        (received == Ok(Ok(1)), late, passed)
    });
    assert!(ends.contains(&(true, None, Duration::ZERO)), "{ends:?}");
    assert!(ends.contains(&(false, Some(1), SECOND)), "{ends:?}");
}

#[test]
fn what_sleeps_less_long_in_one_task_is_over_first() {
    let verdict = checked(|| async {
        let began = Instant::now();
        let both = select(sleep(2 * SECOND), sleep(SECOND)).await;
        assert_eq!(both, Either::Right(()));
        assert_eq!(began.elapsed(), SECOND);
        join(sleep(SECOND), sleep(2 * SECOND)).await;
        assert_eq!(began.elapsed(), 3 * SECOND);
    });
    assert_eq!(executions(&verdict), 1);
}

#[test]
fn whoever_sleeps_past_the_end_of_time_waits_for_ever() {
    checked(|| sleep(Duration::MAX)).assert_holds();
    let verdict = checked(|| async {
        sleep(SECOND).await;
        sleep(Duration::MAX).await;
    });
    deadlock(&verdict);
}

#[test]
fn a_task_that_asks_again_and_again_has_an_end_of_schedules() {
    let check = || {
        Check::new(Threads::new(|| {
            block_on(async {
                let (sender, mut receiver) = channel();
                spawn(async move { sender.send(1).await });
                while timeout(SECOND, receiver.recv()).await.is_err() {}
            });
        }))
    };
    let all: BTreeSet<u64> = [Reduction::Sleep, Reduction::Source, Reduction::Optimal]
        .into_iter()
        .map(|reduction| {
            let verdict = check().engine(Dpor::new().reduction(reduction)).run();
            executions(&verdict)
        })
        .collect();
    assert_eq!(all.len(), 1, "every reduction runs the same classes");
}

#[test]
fn a_task_that_lets_others_go_first_until_another_is_done_has_an_end_of_schedules() {
    let verdict = checked(|| async {
        let task = spawn(async { 1 });
        while !task.is_finished() {
            yield_now().await;
        }
        assert_eq!(task.await.unwrap(), 1);
    });
    verdict.assert_holds();
}

#[test]
fn who_sends_more_than_there_is_room_for_waits() {
    let verdict = checked(|| async {
        let (sender, mut receiver) = bounded(1);
        let sent = Arc::new(AtomicU32::new(0));
        let counts = Arc::clone(&sent);
        spawn(async move {
            for number in 0..3 {
                sender.send(number).await.unwrap();
                counts.fetch_add(1, SeqCst);
            }
        });
        for number in 0..3 {
            assert!(
                sent.load(SeqCst) <= number + 1,
                "one is received, one waits"
            );
            assert_eq!(receiver.recv().await, Ok(number));
        }
        assert!(receiver.recv().await.is_err());
    });
    verdict.assert_holds();
}

#[test]
fn room_that_one_sender_does_not_want_any_more_goes_to_the_next() {
    let received = outcomes(|| async {
        let (sender, mut receiver) = bounded(1);
        sender.try_send(0).unwrap();
        assert_eq!(sender.try_send(0), Err(TrySendError::Full(0)));
        let hasty = sender.clone();
        spawn(async move {
            let _either = timeout(SECOND, hasty.send(1)).await;
        });
        spawn(async move { sender.send(2).await.unwrap() });
        let mut received = Vec::new();
        while let Ok(number) = receiver.recv().await {
            received.push(number);
        }
        received
    });
    let all = [vec![0, 1, 2], vec![0, 2, 1], vec![0, 2]];
    assert_eq!(received, BTreeSet::from(all));
}

#[test]
fn who_waits_for_room_hears_when_the_receiver_goes() {
    let verdict = checked(|| async {
        let (sender, receiver) = bounded(1);
        sender.try_send(0).unwrap();
        let task = spawn(async move { sender.send(1).await });
        drop(receiver);
        assert!(task.await.unwrap().is_err());
    });
    verdict.assert_holds();
}

#[test]
fn whoever_waits_for_one_message_hears_when_the_sender_goes() {
    let verdict = checked(|| async {
        let (sender, receiver) = oneshot::channel::<u32>();
        spawn(async move { drop(sender) });
        assert!(receiver.await.is_err());
    });
    assert_eq!(executions(&verdict), 2);
}

#[test]
fn all_of_several_are_awaited_in_their_order() {
    let verdict = checked(|| async {
        let squares = join_all([2, 3].map(|number| spawn(async move { number * number }))).await;
        let squares: Vec<i32> = squares.into_iter().map(Result::unwrap).collect();
        assert_eq!(squares, [4, 9]);
        let (left, right, more) = join!(spawn(async { 1 }), async { 2 }, yield_now());
        assert_eq!((left.unwrap(), right, more), (1, 2, ()));
    });
    verdict.assert_holds();
}

#[test]
fn who_awaits_a_task_that_panics_learns_of_it_where_panics_are_fine() {
    let program = || {
        block_on(async {
            let error = spawn(async { panic!("on purpose") }).await;
            let error = error.map(|()| "it went on").unwrap_err();
            assert!(error.is_panic());
            let payload = error.into_panic().unwrap();
            assert_eq!(payload.downcast_ref(), Some(&"on purpose"));
        });
    };
    let verdict = Check::new(Threads::new(program)).run();
    let described = verdict.violation().expect("a task panics").describe();
    assert!(described.contains("on purpose"), "{described}");
    let fine = Check::new(Threads::new(program).panics_are_fine()).run();
    fine.assert_holds();
}

#[test]
fn a_waker_wakes_from_any_thread_and_also_too_late() {
    let verdict = checked(|| async {
        let mut waker = None;
        let mut threads = Vec::new();
        poll_fn(|context| match waker.replace(context.waker().clone()) {
            None => {
                let (one, other) = (context.waker().clone(), context.waker().clone());
                threads.push(thread::spawn(move || one.wake()));
                threads.push(thread::spawn(move || other.wake_by_ref()));
                Poll::Pending
            }
            Some(_) => Poll::Ready(()),
        })
        .await;
        let task = spawn(async { poll_fn(|context| Poll::Ready(context.waker().clone())).await });
        task.await.unwrap().wake();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    verdict.assert_holds();
}

#[test]
fn a_waker_of_another_execution_is_refused() {
    let kept = RealMutex::new(None::<Waker>);
    let verdict = checked(move || {
        let older = kept.lock().unwrap().take();
        if let Some(older) = older {
            older.wake();
        }
        let other = spawn(async {});
        let waker = block_on(poll_fn(|context| Poll::Ready(context.waker().clone())));
        *kept.lock().unwrap() = Some(waker);
        async move { other.await.unwrap() }
    });
    let Outcome::Inconclusive(why) = &verdict.outcome else {
        panic!("{verdict}");
    };
    assert!(why.contains("a thread of another execution"), "{why}");
}

#[test]
fn a_channel_that_outlives_an_execution_is_refused() {
    let (sender, _receiver) = channel();
    let sender = std::sync::Arc::new(sender);
    let verdict = checked(move || {
        let sender = std::sync::Arc::clone(&sender);
        async move {
            spawn(async {}).await.unwrap();
            sender.send(1).await.unwrap();
        }
    });
    let Outcome::Inconclusive(why) = &verdict.outcome else {
        panic!("{verdict}");
    };
    assert!(why.contains("is older than the execution"), "{why}");
}

#[test]
fn futures_inside_of_futures_block_without_taking_wake_ups() {
    let verdict = checked(|| async {
        let (sender, receiver) = oneshot::channel();
        spawn(async move { sender.send(1).unwrap() });
        let inner = async {
            // Blocks the task; the message may come meanwhile.
            block_on(spawn(async {})).unwrap();
        };
        let (received, ()) = join(receiver, inner).await;
        assert_eq!(received, Ok(1));
    });
    verdict.assert_holds();
}

#[test]
fn every_reduction_runs_the_same_classes() {
    let programs: [(&str, fn()); 4] = [
        ("two senders and one place", || {
            block_on(async {
                let (sender, mut receiver) = bounded(1);
                let hasty = sender.clone();
                spawn(async move {
                    let _either = timeout(SECOND, hasty.send(1)).await;
                });
                spawn(async move { sender.send(2).await.unwrap() });
                while receiver.recv().await.is_ok() {}
            });
        }),
        ("a task that is aborted while it selects", || {
            block_on(async {
                let (sender, mut receiver) = channel();
                let task = spawn(async move {
                    let _either = select(receiver.recv(), sleep(SECOND)).await;
                    let _next = receiver.recv().await;
                });
                let other = spawn(async move {
                    for number in 0..2 {
                        let _either = sender.send(number).await;
                        sleep(SECOND).await;
                    }
                });
                task.abort();
                let _either = task.await;
                other.await.unwrap();
            });
        }),
        ("three tasks and one value", || {
            block_on(async {
                let value = Arc::new(AtomicU32::new(0));
                join_all([(); 3].map(|()| {
                    let value = Arc::clone(&value);
                    spawn(async move { value.fetch_add(1, SeqCst) })
                }))
                .await;
            });
        }),
        ("two tasks that ask again and again", || {
            block_on(async {
                let (there, mut asked) = channel();
                let (back, mut answered) = channel();
                let task = spawn(async move {
                    while timeout(SECOND, asked.recv()).await.is_err() {}
                    back.send(1).await.unwrap();
                });
                there.send(1).await.unwrap();
                while timeout(SECOND, answered.recv()).await.is_err() {}
                task.await.unwrap();
            });
        }),
    ];
    for (name, program) in programs {
        let run = |reduction| {
            let check = Check::new(Threads::new(program)).engine(Dpor::new().reduction(reduction));
            executions(&check.run())
        };
        let classes = run(Reduction::Sleep);
        assert!(classes > 100, "{name} has {classes}");
        for reduction in [Reduction::Source, Reduction::Optimal] {
            assert_eq!(run(reduction), classes, "{name}, {reduction}");
        }
    }
}

#[test]
fn what_tasks_hold_goes_from_thread_to_thread() {
    fn moves<T: Send + Unpin>(_: &T) {}
    let (sender, mut receiver) = channel::<u32>();
    moves(&sleep(SECOND));
    moves(&yield_now());
    moves(&timeout(SECOND, sender.send(1)));
    moves(&select(receiver.recv(), sleep(SECOND)));
    moves(&join_all([oneshot::channel::<u32>().1]));
    moves(&spawn(async { 1 }));
}

#[test]
fn outside_of_a_check_tasks_run_in_real_time() {
    let began = std::time::Instant::now();
    let moment = Duration::from_millis(20);
    block_on(async {
        let (sender, mut receiver) = bounded(1);
        let task = spawn(async move {
            for number in 0..100 {
                sender.send(number).await.unwrap();
            }
        });
        let mut sum = 0;
        while let Ok(number) = receiver.recv().await {
            sum += number;
        }
        assert_eq!(sum, 4950);
        task.await.unwrap();
        assert_eq!(timeout(moment, pending::<()>()).await, Err(Elapsed));
        let slow = spawn(async move {
            sleep(moment).await;
            1
        });
        assert_eq!(timeout(60 * SECOND, slow).await.unwrap().unwrap(), 1);
    });
    assert!(began.elapsed() >= 2 * moment);
}
