//! Systems under a name, with parameters to set and bugs to turn on: what a command line offers.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::panic::{self, AssertUnwindSafe};

use thiserror::Error;

pub use crate::check::AnyCheck;
use crate::target::nodes::Faults;

/// A named system with parameters and seeded bugs.
///
/// ```
/// use dragnet::catalog::{Entry, Selection};
/// use dragnet::{Check, Cluster, Context, Faults, Node, NodeId};
///
/// struct Counter { limit: u8 }
///
/// impl Node for Counter {
///     type State = u8;
///     type Msg = ();
///
///     fn on_start(&self, cx: &mut Context<()>) -> u8 {
///         cx.broadcast(());
///         0
///     }
///
///     fn on_message(&self, count: &mut u8, _: NodeId, _: (), _: &mut Context<()>) {
///         *count = (*count + 1).min(self.limit);
///     }
/// }
///
/// let entry = Entry::new("counter", "nodes that count greetings", |setup| {
///     let limit = if setup.has_bug("off-by-one") { 4 } else { 3 };
///     Check::new(Cluster::new(setup.number("nodes"), |_| Counter { limit }))
///         .always("nobody counts beyond three", |s| s.nodes().all(|&count| count <= 3))
/// })
/// .parameter("nodes", 3, 1..=5, "how many there are")
/// .bug("off-by-one", "counts one too far", |bug| bug.set("nodes", 4));
///
/// let buggy = Selection::of(&entry).with_bug("off-by-one").unwrap();
/// assert!(!entry.check(&buggy).unwrap().run_under(&Default::default()).holds());
/// ```
pub struct Entry {
    name: &'static str,
    summary: &'static str,
    parameters: Vec<Parameter>,
    bugs: Vec<Bug>,
    faults: Faults,
    build: Build,
}

type Build = Box<dyn Fn(&Setup<'_>) -> Box<dyn AnyCheck>>;

/// Something that a system can be set up with.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// How it is called.
    pub name: &'static str,
    /// What it is when nobody sets it.
    pub default: Value,
    /// What it can be set to.
    pub values: Values,
    /// What it means.
    pub summary: &'static str,
}

/// What a parameter is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(u64),
    /// One of several names.
    Choice(&'static str),
}

/// What a parameter can be set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// A whole number in a range.
    Numbers(RangeInclusive<u64>),
    /// One of these names.
    Choices(Vec<&'static str>),
}

impl Values {
    /// Whether this is one of them.
    pub fn contains(&self, value: Value) -> bool {
        match (self, value) {
            (Self::Numbers(range), Value::Number(number)) => range.contains(&number),
            (Self::Choices(names), Value::Choice(name)) => names.contains(&name),
            _ => false,
        }
    }

    fn parse(&self, text: &str) -> Option<Value> {
        match self {
            Self::Numbers(range) => {
                let number = text.parse().ok()?;
                range.contains(&number).then_some(Value::Number(number))
            }
            Self::Choices(names) => {
                let name = names.iter().find(|name| **name == text)?;
                Some(Value::Choice(name))
            }
        }
    }
}

impl Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numbers(range) => write!(f, "{} to {}", range.start(), range.end()),
            Self::Choices(names) => f.write_str(&names.join(", ")),
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&'static str> for Value {
    fn from(name: &'static str) -> Self {
        Self::Choice(name)
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => Display::fmt(number, f),
            Self::Choice(name) => Display::fmt(name, f),
        }
    }
}

/// A mistake that can be turned on, with the parameters and faults that it needs to show.
#[derive(Clone, Debug)]
pub struct Bug {
    /// How it is called.
    pub name: &'static str,
    /// What is wrong.
    pub summary: &'static str,
    /// The parameters that it needs, unless somebody sets them otherwise.
    pub parameters: Vec<(&'static str, Value)>,
    /// The faults that it needs, unless somebody sets them otherwise.
    pub faults: Faults,
}

impl Bug {
    /// The bug needs this value of a parameter.
    pub fn set(mut self, parameter: &'static str, value: impl Into<Value>) -> Self {
        self.parameters.push((parameter, value.into()));
        self
    }

