//! Limits of the rates at which blocks are sent and received.
//!
//! A limit has two levels: one for a torrent, and around it one for all torrents of a
//! [`Session`](crate::Session). Each is a token bucket ([`bucket`]) and a queue ([`turns`]): at the
//! level of a torrent its peers take turns, at that of a session the torrents do. One that has the
//! turn of its torrent waits for that of the session, then sends or receives at once.
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
mod level;
#[cfg(test)]
mod tests;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    own: Level<[u8; 32]>,
    /// Torrents take turns.
    of_session: Arc<Level<u64>>,
    /// The number of this torrent.
    torrent: u64,
}

/// The right to send or receive some bytes at once. Dropping it gives the turn up.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    own: Turn<'a, [u8; 32]>,
    of_session: Option<Turn<'a, u64>>,
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
            up: Limiter::new(limits.upload, session.up),
            down: Limiter::new(limits.download, session.down),
        }
    }

    /// Sets the limits of the torrent.
    pub fn set(&self, limits: RateLimits) {
        self.up.own.set_rate(limits.upload);
        self.down.own.set_rate(limits.download);
    }
}

impl Limiter {
    fn new(rate: Option<u64>, of_session: Arc<Level<u64>>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            own: Level::new(rate),
            of_session,
            torrent: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The lower of both limits in bytes per second; `None` without a limit.
    pub fn rate(&self) -> Option<u64> {
        let both = [self.own.rate(), self.of_session.rate()];
        both.into_iter().flatten().min()
    }

    /// Whether there is a limit.
    pub fn is_limited(&self) -> bool {
        self.rate().is_some()
    }

    /// Waits for the turn of a connection to the peer with this key. To be called where there is a
    /// [limit](Self::is_limited).
    pub async fn acquire(&self, peer: [u8; 32]) -> Permit<'_> {
        // Where the session alone is limited, peers take turns too.
        let own = self.own.turn(peer).await;
        let of_session = match self.of_session.rate() {
            Some(_) => Some(self.of_session.turn(self.torrent).await),
            None => None,
        };
        Permit { own, of_session }
    }

    /// Bytes to send in one turn: a block at least.
    pub fn quota(&self, most: u32) -> u32 {
        let rate = self.rate().unwrap_or(u64::MAX);
        let quota = u32::try_from(rate / TURNS_PER_SECOND).unwrap_or(u32::MAX);
        quota.clamp(BLOCK, most)
    }
}

impl Permit<'_> {
    /// `bytes` are sent or received.
    pub fn spend(self, bytes: u64) {
        self.own.spend(bytes);
        if let Some(turn) = self.of_session {
            turn.spend(bytes);
        }
    }
}
