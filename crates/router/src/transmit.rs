//! Sending batches of packets.

use std::io::{ErrorKind, IoSlice};
use std::net::{SocketAddr, UdpSocket};

use crate::emulate::packets_in;
use crate::io;
use crate::live::InterfaceCounters;
use crate::reason::{Drops, Reason};

/// The system has no route to where the packets should go.
pub(crate) struct NoRoute;

/// Packets of `segment` bytes, the last perhaps shorter.
pub(crate) struct Batch<'a> {
    pub parts: &'a [IoSlice<'a>],
    pub segment: usize,
    pub bytes: usize,
    /// `None` where the socket is connected.
    pub to: Option<SocketAddr>,
}

impl Batch<'_> {
    pub fn packets(&self) -> u64 {
        packets_in(self.bytes, self.segment)
    }
}

/// Sends a batch, or drops it: a full buffer or a refusal delays no other packets.
#[inline]
pub(crate) fn transmit(
    socket: &UdpSocket,
    batch: &Batch<'_>,
    counters: &mut InterfaceCounters,
    drops: &mut Drops,
) -> Result<(), NoRoute> {
    let packets = batch.packets();
    let segment = (packets > 1).then_some(batch.segment as u16);
    match send(socket, batch.parts, segment, batch.to) {
        Ok(()) => {
            counters.tx_packets += packets;
            counters.tx_bytes += batch.bytes as u64;
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            drops.add(Reason::SendBufferFull, packets);
        }
        Err(error) if io::has_no_route(&error) => return Err(NoRoute),
        Err(_) if segment.is_some() => one_by_one(socket, batch, counters, drops),
        Err(error) => {
            tracing::debug!(%error, to = ?batch.to, "cannot send");
            drops.add(Reason::SendFailed, packets);
        }
    }
    Ok(())
}

/// Sends a BFD packet, which is not counted.
pub(crate) fn transmit_bfd(socket: &UdpSocket, packet: &[u8], to: Option<SocketAddr>) {
    if let Err(error) = send(socket, &[IoSlice::new(packet)], None, to) {
        tracing::trace!(%error, ?to, "cannot send a BFD packet");
    }
}

/// Sends, again if an ICMP message has come for an earlier packet: that is reported once, by the
/// next call, which then sends nothing.
#[inline]
fn send(
    socket: &UdpSocket,
    parts: &[IoSlice<'_>],
    segment: Option<u16>,
    to: Option<SocketAddr>,
) -> std::io::Result<()> {
    use ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    let sent = io::send(socket, parts, segment, to);
    match sent.as_ref().map_err(std::io::Error::kind) {
        Err(ConnectionRefused | HostUnreachable | NetworkUnreachable) => {
            io::send(socket, parts, segment, to)
        }
        _ => sent,
    }
}

/// For devices without segmentation offload, or that refuse this size.
#[cold]
fn one_by_one(
    socket: &UdpSocket,
    batch: &Batch<'_>,
    counters: &mut InterfaceCounters,
    drops: &mut Drops,
) {
    for packet in batch
        .parts
        .iter()
        .flat_map(|part| part.chunks(batch.segment))
    {
        let single = Batch {
            parts: &[IoSlice::new(packet)],
            segment: packet.len(),
            bytes: packet.len(),
            to: batch.to,
        };
        if let Err(NoRoute) = transmit(socket, &single, counters, drops) {
            drops.add(Reason::SendFailed, 1);
        }
    }
}
