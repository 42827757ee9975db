//! Data-plane paths: which interfaces they lead over, when they expire, how to go back.
//!
//! Source: SCION header specification, "Path Type: SCION".

use std::ops::Range;

use sciparse::core::view::View;
use sciparse::dataplane_path::standard::types::InfoFieldFlags;
use sciparse::dataplane_path::standard::view::StandardPathView;
use thiserror::Error;

/// Bytes of the path's meta header, of an info field and of a hop field.
pub const META: usize = 4;
pub const INFO: usize = 8;
pub const HOP: usize = 12;
/// The segment identifier in an info field.
const SEGMENT_ID: Range<usize> = 2..4;
/// The router alerts among a hop field's flags.
const ALERTS: u8 = 0b11;

/// Why bytes are no usable data-plane path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DataplaneError {
    /// Shorter than its segments say, or a segment is missing.
    #[error("the path header is cut short")]
    Truncated,
    /// Bytes are left after the last hop field.
    #[error("{0} bytes follow the last hop field")]
    Trailing(usize),
    /// A segment has no hops, though others follow, or all have together too few.
    #[error("the path header lacks hops")]
    Empty,
    /// The position in the path is outside it.
    #[error("the path header points outside itself")]
    Position,
}

/// Reads `raw` as one whole standard path.
fn standard(raw: &[u8]) -> Result<&StandardPathView, DataplaneError> {
    let (view, rest) =
        StandardPathView::try_from_slice(raw).map_err(|_| DataplaneError::Truncated)?;
    if !rest.is_empty() {
        return Err(DataplaneError::Trailing(rest.len()));
    }
    if view.seg0_len() == 0 || (view.seg1_len() == 0 && view.seg2_len() != 0) {
        return Err(DataplaneError::Empty);
    }
    Ok(view)
}

/// The interface ids `raw` leads over, in the order packets cross them: egress, ingress, egress,
/// ingress… so an even number.
///
/// # Errors
/// [`DataplaneError`] when `raw` is not one whole standard path.
pub fn interface_ids(raw: &[u8]) -> Result<Vec<u16>, DataplaneError> {
    let view = standard(raw)?;
    let segments = view.segments().segment_count();
    let mut ids = Vec::with_capacity(2 * usize::from(view.hop_field_count()));
    for (index, (info, hops)) in view.segments().enumerate() {
        // Where two segments meet in one AS, the ids facing the unused part of either segment are
        // not crossed. At a peering link they are the link itself.
        let peering = info.flags().contains(InfoFieldFlags::PEERING);
        let (first_segment, last_segment) = (index == 0, index + 1 == segments);
        for (hop_index, hop) in hops.iter().enumerate() {
            let enters = hop_index > 0 || (peering && !first_segment);
            let leaves = hop_index + 1 < hops.len() || (peering && !last_segment);
            if enters {
                ids.push(hop.ingress_interface(info));
            }
            if leaves {
                ids.push(hop.egress_interface(info));
            }
        }
    }
    if ids.len() % 2 == 0 && !ids.is_empty() {
        Ok(ids)
    } else {
        Err(DataplaneError::Empty)
    }
}

/// When the first hop field of `raw` expires, in seconds since the Unix epoch.
///
/// # Errors
/// [`DataplaneError`] when `raw` is not one whole standard path.
pub fn expiry(raw: &[u8]) -> Result<u64, DataplaneError> {
    Ok(u64::from(standard(raw)?.expiration()))
}

/// Turns the path of a packet that arrived into the path of the answer, in place.
///
/// # Errors
/// [`DataplaneError`] when `raw` is not one whole standard path.
pub fn reverse(raw: &mut [u8]) -> Result<(), DataplaneError> {
    standard(raw)?;
    let (view, _) =
        StandardPathView::try_from_mut_slice(raw).map_err(|_| DataplaneError::Truncated)?;
    view.try_reverse().map_err(|_| DataplaneError::Position)
}

/// Whether two path headers, taken at any two points on the way, are of the same path: equal but
/// for what routers change on the way, which is the position, the segment identifiers and the alert
/// flags (SCION header specification, "Path Type: SCION").
pub fn same_path(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() || one.is_empty() {
        return one.is_empty() && other.is_empty();
    }
    let Ok(view) = standard(one) else {
        return false;
    };
    let hops_at = META + view.segments().segment_count() * INFO;
    let (infos, hops) = (META..hops_at, hops_at..one.len());
    let pairs = |part: Range<usize>, size| {
        let chunks = one[part.clone()].chunks(size);
        chunks.zip(other[part].chunks(size))
    };
    one[1..META] == other[1..META]
        && pairs(infos, INFO).all(|(one, other)| {
            one[..SEGMENT_ID.start] == other[..SEGMENT_ID.start]
                && one[SEGMENT_ID.end..] == other[SEGMENT_ID.end..]
        })
        && pairs(hops, HOP)
            .all(|(one, other)| (one[0] ^ other[0]) & !ALERTS == 0 && one[1..] == other[1..])
}

#[cfg(test)]
mod tests;
