//! Packets that repeat the headers of the previous packet.

use hawser_packet::number::next_header;

use crate::forwarder::Forwarder;
use crate::verdict::{Origin, PacketVerdict};

/// Length of the UDP header's ports, to which a packet may be delivered.
const PORTS: usize = 4;
/// Length of a UDP header.
const UDP_HEADER: usize = 8;
/// The longest headers that are kept: a path of 15 hops between IPv4 hosts.
const MAX_HEADER_LENGTH: usize = 256;

/// The headers of the last forwarded packet, before and after processing. A batch mostly consists of
/// packets of one flow and size, whose headers are equal in every byte: the same checks, with the
/// same MAC computation, have the same result.
///
/// It is valid only as long as the forwarder's state does not change.
#[derive(Default)]
pub(crate) struct Repeat {
    before: Vec<u8>,
    after: Vec<u8>,
    /// Length of the packet in bytes.
    length: usize,
    origin: Option<Origin>,
}

impl Repeat {
    /// Forgets the last packet. To be called when the state of the forwarder or the time changes.
    #[inline]
    pub fn clear(&mut self) {
        self.origin = None;
    }

    /// Processes `packet` as [`Forwarder::process`] does, and keeps its headers if the result
    /// depends on nothing else.
    pub fn process(
        &mut self,
        forwarder: &Forwarder,
        now: u64,
        origin: Origin,
        packet: &mut [u8],
    ) -> PacketVerdict {
        self.origin = None;
        let Some(headers) = headers(packet) else {
            return forwarder.process(now, origin, packet);
        };
        self.before.clear();
        self.before.extend_from_slice(&packet[..headers]);
        let verdict = forwarder.process(now, origin, packet);
        let forwarded = matches!(
            verdict,
            PacketVerdict::Forward { .. }
                | PacketVerdict::Deliver { .. }
                | PacketVerdict::Transit { .. }
        );
        if forwarded {
            self.after.clear();
            self.after.extend_from_slice(&packet[..headers]);
            (self.length, self.origin) = (packet.len(), Some(origin));
        }
        verdict
    }

    /// Changes `packet` as the last one was changed, if it came from the same origin and has the
    /// same headers and length; returns whether it did. The verdict is then the same too.
    #[inline]
    pub fn apply(&self, origin: Origin, packet: &mut [u8]) -> bool {
        let headers = self.before.len();
        let equal = self.origin == Some(origin)
            && self.length == packet.len()
            && packet[..headers] == self.before[..];
        if equal {
            packet[..headers].copy_from_slice(&self.after);
        }
        equal
    }
}

/// The number of bytes at the start of `packet` on which its processing depends, if it carries UDP
/// without extensions: the SCION headers and the UDP ports.
#[inline]
fn headers(packet: &[u8]) -> Option<usize> {
    let &[_, _, _, _, next_header, len, ..] = packet else {
        return None;
    };
    let scion = usize::from(len) * 4;
    let known = next_header == next_header::UDP
        && scion + PORTS <= MAX_HEADER_LENGTH
        && scion + UDP_HEADER <= packet.len();
    known.then_some(scion + PORTS)
}

#[cfg(test)]
mod tests;
