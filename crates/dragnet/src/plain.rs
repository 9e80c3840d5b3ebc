//! What programs with threads use and `std` does not have, where nobody checks them.

/// One of the numbers below `count`, which a check would try all of: 0.
///
/// # Panics
/// When there is nothing to choose from.
pub fn choose(count: usize) -> usize {
    assert!(count > 0, "there is nothing to choose from");
    0
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
