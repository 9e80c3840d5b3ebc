//! The digest of what a value serialises, in an order of its own.
//!
//! Maps are fed in sorted by their keys, so that the iteration order of a `HashMap` does not matter. A set serialises as a
//! sequence, which nobody can tell from a list, so its order counts.

use std::fmt::{self, Debug, Display};
use std::hash::{Hash, Hasher};

use serde::ser::{self, Serialize, Serializer};

use super::digested::DigestOf;
use crate::trace::{Key, StableHasher};

/// The digest of what a type serialises with `serde`, maps in the order of their keys.
///
/// ```
/// use std::collections::HashMap;
/// use dragnet::nodes::{BySerde, Digested};
///
/// type Ages = HashMap<&'static str, u8>;
/// let some: Ages = (0..9).map(|n| (["a", "b", "c", "d", "e", "f", "g", "h", "i"][n], n as u8)).collect();
/// let same: Ages = some.iter().map(|(name, age)| (*name, *age)).collect();
/// let (some, mut same): (Digested<Ages, BySerde>, Digested<Ages, BySerde>) = (some.into(), same.into());
/// assert_eq!(some, same);
/// same.insert("a", 99);
/// assert_ne!(some, same);
/// ```
///
/// The order of everything else counts, that of a `HashSet` too: it serialises as a list does. Write a
/// [`Digest`](super::Digest) for a state that holds one.
#[derive(Debug)]
pub struct BySerde;

impl<T: Serialize> DigestOf<T> for BySerde {
    fn digest(value: &T, into: &mut StableHasher) {
        let fed = value.serialize(Feed(into));
        fed.expect("a state whose digest is made by serde can be serialised");
    }
}

/// Feeds values into a hasher, each behind a tag that says what it is.
struct Feed<'a>(&'a mut StableHasher);

/// The items of a value that has several, one after the other.
struct Items<'a>(&'a mut StableHasher);

/// The entries of a map, until all are there and can be sorted.
struct Entries<'a> {
    into: &'a mut StableHasher,
    key: u128,
    entries: Vec<(u128, u128)>,
}

#[derive(Debug)]
struct Refused(String);

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

fn digest_of<T: Serialize + ?Sized>(value: &T) -> Result<u128, Refused> {
    let mut hasher = StableHasher::new(Key::default());
    value.serialize(Feed(&mut hasher))?;
    Ok(hasher.finish_128())
}

impl<'a> Feed<'a> {
    fn tagged(self, tag: u8, value: impl Hash) -> Result<(), Refused> {
        (tag, value).hash(self.0);
        Ok(())
    }

    fn begin(self, tag: u8, head: impl Hash) -> Result<Items<'a>, Refused> {
        (tag, head).hash(self.0);
        Ok(Items(self.0))
    }
}

macro_rules! tagged {
    ($($method:ident($type:ty) = $tag:literal),* $(,)?) => {
        $(fn $method(self, value: $type) -> Result<(), Refused> {
            self.tagged($tag, value)
        })*
    };
}

impl<'a> Serializer for Feed<'a> {
    type Ok = ();
    type Error = Refused;
    type SerializeSeq = Items<'a>;
    type SerializeTuple = Items<'a>;
    type SerializeTupleStruct = Items<'a>;
    type SerializeTupleVariant = Items<'a>;
    type SerializeMap = Entries<'a>;
    type SerializeStruct = Items<'a>;
    type SerializeStructVariant = Items<'a>;

    tagged!(
        serialize_bool(bool) = 0,
        serialize_i8(i8) = 1,
        serialize_i16(i16) = 2,
        serialize_i32(i32) = 3,
        serialize_i64(i64) = 4,
        serialize_i128(i128) = 5,
        serialize_u8(u8) = 6,
        serialize_u16(u16) = 7,
        serialize_u32(u32) = 8,
        serialize_u64(u64) = 9,
        serialize_u128(u128) = 10,
        serialize_char(char) = 11,
        serialize_str(&str) = 12,
        serialize_bytes(&[u8]) = 13,
    );

