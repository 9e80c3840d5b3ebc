//! What counts as a change, and how it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use super::*;

#[derive(Clone, Debug, Default)]
struct Ballot {
    round: u32,
    leader: &'static str,
}

#[derive(Clone, Debug, Default)]
struct Acceptor {
    ballot: Ballot,
    accepted: Option<&'static str>,
    log: Vec<&'static str>,
    votes: BTreeSet<u8>,
    prepares: BTreeMap<u8, Option<u32>>,
}

/// The changes to an acceptor that starts with a bit of everything.
fn after(step: impl FnOnce(&mut Acceptor)) -> Vec<String> {
    let before = Acceptor {
        log: vec!["a", "b", "c"],
        votes: BTreeSet::from([1, 2]),
        prepares: BTreeMap::from([(1, None), (2, Some(3))]),
        ..Acceptor::default()
    };
    let mut after = before.clone();
    step(&mut after);
    between(&before, &after)
}

#[test]
fn equal_values_have_no_changes() {
    assert!(after(|_| {}).is_empty());
    assert!(between_texts("}{", "}{").is_empty());
}

#[test]
fn a_field_that_changed_is_named_by_its_path() {
    assert_eq!(after(|it| it.ballot.round = 2), ["ballot.round: 0 → 2"]);
}

#[test]
fn each_field_that_changed_has_a_line_in_the_order_of_fields() {
    let changes = after(|it| {
        it.accepted = Some("x");
        it.ballot.round = 1;
        it.ballot.leader = "n1";
    });
    assert_eq!(
        changes,
        [
            "ballot.round: 0 → 1",
            r#"ballot.leader: "" → "n1""#,
            r#"accepted: None → Some("x")"#
        ]
    );
}

