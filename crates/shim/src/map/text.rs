//! The map in TOML.
//!
//! ```toml
//! [destinations]
//! "10.1.0.0/16" = "1-ff00:0:4"
//! "db.example" = { to = "1-ff00:0:5,10.0.0.1", paths = 4, policy = "p.yml:eu", comment = "orders" }
//! ```

use std::fmt::Display;
use std::num::NonZeroU8;
use std::ops::Range;
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::destination::Destination;
use super::entry::{Entry, MAX_PATHS};
use super::lines::{LineError, LineNumbers};
use super::target::Target;

/// The table of the entries.
pub(super) const TABLE: &str = "destinations";

/// The value of an entry, for messages.
const VALUE: &str = "write a target such as \"1-ff00:0:4\", or { to = \"1-ff00:0:4\", paths = 4 }";

/// An entry, for messages.
const LINE: &str = "write an entry as \"10.1.0.0/16\" = \"1-ff00:0:4\"";

/// The keys of an entry with options, for messages.
const KEYS: &str = "to, paths, policy and comment";

/// Most errors of the grammar that are reported: one may be the cause of all that follow.
const MAX_ERRORS: usize = 10;

type Key<'a> = Spanned<DeString<'a>>;
type Value<'a> = Spanned<DeValue<'a>>;

/// A map's text, and where its entries are.
pub(super) struct Parsed {
    /// The entries, in the order of the text.
    pub(super) entries: Vec<Entry>,
    /// The bytes of each entry, from its key to the end of its value.
    pub(super) spans: Vec<Range<usize>>,
    /// The bytes of the header of the table; `None` if there is no table.
    pub(super) header: Option<Range<usize>>,
}

/// Reads a text: the entries that can be read, and what is wrong in others.
pub(super) fn parse(text: &str) -> (Vec<Entry>, Vec<LineError>) {
    let (parsed, errors) = parse_spans(text);
    (parsed.entries, errors)
}

/// As [`parse`], with the places of the entries.
pub(super) fn parse_spans(text: &str) -> (Parsed, Vec<LineError>) {
    let mut reader = Reader {
        text,
        lines: LineNumbers::of(text),
        errors: Vec::new(),
    };
    let (root, wrong) = DeTable::parse_recoverable(text);
    let mut parsed = Parsed {
        entries: Vec::new(),
        spans: Vec::new(),
        header: None,
    };
    for (key, value) in root.get_ref() {
        match key.get_ref() == TABLE {
            true => reader.table(value, &mut parsed),
            false => reader.unknown(key, value),
        }
    }
    if !wrong.is_empty() {
        // What was made of the text is not what it says.
        reader.errors.clear();
        for error in wrong.iter().take(MAX_ERRORS) {
            reader.grammar(error, &parsed);
        }
    }
    reader.errors.sort_by_key(|error| error.line);
    (parsed, reader.errors)
}

struct Reader<'a> {
    text: &'a str,
    lines: LineNumbers,
    errors: Vec<LineError>,
}