    /// The bug needs these faults.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = self.faults.and(faults);
        self
    }
}

/// Something that was asked of a catalogue and is not there.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SelectionError {
    /// There is no such system.
    #[error("there is no system `{name}`; choose one of {}", known.join(", "))]
    NoSuchSystem {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The system has no such parameter.
    #[error("{system} has no parameter `{name}`; {}", choices("it has", known))]
    NoSuchParameter {
        /// The system.
        system: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The parameter cannot be set to this.
    #[error("{parameter} cannot be `{value}`; it is {}", demand(values))]
    BadValue {
        /// The parameter.
        parameter: String,
        /// What was given.
        value: String,
        /// What it can be.
        values: Values,
    },
    /// What was selected does not fit together.
    #[error("{system} cannot be checked like this: {objection}")]
    Unfit {
        /// The system.
        system: String,
        /// Why not.
        objection: String,
    },
    /// The system has no such bug.
    #[error("{system} has no bug `{name}`; {}", choices("it has", known))]
    NoSuchBug {
        /// The system.
        system: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Faults cannot happen to this system.
    #[error("{system} is a direct system: it has no network and no nodes for faults to happen to")]
    NoFaults {
        /// The system.
        system: String,
    },
}

fn demand(values: &Values) -> String {
    match values {
        Values::Numbers(_) => format!("a whole number from {values}"),
        Values::Choices(_) => format!("one of {values}"),
    }
}

fn choices(verb: &str, known: &[String]) -> String {
    if known.is_empty() {
        format!("{verb} none")
    } else {
        format!("{verb} {}", known.join(", "))
    }
}

/// What was chosen of an entry: parameters, a bug, faults.
#[derive(Clone, Debug)]
pub struct Selection<'e> {
    entry: EntryRef<'e>,
    set: Vec<(&'static str, Value)>,
    bug: Option<usize>,
    faults: Faults,
}

#[derive(Clone, Copy)]
struct EntryRef<'e>(&'e Entry);

impl fmt::Debug for EntryRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl<'e> Selection<'e> {
    /// The entry as it is: default parameters, no bug, its own faults.
    pub fn of(entry: &'e Entry) -> Self {
        Self {
            entry: EntryRef(entry),
            set: Vec::new(),
            bug: None,
            faults: Faults::none(),
        }
    }

    /// Sets a parameter, from text.
    pub fn with(mut self, name: &str, value: &str) -> Result<Self, SelectionError> {
        let entry = self.entry.0;
        let parameter = entry
            .parameters
            .iter()
            .find(|parameter| parameter.name == name)
            .ok_or_else(|| SelectionError::NoSuchParameter {
                system: entry.name.to_owned(),
                name: name.to_owned(),
                known: entry.parameters.iter().map(|p| p.name.to_owned()).collect(),
            })?;
        let value = parameter
            .values
            .parse(value)
            .ok_or_else(|| SelectionError::BadValue {
                parameter: name.to_owned(),
                value: value.to_owned(),
                values: parameter.values.clone(),
            })?;
        self.set.push((parameter.name, value));
        Ok(self)
    }

    /// Turns on a bug, with the parameters and faults that it needs.
    pub fn with_bug(mut self, name: &str) -> Result<Self, SelectionError> {
        let entry = self.entry.0;
        let bug = entry.bugs.iter().position(|bug| bug.name == name);
        self.bug = Some(bug.ok_or_else(|| SelectionError::NoSuchBug {
            system: entry.name.to_owned(),
            name: name.to_owned(),
            known: entry.bugs.iter().map(|bug| bug.name.to_owned()).collect(),
        })?);
        Ok(self)
    }

    /// Sets fault budgets.
    pub fn with_faults(mut self, faults: Faults) -> Self {
        self.faults = self.faults.and(faults);
        self
    }

    /// The bug that is turned on.
    pub fn bug(&self) -> Option<&'e Bug> {
        self.bug.map(|bug| &self.entry.0.bugs[bug])
    }

    /// Every parameter with its value: as set, else as the bug needs it, else the default.
    pub fn parameters(&self) -> Vec<(&'static str, Value)> {
        let needed = self.bug().map_or(&[][..], |bug| &bug.parameters);
        let find = |list: &[(&'static str, Value)], name| {
            list.iter()
                .rev()
                .find(|(known, _)| *known == name)
                .map(|&(_, value)| value)
        };
        let value = |parameter: &Parameter| {
            find(&self.set, parameter.name)
                .or_else(|| find(needed, parameter.name))
                .unwrap_or(parameter.default)
        };
        let parameters = self.entry.0.parameters.iter();
        parameters
            .map(|parameter| (parameter.name, value(parameter)))
            .collect()
    }

    /// The fault budgets: as set, else as the bug needs them, else the entry's own.
    pub fn faults(&self) -> Faults {
        let needed = self.bug().map_or(Faults::none(), |bug| bug.faults);
        self.entry.0.faults.and(needed).and(self.faults)
    }
}

/// What a system is built from.
#[derive(Debug)]
pub struct Setup<'s> {
    parameters: &'s [(&'static str, Value)],
    bug: Option<&'static str>,
}

