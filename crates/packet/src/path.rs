//! Standard paths: the layout of their fields, their interfaces, their expiry, and their reversal
//! (SCION header specification, "Path Type: SCION").

mod crossing;
mod field;
mod mac;
mod standard;

use std::ops::Range;

pub use self::crossing::{Crossing, crossings, interface_ids};
pub use self::field::{HOP, HopField, INFO, InfoField};
pub use self::mac::HopKey;
pub use self::standard::{META, PathHop, StandardPath};
use crate::malformed::MalformedPath;

/// Length of a one-hop path: an info field and two hop fields.
pub const ONE_HOP: usize = INFO + 2 * HOP;

/// The path header for an answer to a packet that arrived with the path header `raw`.
///
/// # Errors
/// [`MalformedPath`] when `raw` is not exactly one standard path, or its current hop is not on it.
pub fn reverse(raw: &[u8]) -> Result<Vec<u8>, MalformedPath> {
    let path = StandardPath::parse(raw, 0..raw.len())?;
    path.check_position()?;
    let mut reversed = Vec::with_capacity(raw.len());
    path.write_reversed(raw, path.current_hop, &mut reversed);
    Ok(reversed)
}

/// The earliest expiry of all hop fields of the path header `raw`, in whole seconds since the Unix
/// epoch.
///
/// # Errors
/// [`MalformedPath`] when `raw` is not exactly one standard path.
pub fn expiry(raw: &[u8]) -> Result<u64, MalformedPath> {
    let path = StandardPath::parse(raw, 0..raw.len())?;
    let expiries = (0..path.hops).map(|number| {
        let hop = path.at(raw, number);
        hop.field.expiry_half_seconds(&hop.info) / 2
    });
    expiries.min().ok_or(MalformedPath::Empty)
}

/// When the youngest segment of the path header `raw` was originated, in seconds since the Unix epoch
/// by the clock of the AS that did so.
///
/// # Errors
/// [`MalformedPath`] when `raw` is not exactly one standard path.
pub fn originated(raw: &[u8]) -> Result<u64, MalformedPath> {
    let path = StandardPath::parse(raw, 0..raw.len())?;
    let infos = (0..path.infos).map(|info| InfoField::read(raw, path.info_at(info)));
    let youngest = infos.map(|info| u64::from(info.timestamp)).max();
    youngest.ok_or(MalformedPath::Empty)
}

/// Whether two path headers, each taken at any router, belong to the same path: they may differ
/// only in the fields that routers change, which are the current hop, the segment identifiers and
/// the alert flags.
pub fn same_path(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() || one.is_empty() {
        return one.is_empty() && other.is_empty();
    }
    let Ok(path) = StandardPath::parse(one, 0..one.len()) else {
        return false;
    };
    let same = |range: Range<usize>| one[range.clone()] == other[range];
    same(1..META)
        && (0..path.infos).map(|info| path.info_at(info)).all(|at| {
            let id = InfoField::segment_id_at(at);
            same(at..id.start) && same(id.end..at + INFO)
        })
        && (0..path.hops)
            .map(|hop| path.hop_at(hop))
            .all(|at| (one[at] ^ other[at]) & !field::ALERTS == 0 && same(at + 1..at + HOP))
}

#[cfg(test)]
mod tests;
