//! Info fields and hop fields.

use std::ops::Range;
use std::time::Duration;

use crate::bytes::{u16_at, u32_at};

/// Length of an info field.
pub const INFO: usize = 8;
/// Length of a hop field.
pub const HOP: usize = 12;

/// Flags of an info field: travel is in construction direction; the segment is joined by a peering
/// link.
pub(super) const CONS_DIR: u8 = 0b01;
const PEER: u8 = 0b10;

/// Flags of a hop field: the router at this interface must process the packet.
const CONS_EGRESS_ALERT: u8 = 0b01;
const CONS_INGRESS_ALERT: u8 = 0b10;
pub(super) const ALERTS: u8 = CONS_EGRESS_ALERT | CONS_INGRESS_ALERT;

/// The unit of a hop field's lifetime: 1/256 day, in half seconds.
const LIFETIME_UNIT: u64 = 675;

/// An info field, which all hops of a segment share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoField {
    /// Whether packets travel in construction direction.
    pub cons_dir: bool,
    /// Whether a peering link joins the segment to the other one.
    pub peer: bool,
    /// The accumulated segment identifier (beta), which routers update.
    pub segment_id: u16,
    /// When the first AS originated the segment, in Unix seconds.
    pub timestamp: u32,
}

impl InfoField {
    /// Reads the info field at offset `at`.
    #[inline]
    pub fn read(packet: &[u8], at: usize) -> Self {
        let field = &packet[at..at + INFO];
        Self {
            cons_dir: field[0] & CONS_DIR != 0,
            peer: field[0] & PEER != 0,
            segment_id: u16_at(field, 2),
            timestamp: u32_at(field, 4),
        }
    }

    /// The field as bytes.
    #[inline]
    pub fn to_bytes(&self) -> [u8; INFO] {
        let mut field = [0; INFO];
        field[0] = if self.cons_dir { CONS_DIR } else { 0 } | if self.peer { PEER } else { 0 };
        field[2..4].copy_from_slice(&self.segment_id.to_be_bytes());
        field[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        field
    }

    /// The byte range of the segment identifier in the info field at offset `at`.
    #[inline]
    pub(super) fn segment_id_at(at: usize) -> Range<usize> {
        at + 2..at + 4
    }

    /// Writes the segment identifier of the info field at offset `at`.
    #[inline]
    pub fn set_segment_id(packet: &mut [u8], at: usize, id: u16) {
        packet[Self::segment_id_at(at)].copy_from_slice(&id.to_be_bytes());
    }
}

/// A hop field: an AS's part of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopField {
    /// Router alerts.
    pub flags: u8,
    /// Expiry after the segment's timestamp, in units of 337.5 s, minus one.
    pub exp_time: u8,
    /// The ingress interface in construction direction.
    pub cons_ingress: u16,
    /// The egress interface in construction direction.
    pub cons_egress: u16,
    /// The MAC that the AS computed over [`mac_input`](Self::mac_input).
    pub mac: [u8; 6],
}

impl HopField {
    /// Reads the hop field at offset `at`.
    #[inline]
    pub fn read(packet: &[u8], at: usize) -> Self {
        let field = &packet[at..at + HOP];
        Self {
            flags: field[0],
            exp_time: field[1],
            cons_ingress: u16_at(field, 2),
            cons_egress: u16_at(field, 4),
            mac: [field[6], field[7], field[8], field[9], field[10], field[11]],
        }
    }

    /// The field as bytes.
    #[inline]
    pub fn to_bytes(&self) -> [u8; HOP] {
        let mut field = [0; HOP];
        (field[0], field[1]) = (self.flags, self.exp_time);
        field[2..4].copy_from_slice(&self.cons_ingress.to_be_bytes());
        field[4..6].copy_from_slice(&self.cons_egress.to_be_bytes());
        field[6..].copy_from_slice(&self.mac);
        field
    }

    /// The ingress interface in direction of travel.
    #[inline]
    pub fn ingress(&self, info: &InfoField) -> u16 {
        match info.cons_dir {
            true => self.cons_ingress,
            false => self.cons_egress,
        }
    }

    /// The egress interface in direction of travel.
    #[inline]
    pub fn egress(&self, info: &InfoField) -> u16 {
        match info.cons_dir {
            true => self.cons_egress,
            false => self.cons_ingress,
        }
    }

    /// The flag that alerts the router of the ingress interface, in direction of travel.
    #[inline]
    pub(super) fn ingress_flag(info: &InfoField) -> u8 {
        match info.cons_dir {
            true => CONS_INGRESS_ALERT,
            false => CONS_EGRESS_ALERT,
        }
    }

    /// The flag that alerts the router of the egress interface, in direction of travel.
    #[inline]
    pub(super) fn egress_flag(info: &InfoField) -> u8 {
        ALERTS ^ Self::ingress_flag(info)
    }

    /// Whether the router of the ingress interface must process the packet.
    #[inline]
    pub fn ingress_alert(&self, info: &InfoField) -> bool {
        self.flags & Self::ingress_flag(info) != 0
    }

    /// Whether the router of the egress interface must process the packet.
    #[inline]
    pub fn egress_alert(&self, info: &InfoField) -> bool {
        self.flags & Self::egress_flag(info) != 0
    }

    /// The next accumulated segment identifier in construction direction, or the previous one
    /// against it (MAC chaining: XOR with the first two bytes of the MAC).
    #[inline]
    pub fn chain(&self, segment_id: u16) -> u16 {
        segment_id ^ u16::from_be_bytes([self.mac[0], self.mac[1]])
    }

    /// When the hop field expires, in half seconds since the Unix epoch: its [`lifetime`](Self::lifetime)
    /// after the segment's timestamp.
    #[inline]
    pub fn expiry_half_seconds(&self, info: &InfoField) -> u64 {
        u64::from(info.timestamp) * 2 + lifetime_half_seconds(self.exp_time)
    }

    /// How long after its segment's timestamp a hop field with this `exp_time` expires: `exp_time + 1`
    /// units of 1/256 day, which is 337.5 s (SCION header specification, "Hop Field").
    pub fn lifetime(exp_time: u8) -> Duration {
        Duration::from_millis(lifetime_half_seconds(exp_time) * 500)
    }

    /// The block that the MAC is computed over (SCION header specification, "Hop Field MAC -
    /// Computation").
    #[inline]
    pub fn mac_input(&self, info: &InfoField) -> [u8; 16] {
        let mut block = [0; 16];
        block[2..4].copy_from_slice(&info.segment_id.to_be_bytes());
        block[4..8].copy_from_slice(&info.timestamp.to_be_bytes());
        block[9] = self.exp_time;
        block[10..12].copy_from_slice(&self.cons_ingress.to_be_bytes());
        block[12..14].copy_from_slice(&self.cons_egress.to_be_bytes());
        block
    }
}

#[inline]
fn lifetime_half_seconds(exp_time: u8) -> u64 {
    (u64::from(exp_time) + 1) * LIFETIME_UNIT
}
