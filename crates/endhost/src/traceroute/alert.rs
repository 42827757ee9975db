//! The alert flags of a path: one for each interface on the way.

use crate::dataplane::{HOP, INFO, META};

/// Flags of an info field: the segment leads on over a peering link, and it is travelled in the
/// direction it was made in.
const PEERING: u8 = 0b10;
const CONSTRUCTION_DIRECTION: u8 = 0b01;
/// Flags of a hop field, by the direction its segment was made in.
const INGRESS_ALERT: u8 = 0b10;
const EGRESS_ALERT: u8 = 0b01;

/// The alert flags of a path, in the order of its interfaces.
pub(crate) struct Alerts(Vec<Alert>);

/// The flag that makes the router at one interface answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Alert {
    /// The byte of the path it is in.
    byte: usize,
    flag: u8,
}

impl Alerts {
    /// The flags of the path header `raw`, none where it is cut short.
    pub fn of(raw: &[u8]) -> Self {
        Self(alerts(raw).unwrap_or_default())
    }

    pub fn get(&self, index: usize) -> Option<Alert> {
        self.0.get(index).copied()
    }

    pub fn last(&self) -> Option<Alert> {
        self.0.last().copied()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl Alert {
    /// Sets the flag in `raw`, a copy of the path header it was found in. MACs do not cover it.
    pub fn set(self, raw: &mut [u8]) {
        if let Some(byte) = raw.get_mut(self.byte) {
            *byte |= self.flag;
        }
    }
}

fn alerts(raw: &[u8]) -> Option<Vec<Alert>> {
    let meta = u32::from_be_bytes(*raw.first_chunk::<META>()?);
    let lengths = [12, 6, 0].map(|shift| (meta >> shift & 0b11_1111) as usize);
    let segments = lengths.iter().take_while(|length| **length != 0).count();
    let mut hop_at = META + segments * INFO;
    let mut alerts = Vec::new();
    for (segment, &hops) in lengths[..segments].iter().enumerate() {
        let info = *raw.get(META + segment * INFO)?;
        let (ingress, egress) = match info & CONSTRUCTION_DIRECTION {
            0 => (EGRESS_ALERT, INGRESS_ALERT),
            _ => (INGRESS_ALERT, EGRESS_ALERT),
        };
        // Where two segments meet in one AS, the flags facing the unused part of either segment
        // mean no interface that is crossed. At a peering link they mean that link.
        let peering = info & PEERING != 0;
        let (first, last) = (segment == 0, segment + 1 == segments);
        for hop in 0..hops {
            raw.get(hop_at..hop_at + HOP)?;
            let mut add = |flag| alerts.push(Alert { byte: hop_at, flag });
            if hop > 0 || (peering && !first) {
                add(ingress);
            }
            if hop + 1 < hops || (peering && !last) {
                add(egress);
            }
            hop_at += HOP;
        }
    }
    Some(alerts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dataplane;

    /// A path of segments, each with its info flags and its hops' (ingress, egress).
    fn raw(segments: &[(u8, &[(u16, u16)])]) -> Vec<u8> {
        let mut meta = 0u32;
        for (index, (_, hops)) in segments.iter().enumerate() {
            meta |= (hops.len() as u32) << (12 - 6 * index);
        }
        let mut raw = meta.to_be_bytes().to_vec();
        for (flags, _) in segments {
            raw.extend_from_slice(&[*flags, 0, 0, 0, 0, 0, 0, 1]);
        }
        for (ingress, egress) in segments.iter().flat_map(|(_, hops)| *hops) {
            raw.extend_from_slice(&[0, 63]);
            raw.extend_from_slice(&ingress.to_be_bytes());
            raw.extend_from_slice(&egress.to_be_bytes());
            raw.extend_from_slice(&[0; 6]);
        }
        raw
    }

    /// The interface whose router answers when the flag is set: read from the hop field it is in.
    fn interface(raw: &[u8], alert: Alert) -> u16 {
        let at = alert.byte + if alert.flag == INGRESS_ALERT { 2 } else { 4 };
        u16::from_be_bytes([raw[at], raw[at + 1]])
    }

    #[test]
    fn each_interface_has_its_flag() {
        let up: (u8, &[_]) = (0, &[(1, 0), (3, 2), (0, 4)]);
        let core: (u8, &[_]) = (0, &[(5, 0), (0, 6)]);
        let down: (u8, &[_]) = (1, &[(0, 7), (8, 9), (10, 0)]);
        let shortcut: (u8, &[_]) = (0, &[(1, 0), (3, 2)]);
        let peer_up: (u8, &[_]) = (2, &[(1, 0), (11, 4)]);
        let peer_down: (u8, &[_]) = (3, &[(12, 7), (8, 0)]);
        for segments in [
            &[up][..],
            &[down],
            &[up, down],
            &[up, core, down],
            &[shortcut, down],
            &[peer_up, peer_down],
        ] {
            let raw = raw(segments);
            let crossed: Vec<u16> = Alerts::of(&raw)
                .0
                .iter()
                .map(|alert| interface(&raw, *alert))
                .collect();
            assert_eq!(crossed, dataplane::interface_ids(&raw).unwrap());
        }
    }

    #[test]
    fn setting_one_changes_one_bit() {
        let before = raw(&[(0, &[(1, 0), (3, 2)]), (1, &[(0, 7), (8, 0)])]);
        for alert in Alerts::of(&before).0 {
            let mut after = before.clone();
            alert.set(&mut after);
            let bits = before.iter().zip(&after).map(|(b, a)| (b ^ a).count_ones());
            assert_eq!(bits.sum::<u32>(), 1);
            assert_eq!(
                dataplane::interface_ids(&after),
                dataplane::interface_ids(&before)
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let alerts = Alerts::of(&bytes);
            if let Ok(ids) = dataplane::interface_ids(&bytes) {
                prop_assert_eq!(alerts.len(), ids.len());
            }
            let mut changed = bytes.clone();
            if let Some(alert) = alerts.last() {
                alert.set(&mut changed);
            }
            prop_assert_eq!(changed.len(), bytes.len());
        }
    }
}
