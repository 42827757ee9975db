//! A torrent that was added.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Torrent;

/// A torrent that was added, or was there before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AddedTorrent {
    /// The torrent.
    #[serde(flatten)]
    pub torrent: Torrent,
    /// What it was given, if it was there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
}

/// How much of what was named a torrent did not have, and was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Merged {
    /// Peers, which it asks at once if it runs.
    pub peers: u64,
    /// Trackers; none are added to a private torrent.
    pub trackers: u64,
}

impl From<crate::torrents::Merged> for Merged {
    fn from(merged: crate::torrents::Merged) -> Self {
        Self {
            peers: merged.peers as u64,
            trackers: merged.trackers as u64,
        }
    }
}
