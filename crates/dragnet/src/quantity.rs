//! Numbers that mean something: none is taken for another.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// A number with a meaning. It is made from a plain one, and read and printed as one.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl From<u64> for $name {
            fn from(number: u64) -> Self {
                Self(number)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<Self, ParseIntError> {
                text.parse().map(Self)
            }
        }
    };
}

quantity! {
    /// What random numbers follow from: the same seed gives the same run.
    ///
    /// ```
    /// use dragnet::engine::{Engine, Random, Seed};
    ///
    /// let engine = Engine::from(Random::new().seed(7));
    /// assert_eq!(engine.seed(), Some(Seed(7)));
    /// ```
    Seed
}

quantity! {
    /// How many steps an execution may have.
    ///
    /// ```
    /// use dragnet::engine::DepthBound;
    ///
    /// assert_eq!("12".parse(), Ok(DepthBound(12)));
    /// ```
    DepthBound
}

quantity! {
    /// A size in memory.
    ///
    /// ```
    /// use dragnet::engine::Bytes;
    ///
    /// assert_eq!(Bytes::from(1 << 20).to_string(), "1048576");
    /// ```
    Bytes
}
