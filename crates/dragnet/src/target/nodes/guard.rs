//! The guard against handlers that are not deterministic: they run twice on equal states, and what they did is compared.

use std::fmt::{Debug, Write};

use super::context::Context;
use super::local::Local;
use crate::panics;
use crate::system::{Failure, FailureKind};
use crate::trace::debug;

/// What one run of a handler did: the state after it, unless it panicked, and what is in its context.
pub(super) type Run<S, M> = (Option<Local<S>>, Context<M>);

/// How two series of runs differ, one run for each combination of choices; `None` when they do not.
pub(super) fn difference<S, M>(first: &[Run<S, M>], second: &[Run<S, M>]) -> Option<Difference>
where
    S: Eq + Debug,
    M: Eq + Debug,
{
    let runs = first.iter().zip(second);
    let different = runs
        .map(|(first, second)| between(first, second))
        .find(|difference| !difference.is_none());
    let choices = |runs: &[Run<S, M>]| match runs.len() {
        1 => "it does one thing".to_owned(),
        ways => format!("it chooses between {ways} things to do"),
    };
    different.or_else(|| {
        (first.len() != second.len()).then(|| Difference {
            first: vec![choices(first)],
            second: vec![choices(second)],
        })
    })
}

/// What differed, a phrase for each part, the one time and the other.
#[derive(Default)]
pub(super) struct Difference {
    first: Vec<String>,
    second: Vec<String>,
}

impl Difference {
    fn is_none(&self) -> bool {
        self.first.is_empty()
    }

    /// Compares two values, in which `Of` is what the program itself compares.
    fn add<Of, T: PartialEq>(&mut self, first: &T, second: &T, show: impl Fn(&T) -> String) {
        let differ = panics::catch_in::<Of, _>("Eq", || first != second);
        if differ.unwrap_or_else(|failure| panics::raise(failure)) {
            self.first.push(show(first));
            self.second.push(show(second));
        }
    }

    /// The failure with which a check of such a node ends.
    pub(super) fn failure(&self, node: &str, input: &str) -> Failure {
        let mut text = format!("{node} is not deterministic\n");
        let lines = [
            ("input", input.to_owned()),
            ("once", self.first.join("; ")),
            ("again", self.second.join("; ")),
            ("causes", CAUSES.to_owned()),
        ];
        for (label, line) in lines {
            let _ = writeln!(text, "  {label:<8} {line}");
        }
        Failure::new(
            FailureKind::Nondeterminism,
            text.trim_end().to_owned(),
            None,
        )
    }
}

const CAUSES: &str = "usually the iteration order of a HashMap or HashSet, a clock, random numbers, or a static that \
                      remembers earlier runs";

fn between<S, M>((after, cx): &Run<S, M>, (other, other_cx): &Run<S, M>) -> Difference
where
    S: Eq + Debug,
    M: Eq + Debug,
{
    let mut difference = Difference::default();
    difference.add::<S, _>(after, other, |local| {
        let state = local.as_ref().and_then(Local::state);
        match (state, local) {
            (Some(state), _) => format!("its state is {}", debug(state)),
            (None, Some(local)) => format!("it is {}", debug(local)),
            (None, None) => "it has no state".to_owned(),
        }
    });
    difference.add::<M, _>(&cx.sent, &other_cx.sent, |sent| {
        let sent: Vec<String> = sent
            .iter()
            .map(|(to, msg)| format!("{} to {to}", debug(msg)))
            .collect();
        match &sent[..] {
            [] => "it sends nothing".to_owned(),
            sent => format!("it sends {}", sent.join(", ")),
        }
    });
    difference.add::<M, _>(&cx.answers, &other_cx.answers, |answers| {
        format!("it answers {}", debug(answers))
    });
    difference.add::<String, _>(&cx.observations, &other_cx.observations, |observed| {
        format!("it observes {}", observed.join(", "))
    });
    difference.add::<Failure, _>(&cx.failure, &other_cx.failure, |failure| match failure {
        Some(failure) => format!("it fails ({failure})"),
        None => "it does not fail".to_owned(),
    });
    difference
}
