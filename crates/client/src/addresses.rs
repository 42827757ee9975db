//! Where peers connect.

use std::net::SocketAddr;

use hawser_address::ScionAddr;

/// The addresses at which peers connect; `None` where they cannot connect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeerAddresses {
    /// For SCION peers.
    pub scion: Option<ScionAddr>,
    /// For IP peers.
    pub tcp: Option<SocketAddr>,
}
