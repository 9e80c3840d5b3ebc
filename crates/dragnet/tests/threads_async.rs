use dragnet::future::*;
use dragnet::{Check, Reduction, Threads};
use std::time::Duration;
const S: Duration = Duration::from_secs(1);

fn count(name: &str, program: fn()) {
    for r in Reduction::ALL {
        let v = Check::new(Threads::new(program)).reduction(r).run();
        println!("{name} {r}: {:?} {:?} {:?}", v.outcome, v.within, v.statistics.schedules.map(|s| (s.executions, s.blocked_executions)));
        if v.violation().is_some() { println!("{v}"); }
    }
}

#[test]
fn explore() {
    count("join", || { block_on(async { assert_eq!(spawn(async { 1 }).await.unwrap(), 1) }) });
    count("oneshot", || { block_on(async {
        let (s, r) = oneshot::channel();
        spawn(async move { s.send(1) });
        assert_eq!(r.await, Ok(1));
    }) });
    count("channel", || { block_on(async {
        let (s, mut r) = channel();
        let t = s.clone();
        spawn(async move { t.send(1).await });
        spawn(async move { s.send(2).await });
        let mut sum = 0;
        while let Ok(n) = r.recv().await { sum += n }
        assert_eq!(sum, 3);
    }) });
    count("timeout", || { block_on(async {
        let (s, r) = oneshot::channel();
        spawn(async move { s.send(1) });
        let _ = timeout(S, r).await;
    }) });
    count("loop", || { block_on(async {
        let (s, mut r) = channel();
        spawn(async move { s.send(1).await });
        loop {
        if timeout(S, r.recv()).await == Ok(Ok(1)) {break;}
        }
    }) });
    count("sleep", || { block_on(async {
        let t = spawn(async move { sleep(S).await });
        sleep(S).await;
        t.await.unwrap();
    }) });
    count("abort", || { block_on(async {
        let t = spawn(async move { yield_now().await });
        t.abort();
        let _ = t.await;
    }) });
}
