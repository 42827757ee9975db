//! Other names of files.

use hawser_torrent::InfoHash;

use super::entry::Activity;
use super::{CommandError, Torrents};
use crate::record::{Pending, cut_name};
use crate::renames::{self, Rename};

impl Torrents {
    /// Gives a file or folder of a torrent, which has had the names `known` so far, another name. One that runs goes
    /// on meanwhile.
    ///
    /// # Errors
    /// [`CommandError::Unknown`], [`CommandError::Busy`], also if it has other names, or
    /// [`CommandError::Value`], while its content is verified.
    pub fn rename(
        &mut self,
        info_hash: InfoHash,
        rename: Rename,
        known: &[Rename],
    ) -> Result<(), CommandError> {
        let entry = self.settled(info_hash)?;
        if entry.record.settings.renames != known {
            return Err(CommandError::Busy(info_hash));
        }
        if entry.checks() || entry.to_verify {
            return Err(CommandError::Value(format!(
                "the content of {info_hash} is being verified: rename its files when that is done"
            )));
        }
        entry.record.pending = Some(Pending::Rename(rename));
        entry.must_save = true;
        Ok(())
    }

    /// The file or folder has its other name, or not.
    pub fn on_renamed(&mut self, info_hash: InfoHash, is_renamed: bool) {
        let Some(entry) = self.entries.get_mut(&info_hash) else {
            return;
        };
        if entry.activity == Activity::Moving {
            entry.activity = Activity::Idle;
        }
        entry.task.renames = false;
        let record = &mut entry.record;
        let Some(Pending::Rename(rename)) = record
            .pending
            .take_if(|it| matches!(it, Pending::Rename(_)))
        else {
            return;
        };
        entry.must_save = true;
        if is_renamed {
            if rename.is_top() {
                record.name.clone_from(&rename.name);
                cut_name(&mut record.name);
            }
            renames::add(&mut record.settings.renames, rename);
        }
    }
}
