//! Commands that change what users set, for one torrent and for all.

use std::path::PathBuf;
use std::time::Duration;

use hawser_torrent::InfoHash;

use super::{Bounds, CommandError, Now, Torrents, check_folder};
use crate::alternative::AlternativeChanges;
use crate::choice::{Choice, SeedChoice, SeedNumbers, check_ratio};
use crate::files::FileChanges;
use crate::network::NetworkSettings;
use crate::peer_limits::PeerChanges;
use crate::record::{Outcome, check_labels};
use crate::settings::{AllLimits, IncompleteChange, QueueChanges, RateChanges, RateLimits};
use crate::trackers::{self, TrackerChange};

impl Torrents {
    /// Sets the labels of a torrent.
    ///
    /// # Errors
    /// [`CommandError::Unknown`], [`CommandError::Busy`] or [`CommandError::Value`].
    pub fn set_labels(
        &mut self,
        info_hash: InfoHash,
        labels: Vec<String>,
    ) -> Result<(), CommandError> {
        let entry = self.settled(info_hash)?;
        if let Some(fault) = check_labels(&labels) {
            return Err(CommandError::Value(fault));
        }
        entry.record.labels = labels;
        entry.must_save = true;
        Ok(())
    }

    /// Sets when the seeding of a torrent ends. One that was stopped at a limit runs again if none is
    /// reached now.
    ///
    /// # Errors
    /// [`CommandError::Unknown`], [`CommandError::Busy`] or [`CommandError::Value`].
    pub fn set_limits(
        &mut self,
        info_hash: InfoHash,
        limits: SeedChoice,
    ) -> Result<(), CommandError> {
        let queue = self.bounds.all.queue;
        let entry = self.settled(info_hash)?;
        if let Some(fault) = check_ratio(limits.ratio) {
            return Err(CommandError::Value(fault));
        }
        entry.record.settings.seeding = limits;
        let finished = matches!(entry.record.outcome, Some(Outcome::Finished(_)));
        if finished && entry.reached(&queue, Duration::ZERO).is_none() {
            entry.record.outcome = None;
        }
        entry.must_save = true;
        Ok(())
    }

    /// Keeps numbers of limits of the seeding of a torrent; what is `None` stays.
    ///
    /// # Errors
    /// [`CommandError::Unknown`], [`CommandError::Busy`] or [`CommandError::Value`].
    pub fn keep_seed_numbers(
        &mut self,
        info_hash: InfoHash,
        numbers: SeedNumbers,
    ) -> Result<(), CommandError> {
        let entry = self.settled(info_hash)?;
        if let Some(fault) = numbers.ratio.map(Choice::Own).and_then(check_ratio) {
            return Err(CommandError::Value(fault));
        }
        let kept = &mut entry.record.settings.seed_numbers;
        let changed = numbers.or(*kept);
        entry.must_save |= changed != *kept;
        *kept = changed;
        Ok(())
    }

    /// Changes how fast a torrent sends and receives, at once if it runs.
    ///
    /// # Errors
    /// [`CommandError::Unknown`] or [`CommandError::Busy`].
    pub fn change_rates(
        &mut self,
        info_hash: InfoHash,
        changes: RateChanges,
    ) -> Result<(), CommandError> {
        let entry = self.settled(info_hash)?;
        let before = entry.record.settings.rates;
        changes.apply(&mut entry.record.settings.rates);
        if entry.record.settings.rates != before {
            entry.must_save = true;
            entry.task.must_apply = true;
        }
        Ok(())
    }

    /// Changes which files of a torrent are downloaded, at once if it runs. One that is complete, and of which
    /// more is wanted now, is ended and runs again, when it is its turn among the downloads.
    ///
    /// # Errors
    /// [`CommandError::Unknown`], [`CommandError::Busy`] or [`CommandError::Value`].
    pub fn change_files(
        &mut self,
        info_hash: InfoHash,
        changes: &FileChanges,
    ) -> Result<(), CommandError> {
        let entry = self.settled(info_hash)?;
        let kept = &mut entry.record.settings.files;
        let mut files = kept.clone();
        files.change(changes);
        if let Some(fault) = files.fault() {
            return Err(CommandError::Value(fault));
        }
        if files == *kept {
            return Ok(());
        }
        let grows = kept.grows_to(&files);
        *kept = files;
        entry.must_save = true;
        entry.task.must_apply = true;
        if grows && entry.is_complete() {
            entry.record.dates.completed = None;
            if let Some(Outcome::Finished(_)) = entry.record.outcome {
                entry.record.outcome = None;
            }
            entry.to_verify |= entry.runs();
        }
        Ok(())
    }

    /// Changes the trackers of a torrent that itself has those `named`, at once if it runs.
    ///
    /// # Errors
    /// [`CommandError::Unknown`], [`CommandError::Busy`] or [`CommandError::Value`];
    /// [`CommandError::SameTrackers`], if there is nothing to be added, removed or replaced.
    pub fn change_trackers(
        &mut self,
        info_hash: InfoHash,
        named: &[Vec<String>],
        changes: &[TrackerChange],
    ) -> Result<(), CommandError> {
        let entry = self.settled(info_hash)?;
        let before = entry.record.settings.trackers.as_deref();
        let before = before.unwrap_or(named);
        let after = trackers::changed(before, changes);
        if after == before {
            let sets = |change: &TrackerChange| matches!(change, TrackerChange::Set(_));
            return match changes.iter().all(sets) {
                true => Ok(()),
                false => Err(CommandError::SameTrackers(info_hash)),
            };
        }
        if let Some(fault) = trackers::fault(&after, before) {
            return Err(CommandError::Value(fault));
        }
        entry.record.settings.trackers = Some(after);
        entry.must_save = true;
        entry.task.must_apply = true;
        Ok(())
    }

