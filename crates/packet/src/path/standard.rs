//! The layout of a standard path.

use std::ops::Range;

use super::field::{self, HOP, HopField, INFO, InfoField};
use crate::bytes::u32_at;
use crate::malformed::MalformedPath;

/// Length of the meta header, which begins a standard path.
pub const META: usize = 4;
/// The index of the current hop has 6 bits.
const MAX_HOPS: usize = 64;

/// The meta header of a standard path, checked against the path's length.
#[derive(Debug, Clone, Copy)]
pub struct StandardPath {
    at: usize,
    /// The segment of the current hop, as the meta header says.
    pub current_info: usize,
    /// The current hop.
    pub current_hop: usize,
    /// Number of hops of each segment.
    pub segments: [usize; 3],
    /// Number of segments, each of which has an info field.
    pub infos: usize,
    /// Number of hop fields.
    pub hops: usize,
}

/// A hop of a path, with the info field of its segment.
#[derive(Debug, Clone, Copy)]
pub struct PathHop {
    /// The number of the hop, from 0.
    pub number: usize,
    /// The info field of its segment.
    pub info: InfoField,
    /// Its hop field.
    pub field: HopField,
}

impl StandardPath {
    /// Reads the path that fills `range` of `packet` exactly: segments without gaps, at most 64
    /// hops. Does not check the current hop.
    ///
    /// # Errors
    /// [`MalformedPath`] when `range` is not exactly one such path.
    ///
    /// # Panics
    /// When `range` is not within `packet`.
    #[inline]
    pub fn parse(packet: &[u8], range: Range<usize>) -> Result<Self, MalformedPath> {
        let Range { start: at, end } = range;
        if end < at + META {
            return Err(MalformedPath::Truncated);
        }
        let meta = u32_at(packet, at);
        let segments = [12, 6, 0].map(|shift| (meta >> shift & 0x3f) as usize);
        let infos = match segments {
            [0, ..] => return Err(MalformedPath::Empty),
            [_, 0, 0] => 1,
            [_, 0, _] => return Err(MalformedPath::Empty),
            [_, _, 0] => 2,
            _ => 3,
        };
        let hops = segments.iter().sum();
        if hops > MAX_HOPS {
            return Err(MalformedPath::TooManyHops(hops));
        }
        let fields_end = at + META + INFO * infos + HOP * hops;
        if fields_end > end {
            return Err(MalformedPath::Truncated);
        }
        if fields_end < end {
            return Err(MalformedPath::Trailing(end - fields_end));
        }
        Ok(Self {
            at,
            current_info: (meta >> 30) as usize,
            current_hop: (meta >> 24 & 0x3f) as usize,
            segments,
            infos,
            hops,
        })
    }

    /// Checks that the current hop exists and is in the current segment.
    ///
    /// # Errors
    /// [`MalformedPath::Position`] when it does not exist or is in another segment.
    #[inline]
    pub fn check_position(&self) -> Result<(), MalformedPath> {
        if self.current_hop < self.hops && self.current_info == self.info_of(self.current_hop) {
            Ok(())
        } else {
            Err(MalformedPath::Position)
        }
    }

    /// Index of the segment of hop `hop`.
    #[inline]
    pub fn info_of(&self, hop: usize) -> usize {
        let [first, second, _] = self.segments;
        usize::from(hop >= first) + usize::from(hop >= first + second)
    }

    /// Offset of info field `info` in the packet.
    #[inline]
    pub fn info_at(&self, info: usize) -> usize {
        self.at + META + INFO * info
    }

    /// Offset of hop field `hop` in the packet.
    #[inline]
    pub fn hop_at(&self, hop: usize) -> usize {
        self.at + META + INFO * self.infos + HOP * hop
    }

    /// Whether `hop` is the last hop of its segment, and another segment follows.
    #[inline]
    pub fn changes_after(&self, hop: usize) -> bool {
        hop + 1 < self.hops && self.info_of(hop) != self.info_of(hop + 1)
    }

    /// Whether `hop` is the first hop of its segment, and another segment precedes it.
    #[inline]
    pub fn changed_before(&self, hop: usize) -> bool {
        hop > 0 && self.info_of(hop) != self.info_of(hop - 1)
    }

    /// Reads hop `number` with its info field.
    #[inline]
    pub fn at(&self, packet: &[u8], number: usize) -> PathHop {
        PathHop {
            number,
            info: InfoField::read(packet, self.info_at(self.info_of(number))),
            field: HopField::read(packet, self.hop_at(number)),
        }
    }

    /// Makes `hop` the current one.
    #[inline]
    pub fn set_current(&self, packet: &mut [u8], hop: usize) {
        packet[self.at] = (self.info_of(hop) << 6 | hop) as u8;
    }

    /// Writes the accumulated segment identifier of segment `info`.
    #[inline]
    pub fn set_segment_id(&self, packet: &mut [u8], info: usize, id: u16) {
        InfoField::set_segment_id(packet, self.info_at(info), id);
    }

    /// Appends the reverse of the path in `packet` to `out`, with the router alerts cleared and
    /// positioned at the hop that is `hop` here.
    ///
    /// The segment identifiers are copied from `packet` without chaining: the last router expects
    /// the same values on the reverse path as it has written.
    pub fn write_reversed(&self, packet: &[u8], hop: usize, out: &mut Vec<u8>) {
        let mut meta = 0u32;
        for info in (0..self.infos).rev() {
            meta = meta << 6 | self.segments[info] as u32;
        }
        meta <<= 6 * (3 - self.infos);
        let info = self.infos - 1 - self.info_of(hop);
        meta |= (info << 30 | (self.hops - 1 - hop) << 24) as u32;
        out.extend(meta.to_be_bytes());
        for info in (0..self.infos).rev() {
            let at = self.info_at(info);
            out.push(packet[at] ^ field::CONS_DIR);
            out.extend_from_slice(&packet[at + 1..at + INFO]);
        }
        for hop in (0..self.hops).rev() {
            let at = self.hop_at(hop);
            out.push(packet[at] & !field::ALERTS);
            out.extend_from_slice(&packet[at + 1..at + HOP]);
        }
    }
}
