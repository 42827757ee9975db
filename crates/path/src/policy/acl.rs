//! Lists of the interfaces that are allowed and denied.

use std::fmt;
use std::str::FromStr;

use crate::predicate::Predicate;
use crate::{Interface, Path};

/// Most entries of a list: more than any list needs.
const MAX_ENTRIES: usize = 10_000;

/// Which interfaces a path may cross. For each interface, the first entry that matches it decides.
/// A path is allowed when all its interfaces are.
///
/// Parsed from and printed as its entries, with `;` between them: `- 2-ff00:0:210; +`. The last
/// entry, and no other, is a default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acl(Vec<AclEntry>);

/// An entry of an [`Acl`].
///
/// Parsed from `+` (allow) or `-` (deny), a space, and a hop predicate: `ISD`, `ISD-AS`,
/// `ISD-AS#IF` (that interface as ingress or egress) or `ISD-AS#IN,OUT`; 0 matches any value. Each
/// interface is matched alone: `#2,0` matches interface 2 as ingress and any interface as egress,
/// as in scionproto's program. The sign alone is a default: it matches all interfaces. Printed
/// without redundant zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AclEntry {
    allow: bool,
    /// `None` matches every interface.
    predicate: Option<Predicate>,
}

/// Why a list is not an [`Acl`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AclError {
    /// An entry is invalid.
    #[error(
        "{text:?} is not an ACL entry: {why}; write for example \"+ 1-ff00:0:110#1\", \"- 2\" or \"+\""
    )]
    Entry {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The list does not end with a default.
    #[error("the ACL has no default: end it with \"+\" or \"-\"")]
    NoDefault,
    /// There are entries after the default, which have no effect.
    #[error(
        "the ACL has entries after its default \"{default}\", from \"{extra}\" on: remove them"
    )]
    Extra {
        /// The default.
        default: AclEntry,
        /// The entry after it.
        extra: AclEntry,
    },
    /// The list has too many entries.
    #[error("an ACL of {entries} entries: at most {MAX_ENTRIES} are read")]
    TooLong {
        /// Number of entries.
        entries: usize,
    },
}

impl Acl {
    /// An ACL of these entries.
    ///
    /// # Errors
    /// When the last entry is not a default, another one is, or there are more than 10,000.
    pub fn new(entries: Vec<AclEntry>) -> Result<Self, AclError> {
        if entries.len() > MAX_ENTRIES {
            let entries = entries.len();
            return Err(AclError::TooLong { entries });
        }
        let default = entries.iter().position(AclEntry::is_default);
        let default = default.ok_or(AclError::NoDefault)?;
        match entries.get(default + 1) {
            Some(&extra) => Err(AclError::Extra {
                default: entries[default],
                extra,
            }),
            None => Ok(Self(entries)),
        }
    }

    /// Its entries, in order.
    pub fn entries(&self) -> &[AclEntry] {
        &self.0
    }

    /// Whether a path is allowed.
    #[cfg(test)]
    pub fn allows(&self, path: &Path) -> bool {
        self.denies(path).is_none()
    }

    /// The first interface of `path` that is denied, and by which entry.
    pub(super) fn denies(&self, path: &Path) -> Option<(AclEntry, Interface)> {
        // A path leaves the first AS, enters the next one, leaves it, and so on.
        path.interfaces.iter().zip(0..).find_map(|(interface, at)| {
            let is = |entry: &&AclEntry| entry.is(*interface, at % 2 == 1);
            let entry = self.0.iter().find(is).filter(|entry| !entry.allow)?;
            Some((*entry, *interface))
        })
    }
}

impl AclEntry {
    fn is_default(&self) -> bool {
        self.predicate.is_none_or(|predicate| predicate.is_any())
    }

    fn is(&self, interface: Interface, enters: bool) -> bool {
        self.predicate
            .is_none_or(|predicate| predicate.is(interface, enters))
    }
}

impl FromStr for Acl {
    type Err = AclError;

    fn from_str(text: &str) -> Result<Self, AclError> {
        let entries = text.split(';').map(|entry| entry.trim().parse());
        Self::new(entries.collect::<Result<_, _>>()?)
    }
}

impl FromStr for AclEntry {
    type Err = AclError;

    fn from_str(text: &str) -> Result<Self, AclError> {
        let wrong = |why| AclError::Entry {
            text: text.to_owned(),
            why,
        };
        let (sign, predicate) = match text.split_once(' ') {
            Some((sign, predicate)) => (sign, Some(predicate)),
            None => (text, None),
        };
        let allow = match sign {
            "+" => true,
            "-" => false,
            _ => return Err(wrong("it begins with + or -, then a space")),
        };
        let predicate: Option<Predicate> = predicate.map(str::parse).transpose().map_err(wrong)?;
        // `+ 0-0#0` means the same as `+`.
        let predicate = predicate.filter(|predicate| !predicate.is_any());
        Ok(Self { allow, predicate })
    }
}

impl fmt::Display for AclEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.allow { "+" } else { "-" })?;
        match self.predicate {
            Some(predicate) => write!(f, " {predicate}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Acl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries: Vec<String> = self.0.iter().map(AclEntry::to_string).collect();
        f.write_str(&entries.join("; "))
    }
}
