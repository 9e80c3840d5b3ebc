//! Steps that come again and again: in print they are told twice, the first time and the last.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::trace::Step;

/// Steps in a row that come again at once, several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turns {
    /// How many steps a turn has.
    pub(super) steps: usize,
    /// How many turns there are between the first and the last.
    pub(super) between: usize,
    /// Whether they differ in nothing, not even in numbers.
    pub(super) are_same: bool,
}

/// Longer turns are not looked for,
const LONGEST: usize = 256;
/// and fewer steps than these are not left out.
const FEWEST: usize = 8;

/// The steps of an execution, to look for turns among them.
pub(super) struct Telling<'a> {
    steps: &'a [&'a Step],
    /// A hash of each step, but for numbers in it.
    hashes: Vec<u64>,
}

impl<'a> Telling<'a> {
    pub(super) fn new(steps: &'a [&'a Step]) -> Self {
        let hashes = steps.iter().map(|step| without_numbers(step)).collect();
        Self { steps, hashes }
    }

    /// The turns that begin with a step, if enough of them do to leave some out: those that cover most.
    pub(super) fn turns_at(&self, first: usize) -> Option<Turns> {
        let here = &self.hashes[first..];
        let covered = |steps: usize| {
            let again = here.iter().zip(&here[steps..]);
            let alike = again.take_while(|(one, other)| one == other).count();
            match alike / steps {
                0 => 0,
                again => (again + 1) * steps,
            }
        };
        let lengths = 1..=LONGEST.min(here.len() / 3);
        let steps = lengths.rev().max_by_key(|&steps| covered(steps))?;
        let all = covered(steps);
        let between = (all / steps).checked_sub(2)?;
        let turns = self.steps[first..first + all].chunks(steps);
        (between * steps >= FEWEST).then(|| Turns {
            steps,
            between,
            are_same: turns
                .clone()
                .zip(turns.skip(1))
                .all(|(one, other)| one == other),
        })
    }
}

fn without_numbers(step: &Step) -> u64 {
    let mut hasher = DefaultHasher::new();
    step.component.hash(&mut hasher);
    for list in [&step.changed, &step.sent, &step.notes] {
        list.len().hash(&mut hasher);
    }
    let lists = step.changed.iter().chain(&step.sent).chain(&step.notes);
    for line in lists.chain([&step.action]) {
        let mut before = ' ';
        for letter in line.chars() {
            // What follows a colon is a line of the source.
            let is_digit = letter.is_ascii_digit();
            if !is_digit || before == ':' {
                letter.hash(&mut hasher);
            }
            if !is_digit {
                before = letter;
            }
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(actions: &[String]) -> Vec<Step> {
        let step = |action: &String| Step {
            action: action.clone(),
            ..Step::default()
        };
        actions.iter().map(step).collect()
    }

    fn turns_at(actions: &[String], first: usize) -> Option<Turns> {
        let steps = steps(actions);
        let steps: Vec<&Step> = steps.iter().collect();
        Telling::new(&steps).turns_at(first)
    }

    #[test]
    fn what_comes_again_is_found_in_the_shortest_turns() {
        let mut actions = vec!["begins".to_owned()];
        for _ in 0..10 {
            actions.extend(["looks".to_owned(), "yields".to_owned()]);
        }
        actions.push("looks".to_owned());
        let turns = Turns {
            steps: 2,
            between: 8,
            are_same: true,
        };
        assert_eq!(turns_at(&actions, 0), None);
        assert_eq!(turns_at(&actions, 1), Some(turns));
    }

    #[test]
    fn numbers_may_differ() {
        let actions: Vec<String> = (0..20).map(|n| format!("adds 1 to {n}")).collect();
        let turns = turns_at(&actions, 0).unwrap();
        assert_eq!((turns.steps, turns.between), (1, 18));
        assert!(!turns.are_same);
    }

    #[test]
    fn places_may_not() {
        let actions: Vec<String> = (0..20).map(|n| format!("looks at main.rs:{n}")).collect();
        assert_eq!(turns_at(&actions, 0), None);
    }

    #[test]
    fn a_few_steps_are_told_one_by_one() {
        let actions = vec!["looks".to_owned(); 9];
        assert_eq!(turns_at(&actions, 0), None);
    }
}
