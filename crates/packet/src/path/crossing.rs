//! The interfaces on a path, and the flags that alert their routers.

use super::field::HopField;
use super::standard::{PathHop, StandardPath};
use crate::malformed::MalformedPath;

/// An interface on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crossing {
    /// The number of the interface.
    pub id: u16,
    /// Offset of the byte with the alert flag in the path header.
    alert_at: usize,
    alert: u8,
}

impl Crossing {
    /// Sets the flag that alerts the interface's router in `raw`, a copy of the path header that
    /// the interface was read from. MACs do not cover the flag.
    pub fn set_alert(&self, raw: &mut [u8]) {
        if let Some(byte) = raw.get_mut(self.alert_at) {
            *byte |= self.alert;
        }
    }
}

/// The interfaces on the path with the header `raw`, in order of travel: egress, ingress, egress,
/// ingress, and so on. Their number is even.
///
/// # Errors
/// [`MalformedPath`] when `raw` is not exactly one standard path.
pub fn crossings(raw: &[u8]) -> Result<Vec<Crossing>, MalformedPath> {
    let path = StandardPath::parse(raw, 0..raw.len())?;
    let mut crossings = Vec::with_capacity(2 * path.hops);
    for number in 0..path.hops {
        let PathHop { info, field, .. } = path.at(raw, number);
        let mut cross = |id, alert| {
            let alert_at = path.hop_at(number);
            crossings.push(Crossing {
                id,
                alert_at,
                alert,
            });
        };
        // Where two segments meet in an AS, packets do not cross the interfaces that lead to the
        // unused part of either segment. At a peering link those interfaces are the ends of the
        // link.
        let (changed, changes) = (path.changed_before(number), path.changes_after(number));
        if (number > 0 && !changed) || (info.peer && path.info_of(number) > 0) {
            cross(field.ingress(&info), HopField::ingress_flag(&info));
        }
        if (number + 1 < path.hops && !changes)
            || (info.peer && path.info_of(number) + 1 < path.infos)
        {
            cross(field.egress(&info), HopField::egress_flag(&info));
        }
    }
    if crossings.is_empty() || crossings.len() % 2 != 0 {
        return Err(MalformedPath::Empty);
    }
    Ok(crossings)
}

/// The numbers of the interfaces that [`crossings`] returns.
///
/// # Errors
/// As [`crossings`].
pub fn interface_ids(raw: &[u8]) -> Result<Vec<u16>, MalformedPath> {
    Ok(crossings(raw)?.iter().map(|crossing| crossing.id).collect())
}
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{DOWN, PEERING, UP, raw};

    #[test]
    fn each_interface_has_the_flag_of_its_hop_field() {
        let up: (u8, &[_]) = (UP, &[(1, 0), (3, 2), (0, 4)]);
        let core: (u8, &[_]) = (UP, &[(5, 0), (0, 6)]);
        let down: (u8, &[_]) = (DOWN, &[(0, 7), (8, 9), (10, 0)]);
        let shortcut: (u8, &[_]) = (UP, &[(1, 0), (3, 2)]);
        let peer_up: (u8, &[_]) = (UP | PEERING, &[(1, 0), (11, 4)]);
        let peer_down: (u8, &[_]) = (DOWN | PEERING, &[(12, 7), (8, 0)]);
        for segments in [
            &[up][..],
            &[down],
            &[up, down],
            &[up, core, down],
            &[shortcut, down],
            &[peer_up, peer_down],
        ] {
            let raw = raw(segments);
            for crossing in crossings(&raw).unwrap() {
                // The flag determines the offset of the interface in the hop field.
                let id_at = crossing.alert_at + if crossing.alert == 0b10 { 2 } else { 4 };
                let id = u16::from_be_bytes([raw[id_at], raw[id_at + 1]]);
                assert_eq!(id, crossing.id);
            }
        }
    }

    #[test]
    fn setting_an_alert_changes_one_bit() {
        let before = raw(&[(UP, &[(1, 0), (3, 2)]), (DOWN, &[(0, 7), (8, 0)])]);
        for crossing in crossings(&before).unwrap() {
            let mut after = before.clone();
            crossing.set_alert(&mut after);
            let bits = before.iter().zip(&after).map(|(b, a)| (b ^ a).count_ones());
            assert_eq!(bits.sum::<u32>(), 1);
            assert_eq!(interface_ids(&after), interface_ids(&before));
        }
    }

    proptest! {
        #[test]
        fn reading_any_bytes_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let ids = interface_ids(&bytes);
            for crossing in crossings(&bytes).unwrap_or_default() {
                crossing.set_alert(&mut bytes);
            }
            prop_assert_eq!(interface_ids(&bytes), ids);
        }
    }
}
