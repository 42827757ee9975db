//! Data-plane paths: which interfaces they lead over, when they expire, how to go back.
//!
//! Source: SCION header specification, "Path Type: SCION".

use sciparse::core::view::View;
use sciparse::dataplane_path::standard::types::InfoFieldFlags;
use sciparse::dataplane_path::standard::view::StandardPathView;
use thiserror::Error;

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

/// Whether two forms of a path, taken at any two points of it, have the same hop fields: routers
/// change only the position and the segment identifiers on the way.
pub fn same_hops(one: &[u8], other: &[u8]) -> bool {
    match (standard(one), standard(other)) {
        (Ok(one), Ok(other)) => {
            let macs = |view: &StandardPathView| -> Vec<_> {
                view.hop_fields().iter().map(|hop| hop.mac()).collect()
            };
            macs(one) == macs(other)
        }
        _ => one.is_empty() && other.is_empty(),
    }
}

#[cfg(test)]
mod tests;
