//! Patterns of names that are left out, as those of `rsync --exclude`.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;

use thiserror::Error;

/// Most bytes of a pattern: matching takes a step for each byte of it and of a path.
const MAX_PATTERN: usize = 1024;

/// A pattern that is not understood.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("{pattern:?} is not a pattern: {reason}")]
pub struct PatternError {
    pattern: String,
    reason: &'static str,
}

/// A pattern of names.
///
/// `*` stands for any characters but `/`, `**` for any characters, `?` for one but `/`, `[a-z]` and
/// `[!a-z]` for one of a set or not, and `\` takes the meaning from the next character. A pattern
/// without `/` stands for a name in any folder, one that begins with `/` for a path from the top of
/// what is sent, and any other for the end of a path. With `/` at its end it stands for folders alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    tokens: Vec<Token>,
    folders_only: bool,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Byte(u8),
    /// One byte but `/`.
    Any,
    /// One byte but `/` that is in one of the ranges, or in none.
    Set(Vec<(u8, u8)>, bool),
    /// Any bytes but `/`.
    Star,
    /// Any bytes.
    Stars,
}

impl Pattern {
    /// The text that it was read from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it stands for `path`, relative to the top of what is sent.
    #[must_use]
    pub fn matches(&self, path: &Path, is_folder: bool) -> bool {
        if self.folders_only && !is_folder {
            return false;
        }
        let path = path.as_os_str().as_bytes();
        // All places that the pattern may be at, after each byte of the path.
        let mut places = vec![false; self.tokens.len() + 1];
        places[0] = true;
        self.pass_stars(&mut places);
        let mut next = places.clone();
        for byte in std::iter::once(&b'/').chain(path) {
            next.fill(false);
            for (at, token) in self.tokens.iter().enumerate() {
                if !places[at] {
                    continue;
                }
                match token {
                    Token::Stars => next[at] = true,
                    Token::Star => next[at] |= *byte != b'/',
                    one => next[at + 1] |= one.takes(*byte),
                }
            }
            self.pass_stars(&mut next);
            std::mem::swap(&mut places, &mut next);
        }
        places[self.tokens.len()]
    }

    /// A run of any bytes may be empty.
    fn pass_stars(&self, places: &mut [bool]) {
        for (at, token) in self.tokens.iter().enumerate() {
            if matches!(token, Token::Star | Token::Stars) {
                places[at + 1] |= places[at];
            }
        }
    }
}

impl Token {
    /// Whether it stands for this one byte.
    fn takes(&self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => *own == byte,
            Self::Any => byte != b'/',
            Self::Set(ranges, inverted) => {
                let is_in = ranges
                    .iter()
                    .any(|(from, to)| (*from..=*to).contains(&byte));
                byte != b'/' && is_in != *inverted
            }
            Self::Star | Self::Stars => false,
        }
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let wrong = |reason| PatternError {
            pattern: text.to_owned(),
            reason,
        };
        if text.len() > MAX_PATTERN {
            return Err(wrong("it has more than 1024 bytes"));
        }
        let body = text.trim_end_matches('/');
        if body.is_empty() {
            return Err(wrong("it names nothing"));
        }
        // Paths are matched with `/` before them.
        let mut tokens = match body.starts_with('/') {
            true => Vec::new(),
            false => vec![Token::Stars, Token::Byte(b'/')],
        };
        let mut bytes = body.bytes().peekable();
        while let Some(byte) = bytes.next() {
            tokens.push(match byte {
                b'?' => Token::Any,
                b'*' => match bytes.next_if_eq(&b'*') {
                    Some(_) => Token::Stars,
                    None => Token::Star,
                },
                b'[' => set(&mut bytes).ok_or_else(|| wrong("`[` has no `]`"))?,
                b'\\' => match bytes.next() {
                    Some(byte) => Token::Byte(byte),
                    None => return Err(wrong("nothing is behind the last `\\`")),
                },
                byte => Token::Byte(byte),
            });
        }
        Ok(Self {
            tokens,
            folders_only: text.ends_with('/'),
            text: text.to_owned(),
        })
    }
}

/// The rest of a set, behind its `[`.
fn set(bytes: &mut impl Iterator<Item = u8>) -> Option<Token> {
    let mut inside = Vec::new();
    loop {
        match bytes.next()? {
            b']' if !matches!(inside[..], [] | [b'!'] | [b'^']) => break,
            byte => inside.push(byte),
        }
    }
    let inverted = matches!(inside.first(), Some(b'!' | b'^'));
    let mut rest = &inside[usize::from(inverted)..];
    let mut ranges = Vec::new();
    while let Some((from, after)) = rest.split_first() {
        match after {
            [b'-', to, behind @ ..] => {
                ranges.push((*from, *to));
                rest = behind;
            }
            _ => {
                ranges.push((*from, *from));
                rest = after;
            }
        }
    }
    Some(Token::Set(ranges, inverted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        let pattern: Pattern = pattern.parse().unwrap();
        pattern.matches(Path::new(path), path.ends_with("dir"))
    }

    #[test]
    fn patterns_are_those_of_rsync() {
        for (pattern, path) in [
            ("*.o", "data/a.o"),
            ("*.o", "a.o"),
            ("dir/", "data/dir"),
            ("/data/a", "data/a"),
            ("a/b", "x/a/b"),
            ("a/b", "a/b"),
            ("/data/**/x", "data/a/b/x"),
            ("/data/*/x", "data/a/x"),
            ("[a-c]?[!x]", "data/bzy"),
            (r"\*", "data/*"),
            ("**", "data/a"),
            ("[]]", "]"),
        ] {
            assert!(matches(pattern, path), "{pattern} and {path}");
        }
        for (pattern, path) in [
            ("*.o", "data/a.c"),
            ("*.o", "a.o/b"),
            ("dir/", "data/dir2"),
            ("file/", "data/file"),
            ("/a", "data/a"),
            ("a/b", "xa/b"),
            ("/data/*/x", "data/a/b/x"),
            ("[a-c]?[!x]", "data/bzx"),
            (r"\*", "data/a"),
            ("d?a", "d/a"),
        ] {
            assert!(!matches(pattern, path), "{pattern} and {path}");
        }
        for wrong in ["", "/", "[a", r"a\", &"a".repeat(1025)] {
            assert!(wrong.parse::<Pattern>().is_err(), "{wrong}");
        }
    }

    /// Patterns come from other hosts: whatever they are, matching ends soon.
    #[test]
    fn any_pattern_is_read_or_refused() {
        let valid = ["*.o", "/data/**/x[a-z]?", r"a\*/", "**a**b**c**"].map(Vec::from);
        hawser_fuzz::fuzz(&valid, |input| {
            let Ok(text) = str::from_utf8(input) else {
                return;
            };
            match text.parse::<Pattern>() {
                Ok(pattern) => {
                    let _ = pattern.matches(Path::new("data/aaaa/abcabc/x.o"), true);
                    assert_eq!(pattern.text().parse(), Ok(pattern.clone()));
                }
                Err(error) => assert!(error.to_string().contains("is not a pattern")),
            }
        });
    }
}
