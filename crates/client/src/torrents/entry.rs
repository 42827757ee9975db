//! One torrent: its record, and what is done with it now.

use std::path::PathBuf;
use std::time::Duration;

use super::{Now, Traffic};
use crate::record::{Outcome, Pending, Record, SeedLimit, Totals};
use crate::settings::QueueLimits;
use crate::shared::Shared;

/// What a torrent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// It was stopped.
    Stopped,
    /// It waits for its turn.
    Queued,
    /// It waits for its turn to be verified.
    CheckQueued,
    /// Its metadata is fetched from peers.
    Resolving,
    /// Its content on disk is verified.
    Checking,
    /// Its content is fetched.
    Downloading,
    /// It is complete, and serves peers.
    Seeding,
    /// Its connections are being closed.
    Stopping,
    /// Its content is being moved.
    Moving,
    /// It is being removed.
    Removing,
    /// It was stopped at a limit of seeding.
    Finished,
    /// It has failed.
    Failed,
}

impl Status {
    /// Its name in the API and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Queued => "queued",
            Self::CheckQueued => "check-queued",
            Self::Resolving => "resolving",
            Self::Checking => "checking",
            Self::Downloading => "downloading",
            Self::Seeding => "seeding",
            Self::Stopping => "stopping",
            Self::Moving => "moving",
            Self::Removing => "removing",
            Self::Finished => "finished",
            Self::Failed => "failed",
        }
    }
}

/// What the task of a torrent does, as far as it was ordered and has reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// It has none.
    Idle,
    Resolving,
    Checking,
    Downloading,
    Seeding,
    /// Its content is verified, and it ends then.
    Verifying,
    /// It was ordered to end.
    Halting,
    Moving,
    Removing,
}

/// What a torrent has spent its time on, as far as that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Downloading,
    Seeding,
}

impl Phase {
    pub fn new(is_complete: bool) -> Self {
        match is_complete {
            true => Self::Seeding,
            false => Self::Downloading,
        }
    }

    /// The seconds of it among these totals.
    fn time(self, totals: &mut Totals) -> &mut u64 {
        match self {
            Self::Downloading => &mut totals.downloading,
            Self::Seeding => &mut totals.seeded,
        }
    }
}

/// What the task of a torrent is ordered while it runs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TaskOrders {
    /// Whether it does not know all settings of its record.
    pub must_apply: bool,
    /// Whether it is to announce the torrent to its trackers.
    pub must_reannounce: bool,
    /// Whether it was ordered to rename a file, and has not reported that.
    pub renames: bool,
}

/// A torrent.
#[derive(Debug)]
pub(super) struct Entry {
    pub record: Shared<Record>,
    /// Its number: given once, and another one after each start of the program.
    pub number: u64,
    pub activity: Activity,
    /// Whether its content is to be verified though it does not run.
    pub to_verify: bool,
    /// What was transferred before the present run.
    base: Totals,
    /// What it does in the present run, and since when.
    phase: Option<(Phase, Duration)>,
    /// When it last sent something in the present run, or began its phase.
    sent_at: Duration,
    /// Since when its record is not as on disk.
    pub unsaved_since: Option<Duration>,
    /// Whether its record must be on disk at once.
    pub must_save: bool,
    /// What its task is to be ordered, or was.
    pub task: TaskOrders,
    /// Whether it runs beside the queue, though it is not its turn.
    pub skips_queue: bool,
    /// Whether it was ordered to be announced, and that is not reported yet.
    pub is_announced: bool,
    /// When its record was last ordered to be saved.
    pub changed: Duration,
}

impl Entry {
    pub fn new(record: Record, number: u64) -> Self {
        Self {
            base: record.totals,
            record: Shared::new(record),
            number,
            activity: Activity::Idle,
            to_verify: false,
            phase: None,
            sent_at: Duration::ZERO,
            unsaved_since: None,
            must_save: false,
            task: TaskOrders::default(),
            skips_queue: false,
            is_announced: false,
            changed: Duration::ZERO,
        }
    }

    /// Whether it takes a place among the seeds, else among the downloads.
    pub fn is_complete(&self) -> bool {
        self.record.dates.completed.is_some()
    }

    /// Whether it is to run.
    pub fn wants_to_run(&self) -> bool {
        self.record.started && self.record.outcome.is_none() && !self.must_end()
    }

    /// Whether it may not run, as its content is to be moved or it is to be removed.
    pub fn must_end(&self) -> bool {
        matches!(
            self.record.pending,
            Some(Pending::Move(_) | Pending::Find(_) | Pending::Remove { .. })
        )
    }

    /// Whether it downloads or seeds, or is about to, and was not ordered to end.
    pub fn runs(&self) -> bool {
        matches!(
            self.activity,
            Activity::Resolving | Activity::Checking | Activity::Downloading | Activity::Seeding
        )
    }

    /// Whether it takes a place, of downloads or seeds.
    pub fn takes_place(&self) -> bool {
        !self.skips_queue && (self.runs() || self.activity == Activity::Halting)
    }

