//! Taking a lab down, also if it has been killed in part.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use hawser_kernel::namespace;
use hawser_topology::FileError;

use crate::Lab;
use crate::dir::LabDir;
use crate::place::PlaceError;
use crate::protocol::{self, Request};
use crate::reap::{self, Certainty};
use crate::state::State;

/// Longest wait for the supervisor to end the lab's processes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The reason why a lab could not be taken down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownError {
    /// The lab's folder cannot be locked.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The lab's state cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The command runs inside the lab and would end itself.
    #[error("this command runs inside the lab, which it is to take down: run it outside")]
    Inside,
    /// A process of the lab cannot be ended.
    #[error("cannot end all processes of the lab: {0}")]
    Process(io::Error),
    /// The lab's folder cannot be removed.
    #[error("cannot remove {path}: {source}", path = path.display())]
    Remove {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl Lab {
    /// Takes the lab down: ends all its processes, including programs that were started inside it,
    /// and removes its folder. Does nothing if the lab is down already.
    ///
    /// # Errors
    /// When a part of the lab remains; [`Lab::down`] may be called again.
    pub fn down(&self) -> Result<(), DownError> {
        let _lock = self.root.lock(&self.name)?;
        clear(&self.dir)
    }
}

/// Ends all processes of the lab in `dir`, which also removes its namespaces, links and limits,
/// then removes the folder. The caller must hold the lab's lock.
pub(crate) fn clear(dir: &LabDir) -> Result<(), DownError> {
    match dir.read_state() {
        Ok(state) => end(dir, &state)?,
        // No supervisor was started, or it has not written the state yet and will fail without the
        // folder.
        Err(e) if e.is_not_found() => {}
        Err(e) => return Err(e.into()),
    }
    match std::fs::remove_dir_all(dir.path()) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(DownError::Remove {
            path: dir.path().to_owned(),
            source: e,
        }),
        _ => Ok(()),
    }
}

fn end(dir: &LabDir, state: &State) -> Result<(), DownError> {
    // After a reboot no process of the lab runs, and other processes may have the numbers.
    if !state.is_of_this_boot().map_err(DownError::Process)? {
        return Ok(());
    }
    let namespaces = state.namespaces();
    if let Some(own) = namespace::own_net().map_err(DownError::Process)?
        && namespaces.contains(&own)
    {
        return Err(DownError::Inside);
    }
    if state.supervisor.is_alive()
        && let Err(error) = protocol::call(&dir.socket(), &Request::Stop, TIMEOUT)
    {
        // Processes that the supervisor did not end are ended below.
        tracing::warn!("{error}");
    }
    let end = || {
        reap::end(&reap::open([state.supervisor])?)?;
        reap::end(&reap::open(state.services())?)?;
        reap::clear(&namespaces, Certainty::Cookie)
    };
    end().map_err(DownError::Process)
}
