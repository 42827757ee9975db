//! Which TRCs of a server are needed, and whether they may be trusted.

use std::collections::BTreeMap;

use hawser_trust::{Trc, TrcId};

/// Most TRCs fetched at once: one of each ISD, or the updates that were missed.
const MAX_FETCHED: usize = 64;

/// What a TRC is beside those that are trusted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// The one that is trusted.
    Known,
    /// The first one of its ISD.
    First,
    /// An update, with the signatures that it needs.
    Update,
}

/// The TRCs to fetch, in the order of their serial numbers: of each ISD in `offered` the one that is
/// trusted, to compare it, and its updates; or the newest, if none is trusted. What is older than what
/// is trusted is not fetched: the server is late.
pub(crate) fn wanted(
    offered: &[TrcId],
    newest: impl Fn(u16) -> Option<TrcId>,
) -> Result<Vec<TrcId>, String> {
    let mut last: BTreeMap<u16, TrcId> = BTreeMap::new();
    for &id in offered {
        let known = last.entry(id.isd).or_insert(id);
        *known = id.max(*known);
    }
    let mut wanted = Vec::new();
    for id in last.into_values() {
        let first = match newest(id.isd) {
            Some(known) if id.base > known.base => {
                return Err(format!("{id} is no update of {known}, which is trusted"));
            }
            Some(known) if id.base < known.base || id.serial < known.serial => continue,
            Some(known) if id.serial > known.serial => known.serial + 1,
            _ => id.serial,
        };
        let room = MAX_FETCHED - wanted.len();
        if id.serial - first >= room as u64 {
            return Err(format!(
                "{id} takes more than {MAX_FETCHED} TRCs to be fetched"
            ));
        }
        wanted.extend((first..=id.serial).map(|serial| TrcId { serial, ..id }));
    }
    Ok(wanted)
}

/// What `trc` is, whose ISD's newest trusted TRC is `before`.
pub(crate) fn check(trc: &Trc, before: Option<&Trc>) -> Result<Checked, String> {
    let id = trc.id();
    match before {
        None if id.base == id.serial => match trc.verify_base() {
            Ok(()) => Ok(Checked::First),
            Err(error) => Err(format!("{id} is damaged: {error}")),
        },
        // Whose signatures it has is in the TRC before.
        None => Ok(Checked::First),
        Some(before) if before.id() == id => match before.to_der() == trc.to_der() {
            true => Ok(Checked::Known),
            false => Err(format!(
                "its {id} is another one than that which is trusted"
            )),
        },
        Some(before) => match trc.verify_update(before) {
            Ok(()) => Ok(Checked::Update),
            Err(error) => Err(error.to_string()),
        },
    }
}
