//! What calls change, as far as hawser can.

use hawser_torrent::InfoHash;
use hawser_transmission::{CallError, Change, Files, GroupChange, Priority, SeedMode};

use super::unsupported;
use crate::choice::{Choice, SeedChoice, SeedNumbers};
use crate::files::{FileChange, FileChanges, FilePriority};
use crate::groups::{BandwidthPriority, GroupChanges, OuterChange};
use crate::settings::{RateChange, RateChanges, RateLimit};
use crate::torrents::{CommandError, Move, Torrents};
use crate::trackers::{Tiers, TrackerChange};

/// Bits of a kilobyte of Transmission's, which has 1000 bytes.
const KILOBYTE: u64 = 8_000;

/// The changes of a torrent that one call makes together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Changes {
    pub labels: Option<Vec<String>>,
    pub limits: SeedChoice,
    /// Numbers of limits of seeding, also of those that do not hold.
    pub numbers: SeedNumbers,
    pub rates: RateChanges,
    pub outer: OuterChange,
    pub max_peers: Option<usize>,
    pub files: FileChanges,
    pub position: Option<usize>,
    pub trackers: Vec<TrackerChange>,
    /// The trackers that the torrent itself names, if some are changed.
    pub named: Tiers,
    sets_limits: bool,
}

impl Changes {
    /// Reads changes of a torrent with these limits of seeding, of which these are the numbers that it shows.
    ///
    /// # Errors
    /// If one is not supported yet.
    pub fn read(
        changes: &[Change],
        limits: SeedChoice,
        shown: SeedNumbers,
    ) -> Result<Self, CallError> {
        let mut read = Self {
            limits,
            ..Self::default()
        };
        let (mut mode, mut idle_mode) = (None, None);
        for change in changes {
            match change {
                Change::Labels(labels) => read.labels = Some(labels.clone()),
                Change::QueuePosition(position) => {
                    read.position = Some(usize::try_from(*position).unwrap_or(usize::MAX));
                }
                Change::RatioLimit(limit) => read.numbers.ratio = Some(*limit),
                Change::RatioMode(wanted) => mode = Some(*wanted),
                Change::IdleLimit(minutes) => {
                    read.numbers.idle = Some(minutes.saturating_mul(60));
                }
                Change::IdleMode(wanted) => idle_mode = Some(*wanted),
                Change::DownLimit(kilobytes) => read.rates.download.rate = Some(rate(*kilobytes)),
                Change::DownLimited(holds) => read.rates.download.holds = Some(*holds),
                Change::UpLimit(kilobytes) => read.rates.upload.rate = Some(rate(*kilobytes)),
                Change::UpLimited(holds) => read.rates.upload.holds = Some(*holds),
                Change::Wanted(files, is_wanted) => read.files.each.push(FileChange {
                    files: these(files),
                    is_wanted: Some(*is_wanted),
                    priority: None,
                }),
                Change::FilePriority(files, wanted) => read.files.each.push(FileChange {
                    files: these(files),
                    is_wanted: None,
                    priority: Some(priority(*wanted)),
                }),
                Change::Sequential(is_sequential) => {
                    read.files.is_sequential = Some(*is_sequential)
                }
                Change::TrackersAdded(urls) => {
                    read.trackers.push(TrackerChange::Add(urls.clone()));
                }
                Change::TrackersRemoved(numbers) => {
                    read.trackers.push(TrackerChange::Remove(numbers.clone()));
                }
                Change::TrackersReplaced(pairs) => {
                    read.trackers.push(TrackerChange::Replace(pairs.clone()));
                }
                Change::Trackers(tiers) => read.trackers.push(TrackerChange::Set(tiers.clone())),
                Change::Priority(wanted) => {
                    read.outer.priority = Some(match wanted {
                        Priority::Low => BandwidthPriority::Low,
                        Priority::Normal => BandwidthPriority::Normal,
                        Priority::High => BandwidthPriority::High,
                    });
                }
                Change::Group(name) => read.outer.group = Some(name.trim().to_owned()),
                Change::HonorsSessionLimits(honors) => read.outer.is_exempt = Some(!honors),
                Change::PeerLimit(limit) => read.max_peers = Some(count(*limit)),
                other => refuse(other)?,
            }
        }
        read.limits.ratio = choice(mode, read.numbers.ratio, limits.ratio, shown.ratio);
        read.limits.idle = choice(idle_mode, read.numbers.idle, limits.idle, shown.idle);
        read.sets_limits = read.limits != limits;
        Ok(read)
    }

