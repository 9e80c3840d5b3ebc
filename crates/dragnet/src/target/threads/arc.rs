//! A reference count that a check sees: [`Arc`] and [`Weak`].
//!
//! `dragnet::sync::Arc` is that of `std`, whose drops no check sees: nothing is looked for because of who drops it last, and
//! a data race that it may prevent is at most a warning. With the types here each clone and drop is an operation. Drops
//! release, and the last one acquires, as in `std`. Drops commute among each other, but for who is the last: that is explored
//! where the destructor comes to an operation or to a [checked cell](crate::cell). Counts that are read are explored as well.
//!
//! What stable Rust keeps for the real one is missing: `self: Arc<Self>`, and the implicit coercion to `Arc<dyn Trait>`, for
//! which there is [`unsize!`](crate::unsize). Without the feature `threads` these are the types of `std`.
//!
//! ```
//! use dragnet::arc::Arc;
//! use dragnet::sync::atomic::{AtomicBool, Ordering::SeqCst};
//! use dragnet::{Check, Threads, thread};
//!
//! /// Only `main` may close it.
//! struct Connection(AtomicBool);
//!
//! impl Drop for Connection {
//!     fn drop(&mut self) {
//!         self.0.store(false, SeqCst);
//!         assert_eq!(thread::current().name(), Some("main"));
//!     }
//! }
//!
//! let verdict = Check::new(Threads::new(|| {
//!     let shared = Arc::new(Connection(AtomicBool::new(true)));
//!     let other = Arc::clone(&shared);
//!     let other = thread::spawn(move || drop(other));
//!     drop(shared);
//!     other.join().unwrap();
//! }))
//! .run();
//! assert!(verdict.violation().is_some());
//! ```

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt::{self, Debug, Display};
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::Location;
use std::sync::{Arc as RealArc, Mutex, PoisonError, Weak as RealWeak};

pub use crate::unsize;

use super::handle::Handle;
use super::model::{MOVED, Model};
use super::operation::{Action, Counted};
use super::world::{self, World};

/// By which executions know the counts again, for all who share them.
#[doc(hidden)]
pub struct Counts {
    handle: Handle,
    /// How many owners the value has at first: none while one that knows of itself is made.
    owners: u32,
    /// Whether dropping the value can do anything.
    destructs: bool,
}

impl Counts {
    #[track_caller]
    fn new<T: ?Sized>(owners: u32) -> RealArc<Self> {
        let counts = RealArc::new(Self {
            handle: Handle::new(),
            owners,
            destructs: std::mem::needs_drop::<T>(),
        });
        if let Some(world) = world::current() {
            world.note_counts(&counts.handle, || counts.model());
        }
        counts
    }

    fn model(&self) -> Model {
        Model::counted(self.owners, self.destructs)
    }

    /// Waits for the turn of an operation on the counts. Nothing where no check looks.
    fn operate(&self, action: Action, at: &'static Location<'static>) -> Option<u32> {
        let Some(world) = world::current() else {
            self.handle.used_outside();
            return None;
        };
        world.operate(&self.handle, || self.model(), action, at)
    }
}

/// A value with several owners, like [`std::sync::Arc`].
pub struct Arc<T: ?Sized> {
    /// Gone only while it is taken apart.
    value: Option<RealArc<T>>,
    counts: RealArc<Counts>,
}

/// Somebody who knows of a value and does not own it, like [`std::sync::Weak`].
pub struct Weak<T: ?Sized> {
    value: RealWeak<T>,
    /// None where there is no value and never was.
    counts: Option<RealArc<Counts>>,
}

/// Has an [`Arc`] own, or a [`Weak`] know of, something unsized that its value can be seen as:
/// `unsize!(Arc::new(5) => dyn Display)`.
///
/// ```
/// use std::fmt::Display;
///
/// use dragnet::arc::{Arc, Weak, unsize};
///
/// let number = Arc::new(5);
/// let weak: Weak<dyn Display> = unsize!(Arc::downgrade(&number) => dyn Display);
/// let shown: Arc<dyn Display> = unsize!(number => dyn Display);
/// assert_eq!(shown.to_string(), "5");
/// assert_eq!(weak.upgrade().map(|same| same.to_string()), Some("5".to_owned()));
/// ```
#[macro_export]
macro_rules! unsize {
    ($reference:expr => $type:ty) => {{
        let (value, counted) = $crate::arc::Reference::into_parts($reference);
        counted.with::<$type>(value)
    }};
}

/// An [`Arc`] or a [`Weak`]: a real reference, which alone can be coerced, and the counts.
#[doc(hidden)]
pub trait Reference: Sized {
    type Real;
    type RealOf<U: ?Sized>;
    type Of<U: ?Sized>;

