//! The torrents of a host, without I/O: commands and events in, orders out.
//!
//! # The life of a torrent
//!
//! 1. [`Torrents::add`] puts it at the end of the queue. It waits (*queued*) until there is a place among
//!    the downloads or, once it is complete, among the seeds, and none of those before it in the queue can
//!    take that place. Then it is ordered to [`Order::Run`].
//! 2. Its task fetches its metadata (*resolving*), where it was added by a magnet link, verifies what is
//!    on disk (*checking*), fetches the rest (*downloading*) and serves peers (*seeding*), and reports each
//!    step. A download that becomes complete takes a place of a seed; where there is none, it is ordered to
//!    end and waits.
//! 3. It ends by itself when it fails (*failed*), or is ordered to ([`Order::Halt`]): when it is stopped,
//!    at a limit of seeding (*finished*), or before it is moved, removed or verified anew. What is ordered
//!    ends later: until its end is reported it keeps its place.
//! 4. What users set for it is obeyed at once: its task is told ([`Order::Apply`]). The engine adds no files
//!    to a download that is complete, so one of which more is wanted ends, and runs again.
//! 5. One that lacked content and becomes complete is announced ([`Order::Announce`]), once, also across
//!    crashes.
//! 6. Content that is to be elsewhere once it is complete is moved there then, before it is announced.
//! 7. A move, another name of a file, or a removal is saved before it begins, and ordered again after a crash.
//!
//! The caller carries out orders in their order. After each call that changes something it calls
//! [`Torrents::advance`], and again at [`Torrents::next_due`], and at each minute of the clock of the host.

mod all_or_none;
mod entries;
mod entry;
mod groups;
mod merging;
mod plan;
mod queue;
mod renaming;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hawser_torrent::InfoHash;
use thiserror::Error;

use self::entries::Entries;
pub use self::entry::Status;
use self::entry::{Activity, Entry, Phase};
pub use self::merging::Merged;
pub use self::queue::Move;
use crate::choice::SeedChoice;
use crate::record::{Announcement, Origin, Outcome, Pending, Record, Totals, cut_name};
use crate::settings::AllLimits;

/// Most torrents of a host.
pub const MAX_TORRENTS: usize = 10_000;

/// Most removed torrents whose numbers are remembered.
const MAX_REMOVED: usize = 1000;

/// How long numbers that have changed may wait to be saved: a crash loses what was counted since.
const SAVE_INTERVAL: Duration = Duration::from_secs(60);

/// How many torrents run at once, when seeding ends, and how fast all together send and receive.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds {
    /// Most torrents that begin while others are verified, at least 1: verifying reads all of a torrent.
    pub checks: usize,
    /// What users set for all torrents.
    pub all: AllLimits,
}

impl Default for Bounds {
    /// Five downloads, fifty seeds, two checks; seeding does not end, and no rate is limited.
    fn default() -> Self {
        Self {
            checks: 2,
            all: AllLimits::default(),
        }
    }
}

/// When a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Time since any fixed beginning, by a clock that does not step.
    pub elapsed: Duration,
    /// The date in Unix seconds.
    pub unix: u64,
    /// Minutes since the last midnight at which a Sunday began, by the clock of the host.
    pub week_minute: u16,
}

/// What a torrent has transferred in its present run, and what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Bytes of blocks sent.
    pub uploaded: u64,
    /// Bytes of blocks received.
    pub downloaded: u64,
    /// Bytes of its content that are verified; `None` while that is not known.
    pub verified: Option<u64>,
}

/// What the caller is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Write the limits of all torrents to disk, before the orders that follow.
    SaveLimits,
    /// Have the limits of the rates of all torrents hold.
    LimitAll,
    /// Write its record to disk, before the orders that follow.
    Save(InfoHash),
    /// Have its task, which runs, obey the settings of its record.
    Apply(InfoHash),
    /// Have its task, which runs, announce it to its trackers as soon as they allow it.
    Reannounce(InfoHash),
    /// Start its task. It reports what it does and its end, [`Torrents::on_ended`].
    Run(InfoHash),
    /// Start a task that verifies its content, and reports [`Torrents::on_checked`] and its end.
    Verify(InfoHash),
    /// Let its task end, which is reported as any end.
    Halt(InfoHash),
    /// Move its content to the folder of [`Pending::Move`], unless it is there already, and report
    /// [`Torrents::on_moved`].
    Move(InfoHash),
    /// Give a file or folder of it the name of [`Pending::Rename`], unless it has it already, and report
    /// [`Torrents::on_renamed`]: by its task if it has one, which keeps running.
    Rename(InfoHash),
    /// Remove what is kept of it, with its content if [`Pending::Remove`] says so, and report
    /// [`Torrents::on_removed`].
    Remove(InfoHash),
    /// Run the program for its completion, if there is one, and report [`Torrents::on_announced`]. It is
    /// ordered once in a run of the daemon, and again at the next start until it is reported.
    Announce(InfoHash),
}

