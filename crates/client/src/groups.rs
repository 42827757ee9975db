//! Bandwidth groups: torrents whose limits of rates hold for them together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::rates::{RateChanges, RateLimits};

/// Most bandwidth groups.
pub const MAX_GROUPS: usize = 100;
/// Most bytes of the name of one.
pub const MAX_GROUP_BYTES: usize = 100;

/// The bandwidth groups by name.
pub type Groups = BTreeMap<String, GroupLimits>;

/// The limits of a bandwidth group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupLimits {
    /// How fast its torrents together send and receive.
    pub rates: RateLimits,
    /// Whether the limits of all torrents do not hold for them.
    pub is_exempt: bool,
}

/// A change of the limits of a bandwidth group. What is `None` stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupChanges {
    /// How fast its torrents together send and receive.
    pub rates: RateChanges,
    /// Whether the limits of all torrents do not hold for them.
    pub is_exempt: Option<bool>,
}

impl GroupChanges {
    /// Makes the change.
    pub fn apply(self, limits: &mut GroupLimits) {
        self.rates.apply(&mut limits.rates);
        limits.is_exempt = self.is_exempt.unwrap_or(limits.is_exempt);
    }
}

/// How much a torrent gets of the limits that it has together with others, those of its group and of all
/// torrents, while these want more than there is: each priority four times as much as the one below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BandwidthPriority {
    /// A quarter of what normal ones get.
    Low,
    /// As much as most torrents.
    #[default]
    Normal,
    /// Four times what normal ones get.
    High,
}

impl From<BandwidthPriority> for hawser_torrent::BandwidthPriority {
    fn from(priority: BandwidthPriority) -> Self {
        match priority {
            BandwidthPriority::Low => Self::Low,
            BandwidthPriority::Normal => Self::Normal,
            BandwidthPriority::High => Self::High,
        }
    }
}

/// A change of which limits those of a torrent are within. What is `None` stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OuterChange {
    /// Its bandwidth group; empty for none.
    pub group: Option<String>,
    /// Whether neither the limits of its group nor those of all torrents hold for it.
    pub is_exempt: Option<bool>,
    /// How much it gets of them.
    pub priority: Option<BandwidthPriority>,
}

/// What is wrong with the name of a bandwidth group.
pub(crate) fn check_name(name: &str) -> Option<String> {
    let is_wrong =
        name.is_empty() || name.len() > MAX_GROUP_BYTES || name.contains(|c: char| c.is_control());
    is_wrong.then(|| {
        format!("{name:?} is not the name of a bandwidth group: write 1 to {MAX_GROUP_BYTES} bytes")
    })
}

/// What is wrong with bandwidth groups that no daemon can have.
pub(crate) fn check(groups: &Groups) -> Option<String> {
    if groups.len() > MAX_GROUPS {
        return Some(too_many());
    }
    groups.keys().find_map(|name| check_name(name))
}

/// Says that there is no room for a further group.
pub(crate) fn too_many() -> String {
    format!(
        "there are {MAX_GROUPS} bandwidth groups, as many as there may be: remove the torrents and the limits \
         of one"
    )
}