    fn into_parts(self) -> (Self::Real, Parts<Self>);
    fn from_parts<U: ?Sized>(value: Self::RealOf<U>, parts: Parts<Self>) -> Self::Of<U>;
}

/// What is left of a reference without the real one. There are no counts where there never was a value.
#[doc(hidden)]
pub struct Parts<R>(Option<RealArc<Counts>>, PhantomData<R>);

impl<R: Reference> Parts<R> {
    pub fn with<U: ?Sized>(self, value: R::RealOf<U>) -> R::Of<U> {
        R::from_parts(value, self)
    }
}

impl<T: ?Sized> Reference for Arc<T> {
    type Real = RealArc<T>;
    type RealOf<U: ?Sized> = RealArc<U>;
    type Of<U: ?Sized> = Arc<U>;

    fn into_parts(self) -> (RealArc<T>, Parts<Self>) {
        let (value, counts) = self.take_apart();
        (value, Parts(Some(counts), PhantomData))
    }

    fn from_parts<U: ?Sized>(value: RealArc<U>, parts: Parts<Self>) -> Arc<U> {
        Arc {
            value: Some(value),
            counts: parts.0.expect("there is a value"),
        }
    }
}

impl<T: ?Sized> Reference for Weak<T> {
    type Real = RealWeak<T>;
    type RealOf<U: ?Sized> = RealWeak<U>;
    type Of<U: ?Sized> = Weak<U>;

    fn into_parts(mut self) -> (RealWeak<T>, Parts<Self>) {
        // Without its counts its drop is no operation.
        let counts = self.counts.take();
        (self.value.clone(), Parts(counts, PhantomData))
    }

    fn from_parts<U: ?Sized>(value: RealWeak<U>, parts: Parts<Self>) -> Weak<U> {
        Weak {
            value,
            counts: parts.0,
        }
    }
}

impl<T> Arc<T> {
    /// A value with one owner.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self::of(RealArc::new(value))
    }

    /// The same for a value that knows of itself.
    #[track_caller]
    pub fn new_cyclic<F>(first: F) -> Self
    where
        F: FnOnce(&Weak<T>) -> T,
    {
        let at = Location::caller();
        let counts = Counts::new::<T>(0);
        let value = RealArc::new_cyclic(|weak| {
            counts.operate(Action::Retain(Counted::Weak), at);
            let weak = Weak {
                value: weak.clone(),
                counts: Some(RealArc::clone(&counts)),
            };
            let value = first(&weak);
            drop(weak);
            // The real count grows when this returns, and no thread goes on in between.
            counts.operate(Action::Own, at);
            value
        });
        Self {
            value: Some(value),
            counts,
        }
    }

    /// The value, if this was its only owner.
    #[track_caller]
    pub fn try_unwrap(mut this: Self) -> Result<T, Self> {
        this.operate(Action::Unwrap, Location::caller());
        let counts = RealArc::clone(&this.counts);
        let value = this.value.take().expect("it is there");
        RealArc::try_unwrap(value).map_err(|value| Self {
            value: Some(value),
            counts,
        })
    }

    /// The value, if this was its last owner. One of several who do so at once gets it.
    #[track_caller]
    pub fn into_inner(mut this: Self) -> Option<T> {
        this.operate(Action::IntoInner, Location::caller());
        RealArc::into_inner(this.value.take()?)
    }

    /// The value, or a clone of it if there are other owners.
    #[track_caller]
    pub fn unwrap_or_clone(this: Self) -> T
    where
        T: Clone,
    {
        Self::try_unwrap(this).unwrap_or_else(|this| (*this).clone())
    }
}

/// Who else has to do with the value of an [`Arc`].
enum Others {
    None,
    /// Some know of it, and nobody else owns it.
    Know,
    Own,
}

impl<T: Clone> Arc<T> {
    /// Access to the value, or to a clone of it if there are other owners. Weak references to it are cut off.
    #[track_caller]
    pub fn make_mut(this: &mut Self) -> &mut T {
        let others = match this.operate(Action::MakeUnique, Location::caller()) {
            Some(0) => Others::Own,
            Some(MOVED) => Others::Know,
            Some(_) => Others::None,
            None if RealArc::get_mut(this.real_mut()).is_some() => Others::None,
            None if RealArc::strong_count(this.real()) == 1 => Others::Know,
            None => Others::Own,
        };
        match others {
            Others::None => {}
            Others::Know => {
                RealArc::make_mut(this.real_mut());
                this.counts = Counts::new::<T>(1);
            }
            // To clone it may take operations, and the other owners may be gone by then.
            Others::Own => {
                let value = (**this).clone();
                *this = Self::new(value);
            }
        }
        RealArc::get_mut(this.real_mut()).expect("it is the only one")
    }
}