/// Why a command is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// There is no such torrent.
    #[error("there is no torrent {0}")]
    Unknown(InfoHash),
    /// It is there already.
    #[error("the torrent {0} is there already")]
    Duplicate(InfoHash),
    /// It is being moved or removed, or a file of it is being renamed.
    #[error("the torrent {0} is being moved, renamed or removed: try again when that is done")]
    Busy(InfoHash),
    /// There are [`MAX_TORRENTS`].
    #[error("there are {MAX_TORRENTS} torrents, as many as there may be: remove one")]
    Full,
    /// Trackers were to be added, removed or replaced, and nothing changes thereby.
    #[error(
        "the trackers of {0} stay as they are: add one that it does not have, or name one that it has"
    )]
    SameTrackers(InfoHash),
    /// A value is out of its bounds. The text says which and what may be written.
    #[error("{0}")]
    Value(String),
}

/// The torrents of a host.
#[derive(Debug)]
pub struct Torrents {
    bounds: Bounds,
    entries: Entries,
    /// The queue, by rank.
    queue: BTreeMap<u64, InfoHash>,
    next_number: u64,
    transferred: Transferred,
    /// When torrents were removed, by their numbers: the latest of them.
    removed: VecDeque<(Duration, u64)>,
    /// What the schedule of the alternative limits said last, if it is on.
    scheduled: Option<bool>,
    /// Whether the limits of the rates of all torrents do not hold yet.
    has_new_rates: bool,
    /// Whether the limits of all torrents must be on disk at once.
    must_save_limits: bool,
    /// Since when these limits are not as on disk.
    limits_unsaved_since: Option<Duration>,
}

/// Checks the path of a folder of torrents.
///
/// # Errors
/// [`CommandError::Value`].
pub(crate) fn check_folder(folder: &Path) -> Result<(), CommandError> {
    match folder.is_absolute() {
        true => Ok(()),
        false => {
            let text = format!("the folder {} is not absolute", folder.display());
            Err(CommandError::Value(text))
        }
    }
}

/// What all torrents have transferred since the start, also those that were removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transferred {
    /// Bytes of blocks sent.
    pub uploaded: u64,
    /// Bytes of blocks received.
    pub downloaded: u64,
}

impl Torrents {
    /// With the torrents of an earlier run. Records that repeat an info-hash are left out; those of the
    /// same rank get others.
    pub fn new(bounds: Bounds, records: impl IntoIterator<Item = Record>) -> Self {
        let mut torrents = Self {
            bounds,
            entries: Entries::new(),
            queue: BTreeMap::new(),
            next_number: 1,
            transferred: Transferred::default(),
            removed: VecDeque::new(),
            scheduled: None,
            has_new_rates: true,
            must_save_limits: true,
            limits_unsaved_since: None,
        };
        let mut records: Vec<Record> = records.into_iter().collect();
        records.sort_unstable_by_key(|record| (record.rank, record.dates.added, record.info_hash));
        for record in records {
            if !torrents.entries.contains_key(&record.info_hash) {
                torrents.insert(record, false);
            }
        }
        torrents.add_groups();
        torrents
    }

    /// Puts a torrent into the table; one that is `new`, or whose rank is taken, at the end of the queue.
    fn insert(&mut self, mut record: Record, new: bool) {
        let (info_hash, rank) = (record.info_hash, record.rank);
        let ranked_anew = new || self.queue.contains_key(&rank);
        if ranked_anew {
            let last = self.queue.keys().next_back();
            record.rank = last.map_or(0, |last| last.saturating_add(1));
        }
        self.queue.insert(record.rank, info_hash);
        let mut entry = Entry::new(record, self.next_number);
        entry.must_save = ranked_anew;
        self.next_number += 1;
        self.entries.insert(info_hash, entry);
    }