    /// Whether its content is being verified.
    pub fn checks(&self) -> bool {
        matches!(self.activity, Activity::Checking | Activity::Verifying)
    }

    pub fn status(&self) -> Status {
        match self.activity {
            Activity::Resolving => Status::Resolving,
            Activity::Checking | Activity::Verifying => Status::Checking,
            Activity::Downloading => Status::Downloading,
            Activity::Seeding => Status::Seeding,
            Activity::Moving => Status::Moving,
            Activity::Removing => Status::Removing,
            Activity::Halting => match self.record.pending {
                Some(Pending::Remove { .. }) => Status::Removing,
                Some(Pending::Move(_) | Pending::Find(_)) => Status::Moving,
                None | Some(Pending::Rename(_)) => Status::Stopping,
            },
            Activity::Idle if self.to_verify => Status::CheckQueued,
            Activity::Idle => match (&self.record.outcome, self.record.started) {
                (_, false) => Status::Stopped,
                (None, true) => Status::Queued,
                (Some(Outcome::Finished(_)), true) => Status::Finished,
                (Some(Outcome::Failed(_)), true) => Status::Failed,
            },
        }
    }

    /// Its content is in this folder, as far as it is anywhere.
    pub fn find_in(&mut self, folder: PathBuf) {
        self.record.folder = folder;
        self.record.settings.destination = None;
        self.record.dates.completed = None;
    }

    /// A run begins.
    pub fn begin(&mut self, activity: Activity, now: Now) {
        self.base = self.record.totals;
        self.phase = None;
        if activity != Activity::Verifying {
            self.record.dates.started = Some(now.unix);
            self.unsaved_since.get_or_insert(now.elapsed);
        }
        // Its task begins with its record.
        self.task = TaskOrders::default();
        self.activity = activity;
    }

    /// It begins to download or to seed, or ends that.
    pub fn set_phase(&mut self, phase: Option<Phase>, now: Duration) {
        self.count_time(now);
        (self.base.seeded, self.base.downloading) =
            (self.record.totals.seeded, self.record.totals.downloading);
        self.phase = phase.map(|phase| (phase, now));
        self.sent_at = now;
    }

    /// Since when it seeds in the present run.
    fn seeding_since(&self) -> Option<Duration> {
        let (phase, since) = self.phase?;
        (phase == Phase::Seeding).then_some(since)
    }

    /// Takes over what was transferred in the present run.
    pub fn count(&mut self, traffic: Traffic, now: Duration) -> bool {
        let totals = &mut self.record.totals;
        let before = *totals;
        totals.uploaded = totals
            .uploaded
            .max(self.base.uploaded.saturating_add(traffic.uploaded));
        totals.downloaded = totals
            .downloaded
            .max(self.base.downloaded.saturating_add(traffic.downloaded));
        totals.verified = traffic.verified.unwrap_or(totals.verified);
        if totals.uploaded != before.uploaded {
            self.sent_at = now;
        }
        *totals != before
    }

    /// Takes over the time that it has downloaded or seeded.
    pub fn count_time(&mut self, now: Duration) -> bool {
        let Some((phase, since)) = self.phase else {
            return false;
        };
        let time = now.saturating_sub(since).as_secs();
        let time = phase.time(&mut self.base).saturating_add(time);
        let mut totals = self.record.totals;
        let counted = phase.time(&mut totals);
        if time <= *counted {
            return false;
        }
        *counted = time;
        self.record.totals = totals;
        true
    }

    /// The limit that its seeding has reached, if it has.
    pub fn reached(&self, all: &QueueLimits, now: Duration) -> Option<SeedLimit> {
        let (record, limits) = (&self.record, self.record.settings.seeding);
        let enough = |ratio: f64| {
            let size = record.size.unwrap_or_default();
            record.totals.uploaded as f64 >= ratio * size as f64
        };
        if limits.ratio.or(all.ratio.in_force()).is_some_and(enough) {
            return Some(SeedLimit::Ratio);
        }
        let late = |time| record.totals.seeded >= time;
        if limits.time.or(all.time.in_force()).is_some_and(late) {
            return Some(SeedLimit::Time);
        }
        let idle = self.idle_due(all).is_some_and(|due| now >= due);
        idle.then_some(SeedLimit::Idle)
    }

    /// When its time of seeding ends, unless it is changed, or it sends something before.
    pub fn seeding_due(&self, all: &QueueLimits) -> Option<Duration> {
        let since = self.seeding_since()?;
        let time = self.record.settings.seeding.time.or(all.time.in_force());
        let ends = time.map(|time| {
            let remaining = time.saturating_sub(self.base.seeded);
            since.saturating_add(Duration::from_secs(remaining))
        });
        ends.into_iter().chain(self.idle_due(all)).min()
    }

    /// When it has sent nothing for long enough; `None` if it does not seed, or may be idle.
    fn idle_due(&self, all: &QueueLimits) -> Option<Duration> {
        self.seeding_since()?;
        let idle = self.record.settings.seeding.idle.or(all.idle.in_force())?;
        Some(self.sent_at.saturating_add(Duration::from_secs(idle)))
    }
}