/// What belongs to addresses that [`Arc::into_raw`] has given out.
static RAW: Mutex<Option<HashMap<usize, Vec<RealArc<Counts>>>>> = Mutex::new(None);

impl<T: ?Sized> Arc<T> {
    #[track_caller]
    fn of(value: RealArc<T>) -> Self {
        Self {
            value: Some(value),
            counts: Counts::new::<T>(1),
        }
    }

    /// The real reference and the counts. That it is gone then is no operation.
    fn take_apart(mut self) -> (RealArc<T>, RealArc<Counts>) {
        let value = self.value.take().expect("it is there");
        (value, RealArc::clone(&self.counts))
    }

    fn real(&self) -> &RealArc<T> {
        self.value.as_ref().expect("it is there")
    }

    fn real_mut(&mut self) -> &mut RealArc<T> {
        self.value.as_mut().expect("it is there")
    }

    fn operate(&self, action: Action, at: &'static Location<'static>) -> Option<u32> {
        self.counts.operate(action, at)
    }

    /// Somebody who knows of the value and does not own it.
    #[track_caller]
    pub fn downgrade(this: &Self) -> Weak<T> {
        this.operate(Action::Retain(Counted::Weak), Location::caller());
        Weak {
            value: RealArc::downgrade(this.real()),
            counts: Some(RealArc::clone(&this.counts)),
        }
    }

    /// How many owners there are.
    #[track_caller]
    pub fn strong_count(this: &Self) -> usize {
        this.operate(Action::ReadCount, Location::caller());
        RealArc::strong_count(this.real())
    }

    /// How many know of the value and do not own it.
    #[track_caller]
    pub fn weak_count(this: &Self) -> usize {
        this.operate(Action::ReadCount, Location::caller());
        RealArc::weak_count(this.real())
    }

    /// Access to the value, if nobody else owns it or knows of it.
    #[track_caller]
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        this.operate(Action::Unique, Location::caller());
        RealArc::get_mut(this.real_mut())
    }

    /// Whether both own the same value.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        RealArc::ptr_eq(this.real(), other.real())
    }

    /// Where the value is.
    pub fn as_ptr(this: &Self) -> *const T {
        RealArc::as_ptr(this.real())
    }

    /// The value without its owner, to be given to [`from_raw`](Self::from_raw).
    pub fn into_raw(this: Self) -> *const T {
        let (value, counts) = this.take_apart();
        let raw = RealArc::into_raw(value);
        let mut given = RAW.lock().unwrap_or_else(PoisonError::into_inner);
        let given = given.get_or_insert_default();
        given.entry(raw.addr()).or_default().push(counts);
        raw
    }

    /// The owner again.
    ///
    /// # Safety
    /// As for [`std::sync::Arc::from_raw`]: `raw` comes from [`into_raw`](Self::into_raw), once for each call.
    ///
    /// # Panics
    /// When it does not.
    pub unsafe fn from_raw(raw: *const T) -> Self {
        let counts = {
            let mut given = RAW.lock().unwrap_or_else(PoisonError::into_inner);
            let given = given.get_or_insert_default();
            let known = given.get_mut(&raw.addr());
            let counts = known.and_then(Vec::pop);
            if given.get(&raw.addr()).is_some_and(Vec::is_empty) {
                given.remove(&raw.addr());
            }
            counts.expect("`into_raw` has given it out")
        };
        Self {
            // SAFETY: the caller says so.
            value: Some(unsafe { RealArc::from_raw(raw) }),
            counts,
        }
    }
}

impl<T: ?Sized> Clone for Arc<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        self.operate(Action::Retain(Counted::Strong), Location::caller());
        Self {
            value: self.value.clone(),
            counts: RealArc::clone(&self.counts),
        }
    }
}

impl<T: ?Sized> Drop for Arc<T> {
    #[track_caller]
    fn drop(&mut self) {
        let Some(value) = self.value.take() else {
            return;
        };
        let at = Location::caller();
        let is_last = self.operate(Action::Release(Counted::Strong), at) == Some(1);
        let _destructor = is_last
            .then(world::current)
            .flatten()
            .map(World::enter_destructor);
        drop(value);
    }
}

impl<T: ?Sized> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.real()
    }
}

impl<T> Weak<T> {
    /// Somebody who knows of nothing.
    pub const fn new() -> Self {
        Self {
            value: RealWeak::new(),
            counts: None,
        }
    }
}

