//! Sending batches of packets.

use std::io::{ErrorKind, IoSlice};
use std::net::{SocketAddr, UdpSocket};

use crate::io;
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
    let bytes = parts.iter().map(|part| part.len()).sum();
    let packets = packets_in(bytes, segment);
    let offload = (packets > 1).then_some(segment as u16);
    match io::send(socket, parts, offload, to) {
        Ok(()) => {
            counters.tx_packets += packets;
            counters.tx_bytes += bytes as u64;
        }
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

/// Sends a BFD packet, which is not counted.
pub(crate) fn transmit_bfd(socket: &UdpSocket, packet: &[u8], to: SocketAddr) {
    if let Err(error) = io::send(socket, &[IoSlice::new(packet)], None, to) {
        tracing::trace!(%error, %to, "cannot send a BFD packet");
    }
}
