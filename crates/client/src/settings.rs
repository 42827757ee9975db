//! What users set for a torrent, besides its folder and labels, and what they set for all torrents.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::alternative::AlternativeLimits;
use crate::choice::{Choice, SeedChoice, SeedNumbers, check_ratio};
use crate::files::FileChoice;
use crate::groups::{BandwidthPriority, Groups};
use crate::network::NetworkSettings;
use crate::peer_limits::PeerLimits;
use crate::renames::Rename;
use crate::trackers::Tiers;

pub use crate::rates::{RateChange, RateChanges, RateLimit, RateLimits};

/// A limit of a number. The number is kept while it does not hold, because programs set the two one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit<T> {
    /// The number.
    pub value: T,
    /// Whether it holds.
    pub holds: bool,
}

impl<T: Copy> Limit<T> {
    /// This limit, which holds.
    pub fn to(value: T) -> Self {
        Self { value, holds: true }
    }

    /// A limit that does not hold.
    pub fn unset(value: T) -> Self {
        Self {
            value,
            holds: false,
        }
    }

    /// The limit; `None` if there is none.
    pub fn in_force(self) -> Option<T> {
        self.holds.then_some(self.value)
    }
}

/// A change of a limit. What is `None` stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitChange<T> {
    /// Its number.
    pub value: Option<T>,
    /// Whether it holds.
    pub holds: Option<bool>,
}

impl<T> LimitChange<T> {
    /// To this limit, or to none.
    pub fn to(value: Option<T>) -> Self {
        Self {
            holds: Some(value.is_some()),
            value,
        }
    }

    fn apply(self, limit: &mut Limit<T>) {
        if let Some(value) = self.value {
            limit.value = value;
        }
        limit.holds = self.holds.unwrap_or(limit.holds);
    }
}

/// How many torrents run at once, and when seeding ends of those that do not say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueLimits {
    /// Most torrents that download at once, at least 1.
    pub downloads: Limit<usize>,
    /// Most torrents that seed at once, at least 1.
    pub seeds: Limit<usize>,
    /// The ratio of bytes sent to bytes of content at which seeding ends.
    pub ratio: Limit<f64>,
    /// The time of seeding, in seconds, after which it ends.
    pub time: Limit<u64>,
    /// The time without an upload, in seconds, after which seeding ends.
    pub idle: Limit<u64>,
    /// Whether torrents that are added from then on are started, where that is not said of them.
    #[serde(default = "yes")]
    pub starts_added: bool,
}

/// Of files of earlier versions.
fn yes() -> bool {
    true
}

impl QueueLimits {
    /// The numbers of its limits of seeding.
    pub(crate) fn seed_numbers(&self) -> SeedNumbers {
        SeedNumbers {
            ratio: Some(self.ratio.value),
            idle: Some(self.idle.value),
        }
    }
}

impl Default for QueueLimits {
    /// Five downloads and fifty seeds; seeding does not end, and what is added is started. The numbers that do
    /// not hold are those of Transmission.
    fn default() -> Self {
        Self {
            downloads: Limit::to(5),
            seeds: Limit::to(50),
            ratio: Limit::unset(2.0),
            time: Limit::unset(0),
            idle: Limit::unset(30 * 60),
            starts_added: true,
        }
    }
}

impl QueueLimits {
    /// What is wrong with values that no daemon can have; `None` if nothing is.
    pub(crate) fn fault(&self) -> Option<String> {
        if self.downloads.value == 0 || self.seeds.value == 0 {
            return Some("a queue of 0 torrents runs none: write a number from 1 up".to_owned());
        }
        check_ratio(Choice::Own(self.ratio.value))
    }
}

/// A change of how many torrents run at once, and when seeding ends.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct QueueChanges {
    /// Most torrents that download at once.
    pub downloads: LimitChange<usize>,
    /// Most torrents that seed at once.
    pub seeds: LimitChange<usize>,
    /// The ratio at which seeding ends.
    pub ratio: LimitChange<f64>,
    /// The time of seeding, in seconds, after which it ends.
    pub time: LimitChange<u64>,
    /// The time without an upload, in seconds, after which it ends.
    pub idle: LimitChange<u64>,
    /// Whether torrents that are added are started, where that is not said of them.
    pub starts_added: Option<bool>,
}

impl QueueChanges {
    /// Makes the change.
    pub fn apply(self, limits: &mut QueueLimits) {
        self.downloads.apply(&mut limits.downloads);
        self.seeds.apply(&mut limits.seeds);
        self.ratio.apply(&mut limits.ratio);
        self.time.apply(&mut limits.time);
        self.idle.apply(&mut limits.idle);
        limits.starts_added = self.starts_added.unwrap_or(limits.starts_added);
    }
}

