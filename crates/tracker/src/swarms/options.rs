//! Bounds of a tracker, and what it counts.

use std::collections::HashSet;
use std::time::Duration;

use hawser_address::PeerAddr;
use thiserror::Error;

/// What a tracker holds and gives at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwarmOptions {
    /// Most torrents.
    pub torrents: usize,
    /// Most peers of all torrents. Each takes about 250 bytes.
    pub peers: usize,
    /// Most peers of one torrent.
    pub peers_per_torrent: usize,
    /// Most peers of all torrents from one network: an IPv4 address, a /64 of IPv6, or such in an AS.
    pub peers_per_network: u32,
    /// Most peers of one torrent from one network.
    pub peers_per_torrent_and_network: u32,
    /// Announces and scrapes that one network may send in a minute, and at once twice as many; 0 for any
    /// number.
    pub requests_per_minute: u32,
    /// Time until clients announce again. Peers are forgotten after twice this time without an announce.
    pub interval: Duration,
    /// Least time between announces of a client that it is asked to keep.
    pub min_interval: Duration,
    /// Most peers in an answer.
    pub max_num_want: u32,
    /// Peers in an answer if the client names no number.
    pub num_want: u32,
    /// The info-hashes that are tracked, if not all.
    pub allowed: Option<HashSet<[u8; 20]>>,
    /// Whether a SCION address is believed only if its host is the IP address that the request comes
    /// from. Without this a client can name any address, which costs the host there a connection that
    /// fails; the bounds for each network limit that.
    pub same_host: bool,
}

impl Default for SwarmOptions {
    fn default() -> Self {
        Self {
            torrents: 100_000,
            peers: 1_000_000,
            peers_per_torrent: 100_000,
            peers_per_network: 20_000,
            peers_per_torrent_and_network: 64,
            requests_per_minute: 600,
            interval: Duration::from_secs(30 * 60),
            min_interval: Duration::from_secs(60),
            max_num_want: 200,
            num_want: 50,
            allowed: None,
            same_host: false,
        }
    }
}

/// What a client can reach, and is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reach {
    /// Peers over IPv4.
    pub ipv4: bool,
    /// Peers over IPv6.
    pub ipv6: bool,
    /// Peers over SCION.
    pub scion: bool,
}

/// Prefers some peers to others, such as those that share few links with the client.
pub trait Rank: Send + Sync {
    /// How good `candidate` is for the client at `client`; the highest are given. Called a few hundred
    /// times for each announce.
    fn rank(&self, client: PeerAddr, candidate: PeerAddr) -> u64;
}

/// Why a request is refused. The texts are sent to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The torrent is not among those that are tracked.
    #[error("this torrent is not tracked here")]
    NotAllowed,
    /// The network of the client sends too many requests.
    #[error("too many requests from your network")]
    TooMany,
    /// The client names a SCION address at another host than the one that it asks from. Nothing proves that
    /// it is its own.
    #[error("your SCION address is not stored: it is not at the host that you ask from")]
    ForeignHost,
}

/// What has happened since the tracker began, and what there is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Announces answered.
    pub announces: u64,
    /// Scrapes answered.
    pub scrapes: u64,
    /// Connection ids given over UDP.
    pub connects: u64,
    /// Requests refused because their network sent too many.
    pub limited: u64,
    /// Announces refused because their torrent is not tracked.
    pub not_allowed: u64,
    /// Requests that cannot be read, or whose connection id is invalid.
    pub invalid: u64,
    /// Announces whose peer was not stored, as a bound is reached or its SCION address is at another host.
    pub not_stored: u64,
    /// Peers forgotten because they announced no more.
    pub expired: u64,
    /// Torrents at present.
    pub torrents: u64,
    /// Peers at present.
    pub peers: u64,
    /// Seeders among them.
    pub seeders: u64,
}
