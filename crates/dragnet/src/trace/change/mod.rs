//! What changed between two values, told from their `Debug` text.
//!
//! It works from text because nothing but `Debug` is asked of a user's state: no derive of ours, no `Serialize`, no
//! visitor to write before the first counterexample can be read. The compact `{:?}` of derived code and of the
//! standard collections is regular enough to be taken apart again; what a hand-written `Debug` prints may be anything,
//! so whatever does not parse counts as one leaf, and is shown whole.
//!
//! The tree is never built: a text is taken apart one level at a time, and only where the two texts differ.
//!
//! Invariant: texts that differ give at least one line, and equal texts give none.

use std::collections::VecDeque;
use std::fmt::Debug;

use super::debug;

/// Nesting beyond this is not taken apart, which bounds the stack whatever the text.
const MAX_DEPTH: usize = 64;
/// A tuple or variant up to this long reads better whole than as `accepted.0: 1 → 2`.
const SHORT: usize = 60;
/// A collection of plain values with more changes than this is shown whole.
const MANY: usize = 8;
/// How many characters of a value, and of a key in a path, a line shows.
const VALUE_WIDTH: usize = 160;
const KEY_WIDTH: usize = 40;
/// What is left of a shared beginning, where two long values differ only in what shortening hides.
const CONTEXT: usize = 20;

/// What changed from `before` to `after`: one short line for each part that differs.
pub(crate) fn between<T: Debug>(before: &T, after: &T) -> Vec<String> {
    between_texts(&debug(before), &debug(after))
}

fn between_texts(before: &str, after: &str) -> Vec<String> {
    let mut changes = Changes::default();
    changes.compare("", before, after);
    changes.lines
}

#[derive(Default)]
struct Changes {
    lines: Vec<String>,
    depth: usize,
}

impl Changes {
    fn compare(&mut self, path: &str, before: &str, after: &str) {
        if before == after {
            return;
        }
        let told = self.lines.len();
        if self.depth < MAX_DEPTH {
            self.depth += 1;
            self.compare_parts(path, before, after);
            self.depth -= 1;
        }
        // The parts may have nothing to tell: no parts, parts that do not match up, or the same parts in another order.
        if self.lines.len() == told {
            let (before, after) = shorten_apart(before, after);
            self.tell(path, &format!("{before} → {after}"));
        }
    }

    fn compare_parts(&mut self, path: &str, before: &str, after: &str) {
        let told = self.lines.len();
        let (old, new) = (Shape::of(before), Shape::of(after));
        match (&old, &new) {
            (Shape::Struct(name, old), Shape::Struct(new_name, new))
                if name == new_name && old.iter().map(|f| f.0).eq(new.iter().map(|f| f.0)) =>
            {
                for ((field, old), (_, new)) in old.iter().zip(new) {
                    let dot = if path.is_empty() { "" } else { "." };
                    self.compare(&format!("{path}{dot}{field}"), old, new);
                }
            }
            (Shape::Tuple(name, old), Shape::Tuple(new_name, new))
                if name == new_name
                    && old.len() == new.len()
                    && before.len().max(after.len()) > SHORT =>
            {
                self.compare_tuples(path, old, new);
            }
            (Shape::List(old), Shape::List(new)) => self.compare_lists(path, old, new),
            (Shape::Braces(name, old), Shape::Braces(new_name, new)) if name == new_name => {
                self.compare_entries(path, old, new);
            }
            _ => {}
        }
        if self.lines.len() - told > MANY && old.is_plain_collection() && new.is_plain_collection()
        {
            self.lines.truncate(told);
        }
    }

    fn compare_tuples(&mut self, path: &str, before: &[&str], after: &[&str]) {
        match (before, after) {
            // A wrapper such as `Some` adds nothing to a path. Around a leaf, though, it is half of what there is to see.
            ([old], [new]) if is_leaf(old) && is_leaf(new) => {}
            ([old], [new]) => self.compare(path, old, new),
            _ => {
                for (index, (old, new)) in before.iter().zip(after).enumerate() {
                    self.compare(&format!("{path}.{index}"), old, new);
                }
            }
        }
    }

