//! Changes of a map in TOML: a line is added or removed, all else stays as it is.

use thiserror::Error;

use super::destination::Destination;
use super::entry::Entry;
use super::lines::LineError;
use super::text::{Parsed, TABLE, line, parse_spans};

/// The beginning of a new file.
pub const NEW_FILE: &str = "\
# Which destinations of programs go over SCION, and where to: \"DESTINATION\" = \"TARGET\".
# `hawser shim map` changes this file; a shim that runs follows it.

[destinations]
";

/// Why a map's text was not changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EditError {
    /// The destination is mapped already.
    #[error(
        "`{destination}` exists in line {line}, mapped to {target}: remove it first",
        destination = .0.destination, target = .0.target, line = .0.line
    )]
    Exists(Box<Entry>),
    /// There is no such entry.
    #[error("`{0}` is not mapped")]
    Absent(Destination),
    /// The text is no map.
    #[error("line {}: {}", .0.line, .0.reason)]
    Invalid(LineError),
}

/// Adds an entry after the last one.
///
/// # Errors
/// [`EditError::Exists`], also when the entry that exists is the same; [`EditError::Invalid`].
pub fn add(text: &str, entry: &Entry) -> Result<String, EditError> {
    let parsed = read(text)?;
    let mut entries = parsed.entries.into_iter();
    if let Some(before) = entries.find(|before| before.destination == entry.destination) {
        return Err(EditError::Exists(Box::new(before)));
    }
    let eol = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let new = line(entry);
    let last = parsed.spans.last().or(parsed.header.as_ref());
    let Some(last) = last else {
        let gap = match text {
            "" => "",
            text if text.ends_with('\n') => eol,
            _ => &eol.repeat(2),
        };
        return Ok(format!("{text}{gap}[{TABLE}]{eol}{new}{eol}"));
    };
    Ok(match line_end(text, last.end) {
        Some(end) => format!("{}{new}{eol}{}", &text[..end], &text[end..]),
        // The last line has no end; the new one does without it, too.
        None => format!("{text}{eol}{new}"),
    })
}

/// Removes the line of an entry, with what follows the entry in the line. Other lines stay, also a
/// comment above it.
///
/// # Errors
/// [`EditError::Absent`], [`EditError::Invalid`].
pub fn remove(text: &str, destination: &Destination) -> Result<String, EditError> {
    let Parsed { entries, spans, .. } = read(text)?;
    let mut found = entries.iter().zip(spans);
    let found = found.find(|(entry, _)| entry.destination == *destination);
    let (_, span) = found.ok_or_else(|| EditError::Absent(destination.clone()))?;
    let start = text[..span.start].rfind('\n').map_or(0, |end| end + 1);
    Ok(match line_end(text, span.end) {
        Some(end) => text[..start].to_owned() + &text[end..],
        // The line before becomes the last one.
        None => {
            let before = &text[..start];
            let before = before.strip_suffix('\n').unwrap_or(before);
            before.strip_suffix('\r').unwrap_or(before).to_owned()
        }
    })
}

/// Where the line after the byte `at` begins.
fn line_end(text: &str, at: usize) -> Option<usize> {
    Some(at + text[at..].find('\n')? + 1)
}

fn read(text: &str) -> Result<Parsed, EditError> {
    let (parsed, errors) = parse_spans(text);
    match errors.into_iter().next() {
        None => Ok(parsed),
        Some(error) => Err(EditError::Invalid(error)),
    }
}

#[cfg(test)]
mod tests;
