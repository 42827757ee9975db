//! Which packets are for a socket, and counters of the others.

use std::net::SocketAddr;
use std::sync::Mutex;

use hawser_address::{IsdAsn, ScionAddr};
use hawser_packet::{Malformed, Packet, Quote, Scmp, ScmpError};

use super::arrival::{Arrival, Datagram, Report};
use crate::sync::lock;

/// Packets that arrived and were dropped, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DropCounters {
    /// Wrong UDP or SCMP checksum.
    pub checksum: u64,
    /// Not a SCION packet, or one whose lengths contradict each other.
    pub malformed: u64,
    /// Packets for another AS, host or port.
    pub not_for_us: u64,
    /// Packets of a protocol other than UDP and SCMP.
    pub unusable: u64,
    /// SCMP errors that quote no packet sent from here, or too little of a packet.
    pub unmatched: u64,
}

/// Reads the packets of one socket.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) local: ScionAddr,
    pub(super) drops: Mutex<DropCounters>,
}

impl Reader {
    /// Reads a packet; `None` when it is malformed or not for the socket, which is counted.
    #[inline]
    pub(super) fn accept<'a>(&self, bytes: &'a [u8], from: SocketAddr) -> Option<Arrival<'a>> {
        match self.read(bytes, from) {
            Ok(arrival) => arrival,
            Err(why) => {
                self.count_malformed(why);
                None
            }
        }
    }

    #[cold]
    fn count_malformed(&self, why: Malformed) {
        let mut drops = lock(&self.drops);
        match why {
            Malformed::Checksum => drops.checksum += 1,
            Malformed::NextHeader(_) => drops.unusable += 1,
            _ => drops.malformed += 1,
        }
    }

    /// Counts `error` as one that quotes no packet sent from here.
    pub(super) fn reject(&self, error: &ScmpError) {
        lock(&self.drops).unmatched += 1;
        tracing::debug!(local = %self.local, %error, "an SCMP error quotes no packet sent from here");
    }

    /// An SCMP error from the AS `sender`; `None` if it cannot be about a packet of this socket.
    fn report<'a>(
        &self,
        error: ScmpError,
        quote: Option<Quote<'a>>,
        sender: IsdAsn,
    ) -> Option<Report<'a>> {
        let Some(quote) = quote else {
            self.reject(&error);
            return None;
        };
        if quote.src != self.local {
            lock(&self.drops).not_for_us += 1;
            return None;
        }
        let report = Report { error, quote };
        if !report.is_consistent(sender) {
            self.reject(&report.error);
            return None;
        }
        Some(report)
    }

    #[inline]
    fn read<'a>(
        &self,
        bytes: &'a [u8],
        from: SocketAddr,
    ) -> Result<Option<Arrival<'a>>, Malformed> {
        let packet = Packet::parse(bytes)?;
        let local = self.local;
        let for_us = packet.header.dst_as == local.isd_as && packet.dst_host()? == local.host.ip();
        if !for_us {
            lock(&self.drops).not_for_us += 1;
            return Ok(None);
        }
        if packet.is_scmp() {
            return Ok(match Scmp::parse(&packet)? {
                Scmp::Error { error, quote } => self
                    .report(error, quote, packet.header.src_as)
                    .map(Arrival::Report),
                other => Some(Arrival::Scmp(packet, other)),
            });
        }
        let udp = packet.udp()?;
        if udp.dst_port != local.host.port() {
            lock(&self.drops).not_for_us += 1;
            return Ok(None);
        }
        Ok(Some(Arrival::Datagram(Datagram {
            packet,
            from,
            port: udp.src_port,
            payload: udp.payload,
        })))
    }
}