    /// Adds a torrent, at the end of the queue: the rank of the record does not count.
    ///
    /// # Errors
    /// [`CommandError::Duplicate`], [`CommandError::Full`] or [`CommandError::Value`].
    pub fn add(&mut self, record: Record) -> Result<(), CommandError> {
        if self.entries.contains_key(&record.info_hash) {
            return Err(CommandError::Duplicate(record.info_hash));
        }
        if self.entries.len() >= MAX_TORRENTS {
            return Err(CommandError::Full);
        }
        if let Some(fault) = record.fault() {
            return Err(CommandError::Value(fault));
        }
        self.insert(record, true);
        Ok(())
    }

    /// A torrent that is neither being moved nor removed.
    fn settled(&mut self, info_hash: InfoHash) -> Result<&mut Entry, CommandError> {
        let entry = self.entries.get_mut(&info_hash);
        let entry = entry.ok_or(CommandError::Unknown(info_hash))?;
        match entry.record.pending {
            Some(_) => Err(CommandError::Busy(info_hash)),
            None => Ok(entry),
        }
    }

    /// Starts a torrent when it is its turn, also one that has failed. One that has seeded up to a limit
    /// seeds without limits from now on.
    ///
    /// # Errors
    /// [`CommandError::Unknown`] or [`CommandError::Busy`].
    pub fn start(&mut self, info_hash: InfoHash) -> Result<(), CommandError> {
        let entry = self.settled(info_hash)?;
        if let Some(Outcome::Finished(_)) = entry.record.outcome.take() {
            entry.record.settings.seeding = SeedChoice::UNLIMITED;
        }
        entry.record.started = true;
        entry.must_save = true;
        Ok(())
    }

    /// As [`Self::start`], whether it is its turn or not: until it is stopped or ends by itself, it takes no place of
    /// the queue.
    ///
    /// # Errors
    /// [`CommandError::Unknown`] or [`CommandError::Busy`].
    pub fn start_now(&mut self, info_hash: InfoHash) -> Result<(), CommandError> {
        self.start(info_hash)?;
        self.settled(info_hash)?.skips_queue = true;
        Ok(())
    }

    /// Announces a torrent to its trackers as soon as they allow it. One that does not run is announced when it
    /// does.
    ///
    /// # Errors
    /// [`CommandError::Unknown`] or [`CommandError::Busy`].
    pub fn reannounce(&mut self, info_hash: InfoHash) -> Result<(), CommandError> {
        let entry = self.settled(info_hash)?;
        entry.task.must_reannounce = entry.runs();
        Ok(())
    }

    /// Stops a torrent until it is started.
    ///
    /// # Errors
    /// [`CommandError::Unknown`] or [`CommandError::Busy`].
    pub fn stop(&mut self, info_hash: InfoHash) -> Result<(), CommandError> {
        let entry = self.settled(info_hash)?;
        entry.record.started = false;
        entry.skips_queue = false;
        entry.record.outcome = None;
        entry.to_verify = false;
        entry.must_save = true;
        Ok(())
    }

    /// Verifies all content of a torrent, also what has not changed since it was verified. One that runs is ended, and verified as it runs again.
    ///
    /// # Errors
    /// [`CommandError::Unknown`] or [`CommandError::Busy`]; [`CommandError::Value`], if its metadata is not
    /// known yet.
    pub fn verify(&mut self, info_hash: InfoHash) -> Result<(), CommandError> {
        let entry = self.settled(info_hash)?;
        if entry.record.origin != Origin::Metainfo {
            let text = format!("the metadata of {info_hash} is not known yet: start it first");
            return Err(CommandError::Value(text));
        }
        // What is being verified from the beginning need not be verified again.
        if !entry.checks() || !entry.record.rechecks {
            entry.to_verify = true;
            entry.record.rechecks = true;
            entry.must_save = true;
        }
        Ok(())
    }

    /// Removes a torrent, with its content if `content`.
    ///
    /// # Errors
    /// [`CommandError::Unknown`] or [`CommandError::Busy`].
    pub fn remove(&mut self, info_hash: InfoHash, content: bool) -> Result<(), CommandError> {
        let entry = self.settled(info_hash)?;
        entry.record.pending = Some(Pending::Remove { content });
        entry.must_save = true;
        Ok(())
    }

