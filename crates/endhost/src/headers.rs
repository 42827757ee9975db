//! The headers of packets to one remote over one path.

use std::net::SocketAddr;

use hawser_address::{IsdAsn, ScionAddr};
use hawser_packet::header::MAX_HEADER;
use hawser_packet::path::same_path;
use hawser_packet::{HeaderLength, Packet, Quote, Template};
use thiserror::Error;

use crate::path::Path;

/// The headers of packets from this host to one remote over one path, and the underlay address of
/// its first hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    /// The address at the end of the path.
    pub remote: ScionAddr,
    /// The underlay address that packets are sent to.
    pub next_hop: SocketAddr,
    pub(crate) template: Template,
}

/// Why packets cannot be sent to a remote.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeadersError {
    /// The path begins or ends in another AS.
    #[error("the path leads from {src} to {dst}, not from {local} to {remote}")]
    OtherEnds {
        /// The AS in which the path begins.
        src: IsdAsn,
        /// The AS in which the path ends.
        dst: IsdAsn,
        /// This host.
        local: ScionAddr,
        /// The remote.
        remote: ScionAddr,
    },
    /// The next hop's address is of another family than this host's.
    #[error(
        "{next_hop} cannot be sent to from {local}, which is of another family: \
         name the address to send from"
    )]
    Family {
        /// The router, or the remote itself inside one AS.
        next_hop: SocketAddr,
        /// This host's address.
        local: ScionAddr,
    },
    /// The path is too long for a SCION header (1020 bytes).
    #[error("the path to {remote} makes a header of {bytes} bytes: at most {MAX_HEADER} fit")]
    HeaderTooLong {
        /// The remote.
        remote: ScionAddr,
        /// Bytes of the header.
        bytes: usize,
    },
    /// A packet cannot be answered over its own path.
    #[error("cannot answer {remote}: {reason}")]
    NoReply {
        /// The packet's sender.
        remote: ScionAddr,
        /// Why it cannot be answered.
        reason: String,
    },
}

impl Headers {
    /// The headers from `local` to `remote` over `path`.
    ///
    /// # Errors
    /// [`HeadersError`] when the path has other ends, is too long, or begins at a router of another
    /// address family than `local`.
    pub fn new(local: ScionAddr, remote: ScionAddr, path: &Path) -> Result<Self, HeadersError> {
        let (src, dst) = (path.info().src, path.info().dst);
        if src != local.isd_as || dst != remote.isd_as {
            return Err(HeadersError::OtherEnds {
                src,
                dst,
                local,
                remote,
            });
        }
        let next_hop = path.next_hop().unwrap_or(remote.host);
        if next_hop.is_ipv4() != local.host.is_ipv4() {
            return Err(HeadersError::Family { next_hop, local });
        }
        Self::over(local, remote, path.raw(), next_hop)
    }

    /// The headers of an answer through `next_hop` to the sender of `packet`, whose port is `port`.
    ///
    /// # Errors
    /// [`HeadersError::NoReply`] when the packet's path cannot be reversed.
    pub fn reply(
        local: ScionAddr,
        packet: &Packet<'_>,
        port: u16,
        next_hop: SocketAddr,
    ) -> Result<Self, HeadersError> {
        let host = packet.src_host().unwrap_or(next_hop.ip());
        let remote = ScionAddr::new(packet.header.src_as, SocketAddr::new(host, port));
        let no_reply = |reason: String| HeadersError::NoReply { remote, reason };
        packet
            .src_host()
            .map_err(|error| no_reply(error.to_string()))?;
        let path = packet.reversed_path();
        let path = path.map_err(|error| no_reply(error.to_string()))?;
        Self::over(local, remote, &path, next_hop)
    }

    fn over(
        local: ScionAddr,
        remote: ScionAddr,
        path: &[u8],
        next_hop: SocketAddr,
    ) -> Result<Self, HeadersError> {
        let template = Template::new(local, remote, path)
            .map_err(|HeaderLength(bytes)| HeadersError::HeaderTooLong { remote, bytes })?;
        Ok(Self {
            remote,
            next_hop,
            template,
        })
    }

    /// The data-plane path, as it leaves this host.
    pub fn path(&self) -> &[u8] {
        self.template.path()
    }

    /// Whether the quoted packet went to this remote and over exactly this path, not over an older
    /// or newer one with the same interfaces.
    pub fn quoted_by(&self, quote: &Quote<'_>) -> bool {
        quote.dst == self.remote && same_path(self.path(), quote.path())
    }

    /// Bytes of the SCION and UDP headers before each payload.
    pub fn overhead(&self) -> usize {
        self.template.overhead()
    }

    /// The largest payload of packets of `mtu` bytes, headers included.
    pub fn max_payload(&self, mtu: u16) -> u16 {
        let overhead = u16::try_from(self.overhead()).unwrap_or(u16::MAX);
        mtu.saturating_sub(overhead)
    }

    /// Appends a packet with `payload` and the congestion mark `ecn` (two bits) to `out`.
    ///
    /// `payload` must fit a packet: SCION's length field holds at most 65535.
    #[inline]
    pub fn write(&self, payload: &[u8], ecn: u8, out: &mut Vec<u8>) {
        self.template.write(payload, ecn, out);
    }

    /// A packet with the SCMP `message`, whose checksum (bytes 2 and 3) this function fills in.
    pub fn scmp(&self, message: &[u8]) -> Vec<u8> {
        self.template.scmp(message)
    }
}

#[cfg(test)]
mod tests;
