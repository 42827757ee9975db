//! Parses the text of a sequence.

use hawser_address::{Asn, Isd, IsdAsn};

use super::program::{self, Step};
use crate::predicate::{Interfaces, Predicate};

/// Most tokens of a sequence: more than any path needs. Also bounds the nesting of parentheses.
const MAX_TOKENS: usize = 1000;

/// Why a text is not a sequence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SequenceError {
    /// A token is not allowed where it stands.
    #[error(
        "'{text}' is not a sequence: at byte {at}: {why}; write for example '0* 1-ff00:0:110#2 0*'"
    )]
    Syntax {
        /// The whole text.
        text: String,
        /// Byte offset of the error in the text, from 0.
        at: usize,
        /// What is wrong there.
        why: String,
    },
    /// The text has too many tokens.
    #[error("a sequence of {tokens} parts: at most {MAX_TOKENS} are read")]
    TooLong {
        /// Number of tokens.
        tokens: usize,
    },
}

pub(super) struct Parser<'a> {
    text: &'a str,
    /// Numbers, AS numbers (`-ff00:0:110`) and operators, each with its byte offset in the text.
    tokens: Vec<(usize, &'a str)>,
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
        while let Some(byte) = text.as_bytes().get(at) {
            let rest = &text.as_bytes()[at..];
            let length = match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    at += 1;
                    continue;
                }
                b'0'..=b'9' => number(rest, u8::is_ascii_digit),
                b'-' => match as_number(&rest[1..]) {
                    0 => return Err(parser.wrong(at, "no AS follows the dash")),
                    length => 1 + length,
                },
                b'#' | b',' | b'?' | b'+' | b'*' | b'|' | b'(' | b')' => 1,
                _ => {
                    // All bytes before this one are ASCII, so a character begins here.
                    let stranger = text[at..].chars().next().unwrap_or_default();
                    return Err(parser.wrong(at, format!("{stranger:?} means nothing here")));
                }
            };
            parser.tokens.push((at, &text[at..at + length]));
            at += length;
        }
        match parser.tokens.len() {
            tokens if tokens > MAX_TOKENS => Err(SequenceError::TooLong { tokens }),
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

    /// The next token; empty at the end.
    fn peek(&self) -> &'a str {
        self.tokens.get(self.next).map_or("", |(_, token)| token)
    }

    fn take(&mut self, sign: &str) -> bool {
        let is_next = self.peek() == sign;
        self.next += usize::from(is_next);
        is_next
    }

    pub fn whole(mut self) -> Result<Vec<Step>, SequenceError> {
        let steps = self.all()?;
        match self.peek() {
            "" => Ok(steps),
            _ => Err(self.wrong_here("nothing like this can follow")),
        }
    }

    /// Parses a concatenation.
    fn all(&mut self) -> Result<Vec<Step>, SequenceError> {
        let mut steps = self.any()?;
        while self.peek() == "(" || self.peek().starts_with(|c: char| c.is_ascii_digit()) {
            steps.extend(self.any()?);
        }
        Ok(steps)
    }

    fn any(&mut self) -> Result<Vec<Step>, SequenceError> {
        let steps = self.repeated()?;
        match self.take("|") {
            true => Ok(program::either(steps, self.any()?)),
            false => Ok(steps),
        }
    }

    fn repeated(&mut self) -> Result<Vec<Step>, SequenceError> {
        let mut steps = if self.take("(") {
            let steps = self.all()?;
            if !self.take(")") {
                return Err(self.wrong_here("a `)` is missing"));
            }
            steps
        } else {
            vec![Step::Cross(self.hop()?)]
        };
        while let sign @ ("?" | "+" | "*") = self.peek() {
            self.next += 1;
            steps = program::repeat(steps, sign != "+", sign != "?");
        }
        Ok(steps)
    }

    fn hop(&mut self) -> Result<Predicate, SequenceError> {
        let isd = Isd::new(self.number("an ISD")?);
        let mut hop = Predicate {
            isd_as: IsdAsn::new(isd, Asn::WILDCARD),
            interfaces: Interfaces::Any,
        };
        let Some(asn) = self.peek().strip_prefix('-') else {
            return Ok(hop);
        };
        let asn = asn.parse();
        let asn = asn.map_err(|_| self.wrong_here("no AS has that number"))?;
        hop.isd_as = IsdAsn::new(isd, asn);
        self.next += 1;
        if !self.take("#") {
            return Ok(hop);
        }
        let first = self.number("an interface")?;
        hop.interfaces = match first {
            _ if self.take(",") => Interfaces::Both(first, self.number("an interface")?),
            0 => Interfaces::Any,
            _ => Interfaces::Either(first),
        };
        Ok(hop)
    }

    /// Parses a number up to 65535.
    fn number(&mut self, what: &str) -> Result<u16, SequenceError> {
        let token = self.peek();
        if !token.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.wrong_here(format!("the number of {what} is missing")));
        }
        let wrong = |_| self.wrong_here(format!("{what} has a number up to 65535"));
        let number = token.parse().map_err(wrong)?;
        self.next += 1;
        Ok(number)
    }
}

/// Length in bytes of the number at the start of `bytes`. Numbers have no leading zeros: after a
/// leading 0, the next digit begins another number.
fn number(bytes: &[u8], is_digit: fn(&u8) -> bool) -> usize {
    match bytes.first() {
        Some(b'0') => 1,
        _ => bytes.iter().take_while(|byte| is_digit(byte)).count(),
    }
}

/// Length in bytes of the AS number at the start of `bytes`: three groups of hex digits, or else a
/// decimal number.
fn as_number(bytes: &[u8]) -> usize {
    let mut length = 0;
    for last in [false, false, true] {
        let digits = number(&bytes[length..], u8::is_ascii_hexdigit);
        length += digits;
        if digits == 0 || (!last && bytes.get(length) != Some(&b':')) {
            return number(bytes, u8::is_ascii_digit);
        }
        length += usize::from(!last);
    }
    length
}
