//! Sequences of hop predicates, as in scionproto: which paths a user wants.
//!
//! Source: scionproto, "PathPolicy", sequences. A sequence is a regular expression over the ASes of
//! a path, in order of travel: `0* 1-ff00:0:120#2,1 0*` is every path that enters 1-ff00:0:120 by
//! interface 2 and leaves it by 1.

mod parse;
mod program;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use self::parse::Parser;
pub use self::parse::SequenceError;
use self::program::Step;
use crate::Path;

/// A sequence of hop predicates that the ASes of a path must follow, first to last.
///
/// A predicate is `ISD`, `ISD-AS`, `ISD-AS#IF` (that interface as ingress or egress) or
/// `ISD-AS#IN,OUT`; each 0 matches any value. `?` makes the preceding item optional, `+` repeats
/// it, `*` does both, and `|` separates alternatives. All of them bind tighter than concatenation,
/// `|` weaker than the others, and parentheses group. The empty text matches every path.
///
/// scionproto compares ASes as text, so that `1-FF00:0:110` matches nothing; here they are compared
/// as numbers. Everything else means the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    text: String,
    /// `None` matches every path.
    steps: Option<Vec<Step>>,
}

impl Sequence {
    /// Whether `path` follows the sequence.
    ///
    /// A path inside one AS crosses no AS: only a sequence of optional items matches it.
    pub fn matches(&self, path: &Path) -> bool {
        let steps = self.steps.as_ref();
        steps.is_none_or(|steps| program::accept(steps, &path.crossings()))
    }
}

impl FromStr for Sequence {
    type Err = SequenceError;

    fn from_str(text: &str) -> Result<Self, SequenceError> {
        let steps = match text {
            "" => None,
            text => Some(Parser::new(text)?.whole()?),
        };
        let text = text.to_owned();
        Ok(Self { text, steps })
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
