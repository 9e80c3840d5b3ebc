//! The coarse level's labels: which injected events something depends on.

use std::collections::HashMap;

use crate::tables::next_number;
use crate::target::parts::Nature;

/// Sets of injected events, each kept once.
///
/// An injected event is something that happens to a node from outside: a call, a timer that has run out at least once, a
/// crash, a restart. A label is all those in the past of a history: its own and others'.
pub(super) struct Labels {
    sets: Vec<Set>,
    numbers: HashMap<Set, u32>,
    events: HashMap<Event, u32>,
    /// For each node the events that happen to it.
    own: Vec<Set>,
    /// All crashes, all restarts.
    spent: [Set; 2],
}

/// An injected event: the node, and what happens to it for the how manyeth time.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Event {
    pub(super) node: usize,
    pub(super) nature: Nature,
    /// Which timer, which crash, which restart.
    pub(super) number: u32,
}

/// A bit for each event; no zeros at the end.
type Set = Box<[u64]>;

/// Nothing has happened.
pub(super) const NOTHING: u32 = 0;

impl Labels {
    pub(super) fn new(nodes: usize) -> Self {
        let nothing = Set::default();
        Self {
            numbers: HashMap::from([(nothing.clone(), NOTHING)]),
            sets: vec![nothing.clone()],
            events: HashMap::new(),
            own: vec![nothing.clone(); nodes],
            spent: [nothing.clone(), nothing],
        }
    }

    fn set(&self, label: u32) -> &Set {
        &self.sets[label as usize]
    }

    fn number(&mut self, set: Set) -> u32 {
        let next = next_number(self.sets.len(), "labels");
        *self.numbers.entry(set).or_insert_with_key(|set| {
            self.sets.push(set.clone());
            next
        })
    }

    /// The label with one more event.
    pub(super) fn with(&mut self, label: u32, event: Event) -> u32 {
        let next = next_number(self.events.len(), "injected events");
        let bit = *self.events.entry(event).or_insert(next);
        if bit == next {
            self.own[event.node] = with_bit(&self.own[event.node], bit);
            match event.nature {
                Nature::Crash => self.spent[0] = with_bit(&self.spent[0], bit),
                Nature::Restart => self.spent[1] = with_bit(&self.spent[1], bit),
                _ => {}
            }
        }
        let set = with_bit(self.set(label), bit);
        self.number(set)
    }

    /// All events of both.
    pub(super) fn join(&mut self, one: u32, two: u32) -> u32 {
        if one == two || two == NOTHING {
            return one;
        }
        let (long, short) = match (self.set(one), self.set(two)) {
            (one, two) if one.len() >= two.len() => (one, two),
            (one, two) => (two, one),
        };
        let mut set = long.clone();
        for (word, more) in set.iter_mut().zip(short) {
            *word |= more;
        }
        self.number(set)
    }

    /// Whether `node`, whose history has the label `state`, has been through all that `label` says of it.
    pub(super) fn agrees(&self, label: u32, node: usize, state: u32) -> bool {
        let (label, state, own) = (self.set(label), self.set(state), &self.own[node]);
        let words = label.iter().zip(own);
        let mut words = words.enumerate();
        words.all(|(at, (word, own))| word & own & !state.get(at).copied().unwrap_or(0) == 0)
    }

    /// Whether whatever follows from `two` at `node` follows from `one`: the same has happened to the node itself, and no
    /// more to others.
    pub(super) fn covers(&self, node: usize, one: u32, two: u32) -> bool {
        let own = &self.own[node];
        let word = |set: &Set, at: usize| set.get(at).copied().unwrap_or(0);
        let (one, two) = (self.set(one), self.set(two));
        (0..one.len().max(two.len())).all(|at| {
            let (one, two, own) = (word(one, at), word(two, at), word(own, at));
            (one ^ two) & own == 0 && one & !two == 0
        })
    }

    /// Whether all events of `one` are among those of `two`.
    pub(super) fn is_within(&self, one: u32, two: u32) -> bool {
        let (one, two) = (self.set(one), self.set(two));
        let mut words = one.iter().enumerate();
        words.all(|(at, word)| word & !two.get(at).copied().unwrap_or(0) == 0)
    }

    /// How many crashes and restarts a label has.
    pub(super) fn spent(&self, label: u32) -> [u32; 2] {
        let set = self.set(label);
        self.spent.each_ref().map(|kind| {
            let words = set.iter().zip(kind);
            words.map(|(word, kind)| (word & kind).count_ones()).sum()
        })
    }

    /// How many of them, besides other things, have happened to `node`.
    pub(super) fn spent_at(&self, label: u32, node: usize) -> [u32; 2] {
        let (set, own) = (self.set(label), &self.own[node]);
        self.spent.each_ref().map(|kind| {
            let words = set.iter().zip(kind).zip(own);
            words
                .map(|((word, kind), own)| (word & kind & own).count_ones())
                .sum()
        })
    }
}

fn with_bit(set: &Set, bit: u32) -> Set {
    let (word, bit) = (bit as usize / 64, bit % 64);
    let mut words = set.to_vec();
    if words.len() <= word {
        words.resize(word + 1, 0);
    }
    words[word] |= 1 << bit;
    words.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(node: usize, number: u32) -> Event {
        Event {
            node,
            nature: Nature::Call(number),
            number: 0,
        }
    }

    #[test]
    fn a_label_is_a_set() {
        let mut labels = Labels::new(2);
        let one = labels.with(NOTHING, call(0, 0));
        let two = labels.with(NOTHING, call(1, 0));
        let both = labels.join(one, two);
        assert_eq!(labels.with(two, call(0, 0)), both);
        assert_eq!(labels.join(both, one), both);
        assert!(labels.is_within(one, both) && !labels.is_within(both, one));
    }

    #[test]
    fn more_than_a_word_of_events_fit() {
        let mut labels = Labels::new(1);
        let many = (0..100).fold(NOTHING, |label, number| labels.with(label, call(0, number)));
        let last = labels.with(NOTHING, call(0, 99));
        assert!(labels.is_within(last, many));
        assert!(labels.agrees(last, 0, many));
        assert!(!labels.agrees(many, 0, last));
    }

    #[test]
    fn only_what_happened_to_the_node_itself_must_agree() {
        let mut labels = Labels::new(2);
        let theirs = labels.with(NOTHING, call(1, 0));
        let mine = labels.with(theirs, call(0, 0));
        assert!(labels.agrees(theirs, 0, NOTHING));
        assert!(!labels.agrees(mine, 0, theirs));
        assert!(labels.agrees(mine, 0, mine));
    }

    #[test]
    fn a_history_covers_another_only_if_the_same_happened_to_its_node() {
        let mut labels = Labels::new(2);
        let theirs = labels.with(NOTHING, call(1, 0));
        let mine = labels.with(NOTHING, call(0, 0));
        assert!(labels.covers(0, NOTHING, theirs));
        assert!(!labels.covers(0, theirs, NOTHING));
        assert!(!labels.covers(0, NOTHING, mine));
    }
}
