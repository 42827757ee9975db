//! Which paths a user wants, as scionproto's hop-predicate sequences say it.
//!
//! Source: scionproto, "PathPolicy", sequences. A sequence is a regular expression over the ASes of
//! a path, in order of travel: `0* 1-ff00:0:120#2,1 0*` is every path that enters 1-ff00:0:120 by
//! interface 2 and leaves it by 1.

mod parse;
mod program;

use std::fmt;
use std::str::FromStr;

use sciparse::identifier::isd_asn::IsdAsn;

use self::parse::Parser;
pub use self::parse::SequenceError;
use self::program::Program;
use crate::Path;

/// A sequence of hop predicates that the ASes of a path must follow, first to last.
///
/// A predicate is `ISD`, `ISD-AS`, `ISD-AS#IF` (that interface on the way in or out) or
/// `ISD-AS#IN,OUT`; 0 stands for any, each time on its own. `?` lets what precedes it be missing,
/// `+` repeats it, `*` does both, `|` is either side; they bind tighter than what stands side by
/// side, `|` the least of them, and parentheses group. The empty text lets every path pass.
///
/// Where scionproto compares ASes as text, so that `1-FF00:0:110` passes nothing, here they are
/// numbers; everything else means the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    text: String,
    /// None lets everything pass.
    program: Option<Program>,
}

/// What an AS on the path must be; none is any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Hop {
    isd: Option<u16>,
    asn: Option<u64>,
    interfaces: Interfaces,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Interfaces {
    #[default]
    Any,
    /// This one, in or out.
    Either(u16),
    /// Both as given.
    Both(Option<u16>, Option<u16>),
}

/// An AS as a path crosses it; 0 is the interface missing at an end.
#[derive(Debug, Clone, Copy)]
struct Crossing {
    isd_as: IsdAsn,
    ingress: u16,
    egress: u16,
}

impl Sequence {
    /// Whether `path` follows the sequence.
    ///
    /// A path inside one AS crosses nothing: only what may be missing altogether lets it pass.
    pub fn matches(&self, path: &Path) -> bool {
        let program = self.program.as_ref();
        program.is_none_or(|program| program.accepts(&crossings(path)))
    }
}

fn crossings(path: &Path) -> Vec<Crossing> {
    let Some((first, rest)) = path.interfaces.split_first() else {
        return Vec::new();
    };
    let mut crossings = vec![Crossing {
        isd_as: first.isd_as,
        ingress: 0,
        egress: first.id,
    }];
    crossings.extend(rest.chunks(2).map(|pair| Crossing {
        isd_as: pair[0].isd_as,
        ingress: pair[0].id,
        egress: pair.get(1).map_or(0, |interface| interface.id),
    }));
    crossings
}

impl Hop {
    fn is(&self, crossing: &Crossing) -> bool {
        let is = |wanted: Option<u16>, id| wanted.is_none_or(|wanted| wanted == id);
        is(self.isd, crossing.isd_as.isd().to_u16())
            && self
                .asn
                .is_none_or(|asn| asn == crossing.isd_as.asn().to_u64())
            && match self.interfaces {
                Interfaces::Any => true,
                Interfaces::Either(id) => id == crossing.ingress || id == crossing.egress,
                Interfaces::Both(ingress, egress) => {
                    is(ingress, crossing.ingress) && is(egress, crossing.egress)
                }
            }
    }
}

impl FromStr for Sequence {
    type Err = SequenceError;

    fn from_str(text: &str) -> Result<Self, SequenceError> {
        let program = match text {
            "" => None,
            text => Some(Program::of(&Parser::new(text)?.whole()?)),
        };
        let text = text.to_owned();
        Ok(Self { text, program })
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
