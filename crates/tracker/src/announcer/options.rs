//! What is announced, and how.

use hawser_address::ScionAddr;

/// Names an announce that was ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AnnounceId(pub(super) u64);

/// What a client is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The info-hash.
    pub info_hash: [u8; 20],
    /// The peer id.
    pub peer_id: [u8; 20],
    /// The port at which the client accepts peers over IP; 0 if it accepts none. Trackers that refuse 0 get 1.
    pub port: u16,
    /// A random number, the same for the life of the client.
    pub key: u32,
    /// The SCION address at which the client accepts peers.
    pub scion: Option<ScionAddr>,
}

/// The numbers of a torrent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Bytes uploaded since the announcer began.
    pub uploaded: u64,
    /// Bytes downloaded since then.
    pub downloaded: u64,
    /// Bytes missing; not 0 also while it is unknown.
    pub left: u64,
    /// Peers known: connected, or to be tried.
    pub peers: u32,
}

/// How trackers are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnnounceOptions {
    /// Whether one tracker of each tier is asked, in place of one of all tiers (BEP 12).
    pub all_tiers: bool,
    /// Most peers wanted of each answer.
    pub num_want: u32,
    /// A leecher that knows fewer peers asks as often as the tracker allows.
    pub few_peers: u32,
}

impl Default for AnnounceOptions {
    fn default() -> Self {
        Self {
            all_tiers: false,
            num_want: 80,
            few_peers: 10,
        }
    }
}