    fn serialize_f32(self, value: f32) -> Result<(), Refused> {
        self.tagged(14, value.to_bits())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Refused> {
        self.tagged(15, value.to_bits())
    }

    fn serialize_none(self) -> Result<(), Refused> {
        self.tagged(16, ())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Refused> {
        self.0.write_u8(17);
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Refused> {
        self.tagged(18, ())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Refused> {
        self.tagged(18, ())
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
    ) -> Result<(), Refused> {
        self.tagged(19, index)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), Refused> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        value: &T,
    ) -> Result<(), Refused> {
        (20_u8, index).hash(self.0);
        value.serialize(self)
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Items<'a>, Refused> {
        self.begin(21, ())
    }

    fn serialize_tuple(self, _len: usize) -> Result<Items<'a>, Refused> {
        self.begin(22, ())
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        _len: usize,
    ) -> Result<Items<'a>, Refused> {
        self.begin(22, ())
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<Items<'a>, Refused> {
        self.begin(23, index)
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Entries<'a>, Refused> {
        Ok(Entries {
            into: self.0,
            key: 0,
            entries: Vec::new(),
        })
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Items<'a>, Refused> {
        self.begin(24, ())
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<Items<'a>, Refused> {
        self.begin(25, index)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Behind each item, and behind the last, so that no two lists of lists are fed in alike.
const NEXT: u8 = 26;
const END: u8 = 27;

impl Items<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        self.0.write_u8(NEXT);
        value.serialize(Feed(self.0))
    }

    fn finish(self) -> Result<(), Refused> {
        self.0.write_u8(END);
        Ok(())
    }
}

macro_rules! items {
    ($($kind:ident::$method:ident),* $(,)?) => {
        $(impl ser::$kind for Items<'_> {
            type Ok = ();
            type Error = Refused;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
                self.item(value)
            }

            fn end(self) -> Result<(), Refused> {
                self.finish()
            }
        })*
    };
}

items!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
);

macro_rules! fields {
    ($($kind:ident),* $(,)?) => {
        $(impl ser::$kind for Items<'_> {
            type Ok = ();
            type Error = Refused;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Refused> {
                // Fields may be skipped, and then only the name says which one this is.
                name.hash(self.0);
                self.item(value)
            }

            fn end(self) -> Result<(), Refused> {
                self.finish()
            }
        })*
    };
}

fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Entries<'_> {
    type Ok = ();
    type Error = Refused;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Refused> {
        self.key = digest_of(key)?;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        self.entries.push((self.key, digest_of(value)?));
        Ok(())
    }

    fn end(mut self) -> Result<(), Refused> {
        self.entries.sort_unstable();
        (28_u8, &self.entries).hash(self.into);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use proptest::prelude::*;

    use super::*;

    #[derive(serde::Serialize)]
    enum Shape {
        Point,
        Circle(u8),
        Square { side: u8 },
    }

    fn digest<T: Serialize>(value: &T) -> u128 {
        digest_of(value).unwrap()
    }

    #[test]
    fn what_differs_anywhere_has_another_digest() {
        let all = [
            digest(&Shape::Point),
            digest(&Shape::Circle(1)),
            digest(&Shape::Circle(2)),
            digest(&Shape::Square { side: 1 }),
            digest(&Some(1_u8)),
            digest(&None::<u8>),
            digest(&1_u8),
            digest(&1_u16),
            digest(&[vec![1_u8], vec![2, 3]]),
            digest(&[vec![1_u8, 2], vec![3]]),
            digest(&("ab", "c")),
            digest(&("a", "bc")),
            digest(&0.0_f64),
            digest(&-0.0_f64),
        ];
        let distinct: std::collections::HashSet<u128> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    proptest! {
        #[test]
        fn a_map_has_one_digest_whatever_order_it_iterates_in(
            entries in prop::collection::btree_map(0_u16..50, 0_u8..4, 0..20),
            others in prop::collection::btree_map(0_u16..50, 0_u8..4, 0..20),
        ) {
            let shuffled = |map: &BTreeMap<u16, u8>| map.iter().map(|(k, v)| (*k, *v)).collect::<HashMap<_, _>>();
            prop_assert_eq!(digest(&shuffled(&entries)), digest(&entries));
            prop_assert_eq!(digest(&shuffled(&entries)) == digest(&shuffled(&others)), entries == others);
        }
    }
}