/// Why a set-up ended.
struct Objection(String);

impl Setup<'_> {
    /// The value of a parameter, in whatever number type is wanted.
    ///
    /// # Panics
    /// When the entry declares no such number, or its range does not fit the type.
    pub fn number<T: TryFrom<u64>>(&self, name: &str) -> T {
        let Value::Number(number) = self.value(name) else {
            panic!("the entry declares `{name}` as a choice, not as a number");
        };
        T::try_from(number)
            .unwrap_or_else(|_| panic!("the range of `{name}` allows {number}, its type does not"))
    }

    /// Which of its names a parameter has been set to.
    ///
    /// # Panics
    /// When the entry declares no such choice.
    pub fn choice(&self, name: &str) -> &'static str {
        let Value::Choice(choice) = self.value(name) else {
            panic!("the entry declares `{name}` as a number, not as a choice");
        };
        choice
    }

    fn value(&self, name: &str) -> Value {
        self.parameters
            .iter()
            .find(|(known, _)| *known == name)
            .unwrap_or_else(|| panic!("the entry declares no parameter `{name}`"))
            .1
    }

    /// Ends the set-up unless `fits`, and says why in a phrase such as "there are more proposers than nodes": for
    /// parameters that do not go together.
    pub fn require(&self, fits: bool, otherwise: &str) {
        if !fits {
            panic::resume_unwind(Box::new(Objection(otherwise.to_owned())));
        }
    }

    /// Whether this bug is turned on.
    pub fn has_bug(&self, name: &str) -> bool {
        self.bug == Some(name)
    }
}

