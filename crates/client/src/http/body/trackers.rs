//! Changes of trackers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::trackers::{TrackerChange, number};

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
