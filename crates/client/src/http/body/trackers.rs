//! Trackers of a torrent, and changes of them.

use std::time::Instant;

use hawser_tracker::{TrackerState, TrackerStatus};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::trackers::{TrackerChange, number};

/// A tracker of a torrent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tracker {
    /// Its URL.
    pub url: String,
    /// Its tier, from 0.
    #[schema(minimum = 0)]
    pub tier: u64,
    /// What it does: idle, announcing, working, failing or unused.
    pub state: String,
    /// Why the last announce failed; none since it has answered.
    pub error: Option<String>,
    /// The warning of its last answer.
    pub warning: Option<String>,
    /// Seconds since its last answer, or since the last announce failed.
    #[schema(minimum = 0)]
    pub answer_age: Option<u64>,
    /// Seconds until it is asked next; none while it is not its turn.
    #[schema(minimum = 0)]
    pub next_in: Option<u64>,
    /// Seeders, as of its last answer.
    #[schema(minimum = 0)]
    pub seeders: Option<u32>,
    /// Leechers, as of its last answer.
    #[schema(minimum = 0)]
    pub leechers: Option<u32>,
    /// How many peers its last answer had.
    #[schema(minimum = 0)]
    pub peers: u64,
}

impl Tracker {
    /// As it is at this time.
    pub(crate) fn new(status: &TrackerStatus, now: Instant) -> Self {
        let state = match status.state {
            TrackerState::Idle => "idle",
            TrackerState::Announcing => "announcing",
            TrackerState::Working => "working",
            TrackerState::Failing => "failing",
            TrackerState::Unused => "unused",
        };
        let failed = status.error.as_ref().map(|(at, _)| *at);
        let ended = failed.or(status.answered);
        Self {
            url: status.url.clone(),
            tier: status.tier as u64,
            state: state.to_owned(),
            error: status.error.as_ref().map(|(_, error)| error.clone()),
            warning: status.warning.clone(),
            answer_age: ended.map(|at| now.saturating_duration_since(at).as_secs()),
            next_in: status
                .next
                .map(|at| at.saturating_duration_since(now).as_secs()),
            seeders: status.complete,
            leechers: status.incomplete,
            peers: status.peers as u64,
        }
    }
}

/// What the trackers of a torrent become: all of them in tiers (BEP 12), or a change of those that it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Trackers {
    /// Their URLs, in tiers, in place of those that it has.
    Tiers(Vec<Vec<String>>),
    /// A change.
    Change(TrackersChange),
}

/// A change of trackers, which changes something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TrackersChange {
    /// URLs of trackers that are added, each in a tier of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// URLs of those that are removed before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

impl From<Trackers> for Vec<TrackerChange> {
    fn from(trackers: Trackers) -> Self {
        match trackers {
            Trackers::Tiers(tiers) => vec![TrackerChange::Set(tiers)],
            Trackers::Change(TrackersChange { add, remove }) => {
                let removed = remove.iter().map(|url| number(url)).collect();
                vec![TrackerChange::Remove(removed), TrackerChange::Add(add)]
            }
        }
    }
}
