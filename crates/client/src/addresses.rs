//! Where peers connect, and how they are found.

use std::net::SocketAddr;

use hawser_address::ScionAddr;

/// The addresses at which peers connect; `None` where they cannot connect. And how peers are found at the
/// start of the daemon, beside trackers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeerAddresses {
    /// For SCION peers.
    pub scion: Option<ScionAddr>,
    /// For IP peers.
    pub tcp: Option<SocketAddr>,
    /// Whether the DHT is searched.
    pub dht: bool,
    /// Whether peers are looked for on the own network.
    pub local: bool,
    /// Whether peers name others.
    pub exchange: bool,
}
