//! How things that threads share are known again in each execution.

use std::fmt::{self, Debug};
use std::panic::Location;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::model::Model;
use super::operation::ObjectId;
use super::runtime::statics;
use super::world::World;

/// A place in an object by which each execution knows it again.
pub(crate) struct Handle {
    /// The number of the execution that uses it, and that of the object there.
    key: AtomicU64,
    /// Where it was made.
    made: &'static Location<'static>,
}

/// Nobody has used it. The number is one that nothing else is likely to have left in memory: a static that the program was
/// loaded with has it in the program's file.
const FRESH: u64 = 0xffff_fff1_d7a6_ce75;
const OUTSIDE: u64 = u64::MAX;

/// How many bits of a key are the number of an object.
const OBJECT_BITS: u32 = 24;

/// In tests so few that a program can have more.
const MOST_OBJECTS: u64 = if cfg!(test) {
    1 << 10
} else {
    1 << OBJECT_BITS
};

/// The number of the execution that is under way, which no other has, for all to see.
pub(super) struct Serial(Arc<UnderWay>);

#[derive(Default)]
struct UnderWay {
    serial: AtomicU64,
    /// What a thread that the check does not know has been told when it came to something in the execution.
    disturbed: Mutex<Option<String>>,
}

impl Serial {
    const NONE: u64 = 0;

    fn registered() -> MutexGuard<'static, Vec<Weak<UnderWay>>> {
        static ALL: Mutex<Vec<Weak<UnderWay>>> = Mutex::new(Vec::new());
        ALL.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For executions of which none is under way yet.
    pub(super) fn register() -> Self {
        let serial = Arc::<UnderWay>::default();
        let mut registered = Self::registered();
        registered.retain(|other| other.strong_count() > 0);
        registered.push(Arc::downgrade(&serial));
        Self(serial)
    }

    pub(super) fn begin(&self) {
        static NEXT: AtomicU64 = AtomicU64::new(Serial::NONE + 1);
        self.0.serial.store(NEXT.fetch_add(1, Relaxed), Relaxed);
    }

    pub(super) fn end(&self) {
        self.0.serial.store(Self::NONE, Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.serial.load(Relaxed)
    }

    /// What a thread that the check does not know has been told in the execution, if one has come to it.
    pub(super) fn take_disturbance(&self) -> Option<String> {
        self.0.disturbed().take()
    }
}

impl UnderWay {
    fn disturbed(&self) -> MutexGuard<'_, Option<String>> {
        self.disturbed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn serial_of(key: u64) -> u64 {
    key >> OBJECT_BITS
}

impl Handle {
    #[track_caller]
    pub(crate) const fn new() -> Self {
        Self {
            key: AtomicU64::new(FRESH),
            made: Location::caller(),
        }
    }

    /// Where it was made.
    pub(super) fn made(&self) -> &'static Location<'static> {
        self.made
    }

    /// Takes note of a use outside of any execution.
    #[inline]
    pub(crate) fn used_outside(&self) {
        match self.key.load(Relaxed) {
            OUTSIDE => {}
            FRESH => self.key.store(OUTSIDE, Relaxed),
            key => self.refuse_beside(serial_of(key)),
        }
    }

    /// Panics if an execution is under way, which has this and knows nothing of who uses it.
    #[cold]
    fn refuse_beside(&self, serial: u64) {
        let under_way = Serial::registered()
            .iter()
            .filter_map(Weak::upgrade)
            .find(|other| other.serial.load(Relaxed) == serial);
        if let Some(under_way) = under_way {
            let why = format!(
                "what was made at {} belongs to an execution, and a thread that the check does not know comes to it: start threads with dragnet::thread",
                self.made
            );
            // Nobody may ever look at what becomes of that thread.
            under_way.disturbed().get_or_insert(why.clone());
            panic!("{why}");
        }
    }
}

impl Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "made at {}", self.made)
    }
}

impl World {
    /// The object behind a handle, which is `model` at first.
    #[inline]
    pub(super) fn object(&self, handle: &Handle, model: impl FnOnce() -> Model) -> ObjectId {
        let key = handle.key.load(Relaxed);
        match serial_of(key) == self.serial() {
            true => ObjectId((key & ((1 << OBJECT_BITS) - 1)) as u32),
            false => self.new_object(handle, key, model),
        }
    }

