//! The `Debug` form of values of the program under test, whose implementation may panic or fail.

use std::any::type_name;
use std::fmt::{self, Debug, Write};

use crate::panics;

/// `value` by its `Debug`. Where that panics or fails, this text says so, behind whatever was written before.
pub(crate) fn debug<T: Debug + ?Sized>(value: &T) -> String {
    let mut text = String::new();
    let written = panics::catch(|| write!(text, "{value:?}"));
    let problem = match written {
        Ok(Ok(())) => return text,
        Ok(Err(fmt::Error)) => "returned an error".to_owned(),
        Err(failure) => format!("panicked: {}", failure.message()),
    };
    let type_name = short_type_name::<T>();
    let _ = write!(text, "‹Debug of {type_name} {problem}›");
    text
}

/// The name of a type without the paths of its modules.
pub(crate) fn short_type_name<T: ?Sized>() -> String {
    let is_in_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut short = String::new();
    let mut rest = type_name::<T>();
    while !rest.is_empty() {
        let path = rest.find(|c| !is_in_path(c)).unwrap_or(rest.len());
        let name = rest[..path].rfind("::").map_or(0, |at| at + 2);
        short.push_str(&rest[name..path]);
        let other = rest[path..].find(is_in_path).unwrap_or(rest.len() - path);
        short.push_str(&rest[path..path + other]);
        rest = &rest[path + other..];
    }
    short
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    struct Broken(bool);

    impl Debug for Broken {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Broken ")?;
            assert!(self.0, "nothing to see");
            Err(fmt::Error)
        }
    }

    #[test]
    fn a_debug_that_panics_or_fails_is_named_behind_what_it_wrote() {
        assert_eq!(debug(&Some(1)), "Some(1)");
        assert_eq!(
            debug(&Broken(false)),
            "Broken ‹Debug of Broken panicked: nothing to see›"
        );
        assert_eq!(
            debug(&[Broken(true)]),
            "[Broken ‹Debug of [Broken; 1] returned an error›"
        );
    }

    #[test]
    fn a_short_type_name_has_no_paths() {
        type Nested<'a> = BTreeMap<Option<&'a str>, (Vec<u8>, [Broken; 2])>;
        assert_eq!(
            short_type_name::<Nested<'_>>(),
            "BTreeMap<Option<&str>, (Vec<u8>, [Broken; 2])>"
        );
        assert_eq!(short_type_name::<u8>(), "u8");
    }
}
