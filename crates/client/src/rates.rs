//! Limits of rates, of a torrent or of several together.

use serde::{Deserialize, Serialize};

/// The rate of a limit that was never set, in bit/s: 100 kB/s, as of Transmission.
const UNSET_RATE: u64 = 800_000;

/// A limit of a rate. Its number is kept while it does not hold, because programs set the two one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Bits of blocks per second; less than 8 count as 8.
    pub rate: u64,
    /// Whether it holds.
    pub holds: bool,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self {
            rate: UNSET_RATE,
            holds: false,
        }
    }
}

impl RateLimit {
    /// The limit in bit/s; `None` if there is none.
    pub fn in_force(self) -> Option<u64> {
        self.holds.then_some(self.rate)
    }
}

/// Limits of the rates of a torrent, within those of all torrents; or the latter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimits {
    /// Most that is received, from all peers together.
    pub download: RateLimit,
    /// Most that is sent, to all peers together.
    pub upload: RateLimit,
}

impl From<RateLimits> for hawser_torrent::RateLimits {
    /// In bytes per second.
    fn from(limits: RateLimits) -> Self {
        let bytes = |limit: RateLimit| limit.in_force().map(|rate| (rate / 8).max(1));
        Self {
            upload: bytes(limits.upload),
            download: bytes(limits.download),
        }
    }
}

/// A change of a limit of a rate. What is `None` stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateChange {
    /// Its number, in bit/s.
    pub rate: Option<u64>,
    /// Whether it holds.
    pub holds: Option<bool>,
}

impl RateChange {
    /// To this rate, in bit/s, or to none.
    pub fn to(rate: Option<u64>) -> Self {
        Self {
            rate,
            holds: Some(rate.is_some()),
        }
    }

    fn apply(self, limit: &mut RateLimit) {
        limit.rate = self.rate.unwrap_or(limit.rate);
        limit.holds = self.holds.unwrap_or(limit.holds);
    }
}

/// A change of both limits of rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateChanges {
    /// Of what is received.
    pub download: RateChange,
    /// Of what is sent.
    pub upload: RateChange,
}

impl RateChanges {
    /// Makes the change.
    pub fn apply(self, limits: &mut RateLimits) {
        self.download.apply(&mut limits.download);
        self.upload.apply(&mut limits.upload);
    }
}
