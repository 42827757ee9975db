//! What a client asks, and what a tracker answers.

use std::net::IpAddr;
use std::time::Duration;

use hawser_address::{PeerAddr, ScionAddr};
use thiserror::Error;

/// Most peers read from one answer; further ones are ignored.
pub const MAX_ANSWER_PEERS: usize = 1000;

/// What an announce reports beside the numbers (BEP 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Event {
    /// Nothing: an announce at the interval of the tracker.
    #[default]
    None,
    /// The first announce to this tracker.
    Started,
    /// The client leaves.
    Stopped,
    /// The client has just become a seeder.
    Completed,
}

/// An announce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnounceRequest {
    /// The info-hash: 20 bytes of SHA-1, or the first 20 of SHA-256 (BEP 52).
    pub info_hash: [u8; 20],
    /// The peer id.
    pub peer_id: [u8; 20],
    /// The port at which the client accepts peers over IP; 0 if it accepts none.
    pub port: u16,
    /// Bytes uploaded since `started`.
    pub uploaded: u64,
    /// Bytes downloaded since `started`.
    pub downloaded: u64,
    /// Bytes missing; 0 for a seeder.
    pub left: u64,
    /// What is reported.
    pub event: Event,
    /// Most peers wanted in the answer; `None` leaves it to the tracker.
    pub num_want: Option<u32>,
    /// A number that names the client to this tracker though its address changes.
    pub key: u32,
    /// The SCION address at which the client accepts peers.
    pub scion: Option<ScionAddr>,
    /// What the tracker gave in an earlier answer to be sent back (BEP 3, `tracker id`).
    pub tracker_id: Option<Vec<u8>>,
}

/// An answer to an announce.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// Time until the next regular announce, as the tracker wishes; `None` if it names none.
    pub interval: Option<Duration>,
    /// Least time between two announces.
    pub min_interval: Option<Duration>,
    /// Number of seeders.
    pub complete: Option<u32>,
    /// Number of leechers.
    pub incomplete: Option<u32>,
    /// Peers, of IP and of SCION; at most [`MAX_ANSWER_PEERS`] when read, each
    /// [reachable](PeerAddr::is_reachable). They may repeat, and the client itself may be among them.
    pub peers: Vec<PeerAddr>,
    /// A text for people.
    pub warning: Option<String>,
    /// To be sent back with later announces.
    pub tracker_id: Option<Vec<u8>>,
    /// The IP address of the client as the tracker sees it (BEP 24).
    pub external_ip: Option<IpAddr>,
}

/// The numbers of a swarm, as a scrape answers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scraped {
    /// Number of seeders.
    pub complete: u32,
    /// How many clients have reported `completed`.
    pub downloaded: u32,
    /// Number of leechers.
    pub incomplete: u32,
}

/// When a tracker that refuses may be asked again (BEP 31, `retry in`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retry {
    /// It does not say.
    #[default]
    Unsaid,
    /// After this time.
    After(Duration),
    /// Never, for this torrent.
    Never,
}

/// Why an announce or a scrape has failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TrackerError {
    /// The tracker refuses it.
    #[error("the tracker refuses: {reason}")]
    Refused {
        /// Its reason, in its words.
        reason: String,
        /// When it may be asked again.
        retry: Retry,
    },
    /// There is no answer, or none that can be read.
    #[error("{0}")]
    Failed(String),
}
