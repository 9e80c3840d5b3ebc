//! Models and actors of a few states each.

use std::borrow::Cow;

use stateright::actor::{Actor, Id, Out, model_timeout};
use stateright::{Model, Property};

/// Ticks and tocks, and may begin with either.
pub struct Clock;

impl Model for Clock {
    type State = bool;
    type Action = bool;

    fn init_states(&self) -> Vec<bool> {
        vec![false, true]
    }

    fn actions(&self, high: &bool, actions: &mut Vec<bool>) {
        actions.push(!high);
    }

    fn next_state(&self, _: &bool, to: bool) -> Option<bool> {
        Some(to)
    }
}

/// Looks for two bytes with `factors.0 * x + factors.1 * y = sum`, in wrapping arithmetic.
pub struct Equation {
    pub factors: (u8, u8),
    pub sum: u8,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Raise {
    X,
    Y,
}

impl Model for Equation {
    type State = (u8, u8);
    type Action = Raise;

    fn init_states(&self) -> Vec<(u8, u8)> {
        vec![(0, 0)]
    }

    fn actions(&self, _: &(u8, u8), actions: &mut Vec<Raise>) {
        actions.extend([Raise::X, Raise::Y]);
    }

    fn next_state(&self, &(x, y): &(u8, u8), raise: Raise) -> Option<(u8, u8)> {
        Some(match raise {
            Raise::X => (x.wrapping_add(1), y),
            Raise::Y => (x, y.wrapping_add(1)),
        })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::sometimes(
            "solvable",
            |model: &Self, &(x, y): &(u8, u8)| {
                let (a, b) = model.factors;
                a.wrapping_mul(x).wrapping_add(b.wrapping_mul(y)) == model.sum
            },
        )]
    }
}

/// Two processes that load, then run and pause for ever.
pub struct Processes;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Process {
    Loading,
    Running,
    Paused,
}

impl Model for Processes {
    type State = [Process; 2];
    type Action = usize;

    fn init_states(&self) -> Vec<[Process; 2]> {
        vec![[Process::Loading; 2]]
    }

    fn actions(&self, _: &[Process; 2], actions: &mut Vec<usize>) {
        actions.extend([0, 1]);
    }

    fn next_state(&self, state: &[Process; 2], which: usize) -> Option<[Process; 2]> {
        let mut next = *state;
        next[which] = match state[which] {
            Process::Running => Process::Paused,
            Process::Loading | Process::Paused => Process::Running,
        };
        Some(next)
    }
}

/// An actor that does nothing but set a timer, and nothing when it runs out.
#[derive(Clone)]
pub struct Sleeper;

impl Actor for Sleeper {
    type Msg = ();
    type State = ();
    type Timer = ();
    type Random = ();
    type Storage = ();

    fn on_start(&self, _: Id, _: &Option<()>, out: &mut Out<Self>) {
        out.set_timer((), model_timeout());
    }
}

/// An actor that does nothing at all.
#[derive(Clone)]
pub struct Idler;

impl Actor for Idler {
    type Msg = ();
    type State = ();
    type Timer = ();
    type Random = ();
    type Storage = ();

    fn on_start(&self, _: Id, _: &Option<()>, _: &mut Out<Self>) {}
}

/// Throws a die with this many sides, once.
pub struct Die(pub u8);

impl Actor for Die {
    type Msg = ();
    type State = Option<u8>;
    type Timer = ();
    type Random = u8;
    type Storage = ();

    fn on_start(&self, _: Id, _: &Option<()>, out: &mut Out<Self>) -> Option<u8> {
        out.choose_random("throw", (1..=self.0).collect());
        None
    }

    fn on_random(&self, _: Id, thrown: &mut Cow<'_, Option<u8>>, side: &u8, _: &mut Out<Self>) {
        *thrown = Cow::Owned(Some(*side));
    }
}

/// Notes its choices: `a` for one, `b` or `c` for the other. With `a`, the other becomes `c`, and is open once more if
/// it was made already.
pub struct Rethinker;

impl Actor for Rethinker {
    type Msg = ();
    type State = String;
    type Timer = ();
    type Random = char;
    type Storage = ();

    fn on_start(&self, _: Id, _: &Option<()>, out: &mut Out<Self>) -> String {
        out.choose_random("one", vec!['a']);
        out.choose_random("other", vec!['b', 'c']);
        String::new()
    }

    fn on_random(&self, _: Id, chosen: &mut Cow<'_, String>, letter: &char, out: &mut Out<Self>) {
        if *letter == 'a' {
            out.choose_random("other", vec!['c']);
        }
        chosen.to_mut().push(*letter);
    }
}

/// Actor 0 sends actor 1 a 2 and then a 1; whoever gets something notes it, but for `ignored`.
#[derive(Clone)]
pub struct Countdown {
    pub ignored: Option<u8>,
}

impl Actor for Countdown {
    type Msg = u8;
    type State = Vec<u8>;
    type Timer = ();
    type Random = ();
    type Storage = ();

    fn on_start(&self, me: Id, _: &Option<()>, out: &mut Out<Self>) -> Vec<u8> {
        if usize::from(me) == 0 {
            out.send(1.into(), 2);
            out.send(1.into(), 1);
        }
        Vec::new()
    }

    fn on_msg(&self, _: Id, got: &mut Cow<'_, Vec<u8>>, _: Id, number: u8, _: &mut Out<Self>) {
        if self.ignored != Some(number) {
            got.to_mut().push(number);
        }
    }
}

/// Counts to `limit` on its timer, in memory and on disk.
#[derive(Clone)]
pub struct Diarist {
    pub limit: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Counts {
    pub since_start: u8,
    pub in_all: u8,
}

impl Actor for Diarist {
    type Msg = ();
    type State = Counts;
    type Timer = &'static str;
    type Random = ();
    type Storage = u8;

    fn on_start(&self, _: Id, saved: &Option<u8>, out: &mut Out<Self>) -> Counts {
        out.set_timer("count", model_timeout());
        Counts {
            since_start: 0,
            in_all: saved.unwrap_or(0),
        }
    }

    fn on_timeout(
        &self,
        _: Id,
        counts: &mut Cow<'_, Counts>,
        _: &&'static str,
        out: &mut Out<Self>,
    ) {
        let counts = counts.to_mut();
        counts.since_start += 1;
        counts.in_all += 1;
        out.save(counts.in_all);
        if counts.in_all < self.limit {
            out.set_timer("count", model_timeout());
        }
    }
}