    /// Makes the changes.
    pub fn apply(&self, all: &mut Torrents, hash: InfoHash) -> Result<(), CommandError> {
        if let Some(labels) = &self.labels {
            all.set_labels(hash, labels.clone())?;
        }
        all.keep_seed_numbers(hash, self.numbers)?;
        if self.sets_limits {
            all.set_limits(hash, self.limits)?;
        }
        all.change_outer(hash, self.outer.clone())?;
        if self.max_peers.is_some() {
            all.set_max_peers(hash, self.max_peers)?;
        }
        all.change_rates(hash, self.rates)?;
        all.change_files(hash, &self.files)?;
        all.change_trackers(hash, &self.named, &self.trackers)?;
        match self.position {
            Some(position) => all.reorder(hash, Move::To(position)),
            None => Ok(()),
        }
    }
}

/// A limit of seeding of a torrent that had `kept`, and shows the number `shown` of it.
fn choice<T: Copy>(
    mode: Option<SeedMode>,
    number: Option<T>,
    kept: Choice<T>,
    shown: Option<T>,
) -> Choice<T> {
    let own = match (number, kept) {
        (Some(number), _) | (None, Choice::Own(number)) => Some(number),
        (None, _) => shown,
    };
    match (mode, kept, own) {
        (Some(SeedMode::Session), _, _) => Choice::Default,
        (Some(SeedMode::Unlimited), _, _) => Choice::Unlimited,
        (Some(SeedMode::Own), _, Some(own)) | (None, Choice::Own(_), Some(own)) => Choice::Own(own),
        (_, kept, _) => kept,
    }
}

/// Refuses a change that would change something that hawser does not have.
fn refuse(change: &Change) -> Result<(), CallError> {
    let what = match change {
        Change::SequentialFrom(0) => return Ok(()),
        Change::SequentialFrom(_) => "to download in order from a piece on",
        _ => "this change",
    };
    Err(unsupported(what))
}

/// The files that a call names. None has an index beyond 32 bits.
fn these(files: &Files) -> crate::files::Files {
    match files {
        Files::All => crate::files::Files::All,
        Files::Some(files) => {
            let files = files.iter().filter_map(|file| u32::try_from(*file).ok());
            crate::files::Files::These(files.collect())
        }
    }
}

fn priority(priority: Priority) -> FilePriority {
    match priority {
        Priority::Low => FilePriority::Low,
        Priority::Normal => FilePriority::Normal,
        Priority::High => FilePriority::High,
    }
}

/// The bits per second of Transmission's kilobytes per second, of 1000 bytes each.
pub(super) fn rate(kilobytes: u64) -> u64 {
    kilobytes.saturating_mul(KILOBYTE)
}

/// A rate as it is shown, in kilobytes per second: less than one counts as one.
pub(super) fn kilobytes(rate: u64) -> u64 {
    rate.div_ceil(KILOBYTE)
}

/// A limit as it is shown.
pub(super) fn limit(limit: RateLimit) -> hawser_transmission::Limit {
    hawser_transmission::Limit {
        is_enabled: limit.holds,
        kilobytes: kilobytes(limit.rate),
    }
}

/// The changes of a bandwidth group.
pub(super) fn group(change: &GroupChange) -> GroupChanges {
    GroupChanges {
        rates: RateChanges {
            download: RateChange {
                rate: change.down_limit.map(rate),
                holds: change.is_down_limited,
            },
            upload: RateChange {
                rate: change.up_limit.map(rate),
                holds: change.is_up_limited,
            },
        },
        is_exempt: change.honors_session_limits.map(|honors| !honors),
    }
}

