//! Taking a lab down, whatever is left of it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use hawser_kernel::namespace;
use hawser_topology::FileError;

use crate::dir::LabDir;
use crate::place::PlaceError;
use crate::protocol::{self, Request};
use crate::reap::{self, Certainty};
use crate::state::State;

/// How long the supervisor may take to end all it holds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a lab could not be taken down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownError {
    /// Its folder cannot be locked.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// What runs for it cannot be read.
    #[error(transparent)]
    State(#[from] FileError),
    /// It would end itself.
    #[error("this command runs inside the lab, which it is to take down: run it outside")]
    Inside,
    /// A process of it cannot be ended.
    #[error("cannot end all processes of the lab: {0}")]
    Process(io::Error),
    /// Its folder cannot be removed.
    #[error("cannot remove {path}: {source}", path = path.display())]
    Remove {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Ends every process of the lab in `dir`, with which its namespaces, links and limits go, then
/// removes the folder. The caller holds the lab's lock.
pub(crate) fn clear(dir: &LabDir) -> Result<(), DownError> {
    match dir.read_state() {
        Ok(state) => end(dir, &state)?,
        // Nothing was started, or something that gives up without its folder.
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
    // Of an earlier boot nothing runs, and its numbers are others' now.
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
        && let Err(error) = protocol::call(&dir.socket(), &Request::Stop, PATIENCE)
    {
        // What it does not do is done below.
        tracing::warn!("{error}");
    }
    let end = || {
        reap::end(&reap::open([state.supervisor])?)?;
        reap::end(&reap::open(state.services())?)?;
        reap::clear(&namespaces, Certainty::Cookie)
    };
    end().map_err(DownError::Process)
}