#[test]
fn a_leaf_at_the_root_has_no_path() {
    assert_eq!(between(&3, &4), ["3 → 4"]);
    assert_eq!(between(&-1.5, &2.0), ["-1.5 → 2.0"]);
    assert_eq!(between(&"a: [", &"b, }"), [r#""a: [" → "b, }""#]);
}

#[test]
fn a_collection_at_the_root_has_no_path() {
    assert_eq!(between(&vec![1], &vec![1, 2]), ["+ 2"]);
    assert_eq!(between(&vec![1, 2], &vec![1, 3]), ["[1]: 2 → 3"]);
    assert_eq!(between(&BTreeSet::from([1]), &BTreeSet::new()), ["- 1"]);
    assert_eq!(
        between(&BTreeMap::new(), &BTreeMap::from([(1, 'x')])),
        ["[1]: + 'x'"]
    );
}

#[test]
fn a_short_variant_is_shown_whole() {
    assert_eq!(between(&Some(1), &Some(2)), ["Some(1) → Some(2)"]);
    assert_eq!(between(&(1, 2), &(1, 3)), ["(1, 2) → (1, 3)"]);
    assert_eq!(between(&Ok::<_, u8>(1), &Err(1)), ["Ok(1) → Err(1)"]);
}

#[test]
fn a_long_variant_is_shown_by_its_parts() {
    let long = |round| {
        let leader = "a-leader-with-a-name-that-makes-for-a-long-line";
        Ballot { round, leader }
    };
    assert_eq!(between(&Some(long(1)), &Some(long(2))), ["round: 1 → 2"]);
    assert_eq!(between(&(7, long(1)), &(8, long(1))), [".0: 7 → 8"]);
    assert_eq!(between(&(7, long(1)), &(7, long(2))), [".1.round: 1 → 2"]);
}

#[test]
fn a_long_leaf_keeps_the_variant_around_it() {
    let long = "x".repeat(SHORT);
    let changes = between_texts(&format!("Some({long})"), &format!("Some({long}y)"));
    assert_eq!(changes, [format!("Some({long}) → Some({long}y)")]);
}

#[test]
fn another_struct_variant_is_shown_whole() {
    let changes = between_texts("Follower { term: 1 }", "Candidate { term: 1 }");
    assert_eq!(changes, ["Follower { term: 1 } → Candidate { term: 1 }"]);
}

#[test]
fn an_element_of_a_list_is_named_by_its_index() {
    assert_eq!(after(|it| it.log[1] = "x"), [r#"log[1]: "b" → "x""#]);
}

#[test]
fn what_joins_the_end_of_a_list_is_added() {
    let changes = after(|it| it.log.extend(["d", "e"]));
    assert_eq!(changes, [r#"log: + "d""#, r#"log: + "e""#]);
}

#[test]
fn what_leaves_a_list_is_removed() {
    assert_eq!(after(|it| it.log.truncate(2)), [r#"log: - "c""#]);
    assert_eq!(after(|it| it.log = vec!["b", "c"]), [r#"log: - "a""#]);
}

#[test]
fn a_change_inside_a_list_says_where() {
    assert_eq!(after(|it| it.log = vec!["a", "c"]), [r#"log[1]: - "b""#]);
    assert_eq!(after(|it| it.log.insert(0, "x")), [r#"log[0]: + "x""#]);
}

#[test]
fn a_queue_that_moves_up_shows_who_left_and_who_joined() {
    let queue = VecDeque::from([Some(1), Some(2), Some(3)]);
    let moved = VecDeque::from([Some(2), Some(3), Some(4)]);
    assert_eq!(between(&queue, &moved), ["- Some(1)", "+ Some(4)"]);
    let (queue, moved) = ([Some(0), Some(1), Some(2)], [Some(0), Some(2), Some(3)]);
    assert_eq!(between(&queue, &moved), ["[1]: - Some(1)", "+ Some(3)"]);
    assert_eq!(between(&vec![1, 2], &vec![2, 3, 4]), ["- 1", "+ 3", "+ 4"]);
}

#[test]
fn a_slot_that_comes_to_hold_what_its_neighbour_holds_did_not_move() {
    let (before, after) = ([None, Some(1)], [Some(1), Some(1)]);
    assert_eq!(between(&before, &after), ["[0]: None → Some(1)"]);
}

#[test]
fn counters_that_all_tick_do_not_move_up() {
    assert_eq!(between(&[0, 1], &[1, 2]), ["[0]: 0 → 1", "[1]: 1 → 2"]);
}

#[test]
fn a_list_with_nothing_in_common_is_shown_whole() {
    assert_eq!(between(&vec![1, 2], &vec![3]), ["[1, 2] → [3]"]);
}

#[test]
fn many_changes_to_plain_values_are_one_line() {
    let (zeros, ones) = (vec![0; MANY + 1], vec![1; MANY + 1]);
    assert_eq!(between(&zeros, &ones), [format!("{zeros:?} → {ones:?}")]);
    let votes: BTreeSet<_> = (0..=MANY).collect();
    assert_eq!(
        between(&votes, &BTreeSet::new()),
        [format!("{votes:?} → {{}}")]
    );
}

#[test]
fn many_changes_to_structured_values_are_each_told() {
    let nodes = |round| vec![Ballot { round, leader: "" }; MANY + 1];
    assert_eq!(between(&nodes(0), &nodes(1)).len(), MANY + 1);
}

#[test]
fn elements_join_and_leave_a_set() {
    let changes = after(|it| it.votes = BTreeSet::from([2, 3]));
    assert_eq!(changes, ["votes: - 1", "votes: + 3"]);
}

#[test]
fn a_bag_counts_its_elements() {
    assert_eq!(between_texts("{a, a, b}", "{a, b}"), ["- a"]);
}

#[test]
fn an_entry_of_a_map_is_named_by_its_key() {
    let changes = after(|it| {
        it.prepares.insert(1, Some(3));
        it.prepares.remove(&2);
        it.prepares.insert(4, None);
    });
    assert_eq!(
        changes,
        [
            "prepares[1]: None → Some(3)",
            "prepares[2]: - Some(3)",
            "prepares[4]: + None"
        ]
    );
}

#[test]
fn a_map_into_structs_names_the_field() {
    let peers = |round| {
        BTreeMap::from([(
            "n: {1}",
            Ballot {
                round,
                leader: "n0",
            },
        )])
    };
    assert_eq!(
        between(&peers(1), &peers(2)),
        [r#"["n: {1}"].round: 1 → 2"#]
    );
}

#[test]
fn only_the_order_of_a_set_that_changed_still_shows() {
    assert_eq!(between_texts("{a, b}", "{b, a}"), ["{a, b} → {b, a}"]);
}

#[test]
fn leaves_may_be_any_text() {
    let changes = between_texts(
        "Node { id: n0->n1[3], at: 2024-01-01T00:00, of: PhantomData<A, B>, n: 1,000 }",
        "Node { id: n0->n1[4], at: 2024-01-01T00:01, of: PhantomData<A, B>, n: 1,001 }",
    );
    assert_eq!(
        changes,
        [
            "id: n0->n1[3] → n0->n1[4]",
            "at: 2024-01-01T00:00 → 2024-01-01T00:01",
            "n: 1,000 → 1,001"
        ]
    );
    assert_eq!(between_texts("{12:30, 12:31}", "{12:30}"), ["- 12:31"]);
}

#[test]
fn brackets_and_quotes_inside_literals_do_not_count() {
    let before = vec![
        ('"', "it's"),
        ('\'', r#"}" \"#),
        ('\u{1b}', "), ("),
        ('{', "é…"),
    ];
    let mut after = before.clone();
    after.push(('é', "'"));
    assert_eq!(between(&before, &after), [r#"+ ('é', "'")"#]);
    assert_eq!(between_texts("[don't, a]", "[don't, b]"), ["[1]: a → b"]);
}

#[test]
fn a_non_exhaustive_struct_has_its_fields_compared() {
    assert_eq!(between(&Mutex::new(1), &Mutex::new(2)), ["data: 1 → 2"]);
}

#[test]
fn pretty_text_is_taken_apart_as_well() {
    let pretty = |n| format!("Node {{\n    log: [\n        {n},\n    ],\n}}");
    assert_eq!(between_texts(&pretty(1), &pretty(2)), ["log[0]: 1 → 2"]);
}

#[test]
fn a_line_break_in_a_leaf_does_not_break_the_line() {
    assert_eq!(between_texts("a\nb", "a\x1bb"), [r"a\nb → a\u{1b}b"]);
}

#[test]
fn a_long_value_loses_its_middle() {
    let changes = between(&vec![], &vec!["é".repeat(1000)]);
    let half = VALUE_WIDTH / 2;
    let (head, tail) = ("é".repeat(half - 1), "é".repeat(half - 1));
    assert_eq!(changes, [format!("+ \"{head}…{tail}\"")]);
}

#[test]
fn long_values_that_differ_in_their_middle_still_look_different() {
    let text = |middle| format!("{0}{middle}{0}", "é".repeat(1000));
    let changes = between(&text("old"), &text("new"));
    let (before, after) = changes[0].split_once(" → ").unwrap();
    assert!(
        before.starts_with('…') && before.contains("éold"),
        "{before}"
    );
    assert!(after.starts_with('…') && after.contains("énew"), "{after}");
}

#[test]
fn text_that_does_not_parse_is_shown_whole() {
    assert_eq!(between_texts("[0, 5)", "[0, 6)"), ["[0, 5) → [0, 6)"]);
    assert_eq!(
        between_texts("A { b: \" }", "A { b: 1 }"),
        ["A { b: \" } → A { b: 1 }"]
    );
    assert_eq!(between_texts("(1)(2)", "(1)(3)"), ["(1)(2) → (1)(3)"]);
}

#[test]
fn nesting_beyond_the_limit_is_a_leaf() {
    let nested = |inner| format!("{}{inner}{}", "[".repeat(50_000), "]".repeat(50_000));
    let changes = between_texts(&nested(1), &nested(2));
    assert_eq!(changes.len(), 1);
    assert!(
        changes[0].starts_with(&"[0]".repeat(MAX_DEPTH)),
        "{}",
        changes[0]
    );
}

#[test]
fn malformed_texts_that_differ_always_give_short_lines() {
    const PIECES: [&str; 24] = [
        "(", ")", "[", "]", "{", "}", ",", ", ", ":", ": ", "\"", "'", "\\", "..", " ", "\n", "é",
        "…", "a", "Some", "x: 1", "'\\u{", "b\"", "->",
    ];
    // Knuth's MMIX generator: the texts are the same in each run.
    let mut seed = 1_u64;
    let mut next = |below: usize| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    };
    for round in 0..20_000 {
        let mut parts: Vec<&str> = (0..next(14)).map(|_| PIECES[next(PIECES.len())]).collect();
        let before = parts.concat();
        // Half are unrelated, half differ in one place, so that the walk gets past the first level.
        if round % 2 == 0 {
            let at = next(parts.len() + 1);
            parts.insert(at, PIECES[next(PIECES.len())]);
        } else {
            parts = (0..next(14)).map(|_| PIECES[next(PIECES.len())]).collect();
        }
        let after = parts.concat();
        for (old, new) in [
            (before.clone(), after.clone()),
            (
                format!("S {{ a: {before} }}"),
                format!("S {{ a: {after} }}"),
            ),
            (
                format!("[{before}, {after}]"),
                format!("[{after}, {before}]"),
            ),
            (
                format!("{{{before}: {after}}}"),
                format!("{{{after}: {before}}}"),
            ),
        ] {
            let lines = between_texts(&old, &new);
            assert_eq!(
                lines.is_empty(),
                old == new,
                "round {round}: {old:?} and {new:?}"
            );
            assert!(
                lines
                    .iter()
                    .all(|line| !line.contains('\n') && line.chars().count() < 600),
                "round {round}: {old:?} and {new:?} give {lines:?}"
            );
        }
    }
}
