//! Bandwidth groups.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::RateLimit;
use crate::groups::{GroupChanges, GroupLimits};
use crate::settings::RateChanges;

/// A bandwidth group: torrents whose limits of rates hold for them together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Most bits of blocks that its torrents together receive a second.
    pub download_rate: RateLimit,
    /// Most bits of blocks that its torrents together send a second.
    pub upload_rate: RateLimit,
    /// Whether the limits of all torrents do not hold for them.
    pub exempt: bool,
}

impl From<(&String, &GroupLimits)> for Group {
    fn from((name, limits): (&String, &GroupLimits)) -> Self {
        Self {
            name: name.clone(),
            download_rate: limits.rates.download.in_force().into(),
            upload_rate: limits.rates.upload.in_force().into(),
            exempt: limits.is_exempt,
        }
    }
}

/// A change to a bandwidth group, which is made if it is not there. What is not given stays; a new group has no
/// limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupChange {
    /// Its name.
    pub name: String,
    /// Most bits of blocks that its torrents together receive a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download_rate: Option<RateLimit>,
    /// Most bits of blocks that its torrents together send a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload_rate: Option<RateLimit>,
    /// Whether the limits of all torrents do not hold for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exempt: Option<bool>,
}

impl From<&GroupChange> for GroupChanges {
    fn from(change: &GroupChange) -> Self {
        Self {
            rates: RateChanges {
                download: RateLimit::change(change.download_rate),
                upload: RateLimit::change(change.upload_rate),
            },
            is_exempt: change.exempt,
        }
    }
}