/// A number of torrents or peers.
pub(super) fn count(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: SeedNumbers = SeedNumbers {
        ratio: Some(0.5),
        idle: Some(60),
    };

    #[test]
    fn a_ratio_holds_by_its_mode() {
        let read = |changes: &[Change], ratio| {
            let limits = SeedChoice {
                ratio,
                ..SeedChoice::default()
            };
            let read = Changes::read(changes, limits, SHOWN).unwrap();
            (read.limits.ratio, read.numbers.ratio)
        };
        let (own, session) = (
            Change::RatioMode(SeedMode::Own),
            Change::RatioMode(SeedMode::Session),
        );
        let two = Change::RatioLimit(2.0);
        let (set, both) = (Some(2.0), [two.clone(), own.clone()]);
        assert_eq!(read(&both, Choice::Default), (Choice::Own(2.0), set));
        let (two, own) = ([two], [own]);
        assert_eq!(read(&two, Choice::Own(1.0)), (Choice::Own(2.0), set));
        let off = [session, two[0].clone()];
        assert_eq!(read(&off, Choice::Own(1.0)), (Choice::Default, set));
        assert_eq!(read(&own, Choice::Own(1.0)), (Choice::Own(1.0), None));
        // Either comes alone, in any order: the number is kept until its mode comes.
        assert_eq!(read(&two, Choice::Default), (Choice::Default, set));
        assert_eq!(read(&two, Choice::Unlimited), (Choice::Unlimited, set));
        assert_eq!(read(&own, Choice::Default), (Choice::Own(0.5), None));
    }

    #[test]
    fn limits_of_idle_seeding_are_in_minutes() {
        let own = [Change::IdleLimit(3), Change::IdleMode(SeedMode::Own)];
        let read = Changes::read(&own, SeedChoice::default(), SHOWN).unwrap();
        assert_eq!(read.limits.idle, Choice::Own(180));
        assert_eq!(read.numbers.idle, Some(180));
    }

    #[test]
    fn limits_of_rates_are_in_kilobytes_of_1000_bytes() {
        let changes = [Change::DownLimit(7), Change::UpLimited(true)];
        let read = Changes::read(&changes, SeedChoice::default(), SHOWN).unwrap();
        let mut limits = crate::settings::RateLimits::default();
        read.rates.apply(&mut limits);
        assert_eq!((limits.download.rate, limits.upload.holds), (56_000, true));
        let shown = limit(limits.download);
        assert_eq!((shown.kilobytes, shown.is_enabled), (7, false));
        assert_eq!(rate(u64::MAX), u64::MAX);
    }

    #[test]
    fn files_are_chosen_in_the_order_of_the_changes() {
        let changes = [
            Change::Wanted(Files::All, false),
            Change::Wanted(Files::Some(vec![1, 7, u64::MAX]), true),
            Change::FilePriority(Files::Some(vec![1]), Priority::High),
            Change::Sequential(true),
        ];
        let mut read = Changes::read(&changes, SeedChoice::default(), SHOWN).unwrap();
        read.files.drop_unknown(2);
        let mut choice = crate::files::FileChoice::default();
        choice.change(&read.files);
        let wishes = [0, 1, 7].map(|file| choice.wish(file).is_wanted);
        assert_eq!((wishes, choice.is_sequential), ([false, true, false], true));
        assert_eq!(choice.wish(1).priority, FilePriority::High);
    }

    #[test]
    fn what_changes_nothing_is_taken_and_the_rest_is_refused() {
        let read = |change| Changes::read(&[change], SeedChoice::default(), SHOWN);
        assert_eq!(read(Change::SequentialFrom(0)), Ok(Changes::default()));
        let error = read(Change::SequentialFrom(1)).unwrap_err().to_string();
        assert!(error.ends_with("is not supported yet"), "{error}");
    }
}