impl Reader<'_> {
    fn error(&mut self, span: Range<usize>, reason: String) {
        let line = self.lines.number(span.start);
        self.errors.push(LineError { line, reason });
    }

    /// An error of the grammar: the first of each line. What stands in the text twice is reported
    /// as other destinations are.
    fn grammar(&mut self, error: &toml::de::Error, parsed: &Parsed) {
        let span = error.span().unwrap_or_default();
        let line = self.lines.number(span.start);
        if self.errors.iter().any(|error| error.line == line) {
            return;
        }
        let key = self.text.get(span.clone()).unwrap_or_default();
        let key = key.trim_matches(['"', '\'']).parse().ok();
        let before = key.and_then(|destination| {
            let mut entries = parsed.entries.iter();
            entries.find(|entry| entry.destination == destination)
        });
        let reason = match before {
            Some(before) if error.message() == "duplicate key" => before.is_mapped("a target"),
            _ => {
                let content = self.text.lines().nth(line - 1).unwrap_or_default().trim();
                let message = match error.message() {
                    "duplicate key" => "this is in the file already: remove one of them",
                    message => &format!("{}: {LINE}", message.replace('\n', "; ")),
                };
                match content.is_empty() {
                    true => message.to_owned(),
                    false => format!("`{content}`: {message}"),
                }
            }
        };
        self.error(span, reason);
    }

    /// Whether the text has `c` at this byte.
    fn begins(&self, at: usize, c: char) -> bool {
        self.text.get(at..).is_some_and(|text| text.starts_with(c))
    }

    /// An unknown key of the whole text.
    fn unknown(&mut self, key: &Key<'_>, value: &Value<'_>) {
        let name = key.get_ref();
        let is_entry = value
            .get_ref()
            .as_str()
            .is_some_and(|to| to.parse::<Target>().is_ok());
        let reason = match is_entry {
            true => format!("`{name}` stands outside [{TABLE}]: write it below that line"),
            false => format!("unknown key `{name}`: entries stand below [{TABLE}]"),
        };
        self.error(key.span(), reason);
    }

    /// Reads the table of the entries.
    fn table(&mut self, value: &Value<'_>, parsed: &mut Parsed) {
        let span = value.span();
        let DeValue::Table(table) = value.get_ref() else {
            let reason = format!("`{TABLE}` is no table: write [{TABLE}], and entries below it");
            return self.error(span, reason);
        };
        // Other forms of a table have no place where an entry can be added.
        if !self.begins(span.start, '[') {
            let reason = format!("write [{TABLE}] on a line of its own, and entries below it");
            return self.error(span, reason);
        }
        parsed.header = Some(span);
        let mut pairs: Vec<(&Key<'_>, &Value<'_>)> = table.iter().collect();
        pairs.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in pairs {
            if let Some(entry) = self.entry(key, value) {
                parsed.entries.push(entry);
                parsed.spans.push(key.span().start..value.span().end);
            }
        }
    }

    /// Reads an entry; adds what is wrong in it to the errors.
    fn entry(&mut self, key: &Key<'_>, value: &Value<'_>) -> Option<Entry> {
        let destination = self.read::<Destination>(key.span(), key.get_ref());
        let span = value.span();
        let target = match value.get_ref() {
            DeValue::String(target) => self.read::<Target>(span, target),
            DeValue::Table(options) => {
                // Other forms of a table are not in one place, from where an entry can be removed;
                // a name without quotes is one of them.
                if !self.begins(span.start, '{') {
                    let reason = "write the entry on one line, its destination in quotes: \"db.example\" = \"1-ff00:0:4\"";
                    self.error(span, reason.to_owned());
                    return None;
                }
                return self.options(destination?, value, options);
            }
            _ => {
                self.error(span, format!("`{}` has no target: {VALUE}", key.get_ref()));
                return None;
            }
        };
        let mut entry = Entry::new(destination?, target?);
        entry.line = self.lines.number(key.span().start);
        Some(entry)
    }

    /// Reads an entry with options.
    fn options(
        &mut self,
        destination: Destination,
        value: &Value<'_>,
        options: &DeTable<'_>,
    ) -> Option<Entry> {
        let before = self.errors.len();
        let (mut target, mut paths, mut policy, mut comment) = (None, None, None, None);
        for (key, value) in options {
            let (name, span) = (key.get_ref().as_ref(), value.span());
            match (name, value.get_ref()) {
                ("to", DeValue::String(to)) => target = self.read::<Target>(span, to),
                ("paths", DeValue::Integer(number)) => {
                    let number = u8::from_str_radix(number.as_str(), number.radix()).ok();
                    paths = number.filter(|n| *n <= MAX_PATHS).and_then(NonZeroU8::new);
                    if paths.is_none() {
                        let reason = format!("paths: write a number from 1 to {MAX_PATHS}");
                        self.error(span, reason);
                    }
                }
                ("policy", DeValue::String(file)) => policy = Some(file.to_string()),
                ("comment", DeValue::String(text)) => comment = Some(text.to_string()),
                ("to" | "policy" | "comment", _) => {
                    self.error(span, format!("{name}: write a text in quotes"));
                }
                ("paths", _) => {
                    self.error(span, format!("paths: write a number from 1 to {MAX_PATHS}"));
                }
                _ => {
                    let reason = format!("unknown key `{name}`: there are {KEYS}");
                    self.error(key.span(), reason);
                }
            }
        }
        if !options.contains_key("to") {
            let reason = format!("`{destination}` has no target: add to = \"1-ff00:0:4\"");
            self.error(value.span(), reason);
        }
        let line = self.lines.number(value.span().start);
        let entry = Entry {
            paths,
            policy,
            comment,
            line,
            ..Entry::new(destination, target?)
        };
        (self.errors.len() == before).then_some(entry)
    }

    fn read<T: FromStr<Err: Display>>(&mut self, span: Range<usize>, text: &str) -> Option<T> {
        let read = text.parse::<T>();
        read.map_err(|error| self.error(span, error.to_string()))
            .ok()
    }
}

/// An entry as a line of the table, without the end of the line.
pub(super) fn line(entry: &Entry) -> String {
    let mut line = format!("{} = ", quoted(&entry.destination.to_string()));
    let target = quoted(&entry.target.to_string());
    let mut options = String::new();
    if let Some(paths) = entry.paths {
        options += &format!(", paths = {paths}");
    }
    for (key, text) in [("policy", &entry.policy), ("comment", &entry.comment)] {
        if let Some(text) = text {
            options += &format!(", {key} = {}", quoted(text));
        }
    }
    line += &match options.is_empty() {
        true => target,
        false => format!("{{ to = {target}{options} }}"),
    };
    line
}

/// A basic string of TOML (version 1.0.0, section String).
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\U{:08X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests;