    /// Takes note of the counts of a value that is made. Elsewhere an object is noted when it is first used: that is
    /// enough unless a value that nothing is done with can leak.
    pub(super) fn note_counts(&self, handle: &Handle, model: impl FnOnce() -> Model) {
        if self.setting.reports_leaks && !self.is_over() {
            self.object(handle, model);
        }
    }

    fn new_object(&self, handle: &Handle, key: u64, model: impl FnOnce() -> Model) -> ObjectId {
        let place = ptr::from_ref(handle) as usize;
        if statics::holds(place) {
            return self.object_of_static(handle, key, model);
        }
        if key == OUTSIDE {
            self.refuse(format!(
                "what was made at {} was used outside of the execution, by a thread of std or before the check: make it inside, and start threads with dragnet::thread",
                handle.made
            ));
        }
        if key != FRESH {
            self.refuse_older(handle.made);
        }
        let mut state = self.state().borrow_mut();
        let object = state.add_object(model(), Some(handle.made));
        drop(state);
        let number = u64::from(object.0);
        if number >= MOST_OBJECTS {
            self.exceed(format!(
                "an execution has more than {MOST_OBJECTS} locks, channels and other objects that threads share; the next \
                 was made at {}",
                handle.made
            ));
        }
        handle
            .key
            .store(self.serial() << OBJECT_BITS | number, Relaxed);
        object
    }

    fn object_of_static(
        &self,
        handle: &Handle,
        key: u64,
        model: impl FnOnce() -> Model,
    ) -> ObjectId {
        let place = ptr::from_ref(handle) as usize;
        let made = handle.made;
        if key == OUTSIDE {
            self.refuse(format!(
                "the static made at {made} was used before the check; use it only inside"
            ));
        }
        if !statics::was_loaded_with(ptr::from_ref(&handle.key) as usize, FRESH) {
            self.refuse(format!(
                "the static made at {made} was made at run time, and would go on into the next execution: use dragnet::sync::LazyLock or OnceLock for it"
            ));
        }
        let state = &mut *self.state().borrow_mut();
        let owned = (state.thread(self.running()).process, place);
        let known = state.statics.get(&owned).and_then(|known| known.object);
        known.unwrap_or_else(|| {
            let object = state.add_object(model(), Some(made));
            state.statics.entry(owned).or_default().object = Some(object);
            object
        })
    }

    /// Where the data of an object is: in its place, or for a static in a copy that belongs to the execution.
    #[inline]
    pub(crate) fn place<T: ?Sized>(&self, handle: &Handle, data: *mut T) -> *mut T {
        match serial_of(handle.key.load(Relaxed)) == self.serial() {
            true => data,
            false => self.place_in_copy(handle, data),
        }
    }

    fn place_in_copy<T: ?Sized>(&self, handle: &Handle, data: *mut T) -> *mut T {
        let place = ptr::from_ref(handle) as usize;
        if !statics::holds(place) {
            return data;
        }
        let mut state = self.state().borrow_mut();
        let owner = state.thread(self.running()).process;
        let known = state.statics.entry((owner, place)).or_default();
        let copy = known.copy.get_or_insert_with(|| statics::Copy::of(data));
        copy.place(data)
    }
}

#[cfg(test)]
mod tests {
    use super::MOST_OBJECTS;
    use crate::sync::Mutex;
    use crate::{Check, Outcome, Threads};

    #[test]
    fn an_execution_with_too_many_objects_is_not_judged() {
        let outcome = |objects| {
            let main = move || {
                for _ in 0..objects {
                    *Mutex::new(0).lock().unwrap() += 1;
                }
            };
            Check::new(Threads::new(main)).run().outcome
        };
        assert_eq!(outcome(MOST_OBJECTS / 2), Outcome::Holds);
        let why = match outcome(MOST_OBJECTS) {
            Outcome::Inconclusive(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(
            why.starts_with("an execution has more than 1024 locks"),
            "{why}"
        );
    }
}
