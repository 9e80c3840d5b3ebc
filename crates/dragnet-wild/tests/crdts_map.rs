//! What Dragnet found in `Map` of crdts 7.3, by hand: without Dragnet, through the public interface, and with contexts that
//! are derived from a read of the key that they are used on.
//!
//! These tests pass while the map does what it should not. When one of them fails, the map has been mended.

use std::collections::BTreeSet;

use crdts::{CmRDT, CvRDT, MVReg, Map};

type Registers = Map<&'static str, MVReg<&'static str, char>, char>;
type Op = <Registers as CmRDT>::Op;

fn write(map: &mut Registers, value: &'static str, actor: char) -> Op {
    let context = map.get(&"key").derive_add_ctx(actor);
    let op = map.update("key", context, |register, context| {
        register.write(value, context)
    });
    map.apply(op.clone());
    op
}

fn remove(map: &mut Registers) -> Op {
    let op = map.rm("key", map.get(&"key").derive_rm_ctx());
    map.apply(op.clone());
    op
}

fn read(map: &Registers) -> BTreeSet<&'static str> {
    let register = map.get(&"key").val.unwrap_or_default();
    register.read().val.into_iter().collect()
}

fn merged(one: &Registers, other: &Registers) -> Registers {
    let mut merged = one.clone();
    merged.merge(other.clone());
    merged
}

#[test]
fn merging_an_old_state_brings_an_overwritten_value_back() {
    let mut alice = Registers::new();
    write(&mut alice, "first", 'a');
    remove(&mut alice);

    let mut carol = merged(&Registers::new(), &alice);
    write(&mut carol, "second", 'c');

    let mut bob = merged(&Registers::new(), &carol);
    write(&mut bob, "third", 'b');
    assert_eq!(read(&bob), BTreeSet::from(["third"]));

    // Bob has seen all that Carol has, and overwritten it. Merging Carol's state behind his should change nothing.
    let only_bob = merged(&alice, &bob);
    assert_eq!(read(&only_bob), BTreeSet::from(["third"]));
    let both = merged(&only_bob, &carol);
    assert_eq!(read(&both), BTreeSet::from(["second", "third"]));
}

#[test]
fn merge_is_not_associative() {
    let mut carol = Registers::new();
    let first = write(&mut carol, "first", 'c');

    let mut alice = Registers::new();
    alice.apply(first);
    remove(&mut alice);
    write(&mut alice, "second", 'a');

    let alice_twice = merged(&alice, &alice);
    assert_eq!(alice_twice, alice);
    assert_ne!(
        merged(&alice_twice, &carol),
        merged(&alice, &merged(&alice, &carol)),
    );
}

#[test]
fn replicas_that_apply_the_same_operations_in_causal_order_differ() {
    let mut alice = Registers::new();
    let first = write(&mut alice, "first", 'a');
    let mut carol = Registers::new();
    carol.apply(first);

    let removal = remove(&mut alice);
    let second = write(&mut carol, "second", 'c');
    alice.apply(second);
    carol.apply(removal);

    assert_ne!(alice, carol);
}

#[test]
fn replicas_that_apply_the_same_operations_in_the_order_of_each_actor_read_differently() {
    let mut alice = Registers::new();
    let first = write(&mut alice, "first", 'a');
    let mut carol = Registers::new();
    carol.apply(first.clone());
    let second = write(&mut carol, "second", 'c');

    let mut bob = Registers::new();
    bob.apply(second);
    let removal = remove(&mut bob);
    bob.apply(first);
    carol.apply(removal);

    assert_eq!(read(&bob), BTreeSet::from(["first"]));
    assert_eq!(read(&carol), BTreeSet::from(["second"]));
}

#[test]
fn an_operation_in_order_is_called_out_of_order() {
    let mut map = Registers::new();
    write(&mut map, "first", 'a');
    let context = map.get(&"other key").derive_add_ctx('a');
    let op = map.update("other key", context, |register, context| {
        register.write("second", context)
    });

    assert!(map.validate_op(&op).is_err());
}