    fn compare_lists(&mut self, path: &str, before: &[&str], after: &[&str]) {
        let head = shared(before.iter(), after.iter());
        let (old, new) = (&before[head..], &after[head..]);
        let tail = shared(old.iter().rev(), new.iter().rev());
        let same_length = old.len() == new.len();
        let differing = old.iter().zip(new).filter(|(old, new)| old != new).count();
        let at_head = format!("{path}[{head}]");

        if old.len() == tail {
            let appended = tail == 0;
            let place = if appended { path } else { &at_head };
            self.tell_each(place, '+', &new[..new.len() - tail]);
        } else if new.len() == tail {
            let at_an_end = head == 0 || tail == 0;
            let place = if at_an_end { path } else { &at_head };
            self.tell_each(place, '-', &old[..old.len() - tail]);
        } else if let Some(taken) = taken_before_appending(old, new)
            // In place, unless that takes more lines: a slot may come to hold what its neighbour holds, and counters
            // that all tick look like numbers that move up. Structured values nearer to the front did move: a message
            // left the queue, and another joined it.
            && (!same_length || (differing >= 2 * taken && !is_leaf(old[taken])))
        {
            let place = if head == 0 { path } else { &at_head };
            self.tell_each(place, '-', &old[..taken]);
            self.tell_each(path, '+', &new[old.len() - taken..]);
        } else if same_length {
            for (index, (old, new)) in before.iter().zip(after).enumerate() {
                self.compare(&format!("{path}[{index}]"), old, new);
            }
        }
    }

    fn compare_entries(&mut self, path: &str, before: &[Entry], after: &[Entry]) {
        // Entries mostly stand in the same order, so each is found, and taken out, near the front.
        let mut added: VecDeque<&Entry> = after.iter().collect();
        for old in before {
            let same_key = |new: &&Entry| new.key == old.key && new.is_pair() == old.is_pair();
            let found = added.iter().position(same_key);
            match found.and_then(|at| added.remove(at)) {
                Some(new) => self.compare(&new.place(path), old.content(), new.content()),
                None => self.tell_each(&old.place(path), '-', &[old.content()]),
            }
        }
        for new in added {
            self.tell_each(&new.place(path), '+', &[new.content()]);
        }
    }

    fn tell_each(&mut self, path: &str, sign: char, values: &[&str]) {
        for value in values {
            self.tell(path, &format!("{sign} {}", shorten(value, VALUE_WIDTH)));
        }
    }

    fn tell(&mut self, path: &str, what: &str) {
        let colon = if path.is_empty() { "" } else { ": " };
        self.lines.push(format!("{path}{colon}{what}"));
    }
}

/// One level of a text, taken apart; the parts are still text.
enum Shape<'a> {
    Leaf,
    /// A struct or struct variant: its name, and its fields with their values.
    Struct(&'a str, Vec<(&'a str, &'a str)>),
    /// A tuple, tuple struct or tuple variant: its name, empty for a plain tuple, and its items.
    Tuple(&'a str, Vec<&'a str>),
    List(Vec<&'a str>),
    /// A set or a map, one shape since `{}` may be either: its name, empty but in hand-written text, and its entries.
    Braces(&'a str, Vec<Entry<'a>>),
}

/// An element of a set, or a key of a map with its value.
struct Entry<'a> {
    key: &'a str,
    value: Option<&'a str>,
}

impl<'a> Shape<'a> {
    fn of(text: &'a str) -> Self {
        Self::parse(text).unwrap_or(Self::Leaf)
    }

    fn parse(text: &'a str) -> Option<Self> {
        let open = text.find(['(', '[', '{'])?;
        let name = text[..open].trim_end();
        if !name
            .chars()
            .all(|c| is_name(c) || matches!(c, ':' | '<' | '>'))
        {
            return None;
        }
        let inside = &text[open + 1..];
        match &text[open..=open] {
            "(" => Some(Self::Tuple(
                name,
                split(inside.strip_suffix(')')?, |_| true)?,
            )),
            "[" if name.is_empty() => Some(Self::List(split(inside.strip_suffix(']')?, |_| true)?)),
            "{" if !name.is_empty() && field(inside.trim_start()).is_some() => {
                // A comma that no field follows is within a value, as in `PhantomData<Pair<A, B>>`.
                let fields = split(inside.strip_suffix('}')?, |rest| field(rest).is_some())?;
                Some(Self::Struct(
                    name,
                    fields.into_iter().filter_map(field).collect(),
                ))
            }
            "{" => {
                let entries = split(inside.strip_suffix('}')?, |_| true)?;
                Some(Self::Braces(
                    name,
                    entries.into_iter().map(Entry::of).collect(),
                ))
            }
            _ => None,
        }
    }

    /// Whether it is a collection of values that have no parts themselves.
    fn is_plain_collection(&self) -> bool {
        match self {
            Self::List(items) => items.iter().all(|item| is_leaf(item)),
            Self::Braces(_, entries) => entries.iter().all(|entry| is_leaf(entry.content())),
            _ => false,
        }
    }
}

impl<'a> Entry<'a> {
    fn of(text: &'a str) -> Self {
        // Only a colon with a space after it ends a key: the one in `12:30` is part of a leaf.
        let colon = separators(text)
            .unwrap_or_default()
            .into_iter()
            .find(|&at| text[at..].starts_with(": "));
        match colon {
            Some(at) => Self {
                key: text[..at].trim_end(),
                value: Some(text[at + 1..].trim_start()),
            },
            None => Self {
                key: text,
                value: None,
            },
        }
    }

