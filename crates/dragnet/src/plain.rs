//! What programs with threads use and `std` does not have, where nobody checks them.

/// One of the numbers below `count`, which a check would try all of: 0.
///
/// # Panics
/// When there is nothing to choose from.
pub fn choose(count: usize) -> usize {
    assert!(count > 0, "there is nothing to choose from");
    0
}

/// Reference counts, which a check would see: here they are those of `std`.
pub mod arc {
    pub use std::sync::{Arc, Weak};

    pub use crate::unsize;

    /// An [`Arc`] or a [`Weak`].
    #[doc(hidden)]
    pub trait Reference {
        type Of<U: ?Sized>;
    }

    impl<T: ?Sized> Reference for Arc<T> {
        type Of<U: ?Sized> = Arc<U>;
    }

    impl<T: ?Sized> Reference for Weak<T> {
        type Of<U: ?Sized> = Weak<U>;
    }

    /// Which of both a reference is: it is coerced where it is given away as one of that kind.
    #[doc(hidden)]
    pub struct Kind<R>(std::marker::PhantomData<R>);

    impl<R: Reference> Kind<R> {
        pub fn of(_: &R) -> Self {
            Self(std::marker::PhantomData)
        }

        pub fn with<U: ?Sized>(self, reference: R::Of<U>) -> R::Of<U> {
            reference
        }
    }
}

/// Has an [`Arc`](arc::Arc) own, or a [`Weak`](arc::Weak) know of, something unsized that its value can be seen as:
/// `unsize!(Arc::new(5) => dyn Display)`.
#[macro_export]
macro_rules! unsize {
    ($reference:expr => $type:ty) => {{
        let reference = $reference;
        $crate::arc::Kind::of(&reference).with::<$type>(reference)
    }};
}

/// Data that threads share without a lock.
pub mod cell {
    /// Data that its users keep apart themselves, like [`std::cell::UnsafeCell`]. A check would tell if they did not.
    pub struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// A cell with `value` in it.
        pub const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        /// What is in it.
        pub fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    impl<T: ?Sized> UnsafeCell<T> {
        /// Looks at the data. The caller makes sure that nobody changes it meanwhile.
        #[inline]
        pub fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
            look(self.0.get())
        }

        /// Changes the data. The caller makes sure that nobody else looks at it meanwhile.
        #[inline]
        pub fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
            change(self.0.get())
        }

        /// Access to what nobody else has.
        pub fn get_mut(&mut self) -> &mut T {
            self.0.get_mut()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Display;

    use super::arc::{Arc, Weak};

    #[test]
    fn references_are_coerced_without_checks_too() {
        let number = Arc::new(5);
        let weak: Weak<dyn Display> = unsize!(Arc::downgrade(&number) => dyn Display);
        let shown = unsize!(number => dyn Display + Send + Sync);
        assert_eq!(shown.to_string(), "5");
        assert_eq!(
            weak.upgrade().map(|same| same.to_string()),
            Some("5".to_owned())
        );
    }
}