    /// The task of a torrent cannot download other files than before while it runs: it is ended, and runs again
    /// with those that are wanted. That it was complete before counts no longer.
    pub fn on_unselected(&mut self, info_hash: InfoHash) {
        if let Some(entry) = self.entries.get_mut(&info_hash)
            && entry.runs()
        {
            entry.to_verify = true;
            entry.record.dates.completed = None;
            entry.must_save = true;
        }
    }

    /// Changes how fast all torrents together send and receive, at once.
    pub fn change_all_rates(&mut self, changes: RateChanges) {
        let before = self.bounds.all.clone();
        changes.apply(&mut self.bounds.all.rates);
        self.note_limits(&before);
    }

    /// Changes the alternative limits of the rates of all torrents, at once. A changed schedule decides whether
    /// they hold, also where the same change says so.
    ///
    /// # Errors
    /// [`CommandError::Value`]; nothing is changed then.
    pub fn change_alternative(&mut self, changes: AlternativeChanges) -> Result<(), CommandError> {
        let before = self.bounds.all.clone();
        let mut alternative = before.alternative;
        changes.apply(&mut alternative);
        if let Some(fault) = alternative.schedule.fault() {
            return Err(CommandError::Value(fault));
        }
        self.bounds.all.alternative = alternative;
        if alternative.schedule != before.alternative.schedule {
            self.scheduled = None;
        }
        self.note_limits(&before);
        Ok(())
    }

    /// Switches the alternative limits when their schedule says something else than before.
    pub(super) fn follow_schedule(&mut self, now: Now) {
        let schedule = self.bounds.all.alternative.schedule;
        let says = schedule.is_on.then(|| schedule.includes(now.week_minute));
        let said = std::mem::replace(&mut self.scheduled, says);
        if let Some(holds) = says.filter(|_| says != said) {
            let before = self.bounds.all.clone();
            self.bounds.all.alternative.holds = holds;
            if self.bounds.all != before {
                self.note_limits(&before);
            }
        }
    }

    /// Changes how many peers torrents may be connected to.
    pub fn change_peer_limits(&mut self, changes: PeerChanges) {
        let before = self.bounds.all.clone();
        changes.apply(&mut self.bounds.all.peers);
        self.note_limits(&before);
    }

    /// Notes how peers are reached, which the caller has changed.
    pub(crate) fn note_network(&mut self, changes: NetworkSettings) {
        let before = self.bounds.all.clone();
        changes.apply(&mut self.bounds.all.network);
        self.note_limits(&before);
    }

    /// Sets the folder for torrents that are added without one from now on, an absolute path.
    ///
    /// # Errors
    /// [`CommandError::Value`].
    pub fn set_download_dir(&mut self, folder: PathBuf) -> Result<(), CommandError> {
        check_folder(&folder)?;
        let before = self.bounds.all.clone();
        self.bounds.all.download_dir = Some(folder);
        self.note_limits(&before);
        Ok(())
    }

    /// Changes the folder for unfinished downloads, for torrents that are added from now on.
    ///
    /// # Errors
    /// [`CommandError::Value`]; nothing is changed then.
    pub fn change_incomplete(&mut self, change: IncompleteChange) -> Result<(), CommandError> {
        let before = self.bounds.all.clone();
        let mut incomplete = before.incomplete.clone();
        change.apply(&mut incomplete);
        if let Some(fault) = incomplete.fault() {
            return Err(CommandError::Value(fault));
        }
        self.bounds.all.incomplete = incomplete;
        self.note_limits(&before);
        Ok(())
    }

    /// Changes how many peers a torrent may be connected to; as many as others for `None`.
    ///
    /// # Errors
    /// [`CommandError::Unknown`] or [`CommandError::Busy`].
    pub fn set_max_peers(
        &mut self,
        info_hash: InfoHash,
        max: Option<usize>,
    ) -> Result<(), CommandError> {
        let entry = self.settled(info_hash)?;
        if std::mem::replace(&mut entry.record.settings.max_peers, max) != max {
            entry.must_save = true;
        }
        Ok(())
    }

    /// Changes how many torrents run at once, and when seeding ends, at once. Those that were stopped at a limit
    /// stay so.
    ///
    /// # Errors
    /// [`CommandError::Value`]; nothing is changed then.
    pub fn change_queue(&mut self, changes: QueueChanges) -> Result<(), CommandError> {
        let before = self.bounds.all.clone();
        let mut queue = before.queue;
        changes.apply(&mut queue);
        if let Some(fault) = queue.fault() {
            return Err(CommandError::Value(fault));
        }
        self.bounds.all.queue = queue;
        self.note_limits(&before);
        Ok(())
    }

    /// How fast all torrents together send and receive now.
    pub fn rates_in_force(&self) -> RateLimits {
        self.bounds.all.rates_in_force()
    }

    /// What users have set for all torrents.
    pub fn all_limits(&self) -> &AllLimits {
        &self.bounds.all
    }

    /// Sets how many torrents run at once, when seeding ends, and how fast all send and receive.
    pub fn set_bounds(&mut self, bounds: Bounds) {
        let before = self.bounds.all.clone();
        self.bounds = bounds;
        self.note_limits(&before);
    }

    /// Has changed limits of all torrents saved, and obeyed.
    pub(super) fn note_limits(&mut self, before: &AllLimits) {
        self.entries.set_changed();
        let all = &self.bounds.all;
        self.has_new_rates |= all.rates_in_force() != before.rates_in_force();
        self.has_new_rates |= all.groups != before.groups;
        self.must_save_limits |= all != before;
    }
}