    /// Sets the folder of a torrent, an absolute path; its content is moved there if it `moves`, and else
    /// looked for there.
    ///
    /// # Errors
    /// [`CommandError::Unknown`], [`CommandError::Busy`] or [`CommandError::Value`].
    pub fn relocate(
        &mut self,
        info_hash: InfoHash,
        folder: PathBuf,
        moves: bool,
    ) -> Result<(), CommandError> {
        let entry = self.settled(info_hash)?;
        check_folder(&folder)?;
        match moves {
            true if folder == entry.record.folder => entry.record.settings.destination = None,
            true => entry.record.pending = Some(Pending::Move(folder)),
            false if entry.activity != Activity::Idle => {
                entry.record.pending = Some(Pending::Find(folder));
            }
            false => entry.find_in(folder),
        }
        entry.must_save = true;
        Ok(())
    }

    /// Content of a torrent is in the folder that it is to be in once it is complete: it is fetched there.
    pub fn on_found_at_destination(&mut self, info_hash: InfoHash) {
        if let Some(entry) = self.entries.get_mut(&info_hash)
            && let Some(folder) = entry.record.settings.destination.take()
        {
            entry.record.folder = folder;
            entry.must_save = true;
        }
    }

    /// The metadata of a magnet link is there, and kept: the name of the torrent, and its bytes.
    pub fn on_resolved(&mut self, info_hash: InfoHash, mut name: String, size: u64) {
        let Some(entry) = self.entries.get_mut(&info_hash) else {
            return;
        };
        cut_name(&mut name);
        entry.record.origin = Origin::Metainfo;
        entry.record.name = name;
        entry.record.size = Some(size);
        entry.must_save = true;
        if entry.activity == Activity::Resolving {
            entry.activity = Activity::Checking;
        }
    }

    /// The content is verified, and `complete` or not.
    pub fn on_checked(&mut self, info_hash: InfoHash, complete: bool, now: Now) {
        let Some(entry) = self.entries.get_mut(&info_hash) else {
            return;
        };
        // What is to be verified anew is ended before.
        let is_anew = match entry.activity {
            Activity::Checking => !entry.to_verify,
            activity => activity == Activity::Verifying,
        };
        let record = &mut entry.record;
        let before = (record.rechecks, record.dates, record.announcement);
        record.rechecks &= !is_anew;
        let completed = &mut record.dates.completed;
        match complete {
            true => *completed = completed.or(Some(now.unix)),
            false => *completed = None,
        }
        record.announcement.check(complete);
        // At a start with many torrents most are as they were.
        entry.must_save |= before != (record.rechecks, record.dates, record.announcement);
        if entry.activity == Activity::Checking {
            entry.activity = match complete {
                true => Activity::Seeding,
                false => Activity::Downloading,
            };
            entry.set_phase(Some(Phase::new(complete)), now.elapsed);
        }
    }

    /// The download is complete.
    pub fn on_completed(&mut self, info_hash: InfoHash, now: Now) {
        let Some(entry) = self.entries.get_mut(&info_hash) else {
            return;
        };
        entry.record.dates.completed = Some(now.unix);
        entry.record.announcement.check(true);
        entry.must_save = true;
        if matches!(entry.activity, Activity::Checking | Activity::Downloading) {
            entry.activity = Activity::Seeding;
            entry.set_phase(Some(Phase::Seeding), now.elapsed);
        }
    }

    /// The program has been begun for the completion of a torrent, or there is none.
    pub fn on_announced(&mut self, info_hash: InfoHash) {
        let Some(entry) = self.entries.get_mut(&info_hash) else {
            return;
        };
        if entry.record.announcement == Announcement::Due {
            entry.record.announcement = Announcement::None;
            entry.must_save = true;
        }
        entry.is_announced = false;
    }

    /// What was transferred in the present run, and is verified.
    pub fn on_traffic(&mut self, info_hash: InfoHash, traffic: Traffic, now: Now) {
        let Some(entry) = self.entries.numbers_mut(&info_hash) else {
            return;
        };
        let before = entry.record.totals;
        let has_task = entry.takes_place() || entry.activity == Activity::Verifying;
        if has_task && entry.count(traffic, now.elapsed) {
            entry.unsaved_since.get_or_insert(now.elapsed);
            let totals = entry.record.totals;
            let moved = |totals: Totals| (totals.uploaded, totals.downloaded);
            if moved(totals) != moved(before) {
                entry.record.dates.active = Some(now.unix);
            }
            self.transferred.uploaded += totals.uploaded - before.uploaded;
            self.transferred.downloaded += totals.downloaded - before.downloaded;
        }
    }