impl Entry {
    /// A system called `name` that `build` sets up: a [`Check`](crate::Check), or a `Box<dyn AnyCheck>` where its type depends on the
    /// set-up.
    pub fn new<C>(
        name: &'static str,
        summary: &'static str,
        build: impl Fn(&Setup<'_>) -> C + 'static,
    ) -> Self
    where
        C: Into<Box<dyn AnyCheck>>,
    {
        Self {
            name,
            summary,
            parameters: Vec::new(),
            bugs: Vec::new(),
            faults: Faults::none(),
            build: Box::new(move |setup| build(setup).into()),
        }
    }

    /// Adds a parameter that is a number.
    pub fn parameter(
        mut self,
        name: &'static str,
        default: u64,
        range: RangeInclusive<u64>,
        summary: &'static str,
    ) -> Self {
        self.parameters.push(Parameter {
            name,
            default: Value::Number(default),
            values: Values::Numbers(range),
            summary,
        });
        self
    }

    /// Adds a parameter that is one of several names, the first of them unless somebody chooses otherwise.
    ///
    /// ```
    /// use dragnet::catalog::{AnyCheck, Entry, Selection};
    /// use dragnet::{Check, Cluster, Context, Node, NodeId};
    ///
    /// # struct Quiet;
    /// # impl Node for Quiet {
    /// #     type State = u8;
    /// #     type Msg = ();
    /// #     fn on_start(&self, _: &mut Context<()>) -> u8 { 0 }
    /// #     fn on_message(&self, _: &mut u8, _: NodeId, _: (), _: &mut Context<()>) {}
    /// # }
    /// let entry = Entry::new("quiet", "nodes that say nothing", |setup| -> Box<dyn AnyCheck> {
    ///     match setup.choice("size") {
    ///         "small" => Check::new(Cluster::new(1, |_| Quiet)).into(),
    ///         _ => Check::new(Cluster::new(2, |_| Quiet)).into(),
    ///     }
    /// })
    /// .choice("size", ["small", "large"], "how many there are");
    ///
    /// assert!(Selection::of(&entry).with("size", "large").is_ok());
    /// let error = Selection::of(&entry).with("size", "huge").unwrap_err();
    /// assert_eq!(error.to_string(), "size cannot be `huge`; it is one of small, large");
    /// ```
    pub fn choice<const N: usize>(
        mut self,
        name: &'static str,
        names: [&'static str; N],
        summary: &'static str,
    ) -> Self {
        const { assert!(N > 0, "there is something to choose from") };
        self.parameters.push(Parameter {
            name,
            default: Value::Choice(names[0]),
            values: Values::Choices(names.to_vec()),
            summary,
        });
        self
    }

    /// Adds a bug; `needs` says which parameters and faults it takes to show.
    ///
    /// # Panics
    /// When it needs a parameter that has not been declared before, or a value outside its range.
    #[track_caller]
    pub fn bug(
        mut self,
        name: &'static str,
        summary: &'static str,
        needs: impl FnOnce(Bug) -> Bug,
    ) -> Self {
        let bug = needs(Bug {
            name,
            summary,
            parameters: Vec::new(),
            faults: Faults::none(),
        });
        for (parameter, value) in &bug.parameters {
            let declared = self
                .parameters
                .iter()
                .find(|known| known.name == *parameter);
            assert!(
                declared.is_some_and(|known| known.values.contains(*value)),
                "the bug `{name}` needs {parameter}={value}, which {} does not allow",
                self.name
            );
        }
        self.bugs.push(bug);
        self
    }

    /// The faults that happen to the system unless somebody says otherwise.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it is, in a line.
    pub fn summary(&self) -> &'static str {
        self.summary
    }

    /// Its parameters.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Its bugs.
    pub fn bugs(&self) -> &[Bug] {
        &self.bugs
    }

    /// The faults that happen to it unless somebody says otherwise.
    pub fn own_faults(&self) -> Faults {
        self.faults
    }

    /// Sets the system up as selected.
    pub fn check(&self, selection: &Selection<'_>) -> Result<Box<dyn AnyCheck>, SelectionError> {
        let parameters = selection.parameters();
        let setup = Setup {
            parameters: &parameters,
            bug: selection.bug().map(|bug| bug.name),
        };
        let unfit = |objection| SelectionError::Unfit {
            system: self.name.to_owned(),
            objection,
        };
        let built = panic::catch_unwind(AssertUnwindSafe(|| (self.build)(&setup)));
        let mut check = built.map_err(|payload| match payload.downcast::<Objection>() {
            Ok(objection) => unfit(objection.0),
            Err(panic) => panic::resume_unwind(panic),
        })?;
        check.set_name(self.name.to_owned());
        let faults = selection.faults();
        if faults != Faults::none() && !check.add_faults(faults) {
            return Err(SelectionError::NoFaults {
                system: self.name.to_owned(),
            });
        }
        match check.objection() {
            Some(objection) => Err(unfit(objection)),
            None => Ok(check),
        }
    }
}

impl Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.summary)
    }
}

/// Finds an entry by its name.
pub fn find<'e>(entries: &'e [Entry], name: &str) -> Result<&'e Entry, SelectionError> {
    entries
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| SelectionError::NoSuchSystem {
            name: name.to_owned(),
            known: entries.iter().map(|entry| entry.name.to_owned()).collect(),
        })
}