    fn is_pair(&self) -> bool {
        self.value.is_some()
    }

    fn content(&self) -> &'a str {
        self.value.unwrap_or(self.key)
    }

    /// Where a change to it happens: under its key in a map, at the set itself in a set.
    fn place(&self, path: &str) -> String {
        match self.value {
            Some(_) => format!("{path}[{}]", shorten(self.key, KEY_WIDTH)),
            None => path.to_owned(),
        }
    }
}

fn is_leaf(text: &str) -> bool {
    matches!(Shape::of(text), Shape::Leaf)
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The name and the value of a text that reads `name: value`.
fn field(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c| !is_name(c)).filter(|&end| end > 0)?;
    let value = text[end..].strip_prefix(": ")?;
    Some((&text[..end], value.trim()))
}

/// The parts of `body` between its outermost commas, of those commas after which a part `starts`. Nothing if it is
/// not balanced.
fn split(body: &str, starts: impl Fn(&str) -> bool) -> Option<Vec<&str>> {
    let body = body.trim();
    // What a non-exhaustive struct ends with, such as a `Mutex`.
    let body = body.strip_suffix(", ..").unwrap_or(body);
    // What `(1,)` ends with.
    let body = body.strip_suffix(',').unwrap_or(body);
    let commas = separators(body)?;
    if body.is_empty() {
        return Some(Vec::new());
    }
    let mut parts = Vec::new();
    let mut from = 0;
    for at in commas {
        if body[at..].starts_with(',') && starts(body[at + 1..].trim_start()) {
            parts.push(body[from..at].trim());
            from = at + 1;
        }
    }
    parts.push(body[from..].trim());
    Some(parts)
}

/// Where the commas and colons of a text are that no bracket or quotation encloses. Nothing if it is not balanced.
fn separators(text: &str) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    let mut closers = Vec::new();
    let mut at = 0;
    // All that is looked for is ASCII, so each place found is a character boundary.
    while let Some(&byte) = text.as_bytes().get(at) {
        at += match byte {
            b'"' => string_length(&text[at..])?,
            b'\'' => char_length(&text[at..]).unwrap_or(1),
            _ => 1,
        };
        match byte {
            b'(' => closers.push(b')'),
            b'[' => closers.push(b']'),
            b'{' => closers.push(b'}'),
            b')' | b']' | b'}' if closers.pop() != Some(byte) => return None,
            b',' | b':' if closers.is_empty() => found.push(at - 1),
            _ => {}
        }
    }
    closers.is_empty().then_some(found)
}

/// How long the string literal is that `text` begins with.
fn string_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    let end = text[1..].bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })?;
    Some(end + 2)
}

/// How long the character literal is that `text` begins with, unless its `'` is but an apostrophe.
fn char_length(text: &str) -> Option<usize> {
    const LONGEST_ESCAPE: usize = r"u{10ffff}".len();
    let mut chars = text.char_indices().skip(1);
    let (_, first) = chars.next()?;
    let reach = if first == '\\' {
        // The escaped character may itself be a quote.
        chars.next()?;
        LONGEST_ESCAPE
    } else {
        1
    };
    let (end, _) = chars.take(reach).find(|&(_, c)| c == '\'')?;
    Some(end + 1)
}

/// How many items two sequences begin with in common.
fn shared<T: PartialEq>(a: impl Iterator<Item = T>, b: impl Iterator<Item = T>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

/// How many items were taken from the front of `old`, if what is left of it is what `new` begins with.
fn taken_before_appending(old: &[&str], new: &[&str]) -> Option<usize> {
    (1..old.len().min(MANY)).find(|&taken| new.starts_with(&old[taken..]))
}

/// Both texts shortened, such that they still look different.
pub(crate) fn shorten_apart(before: &str, after: &str) -> (String, String) {
    let shown = (shorten(before, VALUE_WIDTH), shorten(after, VALUE_WIDTH));
    if shown.0 != shown.1 {
        return shown;
    }
    let skipped = shared(before.chars(), after.chars()).saturating_sub(CONTEXT);
    let from_there = |text: &str| {
        let rest: String = text.chars().skip(skipped).collect();
        format!("…{}", shorten(&rest, VALUE_WIDTH))
    };
    (from_there(before), from_there(after))
}

/// A text on one line, without its middle if it is longer than `width` characters.
fn shorten(text: &str, width: usize) -> String {
    let length = text.chars().count();
    let half = width / 2;
    let hidden = if length > width {
        half..length - half
    } else {
        0..0
    };
    let mut line = String::new();
    for (index, c) in text.chars().enumerate() {
        if hidden.contains(&index) {
            line.push_str(if index == half { "…" } else { "" });
        } else if c.is_control() {
            // A line break, or what a terminal would obey, can only come from a hand-written `Debug`.
            line.extend(c.escape_debug());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests;
