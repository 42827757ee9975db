//! The text of a sequence, taken apart.

use sciparse::identifier::asn::Asn;

use super::hop::{Hop, Interfaces};

/// More parts than any path needs; also bounds how deep parentheses nest.
const MOST_TOKENS: usize = 1000;

/// A text is not a sequence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SequenceError {
    /// Something stands where it cannot.
    #[error(
        "'{text}' is not a sequence: at byte {at}: {why}; write for example '0* 1-ff00:0:110#2 0*'"
    )]
    Syntax {
        /// The whole text.
        text: String,
        /// Where in it, in bytes from 0.
        at: usize,
        /// What is wrong there.
        why: String,
    },
    /// It is too long.
    #[error("a sequence of {tokens} parts: at most {MOST_TOKENS} are read")]
    TooLong {
        /// How many parts it has.
        tokens: usize,
    },
}

/// A sequence as a tree.
pub(super) enum Pattern {
    Hop(Hop),
    /// One after the other.
    All(Vec<Self>),
    /// One of them.
    Any(Vec<Self>),
    Repeat {
        inner: Box<Self>,
        optional: bool,
        again: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    /// Decimal digits without leading zeros.
    Number(&'a str),
    /// `-0`, `-64496`, `-ff00:0:110`, without the dash.
    As(&'a str),
    /// One of `#,?+*|()`.
    Sign(u8),
}

pub(super) struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token<'a>)>,
    next: usize,
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str) -> Result<Self, SequenceError> {
        let mut parser = Self {
            text,
            tokens: Vec::new(),
            next: 0,
        };
        let mut at = 0;
        while let Some(&byte) = text.as_bytes().get(at) {
            let rest = &text.as_bytes()[at..];
            let (token, length) = match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    at += 1;
                    continue;
                }
                b'0'..=b'9' => {
                    let length = number(rest);
                    (Token::Number(&text[at..at + length]), length)
                }
                b'-' => {
                    let length = 1 + as_number(&rest[1..]);
                    if length == 1 {
                        return Err(parser.wrong(at, "no AS follows the dash"));
                    }
                    (Token::As(&text[at + 1..at + length]), length)
                }
                b'#' | b',' | b'?' | b'+' | b'*' | b'|' | b'(' | b')' => (Token::Sign(byte), 1),
                _ => {
                    // All before is ASCII, so a character begins here.
                    let stranger = text[at..].chars().next().unwrap_or_default();
                    return Err(parser.wrong(at, format!("{stranger:?} means nothing here")));
                }
            };
            parser.tokens.push((at, token));
            at += length;
        }
        match parser.tokens.len() {
            tokens if tokens > MOST_TOKENS => Err(SequenceError::TooLong { tokens }),
            _ => Ok(parser),
        }
    }

    fn wrong(&self, at: usize, why: impl Into<String>) -> SequenceError {
        SequenceError::Syntax {
            text: self.text.to_owned(),
            at,
            why: why.into(),
        }
    }

    fn wrong_here(&self, why: impl Into<String>) -> SequenceError {
        let at = self.tokens.get(self.next);
        self.wrong(at.map_or(self.text.len(), |(at, _)| *at), why)
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.next).map(|(_, token)| *token)
    }

    fn take(&mut self, sign: u8) -> bool {
        let there = self.peek() == Some(Token::Sign(sign));
        self.next += usize::from(there);
        there
    }

    pub fn whole(mut self) -> Result<Pattern, SequenceError> {
        let pattern = self.all()?;
        match self.peek() {
            None => Ok(pattern),
            Some(_) => Err(self.wrong_here("nothing like this can follow")),
        }
    }

    fn all(&mut self) -> Result<Pattern, SequenceError> {
        let mut patterns = vec![self.any()?];
        while matches!(self.peek(), Some(Token::Number(_) | Token::Sign(b'('))) {
            patterns.push(self.any()?);
        }
        Ok(one_or(patterns, Pattern::All))
    }

    fn any(&mut self) -> Result<Pattern, SequenceError> {
        let mut patterns = vec![self.repeated()?];
        while self.take(b'|') {
            patterns.push(self.repeated()?);
        }
        Ok(one_or(patterns, Pattern::Any))
    }

    fn repeated(&mut self) -> Result<Pattern, SequenceError> {
        let mut pattern = if self.take(b'(') {
            let pattern = self.all()?;
            if !self.take(b')') {
                return Err(self.wrong_here("a `)` is missing"));
            }
            pattern
        } else {
            Pattern::Hop(self.hop()?)
        };
        while let Some(Token::Sign(sign @ (b'?' | b'+' | b'*'))) = self.peek() {
            self.next += 1;
            pattern = Pattern::Repeat {
                inner: Box::new(pattern),
                optional: sign != b'+',
                again: sign != b'?',
            };
        }
        Ok(pattern)
    }

    fn hop(&mut self) -> Result<Hop, SequenceError> {
        let mut hop = Hop {
            isd: self.number("an ISD")?,
            ..Hop::default()
        };
        let Some(Token::As(asn)) = self.peek() else {
            return Ok(hop);
        };
        hop.asn = match asn {
            "0" => None,
            asn => {
                let number = asn.parse::<Asn>();
                Some(
                    number
                        .map_err(|_| self.wrong_here("no AS has that number"))?
                        .to_u64(),
                )
            }
        };
        self.next += 1;
        if !self.take(b'#') {
            return Ok(hop);
        }
        let first = self.number("an interface")?;
        hop.interfaces = if self.take(b',') {
            Interfaces::Both(first, self.number("an interface")?)
        } else {
            first.map_or(Interfaces::Any, Interfaces::Either)
        };
        Ok(hop)
    }

    /// A number up to 65535; `None` for 0.
    fn number(&mut self, what: &str) -> Result<Option<u16>, SequenceError> {
        let Some(Token::Number(number)) = self.peek() else {
            return Err(self.wrong_here(format!("the number of {what} is missing")));
        };
        let number: u16 = number
            .parse()
            .map_err(|_| self.wrong_here(format!("{what} has a number up to 65535")))?;
        self.next += 1;
        Ok((number != 0).then_some(number))
    }
}

fn one_or(mut patterns: Vec<Pattern>, many: impl Fn(Vec<Pattern>) -> Pattern) -> Pattern {
    match patterns.pop() {
        Some(only) if patterns.is_empty() => only,
        last => {
            patterns.extend(last);
            many(patterns)
        }
    }
}

/// How many bytes a decimal number without leading zeros has; digits follow one that begins with 0
/// as numbers of their own.
fn number(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(b'0') => 1,
        _ => bytes.iter().take_while(|b| b.is_ascii_digit()).count(),
    }
}

/// How many bytes the number of an AS has that `bytes` begin with: three groups of hex digits, or
/// else a decimal number.
fn as_number(bytes: &[u8]) -> usize {
    let group = |bytes: &[u8]| match bytes.first() {
        Some(b'0') => 1,
        _ => bytes.iter().take_while(|b| b.is_ascii_hexdigit()).count(),
    };
    let mut length = 0;
    for last in [false, false, true] {
        let digits = group(&bytes[length..]);
        length += digits;
        if digits == 0 || (!last && bytes.get(length) != Some(&b':')) {
            return number(bytes);
        }
        length += usize::from(!last);
    }
    length
}