impl<T: ?Sized> Weak<T> {
    fn operate(&self, action: Action, at: &'static Location<'static>) -> Option<u32> {
        self.counts.as_ref()?.operate(action, at)
    }

    /// An owner, if there is one left.
    #[track_caller]
    pub fn upgrade(&self) -> Option<Arc<T>> {
        self.operate(Action::Upgrade, Location::caller());
        Some(Arc {
            value: Some(self.value.upgrade()?),
            counts: RealArc::clone(self.counts.as_ref()?),
        })
    }

    /// How many owners there are.
    #[track_caller]
    pub fn strong_count(&self) -> usize {
        self.operate(Action::ReadCount, Location::caller());
        self.value.strong_count()
    }

    /// How many know of the value and do not own it; none if nobody owns it.
    #[track_caller]
    pub fn weak_count(&self) -> usize {
        self.operate(Action::ReadCount, Location::caller());
        self.value.weak_count()
    }

    /// Whether both know of the same value.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.value.ptr_eq(&other.value)
    }

    /// Where the value is or was.
    pub fn as_ptr(&self) -> *const T {
        self.value.as_ptr()
    }
}

impl<T: ?Sized> Clone for Weak<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        self.operate(Action::Retain(Counted::Weak), Location::caller());
        Self {
            value: self.value.clone(),
            counts: self.counts.clone(),
        }
    }
}

impl<T: ?Sized> Drop for Weak<T> {
    #[track_caller]
    fn drop(&mut self) {
        self.operate(Action::Release(Counted::Weak), Location::caller());
    }
}

impl<T> Default for Weak<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: ?Sized> Debug for Weak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(Weak)")
    }
}

impl<T: Default> Default for Arc<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Arc<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T> From<Vec<T>> for Arc<[T]> {
    #[track_caller]
    fn from(values: Vec<T>) -> Self {
        Self::of(values.into())
    }
}

impl From<&str> for Arc<str> {
    #[track_caller]
    fn from(text: &str) -> Self {
        Self::of(text.into())
    }
}

impl From<String> for Arc<str> {
    #[track_caller]
    fn from(text: String) -> Self {
        Self::of(text.into())
    }
}

impl<T: ?Sized> From<Box<T>> for Arc<T> {
    #[track_caller]
    fn from(value: Box<T>) -> Self {
        Self::of(value.into())
    }
}

impl<T> FromIterator<T> for Arc<[T]> {
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::of(values.into_iter().collect())
    }
}

impl<T: ?Sized> AsRef<T> for Arc<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: ?Sized> Borrow<T> for Arc<T> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T: ?Sized + PartialEq> PartialEq for Arc<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: ?Sized + Eq> Eq for Arc<T> {}

impl<T: ?Sized + PartialOrd> PartialOrd for Arc<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (**self).partial_cmp(&**other)
    }
}

impl<T: ?Sized + Ord> Ord for Arc<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl<T: ?Sized + Hash> Hash for Arc<T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (**self).hash(hasher);
    }
}

impl<T: ?Sized + Debug> Debug for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + Display> Display for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_of_an_execution_counts_are_the_real_ones() {
        let mut one = Arc::new(5);
        let weak = Arc::downgrade(&one);
        let other = weak.upgrade().expect("it is owned");
        assert_eq!((Arc::strong_count(&one), Arc::weak_count(&other)), (2, 1));
        assert!(Arc::ptr_eq(&one, &other) && Arc::get_mut(&mut one).is_none());
        *Arc::make_mut(&mut one) += 1;
        assert_eq!((*one, *other), (6, 5));
        assert_eq!(Arc::into_inner(other), Some(5));
        assert!(weak.upgrade().is_none() && Weak::<u32>::new().upgrade().is_none());
        let raw = Arc::into_raw(one);
        // SAFETY: it was just given out.
        let one = unsafe { Arc::from_raw(raw) };
        assert_eq!(Arc::try_unwrap(one), Ok(6));
    }

    #[test]
    fn a_value_may_know_of_itself_and_be_unsized() {
        struct Node(Weak<Self>, u32);
        let node = Arc::new_cyclic(|this| Node(this.clone(), 3));
        assert_eq!(node.0.upgrade().map(|same| same.1), Some(3));
        let shown: Arc<dyn Debug> = unsize!(Arc::new([1, 2]) => dyn Debug);
        assert_eq!(format!("{shown:?}"), "[1, 2]");
        let weak: Weak<dyn Debug> = unsize!(Weak::<u32>::new() => dyn Debug);
        assert!(weak.upgrade().is_none());
        let text: Arc<str> = "text".into();
        let numbers: Arc<[u32]> = (1..3).collect();
        assert_eq!((&*text, numbers.len()), ("text", 2));
    }
}
