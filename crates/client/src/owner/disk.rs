//! What is done with the content of torrents that do not run.

use std::sync::Arc;

use hawser_torrent::InfoHash;
use tokio::sync::oneshot;

use super::{Done, Owner, Task};
use crate::content::{self, MoveError};
use crate::record::{Origin, Pending};
use crate::renames::Rename;
use crate::torrents::CommandError;

/// Gets the outcome of a change of a name.
pub(crate) type Renamed = oneshot::Sender<Result<(), String>>;

impl Owner {
    pub(super) fn relocate(&mut self, info_hash: InfoHash) {
        let Some(record) = self.torrents.record(info_hash).cloned() else {
            return;
        };
        let (state, interrupt) = (Arc::clone(&self.state), self.interrupt.clone());
        let task = self.tasks.spawn_blocking(move || {
            let Some(Pending::Move(to)) = &record.pending else {
                return Done::Moved(Ok(()));
            };
            if record.origin != Origin::Metainfo {
                return Done::Moved(Ok(()));
            }
            let metainfo = match state.metainfo_of(&record) {
                Ok(metainfo) => metainfo,
                Err(error) => return Done::Moved(Err(error.to_string())),
            };
            let is_ending = || interrupt.is_cancelled();
            match content::relocate(&metainfo, &record.folder, to, &is_ending) {
                Ok(()) => Done::Moved(Ok(())),
                Err(MoveError::Interrupted) => Done::Interrupted,
                Err(MoveError::Failed(reason)) => Done::Moved(Err(reason)),
            }
        });
        let owner = Task::new(info_hash, Done::Moved);
        self.owners.insert(task.id(), owner);
    }

    pub(super) fn remove(&mut self, info_hash: InfoHash) {
        let Some(record) = self.torrents.record(info_hash).cloned() else {
            return;
        };
        let state = Arc::clone(&self.state);
        let task = self.tasks.spawn_blocking(move || {
            let deletes = record.pending == Some(Pending::Remove { content: true });
            let deleted = match deletes && record.origin == Origin::Metainfo {
                true => {
                    let metainfo = state
                        .metainfo_of(&record)
                        .map_err(|error| error.to_string());
                    metainfo.and_then(|metainfo| content::delete(&metainfo, &record.folder))
                }
                false => Ok(()),
            };
            let removed = || state.remove(info_hash).map_err(|error| error.to_string());
            Done::Removed(deleted.and_then(|()| removed()))
        });
        let owner = Task::new(info_hash, Done::Removed);
        self.owners.insert(task.id(), owner);
    }

    /// Gives a file or folder of a torrent another name; `reply` gets the outcome. The torrent has had the names
    /// `known` so far.
    pub fn begin_rename(
        &mut self,
        info_hash: InfoHash,
        rename: Rename,
        known: &[Rename],
        reply: Renamed,
    ) -> Result<(), CommandError> {
        self.torrents.rename(info_hash, rename, known)?;
        self.renames.insert(info_hash, reply);
        Ok(())
    }

    /// Carries out what was begun: by the task of a torrent that runs, so that it need not stop.
    pub(super) fn rename(&mut self, info_hash: InfoHash) {
        let Some(record) = self.torrents.record(info_hash).cloned() else {
            return;
        };
        let Some(Pending::Rename(rename)) = record.pending.clone() else {
            return;
        };
        if let Some(running) = self.running.get(&info_hash) {
            running.rename.send_replace(Some(rename));
            return;
        }
        let state = Arc::clone(&self.state);
        let task = self.tasks.spawn_blocking(move || {
            let metainfo = state
                .metainfo_of(&record)
                .map_err(|error| error.to_string());
            Done::Renamed(metainfo.and_then(|it| content::rename(&it, &record.folder, &rename)))
        });
        let owner = Task::new(info_hash, Done::Renamed);
        self.owners.insert(task.id(), owner);
    }

    /// A file or folder has another name, or not, for this reason.
    pub(super) fn on_renamed(&mut self, info_hash: InfoHash, renamed: Result<(), String>) {
        if let Err(reason) = &renamed {
            tracing::warn!("torrent {info_hash}: not renamed: {reason}");
        }
        self.torrents.on_renamed(info_hash, renamed.is_ok());
        // After a crash nobody waits for it.
        if let Some(reply) = self.renames.remove(&info_hash) {
            let _ = reply.send(renamed);
        }
    }
}
