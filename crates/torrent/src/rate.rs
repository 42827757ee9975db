//! Limits of the rates at which blocks are sent and received.
//!
//! A limit has up to three levels: one for a torrent, around it one for its [group](RateGroup), if it
//! is in one, and around that one for all torrents of a [`Session`](crate::Session). Each is a token
//! bucket ([`bucket`]) and a queue ([`turns`]): at the level of a torrent its peers take turns, at the
//! others the torrents do. One that has the turn of its torrent waits for that of the group, then for
//! that of the session, then sends or receives at once. A torrent may be [exempt](OuterLimits) from
//! the outer levels, and a group from that of the session. At the outer levels torrents get bytes by their
//! [priority](BandwidthPriority), at the level of a torrent its peers get the same.
//!
//! - *Sending*: a connection waits for its turn before it takes requests from its queue, so that
//!   what the peer cancels meanwhile is not sent.
//! - *Receiving*: blocks that were read wait for their turn, and nothing more is read from the
//!   connection meanwhile: the windows of TCP and QUIC fill, and the peer pauses. Little is on its
//!   way then, as no more blocks are requested than arrive in time at the limit. What a peer sends
//!   without blocks does not wait.
//!
//! The bytes of blocks count, headers and what is sent again after a loss do not. Without a limit
//! nothing is counted and nothing locked.

mod bucket;
mod group;
mod level;
#[cfg(test)]
mod tests;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use self::group::{BandwidthPriority, OuterLimits, RateGroup};
use self::group::{Direction, Outer};
use self::level::{Level, Turn};
use crate::wire::BLOCK;

/// What is sent in one turn, as a part of a second: so short that a turn delays others by little.
const TURNS_PER_SECOND: u64 = 50;

/// Limits of rates in bytes of blocks per second; `None` for no limit. 0 counts as 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateLimits {
    /// Most that is sent, to all peers together.
    pub upload: Option<u64>,
    /// Most that is received, from all peers together.
    pub download: Option<u64>,
}

/// The limits of a torrent, within those of its session; or those of a session.
#[derive(Debug)]
pub(crate) struct Rates {
    pub up: Limiter,
    pub down: Limiter,
}

/// The limit of one direction.
#[derive(Debug)]
pub(crate) struct Limiter {
    /// Peers take turns, each known by the key of its certificate.
    own: Arc<Level<[u8; 32]>>,
    /// Torrents take turns.
    of_session: Arc<Level<u64>>,
    /// Which outer levels hold.
    outer: Outer,
    /// The number of this torrent.
    torrent: u64,
}

/// The right to send or receive some bytes at once. Dropping it gives the turn up.
#[derive(Debug)]
pub(crate) struct Permit {
    own: Turn<[u8; 32]>,
    outer: [Option<Turn<u64>>; 2],
}

/// The limits of a session, which those of its torrents are within.
#[derive(Debug, Clone)]
pub(crate) struct SessionRates {
    up: Arc<Level<u64>>,
    down: Arc<Level<u64>>,
}

impl SessionRates {
    /// Without a limit.
    pub fn unlimited() -> Self {
        Self {
            up: Arc::new(Level::new(None)),
            down: Arc::new(Level::new(None)),
        }
    }

    /// Sets the limits.
    pub fn set(&self, limits: RateLimits) {
        self.up.set_rate(limits.upload);
        self.down.set_rate(limits.download);
    }
}

impl Rates {
    /// The limits of a torrent, within those of its session.
    pub fn new(limits: RateLimits, session: SessionRates) -> Self {
        Self {
            up: Limiter::new(limits.upload, session.up, Direction::Up),
            down: Limiter::new(limits.download, session.down, Direction::Down),
        }
    }

    /// Sets the limits of the torrent.
    pub fn set(&self, limits: RateLimits) {
        self.up.own.set_rate(limits.upload);
        self.down.own.set_rate(limits.download);
    }

    /// Sets the limits that those of the torrent are within, also for what waits for a turn.
    pub fn set_outer(&self, limits: &OuterLimits) {
        self.up.outer.set(limits);
        self.down.outer.set(limits);
    }
}

impl Limiter {
    fn new(rate: Option<u64>, of_session: Arc<Level<u64>>, direction: Direction) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            own: Arc::new(Level::new(rate)),
            of_session,
            outer: Outer::new(direction),
            torrent: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The lowest of the limits in bytes per second; `None` without a limit.
    pub fn rate(&self) -> Option<u64> {
        let all = [self.own.rate(), self.outer.rate(&self.of_session)];
        all.into_iter().flatten().min()
    }

    /// Whether there is a limit.
    pub fn is_limited(&self) -> bool {
        self.rate().is_some()
    }

    /// Waits for the turn of a connection to the peer with this key. To be called where there is a
    /// [limit](Self::is_limited).
    pub async fn acquire(&self, peer: [u8; 32]) -> Permit {
        // Where an outer level alone is limited, peers take turns too.
        let own = self.own.turn(peer, 1).await;
        let outer = self.outer.turns(&self.of_session, self.torrent).await;
        Permit { own, outer }
    }

    /// Bytes to send in one turn: a block at least.
    pub fn quota(&self, most: u32) -> u32 {
        let rate = self.rate().unwrap_or(u64::MAX);
        let quota = u32::try_from(rate / TURNS_PER_SECOND).unwrap_or(u32::MAX);
        quota.clamp(BLOCK, most)
    }
}

impl Permit {
    /// `bytes` are sent or received.
    pub fn spend(self, bytes: u64) {
        self.own.spend(bytes);
        for turn in self.outer.into_iter().flatten() {
            turn.spend(bytes);
        }
    }
}
