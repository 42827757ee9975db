//! Several changes of which all are made or none.

use hawser_torrent::InfoHash;

use super::entry::TaskOrders;
use super::{CommandError, Torrents};
use crate::record::Record;
use crate::settings::AllLimits;

/// What was set for all torrents.
#[derive(Debug)]
pub(crate) struct KeptLimits {
    all: AllLimits,
    scheduled: Option<bool>,
    has_new_rates: bool,
    must_save: bool,
}

/// What was set for a torrent, and is to be done for it.
struct KeptTorrent {
    record: Record,
    to_verify: bool,
    must_save: bool,
    task: TaskOrders,
}

impl Torrents {
    /// What is set for all torrents.
    pub(crate) fn kept_limits(&self) -> KeptLimits {
        KeptLimits {
            all: self.bounds.all.clone(),
            scheduled: self.scheduled,
            has_new_rates: self.has_new_rates,
            must_save: self.must_save_limits,
        }
    }

    /// Sets for all torrents what was set then. Nothing else was done since.
    pub(crate) fn restore_limits(&mut self, kept: KeptLimits) {
        self.bounds.all = kept.all;
        self.scheduled = kept.scheduled;
        self.has_new_rates = kept.has_new_rates;
        self.must_save_limits = kept.must_save;
    }

    /// Makes changes of the settings of a torrent: all of them, or none where one is refused. Its place in the
    /// queue must be the last that is changed.
    ///
    /// # Errors
    /// Why one is refused.
    pub fn change_one(
        &mut self,
        info_hash: InfoHash,
        change: impl FnOnce(&mut Self) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let entry = self.entries.get(&info_hash);
        let entry = entry.ok_or(CommandError::Unknown(info_hash))?;
        let kept = KeptTorrent {
            record: entry.record.clone(),
            to_verify: entry.to_verify,
            must_save: entry.must_save,
            task: entry.task,
        };
        // A change may make a group.
        let limits = self.kept_limits();
        let changed = change(self);
        if changed.is_err() {
            self.restore_limits(limits);
            if let Some(entry) = self.entries.get_mut(&info_hash) {
                *entry.record = kept.record;
                entry.to_verify = kept.to_verify;
                entry.must_save = kept.must_save;
                entry.task = kept.task;
            }
        }
        changed
    }
}
