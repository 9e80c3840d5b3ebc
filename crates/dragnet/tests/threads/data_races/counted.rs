//! What the reference counts of [`dragnet::arc`] order, and what they do not.

use dragnet::arc;

use super::*;

/// Reads data when it is dropped.
struct Reads(Arc<Data>);

impl Drop for Reads {
    fn drop(&mut self) {
        self.0.read();
    }
}

#[test]
fn the_drop_of_a_weak_reference_does_not_come_before_the_last_drop() {
    fn in_any_order() {
        let data = Arc::new(Data::default());
        let shared = arc::Arc::new(Reads(Arc::clone(&data)));
        let weak = arc::Arc::downgrade(&shared);
        let other = arc::Arc::clone(&shared);
        let other = thread::spawn(move || drop(other));
        drop(shared);
        data.write(1);
        drop(weak);
        other.join().unwrap();
    }
    fn behind_it() {
        let data = Arc::new(Data::default());
        let shared = arc::Arc::new(Reads(Arc::clone(&data)));
        let weak = arc::Arc::downgrade(&shared);
        let gone = Arc::new(AtomicU32::new(0));
        let tell = Arc::clone(&gone);
        let other = thread::spawn(move || {
            data.write(1);
            drop(weak);
            tell.store(1, Relaxed);
        });
        match gone.load(Relaxed) {
            1 => drop(shared),
            _ => std::mem::forget(shared),
        }
        other.join().unwrap();
    }
    assert_race_without_std_arcs(in_any_order);
    assert_race_without_std_arcs(behind_it);
}

/// One thread writes and drops its weak reference, the other `sees` to whatever it knows the value by, and reads.
fn reads_behind_weak_drop(sees: fn(&mut arc::Arc<u32>) -> bool) {
    let data = Arc::new(Data::default());
    let mut shared = arc::Arc::new(1);
    let weak = arc::Arc::downgrade(&shared);
    let gone = Arc::new(AtomicU32::new(0));
    let (written, tell) = (Arc::clone(&data), Arc::clone(&gone));
    let other = thread::spawn(move || {
        written.write(1);
        drop(weak);
        tell.store(1, Relaxed);
    });
    if gone.load(Relaxed) == 1 && sees(&mut shared) {
        data.read();
    }
    other.join().unwrap();
}

#[test]
fn only_who_finds_no_weak_reference_comes_after_their_drops() {
    fn upgrades() {
        reads_behind_weak_drop(|shared| arc::Arc::downgrade(shared).upgrade().is_some());
    }
    fn takes_it_out() {
        reads_behind_weak_drop(|shared| {
            let shared = std::mem::replace(shared, arc::Arc::new(0));
            arc::Arc::try_unwrap(shared).is_ok()
        });
    }
    fn makes_it_its_own() {
        reads_behind_weak_drop(|shared| *arc::Arc::make_mut(shared) == 1);
    }
    fn has_it_alone() {
        reads_behind_weak_drop(|shared| arc::Arc::get_mut(shared).is_some());
    }
    assert_race_without_std_arcs(upgrades);
    assert_race_without_std_arcs(takes_it_out);
    assert_race_without_std_arcs(makes_it_its_own);
    assert_no_race_without_std_arcs(has_it_alone);
}

#[test]
fn who_may_have_dropped_an_owner_before_the_others_comes_after_nobody() {
    fn spawned() {
        let data = Arc::new(Data::default());
        let shared = arc::Arc::new(());
        let (other, written) = (arc::Arc::clone(&shared), Arc::clone(&data));
        let other = thread::spawn(move || {
            drop(other);
            written.write(1);
        });
        data.read();
        drop(shared);
        other.join().unwrap();
    }
    fn main() {
        let data = Arc::new(Data::default());
        let shared = arc::Arc::new(());
        let (other, read) = (arc::Arc::clone(&shared), Arc::clone(&data));
        let other = thread::spawn(move || {
            read.read();
            drop(other);
        });
        drop(shared);
        data.write(1);
        other.join().unwrap();
    }
    assert_race_without_std_arcs(spawned);
    assert_race_without_std_arcs(main);
}

#[test]
fn who_can_only_have_dropped_the_last_owner_comes_after_all_others() {
    fn program() {
        let data = Arc::new(Data::default());
        let shared = arc::Arc::new(());
        let gone = Arc::new(AtomicU32::new(0));
        let other = arc::Arc::clone(&shared);
        let (written, tell) = (Arc::clone(&data), Arc::clone(&gone));
        let other = thread::spawn(move || {
            written.write(1);
            drop(other);
            tell.store(1, Relaxed);
        });
        let is_last = gone.load(Relaxed) == 1;
        drop(shared);
        if is_last {
            data.read();
        }
        other.join().unwrap();
    }
    assert_no_race_without_std_arcs(program);
}
