//! Node states that can be cloned, but not compared or hashed: told apart by a digest.

use std::cell::Cell;
use std::fmt::{self, Debug, Write};
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

use crate::trace::{Key, StableHasher, short_type_name};

/// A node state that is told apart by a digest of 128 bits instead of `Eq` and `Hash`.
///
/// It reads and changes like the value inside, whose clones must not share anything that changes. Two states with equal
/// digests count as one, so a digest must hold everything that decides what a node does next. Where it comes from is `By`:
/// [`Own`] is what the type itself writes as [`Digest`], [`ByDebug`] is what it prints, and
/// [`BySerde`](super::BySerde) is what it serialises.
///
/// ```
/// use dragnet::nodes::{ByDebug, Digested};
/// use dragnet::{Check, Cluster, Context, Node, NodeId};
///
/// /// Neither `Eq` nor `Hash`: it holds a float.
/// #[derive(Clone, Debug)]
/// struct Average { sum: f64, count: u32 }
///
/// struct Averaging;
///
/// impl Node for Averaging {
///     type State = Digested<Average, ByDebug>;
///     type Msg = u32;
///
///     fn on_start(&self, cx: &mut Context<u32>) -> Self::State {
///         cx.broadcast_to_others(cx.me().0 as u32);
///         Average { sum: 0.0, count: 0 }.into()
///     }
///
///     fn on_message(&self, average: &mut Self::State, _from: NodeId, value: u32, _cx: &mut Context<u32>) {
///         average.sum += f64::from(value);
///         average.count += 1;
///     }
/// }
///
/// Check::new(Cluster::new(3, |_| Averaging))
///     .reachable("all have heard all", |s| s.nodes().all(|average| average.count == 2))
///     .run()
///     .assert_holds();
/// ```
pub struct Digested<T, By = Own> {
    value: T,
    /// Until the value changes.
    digest: OnceLock<u128>,
    by: PhantomData<fn() -> By>,
}

/// What a type says of itself when it cannot say it with `Eq` and `Hash`.
///
/// ```
/// use std::hash::Hash;
/// use dragnet::nodes::{Digest, Digested};
/// use dragnet::trace::StableHasher;
///
/// #[derive(Clone, Debug)]
/// struct Clock { ticks: u64, seconds_per_tick: f64 }
///
/// impl Digest for Clock {
///     fn digest(&self, into: &mut StableHasher) {
///         self.ticks.hash(into); // the rest never changes
///     }
/// }
///
/// let one: Digested<Clock> = Clock { ticks: 3, seconds_per_tick: 0.1 }.into();
/// let mut two = one.clone();
/// assert_eq!(one, two);
/// two.ticks += 1;
/// assert_ne!(one, two);
/// ```
pub trait Digest {
    /// Feeds in everything that decides what comes next.
    fn digest(&self, into: &mut StableHasher);
}

/// A way to make a digest of a `T`.
pub trait DigestOf<T> {
    /// Feeds the value in.
    fn digest(value: &T, into: &mut StableHasher);
}

/// The digest that a type writes itself, as [`Digest`].
#[derive(Debug)]
pub struct Own;

impl<T: Digest> DigestOf<T> for Own {
    fn digest(value: &T, into: &mut StableHasher) {
        value.digest(into);
    }
}

/// The digest of what a type prints with `Debug`: no work, slow, and right where that shows everything in a fixed order.
#[derive(Debug)]
pub struct ByDebug;

impl<T: Debug> DigestOf<T> for ByDebug {
    fn digest(value: &T, into: &mut StableHasher) {
        struct Printed<'a>(&'a mut StableHasher);

        impl Write for Printed<'_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                Hasher::write(self.0, text.as_bytes());
                Ok(())
            }
        }

        if write!(Printed(into), "{value:?}").is_err() {
            panic!("Debug of {} returned an error", short_type_name::<T>());
        }
    }
}

impl<T, By: DigestOf<T>> Digested<T, By> {
    fn digest(&self) -> u128 {
        *self.digest.get_or_init(|| {
            let mut hasher = StableHasher::new(Key::default());
            By::digest(&self.value, &mut hasher);
            hasher.finish_128()
        })
    }
}

impl<T, By> From<T> for Digested<T, By> {
    fn from(value: T) -> Self {
        Self {
            value,
            digest: OnceLock::new(),
            by: PhantomData,
        }
    }
}

impl<T, By> Deref for Digested<T, By> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T, By> DerefMut for Digested<T, By> {
    fn deref_mut(&mut self) -> &mut T {
        self.digest.take();
        &mut self.value
    }
}

impl<T: Clone, By> Clone for Digested<T, By> {
    fn clone(&self) -> Self {
        Self {
            value: self.value.clone(),
            // Not the digest: the value may be changed behind a shared reference, which nobody sees.
            digest: OnceLock::new(),
            by: PhantomData,
        }
    }
}

impl<T, By: DigestOf<T>> PartialEq for Digested<T, By> {
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }
}

impl<T, By: DigestOf<T>> Eq for Digested<T, By> {}

impl<T, By: DigestOf<T>> Hash for Digested<T, By> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        note_digest();
        self.digest().hash(state);
    }
}

thread_local! {
    static NOTED: Cell<bool> = const { Cell::new(false) };
}

/// Said wherever a digest is hashed in place of a state.
pub(super) fn note_digest() {
    NOTED.set(true);
}

/// Runs `hash`, and says whether a digest took the place of something in what it hashed: a verdict then stands on it.
pub(super) fn noting_digests<R>(hash: impl FnOnce() -> R) -> (R, bool) {
    NOTED.set(false);
    let hashed = hash();
    (hashed, NOTED.get())
}

impl<T: Debug, By> Debug for Digested<T, By> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
