//! What users set for a torrent, besides its folder and labels, and what they set for all torrents.

use serde::{Deserialize, Serialize};

use crate::choice::SeedChoice;
use crate::files::FileChoice;

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

/// What users set for a torrent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// When its seeding ends.
    pub seeding: SeedChoice,
    /// How fast it sends and receives.
    pub rates: RateLimits,
    /// Which files are downloaded.
    pub files: FileChoice,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_keeps_its_number_while_it_does_not_hold() {
        let mut limits = RateLimits::default();
        let change = |limits: &mut RateLimits, download, upload| {
            RateChanges { download, upload }.apply(limits);
            hawser_torrent::RateLimits::from(*limits)
        };
        let stays = RateChange::default();
        assert_eq!(
            change(&mut limits, stays, stays),
            hawser_torrent::RateLimits::default()
        );
        let set = change(&mut limits, RateChange::to(Some(8_000)), stays);
        assert_eq!((set.download, set.upload), (Some(1_000), None));
        let (off, on) = (RateChange::to(None), |holds| RateChange {
            holds: Some(holds),
            rate: None,
        });
        assert_eq!(change(&mut limits, off, stays).download, None);
        assert_eq!(limits.download.rate, 8_000);
        let set = change(&mut limits, on(true), on(true));
        assert_eq!((set.download, set.upload), (Some(1_000), Some(100_000)));
        let least = change(&mut limits, RateChange::to(Some(0)), stays);
        assert_eq!(least.download, Some(1));
    }
}
