//! Sealed packets: keys, numbers, and the replay window.

mod keys;
mod open;
mod window;

use std::ops::Range;

use self::keys::Keys;
pub use self::keys::{Cipher, SECRET};
pub use self::open::{Opened, Opener, Payload, Rejected, Rejections};
use super::packet::{Ack, HEADER, Header, Kind, POSITION, SubflowId, TAG};

/// Most packets sealed with one key: the limit for AES-GCM (RFC 9001, 6.6) for packets of any size.
const PACKETS_PER_KEY: u64 = 1 << 23;

/// Seals the packets of one direction of a subflow, and numbers them.
#[derive(Debug)]
pub struct Sealer {
    subflow: SubflowId,
    keys: Keys,
    phase: bool,
    /// The number of the next packet.
    next: u64,
    /// The first number that the current key may not seal.
    key_end: u64,
}

impl Sealer {
    /// A sealer with the exported secret of its direction (`docs/bulk-protocol.md`, *Keys*).
    pub fn new(cipher: Cipher, secret_and_id: &[u8; SECRET]) -> Self {
        let (keys, subflow) = Keys::exported(cipher, secret_and_id);
        Self {
            subflow,
            keys,
            phase: false,
            next: 0,
            key_end: PACKETS_PER_KEY,
        }
    }

    /// The number of the next packet.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// The id in all packets.
    pub fn subflow_id(&self) -> SubflowId {
        self.subflow
    }

    /// Appends `content`, which begins at `position`, as data packets to `out`: `per_packet` bytes
    /// of content each, the last possibly fewer, one behind the other. With `ask`, the last packet
    /// asks for an answer. Returns their numbers.
    pub fn seal_data(
        &mut self,
        out: &mut Vec<u8>,
        position: u64,
        content: &[u8],
        per_packet: usize,
        ask: bool,
    ) -> Range<u64> {
        let first = self.next;
        let packets = content.len().div_ceil(per_packet.max(1));
        out.reserve(content.len() + packets * (HEADER + POSITION + TAG));
        let positions = (position..).step_by(per_packet.max(1));
        let last = packets.saturating_sub(1);
        for (index, (part, position)) in
            content.chunks(per_packet.max(1)).zip(positions).enumerate()
        {
            self.seal(out, Kind::Data, ask && index == last, |out| {
                out.extend_from_slice(&position.to_be_bytes());
                out.extend_from_slice(part);
            });
        }
        first..self.next
    }

    /// Appends an acknowledgement packet of at most `size` bytes to `out`, with as many ranges as
    /// fit. Returns its number.
    pub fn seal_ack(&mut self, out: &mut Vec<u8>, ack: &Ack, size: usize) -> u64 {
        let limit = size.saturating_sub(HEADER + TAG);
        self.seal(out, Kind::Ack, false, |out| ack.encode(out, limit))
    }

    /// Appends a probe of `size` bytes to `out`, which asks for an answer. The smallest probe has
    /// header and tag alone (29 bytes). Returns its number.
    pub fn seal_probe(&mut self, out: &mut Vec<u8>, size: usize) -> u64 {
        let zeros = size.saturating_sub(HEADER + TAG);
        self.seal(out, Kind::Probe, true, |out| {
            out.resize(out.len() + zeros, 0)
        })
    }

    #[inline]
    fn seal(
        &mut self,
        out: &mut Vec<u8>,
        kind: Kind,
        ask: bool,
        payload: impl FnOnce(&mut Vec<u8>),
    ) -> u64 {
        let number = self.next;
        if number == self.key_end {
            self.keys = self.keys.next();
            self.phase = !self.phase;
            self.key_end += PACKETS_PER_KEY;
        }
        let header = Header {
            kind,
            phase: self.phase,
            ask,
            subflow: self.subflow,
            number: number as u32,
        };
        let header = header.encode();
        out.extend_from_slice(&header);
        let start = out.len();
        payload(out);
        let tag = self.keys.seal(number, &header, &mut out[start..]);
        out.extend_from_slice(&tag);
        self.next += 1;
        number
    }
}

#[cfg(test)]
mod tests;
