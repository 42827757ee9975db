//! Packets that arrive at a socket.

use std::net::SocketAddr;

use hawser_address::{IsdAsn, ScionAddr};
use hawser_packet::{MalformedPath, Packet, Quote, Scmp, ScmpError, path};

use crate::endhost::Endhost;
use crate::headers::{Headers, HeadersError};

/// A packet for the socket.
#[derive(Debug)]
pub enum Arrival<'a> {
    /// Data from a remote.
    Datagram(Datagram<'a>),
    /// An SCMP error that quotes a packet from this socket's address. Any host may have sent it.
    Report(Report<'a>),
    /// Another SCMP message.
    Scmp(Packet<'a>, Scmp<'a>),
}

/// Data from a remote.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    pub(super) packet: Packet<'a>,
    pub(crate) from: SocketAddr,
    /// The remote's port.
    pub port: u16,
    /// The payload.
    pub payload: &'a [u8],
}

/// How to answer a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyPath {
    /// The headers of answers.
    pub headers: Headers,
    /// The ids of the path's interfaces, from here to the sender; empty inside one AS.
    pub interfaces: Vec<u16>,
    /// When the path expires, in seconds since the Unix epoch.
    pub expiry: u64,
}

/// An SCMP error that quotes a packet from this socket's address.
///
/// A report counts only if the user of the socket finds that the quoted packet was sent: then its
/// [`Outage`](crate::Outage), if it has one, must be passed to [`Endhost::report`]. Every other
/// report must be passed to [`Socket::reject`](super::Socket::reject), which counts it.
#[derive(Debug)]
pub struct Report<'a> {
    /// The error.
    pub error: ScmpError,
    /// The quoted packet.
    pub quote: Quote<'a>,
}

impl Report<'_> {
    /// Whether the error agrees with the packet that it quotes, and may come from the AS `sender`.
    /// Only the AS of an interface reports it down (SCMP specification, "External Interface Down",
    /// "Internal Connectivity Down"), and routers do not let a host send in the name of another AS.
    /// A packet that fits the reported MTU cannot have been too big for it (RFC 8201, section 4).
    pub(super) fn is_consistent(&self, sender: IsdAsn) -> bool {
        match self.error {
            ScmpError::ExternalInterfaceDown { isd_as, .. }
            | ScmpError::InternalConnectivityDown { isd_as, .. } => isd_as == sender,
            ScmpError::PacketTooBig { mtu } => usize::from(mtu) < self.quote.packet_len(),
            _ => true,
        }
    }
}

impl<'a> Datagram<'a> {
    /// The bytes that all packets of one remote host over one path have in common, and (as far as
    /// routers check) packets of other hosts or paths do not; ports are not among them.
    #[inline]
    pub fn flow_bytes(&self) -> &'a [u8] {
        self.packet.route_bytes()
    }

    /// The packet's congestion mark.
    #[inline]
    pub fn ecn(&self) -> u8 {
        self.packet.ecn()
    }

    /// How a socket of `host` at `local` answers: over the packet's own path, reversed, through the
    /// router of this AS that the packet came from.
    ///
    /// # Errors
    /// [`HeadersError`] when the path cannot be reversed, or the router is not one of this AS.
    pub fn reply_path(&self, host: &Endhost, local: ScionAddr) -> Result<ReplyPath, HeadersError> {
        let packet = &self.packet;
        let no_reply = |reason| HeadersError::NoReply {
            remote: ScionAddr::new(packet.header.src_as, (self.from.ip(), self.port).into()),
            reason,
        };
        if packet.header.path_type == 0 {
            if packet.header.src_as != local.isd_as {
                return Err(no_reply("it comes from another AS without a path".into()));
            }
            let ip = packet.src_host();
            let ip = ip.map_err(|error| no_reply(error.to_string()))?;
            // Answers must not reach other hosts of this AS.
            if ip != self.from.ip() {
                return Err(no_reply(format!(
                    "its source is {ip}, but it comes from {}",
                    self.from.ip()
                )));
            }
            return Ok(ReplyPath {
                headers: Headers::reply(local, packet, self.port, (ip, self.port).into())?,
                interfaces: Vec::new(),
                expiry: u64::MAX,
            });
        }
        // Only through a router of this AS, so that a sender cannot redirect answers to other
        // hosts.
        if !host.routers().values().any(|router| *router == self.from) {
            let reason = format!("{} is not a border router of {}", self.from, local.isd_as);
            return Err(no_reply(reason));
        }
        // Path types other than the standard one are refused.
        let headers = Headers::reply(local, packet, self.port, self.from)?;
        let unreadable = |error: MalformedPath| no_reply(error.to_string());
        Ok(ReplyPath {
            interfaces: path::interface_ids(headers.path()).map_err(unreadable)?,
            expiry: path::expiry(headers.path()).map_err(unreadable)?,
            headers,
        })
    }
}
