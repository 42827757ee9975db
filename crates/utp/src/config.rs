//! Bounds of an endpoint and of its connections.

use std::net::SocketAddr;
use std::time::Duration;

use crate::packet::HEADER_LENGTH;

/// Bytes of the largest IP packet: it passes most tunnels whole, and others cut it into fragments.
const IP_PACKET: usize = 1400;
/// Bytes of the headers of IPv4 and UDP, and of IPv6 and UDP.
const IPV4_HEADERS: usize = 28;
const IPV6_HEADERS: usize = 48;

/// Bounds of an endpoint and of its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Bytes of a connection that wait to be read; as many again may wait for a packet that is missing. 1 MiB,
    /// which is what 80 Mbit/s bring in 100 ms.
    pub receive_buffer: usize,
    /// Bytes of a connection that were written and are not acknowledged: 1 MiB.
    pub send_buffer: usize,
    /// Most connections, those included that only wait until the peer has everything: 600.
    pub max_connections: usize,
    /// Most connections that peers have opened and that were not accepted: 64. With 0 none may be opened.
    pub backlog: usize,
    /// Time without a packet of the peer after which a connection counts as lost: 3 minutes.
    pub idle_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            receive_buffer: 1 << 20,
            send_buffer: 1 << 20,
            max_connections: 600,
            backlog: 64,
            idle_timeout: Duration::from_secs(180),
        }
    }
}

impl Config {
    /// Lets no more than `backlog` connections wait to be accepted; with 0 peers may open none.
    #[must_use]
    pub const fn with_backlog(mut self, backlog: usize) -> Self {
        self.backlog = backlog;
        self
    }

    /// Bytes of a segment after the device has refused larger packets: IP packets of 1280 bytes, which every
    /// device takes that carries IPv6, and of 576.
    pub(crate) const SMALLER_PAYLOADS: [usize; 2] = [
        1280 - IPV6_HEADERS - HEADER_LENGTH,
        576 - IPV6_HEADERS - HEADER_LENGTH,
    ];

    /// Bytes of a full segment to this peer.
    ///
    /// Packets have this size from the first to the last: there is no search for a larger one. A segment that has left
    /// this host keeps its length, so a probe that is lost because it was too large could not be sent again in
    /// parts.
    pub(crate) const fn payload(peer: SocketAddr) -> usize {
        let headers = match peer {
            SocketAddr::V4(_) => IPV4_HEADERS,
            SocketAddr::V6(_) => IPV6_HEADERS,
        };
        IP_PACKET - headers - HEADER_LENGTH
    }
}