    /// The task has ended: as it was ordered to, or because it failed.
    pub fn on_ended(&mut self, info_hash: InfoHash, ended: Result<(), String>, now: Now) {
        let Some(entry) = self.entries.get_mut(&info_hash) else {
            return;
        };
        let was = std::mem::replace(&mut entry.activity, Activity::Idle);
        entry.set_phase(None, now.elapsed);
        // What it has not done is done without it.
        entry.task.renames = false;
        entry.must_save = true;
        if was == Activity::Verifying {
            entry.to_verify = false;
        }
        let reason = match (was, ended) {
            // What was to end may fail as it ends.
            (Activity::Halting, _) | (Activity::Verifying, Ok(())) => return,
            (_, Err(reason)) => reason,
            (_, Ok(())) => "it ended without being stopped, by a defect in this program".to_owned(),
        };
        entry.record.outcome = Some(Outcome::Failed(reason));
        entry.skips_queue = false;
        entry.to_verify = false;
    }

    /// The content was moved, or not, for this reason.
    pub fn on_moved(&mut self, info_hash: InfoHash, moved: Result<(), String>) {
        let Some(entry) = self.entries.get_mut(&info_hash) else {
            return;
        };
        entry.activity = Activity::Idle;
        let pending = entry.record.pending.take();
        match (moved, pending) {
            (Ok(()), Some(Pending::Move(folder))) => {
                entry.record.folder = folder;
                entry.record.settings.destination = None;
            }
            (Ok(()), other) => entry.record.pending = other,
            (Err(reason), _) => entry.record.outcome = Some(Outcome::Failed(reason)),
        }
        entry.must_save = true;
    }

    /// What was kept of the torrent is removed, or not, for this reason.
    pub fn on_removed(&mut self, info_hash: InfoHash, removed: Result<(), String>, now: Now) {
        let Some(entry) = self.entries.get_mut(&info_hash) else {
            return;
        };
        match removed {
            Ok(()) => {
                if self.removed.len() >= MAX_REMOVED {
                    self.removed.pop_front();
                }
                self.removed.push_back((now.elapsed, entry.number));
                self.queue.remove(&entry.record.rank);
                self.entries.remove(&info_hash);
            }
            Err(reason) => {
                entry.activity = Activity::Idle;
                entry.record.pending = None;
                entry.record.outcome = Some(Outcome::Failed(reason));
                entry.must_save = true;
            }
        }
    }

    /// How many torrents run at once, when seeding ends, and how fast all send and receive.
    pub fn bounds(&self) -> Bounds {
        self.bounds.clone()
    }

    /// The numbers of the torrents that were removed since this time, the latest thousand.
    pub fn removed_since(&self, since: Duration) -> Vec<u64> {
        let recent = self.removed.iter().filter(|(at, _)| *at >= since);
        recent.map(|(_, number)| *number).collect()
    }

    /// When the record of a torrent was last ordered to be saved, since the beginning of [`Now`].
    pub fn changed(&self, info_hash: InfoHash) -> Option<Duration> {
        Some(self.entries.get(&info_hash)?.changed)
    }

    /// What all torrents have transferred since the start.
    pub fn transferred(&self) -> Transferred {
        self.transferred
    }

    /// The torrents, in the order of the queue.
    pub fn hashes(&self) -> impl Iterator<Item = InfoHash> {
        self.queue.values().copied()
    }

    /// What is kept of a torrent.
    pub fn record(&self, info_hash: InfoHash) -> Option<&Record> {
        Some(&self.entries.get(&info_hash)?.record)
    }

    /// What is kept of a torrent, as it is now.
    pub(crate) fn snapshot(&self, info_hash: InfoHash) -> Option<Arc<Record>> {
        Some(self.entries.get(&info_hash)?.record.snapshot())
    }

    /// What a torrent does.
    pub fn status(&self, info_hash: InfoHash) -> Option<Status> {
        Some(self.entries.get(&info_hash)?.status())
    }

    /// The number of a torrent: given once, and another one after each start of the program.
    pub fn number(&self, info_hash: InfoHash) -> Option<u64> {
        Some(self.entries.get(&info_hash)?.number)
    }
}
