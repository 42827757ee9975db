//! Sending batches of packets.

use std::io::{ErrorKind, IoSlice};
use std::net::{SocketAddr, UdpSocket};

use crate::io::{self, Message};
use crate::live::InterfaceCounters;
use crate::reason::{DropReason, Drops};

/// The number of packets of `segment` bytes, the last perhaps shorter, in `bytes`.
#[inline]
pub(crate) fn packets_in(bytes: usize, segment: usize) -> u64 {
    bytes.div_ceil(segment.max(1)) as u64
}

/// The system has no route to the destination of the packets.
pub(crate) struct NoRoute;

/// Sends the packets of `segment` bytes, the last perhaps shorter, in `parts` to `to`. If the buffer
/// is full or the system refuses the packets, they are dropped.
#[inline]
pub(crate) fn transmit(
    socket: &UdpSocket,
    parts: &[IoSlice<'_>],
    segment: usize,
    to: SocketAddr,
    counters: &mut InterfaceCounters,
    drops: &mut Drops,
) -> Result<(), NoRoute> {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    let packets = packets_in(bytes, segment);
    let offload = offload(bytes, segment);
    let message = Message {
        parts,
        segment: offload,
        to,
    };
    match io::send(socket, message) {
        Ok(()) => count_sent(bytes, segment, counters),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            drops.add(DropReason::SendBufferFull, packets);
        }
        Err(error) if io::has_no_route(&error) => return Err(NoRoute),
        // The device has no segmentation offload, or refuses this size.
        Err(_) if packets > 1 => {
            for packet in parts.iter().flat_map(|part| part.chunks(segment)) {
                let (single, segment) = ([IoSlice::new(packet)], packet.len());
                if transmit(socket, &single, segment, to, counters, drops).is_err() {
                    drops.add(DropReason::SendFailed, 1);
                }
            }
        }
        Err(error) => {
            tracing::debug!(%error, %to, "cannot send");
            drops.add(DropReason::SendFailed, packets);
        }
    }
    Ok(())
}

/// The length that the system cuts `bytes` into packets of; `None` for one packet.
#[inline]
pub(crate) fn offload(bytes: usize, segment: usize) -> Option<u16> {
    (packets_in(bytes, segment) > 1).then_some(segment as u16)
}

/// Counts packets that were sent.
#[inline]
pub(crate) fn count_sent(bytes: usize, segment: usize, counters: &mut InterfaceCounters) {
    counters.tx_packets += packets_in(bytes, segment);
    counters.tx_bytes += bytes as u64;
}

/// Sends a BFD packet, which is not counted.
pub(crate) fn transmit_bfd(socket: &UdpSocket, packet: &[u8], to: SocketAddr) {
    let message = Message {
        parts: &[IoSlice::new(packet)],
        segment: None,
        to,
    };
    if let Err(error) = io::send(socket, message) {
        tracing::trace!(%error, %to, "cannot send a BFD packet");
    }
}
