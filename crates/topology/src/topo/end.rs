//! The ends of links, as text and with their interface numbers.

use std::collections::{BTreeMap, BTreeSet};

use crate::IsdAsn;
use crate::network::End;

/// An end of a link as in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawEnd {
    pub isd_as: IsdAsn,
    pub router: String,
    /// The interface number, never 0; `None` if the file omits it.
    pub id: Option<u16>,
}

impl RawEnd {
    /// Reads `1-ff00:0:110#1`, or `1-ff00:0:110-A#1` for a named border router, or either without
    /// the number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an interface: write for example 1-ff00:0:110#1");
        let (left, id) = match text.split_once('#') {
            Some((left, id)) => (left, Some(id.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let (isd_as, router) = match left.match_indices('-').nth(1) {
            Some((at, _)) => (&left[..at], &left[at + 1..]),
            None => (left, ""),
        };
        let isd_as: IsdAsn = isd_as.parse().map_err(|_| wrong())?;
        if isd_as.is_wildcard() || id == Some(0) {
            return Err(wrong());
        }
        Ok(Self {
            isd_as,
            router: router.to_owned(),
            id,
        })
    }
}

/// The interface numbers of all ASes.
#[derive(Default)]
pub(super) struct Numbers(BTreeMap<IsdAsn, AsNumbers>);

#[derive(Default)]
struct AsNumbers {
    used: BTreeSet<u16>,
    /// All numbers below this are in use.
    next: u16,
}

impl Numbers {
    /// Reserves the number that the file gives for an end, if any. Must be called for all ends
    /// before the first call of [`Numbers::number`].
    pub fn reserve(&mut self, end: &RawEnd) -> Result<(), String> {
        let numbers = self.0.entry(end.isd_as).or_default();
        match end.id {
            Some(id) if !numbers.used.insert(id) => Err(format!(
                "interface {}#{id} is used by two links: give one of them another number",
                end.isd_as
            )),
            _ => Ok(()),
        }
    }

    /// The end with its number. If the file omits it, this is the lowest free number of the AS.
    pub fn number(&mut self, end: RawEnd) -> Result<End, String> {
        let id = match end.id {
            Some(id) => id,
            None => {
                let numbers = self.0.entry(end.isd_as).or_default();
                let id = (numbers.next.max(1)..=u16::MAX)
                    .find(|id| !numbers.used.contains(id))
                    .ok_or_else(|| {
                        format!(
                            "{} has no interface number left for its next link",
                            end.isd_as
                        )
                    })?;
                numbers.used.insert(id);
                numbers.next = id;
                id
            }
        };
        Ok(End {
            isd_as: end.isd_as,
            router: end.router,
            id,
        })
    }
}