/// What users set for all torrents together, and is kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AllLimits {
    /// How fast they send and receive.
    pub rates: RateLimits,
    /// How many run at once, and when seeding ends.
    pub queue: QueueLimits,
    /// How fast they send and receive at other times.
    pub alternative: AlternativeLimits,
    /// Those of some of them together.
    pub groups: Groups,
    /// How many peers they may be connected to.
    pub peers: PeerLimits,
    /// How peers are reached.
    pub network: NetworkSettings,
    /// The folder for torrents that are added without one, an absolute path; that of the daemon when `None`.
    pub download_dir: Option<PathBuf>,
    /// Where content is until all that is wanted of it is there.
    pub incomplete: IncompleteFolder,
}

/// A folder for the content of torrents until all that is wanted of it is there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IncompleteFolder {
    /// The folder, an absolute path, which is kept while it is not used.
    pub folder: Option<PathBuf>,
    /// Whether it is used, for torrents that are added from then on.
    pub is_on: bool,
}

impl IncompleteFolder {
    /// The folder, if it is used.
    pub fn in_force(&self) -> Option<&Path> {
        self.folder.as_deref().filter(|_| self.is_on)
    }

    /// What is wrong with values that no daemon can have; `None` if nothing is.
    pub(crate) fn fault(&self) -> Option<String> {
        match &self.folder {
            Some(folder) if !folder.is_absolute() => Some(format!(
                "the folder {} for unfinished downloads is not absolute",
                folder.display()
            )),
            None if self.is_on => {
                Some("no folder for unfinished downloads is named: name it first".to_owned())
            }
            _ => None,
        }
    }
}

/// A change of the folder for unfinished downloads. What is `None` stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IncompleteChange {
    /// The folder, an absolute path.
    pub folder: Option<PathBuf>,
    /// Whether it is used.
    pub is_on: Option<bool>,
}

impl IncompleteChange {
    /// Has this folder used, or none.
    pub fn to(folder: Option<PathBuf>) -> Self {
        Self {
            is_on: Some(folder.is_some()),
            folder,
        }
    }

    /// Makes the change.
    pub fn apply(self, incomplete: &mut IncompleteFolder) {
        incomplete.folder = self.folder.or(incomplete.folder.take());
        incomplete.is_on = self.is_on.unwrap_or(incomplete.is_on);
    }
}

impl AllLimits {
    /// How fast they send and receive now.
    pub(crate) fn rates_in_force(&self) -> RateLimits {
        match self.alternative.holds {
            true => self.alternative.rates(),
            false => self.rates,
        }
    }
}

/// What users set for a torrent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// When its seeding ends.
    pub seeding: SeedChoice,
    /// Numbers of limits of its seeding that may not hold.
    #[serde(default)]
    pub seed_numbers: SeedNumbers,
    /// How fast it sends and receives.
    pub rates: RateLimits,
    /// Which files are downloaded.
    pub files: FileChoice,
    /// Its trackers; `None` for those that it names.
    #[serde(default)]
    pub trackers: Option<Tiers>,
    /// The bandwidth group that it is in; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Whether neither the limits of its group nor those of all torrents hold for it.
    #[serde(default)]
    pub is_exempt: bool,
    /// How much it gets of these limits beside others.
    #[serde(default)]
    pub priority: BandwidthPriority,
    /// The other names of its files and folders, one after another.
    #[serde(default)]
    pub renames: Vec<Rename>,
    /// How many peers it may be connected to; as all others when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_peers: Option<usize>,
    /// The folder that its content is moved to once all that is wanted of it is there, an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_the_queue_keep_their_numbers_while_they_do_not_hold() {
        let mut limits = QueueLimits::default();
        let off = QueueChanges {
            downloads: LimitChange::to(None),
            ratio: LimitChange::to(Some(1.5)),
            ..QueueChanges::default()
        };
        off.apply(&mut limits);
        assert_eq!(limits.downloads, Limit::unset(5));
        assert_eq!(
            (limits.ratio.in_force(), limits.seeds.in_force()),
            (Some(1.5), Some(50))
        );
        assert_eq!(limits.fault(), None);
        for (value, ratio) in [(0, 1.0), (1, -1.0), (1, f64::NAN)] {
            let wrong = QueueChanges {
                seeds: LimitChange::to(Some(value)),
                ratio: LimitChange::to(Some(ratio)),
                ..QueueChanges::default()
            };
            let mut limits = limits;
            wrong.apply(&mut limits);
            assert!(limits.fault().is_some(), "{value} {ratio}");
        }
    }

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
